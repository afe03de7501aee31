"""A study for tools that people have: TensorBoard and MLflow, as files on the disk, without a server.

One module a tool, each with ``write(runs, experiment, folder)``; what they write comes from `facts`.
"""
