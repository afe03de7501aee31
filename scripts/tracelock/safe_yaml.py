"""YAML of strangers, read within bounds: studies, environment files, locks.

PyYAML's safe loader runs no code, but it can be made to take all memory (aliases of aliases, which expand when they
are printed or compared), all time (``1:1:1:…`` is a number to base 60) or the whole stack (nesting), and of a key that
stands twice it keeps the last without a word. Here a file is read event by event, and each of these is one line that
says where. Bounds: `LIMIT_BYTES` of text, `LIMIT_DEPTH` levels, `LIMIT_ALIASES` values that exist through aliases
alone, `LIMIT_NUMBER` characters of a number or date.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from tracelock.errors import Problem, TracelockError

LIMIT_BYTES = 32 << 20  # a lock of 1,000 packages for four platforms has 2 MB
LIMIT_DEPTH = 50
LIMIT_ALIASES = 10_000
LIMIT_NUMBER = 100
_LARGE = 64 << 10  # from here on the C parser: ten times as fast, but its messages say less
_SHOWN = 60
_NUMBERS = ("int", "float", "timestamp")


def shortened(value: object, length: int = _SHOWN) -> str:
    """Return a value as it may stand in a message: one line of at most `length` characters."""
    text = " ".join(str(value)[: 4 * length].split())
    return text if len(text) <= length else f"{text[: length - 1]}…"


def line_of(node: yaml.Node) -> int:
    """Return the line (from 1) on which a node begins."""
    return int(node.start_mark.line) + 1


def compose(text: str, where: Path | str) -> yaml.Node | None:
    """Return the tree of nodes of a YAML document, ``None`` for an empty one.

    Parameters
    ----------
    where
        The file, for messages.

    Raises
    ------
    TracelockError
        If it is no YAML, goes beyond a bound, or names keys twice (all of them at once).
    """
    if len(text) > LIMIT_BYTES:
        raise TracelockError(Problem(str(where), f"is larger than {LIMIT_BYTES >> 20} MiB, too large for such a file"))
    composer = _Composer(where)
    try:
        for event in _events(text):
            composer.take(event)
    except yaml.YAMLError as error:
        raise TracelockError(yaml_problem(where, error)) from None
    if composer.repeated:
        raise TracelockError(composer.repeated)
    return composer.root


def construct(node: yaml.Node | None, where: Path | str) -> Any:
    """Return the value of a tree that `compose` returned: mappings, lists, texts, numbers, dates.

    Raises
    ------
    TracelockError
        If a value cannot be made: a tag of another program, a date that does not exist, a list as a key.
    """
    if node is None:
        return None
    try:
        return SafeConstructor().construct_document(node)
    except yaml.YAMLError as error:
        raise TracelockError(yaml_problem(where, error)) from None
    except (ValueError, OverflowError, TypeError) as error:
        raise TracelockError(Problem(str(where), f"holds a value that does not exist: {shortened(error)}")) from None


def load(text: str, where: Path | str) -> Any:
    """Return the value of a YAML document; see `compose` and `construct` for what is refused."""
    return construct(compose(text, where), where)


def yaml_problem(where: Path | str, error: yaml.YAMLError) -> Problem:
    """Return a YAML error as one problem with its line."""
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error).partition("\n")[0]
    return Problem(f"{where}:{mark.line + 1}" if mark else str(where), f"is not YAML: {shortened(what, 200)}")


def _events(text: str) -> Iterator[yaml.Event]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader) if len(text) > _LARGE else yaml.SafeLoader
    return yaml.parse(text, Loader=loader)


@dataclass
class _Open:
    """A mapping or list that is not at its end; `size` counts its values, those of aliases each time."""

    node: yaml.Node
    anchor: str | None
    size: int = 1
    key: yaml.Node | None = None
    seen: dict[str, int] = field(default_factory=dict)


class _Composer:
    """Makes nodes of events, as PyYAML's own does, without recursion and within bounds."""

    def __init__(self, where: Path | str) -> None:
        self.where = where
        self.root: yaml.Node | None = None
        self.repeated: list[Problem] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[yaml.Node, int | None]] = {}  # the size is unknown while it is open
        self._by_aliases = 0
        self._resolver = Resolver()

    def take(self, event: Any) -> None:
        """Take the next event."""
        if isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            raise self._refused(event, "a second document begins here; one is expected")
        if isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event)
            if event.anchor:
                self._anchors[event.anchor] = (node, 1)
            self._add(node, 1)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._begin(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            done = self._open.pop()
            done.node.end_mark = event.end_mark
            if done.anchor:
                self._anchors[done.anchor] = (done.node, done.size)
            self._add(done.node, done.size)

    def _refused(self, event: Any, what: str) -> TracelockError:
        return TracelockError(Problem(f"{self.where}:{event.start_mark.line + 1}", what))

    def _alias(self, event: Any) -> None:
        name = shortened(event.anchor)
        if event.anchor not in self._anchors:
            raise self._refused(event, f"*{name} stands for nothing: there is no &{name} before it")
        node, size = self._anchors[event.anchor]
        if size is None:
            raise self._refused(event, f"*{name} stands inside of what it stands for")
        self._by_aliases += size
        if self._by_aliases > LIMIT_ALIASES:
            what = f"aliases such as *{name} stand for more than {LIMIT_ALIASES:,} values"
            raise self._refused(event, f"{what}; write out what is meant")
        self._add(node, size)

    def _scalar(self, event: Any) -> yaml.ScalarNode:
        tag = event.tag
        if tag is None or tag == "!":
            tag = self._resolver.resolve(yaml.ScalarNode, event.value, event.implicit)  # type: ignore[no-untyped-call]
        kind = str(tag).rpartition(":")[2]
        if kind in _NUMBERS and len(event.value) > LIMIT_NUMBER:
            raise self._refused(event, f"a number or date of {len(event.value):,} characters")
        return yaml.ScalarNode(tag, event.value, event.start_mark, event.end_mark, style=event.style)

    def _begin(self, event: Any) -> None:
        if len(self._open) >= LIMIT_DEPTH:
            raise self._refused(event, f"is nested more than {LIMIT_DEPTH} levels deep")
        kind = yaml.MappingNode if isinstance(event, yaml.MappingStartEvent) else yaml.SequenceNode
        tag = event.tag
        if tag is None or tag == "!":
            tag = self._resolver.resolve(kind, None, event.implicit)  # type: ignore[no-untyped-call]
        node = kind(tag, [], event.start_mark, event.end_mark, flow_style=event.flow_style)
        if event.anchor:
            self._anchors[event.anchor] = (node, None)
        self._open.append(_Open(node, event.anchor))

    def _add(self, node: yaml.Node, size: int) -> None:
        """Put a finished node into the mapping or list that is open."""
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        parent.size += size
        if isinstance(parent.node, yaml.SequenceNode):
            parent.node.value.append(node)
        elif parent.key is None:
            parent.key = node
            self._notice(parent, node)
        else:
            parent.node.value.append((parent.key, node))
            parent.key = None

    def _notice(self, parent: _Open, key: yaml.Node) -> None:
        """Note a key, and say so where its mapping has it already."""
        if not isinstance(key, yaml.ScalarNode):
            raise TracelockError(Problem(f"{self.where}:{line_of(key)}", "a list or mapping as a key; expected a word"))
        if key.value in parent.seen:
            place = f"{self.where}:{line_of(key)}: {shortened(key.value)}"
            what = f"stands twice in one mapping, first on line {parent.seen[key.value]}"
            self.repeated.append(Problem(place, what))
        parent.seen.setdefault(key.value, line_of(key))
