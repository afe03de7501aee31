"""``tracelock env``: environments from lock files."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tracelock.envs.catalog import Environment

Root = Annotated[Path, typer.Option("--root", help="The project, which holds envs/.")]
Platform = Annotated[str, typer.Option("--platform", help="The platform that is locked and pinned for.")]
Names = Annotated[
    list[str] | None, typer.Argument(metavar="[ENV]...", help="Environments; all of them if none is named.")
]


# The commands on what is installed: snapshot, diff, restore, gate.
_STATE = "tracelock.cli._env_state"


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    env = typer.Typer(no_args_is_help=True, help="Environments: lock, pin, check, snapshot, compare, rebuild.")
    env.command()(lock)
    env.command()(render)
    env.command()(check)
    if importlib.util.find_spec(_STATE):
        importlib.import_module(_STATE).register(env)
    app.add_typer(env, name="env")


def lock(
    name: Annotated[str, typer.Argument(metavar="ENV", help="The environment: envs/<ENV>.yaml.")],
    client: Annotated[
        str | None, typer.Option(help="conda, mamba or micromamba; the first one found if not given.")
    ] = None,
    root: Root = Path(),
    platform: Platform = "linux-64",
) -> None:
    """Solve an environment anew with conda-lock and write its lock and pin file."""
    from tracelock.envs.catalog import find_environment
    from tracelock.envs.clients import find_client
    from tracelock.envs.mirrors import mirrors_from_environment
    from tracelock.envs.relock import relock

    environment = find_environment(root, name)
    changes = relock(environment, find_client(client), mirrors_from_environment(), platform)
    for change in changes:
        print(change)
    print(f"{environment.lock}: {'locked' if changes else 'unchanged: the same packages'}", file=sys.stderr)


def render(names: Names = None, root: Root = Path(), platform: Platform = "linux-64") -> None:
    """Write pin files (with SHA-256) from the locks."""
    from tracelock.envs.render import render as write_pin

    for environment in _chosen(names, root):
        changed = write_pin(environment, platform)
        print(f"{environment.pin(platform)}: {'written' if changed else 'up to date'}")


def check(names: Names = None, root: Root = Path(), platform: Platform = "linux-64") -> None:
    """Check that yaml, lock and pin agree, and that nothing in them is known to break; exit code 2 if not."""
    from tracelock.envs.checks import check_all, check_environment
    from tracelock.errors import TracelockError

    chosen = _chosen(names, root)
    problems = (
        [problem for each in chosen for problem in check_environment(each, platform)]
        if names
        else check_all(root, platform)
    )
    if problems:
        raise TracelockError(problems)
    for environment in chosen:
        print(f"{environment.name}: yaml, lock and pin agree")


def _chosen(names: list[str] | None, root: Path) -> list[Environment]:
    from tracelock.envs.catalog import environments, find_environment

    if names:
        return [find_environment(root, name) for name in names]
    known = environments(root)
    if not known:
        find_environment(root, "")
    return list(known.values())
