"""Settles missing masses, and mends impossible moments of inertia, in a robot file."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from warpbots.scene import SceneError, nearest_moments

__all__ = ["LEAST", "mend_moments", "mend_rounding", "refuse_massless", "settle_masses"]

LEAST = 2e-15
"""Mass [kg] and moment [kg m^2] that MuJoCo gives to massless bodies that move; no real body has so little."""

_MUCH, _LITTLE = 0.1, 0.01
"""Fractions of the largest moment of a body and of the bodies fixed to it; corrections beyond both are refused."""

_ROUNDING = 1e-5
"""Largest violation of A + B >= C that counts as rounding, for numbers with at least six digits, divided by C [1]."""

_SLACK = 1e-9
"""Distance that corrected moments keep from the bound A + B >= C in spite of rounding, divided by C [1]."""


def settle_masses(spec: Any, floats: bool) -> tuple[list[str], list[str]]:
    """Give URDF links without mass a mass, or fix them, where that is necessary; called before the file is compiled.

    By the definition of URDF, a link without ``<inertial>`` has no mass. Nothing is changed if such a link is fixed to
    a link with mass, or has a link with mass below it in the tree. If a joint moves only links without mass, these
    links get the mass of their collision geometry at MuJoCo's default density, 1000 kg/m^3. If they have no geometry
    either, the joint has no effect and is replaced by a fixed connection.

    Args:
        spec: An `mujoco.MjSpec` of URDF; it is changed.
        floats: Whether root links float.

    Returns:
        Names of the links that get the mass of their geometry, and names of the joints that are removed.
    """
    heavy = {id_ for body in spec.bodies if _heavy(body) for id_ in _ancestors(body)}
    moved = [b for b in spec.bodies[1:] if b.joints or (floats and b.parent.name == spec.worldbody.name)]
    light = [body for body in moved if body.name not in heavy and not any(j.armature > 0.0 for j in body.joints)]
    solid = {b.name for top in light for b in _descendants(top) if b.geoms}
    carried = {id_ for body in spec.bodies if body.name in solid for id_ in _ancestors(body)}
    held = [joint for body in light if body.name not in carried for joint in body.joints]
    names = [joint.name for joint in held]
    for equality in list(spec.equalities):
        if {equality.name1, equality.name2} & set(names):
            spec.delete(equality)
    for joint in held:
        spec.delete(joint)
    for body in spec.bodies[1:]:
        if not _heavy(body):
            body.explicitinertial = body.name not in solid
            body.mass, body.inertia = 0.0, np.zeros(3)
            body.ipos = np.full(3, np.nan if body.name in solid else 0.0)
            body.fullinertia = np.array([np.nan, 0.0, 0.0, 0.0, 0.0, 0.0])
    return [body.name for body in spec.bodies[1:] if body.name in solid], names


def _heavy(body: Any) -> bool:
    return bool(body.explicitinertial and (body.mass > 0.0 or np.nansum(np.abs(body.fullinertia[:3])) > 0.0))


def _descendants(body: Any) -> Iterable[Any]:
    """A body and all its descendants."""
    stack = [body]
    while stack:
        yield stack[-1]
        stack.extend(stack.pop().bodies)


def _ancestors(body: Any) -> Iterable[str]:
    """Names of a body and of all its ancestors."""
    while body is not None:
        yield body.name
        body = body.parent


def mend_moments(spec: Any, path: Path, floats: bool) -> list[str]:
    """Replace moments of inertia that violate A + B >= C by the nearest possible moments, if these are close.

    The axes stay the same, see `warpbots.scene.nearest_moments`. MuJoCo's own remedy, ``balanceinertia``, sets all
    three moments to their mean, which is far off for a rod or a plate.

    Args:
        spec: An `mujoco.MjSpec`; it is changed.
        path: The file, for messages.
        floats: Whether bodies attached to the world without a joint float.

    Returns:
        A line for every body whose moments changed by more than rounding.

    Raises:
        SceneError: The moments of a body are far from all possible moments.
    """
    lines = []
    for body in spec.bodies[1:]:
        if not body.explicitinertial or spec.compiler.balanceinertia:
            continue
        moments, axes = np.linalg.eigh(_matrix(body))
        size, nearest = moments[2], nearest_moments(moments)
        if size <= LEAST or nearest is moments:
            continue
        change = np.abs(nearest - moments).max()
        if change > _MUCH * size and change > _LITTLE * _largest_fixed_moment(body) and (floats or _moves(body)):
            raise SceneError(
                f"{path}: body {body.name!r} has the principal moments of inertia {_in_words(moments)} kg m^2, which "
                f"violate A + B >= C; correct them, or have MuJoCo set each to their mean with "
                f"compiler={{'balanceinertia': True}}"
            )
        _set(body, nearest, axes)
        if change > 1e-6 * size:
            lines.append(
                f"body {body.name!r}: its principal moments of inertia {_in_words(moments)} kg m^2 violate A + B >= C; "
                f"taken as the nearest possible, {_in_words(nearest)}"
            )
    return lines


def mend_rounding(spec: Any) -> list[str]:
    """Keep MuJoCo's ``balanceinertia`` from averaging moments that violate A + B >= C only by rounding errors.

    Such moments, for example of plates and rods, are replaced by the nearest possible moments.

    Args:
        spec: An `mujoco.MjSpec`; it is changed.

    Returns:
        A line for every body whose moments MuJoCo will set to their mean.
    """
    lines = []
    for body in spec.bodies[1:]:
        if not body.explicitinertial or not spec.compiler.balanceinertia:
            continue
        moments, axes = np.linalg.eigh(_matrix(body))
        excess = moments[2] - moments[0] - moments[1]
        if excess <= 0.0 or moments[2] <= LEAST:
            continue
        if excess <= _ROUNDING * moments[2]:
            _set(body, moments + (excess / 3.0 + _SLACK * moments[2]) * np.array([1.0, 1.0, -1.0]), axes)
        else:
            lines.append(
                f"body {body.name!r}: its principal moments of inertia {_in_words(moments)} kg m^2 violate A + B >= C; "
                f"balanceinertia sets each to their mean, {moments.mean():.4g}"
            )
    return lines


def _moves(body: Any) -> bool:
    """Whether a body or one of its ancestors has a joint."""
    while body is not None and not body.joints:
        body = body.parent
    return body is not None


def _in_words(moments: np.ndarray) -> str:
    return ", ".join(f"{m:.4g}" for m in moments)


def _matrix(body: Any) -> np.ndarray:
    if np.isnan(body.fullinertia[0]):
        return np.diag(body.inertia)
    xx, yy, zz, xy, xz, yz = body.fullinertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _set(body: Any, moments: np.ndarray, axes: np.ndarray) -> None:
    """Set the principal moments of a body, with the columns of `axes` as axes, so that MuJoCo need not diagonalise."""
    if np.isnan(body.fullinertia[0]):
        body.inertia = np.diag(axes @ np.diag(moments) @ axes.T)
        return
    from scipy.spatial.transform import Rotation

    turn = Rotation.from_quat(np.roll(body.iquat, -1)) * Rotation.from_matrix(axes * np.linalg.det(axes))
    body.iquat, body.inertia = np.roll(turn.as_quat(), 1), moments
    body.fullinertia = np.array([np.nan, 0.0, 0.0, 0.0, 0.0, 0.0])


def _largest_fixed_moment(body: Any) -> float:
    """The largest principal moment of inertia of all other bodies that are fixed to `body` [kg m^2]."""
    top = body
    while not top.joints and top.parent is not None and top.parent.name:
        if top.parent.parent is None:
            break
        top = top.parent
    stack, most = [top], 0.0
    while stack:
        one = stack.pop()
        if one.explicitinertial and one.name != body.name:
            most = max(most, float(np.linalg.eigvalsh(_matrix(one))[2]))
        stack.extend(child for child in one.bodies if not child.joints)
    return most


def refuse_massless(model: Any, bodies: tuple[str, ...], joints: tuple[str, ...], path: Path) -> None:
    """Raise if a joint moves only bodies without mass.

    Args:
        model: An `mujoco.MjModel`.
        bodies: Names of the bodies of the model.
        joints: Names of the joints of the model.
        path: The file, for messages.

    Raises:
        SceneError: A joint moves only bodies without mass; the message names the first such joint.
    """
    heavy = (model.body_mass > LEAST) | (model.body_inertia.max(axis=1) > LEAST)
    for k in range(model.nbody - 1, 0, -1):
        heavy[model.body_parentid[k]] |= heavy[k]
    for k in range(1, model.nbody):
        first, count = model.body_dofadr[k], model.body_dofnum[k]
        if count and not heavy[k] and not (model.dof_armature[first : first + count] > 0.0).all():
            raise SceneError(
                f"{path}: joint {joints[model.body_jntadr[k]]!r} moves body {bodies[k]!r}, which has no mass and "
                f"carries none; give it an <inertial>, or remove the joint"
            )
