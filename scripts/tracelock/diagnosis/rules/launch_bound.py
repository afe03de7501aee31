"""The host launches more slowly than the device works: many short kernels, dispatch behind."""

from __future__ import annotations

from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import chains, host_causes_us, of_step, per_step, percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule

OPTIMIZER_SHARE = 0.2  # of the dispatch: where the optimizer is a fifth of it, begin there


def examine(case: Case) -> Cause | None:
    """Return the cause where dispatch alone, with nothing else in its way, takes ``min_gain`` longer than the device.

    Or where an optimizer that launches a few kernels for each parameter takes ``min_gain``.
    """
    bounds = case.bounds
    if bounds.device_us is None or not bounds.step_us or not case.has_steps:
        return None
    dispatch, updates = dispatch_us(case), _one_by_one_us(case)
    idle = launching_us(case)
    beyond = max(0.0, min(dispatch - bounds.device_us, idle))
    # An optimizer that takes all parameters at once needs less of the host, too.
    updating = case.costs.optimizer.host_us if case.costs and case.costs.optimizer and updates else 0.0
    likely = Removal(host=beyond + updating, device=updates, most=beyond + updates)
    if case.gain(likely) < case.limits.min_gain:
        return None
    # No dispatch at all cannot be had, but nothing can save more.
    removal = Removal(host=dispatch, device=updates, most=max(beyond, min(dispatch, idle)) + updates)
    gain = case.gain(removal)
    return Cause(
        title=f"{_title(case, beyond)}: up to {percent(gain)} of the step",
        removal=removal,
        likely=likely,
        share=case.share(beyond + updates),
        evidence=(
            Evidence(
                f"operators and the Python between them keep the host for {per_step(dispatch)}, the device works "
                f"{per_step(bounds.device_us)} a step",
                beyond / bounds.step_us,
                "share of step",
                case.limits.min_gain,
            ),
            *_kernels(case),
            *_gaps(case),
            *_updates(case),
            chains(case),
        ),
        remedies=tuple(_remedies(case, dispatch)),
    )


def dispatch_us(case: Case) -> float:
    """Return the host's time in a step that goes into launching: what it does between waits.

    Loading, the allocator and long pauses are left out, and all the time in calls that wait, whatever the device does
    meanwhile, in calls far longer than they are as a rule, and in launches that load code, once.
    """
    if case.costs is None:
        return 0.0
    waits = [each for each in case.costs.waits if each.kind != "allocation"]
    other = sum(max(0.0, each.host_us - each.waiting_us) for each in waits)
    other += sum(each.host_us for each in case.costs.hitches)
    return max(0.0, case.bounds.host_us - host_causes_us(case) - other)


def launching_us(case: Case) -> float:
    """Return the device's idle time in a step that lies in gaps about as long as it takes to launch."""
    gaps = case.costs.gaps if case.costs else None
    return case.bounds.idle_us if gaps is None else min(case.bounds.idle_us, gaps.launching_us)


def _title(case: Case, beyond: float) -> str:
    if beyond >= case.limits.min_gain * case.bounds.step_us:
        return "The host launches work more slowly than the device does it"
    return "The optimizer updates parameters one by one, with many short kernels"


def _one_by_one_us(case: Case) -> float:
    """Return the device's time a step in an optimizer that takes one parameter after the other, 0 for any other."""
    optimizer = case.costs.optimizer if case.costs else None
    return optimizer.device_us if optimizer and optimizer.one_by_one else 0.0


def _updates(case: Case) -> list[Evidence]:
    optimizer = case.costs.optimizer if case.costs else None
    if optimizer is None or not _one_by_one_us(case):
        return []
    what = f"the optimizer's {optimizer.kernels_per_step:,.0f} kernels of {optimizer.kernel_us or 0.0:,.1f} µs"
    return [of_step(case, what, optimizer.device_us)]


def _kernels(case: Case) -> list[Evidence]:
    calls = sum(kernel.calls for kernel in case.analysis.kernels)
    if not calls or not case.steps:
        return []
    mean = sum(kernel.total_us for kernel in case.analysis.kernels) / calls
    return [Evidence(f"{calls / case.steps:,.0f} kernels a step of {mean:,.1f} µs on average", mean, "µs a kernel")]


def _gaps(case: Case) -> list[Evidence]:
    gaps = case.costs.gaps if case.costs else None
    if gaps is None or not gaps.per_step:
        return []
    mean = gaps.idle_us / gaps.per_step
    text = (
        f"{gaps.per_step:,.0f} gaps a step of {mean:,.1f} µs on average; a launch follows the other after "
        f"{gaps.usual_launch_us:,.1f} µs"
    )
    return [Evidence(text, mean, "µs a gap")]


def _optimizer_share(case: Case, dispatch: float) -> float:
    """Return the part of the dispatch that the optimizer takes, 0 where the trace does not label it."""
    optimizer = case.costs.optimizer if case.costs else None
    return optimizer.host_us / dispatch if optimizer and dispatch else 0.0


def _remedies(case: Case, dispatch: float) -> list[Remedy]:
    remedies = []
    heavy = _optimizer_share(case, dispatch) >= OPTIMIZER_SHARE or _one_by_one_us(case) > 0
    if heavy and case.setting("optimizer_fused") is not True:
        remedies.append(Remedy({"optimizer_fused": True}, "one kernel for all parameters instead of several for each"))
        if case.setting("optimizer_foreach") is False:
            remedies.append(Remedy({"optimizer_foreach": True}, "a kernel for many parameters at once"))
    if case.setting("cuda_graph") is not True:
        remedies.append(Remedy({"cuda_graph": True}, "one launch for the whole forward and backward pass"))
    if case.setting("compile") is not True:
        remedies.append(Remedy({"compile": True}, "fewer, larger kernels with less dispatch"))
    batch = case.setting("batch_size")
    if isinstance(batch, int):
        remedies.append(
            Remedy({"batch_size": 4 * batch}, "longer kernels for the same dispatch: more samples a second")
        )
    else:
        remedies.append(Remedy({}, "longer kernels for the same dispatch", "train with larger batches"))
    return remedies


RULE = Rule(
    code="launch-bound",
    needs="work of a device, and steps, in the trace: a recording without them may hold start-up",
    speaks="dispatch (the host's time between waits: without loading, calls that wait or take far longer than usual, "
    "the allocator and long pauses) takes longer than the device works, the device idles in gaps about as long as a "
    "launch, or the optimizer updates parameters one by one, and without either the step gains `min_gain`",
    remedies="`optimizer_fused`, `optimizer_foreach` where the optimizer is a fifth of it; `cuda_graph`, "
    "`compile`, four times the `batch_size`",
    thresholds=("min_gain",),
    examine=examine,
)
