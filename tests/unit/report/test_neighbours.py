"""A study in other tools, read by their own readers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from study_tree import StudyTree, Variant

from tracelock.cli import main
from tracelock.study import comparison
from tracelock.study.compare import compare

# Where torch-tb-profiler 0.4.3 looks for traces: `WORKER_PATTERN` of its consts.py, from the format it documents.
TRACE_NAME = re.compile(r"^(.*?)(\.\d+)?\.pt\.trace\.json(\.gz)?$")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    variants = [Variant({"num_workers": 0, "amp": "off"}), Variant({"num_workers": 2, "amp": "bf16"}, step_us=60_000)]
    folder = StudyTree(variants, repeats=2).write(tmp_path_factory.mktemp("study"))
    for run in folder.glob("runs/*/*/1/run.json"):
        run.with_name("trace.json.gz").write_bytes(b"trace")
    comparison.write(folder / "comparison.json", compare(folder))
    return folder


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["export", *words])
    return int(ended.value.code or 0)


def test_tensorboards_own_reader_finds_scalars_and_hparams(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tensorboard", reason="needs tensorboard (requirements/dev.lock)")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import plugin_data_pb2

    for _ in range(2):  # a second export takes the place of the first
        assert run(str(results), "-o", str(tmp_path)) == 0
    assert f"tensorboard --logdir {tmp_path}" in capsys.readouterr().out
    documents = sorted(results.glob("runs/*/*/*/run.json"))
    assert len(documents) == 4
    for file in documents:
        recorded = json.loads(file.read_text(encoding="utf-8"))
        reader = EventAccumulator(str(tmp_path / file.parent.relative_to(results / "runs")))
        reader.Reload()
        steps = reader.Scalars("step_time_ms")
        assert [event.step for event in steps] == list(range(20))
        assert [event.value for event in steps] == pytest.approx([us / 1000 for us in recorded["timed"]["step_us"]])
        (median,) = reader.Scalars("median/step_time_ms")
        assert median.value == pytest.approx(recorded["timed"]["duration_us"] / recorded["timed"]["steps"] / 1000)
        content = reader.summary_metadata["_hparams_/session_start_info"].plugin_data.content
        info = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info
        assert info.hparams["num_workers"].number_value == recorded["settings"]["num_workers"]
        assert info.hparams["amp"].string_value == recorded["settings"]["amp"]


def test_traces_lie_where_the_profiler_plugin_looks(results: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs tensorboard (requirements/dev.lock)")
    assert run(str(results), "-o", str(tmp_path)) == 0
    traces = [path for path in tmp_path.rglob("*.gz") if TRACE_NAME.match(path.name)]
    assert sorted(path.parent.relative_to(tmp_path).as_posix() for path in traces) == [
        "default/num_workers=0,amp=off/1", "default/num_workers=2,amp=bf16/1",
    ]  # fmt: skip


def test_mlflows_own_client_finds_parameters_metrics_and_files(results: Path, tmp_path: Path) -> None:
    tracking = pytest.importorskip("mlflow.tracking", reason="needs mlflow, which is not among the development tools")
    assert run(str(results), "--to", "mlflow", "-o", str(tmp_path)) == 0
    client = tracking.MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("demo")
    found = {each.info.run_name: each for each in client.search_runs([experiment.experiment_id])}
    assert len(found) == 4
    one = found["default/num_workers=2,amp=bf16/1"]
    assert one.data.params == {"num_workers": "2.0", "amp": "bf16"}
    assert one.data.metrics["step_time_ms"] == pytest.approx(60, rel=0.1)
    assert len(client.get_metric_history(one.info.run_id, "step_time_each_ms")) == 20
    assert {file.path for file in client.list_artifacts(one.info.run_id)} == {
        "analysis.json",
        "run.json",
        "trace.json.gz",
    }


def test_a_tool_that_is_not_known_is_named(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(results), "--to", "tensorbord") == 2
    assert "did you mean 'tensorboard'?" in capsys.readouterr().err
