"""Watches optimizers and gradient scalers: each outermost call of ``step`` is an event.

torch's own global hooks run inside of the row that names the optimizer in a trace, and torch.compile removes them from
its optimizers (2.1 to 2.5); so ``step`` is wrapped around everything else, as it becomes known: when an optimizer is
built or comes out of a pickle.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import torch
from torch.optim import Optimizer

from .patching import MARK, wrap
from .places import user_place

if TYPE_CHECKING:
    from .session import Session

_compiler = getattr(torch, "compiler", None)
is_compiling: Callable[[], bool] = getattr(_compiler, "is_compiling", None) or (lambda: False)


def install(session: Session) -> None:
    """Count the steps of every optimizer that is built from now on."""
    wrap(Optimizer, "__init__", lambda original: _built(session, original))
    wrap(Optimizer, "__setstate__", lambda original: _restored(session, original))
    for owner in {_scaler_class("torch.amp.grad_scaler"), _scaler_class("torch.cuda.amp.grad_scaler")}:
        if owner is not None and "step" in vars(owner):
            wrap(owner, "step", lambda original: _scaler_step(session, original))
    wrap(torch, "compile", lambda original: _compile(session, original))


def _built(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        original(self, *args, **kwargs)
        watch_class(session, type(self))
        session.builds["optimizers"].append(describe(self))

    return __init__


def _restored(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def __setstate__(self: Any, state: Any) -> None:  # noqa: N807
        original(self, state)
        watch_class(session, type(self))

    return __setstate__


def watch_class(session: Session, kind: type[Any]) -> None:
    """Wrap ``step`` of an optimizer's class, wherever in its bases it is defined, once."""
    owner = next((base for base in kind.__mro__ if "step" in vars(base)), None)
    if owner is None or getattr(vars(owner)["step"], MARK, False):
        return
    owner.step = step_counted(session, vars(owner)["step"])  # type: ignore[attr-defined]


def step_counted(session: Session, inner: Callable[..., Any]) -> Callable[..., Any]:
    """Return `inner`, a method ``step`` of an optimizer, with its outermost calls counted."""

    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return inner(self, *args, **kwargs)
        session.enter()
        outermost = False
        done = False
        try:
            result = inner(self, *args, **kwargs)
            done = True
        finally:
            session.called = id(self)
            outermost = session.leave() and done
        if outermost:
            session.optimizer_stepped(id(self), device_of(self))
        return result

    # Without `__wrapped__`: older torch.compile takes an optimizer's `step` off whatever it is wrapped in.
    step.__name__, step.__qualname__, step.__doc__ = "step", getattr(inner, "__qualname__", "step"), inner.__doc__
    step.__module__ = inner.__module__
    for name, value in vars(inner).items():
        if name != "__wrapped__":
            setattr(step, name, value)
    with suppress(TypeError, ValueError):
        step.__signature__ = inspect.signature(inner)  # type: ignore[attr-defined]
    step.hooked = True  # type: ignore[attr-defined]
    setattr(step, MARK, True)
    return step


def _scaler_step(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        session.enter()
        session.called = None
        done = False
        try:
            result = original(self, optimizer, *args, **kwargs)
            done = True
        finally:
            outermost = session.leave() and done
        if outermost:
            if session.called is None:
                session.tally.skip()  # gradients were not finite: a step of the loop, not of the model
            session.optimizer_stepped(id(optimizer), device_of(optimizer))
        return result

    return step


def _compile(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def compile(model: Any = None, *args: Any, **kwargs: Any) -> Any:  # noqa: A001
        compiled = original(model, *args, **kwargs)
        owner = getattr(model, "__self__", None)
        if isinstance(owner, Optimizer) and callable(compiled) and getattr(model, "__name__", "") == "step":
            return _bound_step(session, owner, compiled)
        return compiled

    return compile


def _bound_step(session: Session, owner: Any, compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Return an optimizer's compiled ``step`` with its calls counted."""

    def step(*args: Any, **kwargs: Any) -> Any:
        labels = session.director.labels
        # torch's own row is in what was compiled away.
        with labels.phase(f"Optimizer.step#{type(owner).__name__}.step") if labels is not None else nullcontext():
            result = compiled(*args, **kwargs)
        session.optimizer_stepped(id(owner), device_of(owner))
        return result

    return step


def describe(optimizer: Any) -> dict[str, Any]:
    """Return what is known of an optimizer: class, the paths that it was asked to take, where it was built."""
    group = optimizer.param_groups[0] if getattr(optimizer, "param_groups", None) else {}
    paths = {name: group.get(name) for name in ("foreach", "fused", "capturable")}
    kept = {name: value if isinstance(value, bool) else None for name, value in paths.items()}
    return {"id": id(optimizer), "class": type(optimizer).__name__, "place": user_place(3), **kept}


def device_of(optimizer: Any) -> Any:
    """Return the device of an optimizer's first parameter, or None."""
    for group in getattr(optimizer, "param_groups", ()):
        for parameter in group["params"]:
            return parameter.device
    return None


def _scaler_class(module: str) -> Any:
    """Return the class GradScaler of a module, or None where this torch has none there."""
    import importlib

    try:
        return getattr(importlib.import_module(module), "GradScaler", None)
    except ImportError:
        return None
