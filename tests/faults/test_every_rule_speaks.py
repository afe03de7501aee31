"""Every rule from end to end: from the files that a run writes, through the command, to the answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from faults.speaking import SPEAKING

from tracelock.cli import main
from tracelock.diagnosis.recorded import recorded_beside
from tracelock.diagnosis.rule import all_rules


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_a_rule_speaks_from_the_files_of_a_run(
    rule: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = rule.code  # type: ignore[attr-defined]
    assert code in SPEAKING, f"add a case to tests/faults/speaking.py in which {code} speaks"
    traces = SPEAKING[code](tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["analyze", "--json", *map(str, traces)])
    assert not ended.value.code
    text = capsys.readouterr().out
    documents = [json.loads(text)] if len(traces) == 1 else [json.loads(line) for line in text.splitlines()]
    named = {finding["code"] for document in documents for finding in document["findings"]}
    assert code in named
    assert all(document["schema"] == "tracelock/analysis/1" for document in documents)


def test_samples_keep_their_texts_and_sum_up_processes(tmp_path: Path) -> None:
    (trace,) = SPEAKING["oversubscription"](tmp_path)
    samples = recorded_beside(trace).samples or {}
    assert samples == {"time_s": [0.0, 0.25], "rss_bytes": [1.0, 2.0], "children_rss_bytes": [7.0, None]}
    (trace,) = SPEAKING["throttling"](tmp_path / "other")
    reasons = (recorded_beside(trace).samples or {})["gpu_throttle"]
    assert reasons[0] is None
    assert isinstance(reasons[-1], str)
