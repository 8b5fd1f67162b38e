"""Shapes of our own for the soft multi-body paper: two bridges with the published numbers of tetrahedra, and balls.

Bridges are cells of a grid whose nodes are moved into the shape of a bridge. A cell is cut into six tetrahedra about a
diagonal from a node with three even indices to a node with three odd indices, so that neighbours are mirror images and
faces fit. Then diagonals of faces in planes of the grid with an even index join nodes with an even sum of indices, and
diagonals of faces in planes with an odd index join nodes with an odd sum. So a cell whose neighbours are only across
even planes, or only across odd planes, may be cut into five tetrahedra instead of six. In this way every number of
tetrahedra is reached without a hole.
"""

import itertools
from collections.abc import Iterable

import numpy as np

import warpbots as wb

__all__ = ["arch_bridge", "cut", "icosphere", "suspension_bridge"]

Cell = tuple[int, int, int]

_CORNERS = np.array(list(np.ndindex(2, 2, 2)))
_SIX = np.array([_CORNERS[[0, 1 << a, (1 << a) + (1 << b), 7]] for a, b in itertools.permutations(range(3), 2)])
"""Tetrahedra of a cell about its diagonal from corner 000 to 111, shape (6, 4, 3)."""
_FIVE = _CORNERS[[[0, 3, 5, 6], *([k, k ^ 1, k ^ 2, k ^ 4] for k in (1, 2, 4, 7))]]
"""One on the corners with an even sum, and one at each other corner, shape (5, 4, 3)."""


def cut(cells: Iterable[Cell], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Cut cells of a grid into tetrahedra.

    Args:
        cells: Indices of the cells along x, y and z.
        count: Number of tetrahedra.

    Returns:
        Indices of the nodes along x, y and z, shape (n_nodes, 3), and the nodes of the tetrahedra, in any order, shape
        (count, 4).

    Raises:
        ValueError: There are too many cells, too few cells, or too few cells that may be cut into five tetrahedra.
    """
    cells = sorted(cells)
    known = set(cells)
    able = [cell for cell in cells if len(_planes(cell, known)) == 1]
    fewer = 6 * len(cells) - count
    if not 0 <= fewer <= len(able):
        raise ValueError(
            f"{len(cells)} cells, of which {len(able)} may be cut into five, have {6 * len(cells) - len(able)} to "
            f"{6 * len(cells)} tetrahedra, got {count}"
        )
    five = {able[k] for k in np.linspace(0, len(able) - 1, fewer).round().astype(int)}
    corners = []
    for cell in cells:
        even = np.array(cell) % 2  # the corner whose node has even indices
        if cell in five:
            (odd,) = _planes(cell, known)
            corners.append(cell + (_FIVE ^ odd ^ even))
        else:
            corners.append(cell + (_SIX ^ even))
    nodes, tets = np.unique(np.concatenate(corners).reshape(-1, 3), axis=0, return_inverse=True)
    return nodes, tets.reshape(-1, 4)


def _planes(cell: Cell, known: set[Cell]) -> set[int]:
    """Set that contains 0 if the cell has a neighbour across an even plane, and 1 if across an odd plane."""
    steps = np.eye(3, dtype=int)
    return {
        (cell[k] + side) % 2
        for k in range(3)
        for side in (0, 1)
        if tuple(int(i) for i in cell + (2 * side - 1) * steps[k]) in known
    }


def icosphere(radius: float, turn: np.ndarray | None = None) -> wb.shapes.TetMesh:
    """A ball of 43 nodes and 80 tetrahedra: an icosahedron with edges halved once, every face joined to the centre.

    Args:
        radius: Radius of the ball [m].
        turn: Rotation matrix, shape (3, 3); None for no rotation.
    """
    import trimesh

    sphere = trimesh.creation.icosphere(1, radius)
    tets = np.column_stack([sphere.faces, np.full(len(sphere.faces), len(sphere.vertices))])
    vertices = np.concatenate([sphere.vertices, np.zeros((1, 3))])
    return wb.shapes.TetMesh.oriented(vertices if turn is None else vertices @ turn, tets)


def suspension_bridge() -> wb.shapes.TetMesh:
    """A deck, two cables over two pairs of pylons, and hangers: 4 m long, 0.6 m wide; 668 tetrahedra.

    The layers of the grid are the deck, the pylons and hangers on the deck, and the cables.
    """
    length, rows = 20, (0, 2)
    cells = set(itertools.product(range(length), range(3), (0,)))
    cells |= set(itertools.product(range(length), rows, (2,)))
    cells |= set(itertools.product((2, 5, 8, 11, 14, 17), rows, (1,)))
    nodes, tets = cut(cells, 668)
    x, y = 0.2 * nodes[:, 0], 0.2 * nodes[:, 1]
    cable = np.interp(np.abs(x - 2.0), *_cable())
    z = np.select([nodes[:, 2] == 0, nodes[:, 2] == 1, nodes[:, 2] == 2], [-0.12, 0.0, cable], cable + 0.12)
    return wb.shapes.TetMesh.oriented(np.stack([x, y, z], axis=1), tets)


def _cable() -> tuple[np.ndarray, np.ndarray]:
    """Heights of the lower side of a cable over distances from the middle [m]: a parabola, then straight down."""
    inner = np.linspace(0.0, 0.9, 10)
    return np.append(inner, 2.0), np.append(0.15 + 0.65 * (inner / 0.9) ** 2, 0.1)


def arch_bridge() -> wb.shapes.TetMesh:
    """Two arches between three piers, with posts for a parapet: 17.2 m long, 1.8 m wide; 2911 tetrahedra.

    Three layers of the grid are the piers, three more layers fill the space between arch and deck, and the last layer
    is the posts.
    """
    length = 43
    cells = set(itertools.product(range(length), range(3), range(3, 6)))
    cells |= {c for x in (0, 20, 40) for c in itertools.product(range(x, x + 3), range(3), range(3))}
    cells |= set(itertools.product(range(1, length, 5), (0, 2), (6,)))
    nodes, tets = cut(cells, 2911)
    column, layer = nodes[:, 0], nodes[:, 2]
    across = np.where(column < 21.5, column - 11.5, column - 31.5) / 8.5  # -1 to 1 from pier to pier
    arch = 2.0 + 2.2 * np.sqrt(np.maximum(1.0 - across**2, 0.0))
    filled = arch + (np.minimum(layer, 6) - 3.0) / 3.0 * (4.8 - arch)
    z = np.where(layer < 3, layer * 2.0 / 3.0, filled + 0.5 * (layer > 6))
    return wb.shapes.TetMesh.oriented(np.stack([0.4 * column, 0.6 * nodes[:, 1], z], axis=1), tets)
