"""Makes soft bodies of all meshes and solids of a file that marks no bodies; all get the same material."""

from pxr import Usd, UsdGeom

from warpbots.file_warnings import lines_of
from warpbots.scene import Material, SceneError
from warpbots.usd.soft.soft_bodies import SoftPrim, read_soft_prim
from warpbots.usd.stage.applied_schemas import REGION_API, RESULT_API
from warpbots.usd.stage.attributes import schemas
from warpbots.usd.stage.faults import Faults, attempt, reason_at
from warpbots.usd.stage.inventory import Inventory
from warpbots.usd.stage.units import StageUnits

__all__ = ["read_unmarked_geometry"]

_LISTED = 9
"""Number of prims that an error lists by name."""


def read_unmarked_geometry(
    found: Inventory, stage: Usd.Stage, name: str, frame: StageUnits, material: Material | None, thickness: float | None
) -> tuple[Inventory, dict[str, SoftPrim]]:
    """Soft bodies of `material` for all geometry without physics; prims that cannot be bodies are left out.

    Args:
        found: The prims of the stage, none of them a body.
        stage: The stage.
        name: The file, for messages.
        frame: Units and axes of the stage.
        material: The material of the bodies.
        thickness: Thickness [m] of the sheets made of open meshes; None to leave them out.

    Returns:
        `found` with the prims of these bodies, and the bodies by name. There are no bodies if the file has colliders
        and `material` is None.

    Raises:
        SceneError: There is no such geometry, or no material for it, and there are no colliders either.
    """
    paths = [str(prim.GetPath()) for prim in found.loose.values()]
    more = f" and {len(paths) - _LISTED} more" if len(paths) > _LISTED else ""
    if material is None and found.obstacles:
        if paths:
            found.note(
                None, f"geometry without physics; pass material=Material(youngs_modulus=...) to make bodies of "
                f"{', '.join(paths[:_LISTED])}{more}"
            )  # fmt: skip
        return found._replace(loose={}), {}
    if paths and material is None:
        raise SceneError(
            f"{name}: no prim is marked as a body (PhysicsDeformableBodyAPI or PhysicsRigidBodyAPI); pass "
            f"material=Material(youngs_modulus=...) to make bodies of {', '.join(paths[:_LISTED])}{more}"
        )
    for prim in _curves_and_patches(stage):
        found.note(prim, f"a {prim.GetTypeName()}, which is not a solid")
    soft: dict[str, SoftPrim] = {}
    for n, prim in found.loose.items():
        faults: Faults = []
        body = attempt(faults, read_soft_prim, prim, n, frame, material, thickness, found.note)
        if body is not None:
            soft[n] = body
        for error in faults:
            found.note(prim, reason_at(prim, error))
    if not soft and not found.obstacles:
        reasons = "".join(f"\n  {line}" for line in lines_of(found.left_out))
        raise SceneError(f"{name}: the file has no body and no solid that could become one{reasons}")
    return found._replace(bodies={n: found.loose[n] for n in soft}, loose={}), soft


def _curves_and_patches(stage: Usd.Stage) -> list[Usd.Prim]:
    """Geometry without volume: curves, and surfaces other than meshes."""
    prims = stage.Traverse(Usd.TraverseInstanceProxies())
    kinds = (UsdGeom.Curves, UsdGeom.NurbsPatch)
    return [p for p in prims if any(p.IsA(kind) for kind in kinds) and not schemas(p) & {REGION_API, RESULT_API}]
