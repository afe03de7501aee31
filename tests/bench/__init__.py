"""Measurements of speed and memory: ``python -m tests.bench``. Each module here with a ``bench`` function is one."""
