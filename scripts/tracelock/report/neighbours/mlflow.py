"""A study as an experiment of MLflow: parameters, metrics over steps, files; in a folder or on a server of yours."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tracelock.errors import Problem, TracelockError
from tracelock.report.neighbours.facts import Run

NEEDS = "mlflow"


def write(runs: Sequence[Run], experiment: str, folder: Path) -> None:
    """Write the runs of a study to the database ``mlflow.db`` and the artifacts in `folder`.

    Raises
    ------
    TracelockError
        If mlflow is not installed.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # else it tells its makers that it is used
    try:
        from mlflow.entities import Metric, Param, RunTag
        from mlflow.tracking import MlflowClient
    except ImportError:
        raise TracelockError(Problem(NEEDS, "is not installed", "pip install 'tracelock[mlflow]'")) from None
    folder.mkdir(parents=True, exist_ok=True)
    client = MlflowClient(tracking_uri=f"sqlite:///{(folder / 'mlflow.db').resolve()}")
    known = client.get_experiment_by_name(experiment)
    place = (folder / "artifacts").resolve().as_uri()
    number = known.experiment_id if known else client.create_experiment(experiment, artifact_location=place)
    for run in runs:
        start = round(run.started_s * 1000)
        made = client.create_run(number, start_time=start, run_name=run.name).info.run_id
        metrics = [Metric(name, value, start, 0) for name, value in run.metrics.items()]
        metrics += [Metric("step_time_each_ms", value, start, step) for step, value in enumerate(run.step_ms)]
        parameters = [Param(name, str(value)) for name, value in run.parameters.items()]
        tags = [RunTag(f"tracelock.{name}", value) for name, value in run.notes.items() if value]
        client.log_batch(made, metrics, parameters, tags)
        for file in (*run.files, *([run.trace] if run.trace else [])):
            client.log_artifact(made, str(file))
        client.set_terminated(made)
