"""``python -m tests.bench [NAME ...] [--trace FILE] [--mb N]``: run benchmarks and print Markdown tables.

Each module of this package with a function ``bench(options: Options) -> None`` is a benchmark, found by its name.
Those that say ``BY_NAME_ONLY = True`` run only when named. ``make bench TRACE=FILE`` measures with a file of one's own.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import platform
from pathlib import Path
from types import ModuleType

import tests.bench
from tests.bench.options import Options


def found() -> dict[str, ModuleType]:
    """Return the benchmarks by name."""
    names = [module.name for module in pkgutil.iter_modules(tests.bench.__path__) if module.name != "__main__"]
    modules = {name: importlib.import_module(f"tests.bench.{name}") for name in names}
    return {name: module for name, module in modules.items() if hasattr(module, "bench")}


def main() -> None:
    """Run the benchmarks that the command line names, or all that run unasked."""
    known = found()
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(known)}")
    parser.add_argument("--trace", type=Path, default=os.environ.get("TRACE") or None, help="measure with this file")
    parser.add_argument(
        "--mb", type=float, default=float(os.environ.get("MB", "1000")), help="size of generated traces"
    )
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(known)
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    unasked = [name for name, module in known.items() if not getattr(module, "BY_NAME_ONLY", False)]
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}\n")
    for name in arguments.names or unasked:
        print(f"## {name}\n")
        known[name].bench(Options(arguments.trace and Path(arguments.trace), arguments.mb))
        print(flush=True)


if __name__ == "__main__":
    main()
