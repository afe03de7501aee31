"""The archive of a study: what is in it, that nothing of its owner is, and that equal studies give equal bytes."""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import zipfile
from pathlib import Path

import pytest
from bundling import finished, write_trace

from tracelock.bundle.code import first_files, own_code
from tracelock.bundle.pack import Request, pack, review
from tracelock.errors import TracelockError


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "mine"
    finished(folder)
    monkeypatch.chdir(folder)
    return folder


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_it_holds_what_a_colleague_needs_and_checksums_of_it(study: Path) -> None:
    path, _ = pack(Request(Path("demo.yaml")), None)
    files = contents(path)
    wanted = {
        *("README.md", "bundle.json", "ro-crate-metadata.json", "study/demo.yaml", "results/comparison.json"),
        *("results/plan.json", "results/tables/variants.csv", "workflow/Snakefile", "workflow/rules/run.smk"),
        *("study/train.py", "study/helper.py", "study/package/__init__.py", "study/package/part.py"),
        "study/package/other.py",
    }
    assert wanted <= files.keys()
    assert "study/unused.py" not in files
    sums = dict(line.split("  ", 1)[::-1] for line in files.pop("checksums.sha256").decode().splitlines())
    assert sums == {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


def test_its_bytes_depend_on_the_study_alone(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = pack(Request(Path("demo.yaml")), tmp_path / "1.zip")
    other = tmp_path / "elsewhere" / "deeper"
    finished(other)
    monkeypatch.chdir(other)
    monkeypatch.setenv("HOME", "/home/somebody")
    second, _ = pack(Request(Path("results/demo")), tmp_path / "2.zip")
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(("policy", "count"), [("none", 0), ("main", 2), ("all", 6)])
def test_traces_by_policy_and_those_left_out_told_by_hash(study: Path, policy: str, count: int) -> None:
    path, _ = pack(Request(Path("demo.yaml"), traces=policy), None)  # type: ignore[arg-type]
    files = contents(path)
    assert sum(name.endswith("trace.json.gz") for name in files) == count
    left = json.loads(files["bundle.json"])["left_out"]
    assert len(left) == 6 - count
    for entry in left:
        data = (study / entry["name"].replace("results/", "results/demo/")).read_bytes()
        assert (entry["bytes"], entry["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())


def test_names_and_secrets_go_from_every_file_traces_and_names_of_files_included(study: Path) -> None:
    secrets = ("jdoe", "hf_abcdefghijklmnopqrstuv", "jane@uni-bonn.de", "bench-1", str(study))
    run = next(study.rglob("run.json")).parent
    write_trace(run / "trace.json.gz", {"file": "/home/jdoe/train.py(3): step"}, {"env": f"HF_TOKEN={secrets[1]}"})
    (run / "log.txt").write_text(f"jdoe started in {study}\n", encoding="utf-8")
    (study / "helper.py").write_text("make = print  # jane@uni-bonn.de\n", encoding="utf-8")
    (study / "results" / "demo" / "notes of jdoe.txt").write_text("x", encoding="utf-8")
    path, packed = pack(Request(Path("demo.yaml"), traces="all"), None)
    for name, data in contents(path).items():
        plain = gzip.decompress(data) if name.endswith(".gz") else data
        for secret in secrets:
            assert secret not in name
            assert secret.encode() not in plain, name
    assert {row.kind for row in packed.replaced} >= {
        "user",
        "host",
        "token",
        "e-mail address",
        "folder of this machine",
    }
    code = {entry["file"]: entry["as_it_ran"] for entry in json.loads(contents(path)["bundle.json"])["code"]}
    assert code["study/helper.py"] is False
    assert code["study/train.py"] is True


def test_the_state_of_the_repository_and_its_patch(study: Path) -> None:
    git = ["git", "-c", "user.name=n", "-c", "user.email=n@example.com"]
    for command in (["init", "-q"], ["add", "demo.yaml", "train.py"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], check=True)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    (study / "train.py").write_text((study / "train.py").read_text() + "\n# /home/jdoe changed this\n")
    path, packed = pack(Request(Path("demo.yaml")), None)
    files = contents(path)
    state = json.loads(files["bundle.json"])["repository"]
    assert (state["commit"], state["dirty"], state["patch"]) == (commit, True, "repository.patch")
    assert b"+# /home/user-1 changed this" in files["repository.patch"]
    assert any("git does not know helper.py" in line for line in packed.missing)


def test_the_crate_names_every_file_and_the_profiles(study: Path) -> None:
    files = contents(pack(Request(Path("demo.yaml")), None)[0])
    graph = {entity["@id"]: entity for entity in json.loads(files["ro-crate-metadata.json"])["@graph"]}
    listed = {part["@id"] for part in graph["./"]["hasPart"]}
    assert listed == files.keys() - {"ro-crate-metadata.json", "checksums.sha256"}
    assert {"@id": "https://w3id.org/ro/wfrun/workflow/0.5"} in graph["./"]["conformsTo"]
    assert "ComputationalWorkflow" in graph[graph["./"]["mainEntity"]["@id"]]["@type"]
    targets = {target["@id"] for entity in graph.values() for target in _links(entity)}
    assert {target for target in targets if not target.startswith("http")} <= graph.keys()
    assert sum(entity["@type"] == "CreateAction" for entity in graph.values()) == 1 + 6


def _links(entity: dict[str, object]) -> list[dict[str, str]]:
    values = [value for key, value in entity.items() if key not in ("conformsTo",)]
    flat = [item for value in values for item in (value if isinstance(value, list) else [value])]
    return [item for item in flat if isinstance(item, dict)]


@pytest.mark.parametrize("words", ["python train.py --lr 0.1", "torchrun -m train --data a:b", "bash -c train.py x"])
def test_the_code_of_a_command_is_found(words: str, tmp_path: Path) -> None:
    finished(tmp_path)
    names = {path.name for path in own_code(first_files(words, tmp_path, tmp_path), tmp_path)}
    assert names == {"train.py", "helper.py", "__init__.py", "part.py", "other.py"}


def test_what_a_reviewer_would_miss(study: Path) -> None:
    (study / "results" / "demo" / "runs" / "default" / "batch_size=64" / "3" / "run.json").unlink()
    gaps = "\n".join(review(Request(Path("demo.yaml"))))
    for part in ("no licence", "no git repository", "no snapshot of its packages", "4 traces are left out"):
        assert part in gaps


@pytest.mark.parametrize(
    ("given", "words"), [("demo.yam", "did you mean 'demo.yaml'"), ("results", "give one of demo")]
)
def test_a_wrong_place_is_told_with_the_right_one(study: Path, given: str, words: str) -> None:
    with pytest.raises(TracelockError, match=words):
        pack(Request(Path(given)), None)
