"""Trusses: every bar is a cell of two corners with one spring."""

import numpy as np

from warpbots.scene import Truss
from warpbots.scene.memory_limit import refuse_excess
from warpbots.solvers.mass_spring.lattice.lattice_cells import Cells

__all__ = ["truss_cells"]

_PIECE = 300.0
"""Memory of a piece [bytes]."""


def truss_cells(shape: Truss) -> Cells:
    """Bars of length L and cross-section A as springs of stiffness E A / L; each end gets half of the mass.

    A bar is drawn in pieces, each as a ball (a disc in 2D) with the volume of the piece; the length of a piece is two
    thirds (pi / 4 in 2D) of the diameter of this ball.
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
