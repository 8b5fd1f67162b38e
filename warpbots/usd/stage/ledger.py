"""Record of the properties that readers took from a stage, and of the prims that notes name as left out.

Readers obtain the values of physics through the functions of `warpbots.usd.stage.attributes`, which enter each
property in the ledger of the current reading. A property of the file that is not in the ledger was not asked
for, whatever its name, and `warpbots.usd.stage.unread_physics` reports it.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from pxr import Sdf, Usd

__all__ = ["Ledger", "keeping_ledger", "mark_below", "mark_named", "mark_read", "mark_solid"]

_present: ContextVar["Ledger | None"] = ContextVar("present", default=None)


class Ledger:
    """Properties and prims that readers took from a stage.

    Attributes:
        read: Prims and names of the properties whose values were read.
        named: Prims that a note names as left out, so that their properties are not reported one by one.
        solids: Prims whose geometry became part of the scene.
        materials: Materials of these prims.
    """

    def __init__(self):
        self.read: set[tuple[Sdf.Path, str]] = set()
        self.named: set[Sdf.Path] = set()
        self.solids: set[Sdf.Path] = set()
        self.materials: set[Sdf.Path] = set()


@contextlib.contextmanager
def keeping_ledger() -> Iterator[Ledger]:
    """Keep a ledger of everything read within this context."""
    ledger = Ledger()
    token = _present.set(ledger)
    try:
        yield ledger
    finally:
        _present.reset(token)


def mark_read(prim: Usd.Prim, *names: str) -> None:
    """Enter properties of `prim` in the ledger: they are used, or their schema lets another property overrule them."""
    ledger = _present.get()
    if ledger is not None:
        ledger.read.update((prim.GetPath(), name) for name in names)


def mark_below(prim: Usd.Prim, *prefixes: str) -> None:
    """Enter all authored properties of `prim` with one of `prefixes` in the ledger; one note names them together."""
    mark_read(prim, *prim.GetAuthoredPropertyNames(lambda name: name.startswith(prefixes)))


def mark_named(prim: Usd.Prim, below: bool = False) -> None:
    """Enter a prim that a note names as left out in the ledger, and all prims below it if `below` is set."""
    ledger = _present.get()
    if ledger is not None:
        prims = Usd.PrimRange(prim, Usd.TraverseInstanceProxies()) if below else [prim]
        ledger.named.update(p.GetPath() for p in prims)


def mark_solid(solid: Usd.Prim, material: Usd.Prim | None) -> None:
    """Enter a prim whose geometry is part of the scene in the ledger, with the material bound to the prim."""
    ledger = _present.get()
    if ledger is not None:
        ledger.solids.add(solid.GetPath())
        ledger.materials.update({material.GetPath()} if material else ())
