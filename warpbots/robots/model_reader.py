"""Reads the arrays of a compiled MuJoCo model into records (`warpbots.robots.records`)."""

from typing import Any

import numpy as np

from warpbots.robots.mujoco_source import Source
from warpbots.robots.mujoco_versions import field
from warpbots.robots.option_flags import options_of
from warpbots.robots.quaternions import matrices
from warpbots.robots.records import (
    ActuatorRecord,
    BodyRecord,
    EqualityRecord,
    GeomRecord,
    JointRecord,
    Keyframe,
    MeshRecord,
    PairRecord,
    RobotRecord,
)
from warpbots.robots.unsupported import unsupported_parts

__all__ = ["records_of"]

_COORDINATES, _VELOCITIES = {"free": 7, "ball": 4}, {"free": 6, "ball": 3}

_UNSAID = np.array([0.5, 0.5, 0.5, 1.0], dtype=np.float32)
"""Colour and opacity that MuJoCo gives a geom without a colour in the file."""


def records_of(source: Source) -> RobotRecord:
    """The records of a compiled robot file."""
    model, words = source.model, source.words
    options = options_of(model, words)
    turns, inertial, shown = map(matrices, (model.body_quat, model.body_iquat, model.geom_quat))
    geoms = tuple(_geom(source, k, shown[k]) for k in range(model.ngeom))
    return RobotRecord(
        path=source.path, name=source.name, urdf=source.urdf, gravity=model.opt.gravity.copy(),
        bodies=tuple(_body(source, k, turns[k], inertial[k]) for k in range(model.nbody)),
        joints=tuple(_joint(source, k) for k in range(model.njnt)),
        geoms=geoms, meshes=_meshes(source, geoms),
        actuators=tuple(_actuator(source, k) for k in range(model.nu) if k not in options.idle),
        actuated=bool(model.nu),
        equalities=_equalities(source), mimics=source.mimics, pairs=tuple(_pair(model, k) for k in range(model.npair)),
        excluded=frozenset((s >> 16, s & 0xFFFF) for s in map(int, model.exclude_signature)),
        keyframes=tuple(_keyframe(model, k) for k in range(model.nkey)),
        pose=Keyframe("", model.qpos0.copy(), np.zeros(model.nv), None),
        has_contact=options.has_contact, filters_parents=options.filters_parents,
        mended=source.mended, said=source.said,
        unsupported=(*unsupported_parts(source, field(model, "jnt_springyield")), *options.named),
    )  # fmt: skip


def _body(source: Source, k: int, rotation: np.ndarray, axes: np.ndarray) -> BodyRecord:
    """The record of body `k`, with its axes in its parent (`rotation`) and its principal axes of inertia (`axes`)."""
    model, first = source.model, int(source.model.body_jntadr[k])
    moments = axes @ np.diag(model.body_inertia[k]) @ axes.T
    return BodyRecord(
        source.bodies[k], int(model.body_parentid[k]), int(model.body_rootid[k]), int(model.body_weldid[k]),
        tuple(range(first, first + int(model.body_jntnum[k]))), model.body_pos[k].copy(),
        model.body_quat[k].copy(), rotation,
        float(model.body_mass[k]), model.body_ipos[k].copy(), (moments + moments.T) / 2.0, source.has_mass(k),
    )  # fmt: skip


def _joint(source: Source, k: int) -> JointRecord:
    model, kind = source.model, source.joint_kind(k)
    at, first = int(model.jnt_qposadr[k]), int(model.jnt_dofadr[k])
    dofs = slice(first, first + _VELOCITIES.get(kind, 1))
    return JointRecord(
        name=source.joints[k], kind=kind, coordinate=at, velocity=first, position=model.jnt_pos[k].copy(),
        axis=model.jnt_axis[k].copy(), zero=float(model.qpos0[at]),
        neutral=model.qpos_spring[at : at + _COORDINATES.get(kind, 1)].copy(),
        stiffness=float(model.jnt_stiffness[k]), damping=model.dof_damping[dofs].copy(),
        armature=model.dof_armature[dofs].copy(), range=_limited(model, "jnt_limited", "jnt_range", k),
        solref=tuple(model.jnt_solref[k].tolist()), impedance=float(model.jnt_solimp[k, 1]),
        mobility=float(model.dof_invweight0[first]),
        effort=_limited(model, "jnt_actfrclimited", "jnt_actfrcrange", k),
    )  # fmt: skip


def _limited(model: Any, switch: str, limits: str, k: int) -> np.ndarray | None:
    """Limits of element `k` in the field `limits` of `model`, or None if the field `switch` disables them."""
    return getattr(model, limits)[k].copy() if getattr(model, switch)[k] else None


def _geom(source: Source, k: int, rotation: np.ndarray) -> GeomRecord:
    model, material = source.model, source.model.geom_matid[k]
    color = model.geom_rgba[k] if material < 0 else model.mat_rgba[material]
    shown = material >= 0 or not np.array_equal(color, _UNSAID)
    return GeomRecord(
        name=model.geom(k).name or f"geom {k}", kind=source.kind("mjtGeom", model.geom_type[k]),
        body=int(model.geom_bodyid[k]), position=model.geom_pos[k].copy(), rotation=rotation,
        size=model.geom_size[k].copy(), radius=float(model.geom_rbound[k]), mesh=int(model.geom_dataid[k]),
        contype=int(model.geom_contype[k]), conaffinity=int(model.geom_conaffinity[k]),
        friction=float(model.geom_friction[k, 0]), frictionless=bool(model.geom_condim[k] == 1),
        priority=int(model.geom_priority[k]), color=tuple(float(c) for c in color[:3]) if shown else None,
    )  # fmt: skip


def _meshes(source: Source, geoms: tuple[GeomRecord, ...]) -> dict[int, MeshRecord]:
    model, found = source.model, {}
    limited = {mesh.name for mesh in source.spec.meshes if mesh.maxhullvert > 0}  # -1 without a limit
    for k in {g.mesh for g in geoms if g.kind == "mesh" and (g.contype or g.conaffinity)}:
        first, name = model.mesh_vertadr[k], model.mesh(k).name
        vertices = model.mesh_vert[first : first + model.mesh_vertnum[k]].astype(np.float64)
        found[k] = MeshRecord(name, vertices[_of_hull(model, k)] if name in limited else vertices)
    return found


def _of_hull(model: Any, k: int) -> np.ndarray:
    """Indices of the vertices of MuJoCo's convex hull of mesh `k`, which has at most `maxhullvert` of them."""
    graph = model.mesh_graph[model.mesh_graphadr[k] :]
    return graph[2 + graph[0] : 2 + 2 * graph[0]]


def _actuator(source: Source, k: int) -> ActuatorRecord:
    model = source.model
    return ActuatorRecord(
        name=model.actuator(k).name or f"actuator {k}", index=k,
        drives=source.kind("mjtTrn", model.actuator_trntype[k]), target=int(model.actuator_trnid[k, 0]),
        dynamics=source.kind("mjtDyn", model.actuator_dyntype[k]),
        gain_kind=source.kind("mjtGain", model.actuator_gaintype[k]),
        bias_kind=source.kind("mjtBias", model.actuator_biastype[k]), gain=model.actuator_gainprm[k].copy(),
        bias=model.actuator_biasprm[k].copy(), gear=model.actuator_gear[k].copy(),
        control_range=_limited(model, "actuator_ctrllimited", "actuator_ctrlrange", k),
        force_range=_limited(model, "actuator_forcelimited", "actuator_forcerange", k),
        is_passive=bool(np.any(model.actuator_damping[k]) or np.any(model.actuator_armature[k])),
    )  # fmt: skip


def _equalities(source: Source) -> tuple[EqualityRecord, ...]:
    """All equality constraints, except for constraints of flexes, which are reported with the flexes."""
    model, found = source.model, []
    for k in range(model.neq):
        kind = source.kind("mjtEq", model.eq_type[k])
        if kind.startswith("flex"):
            continue
        ends = _ends(source, k) if kind in ("connect", "weld") else ()
        joint = int(model.eq_obj1id[k]) if kind == "joint" else None
        guided = any(model.body_mocapid[body] >= 0 for body in ends)
        name = model.equality(k).name or None
        found.append(EqualityRecord(name, k, kind, bool(model.eq_active0[k]), ends, joint, guided))
    return tuple(found)


def _ends(source: Source, k: int) -> tuple[int, ...]:
    """Indices of the bodies that equality constraint `k` constrains; 0 is the world."""
    model, ends = source.model, [int(source.model.eq_obj1id[k]), int(source.model.eq_obj2id[k])]
    if source.kind("mjtObj", model.eq_objtype[k]) == "site":
        ends = [int(model.site_bodyid[end]) for end in ends]
    return tuple(max(end, 0) for end in ends)


def _pair(model: Any, k: int) -> PairRecord:
    friction = float(model.pair_friction[k, 0]) if model.pair_dim[k] > 1 else 0.0
    return PairRecord((int(model.pair_geom1[k]), int(model.pair_geom2[k])), friction)


def _keyframe(model: Any, k: int) -> Keyframe:
    return Keyframe(model.key(k).name, model.key_qpos[k].copy(), model.key_qvel[k].copy(), model.key_ctrl[k].copy())
