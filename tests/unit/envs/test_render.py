"""Pin files from locks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.envs.tiny import LINKED, Project, make_project

from tracelock.cli import main
from tracelock.envs.lock import Hashes, LockedPackage
from tracelock.envs.render import linking_order
from tracelock.errors import TracelockError


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    return make_project(Path())


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


def test_the_whole_file(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    by_hand = project.pin.read_bytes()
    project.pin.unlink()
    assert run("env", "render", "tiny") == 0
    assert capsys.readouterr().out == "envs/tiny.linux-64.pin.txt: written\n"
    assert project.pin.read_bytes() == by_hand
    assert [line.partition("#sha256:")[2] for line in by_hand.decode().splitlines()[4:]] == [
        package.digest("sha256") for package in LINKED
    ]


def test_what_is_right_is_not_touched(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    before = project.pin.stat()
    assert run("env", "render") == 0
    assert capsys.readouterr().out == "envs/tiny.linux-64.pin.txt: up to date\n"
    assert (project.pin.stat().st_mtime_ns, project.pin.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_another_platform_is_refused(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("env", "render", "tiny", "--platform", "osx-arm64") == 2
    assert "is a lock for linux-64, not for osx-arm64" in capsys.readouterr().err
    assert not project.pin.with_name("tiny.osx-arm64.pin.txt").exists()


@pytest.mark.parametrize("command", ["render", "check", "lock"])
def test_an_unknown_environment(project: Project, capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert run("env", command, "tinny") == 2
    assert capsys.readouterr().err == (
        "tracelock: error: envs: there is no environment 'tinny' (did you mean 'tiny'?)\n"
    )


@pytest.mark.parametrize("command", ["render", "check"])
def test_no_environment_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("env", command) == 2
    assert capsys.readouterr().err == (
        "tracelock: error: envs: holds no environment (*.yaml) (run it in the project)\n"
    )


def package(name: str, needs: list[str]) -> LockedPackage:
    return LockedPackage(
        name,
        "1",
        "conda",
        "linux-64",
        f"https://x/linux-64/{name}-1-0.conda",
        Hashes(),
        False,
        dict.fromkeys(needs, ""),
    )


GRAPHS = st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=10)


@given(GRAPHS)
def test_every_package_comes_once_and_after_what_it_needs(graph: list[list[int]]) -> None:
    """Over graphs with cycles too: only what needs itself, over whatever way, may come before what it needs."""
    names = [f"p{i}" for i in range(len(graph))]
    packages = [package(name, [f"p{i}" for i in needs]) for name, needs in zip(names, graph, strict=True)]
    order = [each.name for each in linking_order(packages)]
    assert sorted(order) == sorted(names)
    reach = {name: reachable(name, {p.name: set(p.dependencies) for p in packages}) for name in names}
    for each in packages:
        for need in each.dependencies:
            if need in names and each.name not in reach[need]:
                assert order.index(need) < order.index(each.name)


def reachable(start: str, edges: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    todo = {start}
    while todo:
        seen |= todo
        todo = {need for name in todo for need in edges.get(name, ())} - seen
    return seen


def test_a_long_chain_is_no_matter() -> None:
    chain = [package(f"p{i:05}", [f"p{i + 1:05}"]) for i in range(5000)]
    assert next(each.name for each in linking_order(chain)) == "p04999"


def test_a_damaged_lock_leaves_the_pin(project: Project) -> None:
    before = project.pin.read_bytes()
    project.lock.write_text("version: 1\n")
    from tracelock.envs.catalog import find_environment
    from tracelock.envs.render import render

    with pytest.raises(TracelockError):
        render(find_environment(Path(), "tiny"))
    assert project.pin.read_bytes() == before
