"""Experiments: variants, runs, comparison, remedies as new variants."""
