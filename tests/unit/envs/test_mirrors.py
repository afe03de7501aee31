"""Mirrors: addresses change, hashes do not, and nothing is rewritten that need not be."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.envs.tiny import HOST, LINKED, Project, make_project

from tracelock.envs.mirrors import Mirrors, envs_folder, envs_for_workflow, mirrors_from_environment, parse_mirrors
from tracelock.errors import TracelockError

NUMPY_URL = f"{HOST}/conda-forge/linux-64/numpy-1.26.4-py310hb13e2d6_0.conda"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.delenv("TRACELOCK_CHANNEL_MIRRORS", raising=False)
    return make_project(tmp_path)


@pytest.mark.parametrize(
    ("value", "url", "rewritten"),
    [
        (
            "https://m.org/conda",
            NUMPY_URL,
            "https://m.org/conda/conda-forge/linux-64/numpy-1.26.4-py310hb13e2d6_0.conda",
        ),
        (
            "https://m.org/conda/",
            NUMPY_URL,
            "https://m.org/conda/conda-forge/linux-64/numpy-1.26.4-py310hb13e2d6_0.conda",
        ),
        ("conda-forge=http://m:8080/cf", NUMPY_URL, "http://m:8080/cf/linux-64/numpy-1.26.4-py310hb13e2d6_0.conda"),
        ("pytorch=http://m/p", NUMPY_URL, NUMPY_URL),
        ("http://all conda-forge=http://m/cf", NUMPY_URL, "http://m/cf/linux-64/numpy-1.26.4-py310hb13e2d6_0.conda"),
        (
            "http://all,conda-forge=http://m/cf",
            f"{HOST}/pytorch/noarch/a-1-0.conda",
            "http://all/pytorch/noarch/a-1-0.conda",
        ),
        ("https://x.org/c=http://m/c", "https://x.org/c/noarch/a-1-0.conda", "http://m/c/noarch/a-1-0.conda"),
        ("https://x.org/c=http://m/c", "https://x.org/cc/noarch/a-1-0.conda", "https://x.org/cc/noarch/a-1-0.conda"),
        ({"conda-forge": "http://m/cf"}, NUMPY_URL, "http://m/cf/linux-64/numpy-1.26.4-py310hb13e2d6_0.conda"),
    ],
)
def test_addresses(value: str | dict[str, str], url: str, rewritten: str) -> None:
    mirrors = parse_mirrors(value)
    assert mirrors.rewrite(url) == rewritten
    assert mirrors.canonical(rewritten) == url


def test_nothing_asked_for() -> None:
    assert not parse_mirrors(None)
    assert not parse_mirrors("  ")
    assert not mirrors_from_environment({})
    assert mirrors_from_environment({"TRACELOCK_CHANNEL_MIRRORS": "http://m"}) == parse_mirrors("http://m")
    assert Mirrors().rewrite(NUMPY_URL) == NUMPY_URL


def test_what_cannot_serve() -> None:
    with pytest.raises(TracelockError) as found:
        parse_mirrors("file:///srv/conda pytorch=/srv/p nvidia=https://me:secret@m.org/n", "TRACELOCK_CHANNEL_MIRRORS")
    said = [str(problem) for problem in found.value.problems]
    assert [line.partition(" (")[0] for line in said] == [
        "TRACELOCK_CHANNEL_MIRRORS: 'file:///srv/conda' is no http address",
        "TRACELOCK_CHANNEL_MIRRORS: '/srv/p' is no http address",
        "TRACELOCK_CHANNEL_MIRRORS: 'https://…@m.org/n' carries a login",
    ]
    assert "secret" not in str(found.value)


def test_without_mirrors_the_folder_is_the_projects(project: Project) -> None:
    assert envs_folder(project.root) == project.root / "envs"


def test_the_copy(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.edit(project.spec, "  - numpy<2\n", "  - conda-forge::numpy<2\n")
    monkeypatch.setenv("TRACELOCK_CHANNEL_MIRRORS", "conda-forge=http://127.0.0.1:9/cf")
    before = {path: path.read_bytes() for path in project.spec.parent.iterdir()}
    folder = envs_folder(project.root)
    assert folder.parent == project.root / ".cache" / "envs"
    pins = (folder / "tiny.linux-64.pin.txt").read_text().splitlines()
    assert pins[4:] == [
        f"{package.url}#sha256:{package.digest('sha256')}".replace(f"{HOST}/conda-forge/", "http://127.0.0.1:9/cf/")
        for package in LINKED
    ]
    assert (folder / "tiny.yaml").read_text() == project.spec.read_text().replace(
        "  - conda-forge\n", "  - http://127.0.0.1:9/cf\n"
    ).replace("conda-forge::", "http://127.0.0.1:9/cf::")
    assert {path: path.read_bytes() for path in project.spec.parent.iterdir()} == before


def test_the_copy_follows_and_rebuilds_nothing(project: Project) -> None:
    mirrors = parse_mirrors("http://m")
    folder = envs_folder(project.root, mirrors)
    times = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert envs_folder(project.root, mirrors) == folder
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == times
    project.write_pin(LINKED[:2])
    envs_folder(project.root, mirrors)
    assert len((folder / "tiny.linux-64.pin.txt").read_text().splitlines()) == 6
    project.pin.unlink()
    envs_folder(project.root, mirrors)
    assert [path.name for path in folder.iterdir()] == ["tiny.yaml"]
    assert envs_folder(project.root, parse_mirrors("http://n")) != folder


def test_for_a_snakefile(project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert envs_for_workflow(project.root, {}) == project.root / "envs"
    of_config = envs_for_workflow(project.root, {"channel_mirrors": "http://m"})
    assert of_config == envs_folder(project.root, parse_mirrors("http://m"))
    monkeypatch.setenv("TRACELOCK_CHANNEL_MIRRORS", "http://n")
    assert envs_for_workflow(project.root, {"channel_mirrors": "http://m"}) != of_config
    with pytest.raises(SystemExit):
        envs_for_workflow(project.root, {}, ["tiny", "tinny"])
    assert "there is no environment 'tinny' (did you mean 'tiny'?)" in capsys.readouterr().err
    monkeypatch.setenv("TRACELOCK_CHANNEL_MIRRORS", "m.org")
    with pytest.raises(SystemExit) as ended:
        envs_for_workflow(project.root, {})
    assert ended.value.code == 2
    assert "TRACELOCK_CHANNEL_MIRRORS: 'm.org' is no http address" in capsys.readouterr().err
