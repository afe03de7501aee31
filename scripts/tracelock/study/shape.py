"""Check the shape of a study file against its JSON schema and say every fault in a person's words."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

from tracelock.errors import Problem, nearest
from tracelock.study.place import ROOT
from tracelock.study.source import Source

SCHEMA_FILE = ROOT / "workflow" / "schemas" / "study.schema.json"


def shape_problems(source: Source) -> list[Problem]:
    """Return all faults in the shape of a study: unknown and missing keys, wrong types and values.

    None in the locked environment of the analysis: the driver has read the same file with its schema before.
    """
    return _faults(source, _schema())


def section_problems(source: Source, name: str) -> list[Problem]:
    """Return all faults of a file that holds one section of a study alone, such as a site's ``cluster``."""
    return _faults(source, _schema()["properties"][name])


def _schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return found


def _faults(source: Source, schema: dict[str, Any]) -> list[Problem]:
    try:
        import jsonschema
    except ImportError:  # no record of it with a hash for that environment; Snakemake brings it to every driver
        return []

    validator = jsonschema.Draft202012Validator(schema)
    errors = sorted(validator.iter_errors(source.value), key=lambda error: [str(part) for part in error.absolute_path])
    return [problem for error in errors for problem in _problems(source, error)]


def sound_part(source: Source) -> dict[str, Any] | None:
    """Return a study without what is wrong with its shape, so that the rest can be checked in the same pass.

    None where what is left says too little: without a workload, no setting can be judged.
    """
    import jsonschema

    value: dict[str, Any] = copy.deepcopy(source.value)
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))
    for error in validator.iter_errors(source.value):
        path = list(error.absolute_path)
        if error.validator == "additionalProperties":
            allowed = error.schema["properties"]
            for key in [key for key in error.instance if key not in allowed]:
                _remove(value, [*path, key])
        elif error.validator not in ("required", "oneOf"):
            _remove(value, path)
    value.setdefault("name", "study")
    value.setdefault("baseline", {})
    workload = value.get("workload")
    return value if isinstance(workload, dict) and {"build", "command"} & set(workload) else None


def _remove(value: Any, path: list[str | int]) -> None:
    """Remove a member, or the whole list in which it stands; one that an earlier fault has removed is gone."""
    last = next((number for number, part in enumerate(path) if isinstance(part, int)), len(path))
    path = path[:last]
    for part in path[:-1]:
        if not isinstance(value, dict) or part not in value:
            return
        value = value[part]
    if path and isinstance(value, dict):
        value.pop(path[-1], None)


def _problems(source: Source, error: Any) -> Iterator[Problem]:
    describe = _WORDS.get(error.validator)
    path = list(error.absolute_path)
    if describe is None:
        yield Problem(source.where(path), f"{_show(error.instance)}: {error.message}")
    else:
        yield from describe(source, path, error)


def _unknown_keys(source: Source, path: list[str | int], error: Any) -> Iterator[Problem]:
    allowed = list(error.schema["properties"])
    for key in error.instance:
        if key not in allowed:
            hint = nearest(str(key), allowed) or f"allowed: {', '.join(allowed)}"
            yield Problem(source.where([*path, str(key)]), "unknown key", hint)


def _missing_keys(source: Source, path: list[str | int], error: Any) -> Iterator[Problem]:
    key = error.message.split("'")[1]
    meaning = error.schema["properties"][key].get("description", "")
    yield Problem(source.where([*path, key]), "is missing", meaning)


def _one_of(source: Source, path: list[str | int], error: Any) -> Iterator[Problem]:
    keys = [each["required"][0] for each in error.validator_value]
    if not isinstance(error.instance, dict):
        return
    if set(keys) <= set(error.instance):
        yield Problem(source.where([*path, keys[1]]), f"stands beside {keys[0]}, expected one of the two")
    elif not set(keys) & set(error.instance):
        meaning = error.schema["properties"][keys[0]].get("description", "")
        yield Problem(source.where([*path, keys[0]]), "is missing", f"{meaning} Or {keys[1]}: a script as it is.")


def _wrong_type(source: Source, path: list[str | int], error: Any) -> Iterator[Problem]:
    expected = {"object": "a mapping", "array": "a list", "integer": "a whole number", "string": "a text"}
    wanted = expected.get(error.validator_value, f"a {error.validator_value}")
    yield Problem(source.where(path), f"is {_show(error.instance)}, expected {wanted}", _meaning(error))


def _not_allowed(source: Source, path: list[str | int], error: Any) -> Iterator[Problem]:
    allowed = [str(value) for value in error.validator_value]
    hint = nearest(str(error.instance), allowed)
    yield Problem(source.where(path), f"is {_show(error.instance)}, expected one of {', '.join(allowed)}", hint)


def _out_of_bounds(source: Source, path: list[str | int], error: Any) -> Iterator[Problem]:
    words = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "more than"}
    bound = f"{words[error.validator]} {error.validator_value}"
    yield Problem(source.where(path), f"is {_show(error.instance)}, expected {bound}", _meaning(error))


def _wrong_form(source: Source, path: list[str | int], error: Any) -> Iterator[Problem]:
    yield Problem(source.where(path), f"is {_show(error.instance)}, which has not the form expected", _meaning(error))


def _empty(source: Source, path: list[str | int], error: Any) -> Iterator[Problem]:
    yield Problem(source.where(path), "is empty, expected at least one entry", _meaning(error))


def _same_twice(source: Source, path: list[str | int], error: Any) -> Iterator[Problem]:
    yield Problem(source.where(path), f"holds a value twice: {_show(error.instance)}")


def _meaning(error: Any) -> str:
    meaning: str = error.schema.get("description", "")
    return meaning


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


_WORDS: dict[str, Callable[[Source, list[str | int], Any], Iterator[Problem]]] = {
    "additionalProperties": _unknown_keys,
    "required": _missing_keys,
    "oneOf": _one_of,
    "type": _wrong_type,
    "enum": _not_allowed,
    "minimum": _out_of_bounds,
    "maximum": _out_of_bounds,
    "exclusiveMinimum": _out_of_bounds,
    "pattern": _wrong_form,
    "minItems": _empty,
    "minLength": _empty,
    "minProperties": _empty,
    "uniqueItems": _same_twice,
}
