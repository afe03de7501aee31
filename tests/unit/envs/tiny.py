"""A tiny project with one environment, whose yaml, lock and pin agree until a test changes one of them."""

from __future__ import annotations

import hashlib
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tracelock.envs.content_hash import content_hash
from tracelock.envs.spec import read_spec

YAML = """\
    name: tiny
    channels:
      - pytorch
      - conda-forge
      - nodefaults
    platforms:
      - linux-64
    dependencies:
      - python=3.10
      - pytorch=2.5.1=py3.10_cuda11.8*
      - numpy<2
    """
HOST = "https://conda.anaconda.org"


@dataclass(frozen=True)
class Pkg:
    """One package of a tiny lock."""

    name: str
    version: str
    build: str
    channel: str = "conda-forge"
    subdir: str = "linux-64"
    needs: dict[str, str] = field(default_factory=dict)
    host: str = HOST

    @property
    def url(self) -> str:
        return f"{self.host}/{self.channel}/{self.subdir}/{self.name}-{self.version}-{self.build}.conda"

    def digest(self, algorithm: str) -> str:
        return hashlib.new(algorithm, self.url.encode()).hexdigest()


PYTHON = Pkg("python", "3.10.14", "hd12c33a_0_cpython", needs={"__glibc": ">=2.17"})
TORCH = Pkg(
    *("pytorch", "2.5.1", "py3.10_cuda11.8_cudnn9.1.0_0", "pytorch"),
    needs={"python": ">=3.10,<3.11.0a0", "mkl": ">=2018", "numpy": ""},
)
NUMPY = Pkg("numpy", "1.26.4", "py310hb13e2d6_0", needs={"python": ">=3.10,<3.11.0a0", "libblas": ">=3.9.0,<4.0a0"})
MKL = Pkg("mkl", "2023.2.0", "h84fe81f_50496")
BLAS = Pkg("libblas", "3.9.0", "16_linux64_mkl", needs={"mkl": ">=2022.1.0,<2024"})
PACKAGES = (BLAS, MKL, NUMPY, PYTHON, TORCH)


@dataclass
class Project:
    """The project and its one environment."""

    root: Path

    @property
    def spec(self) -> Path:
        return self.root / "envs" / "tiny.yaml"

    @property
    def lock(self) -> Path:
        return self.root / "envs" / "tiny.conda-lock.yml"

    @property
    def pin(self) -> Path:
        return self.root / "envs" / "tiny.linux-64.pin.txt"

    def write_spec(self, text: str) -> None:
        self.spec.parent.mkdir(parents=True, exist_ok=True)
        self.spec.write_text(textwrap.dedent(text), encoding="utf-8")

    def write_lock(self, packages: tuple[Pkg, ...] = PACKAGES, content: str | None = None) -> None:
        """Write a lock of `packages` that fits the yaml as it is now."""
        spec = read_spec(self.spec)
        document = {
            "version": 1,
            "metadata": {
                "content_hash": {"linux-64": content or content_hash(spec, "linux-64")},
                "channels": [{"url": c.text, "used_env_vars": []} for c in spec.channels if c.text != "nodefaults"],
                "platforms": ["linux-64"],
                "sources": ["tiny.yaml"],
            },
            "package": [entry(package) for package in packages],
        }
        self.lock.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")

    def write_pin(self, packages: tuple[Pkg, ...]) -> None:
        """Write a pin of `packages` by hand, in the order given."""
        content = yaml.safe_load(self.lock.read_text(encoding="utf-8"))["metadata"]["content_hash"]["linux-64"]
        lines = ["# Rendered from envs/tiny.conda-lock.yml by `tracelock env render`; do not edit."]
        lines += ["# platform: linux-64", f"# input_hash: {content}", "@EXPLICIT"]
        lines += [f"{package.url}#sha256:{package.digest('sha256')}" for package in packages]
        self.pin.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def edit(self, path: Path, old: str, new: str) -> None:
        """Replace a text that must be there."""
        text = path.read_text(encoding="utf-8")
        assert old in text, old
        path.write_text(text.replace(old, new), encoding="utf-8")


# What links first comes first; python, which everything needs, and numpy before torch, which needs it.
LINKED = (MKL, BLAS, PYTHON, NUMPY, TORCH)


def entry(package: Pkg) -> dict[str, object]:
    """Return a package as conda-lock writes it."""
    return {
        "name": package.name,
        "version": package.version,
        "manager": "conda",
        "platform": "linux-64",
        "dependencies": dict(package.needs),
        "url": package.url,
        "hash": {"md5": package.digest("md5"), "sha256": package.digest("sha256")},
        "category": "main",
        "optional": False,
    }


def make_project(root: Path) -> Project:
    """Return a project in which everything agrees."""
    project = Project(root)
    project.write_spec(YAML)
    project.write_lock()
    project.write_pin(LINKED)
    return project
