"""A warning about bodies whose mass is wrong because regions of other densities do not follow the cells."""

import numpy as np

from warpbots.contact.volume import points_in
from warpbots.scene import Points, Scene, Sheet, SoftBody, Truss, parts_of
from warpbots.solvers.matter import Matter, materials_at, regions_at
from warpbots.user_warning import warn_user

__all__ = ["warn_of_densities"]

_SAID = 0.05
"""Relative error of the mean density above which there is a warning."""
_DRAWN = 1 << 13
"""Number of points at which the density of a body is evaluated; the error of the mean is below a hundredth."""


def warn_of_densities(scene: Scene, matter: Matter) -> None:
    """Warn of the body whose mean density differs most from the mean density of its shape, if by a twentieth or more.

    An element has the density of the region in which its centre lies. Where faces of regions cut through elements,
    regions gain or lose half of these elements.

    Args:
        scene: The scene.
        matter: Its matter.
    """
    worst, most = None, _SAID
    for k, body in enumerate(scene.bodies):
        own = matter.body == k
        if not isinstance(body, SoftBody) or not own.any() or not _mixed(body):
            continue
        exact = _density_at(body, points_in(body.shape, _DRAWN)).mean()
        found = np.average(matter.density[own], weights=matter.volume[own])
        if abs(found / exact - 1.0) > most:
            worst, most = (body, found, exact), abs(found / exact - 1.0)
    if worst is not None:
        body, found, exact = worst
        warn_user(
            f"SoftBody {body.name!r}: regions of other densities do not follow its cells: its mean density is "
            f"{found:.4g} instead of {exact:.4g} kg/m^{scene.dim}, {100.0 * most:.2g} % "
            f"{'more' if found > exact else 'less'}; put the faces of these regions between cells, or use smaller cells"
        )


def _mixed(body: SoftBody) -> bool:
    """Whether regions of a solid have other densities than the rest of the body."""
    solid = not any(isinstance(part, Points | Sheet | Truss) for part in parts_of(body.shape))
    return solid and len({material.density for material in body.materials}) > 1


def _density_at(body: SoftBody, position: np.ndarray) -> np.ndarray:
    regions = regions_at(body, position)
    return np.array([material.density for material in materials_at(body, regions, len(position))])
