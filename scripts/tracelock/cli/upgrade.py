"""``tracelock upgrade``: results of an older tracelock, made anew by this one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

Results = Annotated[Path, typer.Argument(metavar="RESULTS", help="results/<study>, of this or an older tracelock.")]
DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="Say what would change, and change nothing.")]
Json = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command()
    def upgrade(results: Results, dry_run: DryRun = False, json: Json = False) -> None:
        """Make comparison, tables, figures and report anew from the records, and say what changes.

        What was measured stays as it is: this tracelock reads the records of all versions before it.
        """
        import msgspec

        from tracelock.bundle.upgrade import upgrade as make
        from tracelock.io import schema, stable_json

        done = make(results, not dry_run, lambda line: print(f"upgrade: {line}", file=sys.stderr, flush=True))
        if json:
            document = {"schema": schema("upgrade"), "written": not dry_run, **msgspec.to_builtins(done)}
            sys.stdout.write(stable_json(document))
            return
        for kind, count in done.documents.items():
            print(f"{kind}: {count} document{'s' if count != 1 else ''}, read as they are")
        for change in done.changes:
            print(f"{change.file}: {change.what}")
        if not done.changes:
            print(f"{results}: nothing changes")
        elif dry_run:
            print(f"{results}: {len(done.changes)} files would change; without --dry-run they do")
