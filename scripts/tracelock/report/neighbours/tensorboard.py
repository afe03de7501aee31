"""A study as a log directory of TensorBoard: scalars, HParams, and traces where torch-tb-profiler looks for them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tracelock.errors import Problem, TracelockError
from tracelock.report.neighbours.facts import Parameter, Run

NEEDS = "tensorboard"


def write(runs: Sequence[Run], experiment: str, folder: Path) -> None:
    """Write the runs of a study to `folder`, a directory for ``tensorboard --logdir``.

    Raises
    ------
    TracelockError
        If tensorboard is not installed.
    """
    try:
        from tensorboard.plugins.hparams import summary_v2
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError:
        raise TracelockError(Problem(NEEDS, "is not installed", "pip install 'tracelock[tensorboard]'")) from None
    for run in runs:
        place = folder / run.name
        shutil.rmtree(place, ignore_errors=True)  # an older export: TensorBoard would show both as one
        writer = EventFileWriter(str(place))
        try:
            for event in _events(run, experiment, summary_v2):
                writer.add_event(event)
        finally:
            writer.close()
        if run.trace is not None:
            shutil.copyfile(run.trace, place / _trace_name(run))


def _events(run: Run, experiment: str, hparams: Any) -> Iterator[Any]:
    from tensorboard.compat.proto.event_pb2 import Event

    start = hparams.hparams_pb(run.parameters, trial_id=run.name, start_time_secs=run.started_s)
    yield Event(wall_time=run.started_s, step=0, summary=_local(start))
    config = hparams.hparams_config_pb(
        hparams=[hparams.HParam(name, _domain(value, hparams)) for name, value in run.parameters.items()],
        metrics=[hparams.Metric(f"median/{name}") for name in run.metrics],
        time_created_secs=run.started_s,
    )
    yield Event(wall_time=run.started_s, step=0, summary=_local(config))
    for name, value in run.metrics.items():
        yield Event(wall_time=run.started_s, step=0, summary=_scalar(f"median/{name}", value))
    at = run.started_s
    for step, value in enumerate(run.step_ms):
        at += value / 1000
        yield Event(wall_time=at, step=step, summary=_scalar("step_time_ms", value))


def _domain(value: Parameter, hparams: Any) -> Any:
    """Return what TensorBoard may filter by: any number, or the one word that this run has."""
    if isinstance(value, float):
        return hparams.RealInterval(min_value=-1e18, max_value=1e18)
    return hparams.Discrete([value])


def _local(summary: Any) -> Any:
    """Return a summary as the event classes of the reader hold it."""
    from tensorboard.compat.proto.summary_pb2 import Summary

    return Summary.FromString(summary.SerializeToString())


def _scalar(tag: str, value: float) -> Any:
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata

    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
    return Summary(value=[Summary.Value(tag=tag, simple_value=value, metadata=metadata)])


def _trace_name(run: Run) -> str:
    """Return a name that torch-tb-profiler takes for a trace: ``worker.time.pt.trace.json.gz``."""
    return f"{run.notes['host'] or 'worker'}.{round(run.started_s * 1000)}.pt.trace.json.gz"
