"""The workloads that come with tracelock."""
