"""The image that a process runs in: its digest, or why it is not known."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tracelock.envs.container import VARIABLE, container_facts
from tracelock.envs.machine import machine_facts

DIGEST = f"sha256:{'a' * 64}"


def facts(root: Path, **variables: str) -> tuple[dict[str, str | None] | None, dict[str, str]]:
    unknown: dict[str, str] = {}
    return container_facts(unknown, variables, root), unknown


def test_outside_of_a_container_there_is_nothing(tmp_path: Path) -> None:
    assert facts(tmp_path) == (None, {})
    assert "container" in machine_facts()


def test_apptainer_tells_its_file_which_is_hashed(tmp_path: Path) -> None:
    (tmp_path / ".singularity.d").mkdir()
    labels = {"org.label-schema.usage.singularity.deffile.from": f"pytorch/pytorch@{DIGEST}"}
    (tmp_path / ".singularity.d" / "labels.json").write_text(json.dumps(labels))
    image = tmp_path / "torch.sif"
    image.write_bytes(b"image")
    found, unknown = facts(tmp_path, APPTAINER_CONTAINER=str(image))
    assert found == {
        "kind": "apptainer",
        "image": "torch.sif",
        "digest": f"sha256:{hashlib.sha256(b'image').hexdigest()}",
        "from": f"pytorch/pytorch@{DIGEST}",
    }
    assert unknown == {}
    found, unknown = facts(tmp_path, SINGULARITY_CONTAINER="/not/visible/torch.sif")
    assert (found or {})["digest"] is None
    assert VARIABLE in unknown["container.digest"]


def test_podman_tells_the_id_and_docker_nothing(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".containerenv").write_text(
        f'engine="podman-4"\nimage="docker.io/p/p:1"\nimageid="{"b" * 64}"\n'
    )
    found, _ = facts(tmp_path)
    assert found == {"kind": "podman", "image": "docker.io/p/p:1", "digest": f"sha256:{'b' * 64}", "from": None}
    (tmp_path / "run" / ".containerenv").unlink()
    (tmp_path / ".dockerenv").touch()
    found, unknown = facts(tmp_path)
    assert ((found or {})["kind"], (found or {})["digest"]) == ("docker", None)
    assert "not visible from inside" in unknown["container.digest"]


def test_a_digest_from_outside_counts_and_a_tag_does_not(tmp_path: Path) -> None:
    (tmp_path / ".dockerenv").touch()
    found, unknown = facts(tmp_path, **{VARIABLE: DIGEST})
    assert ((found or {})["digest"], unknown) == (DIGEST, {})
    found, unknown = facts(tmp_path, **{VARIABLE: "pytorch:latest"})
    assert (found or {})["digest"] is None
    assert "is no sha256" in unknown["container.digest"]
