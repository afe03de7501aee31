"""The script's own torch.profiler stays in charge: its steps are the steps, its trace is the trace."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from .patching import wrap

if TYPE_CHECKING:
    from .session import Session


def install(session: Session) -> None:
    """Watch profilers that are not ours."""
    kind = torch.profiler.profile
    wrap(kind, "start", lambda original: _start(session, original))
    wrap(kind, "step", lambda original: _step(session, original))
    wrap(kind, "stop", lambda original: _stop(session, original))
    wrap(kind, "export_chrome_trace", lambda original: _export(session, original))


def is_ours(session: Session, profiler: Any) -> bool:
    """Return whether a profiler belongs to the window."""
    return getattr(profiler, "_tracelock", False) is True


def _start(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def start(self: Any) -> Any:
        if not is_ours(session, self):
            session.director.make_way()
            session.own_from = session.tally.count
            session.director.recording = _records(self)
        return original(self)

    return start


def _step(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_ours(session, self):
            return original(self, *args, **kwargs)
        now = time.perf_counter_ns()
        if not session.request.step:
            session.profiler_stepped(now)
        result = original(self, *args, **kwargs)
        session.director.recording = _records(self)
        return result

    return step


def _stop(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def stop(self: Any) -> Any:
        result = original(self)
        if not is_ours(session, self):
            session.director.recording = False
            if session.source == "profiler":
                session.source = "optimizer"
        return result

    return stop


def _export(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def export_chrome_trace(self: Any, path: str, *args: Any, **kwargs: Any) -> Any:
        result = original(self, path, *args, **kwargs)
        folder = session.folder
        if not is_ours(session, self) and folder is not None:
            name = "trace.json.gz" if str(path).endswith(".gz") else "trace.json"
            shutil.copyfile(path, folder.path(f"{name}.part"))
            os.replace(folder.path(f"{name}.part"), folder.path(name))
            session.director.trace = name
        return result

    return export_chrome_trace


def _records(profiler: Any) -> bool:
    """Return whether a profiler costs time now: it warms up or records."""
    action = getattr(profiler, "current_action", None)
    return action is not None and action.name != "NONE"
