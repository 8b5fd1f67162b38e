"""Motions of robots in files, and simulations of written files."""

import dataclasses

import numpy as np
from pxr import Usd, UsdGeom
from rigid_prims import cube, joint, pendulum, read
from usd_cases import findings, prim

import warpbots as wb
from warpbots import usd
from warpbots.scene import (
    HalfSpace,
    Obstacle,
    contacts_between,
)


def worst(path, trajectory, every, fps=60.0):
    """Largest difference between the poses of prims in a file and those of the states."""
    stage, found = Usd.Stage.Open(str(path)), 0.0
    bodies = [p for p in stage.Traverse() if "PhysicsRigidBodyAPI" in p.GetAppliedSchemas()]
    names = [b.name for b in trajectory.scene.rigid]
    assert len(bodies) == len(names)
    for time, state in trajectory.states(every):
        now = trajectory.simulation.sense(state, **trajectory.parameters)
        cache = UsdGeom.XformCache(time * fps)
        for body in bodies:
            k = names.index(body.GetDisplayName() if body.HasAuthoredDisplayName() else body.GetName())
            M = np.array(cache.GetLocalToWorldTransform(body)).T
            R = M[:3, :3] / np.linalg.norm(M[:3, :3], axis=0)
            found = max(
                found,
                np.abs(M[:3, 3] - now.position[0, k].cpu().numpy()).max(),
                np.abs(R - now.rotation[0, k].cpu().numpy()).max(),
            )
            assert body.GetAttribute("physics:kinematicEnabled").Get() is True
    return found


def test_frames_are_the_poses_of_the_states(tmp_path):
    scene = pendulum()
    trajectory = wb.Simulation(scene, wb.Articulated(), dt=1 / 60).rollout(None, 12)
    usd.write(tmp_path / "walk.usda", trajectory, every=3)
    assert worst(tmp_path / "walk.usda", trajectory, 3) < 1e-9
    stage = Usd.Stage.Open(str(tmp_path / "walk.usda"))
    times = UsdGeom.Xformable(stage.GetPrimAtPath("/World/Bodies/rod")).GetOrderedXformOps()[0].GetTimeSamples()
    assert times == [0.0, 3.0, 6.0, 9.0, 12.0]
    assert usd.read(tmp_path / "walk.usda") == scene
    assert usd.read(tmp_path / "walk_scene.usda") == scene
    assert findings(tmp_path / "walk.usda") == []


def test_frames_of_nested_and_scaled_bodies(tmp_path):
    """Prims of other programs keep their place in the hierarchy, below scaled and moving prims."""
    inner = cube("Rod", (0.5, 0, 0), inside=cube("Tip", (0.5, 0, 0)))
    base = prim("Xform", "World", text='double3 xformOp:scale = (2, 2, 2)\n float xformOp:rotateX = 30\n uniform token[] xformOpOrder = ["xformOp:rotateX", "xformOp:scale"]\n' + inner)  # fmt: skip
    hinges = joint("PhysicsRevoluteJoint", "A", None, "/World/Rod", text="point3f physics:localPos1 = (-0.5, 0, 0)\n uniform token physics:axis = \"Y\"\n"), joint("PhysicsSphericalJoint", "B", "/World/Rod", "/World/Rod/Tip", text="point3f physics:localPos0 = (0.5, 0, 0)\n")  # fmt: skip
    scene = read(tmp_path, base, *hinges, contact_points=0)
    trajectory = wb.Simulation(scene, wb.Articulated(), dt=1 / 60).rollout(None, 6)
    usd.write(tmp_path / "walk.usda", trajectory)
    assert worst(tmp_path / "walk.usda", trajectory, 1) < 1e-9


def test_a_simulation_of_what_was_written_is_the_same(tmp_path):
    scene = pendulum(obstacles=[Obstacle(HalfSpace((0, 0, -0.3), (0, 0, 1)))], bodies=[dataclasses.replace(b, points=20) for b in pendulum().bodies], contacts=contacts_between({"base": 0.5, "rod": 0.3}, {"floor": 0.5}))  # fmt: skip
    usd.write(tmp_path / "a.usda", scene)
    ends = [
        wb.Simulation(s, wb.Articulated(), dt=0.01, substeps=12).rollout(None, 20).final
        for s in (scene, usd.read(tmp_path / "a.usda"))
    ]
    assert ends[0].q.tolist() == ends[1].q.tolist()
