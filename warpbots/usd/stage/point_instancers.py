"""Expands point instancers: instances that take part in physics become separate prims.

The prims are defined in the session layer of the stage, so that the file does not change. The same layer deactivates
the instancer and its prototypes.
"""

from collections.abc import Callable

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom

from warpbots.scene import SceneError
from warpbots.usd.stage.applied_schemas import BODY_APIS
from warpbots.usd.stage.attributes import create, schemas
from warpbots.usd.stage.faults import LocatedError, reason_at
from warpbots.usd.stage.prim_editing import editable, free_path
from warpbots.usd.stage.schema import rows
from warpbots.usd.stage.transforms import pose_of, quaternion_matrix
from warpbots.usd.stage.units import START

__all__ = ["expand", "instancers"]

_MOST = 100_000
"""Largest number of prims of all instances of a file."""

_PHYSICS = ("PhysicsRigidBodyAPI", "PhysicsCollisionAPI", *BODY_APIS)


def instancers(stage: Usd.Stage) -> list[Usd.Prim]:
    """All point instancers of `stage` that are not below another point instancer."""
    found, walk = [], iter(Usd.PrimRange(stage.GetPseudoRoot(), Usd.TraverseInstanceProxies()))
    for prim in walk:
        if prim.IsA(UsdGeom.PointInstancer):
            found.append(prim)
            walk.PruneChildren()
    return found


def expand(stage: Usd.Stage, whole: Callable[[], bool], lost: list[tuple[str, str]]) -> dict[str, int]:
    """Define the instances of point instancers as prims, including instancers among the prototypes.

    Args:
        stage: The stage; its session layer is changed.
        whole: Function that returns whether instancers without physics are expanded as well; it is called after the
            instancers with physics have been expanded.
        lost: Receives the paths of instancers without physics that cannot be expanded, and the reasons.

    Returns:
        The number of instances by the path of their instancer.

    Raises:
        SceneError: Instancers with physics have too many instances or inconsistent attributes.
    """
    made: dict[str, int] = {}
    for into in (None, lost):
        if into is None or whole():
            made |= _expand_all(stage, into)
    return made


def _expand_all(stage: Usd.Stage, lost: list[tuple[str, str]] | None) -> dict[str, int]:
    """Expand instancers with physics; if `lost` is a list, expand all instancers, and add the failures to `lost`."""
    made: dict[str, int] = {}
    prims = 0
    with Usd.EditContext(stage, stage.GetSessionLayer()):
        while True:
            waiting = [p.GetPath() for p in instancers(stage) if lost is not None or _physical(p)]
            if not waiting:
                return made
            for path in waiting:
                prim = editable(stage.GetPrimAtPath(path))
                group = free_path(stage, path.GetParentPath(), f"{path.name}_instances")
                try:
                    count, size = _expand(stage, UsdGeom.PointInstancer(prim), Sdf.Path(group), _MOST - prims)
                    made |= {str(path): count} if count else {}
                    prims += size
                except SceneError as error:
                    if lost is None:
                        raise
                    lost.append((str(path), reason_at(prim, error)))
                    prim.SetActive(False)


def _physical(prim: Usd.Prim) -> bool:
    """Whether schemas on `prim`, on a prim above it, or on its prototypes make the instances take part in physics."""
    above = any(set(_PHYSICS) & schemas(prim.GetStage().GetPrimAtPath(p)) for p in prim.GetPath().GetPrefixes())
    return above or any(set(_PHYSICS) & schemas(p) for proto in _prototypes(prim) for p in _all(proto))


def _prototypes(prim: Usd.Prim) -> list[Usd.Prim]:
    paths = UsdGeom.PointInstancer(prim).GetPrototypesRel().GetForwardedTargets()
    return [proto for proto in map(prim.GetStage().GetPrimAtPath, paths) if proto]


def _all(prim: Usd.Prim) -> Usd.PrimRange:
    """`prim` and all prims below it, even if `prim` is only an ``over``."""
    return Usd.PrimRange(prim, Usd.TraverseInstanceProxies(Usd.PrimIsActive & ~Usd.PrimIsAbstract))


def _expand(stage: Usd.Stage, instancer: UsdGeom.PointInstancer, group: Sdf.Path, most: int) -> tuple[int, int]:
    """Define the instances of an instancer below the new prim `group`; returns the numbers of instances and prims."""
    prim = instancer.GetPrim()
    indices = np.asarray(instancer.GetProtoIndicesAttr().Get(START) or [], dtype=np.int64)
    places = _places(prim, len(indices))
    protos = instancer.GetPrototypesRel().GetForwardedTargets()
    if len(indices) and not 0 <= indices.min() <= indices.max() < len(protos):
        raise LocatedError(
            prim.GetPath(),
            f"its protoIndices must index {len(protos)} prototypes, got {indices.min()} to {indices.max()}",
        )
    kept = np.flatnonzero(~np.isin(_ids(instancer, len(indices)), _inactive(prim)))
    size = [sum(1 for _ in _all(p)) if (p := stage.GetPrimAtPath(path)) else 0 for path in protos]
    prims = int(np.sum(np.asarray(size)[indices[kept]])) if len(kept) else 0
    if prims > most:
        raise LocatedError(
            prim.GetPath(),
            f"its {len(kept)} instances have {prims} prims, and all instances of a file may have {_MOST}; "
            f"take some away (inactiveIds)",
        )
    prim.SetActive(False)
    if not len(kept):
        return 0, 0
    below = stage.DefinePrim(group, "Xform")
    _copy_transform(prim, below)
    rates = [_rates(instancer, name, len(indices)) for name in ("velocities", "angularVelocities")]
    for k in kept:
        place = stage.DefinePrim(group.AppendChild(f"Instance_{k}"), "Xform")
        UsdGeom.Xformable(place).AddTransformOp().Set(Gf.Matrix4d(places[k].T.tolist()))
        proto = protos[indices[k]]
        copy = stage.DefinePrim(place.GetPath().AppendChild(proto.name))
        copy.GetReferences().AddInternalReference(proto)
        copy.SetActive(True)
        _set_rates(copy, places[k], [None if rate is None else rate[k] for rate in rates])
    return len(kept), prims


def _places(prim: Usd.Prim, count: int) -> np.ndarray:
    """Transforms of the instances in coordinates of the instancer, shape (count, 4, 4).

    Raises:
        SceneError: The number of positions, orientations or scales is not the number of instances.
    """

    def values(name: str, none: object) -> np.ndarray:
        found = prim.GetAttribute(name).Get(START) if prim.HasAttribute(name) else None
        if not found:
            return np.broadcast_to(np.asarray(none, dtype=np.float64), (count, len(none)))
        if len(found) != count:
            raise LocatedError(prim.GetPath(), f"it has {count} protoIndices, and {len(found)} {name}")
        if name.startswith("orientations"):
            return np.array([[*q.GetImaginary(), q.GetReal()] for q in found], dtype=np.float64)
        return np.asarray(found, dtype=np.float64)

    still = (0.0, 0.0, 0.0, 1.0)
    single = values("orientationsf", still)
    turns = single if (single != still).any() else values("orientations", still)
    result = np.zeros((count, 4, 4))
    result[:, :3, :3] = np.array([quaternion_matrix(*q) for q in turns]).reshape(-1, 3, 3)
    result[:, :3, :3] *= values("scales", (1.0, 1.0, 1.0))[:, None]
    result[:, :3, 3], result[:, 3, 3] = values("positions", (0.0, 0.0, 0.0)), 1.0
    return result


def _ids(instancer: UsdGeom.PointInstancer, count: int) -> np.ndarray:
    """Ids of the instances, shape (count,); their indices if the instancer has no ids."""
    found = instancer.GetIdsAttr().Get(START)
    return np.asarray(found) if found is not None and len(found) == count else np.arange(count)


def _inactive(prim: Usd.Prim) -> list[int]:
    """Ids of deactivated instances; invisible instances are not deactivated, because they take part in physics."""
    found = prim.GetMetadata("inactiveIds")
    return list(found.GetAddedOrExplicitItems()) if found else []


def _copy_transform(prim: Usd.Prim, below: Usd.Prim) -> None:
    local = UsdGeom.Xformable(prim).GetLocalTransformation(START)
    UsdGeom.Xformable(below).AddTransformOp().Set(local)
    UsdGeom.Xformable(below).SetResetXformStack(UsdGeom.Xformable(prim).GetResetXformStack())


def _rates(instancer: UsdGeom.PointInstancer, name: str, count: int) -> np.ndarray | None:
    """Velocities `name` of the instances, in axes of the instancer; None unless the file has one for each instance."""
    found = instancer.GetPrim().GetAttribute(name).Get(START)
    return np.asarray(found, dtype=np.float64) if found is not None and len(found) == count else None


def _set_rates(copy: Usd.Prim, place: np.ndarray, rates: list[np.ndarray | None]) -> None:
    """Set linear and angular velocity of `copy`, an instance that is a rigid body, in axes of its parent."""
    if "PhysicsRigidBodyAPI" not in schemas(copy):
        return
    for what, rate in zip(("velocity of a body", "angular velocity of a body"), rates, strict=True):
        if rate is not None:
            create(copy, rows(what)[0].name, "vector3f", tuple((pose_of(place)[0][:3, :3].T @ rate).tolist()))
