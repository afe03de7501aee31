"""One way in which an environment is not what was locked, and how differences are shown.

Standard library only, Python 3.10 syntax.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["missing", "extra", "version", "build", "hash", "record", "reinstalled", "file", "unowned", "fallback"]

REBUILD = "remove the environment and build it from its pin file again"


@dataclass(frozen=True)
class Difference:
    """One way in which an environment is not what was locked.

    Parameters
    ----------
    fatal
        Whether it keeps the environment from being used under the name of its lock. What is not fatal is recorded.
    """

    kind: Kind
    name: str
    expected: str | None
    found: str | None
    manager: str = "conda"
    fatal: bool = True
    hint: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return all fields, for ``check.json``."""
        return asdict(self)


def difference_table(differences: Sequence[Difference]) -> str:
    """Return the differences as a table of plain text, one a line, in their order."""
    rows = [(d.kind, d.name, _short(d.expected), _short(d.found)) for d in differences]
    return text_table(("what", "package", "expected", "found"), rows)


def text_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return rows as aligned columns of plain text below a head."""
    lines = [tuple(head), *(tuple(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _short(text: str | None) -> str:
    return "–" if text is None else text if len(text) <= 48 else f"{text[:47]}…"


def hints(differences: Sequence[Difference]) -> list[str]:
    """Return the distinct hints of the fatal differences, in their order."""
    return list(dict.fromkeys(d.hint for d in differences if d.fatal and d.hint))
