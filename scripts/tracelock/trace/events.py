"""The shape of an event as it stands in the file, for msgspec: one wide struct, as that decodes fastest.

Scalars may be anything that JSON has, so that one odd value does not fail a whole unit; the columns sort it out.
Every further field of `Args` slows each event a little: only what some column needs is here.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Raw, field

from tracelock.trace.kinds import CATEGORIES

Scalar: TypeAlias = int | float | str | bool | None

NO_JSON: Final = Raw(b"")
PHASES: Final = tuple("XiIMsftBECbneSTpFPNODRcVv()")


class Args(msgspec.Struct, gc=False, frozen=True):
    """The args that some column needs, in the order of the file, because the decoder looks ahead from the last."""

    external: Scalar = field(default=-1, name="External id")
    sequence: Scalar = field(default=-1, name="Sequence number")
    forward_thread: Scalar = field(default=-1, name="Fwd thread id")
    types: Raw = field(default=NO_JSON, name="Input type")
    shapes: Raw = field(default=NO_JSON, name="Input Dims")
    stack: Raw = field(default=NO_JSON, name="Call stack")
    python_parent: Scalar = field(default=-1, name="Python parent id")
    python_id: Scalar = field(default=-1, name="Python id")
    device: Scalar = -1
    stream: Scalar = -1
    correlation: Scalar = -1
    old_external: Scalar = field(default=-1, name="external id")
    bytes: Scalar = -1
    blocks_per_sm: Scalar = field(default=math.nan, name="blocks per SM")
    occupancy: Scalar = field(default=math.nan, name="est. achieved occupancy %")
    graph: Scalar = field(default=-1, name="graph id")
    collective: Scalar = field(default=None, name="Collective name")
    device_type: Scalar = field(default=-1, name="Device Type")
    device_id: Scalar = field(default=-1, name="Device Id")
    address: Scalar = field(default=0, name="Addr")
    allocation: Scalar = field(default=0, name="Bytes")
    allocated: Scalar = field(default=-1, name="Total Allocated")
    reserved: Scalar = field(default=-1, name="Total Reserved")
    name: Scalar = None
    labels: Scalar = None


NO_ARGS: Final = Args()


class Event(msgspec.Struct, gc=False):
    """A member of traceEvents. Only `ph` must be there; an absent ts or dur is None, an absent name too."""

    ph: Literal[PHASES]  # type: ignore[valid-type]
    cat: str = ""
    name: Scalar = None
    pid: Scalar = ""
    tid: Scalar = ""
    ts: Any = None
    dur: Scalar = None
    args: Args | None = NO_ARGS
    id: Scalar = None


def event_decoder(
    categories: Collection[str] | None = tuple(CATEGORIES), exact: bool = False
) -> msgspec.json.Decoder[Any]:
    """Return a decoder of JSON arrays of events.

    Parameters
    ----------
    categories
        Allowed values of ``cat``: known words decode faster than arbitrary ones, and an unknown one fails the unit.
        None allows all.
    exact
        Keep the digits of ``ts`` as they stand, for fractional times that a float64 cannot hold.
    """
    time: tuple[str, Any, Any] = ("ts", Raw, NO_JSON) if exact else ("ts", Scalar, None)
    words = str if categories is None else Literal[tuple(categories)]
    event = msgspec.defstruct("Event", [("cat", words, ""), time], bases=(Event,), gc=False)
    return msgspec.json.Decoder(list[event])  # type: ignore[valid-type]
