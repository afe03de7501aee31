"""What mkdocs does not do by itself: pages that lie outside docs/, with their links as the site needs them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from tracelock.cli._gallery import gallery

PAGES = {
    "README.md": "index.md",
    "README.zh.md": "index.zh.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/ci-gate/README.md": "ci-gate.md",
}
_LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)]*)?\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie outside docs/, and the gallery, which is made."""
    root = Path(config.config_file_path).parent
    for source, name in PAGES.items():
        if (root / source).is_file():
            text = as_in_docs((root / source).read_text(encoding="utf-8"), Path(source).parent)
            files.append(File.generated(config, name, content=text))
    for name, text in gallery(2 if os.environ.get("TRACELOCK_GALLERY") == "short" else None):
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_more: object) -> str:
    """Let links of docs/ to pages outside it lead to their places in the site."""
    return _LINK.sub(lambda found: f"{found[1]}{_moved(found[2].removeprefix('../'), found[2])}{found[3]}", markdown)


def as_in_docs(text: str, folder: Path) -> str:
    """Return a page of `folder` as if it lay in docs/."""

    def changed(found: re.Match[str]) -> str:
        place = (folder / found[2]).as_posix()
        return f"{found[1]}{_moved(place, place.removeprefix('docs/'))}{found[3]}"

    return _LINK.sub(changed, text)


def _moved(place: str, otherwise: str) -> str:
    return PAGES.get(place, otherwise)
