"""Finds a workload by ``module:function`` or ``path/file.py:function``, imports it and builds it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from tracelock.errors import Problem, TracelockError, nearest
from tracelock.runner.settings import Setting, Settings
from tracelock.runner.workload import Workload

FORMS = "module:function or path/file.py:function"


def find_workload(name: str, where: str) -> tuple[Callable[[Settings], object], tuple[Setting, ...] | None]:
    """Return a workload's function, and the settings that its module declares in ``SETTINGS`` (None without it).

    Parameters
    ----------
    name
        ``module:function`` (modules of the working folder are found, too) or ``path/file.py:function``.
    where
        The place that a problem names.

    Raises
    ------
    TracelockError
        If there is no such file, module or function.
    """
    source, _, function = name.rpartition(":")
    if not source or not function:
        raise TracelockError(Problem(where, f"is {name!r}, expected {FORMS}"))
    module = _from_file(Path(source), where) if source.endswith(".py") else _from_name(source, where)
    build = getattr(module, function, None)
    if not callable(build):
        known = [word for word, value in vars(module).items() if callable(value) and not word.startswith("_")]
        raise TracelockError(Problem(where, f"{source} has no function {function!r}", nearest(function, known)))
    own = getattr(module, "SETTINGS", None)
    return build, None if own is None else tuple(own)


def build_workload(build: Callable[[Settings], object], settings: Settings, where: str) -> Workload:
    """Return what `build` makes of `settings`, checked to be a workload.

    Raises
    ------
    TracelockError
        If it is something else.
    """
    workload = build(settings)
    if not isinstance(workload, Workload):
        what = f"returned {type(workload).__name__}, expected tracelock.runner.workload.Workload"
        raise TracelockError(Problem(where, what))
    problems = [
        Problem(where, f"returned a Workload whose {part} is no {kind}: {getattr(workload, part)!r}")
        for part, kind, right in (
            ("loader", "iterable", hasattr(workload.loader, "__iter__")),
            ("step", "function", callable(workload.step)),
        )
        if not right
    ]
    if problems:
        raise TracelockError(problems)
    return workload


def _from_file(path: Path, where: str) -> ModuleType:
    if not path.is_file():
        near = nearest(path.name, [other.name for other in path.parent.glob("*.py")])
        raise TracelockError(Problem(where, f"there is no file {path} below {Path.cwd()}", near))
    loaded = sys.modules.get(path.stem)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path.resolve()):
        return loaded
    if loaded is not None:
        raise TracelockError(Problem(where, f"{path.name} has the name of a module in use", "rename the file"))
    # As with `python path/file.py`: its neighbours can be imported, and its classes found by loading processes.
    sys.path.insert(0, str(path.parent.resolve()))
    found = importlib.util.spec_from_file_location(path.stem, path.resolve())
    if found is None or found.loader is None:
        raise TracelockError(Problem(where, f"{path} cannot be imported"))
    module = sys.modules[path.stem] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def _from_name(name: str, where: str) -> ModuleType:
    sys.path.append(str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Something that the module imports may be missing, too; that is a failure of the workload.
        if not error.name or f"{name}.".startswith(f"{error.name}."):
            raise TracelockError(Problem(where, f"there is no module {name!r}", near_module(name))) from None
        raise


def near_module(name: str) -> str:
    """Return a hint: the module closest to `name` of those that came with us and those in the working folder."""
    shipped = [f"tracelock.runner.workloads.{word}" for word in ("images", "mlp", "transformer")]
    local = [path.stem for path in Path.cwd().glob("*.py")]
    return nearest(name, [*shipped, *local]) or f"with us come {', '.join(shipped)}"
