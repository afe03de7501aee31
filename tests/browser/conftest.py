"""A real browser, driven by Playwright; without one these tests are skipped and say so."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opened import Opened
from page_trace import hostile_trace, many_rows, page_trace, write_page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Return Chromium as the system has it."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (requirements/dev.lock)")
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        pytest.skip(f"no browser ({', '.join(NAMES)}): apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Opened]]:
    """Return a function that opens a page and waits until its views stand; nothing may be complained of."""
    every: list[Opened] = []

    def opened(path: Path, width: int = 1200, height: int = 900, scripts: bool = True, **look: str) -> Opened:
        size = {"width": width, "height": height}
        context = browser.new_context(viewport=size, java_script_enabled=scripts, offline=True, **look)
        page = context.new_page()
        found = Opened(page)
        page.on("console", lambda message: found.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: found.said.append(f"error: {error}"))
        page.goto(path.as_uri())
        if scripts:
            page.wait_for_selector("html[data-ready=yes]", timeout=20_000)
        every.append(found)
        return found

    yield opened
    for each in every:
        each.page.context.close()
        assert each.said == []


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a trace that shows everything."""
    return write_page(tmp_path_factory.mktemp("pages") / "plain.html", page_trace())


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a trace whose names are markup, control characters and worse."""
    return write_page(tmp_path_factory.mktemp("pages") / "hostile.html", hostile_trace())


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a step of 150,000 rows."""
    return write_page(tmp_path_factory.mktemp("pages") / "large.html", many_rows(100_000))


@pytest.fixture(scope="session")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a page of two traces."""
    return write_page(tmp_path_factory.mktemp("pages") / "two.html", page_trace(), page_trace(steps=2))
