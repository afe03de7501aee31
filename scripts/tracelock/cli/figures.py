"""``tracelock figures``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tracelock.errors import Problem, TracelockError, nearest

Folder = Annotated[Path, typer.Argument(metavar="STUDY", help="Results of a study: results/<experiment>.")]
SizeOption = Annotated[str, typer.Option("--size", help="column (3.9 in wide), page (7.2) or slide (10).")]
FormatOption = Annotated[str, typer.Option("--format", help="Of svg, pdf, png; several with commas.")]
OutputOption = Annotated[Path | None, typer.Option("--output", "-o", metavar="DIR", help="(STUDY/figures)")]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command()
    def figures(
        study: Folder, size: SizeOption = "page", form: FormatOption = "svg,pdf", output: OutputOption = None
    ) -> None:
        """Draw the figures of a study for a paper or a slide, with their captions in captions.txt."""
        if study.is_file():
            hint = f"tracelock report {study} writes a page whose figures are saved as SVG"
            raise TracelockError(Problem(str(study), "is no folder of a study", hint))
        from tracelock.report.export import FORMATS, SIZES, export_figures
        from tracelock.study import comparison

        _known("--size", size, tuple(SIZES))
        formats = [each.strip() for each in form.split(",") if each.strip()]
        for each in formats:
            _known("--format", each, FORMATS)
        found = comparison.read(study / "comparison.json")
        for path in export_figures(found, output or study / "figures", size, formats):
            print(path)


def _known(option: str, word: str, allowed: tuple[str, ...]) -> None:
    if word not in allowed:
        hint = nearest(word, allowed)
        raise TracelockError(Problem(option, f"'{word}' is none of {', '.join(allowed)}", hint))
