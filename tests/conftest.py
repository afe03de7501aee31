"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says nothing on a machine with other work.
settings.register_profile("tracelock", deadline=None)
settings.load_profile("tracelock")

os.environ["TRACELOCK_CACHE"] = ""  # no columns of a trace are kept in the user's own folder

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the root of the project."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of real traces and reference figures, which lies beside the project on some machines."""
    folder = ROOT.parent / "shared"
    if not (folder / "traces").is_dir():
        pytest.skip("the folder ../shared with real traces and reference figures is absent")
    return folder
