"""A stand-in for ``conda`` over py-rattler, for these tests alone: the few calls that Snakemake and tracelock make.

It exists because the machines that test tracelock reach PyPI only. It is no package manager for people: no settings,
no authentication, no updates, no removal. As conda does, it compares the hashes of an explicit list with what it
downloads, builds straight into the prefix, and leaves what it built so far behind when it is killed.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

VERSION = "26.7.1"  # Snakemake asks for 24.7.1 or later
SUBDIR = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}[platform.machine()]
ROOT = Path(os.environ["STANDIN_ROOT"])
DISALLOWED = {"/", " ", ":", "#"}  # in the name of an environment's folder
CACHE = Path(os.environ.get("CONDA_PKGS_DIRS", ROOT / "pkgs"))


class RefusedError(Exception):
    """A failure that conda would report, too."""


def download(line: str) -> Path:
    """Return the archive of an explicit list's line; its hash, after ``#``, is compared each time it is downloaded."""
    url, _, tail = line.partition("#")
    wanted = tail.removeprefix("sha256:")
    target = CACHE / hashlib.sha256(line.encode()).hexdigest()[:16] / url.rpartition("/")[2]
    if target.exists():
        return target
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            data = answer.read()
    except (urllib.error.URLError, OSError) as error:
        raise RefusedError(f"{url}: {error}") from None
    found = hashlib.new("md5" if len(wanted) == 32 else "sha256", data).hexdigest()
    if wanted and found != wanted:
        raise RefusedError(f"ChecksumMismatchError: {url}: expected {wanted}, found {found}")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{os.getpid()}")
    part.write_bytes(data)
    part.replace(target)
    return target


async def install(records: list[Any], prefix: Path) -> None:
    """Link packages into a prefix."""
    import rattler

    await rattler.install(records, target_prefix=prefix, cache_dir=CACHE / "rattler", show_progress=False)


def create_explicit(lines: list[str], prefix: Path) -> None:
    """Build from an explicit list: nothing is solved."""
    import rattler

    archives = [download(line) for line in lines]

    async def build() -> None:
        await install([await rattler.RepoDataRecord.from_package_archive(path) for path in archives], prefix)

    asyncio.run(build())
    for line, archive in zip(lines, archives, strict=True):  # a record names where its package came from
        record = prefix / "conda-meta" / f"{archive.stem}.json"
        url = line.partition("#")[0]
        text = json.loads(record.read_text()) | {"url": url, "channel": url.rsplit("/", 2)[0]}
        record.write_text(json.dumps(text, indent=1))


def create_solved(channels: list[str], specs: list[str], prefix: Path) -> None:
    """Build from specs: solve them over the channels, the first one having priority."""
    import rattler

    async def build() -> None:
        wanted = [rattler.MatchSpec(spec) for spec in specs]
        virtual = rattler.VirtualPackage.detect(overrides=rattler.VirtualPackageOverrides.from_env())
        # As conda 26 does with an environment file: nodefaults is a channel like others, which nobody serves.
        if "nodefaults" in channels:
            raise RefusedError("UnavailableInvalidChannel: HTTP 404 NOT FOUND for channel nodefaults")
        sources = [os.path.expandvars(channel) for channel in channels]
        found = await rattler.solve(sources, wanted, platforms=[SUBDIR, "noarch"], virtual_packages=virtual)
        await install(found, prefix)

    asyncio.run(build())


def pip_install(lines: list[str], prefix: Path) -> None:
    """Install the section ``pip:`` of a yaml."""
    if not lines:
        return
    target = prefix / "lib" / next(path.name for path in prefix.glob("lib/python3.*")) / "site-packages"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), *lines]
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        raise RefusedError("pip failed")


def asked_of(line: str) -> str:
    """Return how conda's history names an archive of an explicit list: with the address that it came from."""
    folder, _, file = line.partition("#")[0].rpartition("/")
    name, version, build = file.removesuffix(".conda").rsplit("-", 2)
    return f"{folder}::{name}=={version}={build}"


def write_history(prefix: Path, specs: list[str]) -> None:
    """Append what was asked for, as conda does."""
    head = f"==> {time.strftime('%Y-%m-%d %H:%M:%S')} <==\n# cmd: conda {' '.join(sys.argv[1:])}\n"
    asked = f"# update specs: {specs!r}\n" if specs else ""
    with (prefix / "conda-meta" / "history").open("a") as stream:
        stream.write(f"{head}# conda version: {VERSION}\n{asked}")


def create(arguments: argparse.Namespace) -> None:
    """``conda create --file LIST --prefix P`` and ``conda env create --file YAML --prefix P``."""
    prefix, text = Path(arguments.prefix), Path(arguments.file).read_text(encoding="utf-8")
    if (prefix / "conda-meta").exists():
        raise RefusedError(f"prefix already exists: {prefix}")
    if DISALLOWED & set(prefix.name):
        raise RefusedError(f"CondaValueError: Environment names cannot contain any of these characters: {DISALLOWED}")
    specs: list[str] = []
    if arguments.command == "create":
        lines = [line.strip() for line in text.splitlines() if line.strip() and line[0] not in "#@"]
        create_explicit(lines, prefix)
        specs = [asked_of(line) for line in lines]
    else:
        import yaml

        wanted = yaml.safe_load(text)
        if "platforms" in wanted:
            print("EnvironmentSectionNotValid: The following section is not valid and will be ignored: platforms")
        specs = [entry for entry in wanted["dependencies"] if isinstance(entry, str)]
        create_solved(wanted["channels"], specs, prefix)
        pip_install(
            [line for entry in wanted["dependencies"] if isinstance(entry, dict) for line in entry["pip"]], prefix
        )
    write_history(prefix, specs)


def info() -> dict[str, Any]:
    """Return what ``conda info --json`` tells, as far as anybody here asks."""
    return {"platform": SUBDIR, "conda_version": VERSION, "conda_prefix": str(ROOT), "root_prefix": str(ROOT)}


def parse() -> argparse.Namespace:
    """Return the command and its options."""
    words = ["env_create", *sys.argv[3:]] if sys.argv[1:3] == ["env", "create"] else sys.argv[1:]
    parser = argparse.ArgumentParser(prog="conda")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("create", "env_create"):
        command = commands.add_parser(name)
        command.add_argument("--file", required=True)
        command.add_argument("--prefix", "-p", required=True)
        for flag in ("--quiet", "--yes", "--no-default-packages", "--json"):
            command.add_argument(flag, action="store_true")
    commands.add_parser("info").add_argument("--json", action="store_true")
    for name, flags in {"config": ("--json",), "clean": ("-y", "--tarballs", "--packages")}.items():
        command = commands.add_parser(name)
        command.add_argument("--get", default="channel_priority")
        for flag in flags:
            command.add_argument(flag, action="store_true")
    return parser.parse_args(words)


def main() -> int:
    """Answer one call."""
    if sys.argv[1:] == ["--version"]:
        print(f"conda {VERSION}")
        return 0
    arguments = parse()
    try:
        if arguments.command == "info":
            print(json.dumps(info()))
        elif arguments.command == "config":
            print(json.dumps({"get": {"channel_priority": "strict"}}))
        elif arguments.command != "clean":
            create(arguments)
    except Exception as error:  # whatever rattler raises is conda's failure
        shutil.rmtree(getattr(arguments, "prefix", ROOT / "nothing"), ignore_errors=True)
        print(f"conda: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # py-rattler's threads outlive the interpreter and now and then crash it on its way out
