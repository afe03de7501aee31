"""Starts watching a process that has just imported torch, and the processes that it forks."""

from __future__ import annotations

import atexit
import os

from . import apply, loaders, losses, named, optimizers, own_profiler
from .request import read_request
from .session import Session


def begin(path: str) -> None:
    """Install everything that the request in the file `path` asks for."""
    session = Session(read_request(path))
    loaders.install(session)
    losses.install(session)
    own_profiler.install(session)
    apply.install(session)
    if session.request.step:
        named.install(session, session.request.step)
    else:
        optimizers.install(session)
    atexit.register(session.close)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=session.forget)
