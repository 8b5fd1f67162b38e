"""Obstacles: prims with `PhysicsCollisionAPI` that do not belong to a moving body.

An obstacle is written as an Xform with the solid ``Shape`` below it. Its friction comes from the bound physics
material, its contact condition from `warpbots:condition`, because USD has no attribute for it. An obstacle with a
table of poses or a surface velocity is a kinematic rigid body for other programs.
"""

from pxr import Sdf, Usd, UsdGeom, UsdPhysics

from warpbots.scene import Obstacle, PrescribedMotion, SceneError, Shape, Union
from warpbots.usd.geometry.collider_shapes import collider_shape
from warpbots.usd.geometry.gprim_reader import NoGeometry
from warpbots.usd.geometry.looks import GROUND, GROUND_ROUGHNESS, update_look
from warpbots.usd.geometry.open_surfaces import solid_behind
from warpbots.usd.geometry.physics_materials import bind, bound_material, read_friction, said_friction, write_surface
from warpbots.usd.geometry.played_motion import play, stop_playing
from warpbots.usd.geometry.sampled_motion import sampled_motion
from warpbots.usd.geometry.shape_surfaces import hide_walls, renew_surfaces
from warpbots.usd.geometry.solid_prims import read_solid, write_solid
from warpbots.usd.geometry.surface_velocity import make_kinematic, read_surface_velocity, write_surface_velocity
from warpbots.usd.stage.applied_schemas import OBSTACLE_API
from warpbots.usd.stage.attributes import apply, authored, get, put
from warpbots.usd.stage.faults import Faults, LocatedError, explained, refuse
from warpbots.usd.stage.inventory import Inventory, Note
from warpbots.usd.stage.ledger import mark_read, mark_solid
from warpbots.usd.stage.motion_tables import has_table, read_table, write_table
from warpbots.usd.stage.prim_editing import Target, editable, remove
from warpbots.usd.stage.prim_roles import geometry_of, is_moving, is_ours
from warpbots.usd.stage.schema import rows
from warpbots.usd.stage.units import StageUnits

__all__ = ["make_colliders", "read_obstacles", "write_obstacle"]


def read_obstacles(found: Inventory, frame: StageUnits) -> list[Obstacle]:
    """All obstacles; prims without geometry are listed as left out.

    Raises:
        SceneError: Obstacles cannot be read; the message has a line for each. Such obstacles are not left out, because
            bodies that stand on an obstacle would fall without it.
    """
    obstacles: list[Obstacle] = []
    faults: Faults = []
    for n, prim in list(found.obstacles.items()):
        try:
            with explained(prim.GetPath(), prim):
                obstacles.append(_read_obstacle(prim, n, frame, found.note))
        except NoGeometry:
            del found.obstacles[n]
            found.note(prim, "a collider without a supported solid at or below it")
        except SceneError as error:
            remedy = "to read the file without this collider, switch it off (physics:collisionEnabled)"
            faults.append(SceneError(f"{error}; {remedy}"))
    refuse(faults)
    return obstacles


def _read_obstacle(prim: Usd.Prim, name: str, frame: StageUnits, note: Note = lambda prim, reason: None) -> Obstacle:
    """The solid at `prim`, with its prescribed motion.

    Args:
        prim: An obstacle written by warpbots, or a collider.
        name: Name of the obstacle.
        frame: Units and axes of the stage.
        note: Called with a prim and a description of anything that is left out or changed on reading.

    Raises:
        NoGeometry: There is no geometry at or below the prim; the message names the prim.
        SceneError: The geometry is not supported; the message names the prim.
    """
    shape = _read_shape(prim, frame, note)
    slides, sticks = read_friction(_solid(prim), frame)
    for part in geometry_of(prim) or [prim]:
        bound = bound_material(part)
        mark_solid(part, bound)
        if bound is not None:
            mark_read(bound, *(row.name for row in rows("Material.density")))  # a static solid needs no mass
            rough = said_friction(part, frame)[1]
            if rough is not None and rough < slides:
                note(
                    bound,
                    f"physics:staticFriction = {rough:g} below the dynamic one, {slides:g}, which counts for both",
                )
        if read_friction(part, frame) != (slides, sticks):
            note(part, f"the friction of its material; the whole obstacle has that of {_solid(prim).GetPath()}")
    motion, velocity = _read_motion(prim, frame)
    return Obstacle(shape, get(prim, "Obstacle.condition", frame), slides, name, sticks, motion, velocity)


def _read_motion(prim: Usd.Prim, frame: StageUnits) -> tuple[PrescribedMotion | None, tuple[float, ...] | None]:
    """The motion of the obstacle at `prim`, and the velocity of its surface [m/s].

    Raises:
        SceneError: The motion is not valid, or the obstacle is also a body that moves freely.
    """
    if is_moving(prim):
        raise LocatedError(
            prim.GetPath(),
            f"an obstacle moves as prescribed and cannot also move freely; set physics:kinematicEnabled = true, or "
            f"remove {OBSTACLE_API}",
        )
    motion = read_table(prim, frame) if has_table(prim) else sampled_motion(prim, frame)
    return motion, read_surface_velocity(prim, frame, motion)


def _read_shape(prim: Usd.Prim, frame: StageUnits, note: Note) -> Shape:
    parts = geometry_of(prim)
    if frame.dim == 2 or any(authored(part, rows("shape")[0].name) for part in parts):
        return read_solid(prim, frame)
    solids = []
    for part in parts:
        try:
            solids.append(collider_shape(part, frame.matrix(part), frame, note, solid_behind))
        except NoGeometry as error:
            note(part, f"a collider that is left out: {error}")
        except SceneError as error:
            raise LocatedError(part.GetPath(), error) from None
    if not solids:
        raise NoGeometry(f"{prim.GetPath()}: a collider without a supported solid at or below it")
    return solids[0] if len(solids) == 1 else Union(tuple(solids))


def write_obstacle(target: Target, existing: Usd.Prim | None, obstacle: Obstacle) -> Sdf.Path:
    """Author `obstacle`; arguments and result are as for `warpbots.usd.soft.soft_bodies.write_body`."""
    frame = target.frame
    if existing is not None and _is(existing, obstacle, frame):
        return existing.GetPath()
    moves = obstacle.motion, obstacle.surface_velocity
    if existing is not None and not is_ours(existing) and _read_motion(existing, frame) != moves:
        remove(editable(existing), own=False)
        existing = None
    prim = write_solid(target, existing, "Obstacles", obstacle.name, obstacle.shape)
    if is_ours(prim):
        apply(prim, OBSTACLE_API)
        make_colliders(prim)
        make_kinematic(prim, any(part is not None for part in moves))
        write_table(prim, obstacle.motion, frame)
        stop_playing(prim)
        if obstacle.motion is not None:
            play(prim, obstacle, frame)
        write_surface_velocity(prim, obstacle.surface_velocity, frame)
        update_look(prim, GROUND, GROUND_ROUGHNESS)
        renew_surfaces(prim, obstacle.shape)
        hide_walls(prim, obstacle.shape)
    put(prim, "Obstacle.condition", obstacle.condition, frame)
    friction = obstacle.friction, obstacle.static_friction
    if existing is None or prim != existing or read_friction(_solid(prim), frame) != friction:
        material = write_surface(target.stage, f"{prim.GetPath()}/PhysicsMaterial", *friction, None, frame)
        bind(prim, material, over_descendants=not is_ours(prim))
    return prim.GetPath()


def _is(prim: Usd.Prim, obstacle: Obstacle, frame: StageUnits) -> bool:
    """Whether reading `prim` already gives `obstacle`."""
    try:
        return _read_obstacle(prim, obstacle.name, frame) == obstacle
    except SceneError:
        return False


def make_colliders(prim: Usd.Prim) -> None:
    """Make all geometry at and below `prim` colliders, except points, which only display a distance grid."""
    for part in Usd.PrimRange(prim):
        if part.IsA(UsdGeom.Gprim) and part.GetTypeName() != "Points":
            UsdPhysics.CollisionAPI.Apply(part)
        if part.GetTypeName() == "Mesh":
            UsdPhysics.MeshCollisionAPI.Apply(part).CreateApproximationAttr("none")


def _solid(prim: Usd.Prim) -> Usd.Prim:
    """The prim at or below the obstacle `prim` whose material is used for the whole obstacle."""
    return (geometry_of(prim) or [prim])[0]
