"""Results that were written by earlier versions: still read, and made anew with what changes told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bundling import finished

from tracelock.analysis import document
from tracelock.bundle.unpack import unpack
from tracelock.bundle.upgrade import VERSIONS, upgrade
from tracelock.diagnosis import Diagnosed
from tracelock.envs.manifest import read_snapshot
from tracelock.errors import TracelockError
from tracelock.io import read_json, write_json
from tracelock.study import comparison
from tracelock.study.records import read_plan, read_remedies, read_run

DATA = Path(__file__).parents[1] / "data"
STORED = sorted(DATA.glob("results-*.zip"))


def quiet(_: str) -> None:
    """Say nothing."""


@pytest.fixture(params=STORED, ids=lambda path: path.stem)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    unpack(request.param, tmp_path / "results" / "tiny")
    return tmp_path / "results" / "tiny"


def test_stored_results_of_every_version_are_read_by_every_reader(stored: Path) -> None:
    plan = read_plan(stored)
    runs = [read_run(path) for path in sorted(stored.glob("runs/*/*/*/run.json"))]
    analyses = [document.read(path, Diagnosed) for path in sorted(stored.glob("runs/*/*/*/analysis.json"))]
    assert len(runs) == len(analyses) == len(plan.runs) == 6
    assert {run.digest for run in runs} == {variant.digest for variant in plan.variants}
    assert all(analysis.findings for analysis in analyses)
    assert read_remedies(stored) is not None
    assert len(read_snapshot(stored / "envs" / "default" / "packages.json").packages) > 50
    found = comparison.read(stored / "comparison.json")
    assert (found.answers[0].finding.code, len(found.runs)) == ("dataloader-bound", 6)  # type: ignore[union-attr]


def test_upgrading_stored_results_keeps_their_numbers(stored: Path) -> None:
    records = {path: path.read_bytes() for path in stored.rglob("run.json")}
    before = comparison.read(stored / "comparison.json")
    done = upgrade(stored, write=True, say=quiet)
    after = comparison.read(stored / "comparison.json")
    assert [(c.key, c.step) for c in after.cases] == [(c.key, c.step) for c in before.cases]
    assert not [change for change in done.changes if change.what.startswith("holds other numbers")]
    assert {path: path.read_bytes() for path in records} == records
    assert upgrade(stored, write=True, say=quiet).changes == ()


def test_what_changes_is_told_and_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    folder = finished(tmp_path / "mine")
    (folder / "tables" / ".snakemake_timestamp").touch()
    table = folder / "tables" / "runs.csv"
    rows = [line.split(",") for line in table.read_text(encoding="utf-8").splitlines()]
    place = rows[0].index("host")
    table.write_text("\n".join(",".join([*row[:place], *row[place + 1 :]]) for row in rows) + "\n", encoding="utf-8")
    changed = read_json(folder / "comparison.json", "comparison")
    del changed["missing"]
    changed["runs"] = []
    write_json(folder / "comparison.json", changed)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    told = {change.file: change.what for change in upgrade(folder, write=False, say=quiet).changes}
    assert told["tables/runs.csv"] == "gains the columns host"
    assert told["comparison.json"].startswith("gains missing, runs[].")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert len(upgrade(folder, write=True, say=quiet).changes) == len(told)
    assert upgrade(folder, write=False, say=quiet).changes == ()


def test_documents_of_a_later_version_are_all_named_and_nothing_changes(tmp_path: Path) -> None:
    folder = finished(tmp_path / "mine")
    for path in list(folder.rglob("run.json"))[:2]:
        write_json(path, {**read_json(path, "run"), "schema": "tracelock/run/9"})
    with pytest.raises(TracelockError) as caught:
        upgrade(folder, write=True, say=quiet)
    assert len(caught.value.problems) == 2
    assert "tracelock/run/9" in str(caught.value)


def test_every_kind_of_stored_results_has_its_versions_written_down(stored: Path) -> None:
    there = {json.loads(path.read_bytes())["schema"] for path in stored.rglob("*.json")}
    known = {f"tracelock/{kind}/{version}" for kind, versions in VERSIONS.items() for version in versions}
    assert there <= known
    assert len(there) >= 9
