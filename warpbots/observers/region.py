"""Mean motion of the matter in a region: centre, deformation, rotation and angular velocity."""

from typing import Any

import numpy as np
import torch

from warpbots.simulation import Simulation
from warpbots.solvers import State

__all__ = ["Region", "points_of", "polar_rotation"]

_FLAT = 1e-8
"""Smallest ratio of the least to the greatest principal moment with which a region does not count as flat."""
_ITERATIONS = 10
"""Iterations of `polar_rotation`: enough for double precision even if principal stretches differ by a factor of 10⁶."""


class Region:
    """The points of matter in a region, and means over these points, weighted by mass.

    Attributes:
        points: Indices of the points of matter in the region, shape (n,), int.
        mass: Mass of each of these points at rest, divided by the mass of the region [1], shape (n,).
    """

    def __init__(self, simulation: "Simulation[Any]", region: str | None, what: str):
        """Find the points of the region in the matter at rest.

        Args:
            simulation: The simulation with the region.
            region: Name of the region, or None for all matter.
            what: Name of the observer, for messages.

        Raises:
            TypeError: The scene has no soft bodies.
            ValueError: There is no region of this name, or the region is flat.
        """
        matter, self.points = simulation.model.matter, points_of(simulation, region, what)
        like = simulation.state().position
        mass = (matter.density * matter.volume)[self.points]
        mass = mass / mass.sum()
        self.mass = like.new_tensor(mass)
        X = matter.position[self.points] - mass @ matter.position[self.points]
        M = np.einsum("n,ni,nj->ij", mass, X, X)
        extent = np.linalg.eigvalsh(M)
        if not extent[0] > _FLAT * extent[-1]:
            name = "the scene" if region is None else f"region {region!r}"
            raise ValueError(
                f"{what}: {name} has no extent in one direction, so that its deformation is not determined by its "
                f"{len(X)} points; use a larger region or smaller cells"
            )
        self._arms = like.new_tensor(mass[:, None] * X @ np.linalg.inv(M))

    def center(self, field: torch.Tensor) -> torch.Tensor:
        """Mean of a field over the region, weighted by mass, shape (worlds, dim).

        The mean of the positions is the centre of mass.

        Args:
            field: Values at all points of matter, shape (worlds, n_points, dim).
        """
        return self.mass @ field[:, self.points]

    def deformation(self, state: State) -> torch.Tensor:
        """Mean deformation gradient, from the best affine fit to the motion from rest [1], shape (worlds, dim, dim)."""
        return state.position[:, self.points].mT @ self._arms

    def rotation(self, state: State) -> torch.Tensor:
        """Rotation of the region from rest, by polar decomposition of `deformation`, shape (worlds, dim, dim)."""
        return polar_rotation(self.deformation(state))

    def angular_velocity(self, state: State) -> torch.Tensor:
        """Angular velocity of a rigid body with the inertia and the angular momentum of the region.

        Returns:
            Angular velocity in world axes [rad/s], shape (worlds, 3) or, in 2D, (worlds, 1).
        """
        x, v = state.position[:, self.points], state.velocity[:, self.points]
        x, v = x - self.center(state.position)[:, None], v - self.center(state.velocity)[:, None]
        if x.shape[-1] == 2:
            momentum = self.mass @ (x[..., 0] * v[..., 1] - x[..., 1] * v[..., 0])[..., None]
            return momentum / (self.mass @ x.square().sum(dim=-1, keepdim=True))
        momentum = self.mass @ torch.linalg.cross(x, v)
        moments = torch.einsum("n,wni,wnj->wij", self.mass, x, x)
        one = torch.eye(3, dtype=x.dtype, device=x.device)
        inertia = moments.diagonal(dim1=-2, dim2=-1).sum(-1)[:, None, None] * one - moments
        return torch.linalg.solve(inertia, momentum)


def points_of(simulation: "Simulation[Any]", region: str | None, what: str) -> np.ndarray:
    """Indices of the points of matter in a region, shape (n,); indices of all points if `region` is None.

    Args:
        simulation: The simulation with the region.
        region: Name of the region, or None for all matter.
        what: Name of the observer, for messages.

    Raises:
        TypeError: The scene has no soft bodies.
        ValueError: There is no such region.
    """
    matter = simulation.model.matter
    if matter is None:
        raise TypeError(
            f"{what}: scene {simulation.scene.name!r} has rigid bodies alone, which have no particles to observe; use "
            f"Joints, Poses, EndEffector or another observer of rigid bodies"
        )
    if region is None:
        return np.arange(len(matter))
    if region not in matter.regions:
        raise ValueError(f"there is no region {region!r}; the scene has {', '.join(matter.regions) or 'none'}")
    return np.nonzero(matter.regions[region])[0]


def polar_rotation(F: torch.Tensor) -> torch.Tensor:
    """Rotation R of the polar decomposition F = R S, by Newton's iteration with scaling by the determinant.

    The derivative of the converged iteration is the derivative of R, even for equal principal stretches, for which the
    derivative of a singular value decomposition does not exist (Higham, Functions of Matrices, section 8.3).

    Args:
        F: Matrices with positive determinants, shape (..., dim, dim).

    Raises:
        ValueError: A determinant is not positive, which means that the region is turned inside out.
    """
    determinant, R = torch.linalg.det(F), F
    if not (determinant > 0.0).all():
        raise ValueError(
            f"a region is turned inside out (determinant {determinant.min().item():.3g} of its mean deformation), so "
            f"that it has no rotation; observe a region that stays whole"
        )
    for _ in range(_ITERATIONS):
        scale = torch.linalg.det(R)[..., None, None] ** (-1.0 / F.shape[-1])
        R = 0.5 * (scale * R + torch.linalg.inv(scale * R).mT)
    return R
