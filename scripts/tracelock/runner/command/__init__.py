"""Runs somebody's command with `runner.outside` in its processes, and makes a run of what they write."""
