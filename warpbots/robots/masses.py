"""What bodies weigh where a file leaves it open, and moments of inertia that no body has."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from warpbots.robots.mujoco_versions import delete
from warpbots.scene import SceneError

__all__ = ["LEAST", "mend_moments", "refuse_weightless", "weigh"]

LEAST = 2e-15
"""Mass [kg] and moment [kg m^2] that MuJoCo gives to what has none, so that it may move; no body weighs so little."""

_MUCH, _LITTLE = 0.1, 0.01
"""Part of its own greatest moment, or of that of what it is fixed to, by which the moments of a body are corrected."""

_SLACK = 1e-9
"""Relative distance from the border of what bodies have, so that rounding does not cross it."""


def weigh(spec: Any, floats: bool) -> tuple[list[str], list[str]]:
    """Settle what links of URDF weigh that have no mass, before the file is compiled.

    By URDF's definition a link without ``<inertial>`` weighs nothing. That is well where it is fixed to one that has a
    mass, or carries one. Where a joint moves links that have none among them, they weigh as solids of MuJoCo's default
    density, 1000 kg/m^3, of their collision geometry. Where they have no geometry either, nothing could tell where the
    joint stands, and it is held.

    Args:
        spec: An `mujoco.MjSpec` of URDF; it is changed.
        floats: Whether its roots are to float.

    Returns:
        Names of the links that weigh as their geometry, and of the joints that are held.
    """
    heavy = {id_ for body in spec.bodies if _heavy(body) for id_ in _line(body)}
    moved = [b for b in spec.bodies[1:] if b.joints or (floats and b.parent.name == spec.worldbody.name)]
    light = [body for body in moved if body.name not in heavy and not any(j.armature > 0.0 for j in body.joints)]
    solid = {b.name for top in light for b in _below(top) if b.geoms}
    carried = {id_ for body in spec.bodies if body.name in solid for id_ in _line(body)}
    held = [joint for body in light if body.name not in carried for joint in body.joints]
    names = [joint.name for joint in held]
    for equality in list(spec.equalities):
        if {equality.name1, equality.name2} & set(names):
            delete(spec, equality)
    for joint in held:
        delete(spec, joint)
    for body in spec.bodies[1:]:
        if not _heavy(body):
            body.explicitinertial = body.name not in solid
            body.mass, body.inertia = 0.0, np.zeros(3)
            body.ipos = np.full(3, np.nan if body.name in solid else 0.0)
            body.fullinertia = np.array([np.nan, 0.0, 0.0, 0.0, 0.0, 0.0])
    return [body.name for body in spec.bodies[1:] if body.name in solid], names


def _heavy(body: Any) -> bool:
    return bool(body.explicitinertial and (body.mass > 0.0 or np.nansum(np.abs(body.fullinertia[:3])) > 0.0))


def _below(body: Any) -> Iterable[Any]:
    """A body and all that hang on it."""
    stack = [body]
    while stack:
        yield stack[-1]
        stack.extend(stack.pop().bodies)


def _line(body: Any) -> Iterable[str]:
    """Names of a body and of all on which it hangs."""
    while body is not None:
        yield body.name
        body = body.parent


def mend_moments(spec: Any, path: Path, floats: bool) -> list[str]:
    """Bring moments of inertia to the nearest that a body can have, A + B >= C, where they are not far from it.

    The nearest by the sum of squares has the same axes and a third of C - A - B more in A and B, and less in C.
    MuJoCo's own remedy, ``balanceinertia``, makes all three their mean, which alters a rod or a plate beyond
    recognition.

    Args:
        spec: An `mujoco.MjSpec`; it is changed.
        path: The file, for people.
        floats: Whether bodies on the world without a joint are to float.

    Returns:
        A line for every body whose moments are others now by more than rounding.

    Raises:
        SceneError: They are far from it.
    """
    lines = []
    for body in spec.bodies[1:]:
        if not body.explicitinertial or spec.compiler.balanceinertia:
            continue
        moments, axes = np.linalg.eigh(_matrix(body))
        size = moments[2]
        nearest = np.maximum(moments, 0.0)
        excess = nearest[2] - nearest[0] - nearest[1]
        if size <= LEAST or (excess < -_SLACK * size and moments[0] > 0.0):
            continue
        nearest += max(excess, 0.0) / 3.0 * np.array([1.0, 1.0, -1.0]) + _SLACK * size * np.array([1.0, 1.0, 0.0])
        change = np.abs(nearest - moments).max()
        if change > _MUCH * size and change > _LITTLE * _around(body) and (floats or _moves(body)):
            raise SceneError(
                f"{path}: body {body.name!r} has the principal moments of inertia {_said(moments)} kg m^2, and those "
                f"of every body obey A + B >= C; correct them, or have MuJoCo set each to their mean with "
                f"compiler={{'balanceinertia': True}}"
            )
        _set(body, nearest, axes)
        if change > 1e-6 * size:
            lines.append(
                f"body {body.name!r}: no body has the principal moments of inertia {_said(moments)} kg m^2, as A + B "
                f">= C; taken as the nearest, {_said(nearest)}"
            )
    return lines


def _moves(body: Any) -> bool:
    """Whether a joint moves a body."""
    while body is not None and not body.joints:
        body = body.parent
    return body is not None


def _said(moments: np.ndarray) -> str:
    return ", ".join(f"{m:.4g}" for m in moments)


def _matrix(body: Any) -> np.ndarray:
    if np.isnan(body.fullinertia[0]):
        return np.diag(body.inertia)
    xx, yy, zz, xy, xz, yz = body.fullinertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _set(body: Any, moments: np.ndarray, axes: np.ndarray) -> None:
    """Give a body principal moments about `axes`, the columns, so that MuJoCo need not find them."""
    if np.isnan(body.fullinertia[0]):
        body.inertia = np.diag(axes @ np.diag(moments) @ axes.T)
        return
    from scipy.spatial.transform import Rotation

    turn = Rotation.from_quat(np.roll(body.iquat, -1)) * Rotation.from_matrix(axes * np.linalg.det(axes))
    body.iquat, body.inertia = np.roll(turn.as_quat(), 1), moments
    body.fullinertia = np.array([np.nan, 0.0, 0.0, 0.0, 0.0, 0.0])


def _around(body: Any) -> float:
    """The greatest moment of any body that is fixed to `body`."""
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


def refuse_weightless(model: Any, bodies: tuple[str, ...], joints: tuple[str, ...], path: Path) -> None:
    """Raise if a joint moves what has no mass.

    Args:
        model: An `mujoco.MjModel`.
        bodies: Names of its bodies.
        joints: Names of its joints.
        path: The file, for people.

    Raises:
        SceneError: It does.
    """
    heavy = (model.body_mass > LEAST) | (model.body_inertia.max(axis=1) > LEAST)
    for k in range(model.nbody - 1, 0, -1):
        heavy[model.body_parentid[k]] |= heavy[k]
    for k in range(1, model.nbody):
        first, count = model.body_dofadr[k], model.body_dofnum[k]
        if count and not heavy[k] and not (model.dof_armature[first : first + count] > 0.0).all():
            raise SceneError(
                f"{path}: joint {joints[model.body_jntadr[k]]!r} moves body {bodies[k]!r}, which has no mass and "
                f"carries none; give it an <inertial>, or take the joint out"
            )
