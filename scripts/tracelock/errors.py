"""One error class for everything that a person can mend: what is wrong, where, and how to mend it.

Standard library only, Python 3.10 syntax: the runner imports this inside pinned environments.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with an input.

    Parameters
    ----------
    where
        The file, and the key path or line in it: ``study.yaml: factors.num_workers``.
    what
        What was found there and what was expected instead.
    hint
        What mends it, or an empty string.
    """

    where: str
    what: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text} ({self.hint})" if self.hint else text


class TracelockError(Exception):
    """A failure that is reported without a traceback.

    Parameters
    ----------
    problems
        All problems found, not only the first one; a single text is taken as one problem without a place.
    exit_code
        2 for bad input, 1 for a failed run.
    """

    def __init__(self, problems: str | Problem | Iterable[Problem], exit_code: int = EXIT_BAD_INPUT) -> None:
        if isinstance(problems, str):
            problems = Problem("", problems)
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        self.exit_code = exit_code
        super().__init__("\n".join(str(problem) for problem in self.problems))


def nearest(word: str, allowed: Sequence[str]) -> str:
    """Return ``did you mean 'x'?`` for the allowed word closest to `word`, or an empty string."""
    lowered = {candidate.lower(): candidate for candidate in allowed}
    matches = difflib.get_close_matches(word.lower(), list(lowered), n=1, cutoff=0.6)
    return f"did you mean '{lowered[matches[0]]}'?" if matches else ""
