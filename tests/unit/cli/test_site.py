"""The site of the documentation: built without a warning, nothing asked of the network, commands sound."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tracelock.cli import _groups, build_app
from tracelock.cli._gallery import _entry, _standalone
from tracelock.diagnosis import Diagnosed
from tracelock.faults.draw import draw_fault
from tracelock.faults.families import FAMILIES
from tracelock.faults.grade import examine
from tracelock.report.trace.figures import breakdown

ROOT = Path(__file__).resolve().parents[3]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*/*.md"))]
_STOPS = {"|", ">", ">>", "2>", "&&", ";", "&", "<"}


def commands() -> Iterator[tuple[str, str]]:
    """Yield (page, command line) for every line of a block, and every phrase in backticks, that calls tracelock."""
    for page in PAGES:
        text = re.sub(r"\\\n\s*", " ", page.read_text(encoding="utf-8"))
        name = page.relative_to(ROOT).as_posix()
        for block in re.findall(r"```\w*\n(.*?)```", text, re.DOTALL):
            for line in block.splitlines():
                if found := re.search(r"(?:^|\s|\|)(?:\.venv/bin/)?tracelock\s+(.*)$", line.split("  #")[0]):
                    yield name, found[1]
        for line in re.findall(
            r"`(?:\.venv/bin/)?tracelock ([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        ):
            yield name, line


COMMANDS = list(commands())


@pytest.fixture(scope="module")
def parser() -> Any:
    return typer.main.get_command(build_app(_groups()))


def test_there_are_many_commands_to_check() -> None:
    assert len(COMMANDS) > 100
    assert {"README.md", "docs/scripts.md", "docs/environments.md"} <= {page for page, _ in COMMANDS}


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_a_command_that_a_page_shows_is_understood(page: str, line: str, parser: Any) -> None:
    whole = line + '"' * (line.count('"') % 2)  # a query may go on over several lines
    words = shlex.split(whole, comments=True)
    words = words[: next((at for at, word in enumerate(words) if word in _STOPS), len(words))]
    command, names = parser, []
    while words and hasattr(command, "commands"):
        assert words[0] in command.commands, f"{page}: {line}"
        names.append(words[0])
        command = command.commands[words.pop(0)]
    words = [word for word in words if word not in ("--quiet", "--debug", "...", "…")]
    context = command.context_class(command, info_name=" ".join(names), **command.context_settings)
    command.make_parser(context).parse_args(words)  # an unknown option raises


def test_the_site_is_built_without_a_warning_and_asks_nothing_of_the_network(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="needs mkdocs (requirements/dev.lock)")
    variables = {
        **os.environ,
        "TRACELOCK_GALLERY": "short",
        "NO_MKDOCS_2_WARNING": "1",
        "PYTHONPATH": str(ROOT / "scripts"),
    }
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list(tmp_path.glob("*.html"))
    assert len(pages) > 20
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r'<(?:script|img|iframe)[^>]+src="?https?:', text), page.name
        assert not re.search(r'<link[^>]+rel="?(?:stylesheet|preconnect|preload)[^>]+https?:', text), page.name
        assert "fonts.googleapis" not in text


def test_an_entry_of_the_gallery_shows_the_verdict_and_a_sound_picture(tmp_path: Path) -> None:
    drawn = draw_fault(FAMILIES[0], 3)
    found: Diagnosed = examine(drawn, tmp_path)[0]
    picture = _standalone(str(breakdown(found, 700)))
    root = ET.fromstring(picture)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(picture) < 8000
    entry = _entry(drawn, found, "x")
    assert f"`{drawn.code}`" in entry
    assert "![" in entry
