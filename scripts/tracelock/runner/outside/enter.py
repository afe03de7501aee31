"""The way into a process: read the request, and wait until the script imports torch."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType

VARIABLE = "TRACELOCK_OUTSIDE"


def enter() -> None:
    """Have torch watched as soon as it is imported; without a request nothing happens."""
    path = os.environ.get(VARIABLE)
    if path and os.path.isfile(path):
        after_import("torch", _start)


def after_import(name: str, then: Callable[[ModuleType], None]) -> None:
    """Call `then` with the module `name` once it has been imported, or at once if it is there."""
    if name in sys.modules:
        then(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder(name, then))


def _start(torch: ModuleType) -> None:
    from . import begin

    try:
        begin.begin(os.environ[VARIABLE])
    except Exception as error:  # whatever happens to us, the script runs
        print(f"tracelock: not started in this process: {error!r}", file=sys.stderr)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one module as everybody else would, and has its loader call back."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of the awaited module with our loader around its own, once."""
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._then)
        return spec


class _Loader(importlib.abc.Loader):
    """Loads a module by its own loader, leaves that one in its place, and calls back."""

    def __init__(self, own: importlib.abc.Loader, then: Callable[[ModuleType], None]) -> None:
        self._own = own
        self._then = then

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Leave it to the module's own loader."""
        return self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module as its own loader would."""
        module.__loader__ = self._own
        if module.__spec__ is not None:
            module.__spec__.loader = self._own
        self._own.exec_module(module)
        self._then(module)
