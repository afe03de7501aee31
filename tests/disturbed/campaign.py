"""The campaign: start, disturb, look at the files, go on by the command that was named, until it is complete."""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.disturbed.faults import KINDS, Fault, small_disk, target_of
from tests.disturbed.study import Study, processes

# A study that was asked to end gives its runs 30 s; on a loaded machine all takes longer.
_ENDING_S = 120.0
_STUDY_S = 1800.0
# So many starts are first disturbed when a run has begun, the others from the start on.
_AFTER_START = 0.7


@dataclass
class Result:
    """What came of a campaign."""

    done: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    studies: int = 0
    starts: int = 0

    @property
    def faults(self) -> int:
        """Faults that were done."""
        return sum(self.done.values())


class Campaign:
    """Disturbs studies until `count` faults have been done.

    Parameters
    ----------
    folder
        Where the studies are made, each in a folder of its own.
    say
        Hears a line for each fault.
    """

    def __init__(self, folder: Path, count: int, seed: int, say: Callable[[str], None] = print) -> None:
        self._folder, self._count, self._say = folder, count, say
        self._chance = random.Random(seed)
        self._deck: list[Fault] = []
        self.result = Result()
        say(f"{count} faults, seed {seed}")

    def run(self) -> Result:
        """Return what was done and all that was wrong."""
        while self.result.faults < self._count and not self.result.wrong:
            self.result.studies += 1
            place = self._folder / f"study {self.result.studies}"
            with small_disk(place) as mounted:
                self._one(Study(place), mounted)
        return self.result

    def _one(self, study: Study, mounted: bool) -> None:
        """Disturb one study from its start to its end."""
        while not self.result.wrong:
            self.result.starts += 1
            driver = study.start()
            disturbed = self._disturb(study, driver, mounted)
            code = self._end(study, driver)
            self._complain(study.halves(), "after the end")
            if code == 0:
                self._complain(study.incomplete(), "of a study that ended well")
                return
            if not disturbed:
                self._complain([f"exit code {code} though nothing disturbed it", study.text()[-2000:]], "")
            if code is not None and code >= 0:
                self._named(study)

    def _disturb(self, study: Study, driver: subprocess.Popen[bytes], mounted: bool) -> bool:
        """Do faults until the driver ends; return whether any was done."""
        any_done = False
        if self._chance.random() < _AFTER_START:
            _await_run(driver)
        while self.result.faults < self._count:
            if not _alive_after(driver, self._chance.uniform(0, self._chance.choice([1, 8]))):
                return any_done
            fault = self._next(mounted, driver.pid)
            pid = target_of(fault, driver.pid)
            if pid is None or not fault.do(study, pid, self._chance):
                continue  # its turn comes again with the next round of all kinds
            any_done = True
            self.result.done[fault.name] += 1
            self._say(f"{self.result.faults}: {fault.name}; runs so far: {len(study.done())}")
            self._complain(study.halves(), f"after {fault.name}")
            if fault.ends:
                return True
        return any_done

    def _next(self, mounted: bool, driver: int) -> Fault:
        """Return a kind whose target is there: each comes up once before any comes up twice, as far as can be."""
        for _ in range(2):
            there = [fault for fault in self._deck if target_of(fault, driver) is not None]
            if there:
                # What is there only at times is done when it is there.
                chosen = self._chance.choice([fault for fault in there if fault.target != "driver"] or there)
                self._deck.remove(chosen)
                return chosen
            self._deck += [fault for fault in KINDS if mounted or not fault.needs_mount]
        raise AssertionError("a driver is always there")

    def _end(self, study: Study, driver: subprocess.Popen[bytes]) -> int | None:
        """Wait for the driver, and for all that it has started; return its exit code."""
        try:
            code = driver.wait(_STUDY_S)
        except subprocess.TimeoutExpired:
            self._complain(["has not ended"], study.text()[-2000:])
            driver.kill()
            driver.wait()
            return None
        if not study.all_gone(_ENDING_S):
            self._complain([f"processes live on: {study.left()}"], "")
        return code

    def _named(self, study: Study) -> None:
        """Check that the study has named the command to go on, and that it is the one that we use."""
        named, begun = study.named_command(), "\nRuns " in study.text()
        if named != study.command and (named or begun):
            self._complain([f"names the command {named}"], study.text()[-2000:])

    def _complain(self, wrong: list[str], when: str) -> None:
        self.result.wrong += [f"{each} {when}" for each in wrong]


def _await_run(driver: subprocess.Popen[bytes]) -> None:
    """Wait for the first run of a start."""
    while driver.poll() is None and not processes(driver.pid)["beside"]:
        time.sleep(0.05)


def _alive_after(driver: subprocess.Popen[bytes], seconds: float) -> bool:
    time.sleep(seconds)
    return driver.poll() is None
