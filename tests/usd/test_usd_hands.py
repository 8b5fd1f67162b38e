"""Designed hands in files: deformed meshes, masses, joints, drives and contact points, and their motions."""

import numpy as np
import pytest
import torch
from pxr import Usd, UsdGeom, UsdPhysics
from usd_cases import differences, findings

import warpbots as wb
from warpbots.design import Assembly, Node, chain, joint, knuckle, palm, phalanx, star_palm, tip
from warpbots.scene import Scene, TriangleMesh

TURN = np.array([[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]])
POSE = {"position": (0.02, 0.01, 0.06), "rotation": TURN}


def hand() -> Assembly:
    """Two fingers on a palm."""
    finger = chain(*(make() for make in (knuckle, joint, phalanx, joint, phalanx, tip)))
    return Assembly(Node(palm(), {"out": finger, "back": finger}))


HAND = hand()
DESIGN = torch.as_tensor(np.random.default_rng(1).uniform(0.7, 1.5, len(HAND.names)))
SHAPE = HAND.shape(DESIGN)


def scene() -> Scene:
    """The hand in its new shape on a slide above a floor, with servos and a drive, and limits."""
    joints = HAND.joints(DESIGN, damping=1e-3, **POSE)
    slide = wb.Joint("slide", "prismatic", None, "palm", axis=(0, 0, 1), position=(0.01, 0.02, 0.0), damping=1.0)
    motors = [wb.actuators.Servo(own.name, own.name, 0.5, 0.01, reach=0.8) for own in joints] + [
        wb.actuators.Torque("lift", "slide", 2.0)
    ]
    law = wb.Contact("skin", "floor", 1e6, 1e3, 0.5, 1e4)
    bodies = HAND.bodies(DESIGN, surface="skin", color=(0.9, 0.5, 0.3), **POSE)
    return wb.Scene(bodies, motors, [wb.floor(0.0)], joints=[slide, *joints], contacts=[law])


def check(found: Scene) -> None:
    """Check that a scene is the designed hand, number by number."""
    made = scene()
    assert differences(found, made) == []
    for k, (link, body) in enumerate(zip(HAND.links, found.rigid, strict=True)):
        assert body.name == link.name
        for part, mesh, (n, p) in zip(SHAPE.parts[k], body.shape.shapes, link.parts, strict=True):
            assert isinstance(mesh, TriangleMesh)
            assert np.array_equal(mesh.vertices, part) and np.array_equal(
                mesh.faces, HAND.instances[n].component.parts[p].faces
            )
        assert body.inertia.mass == SHAPE.masses[k].mass and np.array_equal(body.inertia.center, SHAPE.masses[k].center)
        assert np.array_equal(body.inertia.moments, SHAPE.masses[k].inertia)
        assert np.array_equal(body.points.positions, SHAPE.contact_points[k])
        assert np.array_equal(body.points.areas, SHAPE.contact_areas[k])
    assert found.joints == made.joints and found.actuators == made.actuators and found.contacts == made.contacts


@pytest.mark.parametrize("extension", ["usda", "usdc", "usdz"])
def test_a_designed_hand_is_read_as_it_was(extension, tmp_path):
    wb.usd.write(tmp_path / f"hand.{extension}", scene())
    found = wb.usd.read(tmp_path / f"hand.{extension}")
    check(found)
    a, b = (wb.Simulation(own, wb.Articulated(), 1e-3, 1) for own in (scene(), found))
    for name in a.parameters():
        assert torch.equal(a.parameter(name), b.parameter(name)), name
    deformed = HAND.model_parameters(wb.Simulation(found, wb.Articulated(), 1e-3, 1), SHAPE)
    for name, value in deformed.items():  # and the same design is one of this file
        torch.testing.assert_close(value, b.parameter(name), rtol=1e-12, atol=1e-15)


def test_other_programs_see_a_robot(tmp_path):
    """Meshes, masses, ranges of hinges in degrees and drives, in the terms of UsdPhysics; no validator objects."""
    wb.usd.write(tmp_path / "hand.usdc", scene())
    assert findings(tmp_path / "hand.usdc") == []
    stage = Usd.Stage.Open(str(tmp_path / "hand.usdc"))
    kinds = [prim.GetTypeName() for prim in stage.Traverse()]
    assert kinds.count("Mesh") == sum(len(parts) for parts in SHAPE.parts) == 2 * 9 + 1
    assert kinds.count("PhysicsRevoluteJoint") == 6 and kinds.count("PhysicsPrismaticJoint") == 1
    for k, link in enumerate(HAND.links):
        prim = stage.GetPrimAtPath(f"/World/Bodies/{link.name.replace('-', '_')}")
        mass = UsdPhysics.MassAPI(prim).GetMassAttr().Get()
        assert mass == pytest.approx(SHAPE.masses[k].mass.item(), rel=1e-6)
        meshes = [UsdGeom.Mesh(p) for p in Usd.PrimRange(prim) if p.IsA(UsdGeom.Mesh)]
        for mesh, vertices in zip(meshes, SHAPE.parts[k], strict=True):
            assert mesh.GetPrim().HasAPI(UsdPhysics.CollisionAPI)
            np.testing.assert_allclose(mesh.GetPointsAttr().Get(), vertices, rtol=0, atol=1e-8)
        if link.parent >= 0:
            drawn = UsdPhysics.RevoluteJoint(stage.GetPrimAtPath(f"/World/Joints/{link.name.replace('-', '_')}"))
            hinge = HAND.instances[link.hinge].component.hinge
            assert drawn.GetUpperLimitAttr().Get() == pytest.approx(np.degrees(hinge.upper), rel=1e-6)
            drive = UsdPhysics.DriveAPI(drawn.GetPrim(), "angular")
            assert drive.GetStiffnessAttr().Get() == pytest.approx(0.5 * np.pi / 180.0, rel=1e-6)


def test_moments_that_are_diagonal_but_for_rounding(tmp_path):
    """A palm for three fingers: moments computed from its principal axes are symmetric only up to rounding."""
    finger = chain(knuckle(), tip())
    three = Assembly(Node(star_palm(3), {f"finger-{k}": finger for k in range(3)}))
    new = three.rest * 1.2
    made = wb.Scene(three.bodies(new, points=0), joints=three.joints(new))
    wb.usd.write(tmp_path / "hand.usdc", made)
    assert wb.usd.read(tmp_path / "hand.usdc") == made


def test_a_motion_of_a_designed_hand(tmp_path):
    """The file has the hand, and its frames are the poses of the states."""
    sim = wb.Simulation(scene(), wb.Articulated(), 1e-3, 1)
    control = torch.full((80, sim.channels), 0.6)
    motion = sim.rollout(control, 80)
    wb.usd.write(tmp_path / "grasp.usda", motion)
    check(wb.usd.read(tmp_path / "grasp.usda"))
    assert findings(tmp_path / "grasp.usda") == []
    stage = Usd.Stage.Open(str(tmp_path / "grasp.usda"))
    worst, moved = 0.0, 0.0
    start = None
    for time, position, rotation in motion.poses(every=8):
        cache = UsdGeom.XformCache(time * stage.GetTimeCodesPerSecond())
        for link, x, R in zip(HAND.links, position, rotation, strict=True):
            prim = stage.GetPrimAtPath(f"/World/Bodies/{link.name.replace('-', '_')}")
            world = np.array(cache.GetLocalToWorldTransform(prim)).T
            worst = max(worst, np.abs(world[:3, 3] - x).max(), np.abs(world[:3, :3] - R).max())
        start = position if start is None else start
        moved = max(moved, np.abs(position - start).max())
    print(f"frames {worst:.1e}, moved {1e3 * moved:.1f} mm")
    assert worst < 1e-12 and moved > 0.01
