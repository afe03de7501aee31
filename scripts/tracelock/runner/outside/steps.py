"""Which calls of which optimizers end a training step. Knows nothing of torch.

A script with one optimizer ends a step with each of its calls. With several, one of them, the pilot, does: the last
one of a cycle in which each steps once, or the one that steps most often. Gradient accumulation needs no rule: the
optimizer steps once for several batches, and a step is an update of the model.
"""

from __future__ import annotations


class Pilot:
    """Tells which optimizer calls end a step.

    ``stepped`` is called once for each outermost call and returns by how many the number of steps grows: 1 or 0, or 2
    where a call shows that an earlier one had ended a step, too.
    """

    def __init__(self) -> None:
        self.key: int | None = None
        self._since: list[int] = []  # others that stepped since the pilot did
        self._calls: dict[int, int] = {}
        self._settled = False  # whether a cycle has shown who comes last

    def stepped(self, key: int) -> int:
        """Return the number of steps that this call of the optimizer `key` ends."""
        self._calls[key] = self._calls.get(key, 0) + 1
        if self.key is None:
            self.key = key
            return 1
        if key == self.key:
            return self._pilot_again(key)
        if key in self._since:  # twice, and the pilot not once: it has taken over
            self.key, self._since, self._settled = key, [], True
            return 2
        self._since.append(key)
        return 0

    def _pilot_again(self, key: int) -> int:
        """Return the steps that end as the pilot steps again."""
        others, self._since = self._since, []
        if others and not self._settled and self._calls[key] == 2:
            # A cycle of one call each: its last one ends the step, and has just ended the first.
            self._settled = True
            self.key, self._since = others[-1], [key]
            return 0
        self._settled = self._settled or not others
        return 1
