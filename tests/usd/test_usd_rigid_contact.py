"""Contact of rigid bodies in files: pairs that touch, friction, restitution and filters."""

import dataclasses
import warnings

import pytest
from rigid_prims import FLOOR, HEAD, chain, cube, joint, locked, notes, pair, read
from usd_cases import prim

import warpbots as wb
from warpbots import usd

RUBBER = prim(
    "Material",
    "Rubber",
    "PhysicsMaterialAPI",
    text="float physics:dynamicFriction = 0.9\n float physics:restitution = 0.3\n",
)


BIND = "rel material:binding:physics = </Rubber>\n"


def touching(scene):
    """Names of bodies and obstacles that touch under the laws of a scene."""
    sim = wb.Simulation(scene, wb.Articulated(), dt=0.001)
    meeting, found = sim.model.contact_topology, set()
    for g, law in zip(meeting.pair_group.numpy(), meeting.pair_law.numpy(), strict=False):
        found.add((scene.rigid[meeting.group_body.numpy()[g]].name, scene.contacts[law].solid))
    return found


def test_bodies_touch_what_they_do_not_hang_on(tmp_path):
    scene = chain(tmp_path)
    assert len(scene.contacts) == 2
    (surface,) = {b.surface for b in scene.rigid}
    assert {b.points for b in scene.rigid} == {64}
    assert touching(scene) == {(b, s) for b in "ABC" for s in (surface, "Floor")} - {("B", surface)}
    assert chain(tmp_path, contact_points=5).rigid[0].points == 5
    none = chain(tmp_path, contact_points=0)
    assert not none.contacts
    assert not any(b.points for b in none.rigid)


def test_filters_and_collisions_at_joints(tmp_path):
    apart = prim("Scope", "Filter")
    scene = chain(
        tmp_path,
        apart,
        text='prepend rel physics:filteredPairs = </C>\n double3 xformOp:translate = (0, 0, 1)\n uniform token[] xformOpOrder = ["xformOp:translate"]\n',
    )
    assert {("A", "C"), ("C", "A")} <= touching_bodies(scene)
    path = tmp_path / "robot.usda"
    text = path.read_text().replace('def Xform "A" (\n prepend apiSchemas = ["PhysicsRigidBodyAPI"', 'def Xform "A" (\n prepend apiSchemas = ["PhysicsFilteredPairsAPI", "PhysicsRigidBodyAPI"')  # fmt: skip
    path.write_text(text)
    assert touching_bodies(usd.read(path)) == set()
    meet = chain(tmp_path, hinge="bool physics:collisionEnabled = 1\n")
    assert touching_bodies(meet) == {(a, b) for a in "ABC" for b in "ABC" if a != b}


def touching_bodies(scene):
    """Pairs of bodies that touch."""
    sim = wb.Simulation(scene, wb.Articulated(), dt=0.001)
    meeting, found = sim.model.contact_topology, set()
    bodies = sim.model.solids.body.numpy()
    for g, s in zip(meeting.pair_group.numpy(), meeting.pair_solid.numpy(), strict=False):
        other = int(bodies[s])
        if other >= 0:
            found.add((scene.rigid[meeting.group_body.numpy()[g]].name, scene.rigid[other].name))
    return found


@pytest.mark.filterwarnings("ignore:RigidBody 'Base' starts 0.1 m deep in 'Floor'")
def test_bodies_at_a_joint_of_several_axes_do_not_touch(tmp_path):
    """A body without mass is between them, so that they are not neighbours for the solver."""
    scene = pair(tmp_path, FLOOR, joint("PhysicsJoint", "Gimbal", **locked("rotX", "rotZ")))
    assert touching_bodies(scene) == set()
    assert {law.solid for law in scene.contacts} == {"Floor"}


def test_friction_is_the_mean_of_both(tmp_path, heard):
    at = 'double3 xformOp:translate = (0, 0, 1)\n uniform token[] xformOpOrder = ["xformOp:translate"]\n'
    scene = read(tmp_path, RUBBER, FLOOR, cube("A", text=BIND + at, apis=("MaterialBindingAPI",)))
    (law,) = scene.contacts
    assert (law.points, law.solid, law.friction) == ("Rubber", "Floor", (0.9 + 0.5) / 2)
    assert scene.rigid[0].surface == "Rubber"
    assert law.restitution == (0.3 + 0.0) / 2
    assert not heard.messages


@pytest.mark.parametrize("e", [1.5, -0.5])
def test_a_coefficient_of_restitution_that_is_none_is_named(tmp_path, heard, e):
    at = 'double3 xformOp:translate = (0, 0, 1)\n uniform token[] xformOpOrder = ["xformOp:translate"]\n'
    wrong = RUBBER.replace("0.3", f"{e:g}")
    scene = read(tmp_path, wrong, FLOOR, cube("A", text=BIND + at, apis=("MaterialBindingAPI",)))
    assert scene.contacts[0].restitution is None
    assert f"physics:restitution = {e:g} is not in [0, 1]" in notes(heard)["/Rubber"]


def test_the_restitution_of_a_floor_counts_half_for_what_has_none(tmp_path):
    body = cube("A", (0, 0, 1))
    floor = prim("Plane", "Floor", "PhysicsCollisionAPI", "MaterialBindingAPI", text=BIND)
    (law,) = read(tmp_path, RUBBER, floor, body).contacts
    assert law.restitution == (0.3 + 0.0) / 2


def test_a_robot_that_does_not_touch_itself(tmp_path):
    for flag in ("newton:selfCollisionEnabled", "physxArticulation:enabledSelfCollisions"):
        scene = chain(tmp_path, head=HEAD)
        text = (tmp_path / "robot.usda").read_text().replace('"PhysicsRigidBodyAPI"', '"PhysicsRigidBodyAPI", "PhysicsArticulationRootAPI"', 1)  # fmt: skip
        (tmp_path / "robot.usda").write_text(text.replace("double3 xformOp:translate", f"bool {flag} = 0\n double3 xformOp:translate", 1))  # fmt: skip
        scene = usd.read(tmp_path / "robot.usda")
        assert touching_bodies(scene) == set()
        assert {solid for _, solid in touching(scene)} == {"Floor"}


def test_too_much_contact_is_left_out_and_named(tmp_path, heard, monkeypatch):
    monkeypatch.setattr("warpbots.usd.rigid.body_contacts._MOST", 100)
    scene = chain(tmp_path)
    assert touching_bodies(scene) == set()
    assert "contact between bodies" in notes(heard)["the whole file"]


def test_a_body_that_starts_under_the_floor_is_named(tmp_path, heard):
    read(tmp_path, FLOOR, cube("A", (0, 0, -2)))
    assert "2 m deep in the obstacle 'Floor'" in notes(heard)["/A"]


def test_a_robot_beside_soft_matter_stands_on_the_floor_of_the_file(tmp_path):
    """All colliders touch unless filtered, with or without soft bodies; the robot and a cube on the matter stay put."""
    soft = "double size = 0.2\n double3 xformOp:translate = (0.6, 0, 0.1)\n rel material:binding:physics = </Gum>\n"
    soft += 'uniform token[] xformOpOrder = ["xformOp:translate"]\n'
    parts = [
        FLOOR, prim("Material", "Gum", "PhysicsVolumeDeformableMaterialAPI", text="float physics:youngsModulus = 2e5\n"),
        cube("Base", (0, 0, 0.1)), cube("Arm", (0.25, 0, 0.1)), cube("Load", (0.6, 0, 0.3)),
        joint("PhysicsRevoluteJoint", text="point3f physics:localPos0 = (0.125, 0, 0)\n"),
    ]  # fmt: skip
    without = read(tmp_path, *parts)
    scene = read(tmp_path, *parts, prim("Cube", "Soft", "PhysicsDeformableBodyAPI", "MaterialBindingAPI", text=soft))
    assert scene.contacts == without.contacts
    assert scene.rigid == without.rigid
    with pytest.warns(UserWarning, match="Contact laws select"):
        wb.Simulation(scene, wb.ProjectiveDynamics(0.1), dt=0.01)
    sim = wb.Simulation(scene, wb.Coupled(wb.MPM(0.05), wb.Articulated("bdf1")), 5e-3)
    center = sim.sense(sim.rollout(None, 50).final).center[0, :, 2]
    assert center[:2].numpy() == pytest.approx([0.1, 0.1], abs=1e-3)
    assert center[2].item() == pytest.approx(0.3, abs=0.01)


def test_a_file_that_filters_all_pairs_has_an_empty_list_of_laws(tmp_path):
    """Its two cubes fall through each other under every solver; those of a file without a filter collide."""
    apart = {"text": "prepend rel physics:filteredPairs = </Below>\n", "apis": ("PhysicsFilteredPairsAPI",)}
    for filtered, speed in ((apart, -9.81 * 0.04), ({}, 0.0)):
        scene = read(tmp_path, cube("Below", (0, 0, 0)), cube("Above", (0, 0, 0.201), **filtered))
        assert (scene.contacts == ()) == bool(filtered)
        ground = wb.floor(-0.1)
        laws = [*scene.contacts, wb.Contact("Below", ground.name, 1e8, 1e9)]
        bodies = [dataclasses.replace(b, points=64 * (b.name == "Below" or not filtered)) for b in scene.rigid]
        below = dataclasses.replace(scene, bodies=bodies, obstacles=[ground], contacts=laws, source=None)
        for solver in (wb.ProjectiveDynamics(0.1), wb.Articulated("bdf1")):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                sim = wb.Simulation(below, solver, 2e-3)
                final = sim.rollout(None, 20).final
            assert sim.sense(final).velocity[0, 1, 2].item() == pytest.approx(speed, abs=0.03)


def test_a_filter_of_a_rigid_and_a_soft_body_is_named(tmp_path, heard):
    """Soft bodies touch everything; whichever of the two prims has the filter."""
    place = "double size = 0.2\n double3 xformOp:translate = (0.6, 0, 0)\n"
    place += 'uniform token[] xformOpOrder = ["xformOp:translate"]\n'
    filtered = "prepend rel physics:filteredPairs = </{}>\n".format
    for on in ("A", "Soft"):
        apis = {name: ("PhysicsFilteredPairsAPI",) * (name == on) for name in ("A", "Soft")}
        text = {name: filtered({"A": "Soft", "Soft": "A"}[name]) * (name == on) for name in ("A", "Soft")}
        gum = prim("Cube", "Soft", "PhysicsDeformableBodyAPI", *apis["Soft"], text=place + text["Soft"])
        read(tmp_path, FLOOR, cube("A", (0, 0, 2), text["A"], apis["A"]), gum, material=wb.Material(1e5))
        assert "soft bodies ignore it" in notes(heard)[f"/{on}"]
