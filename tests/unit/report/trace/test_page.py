"""The page of a trace as a file: safe, small, complete without scripts."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from builders import make_trace, op
from page_trace import HOSTILE, hostile_trace, page_file, page_trace, write_page

from tracelock.analysis.ranks import Rank, Ranks, RankWait
from tracelock.cli import main
from tracelock.report.trace.page import render
from tracelock.report.trace.words import LONGEST, clipped


class Read(html.parser.HTMLParser):
    """The elements, attributes and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.inside[-1] if self.inside else "", []).append(data)


def about(text: str, number: int = 0) -> dict[str, Any]:
    """Return the data of a page."""
    found = re.search(rf'id="about-{number}">([^<]*)<', text)
    assert found
    document: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(found[1])))
    return document


@pytest.fixture(scope="module")
def page() -> str:
    return render([page_file(page_trace())[1]])


@pytest.fixture(scope="module")
def hostile() -> str:
    return render([page_file(hostile_trace())[1]])


@pytest.mark.parametrize("which", ["page", "hostile"])
def test_no_name_becomes_markup_and_nothing_but_our_script_may_run(which: str, request: pytest.FixtureRequest) -> None:
    text = request.getfixturevalue(which)
    read = Read(text)
    scripts = [attributes for tag, attributes in read.tags if tag == "script"]
    assert [each.get("type") for each in scripts] == ["text/plain", "text/plain", None]
    assert not any(tag in ("img", "iframe", "object", "embed", "base", "form") for tag, _ in read.tags)
    assert not any(name.startswith("on") or name == "style" for _, attributes in read.tags for name in attributes)
    links = [attributes["href"] for _, attributes in read.tags if attributes.get("href")]
    assert all(link is not None and link.startswith(("#", "data:,")) for link in links)
    policy = next(each["content"] for tag, each in read.tags if tag == "meta" and each.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag, kind in (("script", "script-src"), ("style", "style-src")):
        code = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(code[0].encode()).digest()).decode()
        assert len(code) == 1
        assert f"{kind} 'sha256-{digest}'" in policy


def test_every_hostile_name_is_in_the_data_as_it_was_or_cut(hostile: str) -> None:
    found = json.dumps(about(hostile))
    for name in HOSTILE:
        assert json.dumps(name[: LONGEST // 2])[1:-1] in found
    assert "longlong" * 200 not in found


def test_texts_that_no_file_can_hold_are_replaced_in_the_page(hostile: str) -> None:
    assert hostile.encode("utf-8")
    assert "\x00" not in hostile


def test_long_texts_say_how_much_is_left_out() -> None:
    assert clipped("x" * LONGEST) == "x" * LONGEST
    assert clipped("a" * 600 + "b" * 10_000 + "c" * 600) == "a" * 600 + " … 10,000 characters … " + "c" * 600


def test_the_answer_and_its_figure_need_no_script(page: str) -> None:
    before = page[: page.index('<script type="text/plain"')]
    assert '<p class="headline">' in before
    assert 'aria-label="Where a step of' in before
    assert "<noscript>" in before


def test_tables_hold_what_the_analysis_holds(page: str) -> None:
    tables = about(page)["tables"]
    by_name, by_shape, by_stack, by_module = tables["operators"]
    assert {row[0] for row in by_name["rows"]} >= {"aten::mm", "aten::linear", "aten::relu"}
    mm = next(row for row in by_name["rows"] if row[0] == "aten::mm")
    assert mm[1] == 8  # four forward, four backward
    assert mm[-1] == "train.py(12): loss"
    assert any(row[1] == "[[32]]" for row in by_shape["rows"])
    assert by_stack["columns"][1][0] == "line of your code"
    assert [row[0] for row in by_module["rows"]] == ["Net_0", "Linear_0"]
    assert by_module["tree"] == [None, 0]
    for views in tables.values():
        for table in views:
            assert all(len(row) == len(table["columns"]) for row in table["rows"])


def test_what_was_not_recorded_says_how_to_record_it() -> None:
    document = about(render([page_file(make_trace([op("aten::mm", 0, 10)]))[1]]))
    notes = [table["note"] for table in document["tables"]["operators"][1:]]
    assert all(notes)
    assert "with_stack" in notes[1]
    assert [graph["why"] for graph in document["flames"]][1:] == [
        "no device work is linked to operators",
        "no Python frames were recorded (with_stack=True)",
    ]
    assert document["memory"] == []


def test_memory_says_what_lived_at_the_peak(page: str) -> None:
    (memory,) = about(page)["memory"]
    assert memory["peak"] == 7 << 20
    assert memory["before"] == 1 << 20
    assert dict(memory["phases"]) == {"forward": 4 << 20, "backward": 2 << 20}


def test_an_empty_trace_has_a_page() -> None:
    text = render([page_file(make_trace())[1]])
    assert about(text)["timeline"]["lanes"] == []


def test_the_command_writes_the_page_of_a_trace_and_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    event = '{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 5}'
    Path("a.json").write_text(f'{{"traceEvents": [{event}]}}')
    with pytest.raises(SystemExit) as ended:
        main(["report", "a.json"])
    assert ended.value.code == 0
    assert "Report: a-report.html" in capsys.readouterr().out
    assert about(Path("a-report.html").read_text(encoding="utf-8"))["timeline"]["rows"] == 1


def test_ranks_share_one_page(tmp_path: Path) -> None:
    text = write_page(tmp_path / "two.html", page_trace(), page_trace(steps=2)).read_text(encoding="utf-8")
    assert len(about(text, 1)["timeline"]["steps"]) == 2
    assert text.count('id="rows-') == 2


def test_a_page_of_ranks_says_who_waits_for_whom() -> None:
    ranks = tuple(
        Rank(number, "f", 10.0, 0.5, 1.0, 1.0, 1.0, waited, caused, last, None, None)
        for number, waited, caused, last in ((0, 6.0, 1.0, 1), (1, 1.0, 6.0, 2))
    )
    waits = (RankWait(0, 1, 2, 6000.0), RankWait(1, 0, 1, 1000.0))
    found = Ranks(ranks, 2, (), 3, 0, "collectives", 1, 0.86, 0.3, waits)
    text = render([page_file(page_trace())[1]], found, "rank 1 holds the others up")
    assert "rank 1 holds the others up" in text
    row = text[text.index("Who waits for whom</h3>") :]
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", row)[:8]
    assert cells == [
        "rank 0",
        "rank 1",
        "2",
        "6.00\N{NO-BREAK SPACE}ms",
        "rank 1",
        "rank 0",
        "1",
        "1.00\N{NO-BREAK SPACE}ms",
    ]
