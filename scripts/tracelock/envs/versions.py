"""conda's order of versions and its version ranges, without conda.

Both follow the conda enhancement proposals that define them (CEP 28 on ordering, CEP 29 on match specifications).
They differ from Python's own (PEP 440): ``9e``, ``2026c`` and ``1.1.1_w`` are versions here.
Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import total_ordering
from itertools import zip_longest
from operator import eq, ge, gt, le, lt, ne

_VERSION = re.compile(r"(?:(\d+)!)?([a-z0-9._-]+)(?:\+([a-z0-9._-]+))?")
_RUNS = re.compile(r"\d+|[^\d]+")
_TERM = re.compile(r"(==|!=|<=|>=|~=|=|<|>)?(.+)")

# How a part compares: dev releases, other letters, numbers, post releases.
_Atom = tuple[int, int, str]
_ZERO: _Atom = (2, 0, "")


@total_ordering
class Version:
    """One version, comparable as conda compares it: ``1.0dev1 < 1.0a1 < 1.0 == 1 < 1.0post1``.

    Raises
    ------
    ValueError
        If the text is no version.
    """

    __slots__ = ("local", "release", "text")

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        match = _VERSION.fullmatch(self.text.lower())
        if not match:
            raise ValueError(f"'{text}' is not a conda version")
        epoch, release, local = match.groups()
        self.release = [_atoms(epoch or "0"), *_components(release)]
        self.local = _components(local) if local else []

    def __repr__(self) -> str:
        return f"Version({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and _order(self, other) == 0

    def __lt__(self, other: Version) -> bool:
        return _order(self, other) < 0

    def __hash__(self) -> int:
        parts = [tuple(_stripped(part)) for part in self.release]
        while parts and not parts[-1]:
            parts.pop()
        return hash(tuple(parts))

    def startswith(self, other: Version) -> bool:
        """Return whether this is `other` or begins with it: ``1.2.3`` with ``1.2``, but ``1.23`` not with ``1.2``."""
        mine, theirs = (self.release, other.release)
        if other.local:
            if _compare(mine, theirs):
                return False
            mine, theirs = self.local, other.local
        last = len(theirs) - 1
        if _compare(mine[:last], theirs[:last]):
            return False
        part = mine[last] if last < len(mine) else []
        return _part_startswith(part, theirs[last])


def _components(text: str) -> list[list[_Atom]]:
    # A trailing underscore belongs to its component (how openssl's plain versions are ordered before 1.0.1a).
    tail = "_" if text.endswith("_") else ""
    parts = re.split(r"[._-]", text[: len(text) - len(tail)])
    parts[-1] += tail
    if not all(parts):
        raise ValueError(f"'{text}' has an empty part")
    return [_atoms(part) for part in parts]


def _atoms(text: str) -> list[_Atom]:
    runs: list[_Atom] = [_atom(run) for run in _RUNS.findall(text)]
    # Numbers and letters stay in step: 1.a1 is 1.0a1.
    return runs if text[0].isdigit() else [_ZERO, *runs]


def _atom(run: str) -> _Atom:
    if run.isdigit():
        return (2, int(run), "")
    return {"dev": (0, 0, ""), "post": (3, 0, "")}.get(run, (1, 0, run))


def _stripped(part: list[_Atom]) -> list[_Atom]:
    end = len(part)
    while end and part[end - 1] == _ZERO:
        end -= 1
    return part[:end]


def _compare(left: list[list[_Atom]], right: list[list[_Atom]]) -> int:
    nothing: list[_Atom] = []
    for mine, theirs in zip_longest(left, right, fillvalue=nothing):
        for a, b in zip_longest(mine, theirs, fillvalue=_ZERO):
            if a != b:
                return -1 if a < b else 1
    return 0


def _order(left: Version, right: Version) -> int:
    return _compare(left.release, right.release) or _compare(left.local, right.local)


def _part_startswith(part: list[_Atom], prefix: list[_Atom]) -> bool:
    last = len(prefix) - 1
    if _compare([part[:last]], [prefix[:last]]):
        return False
    atom = part[last] if last < len(part) else _ZERO
    letters = prefix[last][0] == 1
    return (atom[0] == 1 and atom[2].startswith(prefix[last][2])) if letters else atom == prefix[last]


def satisfies(version: str, constraint: str) -> bool:
    """Return whether `version` lies in a range: ``>=1.8,<2|1.7.*``; an empty range and ``*`` allow every version.

    Raises
    ------
    ValueError
        If `version` or `constraint` cannot be read.
    """
    text = constraint.replace(" ", "")
    if text in ("", "*"):
        return True
    if "(" in text or text.startswith("^"):
        raise ValueError(f"'{constraint}' is a range with brackets or a regular expression, which is not understood")
    found = Version(version)
    return any(all(_satisfies(found, term) for term in option.split(",")) for option in text.split("|"))


def _satisfies(version: Version, term: str) -> bool:
    match = _TERM.fullmatch(term)
    if not match:
        raise ValueError("an empty version range")
    operator, text = match.groups()
    if text == "*" and operator is None:
        return True
    if "*" in text.rstrip("*"):
        return fnmatchcase(version.text.lower(), text.lower()) == (operator != "!=")
    wanted = Version(text.rstrip("*").rstrip("."))
    if text.endswith("*"):
        operator = {None: "=", "==": "=", "!=": "!=*"}.get(operator, operator)
    return _holds(operator or "==", version, wanted)


def _holds(operator: str, version: Version, wanted: Version) -> bool:
    if operator == "~=":
        return version >= wanted and version.startswith(_without_last(wanted))
    return _OPERATORS[operator](version, wanted)


def _without_last(version: Version) -> Version:
    return Version(version.text.rpartition(".")[0] or version.text)


_OPERATORS: dict[str, Callable[[Version, Version], bool]] = {
    "==": eq,
    "!=": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
    "=": Version.startswith,
    "!=*": lambda version, wanted: not version.startswith(wanted),
}
