"""The locks of this project: each is closed under its dependencies, of one Python and one CUDA, and fits yaml and pin.

Versions are compared by py-rattler, which resolved real environments, and not by our own code.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

rattler = pytest.importorskip("rattler")

ROOT = Path(__file__).resolve().parents[3]
LOCKS = {
    "pytorch-2.5-cu118": ROOT / "conda-lock.yml",
    "pytorch-2.0-cu118": ROOT / "envs/pytorch-2.0-cu118.conda-lock.yml",
    "pytorch-2.5-cpu": ROOT / "envs/pytorch-2.5-cpu.conda-lock.yml",
    "analysis": ROOT / "envs/analysis.conda-lock.yml",
}
PYTHONS = {"pytorch-2.5-cu118": "3.10", "pytorch-2.0-cu118": "3.10", "pytorch-2.5-cpu": "3.12", "analysis": "3.12"}
TORCHES = {"pytorch-2.5-cu118": "2.5.1", "pytorch-2.0-cu118": "2.0.1", "pytorch-2.5-cpu": "2.5.1"}
# The oldest machine that the locks are for: RHEL 7, without a GPU.
VIRTUAL = {"__glibc": "2.17", "__linux": "3.10", "__unix": "0", "__archspec": "1"}

every_lock = pytest.mark.parametrize("name", LOCKS)
cuda_locks = pytest.mark.parametrize("name", [name for name in LOCKS if name.endswith("cu118")])


@cache
def document(name: str) -> dict[str, Any]:
    return yaml.load(LOCKS[name].read_text(), Loader=yaml.CSafeLoader)


def packages(name: str) -> dict[str, dict[str, Any]]:
    return {package["name"]: package for package in document(name)["package"]}


def archive(package: dict[str, Any]) -> tuple[str, str, str]:
    """Return name, version and build as the address has them."""
    stem = re.sub(r"\.(conda|tar\.bz2)$", "", package["url"].rpartition("/")[2])
    return tuple(stem.rsplit("-", 2))  # type: ignore[return-value]


def allows(versions: str, version: str) -> bool:
    return not versions or rattler.VersionSpec(versions).matches(rattler.Version(version))


def test_every_environment_is_tested() -> None:
    assert {path.stem for path in (ROOT / "envs").glob("*.yaml")} == set(LOCKS)


@every_lock
def test_every_dependency_is_satisfied_inside(name: str) -> None:
    locked = {**{key: value["version"] for key, value in packages(name).items()}, **VIRTUAL}
    open_ends = [
        f"{package['name']} needs {need} {versions}, locked is {locked.get(need)}"
        for package in document(name)["package"]
        for need, versions in package["dependencies"].items()
        if need not in locked or not allows(versions, locked[need])
    ]
    assert open_ends == []


@every_lock
def test_builds_are_of_one_python(name: str) -> None:
    python = PYTHONS[name]
    assert packages(name)["python"]["version"].startswith(f"{python}.")
    short = python.replace(".", "")
    others = [
        archive(package)
        for package in document(name)["package"]
        for found in [re.search(r"(?:^|_)(?:py|cp)(?:3\.)?(\d{2,3})(?=\D|$)", archive(package)[2])]
        if found and f"3{found[1]}"[-len(short) :] != short and found[1] != short
    ]
    assert others == []


@cuda_locks
def test_builds_are_of_cuda_11_8(name: str) -> None:
    found = packages(name)
    for library in ("cuda-cudart", "cuda-cupti", "cuda-libraries", "cuda-nvrtc", "cuda-nvtx", "cuda-runtime"):
        assert found[library]["version"].startswith("11.8."), library
    assert found["pytorch-cuda"]["version"] == "11.8"
    assert archive(found["pytorch"])[2].startswith("py3.10_cuda11.8_")
    assert archive(found["torchvision"])[2] == "py310_cu118"
    assert archive(found["pytorch-mutex"])[2] == "cuda"
    others = [p for p in map(archive, found.values()) if re.search(r"cu(?!118)\d{3}|cuda(?!11\.8)\d", p[2])]
    assert others == []


def test_the_cpu_lock_holds_no_cuda() -> None:
    found = packages("pytorch-2.5-cpu")
    assert archive(found["pytorch"])[2] == "py3.12_cpu_0"
    assert [key for key in found if re.match(r"cuda|libcu(blas|fft|rand|solver|sparse)|pytorch-cuda", key)] == []


@pytest.mark.parametrize("name", TORCHES)
def test_what_breaks_torch_is_kept_out(name: str) -> None:
    found = packages(name)
    assert found["pytorch"]["version"] == TORCHES[name]
    assert allows("<2", found["numpy"]["version"])
    assert allows("<2024.1", found["mkl"]["version"])
    assert allows("<16", found["llvm-openmp"]["version"])
    assert allows("<70" if TORCHES[name] == "2.0.1" else "<81", found["setuptools"]["version"])
    assert archive(found["libblas"])[2].endswith("mkl")
    assert {"pillow", "psutil"} <= set(found)


def test_the_analysis_holds_what_its_rules_import() -> None:
    needed = ["numpy", "pandas", "matplotlib-base", "scipy", "jinja2", "pyyaml", "rich", "typer", "msgspec", "psutil"]
    checked = ["jsonschema"]  # the plan is checked in the same environment
    assert set(needed + checked) <= set(packages("analysis"))
    assert len(packages("analysis")) == 89


@every_lock
def test_every_package_has_both_hashes_and_a_canonical_address(name: str) -> None:
    channels = {channel["url"] for channel in document(name)["metadata"]["channels"]}
    for package in document(name)["package"]:
        assert re.fullmatch("[0-9a-f]{32}", package["hash"]["md5"])
        assert re.fullmatch("[0-9a-f]{64}", package["hash"]["sha256"])
        match = re.fullmatch(r"https://conda\.anaconda\.org/([\w-]+)/(linux-64|noarch)/\S+", package["url"])
        assert match, package["url"]
        assert match[1] in channels
        assert archive(package)[:2] == (package["name"], package["version"])
        assert package["manager"] == "conda"


@every_lock
def test_the_pin_is_the_lock(name: str) -> None:
    lines = (ROOT / f"envs/{name}.linux-64.pin.txt").read_text().splitlines()
    head, body = lines[: lines.index("@EXPLICIT")], lines[lines.index("@EXPLICIT") + 1 :]
    assert "# platform: linux-64" in head
    assert sorted(body) == sorted(f"{p['url']}#sha256:{p['hash']['sha256']}" for p in document(name)["package"])


@every_lock
def test_the_pin_links_python_before_what_needs_it(name: str) -> None:
    text = (ROOT / f"envs/{name}.linux-64.pin.txt").read_text()
    place = {p["name"]: text.index(p["url"]) for p in document(name)["package"]}
    needing = [p["name"] for p in document(name)["package"] if "python" in p["dependencies"]]
    assert needing
    assert all(place["python"] < place[key] for key in needing)


@every_lock
def test_the_yaml_has_the_content_hash(name: str) -> None:
    """Recompute the hash from the yaml and conda-lock's defaults, written out here a second time."""
    spec = yaml.safe_load((ROOT / f"envs/{name}.yaml").read_text())
    virtual = [
        ("__unix", "0", ""),
        ("__linux", "5.10", ""),
        ("__archspec", "1", "x86_64"),
        ("__glibc", "2.28", ""),
        ("__cuda", "11.4", ""),
    ]
    records = {}
    for package, version, label in virtual:
        build = f"{label}_0" if label else "0"
        records[f"{package}-{version}-{build}.tar.bz2"] = {
            **{"name": package, "version": version, "build_string": label, "build_number": 0, "noarch": ""},
            **{"depends": [], "timestamp": 1577854800000, "package_type": "virtual_system", "build": build},
            "subdir": "linux-64",
        }
    value = {
        "channels": [f'{{"url":"{c}","used_env_vars":[]}}' for c in spec["channels"] if c != "nodefaults"],
        "specs": sorted((asked(text) for text in spec["dependencies"]), key=lambda item: item["name"]),
        "virtual_package_hash": {
            "noarch": {"info": {"subdir": "noarch"}, "packages": {}},
            "linux-64": {"info": {"subdir": "linux-64"}, "packages": records},
        },
    }
    found = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
    assert document(name)["metadata"]["content_hash"] == {"linux-64": found}
    assert document(name)["metadata"]["platforms"] == ["linux-64"]


def asked(text: str) -> dict[str, Any]:
    """Return a dependency as conda-lock hashes it, for the few forms that our files use."""
    channel, _, rest = text.rpartition("::")
    forms = (
        (r"([\w.-]+)", lambda m: (m[1], "", None)),
        (r"([\w.-]+)(<[\w.]+)", lambda m: (m[1], m[2], None)),
        (r"([\w.-]+)=([\d.]+)", lambda m: (m[1], f"{m[2]}.*", None)),
        (r"([\w.-]+)=([\d.]+|\*)=(\S+)", lambda m: (m[1], m[2], m[3])),
    )
    name, version, build = next(form(m) for pattern, form in forms if (m := re.fullmatch(pattern, rest)))
    fixed = {"manager": "conda", "category": "main", "extras": [], "hash": None}
    return {"name": name, "version": version, "build": build, "conda_channel": channel or None, **fixed}


@every_lock
def test_the_records_of_the_channels_agree(name: str, shared: Path) -> None:
    """Where the channels' own records are at hand: the hashes, the builds asked for, and what must not be beside."""
    records = {key: repodata(shared)[package["url"]] for key, package in packages(name).items()}
    identities = {key: record_of(record) for key, record in records.items()}
    for key, package in packages(name).items():
        record = records[key]
        assert (record["md5"], record["sha256"]) == (package["hash"]["md5"], package["hash"]["sha256"])
        for text in record["depends"]:
            need = rattler.MatchSpec(text)
            if not text.startswith("__"):
                assert need.matches(identities[text.split()[0]]), f"{key} needs {text}"
        for text in record.get("constrains", ()):
            other = re.split(r"[ =<>!]", text)[0]
            if other in identities:
                assert rattler.MatchSpec(text).matches(identities[other]), f"{key} cannot be beside {text}"


def record_of(record: dict[str, Any]) -> Any:
    build = rattler.BuildString(record["build"])
    return rattler.PackageRecord(record["name"], record["version"], build, record["build_number"], record["subdir"])


@cache
def repodata(shared: Path) -> dict[str, dict[str, Any]]:
    records = {}
    for path in (shared / "conda" / "channel").glob("*/*/repodata.json"):
        content = json.loads(path.read_text())
        base = f"https://conda.anaconda.org/{path.parts[-3]}/{path.parts[-2]}"
        for section in ("packages", "packages.conda"):
            records.update({f"{base}/{file}": record for file, record in content[section].items()})
    return records
