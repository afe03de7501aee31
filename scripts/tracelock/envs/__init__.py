"""Environments: locks, pins, checks, snapshots; knows nothing of traces."""
