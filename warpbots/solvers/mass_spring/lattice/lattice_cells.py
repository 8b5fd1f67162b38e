"""The cells of a lattice.

Adjacent cells share nodes and springs: each cell contributes mass to its nodes and stiffness to its springs.

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
        corner: Indices of the nodes at the corners of each cell, shape (n_cells, n_corners).
        pair: For each spring of a cell, the columns of `corner` that hold its two ends, shape (n_pairs, 2); the same
            for all cells.
        weight: Stiffness that each cell contributes to each of its springs, divided by Young's modulus [m, in 2D 1],
            shape (n_cells, n_pairs).
        volume: Volume of each cell [m^dim], shape (n_cells,).
        pieces: Number of pieces in which each cell is drawn, in a row along the first spring of the cell, shape
            (n_cells,); None if each cell is drawn as a single piece at its centre.
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
        """Indices of the nodes at the two ends of each spring of each cell, shape (n_cells, n_pairs, 2)."""
        return self.corner[:, self.pair]

    @property
    def direction(self) -> np.ndarray:
        """Unit vector along each spring of each cell [1], shape (n_cells, n_pairs, dim)."""
        d = self.node[self.ends[..., 1]] - self.node[self.ends[..., 0]]
        return d / np.linalg.norm(d, axis=-1, keepdims=True)

    @property
    def piece(self) -> np.ndarray:
        """Index of the cell to which each drawn piece belongs, shape (n_pieces,)."""
        return np.repeat(np.arange(len(self.volume)), 1 if self.pieces is None else self.pieces)

    @property
    def carry(self) -> csr_matrix:
        """Sparse matrix from node positions to positions of the drawn pieces [1], shape (n_pieces, n_nodes)."""
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
    """Strain e of the rest lengths with which an undeformed lattice of Young's modulus 1 exerts a given stress.

    The strain solves -C e = `stress`. C is the stiffness tensor of the isotropic solid (see the module docstring). The
    rest length of a spring along n gets the strain n . e n.

    Args:
        stress: Symmetric stress, divided by Young's modulus [1], shape (dim, dim).
    """
    dim = len(stress)
    return -(stress - np.trace(stress) / (dim + 2.0) * np.eye(dim)) / (2.0 * SHEAR)
