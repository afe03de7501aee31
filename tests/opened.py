"""A page that is open in a browser."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Opened:
    """A page in the browser, and what it complained of."""

    page: Any
    said: list[str] = field(default_factory=list)

    def count(self, selector: str) -> int:
        """Return how many elements there are."""
        return self.page.locator(selector).count()

    def texts(self, selector: str) -> list[str]:
        """Return the texts of elements."""
        return self.page.locator(selector).all_inner_texts()

    def until(self, expression: str, seconds: float = 10.0) -> None:
        """Wait until an expression is true: Playwright's own way evaluates a string, which the page forbids."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(expression):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.05)

    def saved(self, selector: str) -> str:
        """Click a button that saves a file; return what is in it."""
        with self.page.expect_download() as got:
            self.page.locator(selector).first.click()
        return Path(got.value.path()).read_text(encoding="utf-8")

    def view(self) -> tuple[float, float]:
        """Return what the timeline shows, µs."""
        low, high = self.page.evaluate("[page.timeline.view.low, page.timeline.view.high]")
        return low, high
