"""From a study's results to its archive: chosen, scrubbed, described, checked, packed."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tracelock.bundle.archive import write_archive, write_checksums
from tracelock.bundle.choose import Choice, Traces, choose, made_by, study_name
from tracelock.bundle.code import Repository, repository
from tracelock.bundle.crate import write_crate
from tracelock.bundle.origin import Origin, find_origin
from tracelock.bundle.readme import readme
from tracelock.bundle.review import missing
from tracelock.bundle.scrub import Known, Replaced, Scrubber, known_here, words_of
from tracelock.bundle.texts import encoded, is_packed, is_text, pieces, rewrite
from tracelock.errors import TracelockError
from tracelock.io import file_digest, read_json, schema, stable_json
from tracelock.report.figures import write_figures
from tracelock.study import comparison as comparison_document
from tracelock.study.compare import compare
from tracelock.study.place import ROOT
from tracelock.study.tables import write_tables

KIND = "bundle"
DOCUMENT = "bundle.json"


@dataclass(frozen=True)
class Request:
    """What is asked for.

    Parameters
    ----------
    given
        A study file, or the folder of its results.
    slim
        Makes a small trace of a large one (source, target); None where traces stay whole.
    """

    given: Path
    results: str = "results"
    traces: Traces = "main"
    slim: Callable[[Path, Path], None] | None = None


@dataclass(frozen=True)
class Packed:
    """What came of it."""

    name: str
    files: int
    replaced: tuple[Replaced, ...]
    missing: tuple[str, ...]
    left_out: int


@dataclass(frozen=True)
class _Parts:
    """A study taken apart."""

    origin: Origin
    choice: Choice
    repository: Repository


def review(request: Request) -> list[str]:
    """Return what a reviewer of the archive would miss, without writing one."""
    parts = _parts(request)
    return missing(parts.origin, parts.choice, parts.repository)


def pack(request: Request, output: Path | None, say: Callable[[str], None] = lambda _: None) -> tuple[Path, Packed]:
    """Write the archive of a study and return its path and what is to be told.

    Parameters
    ----------
    output
        The file; without it ``<study>.zip`` in the working folder.
    say
        Told what is being done, one line at a time.
    """
    parts = _parts(request)
    output = output or Path(f"{parts.origin.name}.zip")
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".bundle-", dir=output.parent) as temporary:
        stage = Path(temporary)
        packed = _fill(stage, parts, request, say)
        say("packing")
        write_archive(stage, output)
    return output, packed


def _parts(request: Request) -> _Parts:
    origin = find_origin(request.given, request.results)
    files = [*origin.code, *([origin.file] if origin.file else [])]
    found = repository(origin.root, files) if files else Repository(None, None, "", "no code of its own")
    return _Parts(origin, choose(origin, request.traces), found)


def _fill(stage: Path, parts: _Parts, request: Request, say: Callable[[str], None]) -> Packed:
    origin, choice = parts.origin, parts.choice
    with tempfile.TemporaryDirectory(dir=stage.parent, prefix=".slim-") as temporary:
        files = _slimmed(choice, request, Path(temporary), say)
        scrubber = _learned(origin, files, parts.repository, say)
        names = _scrubbed(stage, files, scrubber, say)
    if parts.repository.patch:
        patch = scrubber.scrub(parts.repository.patch, "repository.patch")
        (stage / "repository.patch").write_bytes(encoded(patch))
    _redraw(stage, scrubber)
    document = _document(parts, request, scrubber, names, stage)
    _write_texts(stage, document)
    gaps = [scrubber.scrub(line, "") for line in missing(origin, choice, parts.repository)]
    if document["tables"] == "other":
        gaps.insert(
            0,
            f"the tables were made by another tracelock: tracelock study run {origin.file or 'STUDY'} makes them anew",
        )
    count = sum(path.is_file() for path in stage.rglob("*"))
    return Packed(origin.name, count, tuple(scrubber.found), tuple(gaps), len(choice.left_out))


def _slimmed(choice: Choice, request: Request, folder: Path, say: Callable[[str], None]) -> Mapping[str, Path]:
    if request.slim is None:
        return choice.files
    files = dict(choice.files)
    for number, name in enumerate(sorted(choice.traces), start=1):
        say(f"slimming trace {number} of {len(choice.traces)}")
        target = folder / f"{number}.json.gz"
        request.slim(files[name], target)
        files[name] = target
    return files


def _learned(origin: Origin, files: Mapping[str, Path], repository: Repository, say: Callable[[str], None]) -> Scrubber:
    say(f"looking for names and secrets in {len(files)} files")
    here = known_here({Path.cwd(): "/study", origin.root: "/study", ROOT: "/tracelock"})
    scrubber = Scrubber(Known(here.users, here.hosts, here.secrets, here.folders, _words(files)))
    for name, path in files.items():
        scrubber.learn(name)
        if _looked_at(name, path):
            for piece in pieces(path):
                scrubber.learn(piece)
    scrubber.learn(repository.patch)
    return scrubber


def _words(files: Mapping[str, Path]) -> frozenset[str]:
    wanted = ("plan.json", "packages.json", "comparison.json", "run.json", "machine.json")
    return words_of(_json(path) for name, path in files.items() if name.endswith(wanted))


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError:
        return None


def _scrubbed(stage: Path, files: Mapping[str, Path], scrubber: Scrubber, say: Callable[[str], None]) -> dict[str, str]:
    """Write every file without names and secrets; return its name in the archive by the name it had."""
    say("replacing what was found")
    names: dict[str, str] = {}
    for name, path in files.items():
        names[name] = scrubber.scrub(name, name)
        target = stage / names[name]
        target.parent.mkdir(parents=True, exist_ok=True)
        before = _counts(scrubber)
        if _looked_at(name, path):
            rewrite(path, target, lambda text, name=name: scrubber.scrub(text, name))  # type: ignore[misc]
        if not _looked_at(name, path) or (is_packed(path) and _counts(scrubber) == before):
            shutil.copyfile(path, target)
    return names


def _looked_at(name: str, path: Path) -> bool:
    """Return whether names are looked for in a file: not in pictures, nor in the workflow, which is tracelock's own."""
    return is_text(path) and not name.startswith("workflow/")


def _counts(scrubber: Scrubber) -> int:
    return sum(row.count for row in scrubber.found)


def _redraw(stage: Path, scrubber: Scrubber) -> None:
    """Draw the figures again where one showed what was replaced: a picture cannot be scrubbed."""
    if any(file.startswith("results/figures/") for row in scrubber.found for file in row.files):
        write_figures(comparison_document.read(stage / "results" / "comparison.json"), stage / "results" / "figures")


def _document(
    parts: _Parts, request: Request, scrubber: Scrubber, names: Mapping[str, str], stage: Path
) -> dict[str, Any]:
    """Return ``tracelock/bundle/1``."""
    origin, choice = parts.origin, parts.choice
    file = names[study_name(origin, origin.file)] if origin.file else None
    state = {"commit": parts.repository.commit, "dirty": parts.repository.dirty, "note": parts.repository.note}
    document = {
        "schema": schema(KIND),
        "study": origin.name,
        "study_file": file,
        "tracelock": made_by(),
        "plan": origin.plan["digest"],
        "changed": list(origin.changed),
        "code": list(_code(parts.origin, names, stage)),
        "code_found_by": "following the imports in the source; modules imported by computed names are not in it",
        "repository": {**state, "patch": "repository.patch" if parts.repository.patch else None},
        "environments": list(origin.plan["environments"]),
        "traces": {"policy": request.traces, "slim": request.slim is not None, "files": len(choice.traces)},
        "left_out": [asdict(left) for left in choice.left_out],
        "tables": _tables(stage / "results"),
    }
    text = scrubber.scrub(stable_json(document), DOCUMENT)
    return {**json.loads(text), "scrubbed": scrubber.to_json()}


def _tables(results: Path) -> str:
    """Return whether this tracelock makes the ``same`` tables from the scrubbed records, or ``other`` ones."""
    stored = comparison_document.read(results / "comparison.json")
    with tempfile.TemporaryDirectory() as temporary:
        try:
            write_tables(compare(results, stored.method.min_effect), Path(temporary))
        except TracelockError:
            return "other"
        names = {path.name for folder in (results / "tables", Path(temporary)) for path in folder.glob("*.csv")}
        pairs = [(results / "tables" / name, Path(temporary) / name) for name in sorted(names)]
        same = all(a.is_file() and b.is_file() and a.read_bytes() == b.read_bytes() for a, b in pairs)
    return "same" if same else "other"


def _code(origin: Origin, names: Mapping[str, str], stage: Path) -> Iterator[dict[str, Any]]:
    for path in origin.code:
        name = names[study_name(origin, path)]
        before, after = file_digest(path), file_digest(stage / name)
        yield {"file": name, "sha256": after, "as_it_ran": before == after}


def _write_texts(stage: Path, document: Mapping[str, Any]) -> None:
    plan = read_json(stage / "results" / "plan.json", "plan")
    found = comparison_document.read(stage / "results" / "comparison.json")
    (stage / DOCUMENT).write_text(stable_json(document), encoding="utf-8")
    (stage / "README.md").write_text(readme(found, document, plan), encoding="utf-8")
    write_crate(stage, document, plan)
    write_checksums(stage)
