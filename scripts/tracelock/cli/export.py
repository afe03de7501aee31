"""``tracelock export``: a study for tools that people have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[Path, typer.Argument(metavar="STUDY", help="Results of a study: results/<experiment>.")]
ToOption = Annotated[str, typer.Option("--to", help="tensorboard or mlflow.")]
OutputOption = Annotated[Path | None, typer.Option("--output", "-o", metavar="DIR", help="(STUDY/<tool>)")]
TOOLS = ("tensorboard", "mlflow")


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""

    @app.command()
    def export(study: Folder, to: ToOption = "tensorboard", output: OutputOption = None) -> None:
        """Write a study as files of TensorBoard (scalars, HParams, traces) or MLflow; nothing is sent anywhere."""
        import importlib

        from tracelock.errors import Problem, TracelockError, nearest
        from tracelock.report.neighbours.facts import runs_of
        from tracelock.study import comparison

        if to not in TOOLS:
            raise TracelockError(Problem("--to", f"'{to}' is none of {', '.join(TOOLS)}", nearest(to, TOOLS)))
        found = comparison.read(study / "comparison.json")
        runs, place = runs_of(found, study), output or study / to
        importlib.import_module(f"tracelock.report.neighbours.{to}").write(runs, found.experiment, place)
        shown = {
            "tensorboard": f"tensorboard --logdir {place}",
            "mlflow": f"mlflow ui --backend-store-uri sqlite:///{place}/mlflow.db",
        }
        print(f"{len(runs)} runs written. To look at them: {shown[to]}")
