"""The step waits in Python, or computes there: sleep, locks, files, JSON, or Python between operators."""

from __future__ import annotations

import re

from tracelock.analysis.work import PythonTime, Work
from tracelock.diagnosis import own, recurring
from tracelock.diagnosis.case import Case, Removal
from tracelock.diagnosis.measures import at, lines, of_step, percent
from tracelock.diagnosis.model import Evidence, Remedy
from tracelock.diagnosis.rule import Cause, Rule

WORDS = {
    "sleep": "sleeps",
    "lock": "waits for a lock or a thread",
    "socket": "waits for a socket",
    "files": "reads or writes files",
    "subprocess": "starts another program",
    "json": "parses or writes JSON",
    "pickle": "pickles",
    "regex": "searches with regular expressions",
    "garbage": "collects garbage",
    "hash": "computes a hash",
    "copy": "copies Python objects",
    "torch": "is in calls of PyTorch, outside of their operators",
    "python": "computes in pure Python",
}
ADVICE = {
    "sleep": "take the sleep out",
    "lock": "hold the lock for less, or give each thread its own",
    "garbage": "gc.collect() every few hundred steps, or gc.freeze() once after the start",
    "torch": "fewer and larger calls; tensors that are made once, and not of Python's numbers in each step",
    "python": "do it in one call of torch or numpy, or outside of the step",
}
COMMON = "do it once and keep the result, or in another thread, or every hundredth step"
SPOILED = 1.05  # what ran between drives out of the caches what the next operator needs
MOSTLY = 0.7  # of the pauses: what frames name are these
UNKNOWN = "record again with stacks (`with_stack=True`) to see which lines they are"


def examine(case: Case) -> Cause | None:
    """Return the cause where Python outside of the loader takes ``min_gain`` of the step."""
    work = case.analysis.work
    if work is None or case.has_gpu:
        return None
    return _by_frames(case, work) or _between(case, work)


def _by_frames(case: Case, work: Work) -> Cause | None:
    found = [each for each in work.python or () if each.place == "step" and _recurs(case, each)]
    spent = sum(each.host_us for each in found)
    removal = Removal(host=max(spent, spent + work.excess_us))
    if case.gain(Removal(host=spent)) < case.limits.min_gain:
        return None
    main = found[0]
    rows = [row for each in found[:3] for row in each.rows[:1]]
    named = lines(rows)
    paused = sum(pause.host_us for pause in case.costs.pauses) if case.costs else 0.0
    return Cause(
        title=f"The step {_words(found)}: {percent(case.share(spent) or 0.0)} of it{f' ({named})' if named else ''}",
        removal=removal,
        likely=Removal(host=spent),
        share=case.share(spent),
        evidence=tuple(_told(case, each) for each in found[:4]),
        remedies=(Remedy({}, "the step loses this time", f"{ADVICE.get(main.kind, COMMON)}{at(main.rows)}"),),
        confidence=None
        if main.kind not in ("python", "torch")
        else "medium",  # frames slow down what calls many of them
        explains=("step-gaps",) if spent >= MOSTLY * paused else (),
    )


def _recurs(case: Case, spent: PythonTime) -> bool:
    return recurring.is_recurring(case, spent.steps, spent.host_us)


def _words(found: list[PythonTime]) -> str:
    return ", ".join(dict.fromkeys(WORDS[each.kind] for each in found[:3] if each.host_us >= found[0].host_us / 3))


def called(name: str) -> str:
    """Return a frame's name without the address of the object whose method it is, which says nothing to anybody."""
    return re.sub(r" of [^>]*object at 0x[0-9a-f]+>?$", ">", name)


def _told(case: Case, each: PythonTime) -> Evidence:
    what = f"{called(each.rows[0].name)}: {each.calls_per_step:,.1f} calls{f' at {each.code}' if each.code else ''}"
    return of_step(case, what, each.host_us, each.rows)


def _between(case: Case, work: Work) -> Cause | None:
    """Return the cause where no frames tell, and what lies between operators is longer than dispatch takes."""
    if case.gain(Removal(host=work.excess_us)) < case.limits.min_gain:
        return None
    mean = work.between_us / max(1, work.between)
    what = f"{work.between:,} stretches between operators, of {mean:,.0f} µs on average"
    return Cause(
        title=f"Python between the operators takes {percent(case.share(work.between_us) or 0.0)} of the step",
        removal=Removal(host=SPOILED * (work.between_us + own.roaming_us(case))),  # these may hold Python, too
        likely=Removal(host=work.excess_us),
        share=case.share(work.between_us),
        evidence=(
            of_step(case, what, work.between_us),
            of_step(case, "of it beyond what getting from one operator to the next takes", work.excess_us),
        ),
        remedies=(Remedy({}, "operators follow one another at once", f"{ADVICE['python']}; {UNKNOWN}"),),
    )


RULE = Rule(
    code="python-time",
    needs="steps in the trace, and no device; frames of Python (`with_stack=True`) to name what it is and where",
    speaks="frames outside of the loader wait (sleep, locks, sockets, programs, files), parse, or compute for "
    "`min_gain` of the step; without frames, where the stretches between operators that are shorter than a pause "
    "add up to `min_gain` beyond what dispatch takes",
    remedies="code: by its kind, at the user's line",
    thresholds=("min_gain",),
    examine=examine,
    stacks=True,
)
