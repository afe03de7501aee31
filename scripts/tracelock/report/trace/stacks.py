"""Calls added up by path in the formats of other tools: collapsed stacks, and speedscope's file format.

Collapsed stacks are lines ``outer;inner 1234`` (Brendan Gregg's flamegraph.pl, inferno): here of whole nanoseconds that
a path spent itself. A speedscope file is a "sampled" profile of the same paths with weights in nanoseconds
(https://github.com/jlfwong/speedscope, schema file-format-schema.json).
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from tracelock.analysis.flames import Flame
from tracelock.analysis.prepared import Prepared
from tracelock.errors import Problem, TracelockError
from tracelock.report.trace.flames import flame_of

EVERY = 1 << 30  # paths: none is left out
_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def collapsed(known: Prepared, of: str) -> str:
    """Return the paths as collapsed stacks; blanks in names stay, what parts names and lines is replaced."""
    graph = _graph(known, of)
    lines = (f"{';'.join(_plain(name) for name in path)} {own}\n" for path, own in _paths(known, graph))
    return "".join(lines)


def speedscope(known: Prepared, of: str, name: str) -> str:
    """Return the paths as a file of speedscope; frames keep their names as they are."""
    graph = _graph(known, of)
    names: dict[str, int] = {}
    samples, weights = [], []
    for path, own in _paths(known, graph):
        samples.append([names.setdefault(text, len(names)) for text in path])
        weights.append(own)
    profile = {
        "type": "sampled",
        "name": f"{name}: {of}",
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }
    shared = {"frames": [{"name": text} for text in names]}
    return json.dumps(
        {"$schema": _SCHEMA, "shared": shared, "profiles": [profile], "exporter": "tracelock", "name": name}
    )


def _graph(known: Prepared, of: str) -> Flame:
    graph = flame_of(known, of, EVERY)
    if not len(graph):
        what = {"python": "has no Python frames (with_stack=True)", "device": "links no device work to operators"}
        raise TracelockError(Problem(known.trace.facts.file, what.get(of, "has no operators")))
    return graph


def _paths(known: Prepared, graph: Flame) -> Iterator[tuple[list[str], int]]:
    """Yield each path that spent time itself: its names from outside, and that time in ns."""
    texts = known.trace.texts
    paths: list[list[str]] = []
    rows = zip(graph.name.tolist(), graph.parent.tolist(), graph.own.tolist(), strict=True)
    for name, parent, own in rows:
        around = paths[parent] if parent >= 0 else []
        paths.append([*around, texts[name] if name >= 0 else "(no name)"])
        if own > 0:
            yield paths[-1], own


def _plain(name: str) -> str:
    return " ".join(name.replace(";", ",").split()) or "(no name)"
