"""An analysis as the JSON document ``tracelock/analysis/1``, and back: typed in both directions.

Whoever reads a document names the dataclass that it holds (`Analysis`, or `Diagnosed` with its findings), so that
this module knows nothing of the layers above it. Keys that a later version added are passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tracelock.analysis.model import SCHEMA_VERSION, Analysis
from tracelock.errors import Problem, TracelockError
from tracelock.io import read_json, schema, write_json

KIND = "analysis"

AnalysisT = TypeVar("AnalysisT", bound=Analysis)


def encode(analysis: Analysis) -> dict[str, Any]:
    """Return the document of `analysis`: JSON types alone, the key ``schema`` first."""
    return {"schema": schema(KIND, SCHEMA_VERSION), **msgspec.to_builtins(analysis)}


def decode(document: Mapping[str, Any], kind: type[AnalysisT], where: str = "") -> AnalysisT:
    """Return the dataclass `kind` that `document` holds.

    Raises
    ------
    TracelockError
        If the schema is another one, or a value is absent or of another type; the line names its key path.
    """
    expected = schema(KIND, SCHEMA_VERSION)
    if document.get("schema") != expected:
        raise TracelockError(Problem(where, f"has schema {document.get('schema')!r}, expected {expected!r}"))
    try:
        return msgspec.convert(document, kind, strict=True)
    except msgspec.ValidationError as error:
        what = str(error).replace("`$.", "`").replace(" - at ", " at ")
        raise TracelockError(Problem(where, f"is no sound {expected}: {what}")) from None


def write(path: Path, analysis: Analysis) -> None:
    """Write the document of `analysis` to `path`, atomically and with stable bytes."""
    write_json(path, encode(analysis))


def read(path: Path, kind: type[AnalysisT]) -> AnalysisT:
    """Read the document at `path` as `kind`.

    Raises
    ------
    TracelockError
        If the file cannot be read or does not hold such a document.
    """
    return decode(read_json(path, KIND, SCHEMA_VERSION), kind, str(path))
