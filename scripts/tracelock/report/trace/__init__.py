"""The page of one trace, or of the ranks of one job: one file that needs nothing else, the answer first."""
