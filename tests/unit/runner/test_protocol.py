"""The sections of a run are declared once: the study's schema and both readers say the same of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from runner_support import make_spec

from tracelock.runner.protocol import SECTIONS, settings_of
from tracelock.runner.spec import read_spec
from tracelock.study.load import load_study
from tracelock.study.shape import SCHEMA_FILE

_TYPES = {"int": "integer", "float": "number", "bool": "boolean"}


@pytest.mark.parametrize("section", SECTIONS)
def test_the_schema_of_studies_declares_what_a_run_reads(section: str) -> None:
    declared = json.loads(SCHEMA_FILE.read_text("utf-8"))["properties"][section]["properties"]
    made: dict[str, dict[str, Any]] = {}
    for key in settings_of(section):
        made[key.name] = {"description": key.meaning, "type": _TYPES[key.kind]}
        if key.minimum is not None:  # a bound of no seconds and no bytes would leave nothing
            made[key.name]["minimum" if key.kind == "int" else "exclusiveMinimum"] = key.minimum
    assert declared == made


@pytest.mark.parametrize("section", SECTIONS)
def test_a_study_and_a_spec_that_leave_a_section_out_mean_the_same(tmp_path: Path, section: str) -> None:
    study = tmp_path / "study.yaml"
    study.write_text("name: n\nworkload: {build: 'tracelock.runner.workloads.mlp:build'}\nbaseline: {}\n")
    document = json.loads(make_spec(tmp_path).read_text("utf-8"))
    del document[section]
    spec = tmp_path / "bare.json"
    spec.write_text(json.dumps(document))
    assert getattr(load_study(study)[0], section) == getattr(read_spec(spec), section)
