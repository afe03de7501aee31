"""Mirrors: the same packages from another host, for universities, companies and rooms without a network.

A mirror changes where an archive comes from, never what it is: the hashes stay those of the lock, and another file is
refused. Locks and pins keep the canonical addresses; only a rewritten copy of ``envs/`` names the mirror.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracelock.envs.catalog import find_environment
from tracelock.envs.package import split_url
from tracelock.envs.spec import CHANNEL_HOST, read_spec, read_text
from tracelock.errors import Problem, TracelockError
from tracelock.io import digest, write_text

VARIABLE = "TRACELOCK_CHANNEL_MIRRORS"
CONFIG_KEY = "channel_mirrors"
_EXAMPLE = "https://mirror.example.org/conda, or conda-forge=https://mirror.example.org/cf"
_ITEM = re.compile(r"(?:([^=]+)=)?(.+)")


@dataclass(frozen=True)
class Mirrors:
    """What replaces the beginning of an address, the longest beginning first; empty: nothing is replaced."""

    pairs: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pairs)

    @property
    def digest(self) -> str:
        """Return the name of a folder for what is rewritten with these mirrors."""
        return digest([list(pair) for pair in self.pairs])[:12]

    def rewrite(self, url: str) -> str:
        """Return the address of a package on its mirror."""
        return _replaced(url, self.pairs)

    def canonical(self, url: str) -> str:
        """Return the address that `rewrite` made this one from."""
        back = sorted(((there, here) for here, there in self.pairs), key=lambda pair: -len(pair[0]))
        return _replaced(url, tuple(back))

    def channel(self, channel: str) -> str:
        """Return a channel as an environment file for the mirror names it; one without a mirror stays as it is."""
        url = channel if "://" in channel else CHANNEL_HOST + channel
        rewritten = self.rewrite(f"{url}/").rstrip("/")
        return channel if rewritten == url else rewritten


def _replaced(url: str, pairs: tuple[tuple[str, str], ...]) -> str:
    return next((there + url[len(here) :] for here, there in pairs if url.startswith(here)), url)


def mirrors_from_environment(variables: Mapping[str, str] | None = None) -> Mirrors:
    """Return the mirrors that ``TRACELOCK_CHANNEL_MIRRORS`` names."""
    return parse_mirrors((variables if variables is not None else os.environ).get(VARIABLE), VARIABLE)


def parse_mirrors(value: str | Mapping[str, str] | None, where: str = CONFIG_KEY) -> Mirrors:
    """Return mirrors from text or from a mapping.

    Parameters
    ----------
    value
        An address that stands for https://conda.anaconda.org, or ``channel=address``, several of them with blanks or
        commas between; or a mapping of the same (channel or address of a channel → address).
    where
        The variable or key, for messages.

    Raises
    ------
    TracelockError
        If an address cannot serve: no http, or with a password in it.
    """
    items = value.items() if isinstance(value, Mapping) else _items(value or "")
    problems: list[Problem] = []
    pairs = [(_beginning(source), _target(str(target), where, problems)) for source, target in items]
    if problems:
        raise TracelockError(problems)
    return Mirrors(tuple(sorted(pairs, key=lambda pair: (-len(pair[0]), pair[0]))))


def _items(text: str) -> Iterator[tuple[str, str]]:
    for word in re.split(r"[\s,;]+", text.strip()):
        if match := _ITEM.fullmatch(word):
            yield match[1] or "", match[2]


def _beginning(source: str) -> str:
    url = source if "://" in source else CHANNEL_HOST + source
    return url.rstrip("/") + "/"


def _target(text: str, where: str, problems: list[Problem]) -> str:
    parts = split_url(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        what = f"'{text}' is no http address"
        served = "serve a folder with python -m http.server: conda compares no hash of file:// packages"
        hint = f"expected {_EXAMPLE}; {served}"
        problems.append(Problem(where, what, hint))
    elif parts.username or parts.password:
        shown = f"{parts.scheme}://…@{parts.hostname}{parts.path}"
        hint = "put the password into ~/.netrc, which conda reads: the address is written to files"
        problems.append(Problem(where, f"'{shown}' carries a login", hint))
    return text.rstrip("/") + "/"


def envs_folder(root: Path, mirrors: Mirrors | None = None) -> Path:
    """Return the folder whose yaml and pin files Snakemake shall use: ``envs/``, or a copy of it for the mirrors.

    The copy lies at ``.cache/envs/<digest of the mirrors>/`` and is brought up to date at each call. A file whose
    content is right is not touched, so that Snakemake rebuilds nothing.

    Parameters
    ----------
    mirrors
        Those of ``TRACELOCK_CHANNEL_MIRRORS`` if ``None``.

    Raises
    ------
    TracelockError
        If the mirrors or an environment file cannot be read.
    """
    source = root / "envs"
    mirrors = mirrors_from_environment() if mirrors is None else mirrors
    if not mirrors:
        return source
    folder = root / ".cache" / "envs" / mirrors.digest
    wanted = {path.name: text for path, text in _rewritten(source, mirrors)}
    for name, text in wanted.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != text.encode("utf-8"):
            write_text(path, text)
    for path in folder.iterdir():
        if path.name not in wanted and path.suffix in (".yaml", ".txt"):
            path.unlink(missing_ok=True)
    return folder


def envs_for_workflow(root: Path, config: Mapping[str, Any], names: Iterable[str] = ()) -> Path:
    """Return `envs_folder` for a Snakefile, with the mirrors of the variable or else of Snakemake's config.

    Parameters
    ----------
    names
        The environments that conda is to make; each must be there.

    Raises
    ------
    SystemExit
        With one line for each problem: Snakemake shows a traceback for other exceptions.
    """
    try:
        for name in names:
            find_environment(root, name)
        return envs_folder(root, mirrors_from_environment() or parse_mirrors(config.get(CONFIG_KEY)))
    except TracelockError as error:
        print("\n".join(f"tracelock: error: {problem}" for problem in error.problems), file=sys.stderr)
        raise SystemExit(error.exit_code) from None


def _rewritten(source: Path, mirrors: Mirrors) -> Iterator[tuple[Path, str]]:
    for path in sorted(source.glob("*.yaml")):
        yield path, _rewritten_spec(path, mirrors)
    for path in sorted(source.glob("*.pin.txt")):
        lines = read_text(path).splitlines(keepends=True)
        yield path, "".join(line if line.startswith(("#", "@")) else mirrors.rewrite(line) for line in lines)


def _rewritten_spec(path: Path, mirrors: Mirrors) -> str:
    """Return an environment file with its channels on the mirrors, so that a solve there finds them as well."""
    spec = read_spec(path)
    lines = read_text(path).splitlines(keepends=True)
    changes = [(word.line, word.text, mirrors.channel(word.text)) for word in spec.channels]
    changes += [
        (asked.line, f"{asked.channel}::", f"{mirrors.channel(asked.channel)}::")
        for asked in spec.dependencies
        if asked.channel
    ]
    for number, old, new in changes:
        lines[number - 1] = lines[number - 1].replace(old, new, 1)
    return "".join(lines)
