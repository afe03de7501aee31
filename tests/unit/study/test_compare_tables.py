"""The tables of a comparison, and the page that documents their columns."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from study_tree import StudyTree, Variant, demo_tree

from tracelock.study.compare import compare
from tracelock.study.explain import thin_out
from tracelock.study.tables import TABLES, document_tables, write_tables


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_the_page_documents_the_columns(root: Path) -> None:
    page = (root / "docs" / "tables.md").read_text(encoding="utf-8")
    assert page == document_tables(), "make docs"
    for table in TABLES:
        part = page.split(f"## {table.name}.csv")[1].split("\n## ")[0]
        assert [line.split("`")[1] for line in part.splitlines() if line.startswith("| `")] == [
            column.name for column in table.columns
        ]


def test_no_two_columns_of_a_table_share_a_name_and_all_have_a_meaning() -> None:
    for table in TABLES:
        names = [column.name for column in table.columns]
        assert len(set(names)) == len(names)
        assert all(column.meaning and "|" not in column.meaning for column in table.columns)


def test_tables_hold_the_comparison(tmp_path: Path) -> None:
    lost = (("b", "batch_size=32,num_workers=1,persistent_workers=true", 3),)
    tree = demo_tree(environments=("a", "b"), unlocked={"b": True}, lost=lost)
    found = compare(tree.write(tmp_path))
    paths = write_tables(found, tmp_path / "tables")
    assert [path.name for path in paths] == [f"{table.name}.csv" for table in TABLES]
    runs, variants, comparisons, operators, findings = map(rows, paths)
    assert len(runs) == 2 * 10 * 3
    assert [row["status"] for row in runs].count("missing") == 1
    assert len(variants) == 20
    assert len(comparisons) == 9 + 9 + 10
    assert len(operators) == 20 * 4
    assert len(findings) == 20
    for table in (runs, variants, operators, findings):
        assert {(row["environment"], row["unlocked"]) for row in table} == {("a", "false"), ("b", "true")}
    cases = {case.key: case for case in found.cases}
    for row in variants:
        case = cases[row["environment"], row["variant"]]
        assert float(row["step_us"]) == case.step.value
        assert float(row["throughput_per_s_low"]) == case.throughput.low
        assert row["runs"] == str(case.runs)
        assert (row["ratio"] == "") == case.baseline
    assert [row["remedy"] for row in variants if row["baseline"] == "true"] == ["num_workers=2"] * 2


def test_what_is_not_known_is_empty_and_never_zero(tmp_path: Path) -> None:
    variants = [Variant({"num_workers": n}, samples_per_step=None, loading=None) for n in (0, 1)]
    found = compare(StudyTree(variants, repeats=1).write(tmp_path))
    write_tables(found, tmp_path)
    for row in rows(tmp_path / "variants.csv"):
        assert {row[name] for name in ("throughput_per_s", "loading_share", "peak_allocated_bytes", "verdict")} == {""}
    assert {row["p_value"] for row in rows(tmp_path / "comparisons.csv")} == {""}


def test_texts_with_commas_quotes_and_line_ends_survive(tmp_path: Path) -> None:
    name = 'a,"b"\nc'
    found = compare(StudyTree([Variant({})], operators=(name,)).write(tmp_path))
    write_tables(found, tmp_path)
    assert [row["operator"] for row in rows(tmp_path / "operators.csv")] == [name]


def test_operators_are_per_step(tmp_path: Path) -> None:
    found = compare(StudyTree([Variant({}, step_us=1000.0, scatter=0.0, loading=0.0)]).write(tmp_path))
    first, second = found.operators[:2]
    assert (first.name, first.calls_per_step, second.calls_per_step) == ("aten::conv2d", 1.0, 2.0)
    assert first.self_cpu_us == pytest.approx(108.0)  # a tenth of the profiled step, which takes 8 % longer
    assert second.self_cpu_us == pytest.approx(54.0)
    assert first.self_device_us is None


@pytest.mark.parametrize("count", [0, 1, 5, 240, 241, 5000])
def test_thinning_keeps_ends_and_extremes(count: int) -> None:
    values = [((n * 7919) % 1009) / 7 for n in range(count)]
    kept = thin_out(values, 240)
    assert kept == sorted(set(kept))
    assert len(kept) <= max(240, 2)
    if count:
        assert (kept[0], kept[-1]) == (0, count - 1)
        assert max(values[n] for n in kept) == max(values)
        assert min(values[n] for n in kept) == min(values)
