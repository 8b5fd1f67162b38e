"""Mass properties of rigid bodies from `PhysicsMassAPI` and material densities; zero means "not set" in UsdPhysics.

Attributes of a body take precedence over attributes of its colliders; attributes of colliders take precedence over the
density of materials.
"""

from typing import NamedTuple

import numpy as np
from pxr import Gf, Usd

from warpbots.scene import Inertia, RigidBody, SceneError, Shape, nearest_moments
from warpbots.solvers.articulated.inertia import combine, solid_moments
from warpbots.usd.geometry.physics_materials import read_density
from warpbots.usd.rigid.exact_values import agree, load_exact
from warpbots.usd.stage.attributes import author_row, authored, get, put, quaternion, schemas, value_of
from warpbots.usd.stage.faults import LocatedError
from warpbots.usd.stage.inventory import Note
from warpbots.usd.stage.schema import rows
from warpbots.usd.stage.transforms import quaternion_matrix, transform
from warpbots.usd.stage.units import StageUnits

__all__ = ["MassAttributes", "read_mass_properties", "has_mass_attributes"]

_BALL = 0.1
"""Radius [m] of the ball that UsdPhysics assumes for a body without colliders."""


_MUCH = 0.1
"""Largest correction of moments of inertia divided by the largest moment, as for robot files."""


class MassAttributes(NamedTuple):
    """Mass properties of a body.

    Attributes:
        density: Density [kg/m^3].
        inertia: Mass, centre of mass and moments of inertia; None if they follow from shape and density.
    """

    density: float
    inertia: Inertia | None


def read_mass_properties(
    body: Usd.Prim, base: np.ndarray, parts: list[tuple[Usd.Prim, Shape]], frame: StageUnits, note: Note
) -> MassAttributes:
    """Mass properties of the rigid body at `body`.

    Args:
        body: Prim of the body.
        base: Transform from local coordinates of the prim to the frame of the body [m], shape (4, 4).
        parts: Colliders of the body, each with its solid in the frame of the body.
        frame: Units and axes of the stage.
        note: Called with a prim and a description of anything that is left out or changed on reading.

    Raises:
        SceneError: A value is outside its range; the message names the prim.
    """
    said = _said(body, frame)
    center, diagonal = _center(body, base), _moments(body, frame)
    densities = [_density(prim, body, said, frame) for prim, _ in parts]
    plain = densities[0] if densities else said["density"] or RigidBody.density
    own = [_said(prim, frame)["mass"] if prim != body else None for prim, _ in parts]
    explicit = said["mass"] or center is not None or diagonal is not None
    if not explicit and not any(own) and len(set(densities)) < 2:
        return MassAttributes(plain, None)
    if said["mass"] and center is not None and diagonal is not None:
        return MassAttributes(plain, _inertia(body, said["mass"], center, diagonal, note))
    whole = _whole(body, parts, densities, own, said["mass"], diagonal is not None, note)
    if whole is None:
        return MassAttributes(plain, None)
    mass, middle, moments = whole
    return MassAttributes(
        plain,
        _inertia(body, mass, middle if center is None else center, moments if diagonal is None else diagonal, note),
    )


def has_mass_attributes(prim: Usd.Prim, frame: StageUnits) -> bool:
    """Whether `prim` itself has a mass or a density.

    Raises:
        SceneError: Mass or density is negative; the message names the prim.
    """
    return any(value is not None for value in _said(prim, frame).values())


def _inertia(body: Usd.Prim, mass: float, center: np.ndarray, moments: np.ndarray, note: Note) -> Inertia:
    """The inertia of a body; slightly impossible moments of inertia are replaced by the nearest possible ones."""
    try:
        return Inertia(mass, tuple(center.tolist()), moments)
    except SceneError as error:
        principal, axes = np.linalg.eigh(moments)
        nearest = nearest_moments(principal)
        change = np.abs(nearest - principal).max()
        if nearest is principal or not change <= _MUCH * principal[2]:
            raise LocatedError(body.GetPath(), error) from None
    if change > 1e-5 * principal[2] or principal[0] <= 0.0:  # more than the rounding of single precision
        note(body, f"principal moments of inertia {_in_words(principal)} kg m^2, which violate A + B >= C; taken as "
             f"the nearest possible, {_in_words(nearest)}")  # fmt: skip
    return Inertia(mass, tuple(center.tolist()), axes @ np.diag(nearest) @ axes.T)


def _in_words(moments: np.ndarray) -> str:
    return ", ".join(f"{m:.4g}" for m in moments)


def _whole(
    body: Usd.Prim, parts: list[tuple[Usd.Prim, Shape]], densities: list[float], own: list[float | None],
    mass: float | None, inertia_said: bool, note: Note,
) -> tuple[float, np.ndarray, np.ndarray] | None:  # fmt: skip
    """Mass, centre and moments of inertia of all colliders together, scaled to the total `mass` if it is given."""
    pieces = []
    for (prim, shape), density, weight in zip(parts, densities, own, strict=True):
        try:
            volume, center, moments = solid_moments(shape)
        except TypeError as error:
            raise SceneError(f"the mass of {prim.GetPath()} does not follow from its shape: {error}") from None
        factor = weight / volume if weight else density
        pieces.append((factor * volume, center, factor * moments))
    if pieces:
        total, center, moments = combine(pieces)
        return mass or total, center, moments * ((mass or total) / total)
    if not mass and not inertia_said:
        note(body, "a centre of mass of a body that has neither mass nor collider")
        return None
    if not mass:
        mass = 1.0
        note(body, "moments of inertia but neither mass nor collider; its mass is taken as 1 kg")
    if not inertia_said:
        note(
            body, f"a mass but neither collider nor moments of inertia; those of a ball of radius {_BALL:g} m are used"
        )
    return mass, np.zeros(3), 0.4 * mass * _BALL**2 * np.eye(3)


def _said(prim: Usd.Prim, frame: StageUnits) -> dict[str, float | None]:
    """Mass [kg] and density [kg/m^3] of `prim` itself; None if not set."""
    if "PhysicsMassAPI" not in schemas(prim):
        return {"mass": None, "density": None}
    found = {f: get(prim, s, frame) for f, s in (("mass", "Inertia.mass"), ("density", "RigidBody.density"))}
    for field, value in found.items():
        if value is not None and not value >= 0.0:
            raise LocatedError(prim.GetPath(), f"physics:{field} must be positive, or 0 for not set, got {value:g}")
    return {field: value or None for field, value in found.items()}


def _density(prim: Usd.Prim, body: Usd.Prim, said: dict[str, float | None], frame: StageUnits) -> float:
    own = _said(prim, frame)["density"] if prim != body else None
    of_material = read_density(prim, frame)
    return own or said["density"] or of_material or RigidBody.density


def _center(body: Usd.Prim, base: np.ndarray) -> np.ndarray | None:
    name = rows("Inertia.center")[0].name
    if "PhysicsMassAPI" not in schemas(body) or not authored(body, name):
        return None
    value = np.asarray(value_of(body, name)).astype(str).astype(np.float64)
    return transform(base, value[None])[0] if np.isfinite(value).all() else None


def _moments(body: Usd.Prim, frame: StageUnits) -> np.ndarray | None:
    """Moments of inertia of `body` [kg m^2], shape (3, 3), or None if the file does not give them."""
    name, turned = (rows(f"Inertia.{part}")[0].name for part in ("diagonal", "axes"))
    if "PhysicsMassAPI" not in schemas(body) or not authored(body, name):
        return None
    diagonal = np.asarray(value_of(body, name)).astype(str).astype(np.float64)
    if not diagonal.any():
        return None
    R = np.eye(3)
    if authored(body, turned):
        q = value_of(body, turned)
        R = quaternion_matrix(*q.GetImaginary(), q.GetReal())
    return frame.factor("kg m^2") * (R * diagonal) @ R.T


def exact_inertia(prim: Usd.Prim, plain: Inertia | None) -> Inertia | None:
    center, moments = load_exact(prim, "center"), load_exact(prim, "moments")
    if plain is None or center is None or moments is None or moments.size != 9:
        return plain
    moments = moments.reshape(3, 3)
    size = max(1e-300, float(np.abs(moments).max()))
    if not agree(center, plain.center) or not agree(moments / size, plain.moments / size):
        return plain
    return Inertia(plain.mass, tuple(center.tolist()), moments)


def write_inertia(prim: Usd.Prim, body: RigidBody, frame: StageUnits) -> None:
    """Author mass, centre of mass and moments of inertia of `body`, in single precision, if `body.inertia` is set."""
    if body.inertia is None:
        return
    put(prim, "Inertia.mass", body.inertia.mass, frame)
    principal, axes = np.linalg.eigh(body.inertia.moments)
    if np.count_nonzero(body.inertia.moments - np.diag(np.diag(body.inertia.moments))) == 0:
        principal, axes = np.diag(body.inertia.moments), np.eye(3)
    if np.linalg.det(axes) < 0.0:
        axes = axes * [1.0, 1.0, -1.0]
    author_row(prim, rows("Inertia.center")[0], Gf.Vec3f(*body.inertia.center))
    author_row(prim, rows("Inertia.diagonal")[0], Gf.Vec3f(*(principal / frame.factor("kg m^2")).tolist()))
    author_row(prim, rows("Inertia.axes")[0], quaternion(axes))
