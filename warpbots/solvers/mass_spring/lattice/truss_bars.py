"""Lattices of trusses: each bar of a truss becomes a cell with two corners and one spring, whatever the spacing is."""

import numpy as np

from warpbots.scene import SoftBody, Truss, bars_of
from warpbots.scene.memory_limit import refuse_excess
from warpbots.solvers.mass_spring.lattice.lattice_cells import Cells

__all__ = ["finer", "truss_cells"]

_PIECE = 300.0
"""Memory of a piece [bytes]."""


def finer(body: SoftBody) -> str:
    """The remedy for too few masses in a body, in words: a truss has masses at the ends of its bars only."""
    if bars_of(body.shape) is not None:
        return "divide its bars into shorter ones"
    return "use a smaller MassSpring(spacing=...)"


def truss_cells(shape: Truss) -> Cells:
    """Convert each bar of a truss to a cell with one spring.

    The spring of a bar with length L and cross-section A has the stiffness E A / L, and each end gets half of the mass
    of the bar. For drawing, a bar is divided into pieces, and each piece is drawn as a ball (a disc in 2D) with the
    volume of the piece. The length of a piece is two thirds (pi / 4 in 2D) of the diameter of the ball.
    """
    piece = shape.radius * (4.0 / 3.0 if shape.joints.shape[1] == 3 else np.pi / 2.0)
    count = np.ceil(shape.length / piece)
    refuse_excess(count.sum(), _PIECE, "MassSpring: pieces in which the bars of a Truss are drawn", "use thicker bars")
    return Cells(
        node=shape.joints,
        corner=shape.bars,
        pair=np.array([[0, 1]]),
        weight=(shape.section / shape.length)[:, None],
        volume=shape.section * shape.length,
        pieces=count.astype(int),
    )
