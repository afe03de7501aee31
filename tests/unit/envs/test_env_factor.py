"""The environment as a factor: the packages that differ, those first that most often change a time."""

from __future__ import annotations

import re
from pathlib import Path

from prefixes import conda_prefix, conda_record
from study_tree import demo_tree

from tracelock.envs.factor import EFFECTS, change_rows, environment_differences
from tracelock.envs.installed import read_installed
from tracelock.envs.package import _TIERS
from tracelock.envs.snapshot import write_snapshot
from tracelock.io import schema, write_json
from tracelock.report.html import write_report
from tracelock.study import comparison as document
from tracelock.study.compare import compare


def snapshot(folder: Path, name: str, driver: str, **packages: str) -> None:
    prefix = conda_prefix(folder / f"prefix-{name}")
    for package, version in packages.items():
        conda_record(prefix, package.replace("_", "-"), version, "0", {})
    write_snapshot(folder / "envs" / name, name, read_installed(prefix), {})
    write_json(folder / "envs" / name / "machine.json", {"schema": schema("machine"), "driver": driver})


def test_what_may_explain_a_time_comes_first_and_the_rest_is_counted(tmp_path: Path) -> None:
    snapshot(tmp_path, "a", "535.1", zlib="1.2", pillow="9.0", cudnn="8.7", **{f"other{n}": "1" for n in range(20)})
    snapshot(tmp_path, "b", "550.2", zlib="1.3", pillow="10.0", cudnn="9.1", **{f"other{n}": "2" for n in range(20)})
    (found,) = environment_differences(tmp_path, ["a", "b"])
    rows = change_rows(found, most=4)
    assert rows[:2] == [
        ("cudnn", "8.7 0", "9.1 0", EFFECTS["cudnn"]),
        ("pillow", "9.0 0", "10.0 0", EFFECTS["data"]),
    ]
    assert rows[-1] == ("and 19 more", "", "", EFFECTS["other"])
    assert found.machine == (("driver", "535.1", "550.2"),)


def test_every_tier_has_words_and_what_is_not_there_is_unknown(tmp_path: Path) -> None:
    assert {tier for tier, _ in _TIERS} | {"other"} == EFFECTS.keys()
    (found,) = environment_differences(tmp_path, ["a", "b"])
    assert "cannot be read" in str(found.unknown)
    assert environment_differences(tmp_path, ["a"]) == ()


def test_the_report_shows_packages_beside_times(tmp_path: Path) -> None:
    folder = demo_tree(environments=("a", "b")).write(tmp_path / "results")
    for name, version in (("a", "9.0"), ("b", "<b>10</b>")):
        snapshot(folder, name, "535.1", pillow=version)
    document.write(folder / "comparison.json", compare(folder))
    write_report(folder, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    plain = re.sub(r"<[^>]+>", " ", page)
    assert "What differs between" in plain
    assert "1 package differs" in plain
    assert "reading, decoding and tokenising" in plain
    assert "<b>10</b>" not in page
