"""The tracelock command."""


def main() -> None:
    """Run the command line."""
