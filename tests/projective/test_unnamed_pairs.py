"""Pairs that no contact law names: `Scene.contacts` None leaves them to the solver, a list keeps them apart."""

import dataclasses
import warnings

import numpy as np
import pytest
import torch
from loose_bodies import G, cube, last, simulated, slab, thrown
from pxr import Usd, UsdPhysics

import warpbots as wb
from warpbots import cli
from warpbots.scene import (
    Box,
    Capsule,
    Contact,
    Joint,
    Material,
    Obstacle,
    RigidBody,
    Scene,
    SoftBody,
    Sphere,
    fingerprint,
    floor,
)
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated, ProjectiveDynamics
from warpbots.solvers.projective.contact.contact_laws import friction_alone, unnamed_obstacles

DT, STEPS, SPEED = 5e-3, 12, 1.0
FREE = "Obstacle '.*': rigid bodies pass through it, because Scene.contacts is given and no Contact in it names"


def flight(contacts, *obstacles: Obstacle) -> Scene:
    """Two balls that fly at each other, and fall on what is below them."""
    ball, pointed = Sphere((0.0, 0.0, 0.0), 0.02), {law.points for law in contacts or ()}
    places = {"a": -0.03, "b": 0.03}
    bodies = [RigidBody(n, ball, position=(x, 0.0, 0.1), points=int(n in pointed)) for n, x in places.items()]
    joints = [thrown(b, (v, 0, 0, 0, 0, 0)) for b, v in zip(bodies, (SPEED, -SPEED), strict=True)]
    return Scene(bodies, obstacles=obstacles, joints=joints, contacts=contacts)


def moved(scene: Scene, solver, count: int = STEPS) -> torch.Tensor:
    """Velocities of the joints after some steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return last(Simulation(scene, solver, DT, substeps=1), count).qd[0]


def test_an_empty_list_of_laws_means_that_rigid_bodies_touch_nothing():
    """They pass each other and the floor, as under `Articulated`; without a list they collide and rest on it."""
    fallen = torch.tensor([SPEED, 0, -G * DT * STEPS, 0, 0, 0, -SPEED, 0, -G * DT * STEPS, 0, 0, 0])
    ground = floor(0.079, friction=0.5)
    for solver in (ProjectiveDynamics(0.02), Articulated("bdf1")):
        torch.testing.assert_close(moved(flight((), ground), solver).to(fallen), fallen, atol=1e-5, rtol=0.0)
    touching = moved(flight(None, ground), ProjectiveDynamics(0.02))
    assert touching.abs().max() < 0.2
    torch.testing.assert_close(moved(flight(None, ground), Articulated("bdf1")).to(fallen), fallen, atol=1e-5, rtol=0.0)


PLATES = (
    Box((-1.0, -1.0, 0.0), (1.0, 1.0, 0.079)),  # a face
    Box((-0.5, -0.004, 0.0), (0.5, 0.004, 0.079)),  # a thin one, which samples and edges of the obstacle find
    Capsule((-0.05, 0.0, 0.07), (0.05, 0.0, 0.07), 0.009),  # a rod, which samples of faces find
)


@pytest.mark.parametrize("shape", PLATES)
def test_a_body_touches_only_the_obstacles_that_a_law_names(shape):
    """The ball that a law names is stopped by the plate; the other one falls through it, from inside if need be."""
    plate = Obstacle(shape, name="plate", friction=0.5)
    scene = dataclasses.replace(flight((Contact("b", "plate", 1e6),), plate), joints=())
    ends = moved(scene, ProjectiveDynamics(0.02))
    assert ends[2].item() == pytest.approx(-G * DT * STEPS, rel=1e-5)
    assert ends[8].item() > -0.3 * G * DT * STEPS
    a, b = scene.rigid
    sunk = dataclasses.replace(scene, bodies=[dataclasses.replace(a, position=(-0.03, 0.0, 0.05)), b])
    assert moved(sunk, ProjectiveDynamics(0.02))[2].item() == pytest.approx(-G * DT * STEPS, rel=1e-5)


def test_soft_bodies_touch_everything_with_or_without_laws():
    """A cube rests on a slab on a floor, whatever the list of laws."""
    base, ground = slab((0.1, 0.1, 0.04), height=3e-4), floor(friction=0.5)
    top = cube("cube", (0.02, 0.02, 0.0406))
    ends = []
    for contacts in (None, ()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            sim = simulated(Scene((base, top), obstacles=(ground,), contacts=contacts), 0.03, DT)
        ends.append(last(sim, 10).position)
    assert torch.equal(*ends)


def test_an_obstacle_that_no_law_names_is_named_in_a_warning():
    ground, wall = floor(), Obstacle(Box((1, 1, 1), (2, 2, 2)), name="wall")
    laws = Contact("a", "floor", 1e6), Contact("b", "a", 1e6)
    with pytest.warns(UserWarning, match=FREE):
        ProjectiveDynamics(0.02).build(flight((), ground))
    with pytest.warns(UserWarning, match="RigidBody 'b' falls through Obstacle 'floor', because no Contact names both"):
        ProjectiveDynamics(0.02).build(flight(laws[:1], ground))
    said = lambda *scene, bodies=(0, 1): unnamed_obstacles(flight(*scene), np.array(bodies, dtype=int))
    assert said(None, ground, wall) is said(()) is said((), ground, bodies=()) is said(laws, ground) is None
    assert "'floor'" in said((), ground, wall) and "nor 1 more" in said((), ground, wall)
    assert "'wall'" in said(laws, ground, wall) and "more" not in said(laws, ground, wall)
    assert "'floor'" in said(laws[:1], ground, bodies=(1,)) and "wb.Contact('b'" in said(laws[:1], ground, bodies=(1,))


def test_a_body_whose_laws_set_friction_alone_is_named_in_a_warning():
    """It touches the sponge with or without the law, but not the floor, on which another body rests."""
    sponge = SoftBody("sponge", Box((0.0, 0.0, 0.2), (0.04, 0.04, 0.24)), Material(5e4, 0.3, 200.0))
    scene, laws = flight(None, floor()), (Contact("a", "floor", 1e6), Contact("b", "sponge", 1e6))
    bodies = [dataclasses.replace(b, points=1) for b in scene.rigid]
    scene = dataclasses.replace(scene, bodies=[*bodies, sponge], contacts=laws)
    how = "RigidBody 'b' passes through Obstacle 'floor': Contact 'b on sponge' sets the friction on a soft body alone"
    with pytest.warns(UserWarning, match=how):
        ProjectiveDynamics(0.02).build(scene)
    both = np.arange(2)
    more = dataclasses.replace(scene, contacts=(*laws, Contact("b", "floor", 1e6)))
    assert "'b on sponge'" in friction_alone(scene, both)
    assert friction_alone(more, both) is friction_alone(scene, both[:1]) is None


def test_none_and_an_empty_list_are_different_scenes(tmp_path):
    """Also in files, and after their parameters are written back; both are printed differently."""
    every, none = flight(None), flight(())
    assert every != none and fingerprint(every) != fingerprint(none) and every.laws == none.laws == ()
    assert "contact" not in str(every) and "rigid bodies touch no other rigid body" in str(none)
    for k, scene in enumerate((every, none)):
        wb.usd.write(tmp_path / f"{k}.usda", scene)
        back = wb.usd.read(tmp_path / f"{k}.usda")
        assert back == scene and back.contacts == scene.contacts
        wb.usd.write(tmp_path / f"{k} again.usda", back)
        assert wb.usd.read(tmp_path / f"{k} again.usda") == scene
        for solver in (ProjectiveDynamics(0.02), Articulated()):
            sim = Simulation(scene, solver, DT)
            assert sim.scene_with(gravity=sim.parameter("gravity")).contacts == scene.contacts


def test_the_list_of_a_file_can_be_taken_back(tmp_path):
    wb.usd.write(tmp_path / "none.usda", flight(()))
    every = dataclasses.replace(wb.usd.read(tmp_path / "none.usda"), contacts=None)
    wb.usd.write(tmp_path / "every.usda", every)
    assert wb.usd.read(tmp_path / "every.usda").contacts is None


def test_info_says_that_nothing_touches(tmp_path, capsys):
    for name, contacts in (("none", ()), ("every", None)):
        wb.usd.write(tmp_path / f"{name}.usda", flight(contacts))
        assert cli.main(["info", str(tmp_path / f"{name}.usda"), "--solver", "articulated"]) == 0
        assert ("rigid bodies touch no other rigid body" in capsys.readouterr().out) == (contacts == ())


def filters(path) -> dict[str, set[str]]:
    """Names of the bodies of a file that filter pairs, and of what they filter."""
    stage = Usd.Stage.Open(str(path))
    prims = [prim for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.FilteredPairsAPI)]
    links = {prim.GetName(): UsdPhysics.FilteredPairsAPI(prim).GetFilteredPairsRel() for prim in prims}
    return {name: {target.name for target in link.GetTargets()} for name, link in links.items()}


def test_files_filter_the_pairs_that_no_law_names(tmp_path):
    """For programs in which colliders touch by default; none is left when the list is taken back."""
    law = Contact("a", "floor", 1e6)
    for name, contacts in (("none", ()), ("one", (law,)), ("every", None)):
        wb.usd.write(tmp_path / f"{name}.usda", flight(contacts, floor()))
    assert filters(tmp_path / "none.usda") == {"a": {"b", "floor"}, "b": {"floor"}}
    assert filters(tmp_path / "one.usda") == {"a": {"b"}, "b": {"floor"}}
    assert filters(tmp_path / "every.usda") == {}
    back = wb.usd.read(tmp_path / "none.usda")
    wb.usd.write(tmp_path / "back.usda", dataclasses.replace(back, contacts=None))
    assert filters(tmp_path / "back.usda") == {}


TWINS = """<mujoco><option gravity="0 0 0"/><worldbody>
<body name="a" pos="-.03 0 0"><joint name="x" type="slide" axis="1 0 0"/><geom size=".02" {bits}/></body>
<body name="b" pos=".03 0 0"><joint name="y" type="slide" axis="1 0 0"/><geom size=".02" {bits}/></body>
</worldbody>{more}</mujoco>"""
EXCLUDED = '<contact><exclude body1="a" body2="b"/></contact>'


@pytest.mark.parametrize(
    ("bits", "more", "options"),
    [
        ("", EXCLUDED, {}),
        ('contype="1" conaffinity="2"', "", {}),
        ("", "", {"contact_points": 0}),
        ("", '<option><flag contact="disable"/></option>', {}),
    ],
)
def test_a_robot_file_that_excludes_all_pairs_says_so(tmp_path, bits, more, options):
    """Its bodies pass each other under every solver, as in MuJoCo; a file that excludes nothing lets them collide."""
    pytest.importorskip("mujoco")
    path = tmp_path / "twins.xml"
    ends = {}
    for excluded in (True, False):
        path.write_text(TWINS.format(bits=bits * excluded, more=more * excluded))
        scene = wb.robots.load(path, **(options if excluded else {}))
        assert (scene.contacts == ()) == excluded
        fast = [dataclasses.replace(j, start_velocity=v) for j, v in zip(scene.joints, (SPEED, -SPEED), strict=True)]
        for solver in (ProjectiveDynamics(0.02), Articulated("bdf1")):
            ends[excluded, type(solver)] = moved(dataclasses.replace(scene, joints=fast), solver).tolist()
    for solver in (ProjectiveDynamics, Articulated):
        np.testing.assert_allclose(ends[True, solver], (SPEED, -SPEED), atol=1e-6)
        assert ends[False, solver][0] < 0.5 * SPEED


def test_a_robot_without_contact_of_its_own_bodies_says_so(tmp_path):
    """Two links of one tree that are no neighbours."""
    pytest.importorskip("mujoco")
    path = tmp_path / "chain.xml"
    link = '<body name="{}" pos=".05 0 0"><joint/><geom size=".02"/>'
    path.write_text("<mujoco><worldbody>" + "".join(map(link.format, "abc")) + 3 * "</body>" + "</worldbody></mujoco>")
    assert [{c.points, c.solid} for c in wb.robots.load(path).contacts]
    assert wb.robots.load(path, self_contact=False).contacts == ()


def test_a_robot_file_that_excludes_its_floor_falls_through_it(tmp_path):
    """Under `ProjectiveDynamics`, too, where obstacles used to hold all bodies."""
    pytest.importorskip("mujoco")
    path = tmp_path / "ghost.xml"
    path.write_text(
        '<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1" contype="2" conaffinity="2"/>'
        '<body name="a" pos="0 0 .021"><freejoint/><geom size=".02"/></body></worldbody></mujoco>'
    )
    scene = wb.robots.load(path)
    assert scene.contacts == () and [o.name for o in scene.obstacles] == ["floor"]
    assert moved(scene, ProjectiveDynamics(0.02))[2].item() == pytest.approx(-G * DT * STEPS, rel=1e-5)


def test_coupled_keeps_the_list(tmp_path):
    """Rigid bodies touch matter without a law; the list concerns rigid bodies and obstacles."""
    bed = wb.SoftBody("bed", Box((-0.05, -0.05, 0.0), (0.05, 0.05, 0.03)), wb.Material(1e5, 0.3, 1000.0))
    ball = RigidBody("ball", Sphere((0.0, 0.0, 0.0), 0.02), position=(0.0, 0.0, 0.055))
    scene = Scene(
        [bed, ball], obstacles=[floor(condition="sticky")], joints=[Joint("free", "free", None, "ball")], contacts=()
    )
    sim = Simulation(scene, wb.Coupled(wb.MPM(0.01), Articulated()), 1e-3)
    assert sim.scene.contacts == () and sim.scene_with(gravity=sim.parameter("gravity")).contacts == ()
    wb.usd.write(tmp_path / "bed.usda", scene)
    assert wb.usd.read(tmp_path / "bed.usda") == scene
