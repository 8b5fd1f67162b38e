"""Cages: closed triangle meshes whose vertices, called handles, deform the space inside."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import torch

from warpbots.design.mass_properties import closed_mass_properties
from warpbots.design.mean_value import mean_value_weights
from warpbots.design.mesh_arrays import refuse_fractions
from warpbots.scene.field_types import Triple, checked, conform

__all__ = ["Cage", "CageMap", "box_cage", "grid_cage"]


@dataclasses.dataclass(frozen=True, eq=False)
class Cage:
    """A closed triangle mesh around a part; the vertices of the cage are its handles.

    Attributes:
        handles: Positions of the handles at rest [m], shape (k, 3).
        faces: Indices of the three vertices of each face, counter-clockwise seen from outside, shape (m, 3), int.

    Raises:
        ValueError: The cage is open, turned inside out, or has no volume.
    """

    handles: np.ndarray
    faces: np.ndarray

    def __post_init__(self):
        conform(self)
        refuse_fractions(self.faces, "Cage")
        handles, faces = np.array(self.handles, dtype=np.float64), np.array(self.faces, dtype=np.int64)
        if handles.ndim != 2 or handles.shape[1] != 3 or faces.ndim != 2 or faces.shape[1] != 3 or not len(faces):
            raise ValueError(
                f"Cage: handles and faces must have shapes (k, 3) and (m, 3), got {handles.shape} and {faces.shape}"
            )
        if not np.isfinite(handles).all():
            raise ValueError("Cage: handles must be finite numbers")
        if faces.min() < 0 or faces.max() >= len(handles):
            raise ValueError(
                f"Cage: faces must name handles 0 to {len(handles) - 1}, got {faces.min()} to {faces.max()}"
            )
        _refuse_open(faces)
        volume = closed_mass_properties(torch.tensor(handles), torch.tensor(faces)).volume.item()
        if volume <= 0.0:
            raise ValueError(
                f"Cage: its volume is {volume:.3g} m^3 and must be positive: faces must be counter-clockwise seen from "
                f"outside"
            )
        for name, array in (("handles", handles), ("faces", faces)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @checked
    def weights(self, points: torch.Tensor) -> torch.Tensor:
        """Mean value coordinates of points: the weights with which the points follow the handles [1], shape (n, k).

        With the handles at rest, ``weights @ handles`` gives the points; with moved handles it gives the moved points.

        Args:
            points: Points [m], shape (n, 3).

        Raises:
            ValueError: A point is outside of the cage.
        """
        points = points.to(torch.float64)
        weights = mean_value_weights(points, *self._tensors(points.device))
        self._refuse_outside(points.detach())
        return weights

    def _tensors(self, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """Handles and faces as tensors on a device."""
        return torch.tensor(self.handles, device=device), torch.tensor(self.faces, device=device)

    def _refuse_outside(self, points: torch.Tensor) -> None:
        handles, faces = self._tensors(points.device)
        winding = _winding(points, handles[faces], 1e-9 * float(np.ptp(self.handles, axis=0).max()))
        outside = winding < 0.25
        if outside.any():
            at = int(outside.nonzero()[0])
            raise ValueError(
                f"Cage: {int(outside.sum())} of {len(points)} points are outside of it, the first one, {at}, at "
                f"{points[at].tolist()} m; enlarge the cage"
            )


@dataclasses.dataclass(frozen=True, eq=False)
class CageMap:
    """A map of points in a cage: x' = sum_i w_i(x) h_i, with mean value coordinates w_i and moved handles h_i.

    The map is a `warpbots.morphology.Deformation`, for `warpbots.morphology.shaped`; all points x must be within the
    cage.

    Attributes:
        cage: The cage.
        handles: Positions of the moved handles [m], shape (k, 3): the parameters of a design.

    Raises:
        ValueError: The shape of `handles` differs from the shape of `cage.handles`.
    """

    cage: Cage
    handles: torch.Tensor

    def __post_init__(self):
        conform(self)
        if tuple(self.handles.shape) != self.cage.handles.shape:
            raise ValueError(
                f"CageMap: handles must have shape {self.cage.handles.shape}, got {tuple(self.handles.shape)}"
            )

    def __call__(self, points: torch.Tensor, /) -> torch.Tensor:
        """Images of the points [m], shape (n, 3).

        Raises:
            ValueError: A point is outside of the cage.
        """
        return self.cage.weights(points) @ self.handles.to(points)


@checked
def box_cage(lower: Triple[float], upper: Triple[float]) -> Cage:
    """A cage around a box, with 14 handles: the 8 corners, with x changing fastest, then the centres of the 6 faces.

    The centres are in the order low x, high x, low y, high y, low z, high z.

    Args:
        lower: Lower corner of the box [m], shape (3,).
        upper: Upper corner of the box [m], shape (3,).

    Raises:
        ValueError: The box has no volume.
    """
    ends = _ends("box_cage", lower, upper)
    corners = np.array([(ends[i, 0], ends[j, 1], ends[k, 2]) for k in (0, 1) for j in (0, 1) for i in (0, 1)])
    # corners of each face, counter-clockwise seen from outside
    rings = [(0, 4, 6, 2), (1, 3, 7, 5), (0, 1, 5, 4), (2, 6, 7, 3), (0, 2, 3, 1), (4, 5, 7, 6)]
    centers = [corners[list(ring)].mean(axis=0) for ring in rings]
    faces = [(ring[i], ring[(i + 1) % 4], 8 + f) for f, ring in enumerate(rings) for i in range(4)]
    return Cage(np.concatenate([corners, centers]), np.array(faces))


@checked
def grid_cage(lower: Triple[float], upper: Triple[float], cells: Triple[int]) -> Cage:
    """A cage around a box whose handles are a regular grid on its surface, with x changing fastest, then y.

    With n cells along every edge the cage has 6 n^2 + 2 handles: 8, 98 and 386 handles for n = 1, 4 and 8.

    Args:
        lower: Lower corner of the box [m], shape (3,).
        upper: Upper corner of the box [m], shape (3,).
        cells: Numbers of cells of the grid along x, y and z, shape (3,), each at least 1.

    Raises:
        ValueError: The box has no volume, or the numbers of cells are not three positive integers.
    """
    ends = _ends("grid_cage", lower, upper)
    n = np.array(cells)
    if (n < 1).any():
        raise ValueError(f"grid_cage: cells must be at least 1 along x, y and z, got {cells}")
    grid = np.indices(n[::-1] + 1).reshape(3, -1).T[:, ::-1]  # x fastest
    outside = ((grid == 0) | (grid == n)).any(axis=1)
    number = (np.cumsum(outside) - 1).reshape(n[::-1] + 1).T  # of a handle at (i, j, k)
    faces = [half for axis in range(3) for side in (0, n[axis]) for half in _halves(number, axis, side)]
    return Cage(ends[0] + (ends[1] - ends[0]) * (grid[outside] / n), np.concatenate(faces))


def _halves(number: np.ndarray, axis: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Handles of the triangles on one side of a grid, two for each cell, counter-clockwise seen from outside."""
    plane = np.moveaxis(number, axis, 0)[side]
    if axis == 1:
        plane = plane.T  # so that its two axes and the normal are right-handed
    a, b, c, d = (part.ravel() for part in (plane[:-1, :-1], plane[1:, :-1], plane[1:, 1:], plane[:-1, 1:]))
    if side == 0:
        b, d = d, b
    return np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)


def _ends(who: str, lower: Sequence[float], upper: Sequence[float]) -> np.ndarray:
    """Lower and upper corner of a box, shape (2, 3).

    Raises:
        ValueError: The box has no volume.
    """
    ends = np.array([lower, upper], dtype=np.float64)
    if ends.shape != (2, 3) or not (ends[0] < ends[1]).all():
        raise ValueError(f"{who}: lower must be below upper along three axes, got {lower} and {upper} m")
    return ends


def _refuse_open(faces: np.ndarray) -> None:
    """Raise unless the faces traverse every edge once in each direction."""
    edges = np.concatenate([faces[:, [i, (i + 1) % 3]] for i in range(3)])
    found = {tuple(edge): 0 for edge in edges.tolist()}
    for edge in edges.tolist():
        found[tuple(edge)] += 1
    for (a, b), count in found.items():
        if count > 1 or (b, a) not in found:
            raise ValueError(
                f"Cage: the edge of handles {a} and {b} has not one face on each side; a cage must be closed, with all "
                f"faces counter-clockwise seen from outside"
            )


def _winding(points: torch.Tensor, corner: torch.Tensor, near: float) -> torch.Tensor:
    """Winding number of a closed mesh around points: 1 inside the mesh, 0 outside.

    Points within the distance `near` [m] of the mesh count as inside. `corner` holds the corners of the faces. Source:
    Van Oosterom & Strackee 1983, "The solid angle of a plane triangle".
    """
    found = []
    for part in points.split(max(1, (1 << 21) // len(corner))):
        r = corner - part[:, None, None]
        d = torch.linalg.vector_norm(r, dim=-1)
        a, b, c = r.unbind(dim=2)
        triple = (a * torch.linalg.cross(b, c)).sum(-1)
        around = (
            d.prod(dim=-1) + (a * b).sum(-1) * d[..., 2] + (b * c).sum(-1) * d[..., 0] + (c * a).sum(-1) * d[..., 1]
        )
        winding = torch.atan2(triple, around).sum(dim=1) / (2.0 * torch.pi)
        normal = torch.linalg.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
        height = (a * normal).sum(-1).abs() / torch.linalg.vector_norm(normal, dim=-1)
        share = torch.linalg.cross(r.roll(-1, dims=2), r.roll(-2, dims=2))
        inside = ((share * normal[:, None]).sum(-1) >= -1e-9 * (normal * normal).sum(-1)[:, None]).all(dim=-1)
        found.append(torch.where(((height <= near) & inside).any(dim=1), 1.0, winding))
    return torch.cat(found)
