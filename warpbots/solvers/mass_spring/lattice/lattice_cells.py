"""The cells of a lattice; adjacent cells share springs and nodes, and contribute stiffness and mass to them.

A cell of material with Young's modulus E contributes the stiffness ``weight E`` to the spring between two of its
corners. The contributions of adjacent cells add up; a spring at a surface has fewer contributions. So for every affine
deformation a lattice of any shape has exactly the energy of its material, and a beam of few cells has the correct
bending stiffness. A lattice whose springs all had the same stiffness would be too stiff at its surfaces.

The springs of an isotropic lattice exert the stress of an elastic solid with lambda = mu, Poisson's ratio 1/4 (Cauchy's
relation, which holds for all central forces): mu = 2/5 E. In 2D the lattice is the same solid in plane strain.
"""

import dataclasses

import numpy as np
from scipy.sparse import csr_matrix

__all__ = ["POISSONS_RATIO", "SHEAR", "Cells", "eigenstrain"]

POISSONS_RATIO = 0.25
"""Poisson's ratio of every isotropic lattice [1]."""

SHEAR = 0.5 / (1.0 + POISSONS_RATIO)
"""Shear modulus, and Lame's first constant, per Young's modulus [1]."""


@dataclasses.dataclass(frozen=True)
class Cells:
    """A body divided into cells.

    Attributes:
        node: Positions of the nodes [m], shape (n_nodes, dim).
        corner: Numbers of the nodes at the corners of each cell, shape (n_cells, n_corners).
        pair: Corners that each spring of a cell joins, the same for all cells, shape (n_pairs, 2).
        weight: Stiffness that each cell contributes to each of its springs, per Young's modulus [m, in 2D 1], shape
            (n_cells, n_pairs).
        volume: Volume of each cell [m^dim], shape (n_cells,).
        pieces: Number of pieces, along the first spring of the cell, in which a cell is drawn, shape (n_cells,); None
            if each cell is drawn as a single piece at its centre.
    """

    node: np.ndarray
    corner: np.ndarray
    pair: np.ndarray
    weight: np.ndarray
    volume: np.ndarray
    pieces: np.ndarray | None = None

    @property
    def centre(self) -> np.ndarray:
        """Centres of the cells [m], shape (n_cells, dim)."""
        return self.node[self.corner].mean(axis=1)

    @property
    def ends(self) -> np.ndarray:
        """Nodes at the ends of every spring of every cell, shape (n_cells, n_pairs, 2)."""
        return self.corner[:, self.pair]

    @property
    def direction(self) -> np.ndarray:
        """Unit vectors along every spring of every cell, shape (n_cells, n_pairs, dim)."""
        d = self.node[self.ends[..., 1]] - self.node[self.ends[..., 0]]
        return d / np.linalg.norm(d, axis=-1, keepdims=True)

    @property
    def piece(self) -> np.ndarray:
        """Number of the cell to which each drawn piece belongs, shape (n_pieces,)."""
        return np.repeat(np.arange(len(self.volume)), 1 if self.pieces is None else self.pieces)

    @property
    def carry(self) -> csr_matrix:
        """Matrix from positions of the nodes to positions of the drawn pieces [1], shape (n_pieces, n_nodes)."""
        piece, corners = self.piece, self.corner.shape[1]
        if self.pieces is None:
            share = np.full((len(piece), corners), 1.0 / corners)
        else:
            first = np.cumsum(self.pieces) - self.pieces
            t = (np.arange(len(piece)) - first[piece] + 0.5) / self.pieces[piece]
            share = np.stack([1.0 - t, t], axis=1)
        rows = corners * np.arange(len(piece) + 1)
        return csr_matrix((share.ravel(), self.corner[piece].ravel(), rows), shape=(len(piece), len(self.node)))


def eigenstrain(stress: np.ndarray) -> np.ndarray:
    """Strain e of the rest lengths for which an undeformed lattice of Young's modulus 1 exerts `stress`: -C e = stress.

    C is the stiffness of the isotropic solid above; a spring along n gets the rest strain n . e n.

    Args:
        stress: Stress per Young's modulus [1], symmetric, shape (dim, dim).
    """
    dim = len(stress)
    return -(stress - np.trace(stress) / (dim + 2.0) * np.eye(dim)) / (2.0 * SHEAR)
