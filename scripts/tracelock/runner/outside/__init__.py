"""What lives inside somebody's training process: standard library and torch alone, reached by path.

Nothing here imports the rest of tracelock: the process has its own packages, and these modules are loaded under a
private name (see ``site/sitecustomize.py``). So imports here are relative.
"""
