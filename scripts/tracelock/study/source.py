"""A YAML file with the place of each value in it, read safely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tracelock.errors import Problem, TracelockError
from tracelock.safe_yaml import compose, construct

KeyPath = Sequence[str | int]


@dataclass(frozen=True)
class Source:
    """A YAML file: its value and the means to say where in it something stands."""

    file: Path
    value: Any
    node: yaml.Node | None

    def where(self, path: KeyPath) -> str:
        """Return ``file:line: key.path[2]`` for a key path, with the line of its nearest existing ancestor."""
        line = self._line(path)
        place = f"{self.file}:{line}" if line else str(self.file)
        return f"{place}: {dotted(path)}" if path else place

    def _line(self, path: KeyPath) -> int | None:
        node, line = self.node, None
        for part in path:
            entry = _entry(node, part)
            if entry is None:
                break
            line, node = entry
        return line


def dotted(path: KeyPath) -> str:
    """Return ``factors.num_workers[1]`` for ``("factors", "num_workers", 1)``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _entry(node: yaml.Node | None, part: str | int) -> tuple[int, yaml.Node] | None:
    """Return (line, node) of a member of a mapping or sequence node."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(part):
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        member = node.value[part]
        return member.start_mark.line + 1, member
    return None


def read_yaml(file: Path) -> Source:
    """Read a YAML file safely and within bounds (`tracelock.safe_yaml`); a key that stands twice is an error.

    Raises
    ------
    TracelockError
        If the file cannot be read, is no YAML, has repeated keys, or aliases that stand for too much.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise TracelockError(Problem(str(file), f"cannot be read: {error.strerror}")) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise TracelockError(Problem(f"{file}:{line}", "is not UTF-8", "save it as UTF-8 (without a mark)")) from None
    node = compose(text, file)
    return Source(file, construct(node, file), node)
