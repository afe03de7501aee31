"""Two dozen faults at random moments of a study: it goes on by the command that it names, to what was planned."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from tests.disturbed.campaign import Campaign

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get("TRACELOCK_DISTURB"),
        reason="TRACELOCK_DISTURB asks for faults at random moments: what they find is new each time",
    ),
]

FAULTS = 24


def test_a_study_survives_what_is_done_to_it(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    said: list[str] = []
    result = Campaign(tmp_path, FAULTS, seed, said.append).run()
    assert result.wrong == [], "\n".join([*said, *result.wrong])
    assert result.faults == FAULTS
