"""Somebody's environment.yml: what can be rebuilt is said before, and what was named is there or nothing is."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import yaml
from prefixes import TORCH_BUILD, conda_prefix, conda_record

from tracelock.cli import main
from tracelock.envs.rebuild import account, chances, environment_text, read_export, rebuild
from tracelock.errors import TracelockError

EXPORT = f"""\
name: Umläut
channels: [pytorch, conda-forge, nodefaults]
dependencies:
  - python=3.10.14=hd12c33a_0_cpython
  - pytorch=2.5.1={TORCH_BUILD}
  - numpy=1.26
  - numpy=1.26.4
  - pip:
      - requests==2.32.3
      - rich>=13
      - git+https://github.com/NVIDIA/dllogger.git@0540a43971f4a8a16693a9de9de73c1072020769
      - apex @ git+https://github.com/NVIDIA/apex.git@master
      - https://github.com/a/b/archive/main.zip
      - -e .
      - -r requirements.txt
prefix: /home/me/envs/x
"""


def write(tmp_path: Path, text: str = EXPORT, encoding: str = "utf-16") -> Path:
    path = tmp_path / "environment.yml"
    path.write_bytes(text.replace("\n", "\r\n").encode(encoding))
    return path


def test_what_may_be_hoped_for_is_told_package_by_package(tmp_path: Path) -> None:
    found = chances(read_export(write(tmp_path)))
    assert {chance.package.name: chance.hope for chance in found} == {
        "python": "exact", "pytorch": "exact", "numpy": "range", "requests": "version", "rich": "range",
        "dllogger": "version", "apex": "moving", "b": "moving",
    }  # fmt: skip
    told = account(found)
    assert "moving: apex: branch or tag master" in told
    assert "also for what pip took from a repository" in told


def test_conda_gets_a_file_that_it_understands(tmp_path: Path) -> None:
    exported = read_export(write(tmp_path))
    document = yaml.safe_load(environment_text(exported, chances(exported)))
    assert document == {
        "channels": ["pytorch", "conda-forge"],
        "dependencies": [
            "python=3.10.14=hd12c33a_0_cpython", "numpy=1.26.4.*", f"pytorch=2.5.1={TORCH_BUILD}", "pip",
            {"pip": [
                "apex @ git+https://github.com/NVIDIA/apex.git@master",
                "b @ https://github.com/a/b/archive/main.zip",
                "rich>=13",
                "dllogger @ git+https://github.com/NVIDIA/dllogger.git@0540a43971f4a8a16693a9de9de73c1072020769",
                "requests==2.32.3",
            ]},
        ],
    }  # fmt: skip


def test_an_export_of_another_system_keeps_versions_and_loses_builds(shared: Path) -> None:
    found = chances(read_export(shared / "conda" / "exports" / "raven-utf16le-crlf-environment.yml"))
    by_name = {chance.package.name: chance for chance in found}
    assert {name for name, chance in by_name.items() if chance.hope == "lost"} == {
        "vc", "vs2015_runtime", "wincertstore"
    }  # fmt: skip
    assert (by_name["openssl"].hope, by_name["openssl"].package.build) == ("version", None)
    assert by_name["wheel"].hope == "exact"  # pyhd3eb1b0_0: for all systems
    assert "its builds are for Windows" in account(found)


def test_all_real_exports_are_told_and_written_so_that_conda_can_read_them(shared: Path) -> None:
    for path in (shared / "conda" / "exports").iterdir():
        exported = read_export(path)
        document = yaml.safe_load(environment_text(exported, chances(exported)))
        names = [entry for entry in document["dependencies"] if isinstance(entry, str)]
        assert len(names) == len(set(names)) > 10
        assert "prefix" not in document


def fake_conda(tmp_path: Path, made: Path) -> str:
    """Return a program that "builds" by copying `made`, and keeps the file that it was given."""
    program = tmp_path / "bin" / "conda"
    program.parent.mkdir(exist_ok=True)
    program.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "conda 26.7.1" && exit 0\n'
        f'cp "$5" {shlex.quote(str(tmp_path / "given.yml"))}\ncp -r {shlex.quote(str(made))} "$7"\n'
    )
    program.chmod(0o755)
    return str(program)


CONDA_ONLY = EXPORT.partition("  - pip:")[0]


def test_what_was_named_comes_back_and_nothing_is_promised_beyond_it(tmp_path: Path, capsys) -> None:
    conda = fake_conda(tmp_path, conda_prefix(tmp_path / "original"))
    conda_record(tmp_path / "original", "zlib", "1.3", "0", {})
    path = write(tmp_path, CONDA_ONLY)
    main_of("restore", path, "--prefix", tmp_path / "restored", "--conda", conda)
    out = capsys.readouterr()
    assert "every version and build that the file names is there; 1 packages more" in out.out
    assert "No hash was compared" in out.out
    assert "UTF-16" in out.err
    assert "prefix" not in (tmp_path / "given.yml").read_text(encoding="utf-8")


def main_of(*words: object) -> None:
    try:
        main(["env", *map(str, words)])
    except SystemExit as stop:
        assert not stop.code  # noqa: PT017


def test_another_build_than_was_named_is_refused_and_removed(tmp_path: Path) -> None:
    made = conda_prefix(tmp_path / "original")
    record = next((made / "conda-meta").glob("pytorch-*.json"))
    record.write_text(json.dumps({**json.loads(record.read_text()), "build": "py3.10_cpu_0"}))
    with pytest.raises(TracelockError, match=r"pytorch came out as 2\.5\.1 py3\.10_cpu_0, asked for was") as caught:
        rebuild(write(tmp_path, CONDA_ONLY), tmp_path / "restored", fake_conda(tmp_path, made))
    assert caught.value.exit_code == 1
    assert not (tmp_path / "restored").exists()


def test_a_name_that_conda_refuses_is_refused_before_anything_is_fetched(tmp_path: Path) -> None:
    conda = fake_conda(tmp_path, tmp_path)
    with pytest.raises(TracelockError, match=r"--prefix wieder-da") as caught:
        rebuild(write(tmp_path, CONDA_ONLY), tmp_path / "wieder da", conda)
    assert caught.value.exit_code == 2
    assert not (tmp_path / "given.yml").exists()


def test_a_dry_run_builds_nothing(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    main_of("restore", write(tmp_path), "--dry-run")
    assert "  2  exact" in capsys.readouterr().out
    assert not (tmp_path / "restored").exists()
