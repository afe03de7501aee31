"""A YAML file with the place of each value in it, read safely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tracelock.errors import Problem, TracelockError

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
    """Read a YAML file with the safe loader; a key that stands twice in one mapping is an error.

    Raises
    ------
    TracelockError
        If the file cannot be read, is no YAML, or has repeated keys.
    """
    try:
        text = file.read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        value = yaml.safe_load(text)
    except OSError as error:
        raise TracelockError(Problem(str(file), f"cannot be read: {error.strerror}")) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}:{mark.line + 1}" if mark else str(file)
        raise TracelockError(Problem(where, f"is not YAML: {getattr(error, 'problem', None) or error}")) from None
    repeated = [Problem(f"{file}:{line}: {key}", "stands twice in one mapping") for line, key in _repeated(node)]
    if repeated:
        raise TracelockError(repeated)
    return Source(file, value, node)


def _repeated(node: yaml.Node | None) -> list[tuple[int, str]]:
    """Return (line, key) of every key that an earlier one in the same mapping has already taken."""
    found: list[tuple[int, str]] = []
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                found.append((key.start_mark.line + 1, str(key.value)))
            seen.add(key.value)
            found += _repeated(value)
    elif isinstance(node, yaml.SequenceNode):
        for member in node.value:
            found += _repeated(member)
    return found
