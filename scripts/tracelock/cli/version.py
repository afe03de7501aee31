"""``tracelock version``."""

from __future__ import annotations

import typer

import tracelock


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command()
    def version() -> None:
        """Print the version."""
        print(tracelock.__version__)
