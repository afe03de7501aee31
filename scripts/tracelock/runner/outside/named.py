"""A function that somebody named is one step: ``module:function`` or ``module:Class.method``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .session import Session

_TOOL = 4  # of sys.monitoring: none of those with a name (debugger 0, coverage 1, profiler 2, optimizer 5)


def install(session: Session, name: str) -> None:
    """Count every return of the function `name` as the end of a step."""
    watcher = _Watcher(session, name)
    if hasattr(sys, "monitoring"):
        watcher.monitor()
    else:
        watcher.profile()


class _Watcher:
    """Finds the function's code when it first runs, and hears of its returns."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self._module, _, self._function = name.rpartition(":")
        self._last = self._function.rpartition(".")[2]
        self._found = self._module

    def monitor(self) -> None:
        """Use sys.monitoring, which costs nothing for other functions (Python 3.12 and up)."""
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        monitoring.use_tool_id(_TOOL, "tracelock")
        events = monitoring.events
        monitoring.register_callback(_TOOL, events.PY_START, self._started)
        monitoring.register_callback(_TOOL, events.PY_RETURN, self._returned)
        monitoring.set_events(_TOOL, events.PY_START)

    def _started(self, code: CodeType, offset: int) -> Any:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        if self._is_it(code):
            monitoring.set_local_events(_TOOL, code, monitoring.events.PY_RETURN)
        return monitoring.DISABLE

    def _returned(self, code: CodeType, offset: int, value: object) -> None:
        self._session.step_ended(time.perf_counter_ns())

    def _is_it(self, code: CodeType) -> bool:
        """Return whether `code` is the named function's."""
        if code.co_name != self._last:
            return False
        qualified = getattr(code, "co_qualname", self._last)
        named = self._function in {qualified, self._last}
        return named and self._is_in_module(code)

    def _is_in_module(self, code: CodeType) -> bool:
        """Return whether `code` is from the named module's file; a script may be named by its file, too."""
        file = os.path.abspath(code.co_filename)
        for name in (self._module, "__main__"):
            found = getattr(sys.modules.get(name), "__file__", None)
            right = name == self._module or os.path.splitext(os.path.basename(file))[0] == self._module
            if found and right and os.path.abspath(found) == file:
                self._found = name
                return True
        return False

    def profile(self) -> None:
        """Use sys.setprofile until the function first runs, then a wrapper in its place (before Python 3.12)."""
        sys.setprofile(self._call)

    def _call(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call" or frame.f_code.co_name != self._last or not self._is_it(frame.f_code):
            return
        sys.setprofile(None)
        self._replace(frame)

    def _replace(self, frame: FrameType) -> None:
        """Put a wrapper in the function's place; its first call, under way now, is counted when it returns."""
        owner: Any = sys.modules[self._found]
        for part in self._function.split(".")[:-1]:
            owner = getattr(owner, part)
        original = getattr(owner, self._last)

        def counted(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            self._session.step_ended(time.perf_counter_ns())
            return result

        counted.__name__, counted.__qualname__ = original.__name__, original.__qualname__
        counted.__module__, counted.__doc__ = original.__module__, original.__doc__
        setattr(owner, self._last, counted)
        _await_return(frame, lambda: self._session.step_ended(time.perf_counter_ns()))


def _await_return(frame: FrameType, then: Callable[[], None]) -> None:
    """Call `then` when `frame` returns."""

    def watch(current: FrameType, event: str, argument: object) -> None:
        if event == "return" and current is frame:
            sys.setprofile(None)
            then()

    sys.setprofile(watch)
