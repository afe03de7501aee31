"""``tracelock bundle``: a study as one archive."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tracelock.bundle.pack import Packed

StudyArgument = Annotated[Path, typer.Argument(metavar="STUDY", help="The study file, or the folder of its results.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="The archive (default: <study>.zip).")]
TracesOption = Annotated[str, typer.Option("--traces", help="none, main (one of each variant) or all.")]
SlimOption = Annotated[bool, typer.Option("--slim", help="Keep two typical steps of each trace.")]
CheckOption = Annotated[bool, typer.Option("--check", help="Only say what a reviewer would miss; exit 1 if anything.")]
ResultsOption = Annotated[str, typer.Option(help="Folder of all results.")]
_SHOWN_FILES = 3


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command()
    def bundle(
        study: StudyArgument,
        output: Output = None,
        traces: TracesOption = "main",
        slim: SlimOption = False,
        check: CheckOption = False,
        results: ResultsOption = "results",
    ) -> None:
        """Put a finished study into one archive that a colleague can check and repeat.

        Names of users, hosts and home folders, e-mail addresses, tokens and secrets are replaced before anything is
        written, and shown here.
        """
        from tracelock.bundle.pack import Request, pack, review
        from tracelock.errors import Problem, TracelockError, nearest

        policies = ("none", "main", "all")
        if traces not in policies:
            hint = nearest(traces, policies)
            raise TracelockError(Problem("--traces", f"is {traces!r}, expected none, main or all", hint))
        request = Request(study, results, traces, _slim if slim else None)  # type: ignore[arg-type]  # checked above
        if check:
            gaps = review(request)
            _tell(gaps)
            raise typer.Exit(1 if gaps else 0)
        path, packed = pack(request, output, lambda line: print(f"bundle: {line}", file=sys.stderr, flush=True))
        _report(path, packed)


def _slim(source: Path, target: Path) -> None:
    from tracelock.cli._slim import Request, run

    run(Request(source, target, 2, None, 0.0))


def _report(path: Path, packed: Packed) -> None:
    for row in packed.replaced:
        shown = ", ".join(row.files[:_SHOWN_FILES]) + (f" and {len(row.files) - 3} more" if len(row.files) > 3 else "")
        print(f"replaced: {row.kind} {row.shown} → {row.by} ({row.count} times; {shown})")
    if not packed.replaced:
        print("replaced: nothing; no name, host, address or token was found")
    _tell(packed.missing)
    size = path.stat().st_size / 1e6
    print(f"{path}: {packed.files} files, {size:,.1f} MB; look through it before you publish it")
    print(f"Repeat it: tracelock reproduce {path}")


def _tell(gaps: list[str] | tuple[str, ...]) -> None:
    for line in gaps:
        print(f"a reviewer would miss: {line}")
    if not gaps:
        print("nothing that a reviewer would miss was found")
