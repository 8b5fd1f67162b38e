"""Rigid bodies: shape, inertia and contact points."""

from collections.abc import Sequence

import numpy as np

from warpbots.scene.color import require_color
from warpbots.scene.field_types import Triple
from warpbots.scene.record import SceneError, point, record
from warpbots.scene.shapes import Shape, dimension
from warpbots.scene.shapes.field_checks import assign, finite_array, positive
from warpbots.scene.with_z import with_z

__all__ = ["Cloud", "Inertia", "RigidBody", "in_space", "nearest_moments", "rotation_matrix"]

_SLACK = 1e-9
"""Relative distance from the bound A + B >= C, so that rounding does not violate it."""

_IDENTITY = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def in_space(value: Sequence[float], what: str) -> tuple[float, ...]:
    """Convert `value` to three coordinates; a point (x, y) of a 2D scene has z = 0.

    Raises:
        SceneError: `value` is not a point with two or three finite coordinates.
    """
    return point([*value, 0.0] if np.shape(value) == (2,) else value, what, 3)


def rotation_matrix(value: object, what: str) -> tuple[tuple[float, ...], ...]:
    """Convert `value` to the rows of a 3D rotation matrix.

    Raises:
        SceneError: `value` is not a rotation matrix.
    """
    R = np.asarray(value, dtype=np.float64)
    if R.shape != (3, 3) or not np.allclose(R @ R.T, np.eye(3), atol=1e-6) or np.linalg.det(R) < 0.0:
        raise SceneError(f"{what} must be a rotation matrix (orthogonal, determinant 1), got {R.tolist()}")
    return tuple(tuple(float(v) for v in row) for row in R)


@record
class Inertia:
    """Mass, centre of mass and moments of inertia.

    Attributes:
        mass: Mass [kg].
        center: Centre of mass in the frame of the body [m], shape (3,), or (2,) in 2D.
        moments: Moments of inertia about the centre of mass in the axes of the body [kg m^2], shape (3, 3), or the
            diagonal of this matrix, shape (3,).

    Raises:
        SceneError: The inertia is physically impossible: the moments are not positive definite, or one principal moment
            exceeds the sum of the other two.
    """

    mass: float
    center: Sequence[float]
    moments: np.ndarray

    def __post_init__(self):
        moments = np.asarray(self.moments, dtype=np.float64)
        moments = np.diag(moments) if moments.shape == (3,) else moments
        center = in_space(self.center, "Inertia.center")
        if moments.shape != (3, 3):
            raise SceneError(f"Inertia: moments must have shape (3, 3) or (3,), got {np.shape(self.moments)}")
        if not np.allclose(moments, moments.T, rtol=0.0, atol=1e-6 * float(np.abs(moments).max())):
            raise SceneError(f"Inertia: moments must be symmetric, got {moments.tolist()}")
        principal = np.linalg.eigvalsh(moments)
        if principal[0] <= 0.0:
            raise SceneError(
                f"Inertia: moments must be positive definite, got principal moments {principal.tolist()} kg m^2"
            )
        if principal[2] > (principal[0] + principal[1]) * (1.0 + 1e-6):
            raise SceneError(
                f"Inertia: no moment can exceed the other two together, got principal moments {principal.tolist()} "
                f"kg m^2; check the units and the axes"
            )
        moments = (moments + moments.T) / 2.0
        moments.flags.writeable = False
        positive(self.mass, "Inertia.mass")
        assign(self, center=center, moments=moments)


def nearest_moments(principal: np.ndarray) -> np.ndarray:
    """Find the physically possible principal moments that are nearest to given moments, by the sum of squares.

    Moments A <= B <= C are possible if A + B >= C. Otherwise A and B are increased, and C is decreased, by a third of
    C - A - B.

    Args:
        principal: Moments in ascending order [kg m^2], shape (3,).

    Returns:
        Possible moments [kg m^2], shape (3,), which are the given moments if those are possible.
    """
    size = principal[2]
    nearest = np.maximum(principal, 0.0)
    excess = nearest[2] - nearest[0] - nearest[1]
    if excess < -_SLACK * size and principal[0] > 0.0:
        return principal
    return nearest + max(excess, 0.0) / 3.0 * np.array([1.0, 1.0, -1.0]) + _SLACK * size * np.array([1.0, 1.0, 0.0])


@record
class Cloud:
    """Contact points of a rigid body, given one by one.

    Attributes:
        positions: Position of each point in the frame of the body [m], shape (n, 3), or (n, 2) for a 2D shape.
        areas: Area that each point represents [m^2], shape (n,), or one number for all points.
    """

    positions: np.ndarray
    areas: float | np.ndarray

    def __post_init__(self):
        positions = finite_array(self.positions, "Cloud.positions", 2)
        if positions.shape[1] not in (2, 3):
            raise SceneError(f"Cloud.positions must have shape (n, 3), or (n, 2) in 2D, got {positions.shape}")
        if positions.shape[1] == 2:
            positions = with_z(positions)
        if np.shape(self.areas) not in ((), (len(positions),)):
            raise SceneError(
                f"Cloud: {len(positions)} positions need as many areas, or one for all, got {np.shape(self.areas)}"
            )
        areas = finite_array(np.broadcast_to(self.areas, len(positions)), "Cloud.areas", 1)
        if areas.min() <= 0.0:
            i = int(areas.argmin())
            raise SceneError(f"Cloud.areas must be positive [m^2], got {areas[i]:g} at index {i}")
        assign(self, positions=positions, areas=areas)


@record
class RigidBody:
    """A body that does not deform.

    In a 2D scene a body has a 2D shape. It is a slice of a prism, one metre deep, and moves in the plane: z is 0 in its
    position, and its rotation is about z.

    Attributes:
        name: Unique name of the body.
        shape: Solid of the body in the frame of the body; None for a body without extent, which is massless unless it
            has an `inertia`.
        density: Density [kg/m^3], from which mass and moments of inertia follow.
        inertia: Mass and moments of inertia, which replace the values from shape and density; None to use these values.
        position: Origin of the frame of the body in the world with all joint coordinates at zero [m], shape (3,), or
            (2,) in 2D.
        rotation: Rotation matrix of the frame of the body in the world with all joint coordinates at zero, row by row,
            shape (3, 3). The columns of the matrix are the axes of the frame.
        points: Approximate number of contact points, or the contact points as a `Cloud`; 0 for no contact points. For
            any number above 0, a sphere has one point, a capsule three points and a cylinder nine points; these points
            move over the surface to the place of contact, and each represents a 64th of the surface. Boxes have a grid
            with points at their corners. Other shapes, and all shapes in contact with such other shapes, have the given
            number of points, spread evenly and with the symmetry of the shape. In 2D a disc has one point, a capsule
            three, and a rectangle points at its corners and along its sides; other shapes take a `Cloud`.
        surface: Name of the surface material of the body, to which contacts refer; None for the name of the body.
        color: Red, green and blue in [0, 1] for pictures; None for a colour of the palette, see `Scene.colors`.
        friction: Coulomb coefficient mu >= 0 under `ProjectiveDynamics`, in contact with soft and other rigid bodies; a
            pair of bodies has the mean of their coefficients, and a contact with an obstacle has the coefficient of the
            obstacle, unless a `Contact` law names the pair. Under `Articulated` the coefficient of the law applies.

    Raises:
        SceneError: A value is out of range.
    """

    name: str
    shape: Shape | None
    density: float = 1000.0
    inertia: Inertia | None = None
    position: Sequence[float] = (0.0, 0.0, 0.0)
    rotation: Sequence[Sequence[float]] = _IDENTITY
    points: int | Cloud = 0
    surface: str | None = None
    color: Triple[float] | None = None
    friction: float = 0.5

    def __post_init__(self):
        what = f"RigidBody {self.name!r}"
        if self.density <= 0.0:
            raise SceneError(f"{what}: density must be positive [kg/m^3], got {self.density:g}")
        if self.friction < 0.0:
            raise SceneError(f"{what}: friction must be a coefficient >= 0, got {self.friction:g}")
        require_color(self)
        position = in_space(self.position, f"{what}: position")
        if not isinstance(self.points, Cloud):
            if self.points < 0:
                raise SceneError(f"{what}: points must be a number of points >= 0 or a Cloud, got {self.points!r}")
            if self.points and self.shape is None:
                raise SceneError(f"{what}: it has no surface for {self.points} points; give it a shape or a Cloud")
        assign(self, position=position, rotation=rotation_matrix(self.rotation, f"{what}: rotation"))

    @property
    def flat(self) -> bool:
        """Whether the shape of the body is 2D."""
        return self.shape is not None and dimension(self.shape) == 2

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of the bounding box with all joint coordinates at zero [m], each of shape (3,).

        The box of a 2D shape has no height along z.
        """
        center, R = np.array(self.position), np.array(self.rotation)
        if self.shape is None:
            return center, center.copy()
        lower, upper = map(with_z, self.shape.bounds)
        middle, half = R @ (lower + upper) / 2.0 + center, np.abs(R) @ (upper - lower) / 2.0
        return middle - half, middle + half
