"""Runs inside the pinned environment: Python 3.10, standard library and torch only."""
