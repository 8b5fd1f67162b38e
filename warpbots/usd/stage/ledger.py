"""Record of the properties that readers have read from a stage, and of the prims that notes report as left out.

Readers obtain physical values through the functions of `warpbots.usd.stage.attributes`, which enter each property in
the ledger of the current file. A property that is missing from the ledger was not read by any reader, and
`warpbots.usd.stage.unread_physics` reports it.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from pxr import Sdf, Usd

__all__ = ["Ledger", "keeping_ledger", "mark_below", "mark_named", "mark_read", "mark_solid"]

_present: ContextVar["Ledger | None"] = ContextVar("present", default=None)


class Ledger:
    """Properties and prims that readers have read from a stage.

    Attributes:
        read: Properties whose values were read, each as a pair of the path of its prim and its name.
        named: Prims that a note reports as left out; their properties are not reported one by one.
        solids: Prims whose geometry became part of the scene.
        materials: Materials of the prims in `solids`.
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
    """Enter properties of `prim` in the ledger.

    They are used, or another property overrules them by the rules of their schema.
    """
    ledger = _present.get()
    if ledger is not None:
        ledger.read.update((prim.GetPath(), name) for name in names)


def mark_below(prim: Usd.Prim, *prefixes: str) -> None:
    """Enter all authored properties of `prim` that start with one of `prefixes` in the ledger.

    The caller reports them in one note.
    """
    mark_read(prim, *prim.GetAuthoredPropertyNames(lambda name: name.startswith(prefixes)))


def mark_named(prim: Usd.Prim, below: bool = False) -> None:
    """Enter `prim` in the ledger as left out, and all prims below it if `below` is set; the caller adds a note."""
    ledger = _present.get()
    if ledger is not None:
        prims = Usd.PrimRange(prim, Usd.TraverseInstanceProxies()) if below else [prim]
        ledger.named.update(p.GetPath() for p in prims)


def mark_solid(solid: Usd.Prim, material: Usd.Prim | None) -> None:
    """Enter `solid`, a prim whose geometry is part of the scene, in the ledger, with the material bound to it."""
    ledger = _present.get()
    if ledger is not None:
        ledger.solids.add(solid.GetPath())
        ledger.materials.update({material.GetPath()} if material else ())
