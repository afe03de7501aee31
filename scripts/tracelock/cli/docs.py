"""``tracelock docs``: write the parts of docs/ that are made from the code."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command()
    def docs(
        check: Annotated[
            bool, typer.Option("--check", help="Write nothing; fail where a page is not up to date.")
        ] = False,
    ) -> None:
        """Write the pages of docs/ that are made from the code: study files, settings, tables."""
        from tracelock.cli._pages import pages
        from tracelock.errors import EXIT_FAILED, TracelockError
        from tracelock.io import write_text

        stale = [(path, text) for path, text in pages() if not path.is_file() or path.read_text("utf-8") != text]
        if check and stale:
            names = ", ".join(path.name for path, _ in stale)
            raise TracelockError(f"not up to date: {names} (make docs writes them)", EXIT_FAILED)
        for path, text in stale:
            write_text(path, text)
            print(f"{path}: written")
