"""Settings that are applied from outside: what they change, and where in the script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scripts_support import CASES, run_case


def _line(script: str, text: str) -> str:
    lines = (CASES / script).read_text().splitlines()
    return f"{CASES / script}:{next(number for number, line in enumerate(lines, 1) if text in line)}"


def _changes(record: dict[str, Any]) -> dict[str, tuple[Any, Any, str | None]]:
    return {each["setting"]: (each["from"], each["to"], each["place"]) for each in record["changes"]}


def test_constructors_and_flags_are_wrapped_and_the_place_is_the_scripts_line(tmp_path: Path) -> None:
    settings = {"num_workers": 1, "batch_size": 4, "optimizer_foreach": True, "threads": 2, "cudnn_benchmark": True}
    seen = run_case(tmp_path, "plain.py", settings={**settings, "persistent_workers": True}, warmup=2, timed=10)
    assert seen.exit_code == 0, seen.output
    loader, optimizer = _line("plain.py", "DataLoader("), _line("plain.py", "optim.AdamW(")
    assert _changes(seen.record) == {
        "num_workers": (0, 1, loader),
        "batch_size": (8, 4, loader),
        "persistent_workers": (False, True, loader),
        "optimizer_foreach": (None, True, optimizer),
        "threads": (1, 2, None),  # the script's own call, held
        "cudnn_benchmark": (False, True, None),
    }
    assert seen.found[0].steps == 120  # twice as many batches of half the size
    assert seen.record["settings"]["num_workers"] == 1
    assert seen.record["timed"]["samples"] == [4] * 10


def test_the_model_is_wrapped_and_the_losses_are_kept(tmp_path: Path) -> None:
    plain = run_case(tmp_path / "a", "plain.py", warmup=2, timed=5, stop_after=True)
    seen = run_case(tmp_path / "b", "plain.py", settings={"amp": "bf16"}, warmup=2, timed=5, stop_after=True)
    assert seen.exit_code == 0, seen.output
    assert _changes(seen.record)["amp"][:2] == ("off", "bf16")
    names = {event["name"] for event in seen.traces[0]["traceEvents"]}
    assert any(
        "bfloat16" in str(event.get("args")) or "to_copy" in event["name"] for event in seen.traces[0]["traceEvents"]
    )
    assert "forward_pass" in names
    assert len(seen.record["losses"]) >= 5
    # The same data in the same order? The script shuffles without a seed of its own but that of its model.
    first, second = (dict(map(tuple, each.record["losses"])) for each in (plain, seen))
    assert abs(first[0] - second[0]) < 0.05 * abs(first[0])
