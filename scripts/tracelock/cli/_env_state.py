"""The commands of ``tracelock env`` that look at what is installed: snapshot, diff, restore, gate."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tracelock.envs.diff import Change
    from tracelock.envs.manifest import Manifest

Platform = Annotated[str | None, typer.Option("--platform", help="Platform of a lock for several platforms.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def register(env: typer.Typer) -> None:
    """Add the commands to the group `env`."""
    env.command()(snapshot)
    env.command()(diff)
    env.command()(restore)
    env.command()(gate)


def snapshot(
    prefix: Annotated[Path, typer.Argument(help="A conda prefix or a venv.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder (default: <name>.snapshot).")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the environment (default: that of the folder).")] = None,
) -> None:
    """Write what an environment holds, so that somebody else can build it again.

    Beside environment.yml (without prefix:) stand the explicit list with sha256, packages.json and machine.json.
    """
    from tracelock.envs.installed import read_installed
    from tracelock.envs.machine import machine_facts
    from tracelock.envs.snapshot import write_snapshot
    from tracelock.io import write_json

    installed = read_installed(prefix)
    name = name or prefix.resolve().name
    folder = output or Path(f"{name.lstrip('.')}.snapshot")
    write_snapshot(folder, name, installed, {})
    write_json(folder / "machine.json", machine_facts())
    for package in installed.packages:
        if package.unreproducible:
            print(f"{package.name}: nobody else can install it: {package.unreproducible}", file=sys.stderr)
    for problem in installed.damaged:
        print(f"warning: {problem}", file=sys.stderr)
    print(f"{folder}: {len(installed.packages)} packages, digest {installed.digest[:12]}")


def diff(
    first: Annotated[Path, typer.Argument(metavar="A", help="Prefix, snapshot, lock, pin file or environment.yml.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another one, of the same or another kind.")],
    platform: Platform = None,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if they differ.")] = False,
    json: Json = False,
) -> None:
    """Show what differs between two environments, what decides the speed of training first."""
    from tracelock.envs.diff import compare_manifests
    from tracelock.envs.manifest import read_manifest

    manifests = read_manifest(first, platform), read_manifest(second, platform)
    changes = compare_manifests(*manifests)
    facts = _machine_changes(first, second)
    for manifest in manifests:
        for warning in manifest.warnings:
            print(f"warning: {warning}", file=sys.stderr)
    print(_as_json(manifests, changes, facts) if json else _as_text(manifests, changes, facts))
    if exit_code and changes:
        raise typer.Exit(1)


def _machine_changes(first: Path, second: Path) -> list[tuple[str, str, str]]:
    """Return the facts in which the machines of two snapshots differ; nothing for other sources."""
    from tracelock.envs.diff import compare_machines
    from tracelock.io import read_json

    files = [path / "machine.json" for path in (first, second)]
    if not all(path.is_file() for path in files):
        return []
    return compare_machines(*(read_json(path, "machine") for path in files))


def _as_json(
    manifests: tuple[Manifest, Manifest], changes: tuple[Change, ...], facts: list[tuple[str, str, str]]
) -> str:
    from tracelock.io import schema, stable_json

    machine = [{"fact": name, "before": before, "after": after} for name, before, after in facts]
    unread = {manifest.label: list(manifest.unread) for manifest in manifests if manifest.unread}
    document = {
        "schema": schema("envdiff"),
        "changes": [change.to_json() for change in changes],
        "machine": machine,
        "unread": unread,
    }
    return stable_json(document).rstrip()


def _as_text(
    manifests: tuple[Manifest, Manifest], changes: tuple[Change, ...], facts: list[tuple[str, str, str]]
) -> str:
    from tracelock.envs.difference import text_table

    first, second = (f"{m.label} ({m.source}, {len(m.packages)} packages)" for m in manifests)
    parts = [f"A: {first}\nB: {second}"]
    rows = [(c.tier, c.what, c.name, c.before or "–", c.after or "–") for c in changes]
    parts.append(text_table(("speed", "what", "package", "A", "B"), rows) if rows else _same(manifests))
    if rows and (silent := _unstated(manifests)):
        parts.append(f"versions not compared, as they are not stated: {silent}")
    if facts:
        parts.append(text_table(("machine", "A", "B"), facts))
    return "\n\n".join(parts)


def _same(manifests: tuple[Manifest, Manifest]) -> str:
    """Return what may be said where nothing differs: a file that was not read may differ."""
    unread = list(dict.fromkeys(name for manifest in manifests for name in manifest.unread))
    known = f"no difference in what was read; unknown, because not read: {', '.join(unread)}"
    if unread:
        return known
    if silent := _unstated(manifests):
        return f"the same packages, as far as versions are stated; not stated for {silent}"
    return "the same packages"


def _unstated(manifests: tuple[Manifest, Manifest]) -> str:
    """Return the packages of both sides of which one says no version, the first few by name; or an empty text."""
    both = {p.key for p in manifests[0].packages} & {p.key for p in manifests[1].packages}
    packages = [p for m in manifests for p in m.packages if p.key in both]
    silent = sorted({p.name for p in packages if not (p.version or p.constraint or p.direct_url)})
    return ", ".join(silent[:5]) + (f" and {len(silent) - 5} more" if len(silent) > 5 else "")


def restore(
    source: Annotated[
        Path, typer.Argument(metavar="SNAPSHOT", help="Folder of a snapshot, or somebody's environment.yml.")
    ],
    prefix: Annotated[
        Path | None, typer.Option("--prefix", "-p", help="Where to build it (default: restored).")
    ] = None,
    conda: Annotated[str | None, typer.Option(help="conda, mamba or micromamba; the first one found.")] = None,
    python: Annotated[str | None, typer.Option(help="For a venv: the interpreter to make it with.")] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", "-n", help="For an environment.yml: say what can be rebuilt, and build nothing."),
    ] = False,
) -> None:
    """Build an environment again from its snapshot and check that it came out the same.

    Of an environment.yml, which has no hashes, it is said first what can be rebuilt and how exactly.
    """
    from tracelock.envs.restore import restore as build

    if source.suffix in (".yml", ".yaml") and source.is_file():
        _rebuild(source, prefix or Path("restored"), conda, dry_run)
        return
    restored = build(source, prefix or Path("restored"), conda, python)
    for problem in restored.left_out:
        print(f"left out: {problem}", file=sys.stderr)
    for change in restored.notes:
        print(f"note: {change.name}: {change.what} {change.before or '–'} → {change.after or '–'}", file=sys.stderr)
    print(f"{restored.prefix}: built and checked, digest {restored.digest[:12]}")


def _rebuild(source: Path, prefix: Path, conda: str | None, dry_run: bool) -> None:
    from tracelock.envs.rebuild import account, chances, read_export, rebuild

    exported = read_export(source)
    for warning in exported.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(account(chances(exported)), flush=True)
    if dry_run:
        return
    rebuilt = rebuild(source, prefix, conda)
    added = sum(change.what == "added" for change in rebuilt.changes)
    more = f"; {added} packages more than the file names" if added else ""
    print(f"{rebuilt.prefix}: built; every version and build that the file names is there{more}")
    print("No hash was compared: the file has none. From now on: tracelock env snapshot", rebuilt.prefix)


def gate(
    prefix: Annotated[Path, typer.Argument(help="A conda prefix or a venv.")],
    lock: Annotated[list[Path], typer.Argument(help="conda-lock or pin file; for a venv its requirement files.")],
    deep: Annotated[bool, typer.Option("--deep", help="Compare the digest of every file too.")] = False,
    platform: Platform = None,
    json: Json = False,
) -> None:
    """Check that an environment is what its lock says, nothing more and nothing less; exit code 1 if not."""
    from tracelock.envs.difference import difference_table
    from tracelock.envs.gate import gate_problem
    from tracelock.envs.installed import read_installed
    from tracelock.envs.record import Locks, hold_against
    from tracelock.errors import EXIT_FAILED, TracelockError
    from tracelock.io import stable_json

    check = hold_against(read_installed(prefix), Locks(tuple(lock), platform=platform), deep).check
    if json:
        print(stable_json(check.to_json(prefix.name)).rstrip())
    elif check.differences:
        print(difference_table(check.differences))
    if not check.ok:
        raise TracelockError(gate_problem(str(prefix), check), EXIT_FAILED)
    if not json:
        print(f"{prefix}: is what {', '.join(map(str, lock))} says, digest {check.digest[:12]}")
