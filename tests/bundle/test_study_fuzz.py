"""Study files of strangers: whatever stands in them, they are a plan or a few lines, and no code of theirs runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tracelock.errors import TracelockError
from tracelock.study.load import load_plan

WORKLOAD = "from pathlib import Path\nPath('it-ran').touch()\ndef build(settings): raise SystemExit\n"
WORDS = [
    "name: x\n",
    "workload: ",
    "{build: work.py:build}\n",
    "baseline: ",
    "{num_workers: 0}\n",
    "factors:\n",
    "  batch_size: ",
]
WORDS += [
    "[1, 2]\n",
    "&a ",
    "*a\n",
    "<<: *a\n",
    "!!python/object/apply:os.system [touch it-ran]\n",
    "repeats: ",
    "9" * 40,
]
WORDS += [
    "\n",
    " ",
    "- ",
    "{",
    "}",
    "[",
    "]",
    "null\n",
    "1e400\n",
    ".nan\n",
    "\t",
    "'",
    '"',
    "\x00",
    "\ufeff",
    "---\n",
    "? ",
    "é",
]


def refusal(file: Path) -> str | None:
    try:
        load_plan(file)
    except TracelockError as error:
        return str(error)
    return None


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=8)), max_size=25))
@example(parts=[*WORDS[:5], WORDS[5], WORDS[6], WORDS[7]])
@example(parts=["name: x\nworkload: {build: 'work.py:build'}\nbaseline: {batch_size: ", "9" * 5000, "}"])
@example(
    parts=["name: x\nworkload: {build: 'work.py:build'}\nbaseline: {}\nfactors: {batch_size: [", "1, " * 2000, "1]}"]
)
def test_any_text_is_a_plan_or_an_error_that_says_where(parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work.py").write_text(WORKLOAD, encoding="utf-8")
    file = tmp_path / "study.yaml"
    file.write_bytes("".join(parts).encode("utf-8", "surrogatepass"))
    said = refusal(file)
    assert said is None or (said.startswith(str(file)) and len(said) < 20_000)
    assert not (tmp_path / "it-ran").exists()
