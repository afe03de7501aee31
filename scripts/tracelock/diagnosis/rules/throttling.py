"""The device's clock is held down by heat or by its power limit."""

from __future__ import annotations

from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule

REASONS = ("power_cap", "hardware_slowdown", "software_thermal", "hardware_thermal", "power_brake")
LABELS = {
    "power_cap": "the power limit",
    "power_brake": "the power supply",
    "hardware_slowdown": "the hardware's own protection",
}


def examine(case: Case) -> Cause | None:
    """Return the cause where clocks are limited in ``throttled_share`` of the samples and lose ``clock_loss``."""
    clocks, reasons = case.column("gpu_sm_clock_mhz"), _reasons(case)
    limited = [found for found in reasons if found]
    if not clocks or not reasons or len(limited) / len(reasons) < case.limits.throttled_share:
        return None
    held = _held_clocks(case) or clocks
    mean, most = sum(held) / len(held), max(clocks)
    loss = 1 - mean / most
    busy = (case.bounds.device_us or 0.0) / case.bounds.step_us if case.bounds.step_us else 0.0
    removal = Removal(device=loss * (case.bounds.device_us or 0.0))
    gain = case.gain(removal)  # a host that is the longer chain hides the device's slowness
    if loss < case.limits.clock_loss or gain < case.limits.clock_loss:
        return None
    names = sorted({name for found in limited for name in found})
    why = ", ".join(LABELS.get(name, "heat") for name in names)
    return Cause(
        title=f"The device's clock is held down by {why}: {percent(loss)} below its highest",
        removal=removal,
        share=busy,
        evidence=(
            Evidence(
                f"clock limited ({', '.join(names)}) in {len(limited)} of {len(reasons)} samples",
                len(limited) / len(reasons),
                "share of samples",
                case.limits.throttled_share,
            ),
            Evidence(
                f"clock {mean:,.0f} MHz on average while it was limited, {most:,.0f} MHz at most",
                loss,
                "share",
                case.limits.clock_loss,
            ),
            *_heat(case),
        ),
        remedies=(
            Remedy(
                {},
                "the clock stays at its height",
                "cool the device, raise its power limit (nvidia-smi -pl) or lock a clock that it holds (-lgc); "
                "compare runs at the same clock",
            ),
        ),
    )


def _reasons(case: Case) -> list[set[str]]:
    """Return which limits were in force in each sample that tells them."""
    values = (case.samples or {}).get("gpu_throttle", ())
    return [set(str(value or "").split("|")) & set(REASONS) for value in values]


def _held_clocks(case: Case) -> list[float]:
    """Return the clocks of the samples in which a limit was in force."""
    clocks = (case.samples or {}).get("gpu_sm_clock_mhz", ())
    pairs = zip(clocks, _reasons(case), strict=False)
    return [float(clock) for clock, limited in pairs if limited and isinstance(clock, int | float)]


def _heat(case: Case) -> list[Evidence]:
    degrees = case.column("gpu_temperature_c")
    return [Evidence(f"{max(degrees):,.0f} °C at most", max(degrees), "°C")] if degrees else []


RULE = Rule(
    code="throttling",
    needs="the run's samples: `gpu_sm_clock_mhz`, `gpu_throttle`",
    speaks="a limit of heat or power holds in `throttled_share` of the samples, and the mean clock then lies "
    "`clock_loss` below the highest",
    remedies="code: cooling, power limit, a locked clock",
    thresholds=("throttled_share", "clock_loss"),
    examine=examine,
)
