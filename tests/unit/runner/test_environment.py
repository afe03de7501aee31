"""A run refuses an environment that is no longer the one that was checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tracelock.errors import TracelockError
from tracelock.runner.environment import environment_facts
from tracelock.runner.fingerprint import fingerprint


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "conda-meta" / "numpy-1.26.4-py310_0.json").write_text("{}")
    site = tmp_path / "lib" / "python3.10" / "site-packages"
    (site / "numpy-1.26.4.dist-info").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    "change",
    [
        lambda prefix: (prefix / "lib/python3.10/site-packages/extra-1.0.dist-info").mkdir(),
        lambda prefix: (prefix / "lib/python3.10/site-packages/numpy-1.26.4.dist-info").rmdir(),
        lambda prefix: (prefix / "conda-meta/mkl-2023.1-0.json").write_text("{}"),
        lambda prefix: (prefix / "conda-meta/numpy-1.26.4-py310_0.json").rename(
            prefix / "conda-meta/numpy-1.26.4-py310_1.json"
        ),
    ],
    ids=["pip-install", "pip-uninstall", "conda-install", "other-build"],
)
def test_every_change_of_packages_changes_the_fingerprint(prefix: Path, change) -> None:
    before = fingerprint(prefix)
    assert fingerprint(prefix) == before
    change(prefix)
    assert fingerprint(prefix) != before


def check_file(folder: Path, value: str) -> Path:
    file = folder / "check.json"
    document = {"schema": "tracelock/envcheck/1", "fingerprint": value, "digest": "d", "ok": True, "unlocked": False}
    file.write_text(json.dumps(document))
    return file


def test_the_environment_that_was_checked_is_recorded(tmp_path: Path) -> None:
    facts = environment_facts(check_file(tmp_path, fingerprint()))
    assert facts == {"fingerprint": fingerprint(), "digest": "d", "locked": True, "unlocked": False}


def test_another_environment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TracelockError, match="has changed since it was checked") as caught:
        environment_facts(check_file(tmp_path, "0" * 64))
    assert caught.value.exit_code == 1


def test_without_a_check_nothing_is_claimed() -> None:
    assert environment_facts(None) == {"fingerprint": fingerprint(), "digest": None, "locked": None, "unlocked": None}
