"""Give drawn cases to the diagnosis and hold its answers against the truth."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tracelock.analysis.analyze import analyze_prepared
from tracelock.analysis.collective_calls import collective_calls
from tracelock.analysis.meetings import RankTrace, observe
from tracelock.analysis.model import Analysis
from tracelock.analysis.prepared import prepare
from tracelock.analysis.ranks import compare_ranks
from tracelock.diagnosis import Diagnosed, diagnose
from tracelock.diagnosis.recorded import recorded_beside
from tracelock.faults.draw import Drawn
from tracelock.faults.files import write_facts
from tracelock.faults.simulator.chance import seeded
from tracelock.faults.simulator.job import SETTINGS, Job
from tracelock.faults.simulator.kineto import Style, write_trace
from tracelock.faults.simulator.simulate import Outcome, simulate, true_gain
from tracelock.trace import read_trace

CURED = 0.5  # a remedy that gives back this part of what the fault costs is a cure
RANK_FILE = "rank{}.pt.trace.json.gz"
NEEDS_A_RUN = ("worker-startup", "throttling")  # what they rest on is not in a trace


@dataclass(frozen=True)
class Answer:
    """What the diagnosis said of one case, and whether it was right."""

    family: str
    seed: int
    expected: str
    found: tuple[str, ...]  # codes, the main cause first
    cost: float  # the truth
    bound: float | None  # what the expected cause was said to gain at most, None where it was not named
    cured: bool | None  # None for healthy controls
    right: bool
    facts: bool  # the run's facts were given beside the trace
    graded: bool = True  # False: a real fault that cost less than it must to be called a main cause on this machine

    @property
    def main(self) -> str:
        """Return the code of the main cause."""
        return self.found[0]


def style_of(drawn: Drawn) -> Style:
    """Return how the trace of a case is written: drawn by its seed."""
    random = seeded("style", drawn.seed)
    memory = drawn.code in ("memory-growth", "memory-sawtooth")
    return Style(random.random() < 0.5, memory or random.random() < 0.5, random.random() < 0.2)


@dataclass(frozen=True)
class Recording:
    """How a job is recorded and what of it is given to the diagnosis."""

    job: Job
    steps: int
    style: Style
    facts: bool  # the run's facts are given beside the trace
    spoil: Callable[[Path], None] | None = None  # done to the file that was written
    together: bool = True  # all ranks are looked at together; False: the first alone

    def run(self) -> Outcome:
        """Return a run of the job: long enough for three epochs where epochs matter."""
        epochs = self.job.data.epoch_steps < 100
        return simulate(self.job, timed=3 * self.job.data.epoch_steps if epochs else 20, recorded=self.steps)


def examined(recording: Recording, folder: Path) -> Diagnosed:
    """Write the files of a run to `folder`, read them like any other, and diagnose."""
    outcome = recording.run()
    count = recording.job.world.ranks if recording.together else 1
    read = [_read(recording, outcome, rank, folder) for rank in range(count)]
    analysis, ranks = read[0][0], compare_ranks([each for _, each in read]) if count > 1 else None
    if recording.facts:
        write_facts(folder, recording.job, outcome, RANK_FILE.format(0))
    recorded = recorded_beside(folder / RANK_FILE.format(0))
    return diagnose(analysis, run=recorded.run, samples=recorded.samples, ranks=ranks)


def examine(drawn: Drawn, folder: Path) -> tuple[Diagnosed, bool]:
    """Return the diagnosis of a case; also whether facts were given."""
    facts = drawn.code in NEEDS_A_RUN or seeded("facts", drawn.seed).random() < 0.7
    steps = drawn.family.recorded if drawn.family else 8
    return examined(Recording(drawn.job, steps, style_of(drawn), facts), folder), facts


def _read(recording: Recording, outcome: Outcome, rank: int, folder: Path) -> tuple[Analysis, RankTrace]:
    path = folder / RANK_FILE.format(rank)
    write_trace(path, recording.job, outcome, rank, recording.style)
    if recording.spoil:
        recording.spoil(path)
    known = prepare(read_trace(path))
    analysis = analyze_prepared(known)
    return analysis, observe(known, collective_calls(known.trace, known.tree, known.links), analysis, rank)


def answer(drawn: Drawn) -> Answer:
    """Return what the diagnosis says of one case."""
    with tempfile.TemporaryDirectory(prefix="tracelock-faults-") as folder:
        return answer_in(drawn, Path(folder))


def answer_in(drawn: Drawn, folder: Path) -> Answer:
    """Return the same, and leave the traces in `folder` as ``RANK_FILE``."""
    diagnosed, facts = examine(drawn, folder)
    codes = tuple(finding.code for finding in diagnosed.findings)
    named = next((finding for finding in diagnosed.findings if finding.code == drawn.code), None)
    return Answer(
        family=drawn.name,
        seed=drawn.seed,
        expected=drawn.code,
        found=codes,
        cost=drawn.cost,
        bound=named.gain_at_most if named else None,
        cured=None if drawn.family is None else is_cured(drawn, diagnosed),
        right=codes[0] == drawn.code,
        facts=facts,
    )


def is_cured(drawn: Drawn, diagnosed: Diagnosed) -> bool:
    """Return whether a remedy cures the case.

    Remedies that are settings are tried out by simulating the job with them. Where no setting cures the fault, the
    finding that names it has to give advice on code.
    """
    cure = drawn.family.cure if drawn.family else "code"
    named = [each for each in diagnosed.findings if each.code == drawn.code]
    if cure != "settings" and any(remedy.code for each in named for remedy in each.remedies):
        return True
    if cure == "code":
        return False
    changes = [remedy.settings for finding in diagnosed.findings for remedy in finding.remedies if remedy.settings]
    return any(_cures(drawn, change) for change in changes if SETTINGS & set(change))


def _cures(drawn: Drawn, change: dict[str, object]) -> bool:
    return true_gain(drawn.job, drawn.job.with_settings(change), timed=24) >= CURED * drawn.cost


def grade(answers: Sequence[Answer]) -> dict[str, float | None]:
    """Return the three shares: main cause right, false alarms, cure named; None where no case tells."""
    faulty = [each for each in answers if each.expected != "no-bottleneck" and each.graded]
    healthy = [each for each in answers if each.expected == "no-bottleneck"]
    return {
        "main_cause_right": _share(faulty, [each.right for each in faulty]),
        "false_alarms": _share(healthy, [not each.right for each in healthy]),
        "cure_named": _share(faulty, [bool(each.cured) for each in faulty]),
    }


def _share(cases: Sequence[Answer], yes: Sequence[bool]) -> float | None:
    return sum(yes) / len(cases) if cases else None


def confusion(answers: Sequence[Answer]) -> dict[str, dict[str, int]]:
    """Return for each family how often which code was the main cause."""
    found: dict[str, dict[str, int]] = {}
    for each in answers:
        row = found.setdefault(each.family, {})
        row[each.main] = row.get(each.main, 0) + 1
    return found
