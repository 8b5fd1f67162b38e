"""Bodies without a colour have one of the palette, the same in pictures, players, benches and files."""

import dataclasses
import itertools

import numpy as np
import pytest
from pxr import Usd, UsdGeom

import warpbots as wb
from warpbots.bench.drawing import Drawing
from warpbots.scene import Box, Joint, RigidBody, Sphere
from warpbots.scene.palette import RIGID, SOFT
from warpbots.usd.geometry.looks import GROUND as USD_GROUND
from warpbots.view.palette import GOAL, GROUND

SEEN_BY = {  # linear RGB as seen by dichromats: Machado, Oliveira and Fernandes 2009, severity 1
    "trichromats": np.eye(3),
    "protanopes": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopes": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopes": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def lab(color, eye):
    """CIE L*a*b* of an sRGB colour (D65), as seen with the matrix `eye`."""
    c = np.asarray(color)
    light = np.clip(np.asarray(eye) @ np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4), 0.0, 1.0)
    x, y, z = np.cbrt(XYZ @ light / np.array([0.95047, 1.0, 1.08883]))
    return np.array([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)])


@pytest.mark.parametrize("eye", SEEN_BY)
def test_everybody_can_tell_the_colours_apart(eye):
    """A difference of 2.3 is just noticeable; grey is nearest to the ground, on which its shadow shows."""
    seen = {c: lab(c, SEEN_BY[eye]) for c in (*SOFT, *RIGID, GROUND, GOAL)}
    for a, b in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[a] - seen[b]) > 14.0, (a, b)


def test_no_soft_body_is_as_the_ground_of_a_stage():
    assert min(np.abs(np.array(c) - USD_GROUND).max() for c in SOFT) > 0.1


def ball(name, x=0.0, **more):
    return wb.SoftBody(name, Sphere((x, 0.0, 0.3), 0.1), wb.Material(1e5, density=1000.0), **more)


def box(name, **more):
    return RigidBody(name, Box((-0.1,) * 3, (0.1,) * 3), **more)


def test_soft_bodies_take_colours_in_their_order():
    assert wb.Scene([ball("a"), ball("b"), ball("c")]).colors == SOFT[:3]


def test_the_first_bodies_keep_the_colours_they_always_had():
    assert wb.Scene([ball("a"), box("b")], contacts=()).colors == ((0.35, 0.6, 0.85), (0.75, 0.75, 0.72))


def test_colours_of_bodies_are_passed_over():
    assert wb.Scene([ball("a"), ball("b", color=SOFT[0]), ball("c")]).colors == (SOFT[1], SOFT[0], SOFT[2])


def test_colours_repeat_when_all_are_used():
    assert wb.Scene([ball(str(k)) for k in range(len(SOFT) + 2)]).colors == SOFT + SOFT[:2]


def test_a_mechanism_has_one_colour():
    """Palm and finger are one hand, the box is something else."""
    bodies = [box("palm"), box("object"), box("finger")]
    joints = [
        Joint("wrist", "fixed", None, "palm"),
        Joint("free", "free", None, "object"),
        Joint("knuckle", "revolute", "palm", "finger"),
    ]
    assert wb.Scene(bodies, joints=joints).colors == (RIGID[0], RIGID[1], RIGID[0])


def test_a_picture_and_a_bench_show_two_balls_in_two_colours():
    scene = wb.Scene([ball("a"), ball("b", 0.5)])
    sim = wb.Simulation(scene, wb.MPM(dx=0.05), dt=1e-3)
    moment = Drawing(sim, sim.state()).at(sim.state(), np.zeros(0))
    shown = np.unique(moment.colors[moment.colors[:, 3] > 0, :3], axis=0)
    np.testing.assert_array_equal(shown, np.unique(np.round(255.0 * np.array(scene.colors)), axis=0))


def primvar(stage, body):
    """The colour of a body as other programs read it."""
    prim = next(prim for prim in stage.Traverse() if prim.GetName() == body)
    return UsdGeom.PrimvarsAPI(prim).GetPrimvar("displayColor")


def test_a_file_shows_the_colours_and_keeps_whose_they_are(tmp_path):
    bodies = [ball("a"), ball("b", 0.5), ball("c", 1.0, color=(0.1, 0.2, 0.3)), box("box")]
    scene, file = wb.Scene(bodies, contacts=()), tmp_path / "scene.usda"
    wb.usd.write(file, scene)
    stage = Usd.Stage.Open(str(file))
    for body, color in zip(bodies, scene.colors, strict=True):
        np.testing.assert_allclose(primvar(stage, body.name).Get()[0], color, rtol=1e-6)
    found = wb.usd.read(file)
    assert [b.color for b in found.bodies] == [None, None, (0.1, 0.2, 0.3), None]
    wb.usd.write(tmp_path / "fewer.usda", dataclasses.replace(found, bodies=found.bodies[1:]))
    stage = Usd.Stage.Open(str(tmp_path / "fewer.usda"))
    np.testing.assert_allclose(primvar(stage, "b").Get()[0], SOFT[0], rtol=1e-6)


def test_a_colour_that_somebody_gives_in_a_file_is_the_own_colour(tmp_path):
    wb.usd.write(tmp_path / "scene.usda", wb.Scene([ball("a")]))
    stage = Usd.Stage.Open(str(tmp_path / "scene.usda"))
    primvar(stage, "a").Set([(0.9, 0.1, 0.1)])
    stage.GetRootLayer().Save()
    assert wb.usd.read(tmp_path / "scene.usda").bodies[0].color == (0.9, 0.1, 0.1)


def test_a_motion_shows_the_colours(tmp_path):
    scene = wb.Scene([ball("a"), ball("b", 0.5)])
    sim = wb.Simulation(scene, wb.MPM(dx=0.05), dt=1e-3)
    wb.usd.write(tmp_path / "motion.usda", sim.rollout(None, 1))
    stage = Usd.Stage.Open(str(tmp_path / "motion.usda"))
    for body, color in zip("ab", scene.colors, strict=True):
        skin = UsdGeom.Mesh(stage.GetPrimAtPath(f"/World/Bodies/{body}/Surface"))
        np.testing.assert_allclose(skin.GetDisplayColorAttr().Get()[0], color, rtol=1e-6)
    assert [b.color for b in wb.usd.read(tmp_path / "motion.usda").bodies] == [None, None]
