"""A reproduction from the archive on: the same bytes from the records anywhere, and nothing run without consent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from bundling import finished, tree

from tracelock.bundle.opened import open_bundle, what_would_run
from tracelock.bundle.pack import Request, pack
from tracelock.bundle.reasons import reasons
from tracelock.bundle.reproduce import judged
from tracelock.errors import TracelockError
from tracelock.io import read_json, write_json


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mine")
    finished(folder, figures=True)
    before = Path.cwd()
    os.chdir(folder)
    try:
        return pack(Request(Path("demo.yaml")), folder / "demo.zip")[0]
    finally:
        os.chdir(before)


def tracelock(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    plain = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[2] / "scripts"), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "tracelock.cli", *arguments]
    done = {**plain, **variables}
    return subprocess.run(
        command, cwd=cwd, env=done, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def test_the_analysis_gives_the_same_bytes_in_another_folder_locale_zone_and_without_a_home(bundle, tmp_path) -> None:
    place = tmp_path / "else where" / "ünter"
    place.mkdir(parents=True)
    variables = {"LC_ALL": "C", "TZ": "Pacific/Apia", "USER": "kim", "SOURCE_DATE_EPOCH": "1"}
    done = tracelock("reproduce", str(bundle), "--analysis-only", "--json", "-o", "a", cwd=place, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert (document["verdict"], document["other_bytes"]) == ("same", [])
    assert {"comparison.json", "report.html", "tables/variants.csv", "figures/step_time.svg"} <= {
        *document["same_bytes"]
    }
    assert read_json(place / "a" / "results" / "demo" / "reproduction.json", "reproduction") == document


def test_a_record_that_was_changed_and_packed_again_gives_other_numbers(bundle: Path, tmp_path: Path) -> None:
    first = open_bundle(bundle, tmp_path / "open")
    run = next(first.results.rglob("run.json"))
    document = read_json(run, "run")
    document["timed"]["duration_us"] *= 1.5
    write_json(run, document)
    forged = repacked(tmp_path / "open", tmp_path / "forged.zip")
    done = tracelock("reproduce", str(forged), "--analysis-only", "-o", "a", cwd=tmp_path)
    assert done.returncode == 1
    assert "differs: tables/runs.csv" in done.stdout
    assert "NUMBERS DIFFER" in done.stdout


def repacked(folder: Path, path: Path) -> Path:
    from tracelock.bundle.archive import write_archive, write_checksums

    write_checksums(folder)
    write_archive(folder, path)
    return path


def test_a_file_that_was_changed_in_the_archive_is_named_and_nothing_stays(bundle: Path, tmp_path: Path) -> None:
    forged = tmp_path / "forged.zip"
    with zipfile.ZipFile(bundle) as old, zipfile.ZipFile(forged, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name) + (b"import os\n" if name == "study/train.py" else b""))
    done = tracelock("reproduce", str(forged), "--trust", "-o", "a", cwd=tmp_path)
    assert done.returncode == 2
    assert "holds study/train.py, which has been changed since it was packed" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "a").exists()


def test_without_a_person_nothing_runs_unless_trusted(bundle: Path, tmp_path: Path) -> None:
    done = tracelock("reproduce", str(bundle), "--here", "-o", "a", cwd=tmp_path)
    assert done.returncode == 2
    assert "nobody is there to agree" in done.stderr
    assert "study/train.py" in done.stderr
    assert "imports helper, package" in done.stderr
    assert not (tmp_path / "a" / "results").exists()


def test_a_document_that_leads_out_of_the_archive_is_refused(bundle: Path, tmp_path: Path) -> None:
    for key, value in (
        ("study", "../../x"),
        ("study_file", "../secret.yaml"),
        ("code", [{"file": "/etc/passwd", "sha256": ""}]),
    ):
        folder = tmp_path / f"open-{key}"
        open_bundle(bundle, folder)
        write_json(folder / "bundle.json", {**read_json(folder / "bundle.json", "bundle"), key: value})
        with pytest.raises(TracelockError, match=r"not in the archive|no name"):
            open_bundle(repacked(folder, tmp_path / f"{key}.zip"), tmp_path / f"again-{key}")


def test_an_archive_of_a_later_version_is_told_so(bundle: Path, tmp_path: Path) -> None:
    open_bundle(bundle, tmp_path / "open")
    document = read_json(tmp_path / "open" / "bundle.json", "bundle")
    write_json(tmp_path / "open" / "bundle.json", {**document, "schema": "tracelock/bundle/99"})
    with pytest.raises(TracelockError, match="tracelock/bundle/99"):
        open_bundle(repacked(tmp_path / "open", tmp_path / "later.zip"), tmp_path / "again")


def test_reasons_come_in_the_order_in_which_they_may_explain(bundle: Path, tmp_path: Path) -> None:
    opened = open_bundle(bundle, tmp_path / "open")
    other = finished(tmp_path / "other", tree(gpus=1, repeats=2))
    machine = read_json(other / "envs" / "default" / "machine.json", "machine")
    changed = {**machine, "driver": "555.1", "cpu": {"model": "Xeon", "cores_usable": 64}}
    write_json(other / "envs" / "default" / "machine.json", changed)
    found = judged(opened, other)
    kinds = [reason.kind for reason in reasons(opened, other, found_comparison(other))]
    assert kinds == sorted(
        kinds, key=["device", "driver", "packages", "threads", "disturbed", "fewer runs", "code"].index
    )
    facts = {(reason.kind, reason.original, reason.again) for reason in found.reasons}
    assert ("device", "Xeon", "NVIDIA A100") in facts
    assert ("driver", "None", "555.1") in facts
    assert ("fewer runs", "3", "2") in facts


def found_comparison(folder: Path):
    from tracelock.study import comparison

    return comparison.read(folder / "comparison.json")


def test_code_that_was_scrubbed_is_told_before_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finished(tmp_path / "mine")
    (tmp_path / "mine" / "helper.py").write_text("import subprocess  # of jane@uni-bonn.de\nmake = 1\n")
    monkeypatch.chdir(tmp_path / "mine")
    path, _ = pack(Request(Path("demo.yaml")), None)
    lines = "\n".join(what_would_run(open_bundle(path, tmp_path / "open")))
    assert "study/helper.py: 2 lines, imports subprocess; a name or secret in it was replaced" in lines
