"""A batch is put together from many small pieces by an operator a piece."""

from __future__ import annotations

from collections.abc import Sequence

from tracelock.analysis.costs import TraceRow
from tracelock.analysis.sections import LoadingOperator
from tracelock.diagnosis import loading
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import at, of_step, percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule
from tracelock.diagnosis.rules import dataloader_bound
from tracelock.diagnosis.where import rows_of

BY_PIECES = ("aten::stack", "aten::cat")  # what collate functions call; the others only prepare for them


def examine(case: Case) -> Cause | None:
    """Return the cause where hundreds of small operators inside the loader are ``collate_share`` of its time."""
    batches = case.analysis.loading
    if batches is None or not batches.calls or not batches.wait_us:
        return None
    small = [row for row in batches.operators if row.self_us <= case.limits.collate_call_us * row.calls]
    calls = sum(row.calls for row in small) / batches.calls
    share = min(1.0, sum(row.self_us for row in small) / batches.wait_us)
    if calls < case.limits.repeated_calls or share < case.limits.collate_share:
        return None
    pieces = Removal(host=loading.likely(case).host * share)
    if case.gain(Removal(host=loading.wait_us(case))) < case.limits.min_gain:
        return None
    main = _main(small)
    if main.name not in BY_PIECES or main.calls < case.limits.repeated_calls * batches.calls:
        return None  # small operators of the samples: PyTorch's own collate stacks once for each tensor
    rows = _rows(case, main.name)
    advice = "put the pieces together by a single torch.cat or torch.stack in collate_fn; index whole tensors, not rows"
    return Cause(
        title=f"Batches are put together piece by piece: {main.calls / batches.calls:,.0f} calls of {main.name} "
        f"a batch",
        removal=loading.removal(case),  # the Python between the pieces goes with them
        likely=pieces,
        share=case.share(pieces.host),
        evidence=(
            Evidence(
                f"{calls:,.0f} small operators a batch: {percent(share)} of the loader's time",
                share,
                "share of loading",
                case.limits.collate_share,
            ),
            *(_counted(row, batches.calls) for row in small[:3]),
            of_step(case, "in the loader", loading.wait_us(case), rows),
        ),
        remedies=(Remedy({}, "one call instead of hundreds", f"{advice}{at(rows)}"), *dataloader_bound.workers(case)),
    )


def _main(small: Sequence[LoadingOperator]) -> LoadingOperator:
    """Return the operator to name: the one that puts pieces together, if it is called often enough to be meant."""
    most = max(small, key=lambda row: row.calls)
    pieces = [row for row in small if row.name in BY_PIECES and row.calls * 100 >= most.calls]
    return max(pieces, key=lambda row: row.self_us, default=most)


def _counted(row: LoadingOperator, batches: int) -> Evidence:
    text = f"{row.name}: {row.calls / batches:,.0f} calls a batch, {row.self_us / row.calls:,.1f} µs each"
    return Evidence(text, row.self_us / batches, "µs a batch")


def _rows(case: Case, name: str) -> tuple[TraceRow, ...]:
    repeated = [each for each in case.costs.repetitions if each.in_loader] if case.costs else []
    return rows_of(case, name) or tuple(row for each in repeated[:1] for row in each.rows)


RULE = Rule(
    code="slow-collate",
    needs="operators inside the DataLoader's rows: loading in the main process",
    speaks="operators of `collate_call_us` and less, `repeated_calls` or more a batch, take `collate_share` of the "
    "loader's time, and without the loader the step gains `min_gain`",
    remedies="code: one `torch.cat` or `torch.stack` for the batch; workers, as for loading",
    thresholds=("repeated_calls", "collate_call_us", "collate_share", "min_gain"),
    examine=examine,
    stacks=True,
    explains=("dataloader-bound",),
)
