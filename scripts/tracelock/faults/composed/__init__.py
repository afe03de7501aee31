"""Workloads composed at random, with one to three faults of known cost: cases that no rule was written with."""
