"""Cores are free for operators only where no loading process needs them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tracelock.diagnosis.threads import free_cores


@pytest.mark.parametrize(
    ("cores", "workers", "free"),
    [(8, 0, 8), (8, 2, 6), (2, 2, 0), (2, None, 2), (None, 2, None)],
)
def test_loading_processes_take_cores(cores: int | None, workers: int | None, free: int | None) -> None:
    case = SimpleNamespace(cores=cores, setting=lambda name: workers if name == "num_workers" else None)
    assert free_cores(case) == free
