"""Rigid bodies as prims of UsdPhysics: each is an Xform with mass, shape and contact points, at the pose at time 0."""

import numpy as np
from pxr import Gf, Usd, UsdGeom, UsdPhysics

from warpbots.scene import Cloud, Joint, RigidBody, Scene
from warpbots.solvers.articulated.inertia import body_inertia
from warpbots.usd.geometry.body_colors import write_color
from warpbots.usd.geometry.flat_shapes import lay_down
from warpbots.usd.geometry.looks import RIGID_ROUGHNESS, update_look
from warpbots.usd.geometry.obstacle_prims import make_colliders
from warpbots.usd.geometry.physics_materials import bind, write_surface
from warpbots.usd.geometry.shape_prims import write_shape
from warpbots.usd.geometry.shape_surfaces import renew_surfaces
from warpbots.usd.rigid.exact_values import store_exact
from warpbots.usd.rigid.joint_kinematics import carried, displacement, start_coordinates
from warpbots.usd.rigid.mass_properties import write_inertia
from warpbots.usd.stage.applied_schemas import RIGID_API
from warpbots.usd.stage.attributes import apply, author_row, put
from warpbots.usd.stage.prim_editing import Target, rename
from warpbots.usd.stage.schema import rows
from warpbots.usd.stage.transforms import matrix_of
from warpbots.usd.stage.units import StageUnits

__all__ = ["write_body_prim"]


def write_body_prim(target: Target, body: RigidBody, pose: np.ndarray, scene: Scene) -> Usd.Prim:
    """Author `body`; the caller later adds exact values for the fields that the prim does not reproduce.

    Args:
        target: The stage to write to.
        body: The body.
        pose: Pose of the body at time 0, shape (4, 4).
        scene: The scene that contains the body.
    """
    stage, frame = target.stage, target.frame
    color = dict(zip((b.name for b in scene.bodies), scene.colors, strict=True))[body.name]
    prim = stage.DefinePrim(target.path("Bodies", body.name), "Xform")
    rename(prim, body.name)
    _place(prim, np.linalg.inv(frame.rigid.matrix(prim)) @ pose)
    UsdPhysics.RigidBodyAPI.Apply(prim)
    UsdPhysics.MassAPI.Apply(prim)
    apply(prim, RIGID_API)
    put(prim, "RigidBody.density", body.density, frame)
    write_inertia(prim, body, frame)
    if body.shape is not None:
        write_shape(stage, f"{prim.GetPath()}/Shape", body.shape, frame, target.extent, np.eye(4))
        lay_down(stage.GetPrimAtPath(f"{prim.GetPath()}/Shape"), frame)
        make_colliders(prim)
        renew_surfaces(prim, body.shape)
        update_look(prim, color, RIGID_ROUGHNESS)
    write_color(prim, "RigidBody.color", body.color, color, frame)
    put(prim, "RigidBody.friction", body.friction, frame)
    put(prim, "RigidBody.surface", body.surface, frame)
    put(prim, "RigidBody.points", 0 if isinstance(body.points, Cloud) else int(body.points), frame)
    if isinstance(body.points, Cloud):
        store_exact(prim, "cloud:positions", body.points.positions)
        store_exact(prim, "cloud:areas", body.points.areas)
    laws = [c for c in scene.laws if {c.points, c.solid} & {body.name, body.surface}]
    if laws:
        path, bounces = f"{prim.GetPath()}/PhysicsMaterial", [c.restitution for c in laws if c.restitution is not None]
        material = write_surface(stage, path, laws[0].friction, None, next(iter(bounces), None), frame)
        bind(prim, material, over_descendants=True)
    _write_velocity(prim, body, next((j for j in scene.joints if j.child == body.name), None), frame)
    return prim


def _place(prim: Usd.Prim, local: np.ndarray) -> None:
    """Give `prim` the transform `local`; a rigid transform is written as a translation and a rotation."""
    from scipy.spatial.transform import Rotation

    xformable, double = UsdGeom.Xformable(prim), UsdGeom.XformOp.PrecisionDouble
    if not np.allclose(local[:3, :3] @ local[:3, :3].T, np.eye(3), atol=1e-9):
        xformable.AddTransformOp().Set(Gf.Matrix4d(local.T.tolist()))
        return
    x, y, z, w = Rotation.from_matrix(local[:3, :3]).as_quat(canonical=True).tolist()
    xformable.AddTranslateOp(double).Set(Gf.Vec3d(*local[:3, 3].tolist()))
    xformable.AddOrientOp(double).Set(Gf.Quatd(w, x, y, z))


def _write_velocity(prim: Usd.Prim, body: RigidBody, joint: Joint | None, frame: StageUnits) -> None:
    """Author the velocity of a floating body for other programs.

    It is the velocity of the centre of mass, in axes of the parent prim.
    """
    if joint is None or joint.kind != "free" or joint.parent is not None or joint.start_velocity is None:
        return
    turned = matrix_of(joint.rotation, joint.position) @ displacement(
        "free", np.array(joint.axis), start_coordinates(joint)
    )
    rates = np.array(joint.start_velocity)
    w = turned[:3, :3] @ rates[3:]
    pose = carried(joint, matrix_of(body.rotation, body.position), start_coordinates(joint))
    inertia = body_inertia(body)
    center = pose[:3, :3] @ (np.zeros(3) if inertia is None else np.array(inertia.center)) + pose[:3, 3]
    v = np.array(joint.rotation) @ rates[:3] + np.cross(w, center - turned[:3, 3])
    R = frame.rigid.to_scene[:3, :3].T / frame.meters
    author_row(prim, rows("velocity of a body")[0], Gf.Vec3f(*(R @ v / frame.meters).tolist()))
    author_row(prim, rows("angular velocity of a body")[0], Gf.Vec3f(*np.degrees(R @ w).tolist()))
