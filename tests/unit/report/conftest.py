"""Comparisons that the tests of the report start from."""

from __future__ import annotations

import pytest
from study_tree import StudyTree, Variant, demo_tree

from tracelock.study.compare import compare
from tracelock.study.comparison import Comparison

HOSTILE = "<script>alert('x')</script>$a_b$&amp;\"><img src=x onerror=alert(1)>"


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Return a study of ten variants."""
    return compare(demo_tree().write(tmp_path_factory.mktemp("demo")))


@pytest.fixture(scope="session")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Return a study on two GPUs in two environments, one of them unlocked, with a run missing."""
    lost = (("b", "batch_size=32,num_workers=1,persistent_workers=true", 3),)
    tree = demo_tree(environments=("a", "b"), unlocked={"b": True}, gpus=2, lost=lost)
    return compare(tree.write(tmp_path_factory.mktemp("gpus")))


@pytest.fixture(scope="session")
def single(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Return a study of one run that tells as little as a run can."""
    tree = StudyTree([Variant({}, samples_per_step=None, loading=None)], repeats=1, unlocked={"default": None})
    folder = tree.write(tmp_path_factory.mktemp("single"))
    (folder / "runs" / "default" / "base" / "1" / "analysis.json").unlink()
    return compare(folder)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Return a study whose every name is markup."""
    variants = [
        Variant({"mode": HOSTILE}, loading=0.5, code=HOSTILE),
        Variant({"mode": "plain"}, step_us=50_000, loading=0.01),
    ]
    tree = StudyTree(variants, experiment=HOSTILE, operators=(HOSTILE, "aten::mm"))
    return compare(tree.write(tmp_path_factory.mktemp("hostile")))


@pytest.fixture(scope="session")
def forty(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Return a study of forty variants with values that are long."""
    variants = [
        Variant(
            {"num_workers": n % 5, "root": f"/data/a/long/way/to/images-{n // 5}/of/this"}, step_us=1000.0 * (n + 9)
        )
        for n in range(40)
    ]
    return compare(StudyTree(variants, repeats=2).write(tmp_path_factory.mktemp("forty")))
