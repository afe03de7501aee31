"""tracelock: evidence for why a PyTorch training job is slow, that a colleague can repeat."""

__version__ = "0.1.0"
