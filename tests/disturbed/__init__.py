"""A study of many short runs that is disturbed at random moments, and goes on by the one command that it names.

`campaign.py` disturbs, `faults.py` holds the kinds of faults, `study.py` starts the study and judges its files.
``python -m tests.disturbed --faults 24 --seed 1`` runs it by hand.
"""
