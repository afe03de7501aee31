"""A batch is put together from many small pieces by an operator a piece."""

from __future__ import annotations

from tracelock.diagnosis import loading
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import at, of_step, percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule
from tracelock.diagnosis.rules import dataloader_bound


def examine(case: Case) -> Cause | None:
    """Return the cause where loops of small operators inside the loader are ``collate_share`` of its time."""
    repeated = [each for each in loading.repeated(case) if each.mean_us <= case.limits.repeated_call_us]
    repeated = [each for each in repeated if each.calls_per_step >= case.limits.repeated_calls]
    traced = case.costs.loading_us if case.costs else 0.0
    in_loops = sum(each.host_us for each in repeated)
    if not repeated or in_loops < case.limits.collate_share * traced:
        return None
    removal = Removal(host=loading.wait_us(case) * min(1.0, in_loops / traced))
    if case.gain(removal) < case.limits.min_gain:
        return None
    main = repeated[0]
    return Cause(
        title=f"Batches are collated piece by piece: {main.calls_per_step:,.0f} calls of {main.name} a step",
        removal=removal,
        share=case.share(in_loops),
        evidence=(
            Evidence(
                f"loops of small operators: {percent(in_loops / traced)} of the loader's time",
                in_loops / traced,
                "share of loading",
                case.limits.collate_share,
            ),
            *(
                of_step(case, f"{each.name} in the loader, {each.calls_per_step:,.0f} calls", each.host_us, each.rows)
                for each in repeated[:3]
            ),
        ),
        remedies=(
            Remedy(
                {},
                "one call instead of hundreds",
                f"put the pieces together by a single torch.cat or torch.stack in collate_fn{at(main.rows)}",
            ),
            *dataloader_bound.workers(case),
        ),
    )


RULE = Rule(
    code="slow-collate",
    needs="operators inside the DataLoader's rows: loading in the main process",
    speaks="loops of operators shorter than `repeated_call_us`, `repeated_calls` or more a step, take "
    "`collate_share` of the "
    "loader's time, and without them the step gains `min_gain`",
    thresholds=("repeated_calls", "repeated_call_us", "collate_share", "min_gain"),
    examine=examine,
    explains=("dataloader-bound",),
)
