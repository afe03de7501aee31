"""A YAML file with the place of each value in it, read safely."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tracelock.errors import Problem, TracelockError
from tracelock.safe_yaml import compose, construct, shortened

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


def _not_utf8(file: Path, error: UnicodeDecodeError) -> Problem:
    """Return where a file stops to be UTF-8, what stands there in the encoding that it may be in, how to save it."""
    data = error.object
    line = data[: error.start].count(b"\n") + 1
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        name, shown = "utf-16", "the first bytes are the mark of UTF-16"
    else:
        begin = data.rfind(b"\n", 0, error.start) + 1
        text = data[begin : error.start + 20].split(b"\n")[0].decode("latin-1").strip()
        name, shown = "latin1", f"byte 0x{data[error.start]:02x}; read as Latin-1 it says: {shortened(text)}"
    hint = f"save it as UTF-8: iconv -f {name} -t utf-8 {shlex.quote(str(file))} > utf8-{file.name}"
    return Problem(f"{file}:{line}", f"is not UTF-8: {shown}", hint)


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
        raise TracelockError(_not_utf8(file, error)) from None
    node = compose(text, file)
    return Source(file, construct(node, file), node)
