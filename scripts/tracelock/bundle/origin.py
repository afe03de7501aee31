"""Where a study lies that is bundled: its results, its file, its code, the locks of its environments."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracelock.bundle.code import first_files, own_code
from tracelock.envs.catalog import environments
from tracelock.errors import Problem, TracelockError, nearest
from tracelock.io import file_digest, read_json
from tracelock.study.load import load_plan
from tracelock.study.place import ROOT
from tracelock.study.plan import plan_document

_LICENCES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "COPYING", "CITATION.cff")


@dataclass(frozen=True)
class Origin:
    """A study with results.

    Parameters
    ----------
    file
        The study file, or None where it was not found.
    root
        The folder that study file and code are named from in the archive.
    code
        The workload's own files.
    changed
        What is no longer as it was when the runs were made, in words.
    """

    results: Path
    plan: Mapping[str, Any]
    file: Path | None
    root: Path
    code: tuple[Path, ...]
    changed: tuple[str, ...]

    @property
    def name(self) -> str:
        """The study's name."""
        return str(self.plan["experiment"])

    def extras(self) -> list[Path]:
        """Return licence and citation files beside the study file or at the root."""
        folders = dict.fromkeys([self.root, *([self.file.parent] if self.file else [])])
        return [path for folder in folders for name in _LICENCES if (path := folder / name).is_file()]


def find_origin(given: Path, results: str) -> Origin:
    """Return the study that `given` names: a study file, or the folder of its results.

    Raises
    ------
    TracelockError
        If there are no results, or nothing was measured.
    """
    folder, file = _places(given, results)
    plan = read_json(folder / "plan.json", "plan")
    if not (folder / "comparison.json").is_file():
        what = "holds no comparison.json: the study has not finished"
        raise TracelockError(Problem(str(folder), what, f"tracelock study run {file or 'STUDY'}"))
    file = file or _study_file(folder, str(plan.get("study_file") or ""))
    working = Path.cwd().resolve()
    code = own_code(first_files(_workload(plan, file), file.parent if file else working, working), working)
    root = _root([*code, *([file] if file else [])], working)
    return Origin(folder, plan, file, root, code, tuple(_changed(plan, file, code)))


def _places(given: Path, results: str) -> tuple[Path, Path | None]:
    if given.is_dir():
        if not (given / "plan.json").is_file():
            near = [path.parent.name for path in given.glob("*/plan.json")]
            hint = f"give one of {', '.join(sorted(near))} in it" if near else "give results/<study>, or the study file"
            raise TracelockError(Problem(str(given), "holds no plan.json, so it is no results folder", hint))
        return given, None
    if not given.is_file():
        near_name = nearest(given.name, [p.name for p in given.parent.glob("*")]) if given.parent.is_dir() else ""
        raise TracelockError(Problem(str(given), "there is no such study file or results folder", near_name))
    name = load_plan(given).study.name
    folder = Path(results) / name
    if not (folder / "plan.json").is_file():
        raise TracelockError(
            Problem(str(folder), "holds no results of this study", f"tracelock study run {given}, or --results DIR")
        )
    return folder, given.resolve()


def _study_file(folder: Path, name: str) -> Path | None:
    """Return the study file of a results folder, looked for where it usually lies."""
    if not name or "/" in name or "\\" in name:
        return None
    above = folder.resolve().parents[1]
    places = [Path.cwd(), Path.cwd() / "config", above, above / "config", ROOT / "config"]
    return next((found.resolve() for place in places if (found := place / name).is_file()), None)


def _workload(plan: Mapping[str, Any], file: Path | None) -> str:
    """Return the workload as the study file names it; the plan's is relative to the working folder."""
    workload = str(plan["workload"])
    place, _, function = workload.rpartition(":")
    if file is None or not place.endswith(".py"):
        return workload
    return f"{os.path.relpath(Path(place).resolve(), file.parent)}:{function}"


def _root(files: Sequence[Path], working: Path) -> Path:
    if not files or all(file.is_relative_to(working) for file in files):
        return working
    return Path(os.path.commonpath([str(file.parent) for file in files]))


def _changed(plan: Mapping[str, Any], file: Path | None, code: Sequence[Path]) -> Iterator[str]:
    if file is None:
        yield f"the study file {plan.get('study_file') or ''} was not found; its plan is in the archive"
        return
    try:
        now = plan_document(load_plan(file, tuple(plan["environments"])))
    except TracelockError as error:
        yield f"the study file cannot be read any more: {error.problems[0]}"
        return
    asked = _asked(plan)
    if {key: value for key, value in _asked(now).items() if key in asked} != asked:  # later versions ask for more
        yield f"{file.name} says something else than when the runs were made"
    elif code and [v["digest"] for v in now["variants"]] != [v["digest"] for v in plan["variants"]]:
        yield "the workload's file has changed since the runs were made"


def _asked(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a study asks for: its plan without the digests of what it runs, and without where that lies."""
    without = {key: value for key, value in plan.items() if key not in ("digest", "study_file", "workload", "schema")}
    return {**without, "variants": [{**variant, "digest": None} for variant in plan["variants"]]}


def lock_files(folder: Path, names: Sequence[str]) -> dict[str, Path]:
    """Return the files that environments are built from: name in the archive -> file.

    Of a driver's environment these are the requirement locks that its check names, of one built by conda the yaml, its
    lock and its pin file.
    """
    found: dict[str, Path] = {}
    known = environments(ROOT)
    for name in names:
        for path in _checked_locks(folder / "envs" / name / "check.json"):
            found[f"environments/{name}/{path.name}"] = path
    used = [name for name in (*names, "analysis") if name in known and (folder / "envs" / name).is_dir()]
    for name in used:
        environment = known[name]
        for path in (environment.spec, environment.lock, environment.pin()):
            if path.is_file():
                found[f"environments/envs/{path.name}"] = path
    return found


def _checked_locks(check: Path) -> Iterator[Path]:
    """Yield the locks that a check names, where the file is still the one that was used."""
    if not check.is_file():
        return
    for lock in read_json(check, "envcheck").get("locks") or ():
        for place in (ROOT / "requirements", Path.cwd(), ROOT, ROOT / "envs"):
            path = place / Path(str(lock.get("file"))).name
            if path.is_file() and file_digest(path) == lock.get("sha256"):
                yield path
                break
