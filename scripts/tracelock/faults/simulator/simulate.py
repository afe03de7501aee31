"""Run a job: all ranks together, warm-up, timed steps, recorded steps; and what a change of the job would bring."""

from __future__ import annotations

from dataclasses import dataclass

from tracelock.faults.simulator.job import Job
from tracelock.faults.simulator.loop import Loop, Program, StepTime

WARM_UP = 3


@dataclass(frozen=True)
class Outcome:
    """What a run left behind: one loop a rank, with its recorded rows and the times of all its steps."""

    ranks: tuple[Loop, ...]
    warm_up: int
    timed: int
    recorded: int
    timed_ns: int  # of the timed steps together, the device synchronised at both edges
    recorded_ns: int  # of the recorded ones

    def timed_steps(self, rank: int = 0) -> list[StepTime]:
        """Return the steps that were timed without the tape running."""
        return self.ranks[rank].times[self.warm_up : self.warm_up + self.timed]

    @property
    def step_ns(self) -> float:
        """Return the mean duration of a timed step."""
        return self.timed_ns / self.timed


def _together(programs: list[Program]) -> None:
    """Run the programs of all ranks to their end; a collective begins everywhere before it ends anywhere."""
    arrivals = [next(program, None) for program in programs]
    while any(arrival is not None for arrival in arrivals):
        present = [arrival for arrival in arrivals if arrival is not None]
        end = max(start for start, _ in present) + max(cost for _, cost in present)
        arrivals = [_resume(program, end) for program in programs]


def _resume(program: Program, end: int) -> tuple[int, int] | None:
    try:
        return program.send(end)
    except StopIteration:
        return None


def simulate(job: Job, timed: int = 12, recorded: int = 0, warm_up: int = WARM_UP) -> Outcome:
    """Return the outcome of `warm_up` + `timed` unrecorded and `recorded` recorded steps of every rank."""
    loops = [Loop(job, rank) for rank in range(job.world.ranks)]
    _together([loop.run(warm_up) for loop in loops])
    started = _synchronized(loops)
    _together([loop.run(timed) for loop in loops])
    timed_ns = _synchronized(loops) - started
    for loop in loops:
        loop.tape.recording = True
    _together([loop.run(recorded) for loop in loops])
    for loop in loops:
        loop.tape.recording = False
    recorded_ns = _synchronized(loops) - started - timed_ns
    return Outcome(tuple(loops), warm_up, timed, recorded, timed_ns, recorded_ns)


def _synchronized(loops: list[Loop]) -> int:
    """Let every rank wait for its device; return when the first rank's has finished, ns."""
    for loop in loops:
        loop.host.synchronize()
    return loops[0].host.now


def sample_ns(job: Job, timed: int) -> float:
    """Return what one sample takes: the mean of `timed` steps by their batch, ns."""
    return simulate(job, timed).step_ns / job.settings.batch_size


def true_gain(job: Job, changed: Job, timed: int = 12) -> float:
    """Return the part of a sample's time that `changed` saves over `job`, negative where it is slower."""
    return 1.0 - sample_ns(changed, timed) / sample_ns(job, timed)
