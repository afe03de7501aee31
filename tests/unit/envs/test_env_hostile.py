"""Environment files of strangers, damaged in any way: read, or refused in short lines; no traceback, no hang."""

from __future__ import annotations

import json
import shutil
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prefixes import SITE, conda_prefix, pip_install

from tracelock.envs.asked import read_history
from tracelock.envs.diff import compare_manifests
from tracelock.envs.factor import environment_differences
from tracelock.envs.installed import read_installed
from tracelock.envs.lock import read_lock
from tracelock.envs.manifest import read_manifest
from tracelock.envs.mirrors import parse_mirrors
from tracelock.envs.rebuild import account, chances, environment_text, read_export
from tracelock.envs.requirements import read_requirements
from tracelock.envs.restore import restore
from tracelock.envs.snapshot import write_snapshot
from tracelock.envs.spec import read_spec
from tracelock.errors import TracelockError

ROOT = Path(__file__).resolve().parents[3]
LOCK = "".join((ROOT / "envs" / "analysis.conda-lock.yml").read_text(encoding="utf-8").splitlines(keepends=True)[:60])
SPEC = (ROOT / "envs" / "analysis.yaml").read_text(encoding="utf-8")
REQUIREMENTS = "a==1 --hash=sha256:" + "a" * 64 + "\nb[c]==2 ; python_version < '3.12'\n-r x.txt\n"

QUICK = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def damaged(draw: st.DrawFn, text: str) -> bytes:
    """Return a text with pieces cut out, doubled or replaced."""
    data = text.encode()
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 200)))
        middle = draw(
            st.sampled_from([b"", data[start:end] * 3, b"[", b": ", b"\n- ", b"&a *a"]) | st.binary(max_size=6)
        )
        data = data[:start] + middle + data[end:]
    return data


def refused_shortly(read: Callable[[], Any]) -> None:
    """Call a reader; whatever it refuses is told in short lines."""
    try:
        read()
    except TracelockError as refused:
        longest = max(len(str(problem.what)) for problem in refused.problems)
    else:
        longest = 0
    assert longest < 600


@pytest.mark.parametrize(("text", "read"), [(LOCK, read_lock), (SPEC, read_spec), (REQUIREMENTS, read_requirements)])
@given(data=st.data())
@QUICK
def test_damaged_locks_specs_and_requirements(tmp_path: Path, data: st.DataObject, text: str, read: Any) -> None:
    path = tmp_path / "file.yaml"
    path.write_bytes(data.draw(damaged(text)))
    refused_shortly(lambda: read(path))


@given(data=damaged(SPEC + "  - pip:\n      - -r x.txt\n      - a @ https://h/a-1-py3-none-any.whl\nprefix: /x\n"))
@QUICK
def test_damaged_exports_are_told_and_never_written_as_something_else(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "environment.yml"
    path.write_bytes(data)

    def read() -> None:
        exported = read_export(path)
        assert account(chances(exported)) is not None
        assert environment_text(exported, chances(exported)).startswith("channels:")

    refused_shortly(read)


def changed(value: Any, data: st.DataObject) -> Any:
    """Return a JSON value in which something, anywhere, is of another kind or gone."""
    if isinstance(value, (dict, list)) and value and data.draw(st.integers(0, 5)):
        copy = dict(value) if isinstance(value, dict) else list(value)
        key = data.draw(st.sampled_from(sorted(copy) if isinstance(copy, dict) else list(range(len(copy)))))
        if data.draw(st.integers(0, 9)) == 0:
            del copy[key]
        else:
            copy[key] = changed(copy[key], data)
        return copy
    return data.draw(JSON)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("snapshot")
    prefix = conda_prefix(folder / "prefix")
    pip_install(prefix / SITE, "extra", "1", {"url": "https://h/a.git", "vcs_info": {"vcs": "git", "commit_id": "1"}})
    write_snapshot(folder / "envs" / "a", "a", read_installed(prefix), {})
    return folder


@given(data=st.data())
@QUICK
def test_snapshots_of_any_shape(snapshot: Path, tmp_path: Path, data: st.DataObject) -> None:
    document = json.loads((snapshot / "envs" / "a" / "packages.json").read_text())
    folder = tmp_path / "envs" / "b"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(snapshot / "envs" / "a" / "explicit.txt", folder / "explicit.txt")
    (folder / "packages.json").write_text(json.dumps({**changed_object(document, data), "schema": document["schema"]}))

    def read() -> None:
        found = read_manifest(folder)
        assert compare_manifests(found, found) == ()

    refused_shortly(read)
    refused_shortly(lambda: restore(folder, tmp_path / "restored", conda=str(tmp_path / "no-conda")))
    assert len(environment_differences(tmp_path, ["b", "b"])) == 1


def changed_object(document: dict[str, Any], data: st.DataObject) -> dict[str, Any]:
    value = changed(document, data)
    return value if isinstance(value, dict) else {}


@given(data=st.data())
@QUICK
def test_prefixes_whose_records_are_of_any_shape(tmp_path: Path, data: st.DataObject) -> None:
    shutil.rmtree(tmp_path / "p", ignore_errors=True)
    prefix = conda_prefix(tmp_path / "p")
    record = next((prefix / "conda-meta").glob("numpy-*.json"))
    record.write_text(json.dumps(changed(json.loads(record.read_text()), data)))
    direct = {"url": "https://h/a.git", "vcs_info": {"vcs": "git", "commit_id": "1"}}
    pip_install(prefix / SITE, "extra", "1", changed(direct, data))
    refused_shortly(lambda: read_installed(prefix))


@given(text=st.text(max_size=200) | st.text("=> <#:cmdspecsupdate[]'\"\n,", max_size=200))
@QUICK
def test_a_history_of_any_text(tmp_path: Path, text: str) -> None:
    (tmp_path / "conda-meta").mkdir(exist_ok=True)
    (tmp_path / "conda-meta" / "history").write_text(text, encoding="utf-8", errors="replace")
    assert all(isinstance(entry, dict) for entry in read_history(tmp_path))


LONG = {
    "one long word": "a" * 2_000_000,
    "many lines": "a==1\n" * 30_000,
    "many commas": "a" + ",<1" * 300_000,
    "many brackets": "a[" * 300_000,
    "many slashes": "https://" + "/a" * 300_000 + ".whl",
    "many dashes": "https://h/" + "a-" * 300_000 + "1.tar.gz",
    "many semicolons": "a==1" + ";a" * 200_000,
    "many brackets in a marker": "a==1; " + "(" * 50_000,
    "many at signs": "git+https://h/" + "@" * 300_000,
    "many continued lines": "a \\\n" * 100_000,
}


@pytest.mark.parametrize("kind", LONG)
@pytest.mark.parametrize("name", ["requirements.txt", "environment.yml"])
def test_long_lines_take_neither_all_time_nor_all_memory(tmp_path: Path, kind: str, name: str) -> None:
    text = LONG[kind]
    if name == "environment.yml":
        text = "dependencies:\n  - pip:\n" + "".join(
            f"      - {json.dumps(line)}\n" for line in text.splitlines()[:3_000]
        )
    (tmp_path / name).write_text(text)
    start = time.process_time()
    tracemalloc.start()
    refused_shortly(lambda: read_manifest(tmp_path / name, "linux-64"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Bounds, not measurements: what is quadratic takes hours here.
    assert time.process_time() - start < 60
    assert peak < 600 << 20


BROKEN = "https://[/linux-64/a-1-0.conda"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.pin.txt", f"@EXPLICIT\n{BROKEN}\n"),
        ("requirements.txt", f"a @ {BROKEN}\nb @ git+{BROKEN}\nhttps://[.whl\n--index-url {BROKEN}\n"),
        ("environment.yml", f"dependencies:\n  - pip:\n      - a @ {BROKEN}\n      - git+{BROKEN}\n"),
        ("pixi.lock", f"version: 6\nenvironments:\n  default:\n    packages:\n      linux-64:\n"
         f"      - conda: {BROKEN}\n      - pypi: https://[\npackages: []\n"),
        ("conda-lock.yml", LOCK.replace("https://conda", "https://[conda")),
    ],
)  # fmt: skip
def test_addresses_that_are_none(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    refused_shortly(lambda: read_manifest(tmp_path / name, "linux-64"))


def test_a_mirror_whose_address_is_none() -> None:
    with pytest.raises(TracelockError, match="is no http address"):
        parse_mirrors("https://[")
