"""The settings that a workload declares, read from its source without importing it.

Importing a workload imports torch, which the driver need not have; reading the source also runs no foreign code.
"""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import Any

from tracelock.runner.settings import Setting


def workload_source(reference: str, folder: Path) -> Path | None:
    """Return the source file of ``module:function`` or ``path/file.py:function``; None if there is none.

    Parameters
    ----------
    folder
        What a path in the reference is relative to.
    """
    place = reference.rsplit(":", 1)[0]
    if place.endswith(".py"):
        file = folder / place
        return file if file.is_file() else None
    try:
        found = importlib.util.find_spec(place)
    except (ImportError, ValueError):
        return None
    return Path(found.origin) if found and found.origin else None


def defined_functions(source: Path) -> set[str]:
    """Return the names that a module defines or imports at its top level."""
    names: set[str] = set()
    for node in _tree(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def declared_settings(source: Path) -> tuple[Setting, ...] | None:
    """Return the members of ``SETTINGS = (Setting(...), ...)`` in a workload's source; None if it has no such line."""
    for node in _tree(source).body:
        if isinstance(node, ast.AnnAssign):
            targets: list[ast.expr] = [node.target]
        elif isinstance(node, ast.Assign):
            targets = node.targets
        else:
            continue
        if any(isinstance(target, ast.Name) and target.id == "SETTINGS" for target in targets):
            return _settings(node.value)
    return None


def _tree(source: Path) -> ast.Module:
    """Return a file's syntax tree, its text read as Python reads it: UTF-8, or what its first lines say (PEP 263).

    Raises
    ------
    SyntaxError
        If Python could not read it either.
    """
    try:
        return ast.parse(source.read_bytes(), str(source))
    except (ValueError, OSError) as error:  # null bytes; not to be read
        raise SyntaxError(str(error)) from None


def _settings(value: ast.expr | None) -> tuple[Setting, ...] | None:
    if not isinstance(value, (ast.Tuple, ast.List)):
        return None
    try:
        return tuple(_setting(call) for call in value.elts if isinstance(call, ast.Call))
    except (ValueError, TypeError):  # something other than literals: then nothing is known, and nothing is refused
        return None


def _setting(call: ast.Call) -> Setting:
    arguments: list[Any] = [ast.literal_eval(argument) for argument in call.args]
    named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg}
    return Setting(*arguments, **named)
