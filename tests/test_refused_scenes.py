"""A solver that refuses a scene names solvers that take it, or says that none does."""

import dataclasses
import re
import warnings

import numpy as np
import pytest

import warpbots as wb

S = wb.shapes
CUBE = wb.SoftBody("cube", S.Box((0, 0, 0), (0.1, 0.1, 0.1)), wb.Material(5e4))
BALL = wb.RigidBody("ball", S.Sphere((0, 0, 0), 0.03), position=(0.05, 0.05, 0.2))
BONE = dataclasses.replace(BALL, name="bone", position=(0.05, 0.05, 0.05))
CORNERS = [[0.1 * i, 0.1 * j, 0.3] for i in range(3) for j in range(3)]
FACES = [[c, c + 3, c + 4] for c in (0, 1, 3, 4)] + [[c, c + 4, c + 1] for c in (0, 1, 3, 4)]
CLOTH = wb.SoftBody("cloth", S.Sheet(CORNERS, FACES, 1e-3), wb.Material(1e5))
LIQUID = dataclasses.replace(CUBE, material=wb.Material(1e5, 0.45, law="weakly_compressible"))
HINGE = wb.Joint("hinge", "revolute", None, "ball", axis=(0, 1, 0))
ROBOT = {"joints": [HINGE], "actuators": [wb.actuators.Torque("motor", "hinge", 0.1)]}
ROOM = {"domain": ((-0.5,) * 3, (1.0,) * 3)}


def soft(**material) -> wb.SoftBody:
    return dataclasses.replace(CUBE, material=dataclasses.replace(CUBE.material, **material))


SCENES = {
    "soft cube and loose ball": wb.Scene([CUBE, BALL], joints=[wb.Joint("free", "free", None, "ball")]),
    "soft cube and floating ball": wb.Scene([CUBE, BALL]),
    "liquid and robot": wb.Scene([LIQUID, BALL], **ROBOT, **ROOM),
    "cloth and hinge": wb.Scene([CLOTH, BALL], joints=[HINGE]),
    "yielding cube and bone": wb.Scene([soft(yield_strain=0.1), BONE]),
    "sand and bone": wb.Scene([soft(law="hencky", plasticity=wb.materials.VonMises(1e3)), BONE]),
    "sand and cloth": wb.Scene([soft(law="hencky", plasticity=wb.materials.VonMises(1e3)), CLOTH], **ROOM),
    "springs that break in a fluid": wb.Scene([soft(breaking_strain=0.2)], fluid=wb.Fluid(1000.0)),
    "liquid and attachment": wb.Scene(
        [LIQUID, dataclasses.replace(CUBE, name="other", shape=S.Box((0.1, 0, 0), (0.2, 0.1, 0.1)))],
        attachments=[wb.Attachment("weld", "cube", "other", [(0.1, 0.05, 0.05)])], **ROOM,
    ),
    "bones in contact": wb.Scene(
        [CUBE, dataclasses.replace(BONE, points=20)], obstacles=[wb.floor(-0.1)], contacts=[wb.Contact("bone", "floor", 1e6)]
    ),
    "rigid body in a fluid": wb.Scene([BALL], fluid=wb.Fluid(1000.0)),
}  # fmt: skip
"""What no solver takes."""

TAKEN = {
    "ball": (wb.Scene([BALL]), {"Articulated"}),
    "bone": (wb.Scene([CUBE, BONE]), {"ProjectiveDynamics"}),
    "cube": (wb.Scene([CUBE], **ROOM), {"MPM", "MassSpring", "ProjectiveDynamics"}),
    "cloth": (wb.Scene([CLOTH]), {"ProjectiveDynamics"}),
    "liquid": (wb.Scene([LIQUID], **ROOM), {"MPM"}),
    "yielding": (wb.Scene([soft(yield_strain=0.1)]), {"MassSpring"}),
    "swimming": (wb.Scene([CUBE], fluid=wb.Fluid(1000.0)), {"ProjectiveDynamics"}),
    "flat": (
        wb.Scene([wb.SoftBody("disc", S.Sphere((0.5, 0.5), 0.2), wb.Material(1e4))], domain=((0, 0), (1, 1))),
        {"MPM", "MassSpring"},
    ),
}  # fmt: skip
"""What some solvers take, and which."""

SOLVERS = {
    "MPM": wb.MPM(0.02), "MassSpring": wb.MassSpring(0.05), "ProjectiveDynamics": wb.ProjectiveDynamics(0.03),
    "Articulated": wb.Articulated(),
}  # fmt: skip


def refusals(scene: wb.Scene) -> dict[str, str]:
    """The refusal of each solver that does not take a scene."""
    found = {}
    for name, solver in SOLVERS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                solver.build(scene)
        except wb.SceneError as fault:
            found[name] = str(fault)
    return found


@pytest.mark.parametrize("name", SCENES)
def test_where_no_solver_takes_a_scene_each_refusal_says_so_and_sends_nobody_on(name):
    found = refusals(SCENES[name])
    assert set(found) == set(SOLVERS)
    for words in found.values():
        assert "no solver takes all of this scene yet (" in words
        assert not re.search(r"\buse (MPM|MassSpring|ProjectiveDynamics|Articulated)\b", words)


@pytest.mark.parametrize("name", TAKEN)
def test_a_refusal_names_all_solvers_that_take_the_scene_and_no_other(name):
    scene, takers = TAKEN[name]
    found = refusals(scene)
    assert set(SOLVERS) - set(found) == takers
    for solver, words in found.items():
        named = re.search(r"\buse ((?:\w+ or )*\w+)$", words.splitlines()[-1])
        assert named, words
        assert set(named[1].split(" or ")) == takers, (solver, words)


def test_a_bone_is_in_its_body_by_its_shape_and_not_by_its_bounds():
    """A ball at the corner of the bounds of another one."""
    round_body = dataclasses.replace(CUBE, shape=S.Sphere((0.1, 0.1, 0.1), 0.1))
    corner = dataclasses.replace(BALL, position=tuple(np.full(3, 0.02)), shape=S.Sphere((0, 0, 0), 0.02))
    words = refusals(wb.Scene([round_body, corner]))["ProjectiveDynamics"]
    assert "no solver takes all of this scene yet" in words
