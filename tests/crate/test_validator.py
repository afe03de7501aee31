"""The metadata of an archive, checked by the validator of RO-Crate.

The validator needs an older rich than ours, so it has an environment of its own, which `make test-crate` makes. It
would fetch the context of JSON-LD; nothing is fetched here: the context is written out in the copy that is checked,
each name with the address that the specification gives it.
"""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

PROGRAM = os.environ.get("TRACELOCK_ROCRATE", "")
PROFILES = ("ro-crate-1.1", "workflow-ro-crate-1.0", "process-run-crate-0.5", "workflow-run-crate-0.5")
_BIOSCHEMAS = {
    "ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow",
    "FormalParameter": "https://bioschemas.org/FormalParameter",
    "input": "https://bioschemas.org/properties/input",
    "output": "https://bioschemas.org/properties/output",
}
_OTHERS = {"File": "http://schema.org/MediaObject", "conformsTo": "http://purl.org/dc/terms/conformsTo"}

pytestmark = pytest.mark.skipif(not PROGRAM, reason="make test-crate brings RO-Crate's validator")


@pytest.fixture
def crate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the contents of an archive, the context of its metadata written out."""
    from bundling import finished

    from tracelock.bundle.pack import Request, pack

    study, folder = tmp_path / "mine", tmp_path / "crate"
    finished(study)
    monkeypatch.chdir(study)
    path, _ = pack(Request(Path("demo.yaml")), None)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    return folder


def metadata(crate: Path) -> dict:
    return json.loads((crate / "ro-crate-metadata.json").read_text(encoding="utf-8"))


def write(crate: Path, document: dict) -> None:
    assert document["@context"] == "https://w3id.org/ro/crate/1.1/context"
    names = {name for entity in document["@graph"] for name in entity if not name.startswith("@")}
    for entity in document["@graph"]:
        kinds = entity["@type"]
        names |= set(kinds if isinstance(kinds, list) else [kinds])
    context = {name: f"http://schema.org/{name}" for name in names} | _BIOSCHEMAS | _OTHERS
    text = json.dumps({**document, "@context": context})
    (crate / "ro-crate-metadata.json").write_text(text, encoding="utf-8")


def problems(crate: Path, profile: str) -> list[str]:
    """Return what the validator finds against what a profile requires."""
    told = crate.parent / "told.json"
    options = ["--no-paging", "-p", profile, "-l", "required", "--offline", "-f", "json", "-o", str(told)]
    subprocess.run([PROGRAM, "-y", "validate", *options, str(crate)], capture_output=True, check=False)
    found = json.loads(told.read_text(encoding="utf-8"))
    assert found["passed"] is not bool(found["issues"])
    return [issue["message"] for issue in found["issues"]]


@pytest.mark.parametrize("profile", PROFILES)
def test_an_archive_is_sound_by_every_profile_that_it_names(crate: Path, profile: str) -> None:
    document = metadata(crate)
    assert document["@graph"]
    write(crate, document)
    assert problems(crate, profile) == []


def test_the_validator_would_find_something_missing(crate: Path) -> None:
    document = metadata(crate)
    root = next(entity for entity in document["@graph"] if entity["@id"] == "./")
    del root["license"], root["datePublished"]
    write(crate, document)
    assert problems(crate, "ro-crate-1.1")
