"""A solver that refuses a scene names solvers that take it, or says that none does."""

import dataclasses
import re
import warnings

import numpy as np
import pytest

import warpbots as wb
from warpbots.solvers.scene_parts import COUPLED, COUPLED_SPRINGS

S = wb.shapes
CUBE = wb.SoftBody("cube", S.Box((0, 0, 0), (0.1, 0.1, 0.1)), wb.Material(5e4))
BALL = wb.RigidBody("ball", S.Sphere((0, 0, 0), 0.03), position=(0.05, 0.05, 0.2))
BONE = dataclasses.replace(BALL, name="bone", position=(0.05, 0.05, 0.05))
CORNERS = [[0.1 * i, 0.1 * j, 0.3] for i in range(3) for j in range(3)]
FACES = [[c, c + 3, c + 4] for c in (0, 1, 3, 4)] + [[c, c + 4, c + 1] for c in (0, 1, 3, 4)]
CLOTH = wb.SoftBody("cloth", S.Sheet(CORNERS, FACES, 1e-3), wb.Material(1e5))
LIQUID = dataclasses.replace(CUBE, material=wb.Material(1e5, 0.45, law="weakly_compressible"))
TRUSS = wb.SoftBody(
    "truss",
    S.Truss([(0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)], [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], 0.02),
    wb.Material(1e5),
)
RUBBER = wb.Material(1e5, law="mooney_rivlin", constants={"second_invariant_share": 0.2})
HINGE = wb.Joint("hinge", "revolute", None, "ball", axis=(0, 1, 0))
ROBOT = {"joints": [HINGE], "actuators": [wb.actuators.Torque("motor", "hinge", 0.1)]}
ROOM = {"domain": ((-0.5,) * 3, (1.0,) * 3)}


def soft(**material) -> wb.SoftBody:
    return dataclasses.replace(CUBE, material=dataclasses.replace(CUBE.material, **material))


SCENES = {
    "sand and bone": wb.Scene([soft(law="hencky", plasticity=wb.materials.VonMises(1e3)), BONE]),
    "sand and cloth": wb.Scene([soft(law="hencky", plasticity=wb.materials.VonMises(1e3)), CLOTH], **ROOM),
    "springs that break in a fluid": wb.Scene([soft(breaking_strain=0.2)], fluid=wb.Fluid(1000.0)),
    "liquid and attachment": wb.Scene(
        [LIQUID, dataclasses.replace(CUBE, name="other", shape=S.Box((0.1, 0, 0), (0.2, 0.1, 0.1)))],
        attachments=[wb.Attachment("weld", "cube", "other", [(0.1, 0.05, 0.05)])], **ROOM,
    ),
    "rigid body in a fluid": wb.Scene([BALL], fluid=wb.Fluid(1000.0)),
    "incompressible cloth": wb.Scene([dataclasses.replace(CLOTH, material=wb.Material(1e5, incompressibility=2))], **ROOM),
}  # fmt: skip
"""What no solver takes."""

TAKEN = {
    "ball": (wb.Scene([BALL]), {"ProjectiveDynamics", "Articulated"}),
    "liquid and robot": (wb.Scene([LIQUID, BALL], **ROBOT, **ROOM), {COUPLED}),
    "sand and ball": (
        wb.Scene([soft(law="hencky", plasticity=wb.materials.VonMises(1e3)), BALL], **ROOM), {COUPLED},
    ),
    "soft cube and loose ball": (
        wb.Scene([CUBE, BALL], joints=[wb.Joint("free", "free", None, "ball")]), {"ProjectiveDynamics", COUPLED, COUPLED_SPRINGS},
    ),
    "soft cube and floating ball": (wb.Scene([CUBE, BALL]), {"ProjectiveDynamics", COUPLED, COUPLED_SPRINGS}),
    "yielding cube and ball": (wb.Scene([soft(yield_strain=0.1), BALL]), {COUPLED_SPRINGS}),
    "cloth and hinge": (wb.Scene([CLOTH, BALL], joints=[HINGE]), {"ProjectiveDynamics"}),
    "bone": (wb.Scene([CUBE, BONE]), {"ProjectiveDynamics", COUPLED_SPRINGS}),
    "yielding cube and bone": (wb.Scene([soft(yield_strain=0.1), BONE]), {COUPLED_SPRINGS}),
    "bones in contact": (
        wb.Scene(
            [CUBE, dataclasses.replace(BONE, points=20)], obstacles=[wb.floor(-0.1)],
            contacts=[wb.Contact("bone", "floor", 1e6)],
        ),
        {"ProjectiveDynamics", COUPLED_SPRINGS},
    ),
    "cube": (wb.Scene([CUBE], **ROOM), {"MPM", "MassSpring", "ProjectiveDynamics"}),
    "cloth": (wb.Scene([CLOTH]), {"ProjectiveDynamics"}),
    "liquid": (wb.Scene([LIQUID], **ROOM), {"MPM"}),
    "yielding": (wb.Scene([soft(yield_strain=0.1)]), {"MassSpring"}),
    "swimming": (wb.Scene([CUBE], fluid=wb.Fluid(1000.0)), {"ProjectiveDynamics"}),
    "truss": (wb.Scene([TRUSS], **ROOM), {"MPM", "MassSpring", "ProjectiveDynamics"}),
    "rubber": (
        wb.Scene([soft(law="gent", constants={"locking_invariant": 3.0})], **ROOM),
        {"MPM", "MassSpring", "ProjectiveDynamics"},
    ),
    "incompressible truss": (wb.Scene([dataclasses.replace(TRUSS, material=wb.Material(1e5, incompressibility=2))], **ROOM), {"MPM"}),
    "flat": (
        wb.Scene([wb.SoftBody("disc", S.Sphere((0.5, 0.5), 0.2), wb.Material(1e4))], domain=((0, 0), (1, 1))),
        {"MPM", "MassSpring"},
    ),
}  # fmt: skip
"""What some solvers take, and which."""

SOLVERS = {
    "MPM": wb.MPM(0.02), "MassSpring": wb.MassSpring(0.05), "ProjectiveDynamics": wb.ProjectiveDynamics(0.03),
    "Articulated": wb.Articulated(), COUPLED: wb.Coupled(wb.MPM(0.02), wb.Articulated()),
    COUPLED_SPRINGS: wb.Coupled(wb.MassSpring(0.02), wb.Articulated()),
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
        assert not re.search(r"\buse (MPM|MassSpring|ProjectiveDynamics|Articulated|Coupled)\b", words)


@pytest.mark.parametrize("name", TAKEN)
def test_a_refusal_names_all_solvers_that_take_the_scene_and_no_other(name):
    scene, takers = TAKEN[name]
    found = refusals(scene)
    assert set(SOLVERS) - set(found) == takers
    for solver, words in found.items():
        named = re.search(r"\buse ((?:[\w(), ]+ or )*[\w(), ]+)$", words.splitlines()[-1])
        assert named, words
        assert set(named[1].split(" or ")) == takers, (solver, words)


def test_a_bone_is_in_its_body_by_its_shape_and_not_by_its_bounds():
    """A ball at the corner of the bounds of another one is loose, and no message calls it a bone that nodes miss."""
    round_body = dataclasses.replace(CUBE, shape=S.Sphere((0.1, 0.1, 0.1), 0.1))
    corner = dataclasses.replace(BALL, position=tuple(np.full(3, 0.02)), shape=S.Sphere((0, 0, 0), 0.02))
    assert "ProjectiveDynamics" not in refusals(wb.Scene([round_body, corner]))


IGNORED = {
    "springs": (soft(law="hencky"), "MassSpring", "springs follow Hooke's law and have no volume, instead of law='hencky'"),
    "cloth": (
        dataclasses.replace(CLOTH, material=RUBBER), "ProjectiveDynamics",
        "sheets are membranes in plane stress with a law of their own, instead of law='mooney_rivlin', under Proj",
    ),
    "both": (
        dataclasses.replace(CLOTH, shape=S.Union((CUBE.shape, CLOTH.shape)), material=RUBBER), "ProjectiveDynamics",
        "sheets are membranes in plane stress with a law of their own, instead of law='mooney_rivlin'",
    ),
    "bars": (
        dataclasses.replace(TRUSS, material=RUBBER), "ProjectiveDynamics",
        "bars of a Truss follow Hooke's law and have no volume, instead of law='mooney_rivlin'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", IGNORED)
def test_a_law_that_is_ignored_is_warned_of(name):
    body, solver, words = IGNORED[name]
    with pytest.warns(UserWarning, match=f"^SoftBody '{body.name}': {words}"):
        SOLVERS[solver].build(wb.Scene([body], **ROOM))


FAULTY = {
    "stiff cloth": (
        dataclasses.replace(CLOTH, material=wb.Material(1e5, incompressibility=2)), "ProjectiveDynamics",
        "so incompressibility=2 has no meaning for ProjectiveDynamics",
    ),
    "unknown": (soft(law="jelly"), "MassSpring", "law must be one of neo_hookean, .*got 'jelly'"),
    "constants": (
        soft(constants={"exponent": 2.0}), "MassSpring", "law 'neo_hookean' has no constants of its own; leave",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_material_is_refused(name):
    body, solver, words = FAULTY[name]
    with pytest.raises(wb.SceneError, match=f"^SoftBody '{body.name}': .*{words}"):
        SOLVERS[solver].build(wb.Scene([body], **ROOM))
