"""Parts of a robot file that a scene cannot represent."""

import numpy as np

from warpbots.robots.mujoco_source import Source

__all__ = ["unsupported_parts"]

_TINY = 1e-3
"""Largest impedance at which a constraint acts as a spring and a damper for any mass [1]."""


def unsupported_parts(source: Source, yielding: np.ndarray) -> list[str]:
    """A line for every part of the file that is left out, except for geoms, actuators and flags.

    Args:
        source: The file.
        yielding: Deflection at which the spring of each joint yields [rad or m], shape (n, ...); 0 if it never yields.
    """
    return [
        *_of_joints(source, yielding),
        *_of_bodies(source),
        *_of_geoms(source),
        *_of_pairs(source),
        *_of_model(source),
    ]


def _of_joints(source: Source, yielding: np.ndarray) -> list[str]:
    model, lines = source.model, []
    rough = np.unique(model.dof_jntid[model.dof_frictionloss > 0.0])
    if len(rough):
        lines.append(f"dry friction of joints (frictionloss): {', '.join(repr(source.joints[j]) for j in rough)}")
    for j, name in enumerate(source.joints):
        kind, dof = source.joint_kind(j), model.jnt_dofadr[j]
        dofs = slice(dof, dof + {"free": 6, "ball": 3}.get(kind, 1))
        first, last = model.jnt_range[j]
        if not model.jnt_limited[j] and (first > last or first == last != 0.0):
            lines.append(f"joint {name!r}: its range from {first:g} to {last:g}, which limits nothing")
        if kind == "ball" and model.jnt_limited[j]:
            lines.append(f"joint {name!r}: the limit of a ball joint")
        if model.jnt_limited[j] and model.jnt_margin[j]:
            lines.append(f"joint {name!r}: the margin of its limit, {model.jnt_margin[j]:g}")
        if model.jnt_actgravcomp[j]:
            lines.append(f"joint {name!r}: gravity compensation by its actuators (actuatorgravcomp)")
        if model.jnt_stiffnesspoly[j].any() or model.dof_dampingpoly[dofs].any():
            lines.append(f"joint {name!r}: stiffness or damping beyond the linear part")
        if np.any(yielding[j]):
            lines.append(f"joint {name!r}: plasticity of its spring (springyield)")
        if kind in ("ball", "free") and model.jnt_stiffness[j] and not _upright(source, j):
            lines.append(f"joint {name!r}: the rest rotation of its spring; here it is the identity")
    return lines


def _upright(source: Source, joint: int) -> bool:
    at = source.model.jnt_qposadr[joint] + (3 if source.joint_kind(joint) == "free" else 0)
    return bool(np.allclose(source.model.qpos_spring[at : at + 4], (1.0, 0.0, 0.0, 0.0)))


def _of_bodies(source: Source) -> list[str]:
    model, lines = source.model, []
    for k, name in enumerate(source.bodies):
        if model.body_gravcomp[k]:
            lines.append(f"body {name!r}: gravity compensation (gravcomp)")
        if model.body_mocapid[k] >= 0:
            lines.append(f"body {name!r}: it is moved from outside (mocap); here it does not move")
    return lines


def _solids(source: Source) -> list[int]:
    """Indices of the collision geoms; all other geoms are only visual."""
    return np.flatnonzero(source.model.geom_contype | source.model.geom_conaffinity).tolist()


def _of_geoms(source: Source) -> list[str]:
    model, lines = source.model, []
    bodies: dict[int, list[int]] = {}
    for g in _solids(source):
        bodies.setdefault(int(model.geom_bodyid[g]), []).append(g)
    for k, geoms in bodies.items():
        name = source.bodies[k]
        if (model.geom_condim[geoms] > 3).any():
            lines.append(f"geoms of body {name!r}: torsional or rolling friction (condim above 3)")
        if model.geom_margin[geoms].any():
            lines.append(f"geoms of body {name!r}: a contact margin of {model.geom_margin[geoms].max():g} m")
        if model.geom_gap[geoms].any():
            lines.append(f"geoms of body {name!r}: a contact gap of {model.geom_gap[geoms].max():g} m")
        if _bouncy(model.geom_solref[geoms]).any():
            lines.append(f"geoms of body {name!r}: bouncing contact (solref); here it has the damping of all others")
        if np.any(model.geom_adhesion[geoms]):
            lines.append(f"geoms of body {name!r}: adhesion")
        if np.any(model.geom_surfacevel[geoms]):
            lines.append(f"geoms of body {name!r}: moving surfaces (surfacevel)")
    return lines


def _bouncy(solref: np.ndarray) -> np.ndarray:
    """Whether contact is bouncy: the damping ratio, given or computed from stiffness and damping, is below 0.5."""
    time, ratio = solref[:, 0], solref[:, 1]
    stiffness, damping = np.maximum(-time, 0.0), np.maximum(-ratio, 0.0)
    return np.where(time > 0.0, ratio < 0.5, damping < np.sqrt(np.maximum(stiffness, 1e-12)))


def _of_pairs(source: Source) -> list[str]:
    """Lines on the properties of explicit pairs other than friction.

    With a tiny impedance, no solref counts as bouncy.
    """
    model, lines = source.model, []
    for k in _read_pairs(source):
        ends = _pair_ends(source, k)
        if model.pair_dim[k] > 3:
            lines.append(f"pair of {ends}: torsional or rolling friction (condim above 3)")
        if model.pair_margin[k]:
            lines.append(f"pair of {ends}: a contact margin of {model.pair_margin[k]:g} m")
        if model.pair_gap[k]:
            lines.append(f"pair of {ends}: a contact gap of {model.pair_gap[k]:g} m")
        if _bouncy(model.pair_solref[k : k + 1]).any() and model.pair_solimp[k, 1] > _TINY:
            lines.append(f"pair of {ends}: bouncing contact (solref); here it has the damping of all others")
    return list(dict.fromkeys(lines))


def _pair_ends(source: Source, k: int) -> str:
    """Names of the bodies of an explicit pair."""
    model = source.model
    return " and ".join(repr(source.bodies[model.geom_bodyid[g[k]]]) for g in (model.pair_geom1, model.pair_geom2))


def _read_pairs(source: Source) -> list[int]:
    """Indices of the explicit contact pairs of collision geoms; pairs of other geoms are left out."""
    model, solid = source.model, set(_solids(source))
    return [k for k in range(model.npair) if {int(model.pair_geom1[k]), int(model.pair_geom2[k])} <= solid]


def _of_model(source: Source) -> list[str]:
    model, lines = source.model, []
    seen = sorted({_pair_ends(source, k) for k in set(range(model.npair)) - set(_read_pairs(source))})
    lines += [f"explicit contact pairs of {ends}, between geoms without contype and conaffinity" for ends in seen]
    for kind, count in {"tendon": model.ntendon, "flex": model.nflex, "plugin": model.nplugin}.items():
        if count:
            lines.append(f"{count} {kind}{'s' if count > 1 else ''}")
    for k in np.flatnonzero(model.actuator_delay):
        lines.append(f"actuator {model.actuator(int(k)).name or f'actuator {k}'!r}: its delay")
    if model.opt.density or model.opt.viscosity or model.opt.wind.any():
        lines.append("option: the medium (density, viscosity, wind)")
    return lines
