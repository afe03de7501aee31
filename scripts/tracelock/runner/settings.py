"""The settings that every workload understands, and how a workload declares its own.

Standard library only: the validation of studies and the documentation read these tables, too.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tracelock.errors import Problem, TracelockError, nearest

_KIND_NAMES = {"bool": "true or false", "int": "a whole number", "float": "a number", "str": "a text"}


def shortened(value: object) -> str:
    """Return a value for a message, cut where it is long; one that nests without end is not written out first."""
    return _REPR.repr(value)


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 60
_REPR.maxlevel = 2


@dataclass(frozen=True)
class Setting:
    """One setting of a workload.

    Parameters
    ----------
    name
        The key in a study's settings and factors.
    kind
        ``bool``, ``int``, ``float`` or ``str``.
    default
        The value where a study says nothing; None stands for "leave it to PyTorch" and is then allowed, too.
    meaning
        What it does, with its unit.
    allowed
        All values that are allowed, or empty.
    minimum
        The least number allowed, or None.
    optional
        Whether None is allowed beside a default of another kind.
    """

    name: str
    kind: str
    default: bool | int | float | str | None
    meaning: str
    allowed: tuple[str, ...] = ()
    minimum: float | None = None
    optional: bool = False

    @property
    def nullable(self) -> bool:
        """Whether None is allowed."""
        return self.optional or self.default is None

    @property
    def expected(self) -> str:
        """What a value has to be, in words."""
        words = " or ".join(self.allowed) if self.allowed else _KIND_NAMES[self.kind]
        least = f" of at least {self.minimum:g}" if self.minimum is not None else ""
        return f"{words}{least}{' or null' if self.nullable else ''}"

    def fault(self, value: object) -> str:
        """Return what is wrong with `value` and what was expected, or an empty string."""
        if value is None and self.nullable:
            return ""
        if value is False and "off" in self.allowed:
            return "is false, expected a text: write 'off' in quotes, since YAML reads a bare off as false"
        if not self._has_kind(value):
            return f"is {shortened(value)}, expected {self.expected}"
        if self.allowed and value not in self.allowed:
            return f"is {shortened(value)}, expected {self.expected}"
        if self.minimum is not None and isinstance(value, (int, float)) and not value >= self.minimum:
            return f"is {shortened(value)}, expected {self.expected}"
        return ""

    def _has_kind(self, value: object) -> bool:
        if self.kind == "bool":
            return isinstance(value, bool)
        if self.kind == "int":
            return isinstance(value, int) and not isinstance(value, bool)
        if self.kind == "float":
            # JSON has neither infinity nor not-a-number.
            return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        return isinstance(value, str)


STANDARD: tuple[Setting, ...] = (
    Setting("batch_size", "int", 32, "samples in a batch", minimum=1),
    Setting("num_workers", "int", 0, "processes that load data; 0 loads in the training process", minimum=0),
    Setting("pin_memory", "bool", False, "batches in page-locked host memory; without effect where there is no GPU"),
    Setting("persistent_workers", "bool", False, "keep the workers from one epoch to the next"),
    Setting("prefetch_factor", "int", None, "batches that each worker loads ahead (PyTorch: 2)", minimum=1),
    Setting("drop_last", "bool", True, "leave out a last batch that is not full"),
    Setting("non_blocking", "bool", False, "copy batches to the GPU without waiting for the copy"),
    Setting("amp", "str", "off", "automatic mixed precision", allowed=("off", "bf16", "fp16")),
    Setting("compile", "bool", False, "torch.compile the model; it happens in the warm-up"),
    Setting("channels_last", "bool", False, "images and convolutions in the memory format channels_last"),
    Setting(
        "matmul_precision",
        "str",
        "highest",
        "torch.set_float32_matmul_precision",
        allowed=("highest", "high", "medium"),
    ),
    Setting("optimizer_foreach", "bool", None, "the optimizer's multi-tensor path"),
    Setting("optimizer_fused", "bool", None, "the optimizer's fused path"),
    Setting(
        "threads", "int", None, "threads of one operator on the CPU; null: every core the process may use", minimum=1
    ),
    Setting("cudnn_benchmark", "bool", False, "let cuDNN measure and choose its algorithms"),
    Setting("cuda_graph", "bool", False, "forward and backward pass of the model as CUDA graphs; needs a GPU"),
)


def table(own: Iterable[Setting] = ()) -> dict[str, Setting]:
    """Return all settings by name; one of a workload's `own` replaces the standard one of its name."""
    return {setting.name: setting for setting in (*STANDARD, *own)}


def check(given: Mapping[str, object], own: Iterable[Setting] | None = (), where: str = "settings") -> list[Problem]:
    """Return everything that is wrong with `given`: unknown names, wrong kinds, values that exclude each other.

    Parameters
    ----------
    given
        Settings by name; those that are left out have their defaults.
    own
        What the workload adds; None if that is not known, so that no name can be called unknown.
    where
        The place that problems name: file and key path.
    """
    known = table(own or ())
    problems = []
    for name, value in given.items():
        if name in known:
            fault = known[name].fault(value)
            problems += [Problem(f"{where}.{name}", fault)] if fault else []
        elif own is not None:
            hint = nearest(name, list(known)) or f"known: {', '.join(known)}"
            problems.append(Problem(f"{where}.{name}", "is not a setting of this workload", hint))
    return problems or _contradictions({**defaults(own or ()), **given}, where)


def _contradictions(settings: Mapping[str, Any], where: str) -> list[Problem]:
    """Return the problems of settings that are right one by one and cannot be had together."""
    if settings["num_workers"]:
        return []
    hint = "set num_workers to 1 or more, or leave it out"
    wrong = [name for name in ("persistent_workers", "prefetch_factor") if settings[name]]
    return [Problem(f"{where}.{name}", f"is {settings[name]!r}, but num_workers is 0", hint) for name in wrong]


def defaults(own: Iterable[Setting] = ()) -> dict[str, Any]:
    """Return the default of every setting by name."""
    return {name: setting.default for name, setting in table(own).items()}


def resolve(given: Mapping[str, object], own: Iterable[Setting] | None = (), where: str = "settings") -> dict[str, Any]:
    """Return `given` with the defaults of all that it leaves out.

    Raises
    ------
    TracelockError
        With every problem that `check` finds.
    """
    problems = check(given, own, where)
    if problems:
        raise TracelockError(problems)
    return {**defaults(own or ()), **given}


def as_markdown(settings: Iterable[Setting]) -> str:
    """Return a table of settings for the documentation."""
    rows = [
        f"| `{setting.name}` | {_shown(setting)} | {setting.expected} | {setting.meaning} |" for setting in settings
    ]
    return "\n".join(["| setting | default | allowed | meaning |", "| --- | --- | --- | --- |", *rows]) + "\n"


def _shown(setting: Setting) -> str:
    """Return a default as YAML writes it."""
    return setting.default if isinstance(setting.default, str) else json.dumps(setting.default)


class Settings(Mapping[str, Any]):
    """The settings of a run, as a workload sees them; it remembers which ones were read.

    A variant that sets ``amp`` for a workload that never looks at ``amp`` measures nothing; the runner says so.
    Besides the settings it holds the attributes ``device`` (a torch device's name) and ``seed``.
    """

    def __init__(self, values: Mapping[str, Any], device: str = "cpu", seed: int = 0) -> None:
        self._values = dict(values)
        self.device = device
        self.seed = seed
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            raise TracelockError(Problem("settings", f"has no {name!r}", nearest(name, list(self._values))))
        self.read.add(name)
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def plain(self) -> dict[str, Any]:
        """Return all settings by name, without counting that as reading them."""
        return dict(self._values)

    def unread(self, own: Iterable[Setting] = ()) -> list[str]:
        """Return the settings that differ from their default and that nothing has looked at."""
        usual = defaults(own)
        return sorted(
            name for name, value in self._values.items() if value != usual.get(name) and name not in self.read
        )
