"""``tracelock figures``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracelock.errors import Problem, TracelockError, nearest

if TYPE_CHECKING:
    from tracelock.diagnosis import Diagnosed

Source = Annotated[
    Path, typer.Argument(metavar="STUDY|TRACE", help="Results of a study (results/<experiment>), or a trace.")
]
SizeOption = Annotated[str, typer.Option("--size", help="column (3.9 in wide), page (7.2) or slide (10).")]
FormatOption = Annotated[str, typer.Option("--format", help="Of svg, pdf, png; several with commas.")]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="DIR", help="(STUDY/figures; figures here for a trace)")
]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command()
    def figures(
        source: Source, size: SizeOption = "page", form: FormatOption = "svg,pdf", output: OutputOption = None
    ) -> None:
        """Draw the figures of a study or of a trace for a paper or a slide, with their captions in captions.txt."""
        from tracelock.report.export import FORMATS, SIZES, export_figures
        from tracelock.report.trace.stills import export_stills
        from tracelock.study import comparison

        _known("--size", size, tuple(SIZES))
        formats = [each.strip() for each in form.split(",") if each.strip()]
        for each in formats:
            _known("--format", each, FORMATS)
        if source.is_dir():
            found = comparison.read(source / "comparison.json")
            paths = export_figures(found, output or source / "figures", size, formats)
        else:
            paths = export_stills(_diagnosed(source), output or Path("figures"), size, formats)
        for path in paths:
            print(path)


def _diagnosed(source: Path) -> Diagnosed:
    """Return the analysis of a trace, or of the document that ``analyze --json`` wrote."""
    from tracelock.analysis import document
    from tracelock.analysis.analyze import analyze
    from tracelock.cli._given import given_file
    from tracelock.cli._progress import reading
    from tracelock.diagnosis import Diagnosed, diagnose
    from tracelock.trace import read_trace

    if source.name == "analysis.json":
        return document.read(source, Diagnosed)
    with given_file(source) as (file, name), reading(Path(name).name) as progress:
        trace = read_trace(file, progress)
        progress.analysing()
        return diagnose(analyze(trace))


def _known(option: str, word: str, allowed: tuple[str, ...]) -> None:
    if word not in allowed:
        hint = nearest(word, allowed)
        raise TracelockError(Problem(option, f"'{word}' is none of {', '.join(allowed)}", hint))
