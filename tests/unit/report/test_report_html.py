"""The report: one file that needs nothing else, hides nothing, and trusts no name."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from study_tree import StudyTree, Variant, demo_tree

from tracelock.io import write_json
from tracelock.report.html import render_report, write_report
from tracelock.study import comparison as document
from tracelock.study.compare import compare
from tracelock.study.comparison import Comparison
from tracelock.study.records import Edge, RemedyPath, Round

STUDIES = ("demo", "gpus", "single", "hostile", "forty")
VOID = {"meta", "link", "br", "hr", "img", "input", "wbr"}


class Page(HTMLParser):
    """A parser that holds every start tag against its end tag, and keeps texts, ids and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(text.replace("<wbr>", ""))  # where a line may break is no part of a text
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open = self.open[:-1] if tag not in VOID else self.open

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


@pytest.mark.parametrize("study", STUDIES)
def test_page_is_sound_and_asks_for_nothing(study: str, request: pytest.FixtureRequest) -> None:
    html = render_report(request.getfixturevalue(study), {})
    page = Page(html)
    assert html.startswith("<!DOCTYPE html>")
    assert html.count("<script>") == 1
    code = html[html.index("<script>") + 8 : html.rindex("</script>")]
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'; " in html
    assert re.findall('https?:[^"]*', html) == ["http://www.w3.org/2000/svg"]  # the name of SVG's elements
    assert "@import" not in html
    assert "url(" not in html.replace(code, "").replace("url(#", "")
    assert page.tags.count("script") == 2  # the data and our own
    assert {"img", "iframe", "object", "embed", "base"}.isdisjoint(page.tags)
    sources = [value for name, value in page.attributes if name in ("href", "src", "xlink:href")]
    assert all(value and value.startswith(("#", "data:")) for value in sources)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert len(page.ids) == len(set(page.ids))
    targets = {value[1:] for value in sources if value and value.startswith("#")}
    assert targets <= set(page.ids)


def test_every_name_is_text(hostile: Comparison) -> None:
    machine = {"default": {"cpu": {"<b>model</b>": "<i>x</i>"}}}
    remedies = RemedyPath(
        path=(
            Edge("<u>a</u>", "<u>b</u>", "<u>c</u>", {"<u>d</u>": "<u>e</u>"}, 0.3, 0.2, 0.4, "<u>f</u>", "<u>g</u>"),
        ),
        rounds=(Round(1, "<u>h</u>", (Edge("x", "y", None, {}),), "<u>i</u>"),),
        best="<u>b</u>",
        best_settings={},
        best_yaml="<u>k</u>",
        stopped="<u>l</u>",
    )
    run = replace(hostile.runs[0], host="<s>", device_name="<s>", warnings=("<s>",), unknown={"<s>": "<s>"})
    page = Page(render_report(replace(hostile, remedies=remedies, runs=(run, *hostile.runs[1:])), machine))
    assert {"img", "b", "i", "u", "s"}.isdisjoint(page.tags)
    assert page.tags.count("script") == 2
    assert "<script>alert('x')</script>" in page.text
    assert "<img src=x onerror=alert(1)>" in page.text
    for letter in "bcdefghikl":
        assert f"<u>{letter}</u>" in page.text
    assert "<i>x</i>" in page.text


def test_the_answer_comes_first(demo: Comparison) -> None:
    text = Page(render_report(demo, {})).text.replace("\N{NO-BREAK SPACE}", " ")
    text = text.split("How it was measured", 1)[1]  # what follows the links to the parts
    order = ["The step waits for data", "num_workers=2 takes 40 % less time", "the fastest", "What is slow", "Why",
             "What to change", "What it brings", "Next step", "Figures", "Variants", "Findings", "Operators",
             "How it was measured"]  # fmt: skip
    places = [text.find(words) for words in order]
    assert -1 not in places
    assert places == sorted(places)


def test_nothing_is_hidden(gpus: Comparison) -> None:
    text = Page(render_report(gpus, {})).text
    assert "1 of 60 runs are missing" in text
    assert "b/batch_size=32,num_workers=1,persistent_workers=true , run 3: failed" in text
    assert "UNLOCKED environment: b differs from its lock in 1 place" in text
    assert "2 of 3 traces" not in text or "in 2 of 2 traces" in text
    for run in gpus.runs:
        assert run.started in text
    assert text.count("2 runs of each variant are few; 6 would do (repeats: 6).") == 1


def test_a_study_that_tells_little_says_so(single: Comparison) -> None:
    text = Page(render_report(single, {})).text
    assert "Not explained: no analysis of the baseline can be used (the trace of this run was not analysed)" in text
    assert "What to change Unknown" in text
    assert text.count("Unknown: no analysis can be used") == 2
    assert "differences are not judged" in text
    assert "was not checked against a lock" in text
    assert "the trace of this run was not analysed" in text


def test_a_remedy_that_is_unclear_is_not_told_as_one_that_did_not_help(single: Comparison) -> None:
    edge = Edge("base", "one", "dataloader-bound", {"num_workers": 4}, 0.38, 0.01, 30.8, "unclear")
    worse = Edge("base", "two", "x", {"amp": "bf16"}, 1.3, 1.2, 1.4, "made it worse")
    tried = RemedyPath((), (Round(1, "base", (edge, worse), None),), None, {}, "")
    text = Page(render_report(replace(single, remedies=tried), {})).text.replace("\N{NO-BREAK SPACE}", " ")
    assert "no remedy that was tested clearly helped; unclear: num_workers=4." in text
    none = replace(tried, rounds=(Round(1, "base", (worse,), None),))
    text = Page(render_report(replace(single, remedies=none), {})).text.replace("\N{NO-BREAK SPACE}", " ")
    assert "no remedy that was tested clearly helped." in text


def test_the_path_of_remedies_is_shown_and_leads_where_it_goes_further(demo: Comparison) -> None:
    edges = [
        Edge("base", "one", "dataloader-bound", {"num_workers": 4}, 0.5, 0.48, 0.52, "helped"),
        Edge("one", "two", "matmul-precision", {"amp": "bf16"}, 0.8, 0.78, 0.82, "helped"),
    ]
    worse = Edge("one", "three", "x", {"channels_last": True}, 1.1, 1.05, 1.2, "made it worse")
    path = RemedyPath(tuple(edges), (Round(1, "base", (edges[0], worse), None),), "two", {}, "amp: bf16\n")
    text = Page(render_report(replace(demo, remedies=path), {})).text.replace("\N{NO-BREAK SPACE}", " ")
    assert "num_workers=4, amp=bf16 takes 60 % less time (product of 2 measured steps)" in text
    assert "The path from baseline to best" in text
    assert "channels_last=True against x : time ×1.10 (1.05–1.20), made it worse" in text
    assert "amp: bf16" in text
    shorter = replace(path, path=(replace(edges[0], ratio=0.9, ratio_low=0.88, ratio_high=0.92),))
    text = Page(render_report(replace(demo, remedies=shorter), {})).text.replace("\N{NO-BREAK SPACE}", " ")
    assert "persistent_workers=True takes 48 % less time (" in text
    one = replace(path, path=(edges[0],))
    assert "num_workers=4 takes 50" in Page(render_report(replace(demo, remedies=one), {})).text  # no better than 0.5


def test_the_lowest_time_is_told_with_what_keeps_it_from_being_an_answer(tmp_path: Path) -> None:
    variants = [Variant({"num_workers": n}, 1000.0 - 10 * n, scatter=0.2, loading=0.4) for n in (0, 1)]
    found = compare(StudyTree(variants, seed=3).write(tmp_path))
    (row,) = found.comparisons
    assert row.verdict == "unclear"
    text = Page(render_report(found, {})).text
    told = f"lowest: num_workers=1, time ×{row.difference.ratio.value:.2f}"
    assert (told in text) == (row.difference.ratio.value < 1)
    assert "Nothing that was measured is clearly faster than the baseline" in text


def test_disturbed_runs_are_named(demo: Comparison) -> None:
    run = replace(demo.runs[0], relative=6.2)
    text = Page(render_report(replace(demo, runs=(run, *demo.runs[1:])), {})).text
    assert "1 of 30 runs were disturbed" in text
    assert "took 6.2 times the median of its variant" in text


def test_alike_notes_of_many_runs_are_one(demo: Comparison) -> None:
    runs = [replace(run, warnings=("pinned memory has no effect",), stopped_by=None) for run in demo.runs]
    runs[:5] = [replace(run, unknown={"device.uuid": "a CPU has none"}) for run in runs[:5]]
    runs[0] = replace(runs[0], stopped_by="max_duration_s")
    text = Page(render_report(replace(demo, runs=tuple(runs)), {})).text
    first = "/".join((runs[0].environment, runs[0].variant, str(runs[0].repeat)))
    assert text.count("pinned memory has no effect (all runs)") == 1
    assert f"cut by max_duration_s ({first})" in text
    assert text.count("device.uuid is not known: a CPU has none") == 1
    assert "and 2 more of 30 runs" in text


def test_report_is_written_with_machine_and_stable_bytes(tmp_path: Path) -> None:
    folder = demo_tree(repeats=2).write(tmp_path)
    document.write(folder / "comparison.json", compare(folder))
    machine = {"schema": "tracelock/machine/1", "cpu": {"model": "EPYC 9", "cores_logical": 2}, "gpus": []}
    write_json(folder / "envs" / "default" / "machine.json", machine)
    for name in ("one.html", "two.html"):
        write_report(folder, tmp_path / name)
    html = (tmp_path / "one.html").read_text(encoding="utf-8")
    assert html == (tmp_path / "two.html").read_text(encoding="utf-8")
    assert "EPYC 9" in Page(html).text
    assert len(html) < 1_000_000


def test_unknown_figures_are_a_dash_and_never_none_or_nan(tmp_path: Path) -> None:
    variants = [Variant({"num_workers": n}, samples_per_step=None, loading=None) for n in (0, 1)]
    folder = StudyTree(variants, repeats=1).write(tmp_path)
    for path in folder.glob("runs/*/*/*/run.json"):
        run = json.loads(path.read_text(encoding="utf-8"))
        write_json(path, {**run, "profiled": None, "memory": {}})
    text = Page(render_report(compare(folder), {})).text
    assert not re.search(r"\b(None|nan|inf)\b", text.replace("None:", "").replace("finding None", ""))
