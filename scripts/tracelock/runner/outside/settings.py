"""The settings that are in force in the process, as far as they can be seen, and its device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .session import Session


def device_facts(device: Any) -> dict[str, Any]:
    """Return type, number, name and UUID of the device that the model is on."""
    if device is None or device.type != "cuda":
        kind = "cpu" if device is None else device.type
        return {"type": kind, "index": None, "name": None, "uuid": None}
    index = torch.cuda.current_device() if device.index is None else device.index
    facts = torch.cuda.get_device_properties(index)
    uuid = getattr(facts, "uuid", None)
    return {"type": "cuda", "index": index, "name": facts.name, "uuid": None if uuid is None else f"GPU-{uuid}"}


def in_force(session: Session) -> dict[str, Any]:
    """Return the standard settings that can be seen: of the main DataLoader, the optimizer, and the process."""
    applied = {change["setting"]: session.request.settings[change["setting"]] for change in session.changes.values()}
    return {**_loading(session), **_updating(session), **_process(), **applied}


def main_loader(session: Session) -> dict[str, Any] | None:
    """Return the DataLoader that gave most batches, or None."""
    totals: dict[int, int] = {}
    for step in session.tally.kept:
        for loader, batches in step.batches.items():
            totals[loader] = totals.get(loader, 0) + batches
    if not totals:
        return None
    main = max(totals, key=lambda key: totals[key])
    found = [item for item in session.builds["loaders"] if item["id"] == main]
    return found[-1] if found else None


def _loading(session: Session) -> dict[str, Any]:
    loader = main_loader(session)
    if loader is None:
        return {}
    names = ("batch_size", "num_workers", "pin_memory", "persistent_workers", "prefetch_factor", "drop_last")
    return {name: loader[name] for name in names if not isinstance(loader[name], str)}


def _updating(session: Session) -> dict[str, Any]:
    optimizers = session.builds["optimizers"]
    if not optimizers:
        return {}
    return {f"optimizer_{name}": optimizers[-1][name] for name in ("foreach", "fused")}


def _process() -> dict[str, Any]:
    return {
        "threads": torch.get_num_threads(),
        "matmul_precision": torch.get_float32_matmul_precision(),
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
    }
