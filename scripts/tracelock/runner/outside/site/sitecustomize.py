"""Runs when Python starts below ``tracelock profile`` or ``watch``: waits for torch, then makes room again.

Python imports the first ``sitecustomize`` of its path. This folder is the first entry of PYTHONPATH there; it is taken
off the path at once, and the one that the environment itself has is run as if ours had never been.
"""

import importlib.util
import os
import sys
from types import ModuleType


def _outside() -> ModuleType:
    """Load the package one folder up under a private name, so that it can meet no other tracelock."""
    folder = os.path.dirname(_HERE)
    name = "_tracelock_outside"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )
        if spec is not None and spec.loader is not None:
            module = sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
    return importlib.import_module(name + ".enter")


_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if not entry or os.path.abspath(entry) != _HERE]
try:
    _outside().enter()
except Exception as error:  # whatever happens to us, the script runs
    print(f"tracelock: not started in this process: {error!r}", file=sys.stderr)

_ours = sys.modules.pop("sitecustomize", None)
sys.path_importer_cache.pop(_HERE, None)
try:
    import sitecustomize  # type: ignore[import-not-found,unused-ignore]  # noqa: F401  the environment's own
except ImportError as error:
    if error.name != "sitecustomize":
        raise
    if _ours is not None:
        sys.modules["sitecustomize"] = _ours
