"""Settings of the whole process: threads, precision of matrix products, cuDNN, garbage collection."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from ..patching import wrap

if TYPE_CHECKING:
    from ..session import Session


def install(session: Session) -> None:
    """Set the flags, and keep the script from setting those again."""
    settings = session.request.settings
    if settings.get("threads"):
        _hold(session, "threads", torch, "set_num_threads", torch.get_num_threads, int(settings["threads"]))
    if settings.get("matmul_precision"):
        setter, value = "set_float32_matmul_precision", settings["matmul_precision"]
        _hold(session, "matmul_precision", torch, setter, torch.get_float32_matmul_precision, value)
    if "cudnn_benchmark" in settings:
        before = torch.backends.cudnn.benchmark
        torch.backends.cudnn.benchmark = settings["cudnn_benchmark"]
        _note(session, "cudnn_benchmark", before, settings["cudnn_benchmark"])


def _hold(session: Session, name: str, owner: Any, setter: str, getter: Callable[[], Any], value: Any) -> None:
    """Set a value once, and let later calls of its setter change nothing."""
    before = getter()
    getattr(owner, setter)(value)
    _note(session, name, before, value)

    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        def held(asked: Any) -> None:
            if asked != value:
                _note(session, name, asked, value)

        return held

    wrap(owner, setter, around)


def _note(session: Session, name: str, before: Any, after: Any) -> None:
    if before != after:
        session.changed(name, before, after, None)
