"""The tables of a page: columns with what they hold, rows as plain values, and what is missing from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracelock.analysis.modules import NO_MODULES, Module
from tracelock.analysis.parts import IDLE_LABELS
from tracelock.analysis.places import is_users
from tracelock.analysis.tensor_cores import is_eligible
from tracelock.diagnosis import Diagnosed
from tracelock.report.trace.words import clipped

# What a column holds, which says how it is shown and sorted.
Column = tuple[str, str]  # heading, "text" | "code" | "stack" | "time" | "count" | "bytes" | "share" | "flag" | "rate"
STEP_COLUMNS: tuple[Column, ...] = (("step", "text"), ("duration", "time"))


@dataclass(frozen=True)
class Table:
    """Rows under headings. `label` names one way of grouping where a view has several."""

    label: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    note: str = ""  # what to know of these figures, or why there are none
    left_out: int = 0  # rows that are not listed
    tree: Sequence[int | None] = ()  # of each row the place of the row around it

    def document(self) -> dict[str, Any]:
        """Return it as the page has it: texts cut to what a page can bear, times to the nanosecond."""
        found: dict[str, Any] = {
            "label": self.label,
            "columns": [list(column) for column in self.columns],
            "rows": [[_value(value) for value in row] for row in self.rows],
        }
        found |= {"note": self.note} if self.note else {}
        found |= {"left": self.left_out} if self.left_out else {}
        return found | ({"tree": list(self.tree)} if self.tree else {})


def _value(value: Any) -> Any:
    if isinstance(value, str):
        return clipped(value)
    return round(value, 4) if isinstance(value, float) else value


_COSTS: tuple[Column, ...] = (
    ("calls", "count"),
    ("mean on the host", "time"),
    ("self host", "time"),
    ("total host", "time"),
    ("self device", "time"),
    ("total device", "time"),
)


def operator_views(found: Diagnosed, modules: Sequence[Module]) -> list[Table]:
    """Return the operators by name, input shapes, call stack and module."""
    return [
        _by_name(found),
        _grouped(found, "input shapes", "shapes", "operators_by_shape"),
        _grouped(found, "call stack", "stack", "operators_by_stack"),
        modules_table(modules),
    ]


def _costs(each: Any) -> tuple[Any, ...]:
    mean = each.total_cpu_us / each.calls if each.calls else None
    return (each.calls, mean, each.self_cpu_us, each.total_cpu_us, each.self_device_us, each.total_device_us)


def _by_name(found: Diagnosed) -> Table:
    cores, lines = _tensor_core_time(found), _lines(found)
    columns = (
        ("operator", "code"), *_COSTS, ("calls a step", "count"), ("allocated", "bytes"),
        ("tensor cores", "share"), ("line of your code", "code"),
    )  # fmt: skip
    rows = [
        (
            each.name,
            *_costs(each),
            each.calls_per_step,
            each.allocated_bytes,
            cores.get(each.name),
            lines.get(each.name),
        )
        for each in found.operators
    ]
    note = "Tensor cores: the part of the device time of operators that could use them. " if cores else ""
    return Table("name", columns, rows, note + found.unknown.get("operators", ""))


def _tensor_core_time(found: Diagnosed) -> dict[str, float]:
    """Return the part of each eligible operator's kernel time that used tensor cores, as far as names tell."""
    used: dict[str, float] = {}
    whole: dict[str, float] = {}
    told = {kernel.name: kernel.tensor_cores for kernel in found.kernels}
    for each in found.kernels_by_operator:
        if each.operator and is_eligible(each.operator) and told.get(each.kernel) is not None:
            whole[each.operator] = whole.get(each.operator, 0.0) + each.total_us
            used[each.operator] = used.get(each.operator, 0.0) + (each.total_us if told[each.kernel] else 0.0)
    return {name: used[name] / total for name, total in whole.items() if total}


def _lines(found: Diagnosed) -> dict[str, str]:
    """Return the user's line that most time of an operator comes from; stacks are listed by their cost."""
    lines: dict[str, str] = {}
    for each in found.operators_by_stack:
        if each.name not in lines and (line := users_line(each.stack)):
            lines[each.name] = line
    return lines


def users_line(stack: str | None) -> str | None:
    """Return the innermost frame of a stack that is the user's own code."""
    return next((frame for frame in (stack or "").split("\n") if is_users(frame)), None)


def _grouped(found: Diagnosed, label: str, field: str, table: str) -> Table:
    line: tuple[Column, ...] = (("line of your code", "code"),) if field == "stack" else ()
    columns = (("operator", "code"), *line, (label, "stack" if field == "stack" else "code"), *_COSTS)
    rows = [
        (each.name, *((users_line(each.stack),) if line else ()), getattr(each, field), *_costs(each))
        for each in getattr(found, table)
    ]
    return Table(label, columns, rows, _why(found, table), found.left_out.get(table, 0))


def _why(found: Diagnosed, table: str) -> str:
    return found.unknown.get(table, "")


def modules_table(modules: Sequence[Module]) -> Table:
    """Return the modules as a tree."""
    columns: tuple[Column, ...] = (
        ("module", "code"), ("calls", "count"), ("forward host", "time"), ("own forward host", "time"),
        ("forward device", "time"), ("backward host", "time"), ("backward device", "time"),
        ("allocated forward", "bytes"),
    )  # fmt: skip
    rows = [
        (each.name, each.calls, each.forward_us, each.own_forward_us, each.forward_device_us, each.backward_us,
         each.backward_device_us, each.allocated_bytes)
        for each in modules
    ]  # fmt: skip
    note = "" if modules else f"{NO_MODULES}."
    return Table("module", columns, rows, note, tree=[each.parent for each in modules])


def kernel_views(found: Diagnosed) -> list[Table]:
    """Return the kernels by name, and by the operator that launched them."""
    whole = sum(each.total_us for each in found.kernels)
    named = [
        (each.name, each.calls, each.total_us, each.total_us / whole if whole else None, each.mean_us, each.min_us,
         each.max_us, each.tensor_cores)
        for each in found.kernels
    ]  # fmt: skip
    columns: tuple[Column, ...] = (
        ("kernel", "code"), ("calls", "count"), ("total", "time"), ("share", "share"), ("mean", "time"),
        ("shortest", "time"), ("longest", "time"), ("tensor cores", "flag"),
    )  # fmt: skip
    owned = [
        (each.kernel, each.operator, each.calls, each.total_us, each.total_us / whole if whole else None,
         each.total_us / each.calls)
        for each in found.kernels_by_operator
    ]  # fmt: skip
    by_operator: tuple[Column, ...] = (
        ("kernel", "code"), ("launched by", "code"), ("calls", "count"), ("total", "time"), ("share", "share"),
        ("mean", "time"),
    )  # fmt: skip
    missing = "" if found.kernels else found.unknown.get("kernels", "No kernels were recorded.")
    left = found.left_out.get("kernels_by_operator", 0)
    return [Table("name", columns, named, missing), Table("operator", by_operator, owned, missing, left)]


def plain(label: str, columns: Sequence[Column], rows: Iterable[Sequence[Any]], note: str = "") -> Table:
    """Return a table of rows that are at hand."""
    return Table(label, columns, list(rows), note)


def transfers(found: Diagnosed) -> Table:
    """Return copies and sets by direction and kind of host memory."""
    columns: tuple[Column, ...] = (
        ("direction", "text"), ("host memory", "text"), ("calls", "count"), ("bytes", "bytes"), ("time", "time"),
        ("mean", "time"), ("bandwidth", "rate"),
    )  # fmt: skip
    rows = [
        (each.kind, each.memory, each.calls, each.bytes, each.total_us, each.total_us / each.calls,
         None if each.bandwidth_gb_per_s is None else each.bandwidth_gb_per_s * 1e9)
        for each in found.transfers
    ]  # fmt: skip
    return Table("transfers", columns, rows, "" if rows else found.unknown.get("transfers", "No copies were recorded."))


def launches(found: Diagnosed) -> Table:
    """Return launch calls and their delays, a row a device."""
    columns: tuple[Column, ...] = (
        ("device", "count"), ("launched rows", "count"), ("launch not known", "count"), ("by graphs", "count"),
        ("mean call", "time"), ("median delay", "time"), ("p95 delay", "time"), ("longest delay", "time"),
        ("price of a launch", "time"), ("shorter than their call", "count"), ("longest queue", "count"),
    )  # fmt: skip
    rows = [
        (each.device, each.linked, each.unlinked, each.graph_rows, each.call_us, each.delay_median_us,
         each.delay_p95_us, each.delay_max_us, each.free_start_us, each.short,
         max((queue.longest for queue in each.queues), default=None))
        for each in found.launches
    ]  # fmt: skip
    note = "Delay: from the end of the launch call to the start of its work. Price of a launch: the median delay of "
    note += "work that found its stream free."
    return Table("launches", columns, rows, note if rows else "No launch is linked to device work in this trace.")


def collectives(found: Diagnosed) -> Table:
    """Return the collectives of the trace, a row a kind of call."""
    columns: tuple[Column, ...] = (
        ("collective", "code"), ("data type", "text"), ("group", "count"), ("device", "count"), ("calls", "count"),
        ("bytes", "bytes"), ("total", "time"), ("shortest", "time"), ("longest", "time"), ("bus bandwidth", "rate"),
    )  # fmt: skip
    rows = [
        (each.name, each.dtype, each.group_size, part.device if part.device >= 0 else None, each.calls, each.bytes,
         each.total_us, each.min_us, each.max_us, each.bus_bandwidth)
        for part in found.collectives
        for each in part.items
    ]  # fmt: skip
    return Table("collectives", columns, rows, "" if rows else "No collectives were recorded.")


def steps(found: Diagnosed, words: Mapping[str, str]) -> Table:
    """Return the steps with their exclusive parts."""
    columns = (*STEP_COLUMNS, *((word, "time") for word in words.values()), ("complete", "flag"))
    rows = [
        (each.name, each.duration_us, *(getattr(each.breakdown_us, name) for name in words), each.complete)
        for each in found.steps
    ]
    return Table("steps", columns, rows)


def threads(found: Diagnosed) -> Table:
    """Return the host threads over the window of all steps."""
    columns: tuple[Column, ...] = (
        ("thread", "code"),
        ("role", "text"),
        ("busy", "time"),
        ("share", "share"),
        ("operators", "count"),
    )
    items = found.threads.items if found.threads else ()
    rows = [(each.name, each.role, each.busy_us, each.share, each.operators) for each in items]
    return Table("threads", columns, rows)


def idle(found: Diagnosed) -> Table:
    """Return why each device was idle, and of the host's part what it ran."""
    columns: tuple[Column, ...] = (("device", "count"), ("cause", "code"), ("time", "time"), ("of idle", "share"))
    rows: list[tuple[Any, ...]] = []
    for gpu in found.gpus:
        parts = vars(gpu.idle_causes_us) if gpu.idle_causes_us is not None else {}
        rows += [(gpu.id, IDLE_LABELS[name], us, us / gpu.idle_us) for name, us in parts.items() if us and gpu.idle_us]
        rows += [(gpu.id, f"host: {each.name}", each.time_us, each.time_us / gpu.idle_us) for each in gpu.host_idle]
    note = "Rows that begin with “host:” are parts of “waits for host code”, by the innermost call that ran."
    return Table("idle", columns, rows, note if rows else found.unknown.get("gpus", "No device work was recorded."))
