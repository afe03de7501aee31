"""Settings of the model: compilation, memory format and mixed precision, applied around its outermost calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import torch

from ..places import user_place

if TYPE_CHECKING:
    from ..session import Session


def install(session: Session) -> None:
    """Apply what the request asks for to every module that is called from outside of any other."""
    settings = session.request.settings
    if settings.get("amp", "off") != "off" or settings.get("channels_last") or settings.get("compile"):
        _Models(session).install()


class _Models:
    """Knows which modules have been prepared."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._settings = session.request.settings
        self._prepared: dict[int, Any] = {}
        self._local = threading.local()

    def install(self) -> None:
        """Put ourselves around ``Module.__call__``."""
        original = torch.nn.Module.__call__

        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
            if getattr(self._local, "inside", False):
                return original(module, *args, **kwargs)
            self._local.inside = True
            try:
                return self._outermost(original, module, args, kwargs)
            finally:
                self._local.inside = False

        torch.nn.Module.__call__ = __call__  # type: ignore[method-assign]

    def _outermost(self, original: Callable[..., Any], module: Any, args: Any, kwargs: Any) -> Any:
        parameter = next(module.parameters(), None)
        if parameter is None:  # a loss has nothing to prepare
            return original(module, *args, **kwargs)
        if id(module) not in self._prepared:
            self._prepared[id(module)] = module
            self._prepare(module, user_place(3))
        if self._settings.get("channels_last"):
            args, kwargs = _map(_channels_last, args), _map(_channels_last, kwargs)
        with self._autocast(parameter.device.type):
            result = original(module, *args, **kwargs)
        return _map(_as_float32, result) if self._settings.get("amp", "off") != "off" else result

    def _prepare(self, module: Any, place: str | None) -> None:
        session, settings = self._session, self._settings
        if settings.get("channels_last") and any(isinstance(part, torch.nn.Conv2d) for part in module.modules()):
            module.to(memory_format=torch.channels_last)
            session.changed("channels_last", False, True, place)
        if settings.get("compile"):
            if hasattr(module, "compile") and getattr(module, "_compiled_call_impl", None) is None:
                module.compile()
                session.changed("compile", False, True, place)
            elif not hasattr(module, "compile"):
                session.notes.append("compile needs PyTorch 2.2 to be applied from outside")
        if settings.get("amp", "off") != "off":
            session.changed("amp", "off", settings["amp"], place)

    def _autocast(self, device: str) -> AbstractContextManager[Any]:
        amp = self._settings.get("amp", "off")
        if amp == "off" or torch.is_autocast_enabled():
            return nullcontext()
        return torch.autocast(device, dtype=torch.bfloat16)


def _channels_last(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor


def _as_float32(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.dtype is torch.bfloat16 else tensor


def _map(change: Callable[[torch.Tensor], torch.Tensor], value: Any) -> Any:
    """Return `value` with `change` applied to its tensors, in tuples, lists and mappings of their own kind."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if type(value) in (tuple, list):
        return type(value)(_map(change, item) for item in value)
    if isinstance(value, Mapping) and hasattr(value, "__setitem__"):
        for key in list(value):
            value[key] = _map(change, value[key])  # keeps a model's own kind of output
    return value
