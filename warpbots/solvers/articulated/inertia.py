"""Mass and moments of inertia of shapes, in closed form for primitives and as sums for meshes.

A 2D shape is a slice of a prism, one metre deep: from z = -1/2 m to z = 1/2 m.
"""

import functools
import math

import numpy as np

from warpbots.contact.volume import volume
from warpbots.scene import (
    Box,
    Capsule,
    Cylinder,
    Inertia,
    Posed,
    RigidBody,
    Scene,
    SceneError,
    Shape,
    Sphere,
    TetMesh,
    TriangleMesh,
    Union,
)
from warpbots.user_warning import warn_user

__all__ = ["Moments", "body_inertia", "combine", "solid_moments", "warn_of_overlaps"]

_OVERLAP = 0.01
"""Share of the mass of a body that counts twice without a warning; the volume of a union is known to 0.4 %."""

_HALF_DEPTH = 0.5
"""Half the depth of a 2D shape [m]."""

Moments = tuple[float, np.ndarray, np.ndarray]
"""Volume [m^3], centre [m] and moments about it at density 1 [m^5]; or mass [kg], centre [m] and moments [kg m^2]."""


def body_inertia(body: RigidBody) -> Inertia | None:
    """Inertia of a body, or None for a body without mass.

    Raises:
        SceneError: The volume of the shape of the body is not known.
    """
    if body.inertia is not None or body.shape is None:
        return body.inertia
    try:
        volume, center, moments = solid_moments(body.shape)
        if not volume > 0.0:
            raise SceneError(f"it has a volume of {volume:g} m^3")
        return Inertia(body.density * volume, tuple(center), body.density * moments)
    except (SceneError, TypeError) as fault:
        raise SceneError(
            f"RigidBody {body.name!r}: its mass does not follow from its shape: {fault}; give it inertia=Inertia(...)"
        ) from None


def warn_of_overlaps(scene: Scene) -> None:
    """Warn of the body whose mass is most in excess because it counts overlaps of parts of its shape twice.

    Not for a scene from a file: in UsdPhysics the mass of a body is the sum of the masses of its colliders.
    """
    if scene.source is not None:
        return
    worst, most = None, 1.0 + _OVERLAP
    for body in (b for b in scene.rigid if b.inertia is None and b.shape is not None and _several(b.shape)):
        mass, true = body_inertia(body).mass, body.density * volume(body.shape)
        if mass > most * true:
            worst, most = body, mass / true
    if worst is not None:
        mass = body_inertia(worst).mass
        warn_user(
            f"RigidBody {worst.name!r}: parts of its shape overlap, and its mass counts the overlap twice: "
            f"{mass:.4g} kg instead of {mass / most:.4g} kg; let the parts only touch, or give it inertia=Inertia(...)"
        )


def _several(shape: Shape) -> bool:
    return _several(shape.shape) if isinstance(shape, Posed) else isinstance(shape, Union) and len(shape.shapes) > 1


@functools.singledispatch
def solid_moments(shape: Shape) -> Moments:
    """Volume, centre, and moments of inertia about the centre of a shape of density 1.

    Raises:
        TypeError: No moments of inertia are known for the shape.
    """
    raise TypeError(f"no moments of inertia are known for a {type(shape).__name__}")


@solid_moments.register
def _(shape: Box) -> Moments:
    lower, upper = shape.bounds
    if len(lower) == 2:
        lower, upper = np.append(lower, -_HALF_DEPTH), np.append(upper, _HALF_DEPTH)
    squares = (upper - lower) ** 2
    volume = float(np.prod(upper - lower))
    return volume, (lower + upper) / 2.0, np.diag(volume / 12.0 * (squares.sum() - squares))


@solid_moments.register
def _(shape: Sphere) -> Moments:
    if len(shape.center) == 2:
        area = math.pi * shape.radius**2
        return _slice(area, np.array(shape.center), area * shape.radius**2 / 4.0 * np.eye(2))
    volume = 4.0 / 3.0 * math.pi * shape.radius**3
    return volume, np.array(shape.center), 0.4 * volume * shape.radius**2 * np.eye(3)


@solid_moments.register
def _(shape: Cylinder) -> Moments:
    center, axis, length = _axis(shape)
    r = shape.radius
    if len(center) == 2:
        area = 2.0 * r * length
        return _slice(area, center, _second(axis, area * length**2 / 12.0, area * r**2 / 3.0))
    volume = math.pi * r**2 * length
    return volume, center, _about(axis, volume * r**2 / 2.0, volume * (3.0 * r**2 + length**2) / 12.0)


@solid_moments.register
def _(shape: Capsule) -> Moments:
    center, axis, length = _axis(shape)
    r = shape.radius
    if len(center) == 2:
        band, disc = 2.0 * r * length, math.pi * r**2
        # the centre of each half disc is 4 r / (3 pi) beyond the end of the band
        along = band * length**2 / 12.0 + disc * (r**2 / 4.0 + length**2 / 4.0 + 4.0 / (3.0 * math.pi) * length * r)
        return _slice(band + disc, center, _second(axis, along, band * r**2 / 3.0 + disc * r**2 / 4.0))
    tube, ball = math.pi * r**2 * length, 4.0 / 3.0 * math.pi * r**3
    # the centre of each half ball is 3/8 r beyond the end of the tube
    across = tube * (3.0 * r**2 + length**2) / 12.0 + ball * (0.4 * r**2 + length**2 / 4.0 + 0.375 * length * r)
    return tube + ball, center, _about(axis, tube * r**2 / 2.0 + 0.4 * ball * r**2, across)


@solid_moments.register
def _(shape: TriangleMesh) -> Moments:
    import trimesh

    if not shape.volume > 0.0:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    properties = trimesh.Trimesh(shape.vertices, shape.faces, process=False).mass_properties
    return float(properties.volume), np.array(properties.center_mass), np.array(properties.inertia)


@solid_moments.register
def _(shape: TetMesh) -> Moments:
    corners, V = shape.vertices[shape.tets], shape.volumes
    center = np.einsum("t,tki->i", V, corners) / (4.0 * shape.volume)
    x = corners - center
    s = x.sum(axis=1)  # the integral of x x^T over a tetrahedron is V/20 (sum of x x^T at its corners + s s^T)
    second = (np.einsum("t,tki,tkj->ij", V, x, x) + np.einsum("t,ti,tj->ij", V, s, s)) / 20.0
    second = (second + second.T) / 2.0
    return shape.volume, center, np.trace(second) * np.eye(3) - second


@solid_moments.register
def _(shape: Posed) -> Moments:
    volume, center, moments = solid_moments(shape.shape)
    dim, R, p = len(shape.translation), np.eye(3), np.zeros(3)
    R[:dim, :dim], p[:dim] = shape.rotation, shape.translation
    return volume, R @ center + p, R @ moments @ R.T


@solid_moments.register
def _(shape: Union) -> Moments:
    """Sum the moments of the shapes of the union; matter in an overlap of two shapes counts twice."""
    return combine([solid_moments(s) for s in shape.shapes])


def combine(parts: list[Moments]) -> Moments:
    """Total mass (or volume) of several parts, their common centre, and their moments of inertia about this centre."""
    mass = sum(m for m, _, _ in parts)
    center = sum(m * c for m, c, _ in parts) / mass
    moments = np.zeros((3, 3))
    for m, c, J in parts:
        d = c - center
        moments = moments + J + m * (d @ d * np.eye(3) - np.outer(d, d))
    return mass, center, moments


def _slice(area: float, center: np.ndarray, second: np.ndarray) -> Moments:
    """Moments of a slice of a prism, from its cross-section.

    Args:
        area: Area [m^2].
        center: Centre of the area [m], shape (2,).
        second: Integral of x x^T over the area, about its centre [m^4], shape (2, 2).
    """
    whole = np.zeros((3, 3))
    whole[:2, :2] = second
    whole[2, 2] = area * _HALF_DEPTH**2 / 3.0
    return area, np.append(center, 0.0), np.trace(whole) * np.eye(3) - whole


def _second(axis: np.ndarray, along: float, across: float) -> np.ndarray:
    """Integral of x x^T over an area, from the integrals of x^2 along an axis and across it [m^4]."""
    return across * np.eye(2) + (along - across) * np.outer(axis, axis)


def _axis(shape: Capsule | Cylinder) -> tuple[np.ndarray, np.ndarray, float]:
    """Centre, unit axis and length of the axis of a capsule or cylinder."""
    start, end = np.array(shape.start), np.array(shape.end)
    length = float(np.linalg.norm(end - start))
    return (start + end) / 2.0, (end - start) / length, length


def _about(axis: np.ndarray, along: float, across: float) -> np.ndarray:
    return across * np.eye(3) + (along - across) * np.outer(axis, axis)
