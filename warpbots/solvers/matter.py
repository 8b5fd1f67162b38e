"""Matter at rest as points on the host, for all solvers: used by pictures, observers and files."""

import dataclasses
from typing import Protocol

import numpy as np

from warpbots.contact import signed_distance, volume
from warpbots.scene import Scene, SceneError, Shape, SoftBody, dimension
from warpbots.user_warning import warn_user

__all__ = [
    "Matter",
    "elasticity_of",
    "materials_at",
    "Surface",
    "refuse_empty",
    "refuse_lost",
    "regions_at",
    "together",
]

_SAID, _REFUSED = 0.01, 0.1
"""Relative errors of the volume of a body's matter above which there is a warning (first) or an error (second)."""


class Surface(Protocol):
    """The surface of a body, as triangles between points of matter.

    Attributes:
        body: Index of the body in the scene.
        nodes: Range of the points of matter to which the vertices belong.
        faces: Vertices of the faces as indices within `nodes`, counter-clockwise seen from outside, shape (n, 3).
    """

    @property
    def body(self) -> int:
        """Index of the body in the scene."""

    @property
    def nodes(self) -> slice:
        """Range of the points of matter to which the vertices belong."""

    @property
    def faces(self) -> np.ndarray:
        """Vertices of the faces as indices within `nodes`, shape (n, 3)."""


@dataclasses.dataclass(frozen=True)
class Matter:
    """All matter of a scene at rest, body after body; float64.

    Attributes:
        position: Rest positions [m], shape (n, dim).
        velocity: Initial velocities [m/s], shape (n, dim).
        volume: Rest volumes [m^dim], shape (n,).
        density: Density [kg/m^dim], shape (n,).
        body: Index of the body in the scene, shape (n,), int.
        regions: Whether each point is in a region, by the name of the region, each of shape (n,), bool.
    """

    position: np.ndarray
    velocity: np.ndarray
    volume: np.ndarray
    density: np.ndarray
    body: np.ndarray
    regions: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.position)

    def with_bodies(self, index: np.ndarray) -> "Matter":
        """A copy with the indices of bodies in another scene, `index` of each body here, shape (n_bodies,), int."""
        return dataclasses.replace(self, body=index[self.body])

    @property
    def drawn(self) -> "Matter":
        """The matter at rest as pictures show it: here the same points; a subclass may return other points."""
        return self

    def drawn_at(self, values: np.ndarray) -> np.ndarray:
        """Values at the points of `drawn`, from values at all points, shape (..., n, m)."""
        return values

    @property
    def surfaces(self) -> tuple[Surface, ...]:
        """Surfaces whose vertices are points of this matter; empty if the matter has no mesh."""
        return ()

    @property
    def tetrahedra(self) -> np.ndarray:
        """Points of tetrahedra that fill the `surfaces`, shape (n_tetrahedra, 4), int; empty without solids."""
        return np.zeros((0, 4), dtype=int)

    @property
    def springs(self) -> np.ndarray:
        """End points of the springs, shape (n_springs, 2), int; empty without springs."""
        return np.zeros((0, 2), dtype=int)

    @property
    def inelastic(self) -> bool:
        """Whether any spring can yield or break."""
        return False

    @property
    def holds(self) -> bool:
        """Whether the matter cannot tear, however much it is distorted."""
        return False


def regions_at(body: SoftBody, position: np.ndarray, slack: float | np.ndarray = 0.0) -> dict[str, np.ndarray]:
    """For each region of `body`, by name, whether the points `position` lie in it, shape (n,), bool.

    Args:
        body: The body.
        position: Points [m], shape (n, dim).
        slack: Largest distance from a region at which a point outside still counts as in the region [m]: one number for
            all points, or shape (n,).
    """
    return {name: signed_distance(shape, position) <= slack for name, shape in body.regions.items()}


def refuse_empty(body: SoftBody, regions: dict[str, np.ndarray], what: str, remedy: str) -> None:
    """Raise if a region of `body` contains none of its points.

    Args:
        body: The body.
        regions: Result of `regions_at` for the points of the body.
        what: Name of the points in messages, in the plural.
        remedy: Remedy for the message.

    Raises:
        SceneError: A region is empty.
    """
    for name, inside in regions.items():
        if not inside.any():
            lower, upper = body.regions[name].bounds
            raise SceneError(
                f"SoftBody {body.name!r}: region {name!r} (from {lower.round(6).tolist()} to {upper.round(6).tolist()} "
                f"m) selects 0 of {len(inside)} {what}; move it onto the body or {remedy}"
            )


def refuse_lost(body: SoftBody, found: float, what: str, remedy: str, shape: Shape | None = None):
    """Compare the volume of a body's matter with the volume of its shape; warn above 1 %, raise above 10 % difference.

    Args:
        body: The body.
        found: Volume of the matter of the body [m^dim].
        what: Name of the elements of the matter in messages, in the plural.
        remedy: Remedy for the message.
        shape: Part of the body's shape whose volume is compared; None for the whole shape.

    Raises:
        SceneError: The volume differs by more than a tenth.
    """
    exact, dim = volume(shape or body.shape), dimension(body.shape)
    off, rho = found / exact - 1.0, body.material.density
    if abs(off) <= _SAID:
        return
    said = (
        f"SoftBody {body.name!r}: its shape holds {rho * exact:.4g} kg ({exact:.4g} m^{dim}) and its {what} "
        f"{rho * found:.4g} kg ({found:.4g} m^{dim}), {100.0 * abs(off):.2g} % {'less' if off < 0.0 else 'more'}"
    )
    if abs(off) > _REFUSED:
        raise SceneError(f"{said}; it may differ by {100.0 * _REFUSED:g} %: {remedy}")
    warn_user(f"{said}; {remedy} to come closer")


def materials_at(body: SoftBody, regions: dict[str, np.ndarray], count: int) -> np.ndarray:
    """The material of each point of a body, an array of `Material` objects, shape (count,).

    Args:
        body: The body.
        regions: Result of `regions_at`; if regions overlap, the material of the last one applies.
        count: Number of points.
    """
    kinds = np.array(body.materials, dtype=object)
    which = np.zeros(count, dtype=int)
    for k, name in enumerate(body.region_materials):
        which[regions[name]] = k + 1
    return kinds[which]


def elasticity_of(materials: np.ndarray) -> dict[str, np.ndarray]:
    """The numbers of materials that parameters of every solver follow from, each of shape (n,)."""
    names = ("youngs_modulus", "poissons_ratio", "density", "damping")
    return {name: np.array([getattr(m, name) for m in materials]) for name in names}


def together(scene: Scene, parts: list[dict]) -> dict:
    """Concatenate the fields of all bodies; in the result, `regions` refer to the points of all bodies.

    Args:
        scene: The scene of the bodies.
        parts: For every body a dict with the fields of `Matter`, arrays of shape (n, ...), and `regions`.
    """
    start = np.concatenate([[0], np.cumsum([len(part["position"]) for part in parts])])
    regions = {name: np.zeros(start[-1], dtype=bool) for name in scene.regions()}
    for i, part in enumerate(parts):
        for name, inside in part["regions"].items():
            regions[name][start[i] : start[i + 1]] = inside
    fields = {name: np.concatenate([p[name] for p in parts]) for name in parts[0] if name != "regions"}
    return fields | {"regions": regions}
