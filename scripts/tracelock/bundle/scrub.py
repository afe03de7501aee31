"""Finds what names a person, a machine or a secret in the texts of a study, and replaces it, the same by the same.

Two passes: the first learns names from all texts (a home folder tells a user's name, which a log may hold alone), the
second replaces. Equal names get equal replacements, so that records which agreed still agree.
"""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracelock.bundle.patterns import DONE, FORMS, GENERIC, SECRET_NAME, Form

_SHORTEST_NAME = 3
_SHORTEST_SECRET = 8
_ENDINGS = {"mail": "@example.invalid"}
_HOSTS = re.compile(r'"(?:host|hostname|node)"\s*:\s*"([^"\\]{1,253})"')


@dataclass(frozen=True)
class Known:
    """What is known before any text is read.

    Parameters
    ----------
    users, hosts
        Names.
    secrets
        Values that must not appear anywhere.
    folders
        Absolute folders of this machine, and what stands in their place.
    words
        Words of the study itself, such as keys and names of packages: a name that is one of them is only replaced
        where it certainly is a name.
    """

    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    folders: Mapping[str, str] = field(default_factory=dict)
    words: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Replaced:
    """One thing that was found. `shown` is what a person may see on the screen; secrets are masked in it."""

    kind: str
    shown: str
    by: str
    count: int
    files: tuple[str, ...]


def known_here(folders: Mapping[Path, str], variables: Mapping[str, str] | None = None) -> Known:
    """Return what this machine knows: its user, its host, values of variables with names such as ``HF_TOKEN``."""
    variables = os.environ if variables is None else variables
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""
    home = Path(variables.get("HOME", "/")).name
    secrets = [v for k, v in variables.items() if SECRET_NAME.search(k.upper()) and len(v) >= _SHORTEST_SECRET]
    paths = {str(path): by for path, by in folders.items() if len(path.parts) > 2}
    return Known(tuple(filter(None, (user, home))), (platform.node(),), tuple(secrets), paths)


class Scrubber:
    """Replaces in texts; `found` tells what."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._by: dict[tuple[str, str], str] = {}  # (word, original) -> replacement
        self._kinds: dict[tuple[str, str], str] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._files: dict[tuple[str, str], set[str]] = {}
        self._users = {name for name in known.users if self._is_name(name)}
        self._hosts = {name for host in known.hosts for name in (host, host.split(".")[0]) if self._is_name(name)}
        self._whole: re.Pattern[str] | None = None
        self._originals: dict[str, tuple[str, str]] = {}

    def learn(self, text: str) -> None:
        """Take note of the names of users and hosts that `text` tells."""
        home = next(form for form in FORMS if form.kind == "home folder")
        self._users |= {found[2] for found in home.pattern.finditer(text) if self._is_name(found[2])}
        hosts = {found[1] for found in _HOSTS.finditer(text)}
        self._hosts |= {name for host in hosts for name in (host, host.split(".")[0]) if self._is_name(name)}
        self._whole = None

    def scrub(self, text: str, file: str) -> str:
        """Return `text` without names and secrets; `file` is where it is said to have been."""
        if self._whole is None:
            self._prepare()
        if self._whole is not None:
            text = self._whole.sub(lambda found: self._whole_match(found, file), text)
        for form in FORMS:
            text = form.pattern.sub(lambda found, form=form: self._form_match(form, found, file), text)  # type: ignore[misc]
        return text

    @property
    def found(self) -> list[Replaced]:
        """What was replaced, by kind and replacement."""
        rows = [
            Replaced(self._kinds[key], _shown(*key), by, self._counts[key], tuple(sorted(self._files[key])))
            for key, by in self._by.items()
            if self._counts[key]
        ]
        return sorted(rows, key=lambda row: (row.kind, row.by))

    def to_json(self) -> list[dict[str, Any]]:
        """Return `found` without the originals, as an archive may hold it."""
        return [{"kind": row.kind, "by": row.by, "count": row.count, "files": len(row.files)} for row in self.found]

    def _is_name(self, name: str) -> bool:
        plain = name.lower()
        return (
            len(name) >= _SHORTEST_NAME
            and plain not in GENERIC
            and plain not in self._known.words
            and not name.isdigit()
            and not DONE.fullmatch(name)
        )

    def _prepare(self) -> None:
        """Make one pattern of everything that is known by its text: secrets, folders, users, hosts; longest first."""
        table: dict[str, tuple[str, str, str]] = {}
        for host in self._hosts:
            table[host] = ("host", "host", host)
        for user in self._users:
            table[user] = ("user", "user", user)
        for path in self._known.folders:
            table[path] = ("folder of this machine", "folder", path)
        for secret in self._known.secrets:
            table[secret] = ("value of a variable", "secret", secret)
        for text, entry in list(table.items()):
            table.setdefault(json.dumps(text)[1:-1], entry)
        self._table = table
        names = [text for text, entry in table.items() if entry[1] in ("host", "user")]
        exact = [text for text, entry in table.items() if entry[1] not in ("host", "user")]
        parts = [f"(?:{_any(exact)})"] if exact else []
        # Not inside a longer word; an underscore may join a name to others, as in `job_jane_1`.
        parts += [rf"(?:(?<![A-Za-z0-9])|(?<=%2F))(?:{_any(names)})(?![A-Za-z0-9])"] if names else []
        self._whole = re.compile("|".join(parts)) if parts else re.compile(r"(?!)")

    def _whole_match(self, found: re.Match[str], file: str) -> str:
        kind, word, original = self._table[found[0]]
        if word == "folder":
            after = found.string[found.end() : found.end() + 1]
            if after and (after.isalnum() or after in "_-."):  # another folder that begins alike
                return found[0]
        return self._replacement(kind, word, original, file)

    def _form_match(self, form: Form, found: re.Match[str], file: str) -> str:
        groups = found.re.groups
        original = found[2] if groups >= 2 else found[0]
        head = found[1] if groups >= 2 else ""
        if DONE.search(original) or original.startswith("$") or (form.word == "user" and not self._private(original)):
            return found[0]
        if form.kind == "value of a variable" and not _like_a_secret(original):
            return found[0]
        return head + self._replacement(form.kind, form.word, original, file)

    def _private(self, name: str) -> bool:
        return name.lower() not in GENERIC and not name.startswith(("$", "<"))

    def _replacement(self, kind: str, word: str, original: str, file: str) -> str:
        # A host is the same host with its domain and without.
        key = (word, original.split(".")[0] if word == "host" else original)
        if key not in self._by:
            number = sum(other == word for other, _ in self._by) + 1
            new = f"{word}-{number}{_ENDINGS.get(word, '')}"
            self._by[key] = self._known.folders[original] if word == "folder" else new
            self._kinds[key] = kind
            self._files[key] = set()
        self._counts[key] += 1
        self._files[key].add(file)
        return self._by[key]


def words_of(documents: Iterable[Any]) -> frozenset[str]:
    """Return the keys of JSON documents and the names of packages in them, in small letters."""
    words: set[str] = set()
    pending = list(documents)
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            words |= {part for key in value for part in (str(key).lower(), *re.findall(r"[a-z0-9]+", str(key).lower()))}
            name = value.get("name")
            words |= {name.lower()} if isinstance(name, str) and "version" in value else set()
            pending += value.values()
        elif isinstance(value, list):
            pending += value
    return frozenset(words)


def _any(texts: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(texts, key=lambda text: (-len(text), text))))


def _like_a_secret(value: str) -> bool:
    """Return whether a value may be a secret: `PAD_TOKEN = padding` and numbers are none."""
    kinds = (any(c.isalpha() for c in value), any(c.isdigit() for c in value), any(c in "_-./+=!@#%^*" for c in value))
    return kinds[0] and (kinds[1] or kinds[2]) and not value.startswith(("os.", "settings", "self.", "args."))


def _shown(word: str, original: str) -> str:
    return f"{original[:3]}… ({len(original)} characters)" if word == "secret" else original
