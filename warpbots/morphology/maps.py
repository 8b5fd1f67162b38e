"""Maps of space that change the shape of bodies, as torch functions of points."""

import dataclasses
from collections.abc import Sequence
from math import comb
from typing import Protocol

import numpy as np
import torch

from warpbots.scene.field_types import checked, conform

__all__ = ["Affine", "Composition", "Deformation", "FreeForm", "Stretch", "jacobian"]


class Deformation(Protocol):
    """A map of points, differentiable with respect to the points and to the numbers that define the map.

    Any torch function can be used if it moves each point independently of all other points and can be differentiated
    twice, as torch operations can. An example is a cage, which maps each point to a weighted sum of its moved handles.
    """

    def __call__(self, points: torch.Tensor, /) -> torch.Tensor:
        """Images of the points [m].

        Args:
            points: Points [m], shape (n, dim), float64.

        Returns:
            The images of the points [m], shape (n, dim), float64.
        """


@dataclasses.dataclass(frozen=True, eq=False)
class Affine:
    """The affine map x' = c + A (x - c) + t.

    Attributes:
        matrix: A [1], shape (dim, dim).
        center: The point c [m], shape (dim,).
        offset: The displacement t of the point c [m], shape (dim,); None for zero.
    """

    matrix: torch.Tensor
    center: torch.Tensor | Sequence[float]
    offset: torch.Tensor | None = None

    def __post_init__(self):
        conform(self)
        dim = len(self.matrix) if self.matrix.dim() else 0
        given = [tuple(self.matrix.shape), tuple(torch.as_tensor(self.center).shape)]
        given += [] if self.offset is None else [tuple(self.offset.shape)]
        if dim not in (2, 3) or given != [(dim, dim), (dim,), (dim,)][: len(given)]:
            raise ValueError(
                f"Affine: matrix must have shape (dim, dim), center and offset shape (dim,), with dim 2 or 3, got "
                f"{', '.join(map(str, given))}"
            )

    def __call__(self, points: torch.Tensor, /) -> torch.Tensor:
        """Images of the points [m], shape (n, dim)."""
        _check_points(points, len(self.matrix), "Affine")
        c = torch.as_tensor(self.center).to(points)
        moved = c + (points - c) @ self.matrix.to(points).T
        return moved if self.offset is None else moved + self.offset.to(points)


@dataclasses.dataclass(frozen=True, eq=False)
class Stretch:
    """A stretch of the space between two planes perpendicular to an axis; the space beyond the end is translated.

    x' = x + (s - 1) (clamp(x_axis, start, end) - start) e_axis. This map makes a link longer, or a foot higher, and
    moves the parts beyond the end with it.

    Attributes:
        factor: The factor s [1], a number or a tensor of shape ().
        axis: Index of the axis: 0, 1 or 2.
        start: Coordinate of the plane that does not move [m].
        end: Coordinate of the plane at which the stretched space ends [m], greater than `start`.

    Raises:
        ValueError: The end is not beyond the start, or the factor is not one number.
    """

    factor: torch.Tensor | float
    axis: int
    start: float
    end: float

    def __post_init__(self):
        conform(self)
        if isinstance(self.factor, torch.Tensor) and self.factor.numel() != 1:
            raise ValueError(
                f"Stretch: factor must be one number, got a tensor of shape {tuple(self.factor.shape)}; make a Stretch "
                f"for each axis, and join them by Composition"
            )
        if not self.start < self.end:
            raise ValueError(f"Stretch: end must be greater than start, got {self.start:g} m and {self.end:g} m")

    def __call__(self, points: torch.Tensor, /) -> torch.Tensor:
        """Images of the points [m], shape (n, dim)."""
        _check_points(points, None, "Stretch")
        if not 0 <= self.axis < points.shape[1]:
            raise ValueError(f"Stretch: axis must be from 0 to {points.shape[1] - 1}, got {self.axis}")
        along = torch.zeros(points.shape[1]).to(points)
        along[self.axis] = 1.0
        factor = torch.as_tensor(self.factor).to(points).reshape(())
        inside = points[:, self.axis].clamp(self.start, self.end) - self.start
        return points + (factor - 1.0) * inside[:, None] * along


@dataclasses.dataclass(frozen=True, eq=False)
class FreeForm:
    """Free-form deformation by a lattice of handles in a box (Sederberg and Parry, 1986).

    x' = x + sum_i B_i(x) d_i, with products B_i of Bernstein polynomials of the coordinates relative to the box.

    Attributes:
        displacement: Displacements d of the handles [m], shape (k_1, ..., k_dim, dim), at least 2 along each axis.
        lower: Lower corner of the box [m], shape (dim,).
        upper: Upper corner of the box [m], shape (dim,).

    Raises:
        ValueError: The displacements have the wrong shape, or the box has no volume.
    """

    displacement: torch.Tensor
    lower: Sequence[float]
    upper: Sequence[float]

    def __post_init__(self):
        conform(self)
        dim, shape = len(self.lower), tuple(self.displacement.shape)
        if len(self.upper) != dim:
            raise ValueError(
                f"FreeForm: lower and upper must have as many coordinates, got {self.lower} and {self.upper} m"
            )
        if len(shape) != dim + 1 or shape[-1] != dim or min(shape[:-1]) < 2:
            raise ValueError(
                f"FreeForm: displacement must have a shape of at least 2 handles along each of {dim} axes, then {dim}, "
                f"got {shape}"
            )
        if not np.less(self.lower, self.upper).all():
            raise ValueError(f"FreeForm: lower must be below upper, got {self.lower} and {self.upper} m")

    def __call__(self, points: torch.Tensor, /) -> torch.Tensor:
        """Images of the points [m], shape (n, dim).

        Raises:
            ValueError: A point lies outside of the box.
        """
        _check_points(points, len(self.lower), "FreeForm")
        lower, upper = (torch.as_tensor(a).to(points) for a in (self.lower, self.upper))
        t = (points - lower) / (upper - lower)
        if bool(((t < -1e-9) | (t > 1.0 + 1e-9)).any()):
            raise ValueError(
                f"FreeForm: matter lies outside of the box from {self.lower} to {self.upper} m: enlarge it"
            )
        weights = torch.ones_like(t[:, :1])
        for axis, count in enumerate(self.displacement.shape[:-1]):
            weights = (weights[:, :, None] * _bernstein(t[:, axis], count - 1)[:, None]).flatten(1)
        return points + weights @ self.displacement.to(points).flatten(0, -2)


@dataclasses.dataclass(frozen=True, eq=False)
class Composition:
    """Maps in sequence; each map acts on the images of the previous map.

    Attributes:
        maps: The maps, in the order in which they act.
    """

    maps: Sequence[Deformation]

    def __post_init__(self):
        conform(self)

    def __call__(self, points: torch.Tensor, /) -> torch.Tensor:
        """Images of the points [m], shape (n, dim)."""
        for each in self.maps:
            points = each(points)
        return points


@checked
def jacobian(design: Deformation, points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Images of the points [m], shape (n, dim), and the Jacobians of the map at the points [1], shape (n, dim, dim).

    The image of a point depends on this point alone. Therefore the gradient of one coordinate of the images, summed
    over all images, contains one row of the Jacobian of every point, and one backward pass per axis is sufficient.
    Images and Jacobians are differentiable with respect to the design.

    Args:
        design: The map.
        points: Points [m], shape (n, dim).

    Raises:
        ValueError: The map returns an array of the wrong shape or values that are not finite, or it is not
            differentiable with respect to the points.
    """
    recording = torch.is_grad_enabled()
    with torch.enable_grad():
        points = points.detach().requires_grad_()
        moved = design(points)
        if moved.shape != points.shape:
            raise ValueError(f"shape: a map of points of shape {tuple(points.shape)} returned {tuple(moved.shape)}")
        if not moved.requires_grad:
            raise ValueError(
                "shape: the map has no gradient with respect to points; make it of torch operations on them"
            )
        rows = [torch.autograd.grad(x.sum(), points, create_graph=True, materialize_grads=True)[0] for x in moved.T]
    found = torch.stack(rows, dim=-2)
    finite = (moved.isfinite() & found.isfinite().all(-1)).all(-1)
    if not finite.all():
        at = int((~finite).nonzero()[0])
        raise ValueError(f"shape: the map of point {at} at {points[at].tolist()} m, or its derivative, is not finite")
    return (moved, found) if recording else (moved.detach(), found.detach())


def _check_points(points: torch.Tensor, dim: int | None, who: str) -> None:
    """Raise if points do not have `dim` coordinates; if `dim` is None, 2 and 3 coordinates are allowed."""
    if points.dim() != 2 or points.shape[1] not in ((2, 3) if dim is None else (dim,)):
        raise ValueError(f"{who}: points must have shape (n, {dim or '2 or 3'}), got {tuple(points.shape)}")


def _bernstein(t: torch.Tensor, n: int) -> torch.Tensor:
    """Bernstein polynomials of degree `n` at `t`, shape (len(t), n + 1)."""
    return torch.stack([comb(n, i) * t**i * (1.0 - t) ** (n - i) for i in range(n + 1)], dim=1)
