"""Voxel lattices, whose cells are boxes.

The springs of a cell are its edges, the diagonals of its faces and its space diagonals.
"""

import itertools

import numpy as np

from warpbots.contact import signed_distance
from warpbots.scene import SceneError, Shape
from warpbots.scene.memory_limit import refuse_excess
from warpbots.solvers.mass_spring.lattice.lattice_cells import SHEAR, Cells

__all__ = ["voxel_cells"]

_DIAGONAL = 1.0 / 3.0
"""Share of the shear stiffness due to the space diagonals of a cube; the face diagonals have the rest."""

_ROOM = 0.05
"""Relative distance of the stiffness of space diagonals from the bounds at which that of another spring is 0 [1]."""

_FLATTEST = 1.7
"""Largest ratio of two edges of a box; from sqrt 3 on no springs of positive stiffness are isotropic."""

_CELL = {2: 1e3, 3: 4e3}
"""Memory of a cell with its springs, by dimension [bytes]."""


def voxel_cells(shape: Shape, spacing: float, name: str) -> Cells:
    """Fill a shape with boxes.

    The bounding box of the shape is divided exactly into equal boxes with edges of about `spacing`. The cells are the
    boxes whose centres are inside the shape. Neighbouring boxes share their corners, edges and faces.

    Args:
        shape: Shape to fill.
        spacing: Length of the edges of a box [m].
        name: Name of the body, for messages.

    Raises:
        SceneError: Boxes are so flat that a spring would have a negative stiffness.
    """
    lower, upper = shape.bounds
    counts, size = _divided(upper - lower, spacing)
    refuse_excess(
        counts.prod(), _CELL[len(counts)], "MassSpring: cells of a body",
        "use a larger MassSpring(spacing=...) or a smaller body",
    )  # fmt: skip
    if _flatness(size) > _FLATTEST:
        raise SceneError(
            f"SoftBody {name!r}: cells of {size.round(6).tolist()} m have edges in a ratio of {_flatness(size):.3g}, "
            f"and springs are isotropic up to {_FLATTEST:g}, beyond which some would need a negative stiffness; use "
            f"{_remedy(upper - lower, spacing)} or lattice='random'"
        )
    counts = counts.astype(int)
    box = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, len(lower))
    box = box[signed_distance(shape, lower + (box + 0.5) * size) <= 0.0]
    corners = np.array(list(np.ndindex(*(2,) * len(lower))))
    number = np.ravel_multi_index(tuple(np.moveaxis(box[:, None] + corners, -1, 0)), tuple(counts + 1))
    used, corner = np.unique(number, return_inverse=True)
    node = lower + np.stack(np.unravel_index(used, tuple(counts + 1)), axis=-1) * size
    pair = np.array(list(itertools.combinations(range(len(corners)), 2)))
    differs = corners[pair[:, 0]] != corners[pair[:, 1]]
    weight = np.array([_share(tuple(axes), size) for axes in differs])
    return Cells(
        node=node,
        corner=corner.reshape(number.shape),
        pair=pair,
        weight=np.broadcast_to(weight, (len(box), len(pair))),
        volume=np.full(len(box), np.prod(size)),
    )


def _divided(edges: np.ndarray, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Number of boxes along each edge of a bounding box, and the size of a box [m]; each has shape (dim,).

    `edges` are the edges of the bounding box.
    """
    counts = np.maximum(1.0, np.round(edges / spacing))
    return counts, edges / counts


def _remedy(edges: np.ndarray, spacing: float) -> str:
    """Advice for an error message: use a spacing at which cells are nearly cubes, or else a thicker body."""
    coarsest = min(spacing, 1.5 * edges.min())
    finer = [float(f"{0.97**k * coarsest:.2g}") for k in range(1, 50)]
    found = (s for s in finer if 0.0 < s < spacing and _flatness(_divided(edges, s)[1]) <= _FLATTEST)
    return next((f"MassSpring(spacing={s:g})," for s in found), "a thicker body")


def _flatness(size: np.ndarray) -> float:
    """Ratio of the longest edge of a box to its shortest edge."""
    return float(size.max() / size.min()) if size.min() > 0.0 else np.inf


def _share(axes: tuple[bool, ...], size: np.ndarray) -> float:
    """Stiffness, divided by Young's modulus, that a box of `size` contributes to a spring along a diagonal.

    `axes` says for each axis whether the diagonal has a component along the axis.

    A box has the edges a_i and the volume V. Let S be a set of axes, and let k_S be the full stiffness of a spring
    along the diagonal of these axes. Its length l_S follows from l_S^2 = sum of a_i^2 over S, and a box has 2^(|S| - 1)
    such diagonals. The lattice has the stress of the solid under every affine strain if

        V C_iijj = sum_{S with i, j} 2^(|S| - 1) k_S a_i^2 a_j^2 / l_S^2 = mu V,   V C_iiii = 3 mu V.

    The second equation gives the stiffness k_{i} of the edges once the stiffnesses of the diagonals are known. The
    first equation relates face diagonals and, in 3D, space diagonals. With b_i = 1 / a_i^2 and t = 4 k_xyz / (mu V
    l_xyz^2) all stiffnesses are positive if t is between b_i (b_j + b_k - 3 b_i) and b_i b_j for all i, j and k. Such a
    t exists if no b_i is 3 times another b_j or more; in 2D there is no t to choose, and all stiffnesses are positive
    under the same condition. In dimension d, 2^(d - |S|) boxes share a spring along |S| axes.
    """
    dim, V = len(size), float(np.prod(size))

    def full(chosen: tuple[int, ...]) -> float:
        a2 = size[list(chosen)] ** 2
        if len(chosen) == 3:
            b = np.sort(1.0 / a2)
            least, most = max(0.0, b[0] * (b[1] + b[2] - 3.0 * b[0])), b[0] * b[1]
            room, k = _ROOM * (most - least), SHEAR * V * a2.sum() / 4.0
            of_a_cube = _DIAGONAL * SHEAR * V * a2.sum() / (4.0 * V ** (4.0 / 3.0))
            return np.clip(of_a_cube, k * (least + room), k * (most - room))
        if len(chosen) == 2:
            k = full((0, 1, 2)) if dim == 3 else 0.0
            rest = SHEAR * V - 4.0 * k * a2.prod() / (size**2).sum()
            return rest * a2.sum() / (2.0 * a2.prod())
        (i,) = chosen
        larger = [s for n in range(2, dim + 1) for s in itertools.combinations(range(dim), n) if i in s]
        rest = sum(2.0 ** (len(s) - 1) * full(s) * a2[0] ** 2 / (size[list(s)] ** 2).sum() for s in larger)
        return (3.0 * SHEAR * V - rest) / a2[0]

    chosen = tuple(i for i in range(dim) if axes[i])
    return full(chosen) / 2.0 ** (dim - len(chosen))
