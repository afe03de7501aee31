"""The archive's description for machines: RO-Crate 1.1, profiles Process Run Crate and Workflow Run Crate 0.5.

https://w3id.org/ro/wfrun/workflow/0.5 says which entities there are: the workflow as main entity, its formal
parameters, the action that ran it with what went in and came out, and one action for each measured run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

from tracelock.io import file_digest, read_json, stable_json

Entity: TypeAlias = dict[str, Any]

FILE = "ro-crate-metadata.json"
_PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
_WORKFLOW = "workflow/Snakefile"
_SNAKEMAKE = "https://w3id.org/workflowhub/workflow-ro-crate#snakemake"
_FORMATS = {
    ".json": "application/json",
    ".csv": "text/csv",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".html": "text/html",
    ".md": "text/markdown",
    ".gz": "application/gzip",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".py": "text/x-python",
}


def write_crate(folder: Path, document: Mapping[str, Any], plan: Mapping[str, Any]) -> None:
    """Write ``ro-crate-metadata.json`` for everything below `folder`."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    names = [name for name in names if name != FILE]
    runs = [_run(folder, name, document) for name in names if name.endswith("/run.json")]
    graph = [
        _descriptor(),
        _root(names, runs, plan),
        *({"@id": url, "@type": "CreativeWork", "name": n, "version": v} for url, (n, v) in _PROFILES.items()),
        *_workflow(names, document),
        *runs,
        _whole(names, runs, document),
        *_properties(names, document),
        *(_file(folder, name) for name in names if name != _WORKFLOW),
    ]
    text = stable_json({"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph})
    (folder / FILE).write_text(text, encoding="utf-8")


def _descriptor() -> Entity:
    return {
        "@id": FILE,
        "@type": "CreativeWork",
        "about": _to("./"),
        "conformsTo": [_to("https://w3id.org/ro/crate/1.1"), _to("https://w3id.org/workflowhub/workflow-ro-crate/1.0")],
    }


def _root(names: Sequence[str], runs: Sequence[Entity], plan: Mapping[str, Any]) -> Entity:
    licence = _licence(names)
    ends = [str(run["endTime"]) for run in runs if run.get("endTime")]
    return {
        "@id": "./",
        "@type": "Dataset",
        "name": f"{plan['experiment']}: a measured study of training speed",
        "description": plan.get("description") or f"Measurements of the study {plan['experiment']}",
        # That of the last run: the time of packing would make every archive another one.
        "datePublished": max(ends, default="1970-01-01T00:00:00+00:00"),
        "license": _to(licence or "#no-licence"),
        "conformsTo": [_to(url) for url in _PROFILES],
        "hasPart": [_to(name) for name in names],
        "mainEntity": _to(_WORKFLOW),
        "mentions": [_to("#study"), *(_to(run["@id"]) for run in runs)],
    }


def _licence(names: Sequence[str]) -> str | None:
    return next((name for name in names if name.startswith("study/") and "LICEN" in name.upper()), None)


def _workflow(names: Sequence[str], document: Mapping[str, Any]) -> Iterator[Entity]:
    parts = [name for name in names if name.startswith("workflow/") and name != _WORKFLOW]
    yield {
        "@id": _WORKFLOW,
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "name": "tracelock: from a study file to a report",
        "programmingLanguage": _to(_SNAKEMAKE),
        "encodingFormat": "text/plain",
        "input": _to("#input-study"),
        "output": _to("#output-comparison"),
        "hasPart": [_to(name) for name in parts],
        "version": document["tracelock"]["version"],
    }
    snakemake = {"@id": _SNAKEMAKE, "@type": "ComputerLanguage", "name": "Snakemake", "alternateName": "Snakefile"}
    yield {**snakemake, "identifier": _to("https://snakemake.github.io"), "url": _to("https://snakemake.github.io")}
    for name, what in (("input-study", "study file"), ("output-comparison", "comparison of the variants")):
        yield {
            "@id": f"#{name}",
            "@type": "FormalParameter",
            "name": name,
            "description": what,
            "additionalType": "File",
            "conformsTo": _to("https://bioschemas.org/profiles/FormalParameter/1.0-RELEASE"),
        }
    url = "https://bioschemas.org/profiles/FormalParameter/1.0-RELEASE"
    yield {"@id": url, "@type": "CreativeWork", "name": "FormalParameter", "version": "1.0-RELEASE"}
    yield {
        "@id": "#tracelock",
        "@type": "SoftwareApplication",
        "name": "tracelock",
        "softwareVersion": document["tracelock"]["version"],
        "identifier": document["tracelock"]["source"],
        "url": "https://snakemake.github.io",
    }


def _run(folder: Path, name: str, document: Mapping[str, Any]) -> Entity:
    """Return the action of one measured run."""
    run = read_json(folder / name, "run")
    place = name.rpartition("/")[0]
    files = sorted(path.name for path in (folder / place).iterdir() if path.is_file() and path.name != "analysis.json")
    spec = f"{place.rpartition('/')[0]}/spec.json"
    code = [entry["file"] for entry in document["code"]]
    inputs = [spec] if (folder / spec).is_file() else []
    return {
        "@id": f"#{place}",
        "@type": "CreateAction",
        "name": f"run of {run['variant']} in {run['environment']}, repeat {run['repeat']}",
        "instrument": _to("#tracelock"),
        "object": _several(_to(file) for file in (*inputs, *code)),
        "result": _several(_to(f"{place}/{file}") for file in files),
        "description": f"{run['timed']['steps']} steps timed without a profiler, then some recorded with it",
        "startTime": _time(run["started"]),
        "endTime": _time(run.get("ended") or run["started"]),
        "actionStatus": "http://schema.org/CompletedActionStatus",
    }


def _whole(names: Sequence[str], runs: Sequence[Entity], document: Mapping[str, Any]) -> Entity:
    """Return the action of the whole study."""
    inputs = [document["study_file"]] if document["study_file"] else ["results/plan.json"]
    wanted = ("results/comparison.json", "results/report.html", "results/remedies.json")
    made = [n for n in names if n in wanted or n.startswith(("results/tables/", "results/figures/"))]
    times = {"startTime": min(run["startTime"] for run in runs), "endTime": max(run["endTime"] for run in runs)}
    return {
        "@id": "#study",
        "@type": "CreateAction",
        "name": f"study {document['study']}",
        "description": "all variants measured, repeat by repeat in a random order, analysed and compared",
        "instrument": _to(_WORKFLOW),
        "object": _several(_to(name) for name in inputs),
        "result": _several(_to(name) for name in made),
        "actionStatus": "http://schema.org/CompletedActionStatus",
        **(times if runs else {}),
    }


def _properties(names: Sequence[str], document: Mapping[str, Any]) -> Iterator[Entity]:
    if _licence(names) is None:
        text = "The authors have stated no licence: ask them before you use their work."
        yield {"@id": "#no-licence", "@type": "CreativeWork", "name": "no licence", "description": text}
    commit = document["repository"]["commit"]
    if commit:
        yield {"@id": "#commit", "@type": "PropertyValue", "name": "commit of the study's code", "value": commit}


def _file(folder: Path, name: str) -> Entity:
    path = folder / name
    entity: Entity = {
        "@id": name,
        "@type": "File",
        "name": name.rpartition("/")[2],
        "contentSize": str(path.stat().st_size),
        "sha256": file_digest(path),
    }
    entity["encodingFormat"] = _FORMATS.get(path.suffix, "text/plain")
    if name == "README.md":
        entity["about"] = _to("./")
    if name == "results/comparison.json":
        entity["exampleOfWork"] = _to("#output-comparison")
    if name.startswith("study/") and path.suffix in (".yaml", ".yml"):
        entity["exampleOfWork"] = _to("#input-study")
    return entity


def _time(text: str) -> str:
    """Return a time of a record in ISO 8601, to the millisecond."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).isoformat(timespec="milliseconds")
    except ValueError:
        return text


def _several(entities: Iterable[Entity]) -> Entity | list[Entity]:
    """Return entities as RO-Crate writes them: one alone stands without a list."""
    found = list(entities)
    return found[0] if len(found) == 1 else found


def _to(identifier: str) -> Entity:
    return {"@id": identifier}
