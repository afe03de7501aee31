"""What ``tracelock profile`` says at the end: which steps were seen, how long they took, and the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.text import Text

from tracelock.cli import _format as fmt
from tracelock.cli._script_files import Explained
from tracelock.runner.command.collect import Process

_SOURCES = {"optimizer": "optimizer.step()", "function": "calls of --step", "profiler": "its own profiler.step()"}
_UNEXPLAINED = 0.10  # of the step: less than that is the loop's own bookkeeping


def show_run(explained: Sequence[Explained], exit_code: int, folder: Path, page: Path | None, console: Console) -> None:
    """Print the answer of each process; several ranks as one job."""
    console.print()
    for each in explained:
        _show_steps(each, exit_code, console)
    told = [each.found for each in explained if each.found is not None]
    if len(told) > 1 and explained[0].ranks is not None:
        from tracelock.cli._show import show_ranks

        show_ranks(explained[0].ranks, told, console, 5)
    elif told:
        from tracelock.cli._show import show_answer

        show_answer(told[0], console)
    for each in explained:
        if each.found is None:
            console.print(Text(f"No trace: {each.why}.", "bold"))
    console.print()
    console.print(Text(f"Files: {folder}", "dim"))
    if page is not None:
        console.print(Text(f"Page: {page}", "dim"), soft_wrap=True)
    more = " ".join(str(each.folder / "trace.json.gz") for each in explained if each.found is not None)
    if more:
        console.print(Text(f"All tables: tracelock analyze {more}", "dim"), soft_wrap=True)


def _show_steps(each: Explained, exit_code: int, console: Console) -> None:
    script, timed = each.run["script"], each.run["timed"]
    rank = f"rank {script['rank']}: " if script["world_size"] > 1 else ""
    ended = f", exit code {exit_code}" if exit_code else ""
    source = _SOURCES[script["source"]]
    console.print(Text(f"{rank}{fmt.plural(script['steps'], 'step')} by {source}{ended}", "bold"))
    for line in _lines(each.run, timed):
        console.print(Text(f"  {line}"))
    for warning in each.run["warnings"]:
        console.print(Text(f"  ! {warning}", "yellow"))


def _lines(run: Mapping[str, Any], timed: Mapping[str, Any]) -> Iterator[str]:
    times = timed["step_us"]
    text = f"timed {fmt.plural(len(times), 'step')} after {run['warmup']['steps']} of warm-up, without the profiler: "
    text += f"median {fmt.time(median(times))}"
    if len(times) > 1:
        text += f" ({fmt.time(min(times))} to {fmt.time(max(times))})"
    if timed["throughput_per_s"] is not None:
        text += f", {timed['throughput_per_s']:,.0f} samples/s"
    yield text
    loading = sum(timed["loading_us"]) / timed["duration_us"]
    yield f"waiting for DataLoaders: {fmt.share(loading)} of it"
    unexplained = unexplained_share(run)
    if unexplained is not None and unexplained >= _UNEXPLAINED:
        yield (
            f"between the optimizer and the next forward pass: another {fmt.share(unexplained)} that no DataLoader "
            "explains; if the script loads or makes its batches itself, this is where"
        )


def unexplained_share(run: Mapping[str, Any]) -> float | None:
    """Return the part of a recorded step before its first forward pass that no DataLoader explains, or None."""
    window = run["profiled"]
    before, loading, steps = window["before_forward_us"], window["loading_us"], window["step_us"]
    if not steps or len(before) != len(steps):
        return None
    between = sum(max(0.0, all_ - own) for all_, own in zip(before, loading, strict=True))
    return float(between / sum(steps))


def show_nothing(found: Sequence[Process], options: Mapping[str, Any], console: Console) -> None:
    """Say why there is nothing to explain, and what to do about it."""
    steps = max((process.steps for process in found), default=0)
    console.print()
    if not found:
        console.print(Text("No step was seen: no optimizer of PyTorch made one in any Python process.", "bold"))
        for hint in _hints_without_steps(options):
            console.print(Text(f"  - {hint}"))
        return
    head = f"The script made {fmt.plural(steps, 'step')}, and ended before any could be timed."
    console.print(Text(head, "bold"))
    console.print(Text("  - let it make more steps, or ask for less: --warmup 1 --timed 3 --active 1"))


def _hints_without_steps(options: Mapping[str, Any]) -> Iterator[str]:
    if options.get("step"):
        yield f"no function {options['step']} has returned; in the script itself it is __main__:function"
    else:
        yield "name the function that is one step: tracelock profile --step __main__:train_step -- ..."
        yield "a script that only predicts has one, too: --step __main__:predict"
    yield "python -I and -E do not look at PYTHONPATH, by which its processes are reached"
    yield "a step that torch.compile has swallowed whole shows no optimizer: name the function around it"
