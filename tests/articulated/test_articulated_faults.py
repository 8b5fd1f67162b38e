"""What is refused, and in which words."""

import dataclasses
import re

import numpy as np
import pytest
import torch
from cases import OWN

from warpbots.scene import (
    Box,
    Capsule,
    Cloud,
    Contact,
    HalfSpace,
    Heightfield,
    Inertia,
    Joint,
    Material,
    Muscle,
    Obstacle,
    RigidBody,
    Scene,
    SceneError,
    Servo,
    SoftBody,
    Sphere,
    Torque,
    TriangleMesh,
    Union,
    floor,
)
from warpbots.simulation import Simulation, SimulationError
from warpbots.solvers import MPM, Articulated, MassSpring

BALL = Sphere((0, 0, 0), 0.1)


def arm(count: int = 2) -> tuple[RigidBody, ...]:
    return tuple(RigidBody(f"link{i}", BALL) for i in range(count))


JOINTS = {
    "kind": (lambda: Joint("j", "hinge", None, "a"), "kind must be one of fixed, revolute"),
    "zero axis": (lambda: Joint("j", "revolute", None, "a", axis=(0, 0, 0)), "axis must not be the zero vector"),
    "itself": (lambda: Joint("j", "revolute", "a", "a"), "joins 'a' to itself"),
    "limits": (lambda: Joint("j", "revolute", None, "a", lower=1.0, upper=-1.0), r"lower \(1.0,\) must be below upper"),
    "limits of a ball": (lambda: Joint("j", "ball", None, "a", upper=1.0), "a ball joint has no limits"),
    "damping": (lambda: Joint("j", "revolute", None, "a", damping=-1.0), "damping must not be negative"),
    "length": (lambda: Joint("j", "planar", None, "a", damping=(1, 2, 3)), "damping of a planar joint must be"),
    "quaternion": (lambda: Joint("j", "ball", None, "a", start=(1, 1, 0, 0)), "must be a unit quaternion"),
    "rotation": (lambda: Joint("j", "ball", None, "a", rotation=2 * np.eye(3)), "must be a rotation matrix"),
    "neutral of a ball": (lambda: Joint("j", "ball", None, "a", neutral=0.3), "at rest at the zero rotation"),
    "limit stiffness": (
        lambda: Joint("j", "revolute", None, "a", upper=1.0, limit_stiffness=0.0), "limit_stiffness must be a positive",
    ),
    "limit damping": (
        lambda: Joint("j", "revolute", None, "a", upper=1.0, limit_damping=-1.0), "limit_damping must not be negative",
    ),
    "limit stiffness without limits": (
        lambda: Joint("j", "revolute", None, "a", limit_stiffness=-5.0), "limit_stiffness must be a positive",
    ),
}  # fmt: skip
BODIES = {
    "negative moments": (lambda: Inertia(1.0, (0, 0, 0), (1, 1, -1)), "must be positive definite"),
    "triangle": (lambda: Inertia(1.0, (0, 0, 0), (1, 1, 2.1)), "no moment can exceed the other two"),
    "asymmetric": (lambda: Inertia(1.0, (0, 0, 0), np.eye(3) + np.eye(3, k=1) * 0.1), "must be symmetric"),
    "mass": (lambda: Inertia(0.0, (0, 0, 0), (1, 1, 1)), "mass must be a positive number"),
    "density": (lambda: RigidBody("a", BALL, density=-1.0), r"density must be positive \[kg/m\^3\], got -1"),
    "areas": (lambda: Cloud(np.zeros((2, 3)), [1.0, -1.0]), "must be positive .* at index 1"),
    "points": (lambda: RigidBody("a", None, points=10), "no surface for 10 points"),
    "friction": (lambda: Contact("a", "b", 1e6, friction=0.5), "needs a viscosity above 0"),
    "restitution": (
        lambda: Contact("a", "b", 1e6, 1e8, restitution=1.5),
        r"'a on b': restitution must be in \[0, 1\], .*got 1.5",
    ),
    "undamped": (
        lambda: Contact("a", "b", 1e6, restitution=0.5),
        r"restitution 0.5 needs a damping above 0 \[Pa s/m\^2\], .*; 1e\+08 suits",
    ),
    "without effect": (
        lambda: Contact("a", "b", 1e8, 1e4, restitution=0.5),
        r"'a on b': restitution 0.5 needs a damping of at least 6e\+06 \[Pa s/m\^2\], got 1e\+04, .* above 6e\+03 m/s have it; 1e\+10 suits",
    ),
    "stiffness": (lambda: Contact("a", "b", -1e6), "stiffness must be a positive number"),
    "torque": (lambda: Torque("m", "j", 0.0), "max_torque must be a positive number"),
    "servo": (lambda: Servo("m", "j", 1.0, reach=-1.0), "reach must not be negative"),
}


@pytest.mark.parametrize("case", [*JOINTS, *BODIES])
def test_parts_that_make_no_sense(case):
    make, words = (JOINTS | BODIES)[case]
    with pytest.raises(SceneError, match=words):
        make()


ELBOW = Joint("elbow", "revolute", "link0", "link1")


def chain(rough: str, *laws: Contact) -> Scene:
    """Bodies a, b and c in a chain of joints; those in `rough` have points and the surface s."""
    bodies = [RigidBody(n, BALL, points=9 * (n in rough), surface="s" if n in rough else None) for n in "abc"]
    joints = [Joint("i", "revolute", "a", "b"), Joint("j", "revolute", "b", "c")]
    return Scene(bodies, joints=joints, contacts=laws)


SHOULDER = Joint("shoulder", "revolute", None, "link0")
SCENES = {
    "no parent": (lambda: Scene(arm(), joints=[Joint("j", "revolute", "base", "link0")]),
                  "there is no rigid body 'base' to be its parent; the scene has link0, link1, or None"),
    "no child": (lambda: Scene(arm(), joints=[Joint("j", "revolute", None, "hand")]), "'hand' to be its child"),
    "loop": (lambda: Scene(arm(), joints=[ELBOW, Joint("back", "revolute", "link1", "link0")]),
             "bodies link0, link1 are connected in a loop"),
    "two joints": (lambda: Scene(arm(), joints=[SHOULDER, ELBOW, Joint("wall", "fixed", None, "link1")]),
                   "Joint 'wall': body 'link1' is already the child of joint 'elbow'"),
    "names": (lambda: Scene(arm(3), joints=[Joint("link2", "revolute", "link0", "link1")]),
              "Joint 'link2': it has the name of a floating body"),
    "no joint": (lambda: Scene(arm(), [Torque("m", "knee", 1.0)], joints=[ELBOW]), "no joint 'knee'; the scene has elbow"),
    "fixed": (lambda: Scene(arm(), [Servo("m", "weld", 1.0)], joints=[Joint("weld", "fixed", None, "link0")]),
              "joint 'weld' is fixed; a motor needs a joint that moves"),
    "axis": (lambda: Scene(arm(), [Torque("m", "elbow", 1.0, axis=1)], joints=[ELBOW]), "axis must be in 0 to 0"),
    "servo of a ball": (lambda: Scene(arm(), [Servo("m", "b", 1.0)], joints=[Joint("b", "ball", None, "link0")]),
                        "a quaternion has no position to hold"),
    "no points": (lambda: Scene(arm(), obstacles=[floor()], contacts=[Contact("link0", "floor", 1e6)]),
                  "no body or surface 'link0' with points; those with points are none"),
    "no solid": (lambda: Scene([RigidBody("a", BALL, points=10)], contacts=[Contact("a", "wall", 1e6)]),
                 "no body, surface or obstacle 'wall'; the scene has"),
    "idle points": (lambda: Scene([RigidBody("a", BALL, points=10)]), "no contact names it or its surface"),
    "one body": (lambda: chain("a", Contact("s", "a", 1e6)), "Contact 's on a': all bodies that it names are one body or"),
    "neighbours": (lambda: chain("ab", Contact("s", "s", 1e6)), "neighbours at a joint, .* never in contact; name another body"),
    "2D": (lambda: Scene([SoftBody("s", Box((0, 0), (1, 1)), Material(1e4, 0.3, 1e3)), *arm(1)]), "RigidBody 'link0' is 3D"),
}  # fmt: skip


@pytest.mark.parametrize("case", SCENES)
def test_scenes_that_make_no_sense(case):
    make, words = SCENES[case]
    with pytest.raises(SceneError, match=words):
        make()


def test_neighbours_touch_by_their_own_names_and_the_ends_of_a_chain_by_a_surface():
    model = Articulated().build(chain("abc", Contact("a", "b", 1e6), Contact("s", "s", 1e6)))
    assert model.contact_topology.pair_law.numpy().tolist() == [0, 1, 1]  # a on b; a on c and c on a


BUILDS = {
    "soft": (lambda: Scene([SoftBody("s", BALL, Material(1e4, 0.3, 1e3)), *arm(1)]), "SoftBody 's': rigid bodies alone"),
    "muscle": (lambda: Scene([SoftBody("s", BALL, Material(1e4, 0.3, 1e3), {"r": BALL})], [Muscle("m", "r", (1, 0, 0), 1.0)]),
               "Muscle 'm': joints are driven by Torque and Servo"),
    "weightless": (lambda: Scene([RigidBody("a", None)], joints=[Joint("j", "revolute", None, "a")]),
                   "Joint 'j': it moves 'a', which has no mass and carries none"),
    "endless": (lambda: Scene([RigidBody("a", HalfSpace((0, 0, 0), (0, 0, 1)))]),
                "RigidBody 'a': its mass does not follow from its shape: no moments of inertia are known for a HalfSpace"),
    "no volume": (lambda: Scene([RigidBody("a", TriangleMesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 1]]))]),
                  "RigidBody 'a': its mass does not follow from its shape: it has a volume of"),
    "terrain": (lambda: Scene([RigidBody("a", BALL, points=9)], contacts=[Contact("a", "hill", 1e6)],
                              obstacles=[Obstacle(Heightfield((0.0, 0.0), 1.0, np.zeros((4, 4))), name="hill")]),
                "a Heightfield has no end and cannot be sampled"),
}  # fmt: skip


@pytest.mark.parametrize("case", BUILDS)
def test_scenes_that_the_solver_refuses(case):
    make, words = BUILDS[case]
    with pytest.raises(SceneError, match=re.escape(words)):
        Articulated().build(make())


@pytest.mark.parametrize("solver", [MPM(0.1), MassSpring(0.1)])
def test_solvers_of_soft_bodies_refuse_rigid_ones(solver):
    scene = Scene(arm(), [Torque("m", "elbow", 1.0)], joints=[ELBOW])
    with pytest.raises(
        SceneError,
        match=r"this scene has RigidBody 'link0', .*Joint 'elbow', Torque 'm': use ProjectiveDynamics or Articulated",
    ):
        solver.build(scene)


@pytest.mark.parametrize(
    "options", [{"integrator": "rk4"}, {"tolerance": 0.0}, {"max_iterations": 0}, {"samples": 2}, {"rounding": 1.0}]
)
def test_options_out_of_range(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"Articulated: .*{name}"):
        Articulated(**options)


def test_a_step_that_does_not_converge_is_reported_with_its_residual():
    """One correction is not enough for a ball that lands."""
    ball = RigidBody("ball", BALL, position=(0, 0, 0.11), points=40)
    joint = Joint("ball", "free", None, "ball", position=(0, 0, 0.11), start_velocity=(0, 0, -3.0, 0, 0, 0))
    scene = Scene(
        (ball,), joints=(joint,), obstacles=(floor(),), contacts=(Contact("ball", "floor", 1e7, 1e7, 0.5, 1e5),)
    )
    words = r"control step \d, substep 0 .*did not converge in world 0: after 2 iterations .*tolerance 1e-09\).*shorter step .*softer or less"
    with pytest.raises(SimulationError, match=words):
        Simulation(scene, Articulated(max_iterations=2), dt=5e-3).rollout(None, 5)
    assert torch.isfinite(Simulation(scene, Articulated(), dt=5e-3).rollout(None, 5).final.q).all()


def test_a_ball_that_turns_too_far_in_a_step_is_named():
    top = RigidBody("top", BALL)
    sim = Simulation(
        Scene([top], joints=[Joint("spin", "free", None, "top")], gravity=(0, 0, 0)), Articulated(), dt=5e-3
    )
    spin = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.0, 600.0])
    with pytest.raises(SimulationError, match=r"joint 'spin' rotates at 600 rad/s, by 3 rad in a step, .* below 1 rad"):
        sim.rollout(None, 1, sim.state(qd=spin))
    slow = sim.rollout(None, 40, sim.state(qd=spin / 3.1)).final
    assert float(slow.qd[0, 5]) == pytest.approx(600.0 / 3.1)


def test_a_state_that_is_not_finite_is_named():
    sim = Simulation(Scene(arm(), joints=[SHOULDER, ELBOW]), Articulated(), dt=1e-2)
    with pytest.raises(ValueError, match="state field 'qd' must be finite"):
        sim.state(qd=torch.tensor([0.0, float("nan")]))


def test_solvers_without_readings_say_so():
    scene = Scene([SoftBody("s", Box((0, 0, 0), (1, 1, 1)), Material(1e4, 0.3, 1e3))])
    sim = Simulation(scene, OWN["own"](0.5), dt=1e-3, substeps=None)
    with pytest.raises(TypeError, match="ExplicitFEM measures nothing"):
        sim.sense(sim.state())


def test_unions_have_the_mass_of_their_parts():
    two = Union((Capsule((0, 0, 0), (1, 0, 0), 0.1), Box((3, 0, 0), (4, 1, 1))))
    one = Articulated().build(Scene([RigidBody("a", two, 100.0)]))
    parts = Articulated().build(Scene([RigidBody("a", two.shapes[0], 100.0), RigidBody("b", two.shapes[1], 100.0)]))
    assert np.isclose(one.mass.numpy().sum(), parts.mass.numpy().sum(), rtol=1e-12)


def test_a_body_that_falls_through_an_obstacle_gets_the_line_that_adds_the_law():
    ball = RigidBody("ball", Sphere((0, 0, 0), 0.1), position=(0, 0, 0.5))
    ground = floor(0.0)
    said = (
        r"RigidBody 'ball' falls through Obstacle 'floor', because no Contact names both; give the scene "
        r"contacts=\[wb\.Contact\('ball', 'floor', 1e8, 1e9, friction=0\.5, viscosity=1e7\)\], and the body points"
    )
    with pytest.warns(UserWarning, match=said):
        Simulation(Scene([ball], obstacles=[ground]), Articulated())
    pair = [dataclasses.replace(ball, name="a"), dataclasses.replace(ball, name="b", position=(1, 0, 0.4))]
    arm = Joint("arm", "revolute", "a", "b", axis=(0, 1, 0))
    with pytest.warns(UserWarning, match="'b' falls through .*, and 1 more bodies likewise"):
        Simulation(Scene(pair, obstacles=[ground], joints=[arm]), Articulated())


def test_a_body_that_sinks_into_an_obstacle_under_its_weight_is_named():
    """By more than its own size. It does sink; a body on a joint, or without gravity, may not."""
    ball = RigidBody("ball", Sphere((0, 0, 0), 0.05), position=(0, 0, 0.05), points=1)
    law, parts = Contact("ball", "floor", 1e4, 1e4), {"obstacles": [floor(friction=0.0)]}
    weak = Scene([ball], contacts=[law], **parts)
    said = r"'ball on floor': 'ball' sinks 1 m into 'floor' .* its size of 0\.1 m, .*; give at least 1e\+07"
    with pytest.warns(UserWarning, match=said):
        sim = Simulation(weak, Articulated(), 5e-3)
    assert sim.rollout(None, 400).final.q[0, 2] < -0.5
    held = [Joint("rail", "prismatic", None, "ball", axis=(0, 0, 1), stiffness=100.0)]
    for scene in (
        dataclasses.replace(weak, contacts=[dataclasses.replace(law, stiffness=1e7)]),
        dataclasses.replace(weak, joints=held),
        dataclasses.replace(weak, gravity=(0, 0, 0)),
    ):
        Simulation(scene, Articulated(), 1e-4)  # a warning is an error in tests


def test_a_loose_body_that_falls_through_a_rigid_body_gets_the_line_that_adds_the_law():
    """The body below is fixed, or rests on a floor under a law; named by a law, thrown, or falling as well: no word."""
    ball = RigidBody("ball", Sphere((0, 0, 0), 0.05), position=(0, 0, 0.5))
    cube = RigidBody("cube", Box((-0.1,) * 3, (0.1,) * 3), position=(0, 0, 0.101), friction=0.0)
    fixed, law = Joint("fixed", "fixed", None, "cube"), Contact("cube", "floor", 1e6)
    resting = dataclasses.replace(cube, points=8)
    said = r"'ball' falls through RigidBody 'cube', because no Contact names both; .*wb\.Contact\('ball', 'cube'"
    for scene in (
        Scene([ball, cube], joints=[fixed]),
        Scene([ball, resting], obstacles=[floor(friction=0.0)], contacts=[law]),
    ):
        with pytest.warns(UserWarning, match=said):
            Simulation(scene, Articulated(), 1e-4)
    thrown = Joint("thrown", "free", None, "ball", start_velocity=(1, 0, 0, 0, 0, 0))
    aside = dataclasses.replace(ball, position=(0.3, 0, 0.5))
    for scene in (
        Scene([ball, resting], joints=[fixed], contacts=[Contact("cube", "ball", 1e6)]),
        Scene([ball, cube], joints=[fixed, thrown]),
        Scene([aside, cube], joints=[fixed]),
        Scene([ball, cube]),
    ):
        Simulation(scene, Articulated(), 1e-4)  # a warning is an error in tests


def test_a_body_that_may_not_fall_gets_no_warning():
    """Hung up, borne by a law of its own or of its neighbour, without gravity, or above nothing."""
    ball = RigidBody("ball", Sphere((0, 0, 0), 0.1), position=(0, 0, 0.5))
    foot = dataclasses.replace(ball, name="foot", position=(1, 0, 0.4), points=1)
    arm = Joint("arm", "revolute", "ball", "foot", axis=(0, 1, 0))
    law, ground = Contact("foot", "floor", 1e6), floor(friction=0.0)
    for scene in (
        Scene([ball], obstacles=[ground], joints=[Joint("hinge", "revolute", None, "ball", axis=(0, 1, 0))]),
        Scene([ball, foot], obstacles=[ground], joints=[arm], contacts=[law]),
        Scene([ball], obstacles=[ground], gravity=(0, 0, 0)),
        Scene([ball], obstacles=[Obstacle(Box((1, 1, 0), (2, 2, 0.1)), name="aside")]),
    ):
        Simulation(scene, Articulated(), 1e-4)  # a warning is an error in tests


def test_moments_and_rotations_that_are_impossible_are_refused_as_parameters_and_in_states():
    """As they are in scenes: negative moments, one above the other two together, quaternions of no length."""
    sim = Simulation(Scene([RigidBody("top", Sphere((0, 0, 0), 0.1))]), Articulated(), 1e-3)
    J = sim.parameter("inertia")
    for moments in (-J, J + torch.diag(torch.tensor([0.0, 0.0, 2.0 * J[0, 0, 0, 0]]))):
        with pytest.raises(ValueError, match="'inertia' must be moments of inertia, none negative or above the other"):
            sim.rollout(None, 1, inertia=moments)
    for name in ("joint_rotation", "body_rotation"):
        with pytest.raises(
            ValueError, match=rf"{name!r} must be a quaternion of a length above 0, got .* at index \[0, 0"
        ):
            sim.rollout(None, 1, **{name: torch.zeros(4)})
    with pytest.raises(
        ValueError, match=r"quaternion .* of Joint 'top' has the length 0 in world 0, .* \(0, 0, 0, 1\)"
    ):
        sim.state(q=torch.zeros(7))
    with pytest.raises(ValueError, match="'inertia' must be in"):
        sim.rollout(None, 1, inertia=float("nan") * J)
    sim.rollout(None, 1, inertia=2.0 * J, joint_rotation=torch.tensor([0.0, 0.0, 0.0, 3.0]))
