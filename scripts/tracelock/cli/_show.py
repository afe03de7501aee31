"""The answer and the figures of a trace, for a person at a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from tracelock.analysis.hints import NO_DEVICE_ROWS
from tracelock.analysis.model import Gpu, TraceSection
from tracelock.analysis.parts import IDLE_HEADS
from tracelock.analysis.ranks import Ranks
from tracelock.cli import _format as fmt
from tracelock.cli._grid import grid
from tracelock.cli._tables import sections
from tracelock.diagnosis import Diagnosed, Finding
from tracelock.trace.tally import DOUBTS

STYLES = {"critical": "bold red", "warning": "yellow", "info": "green"}


def show(found: Diagnosed, console: Console, top: int) -> None:
    """Print the answer, and then the tables with `top` rows each."""
    show_answer(found, console)
    for title, table in sections(found, top):
        _section(console, title, table)


def show_answer(found: Diagnosed, console: Console) -> None:
    """Print which trace it is, the verdict, the figures that it rests on, and what to change."""
    trace = found.trace
    console.print(Text.assemble((trace.file, "bold"), "  ", (" · ".join(_facts(found)), "dim")), soft_wrap=True)
    for line in _doubts(trace):
        console.print(Text(line, "bold red"))
    console.print()
    main = found.findings[0].severity if found.findings else "info"
    console.print(Text(found.verdict, STYLES[main]))
    console.print()
    for name, line in _headlines(found):
        console.print(_hanging(f"{name:<8}", line))
    for number, finding in enumerate(found.findings, 1):
        console.print()
        _show_finding(console, number, finding, found.verdict)


def show_ranks(ranks: Ranks, found: Sequence[Diagnosed], console: Console, top: int) -> None:
    """Print several ranks as one job, and then the answer of each."""
    from tracelock.cli._rank_tables import rank_sections, rank_verdict

    console.print(Text(rank_verdict(ranks), "bold"))
    for title, table in rank_sections(ranks, top):
        _section(console, title, table)
    rows = [(Path(each.trace.file).name, each.verdict) for each in found]
    _section(console, "Each rank by itself", grid(("", ""), rows, folded=(1,)))
    console.print()
    console.print(Text("All tables of a rank: tracelock analyze FILE", "dim"))


def _section(console: Console, title: str, table: RenderableType) -> None:
    console.print()
    console.print(Text(title, "bold"))
    console.print(Padding(table, (0, 0, 0, 2), expand=False))


def _hanging(head: str, text: str, style: str = "") -> RenderableType:
    """Return `text` behind `head`, its further lines set in."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(head, style), Text(text, style))
    return grid


def _facts(found: Diagnosed) -> Iterator[str]:
    trace = found.trace
    if trace.torch_version:
        yield f"torch {trace.torch_version}"
    if trace.rank is not None:
        yield f"rank {trace.rank}" + (f" of {trace.world_size}" if trace.world_size else "")
    used = {gpu.id for gpu in found.gpus}
    yield from dict.fromkeys(device.name for device in trace.devices if device.id in used and device.name)
    yield fmt.plural(found.step.count, "step") if found.step.source == "ProfilerStep" else "no steps marked"
    yield fmt.plural(trace.events, "event")


def _doubts(trace: TraceSection) -> Iterator[str]:
    if trace.only_step:
        yield f"{trace.only_step} alone"
    if doubt := DOUBTS.get(trace.quality):
        yield f"{doubt}, see the warnings at the end."


def _headlines(found: Diagnosed) -> Iterator[tuple[str, str]]:
    step = found.step
    if step.mean_us is not None:
        yield "step" if step.source == "ProfilerStep" else "trace", _step_line(found)
    for gpu in found.gpus:
        yield f"GPU {gpu.id}", _gpu_line(gpu)
    if not found.gpus and found.threads is not None:
        main = found.threads.main_us
        parts = {
            name: getattr(main, name) for name in ("operators", "dataloader", "communication", "backward", "other")
        }
        whole = found.threads.window_us
        told = ", ".join(f"{name} {fmt.share(value / whole)}" for name, value in parts.items() if value >= whole / 1000)
        yield "main", f"{_without_gpu(found)}; the main thread: {told}"


def _without_gpu(found: Diagnosed) -> str:
    launched = sum(each.calls for each in found.runtime if "Launch" in each.name)
    if launched:
        return f"{fmt.plural(launched, 'launch')} of GPU work, but the work itself was not recorded"
    if any(warning.code == NO_DEVICE_ROWS for warning in found.trace.warnings):
        return "memory of an accelerator was recorded, its work was not"
    return "no accelerator in this trace"


def _step_line(found: Diagnosed) -> str:
    step = found.step
    lengths = [each.duration_us for each in found.steps if each.complete]
    text = fmt.time(step.mean_us)
    if len(lengths) > 1:
        text += f" on average ({fmt.time(min(lengths))} to {fmt.time(max(lengths))})"
    if step.source != "ProfilerStep":
        text += ", all of it: no steps are marked (prof.step() marks them)"
    if step.incomplete:
        text += f"; {fmt.plural(step.incomplete, 'step')} cut off by the end of the recording left out"
    return text


def _gpu_line(gpu: Gpu) -> str:
    text = f"{fmt.share(gpu.utilization)} of the time in kernels"
    window = gpu.window_us or gpu.span_us
    if window and gpu.idle_us:
        text += f"; idle {fmt.share(gpu.idle_us / window)}"
    causes = gpu.idle_causes_us
    if causes is not None and gpu.idle_us:
        named = sorted(((value, name) for name, value in vars(causes).items()), reverse=True)
        told = [
            f"{IDLE_HEADS[name]} {fmt.share(value / gpu.idle_us)}" for value, name in named if value > gpu.idle_us / 20
        ]
        text += f", of that {', '.join(told)}"
    if window and window - gpu.span_us > window / 20:
        text += f"; before its first and after its last work {fmt.share(1 - gpu.span_us / window)}"
    return text


def _show_finding(console: Console, number: int, finding: Finding, verdict: str) -> None:
    facts = [f"confidence {finding.confidence}"]
    if finding.severity != "info":
        facts.insert(0, finding.severity)
    if finding.share_of_step is not None:
        facts.append(f"{fmt.share(finding.share_of_step)} of the step")
    if finding.gain_at_most is not None:
        facts.append(f"saves at most {fmt.share(finding.gain_at_most)}")
    title = "" if finding.title in verdict else f"{finding.title}: "
    console.print(_hanging(f"{number}.", f"{title}{', '.join(facts)}", STYLES[finding.severity]))
    for evidence in finding.evidence:
        console.print(Padding(_hanging("-", evidence.text), (0, 0, 0, 3), expand=False))
    for remedy in finding.remedies:
        change = ", ".join(f"{name}={_value(value)}" for name, value in remedy.settings.items()) or remedy.code
        console.print(Padding(_hanging("→", f"{change}: {remedy.expect}", "green"), (0, 0, 0, 3), expand=False))


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
