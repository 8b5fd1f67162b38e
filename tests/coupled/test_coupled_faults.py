"""Bad inputs and impossible motions of matter and rigid bodies together: a sentence for each, nothing silent."""

import dataclasses

import numpy as np
import pytest
import torch

import warpbots as wb
from warpbots.numerics import precision

S = wb.shapes
JELLY = wb.SoftBody("jelly", S.Box((0, 0, 0), (0.06, 0.06, 0.04)), wb.Material(2e4, 0.3, 1000.0))
FLOOR = wb.floor(0.0)
ROOM = {"domain": ((-0.04, -0.04, -0.04), (0.1, 0.1, 0.1))}
STILL = torch.zeros(1, 0)


def ball(z: float = 0.08, radius: float = 0.02, **options) -> wb.RigidBody:
    return wb.RigidBody("ball", S.Sphere((0, 0, 0), radius), position=(0.03, 0.03, z), **options)


def simulation(bodies, dt: float = 1e-3, dx: float = 0.01, matter=wb.MPM, **parts) -> wb.Simulation:
    return wb.Simulation(
        wb.Scene([JELLY, *bodies], **{"obstacles": [FLOOR], **ROOM, **parts}), wb.Coupled(matter(dx)), dt
    )


def test_a_body_that_moves_more_than_a_cell_in_a_step_stops():
    fall = wb.Joint("fall", "prismatic", None, "ball", axis=(0, 0, -1), start_velocity=(30.0,))
    with pytest.raises(wb.SimulationError, match=r"RigidBody 'ball' in world 0 moves up to 0\.0\d+ m in a step of .* s, "
                       r"more than a cell of 0\.01 m, .*: use more substeps"):  # fmt: skip
        simulation([ball()], joints=[fall]).rollout(None, 2)


@pytest.mark.filterwarnings("ignore:MassSpring. springs make matter")
def test_masses_stop_a_run_in_the_words_of_masses():
    """A mass half a spacing inside a body, and a body that moves more than a spacing; without them a lattice would pass."""
    fall = wb.Joint("fall", "prismatic", None, "ball", axis=(0, 0, -1), start_velocity=(100.0,))
    with pytest.raises(wb.SimulationError, match=r"more than a spacing of 0\.01 m, so that it could pass"):
        simulation([ball()], joints=[fall], matter=wb.MassSpring).rollout(None, 2)
    with pytest.warns(
        UserWarning,
        match=r"less than 1\.4 times the spacing of 0\.03 m: it passes between .*use MassSpring\(spacing=\.\.\.\) of at",
    ):
        simulation([ball(radius=0.01)], dx=0.03, matter=wb.MassSpring)


def test_a_fast_body_away_from_the_grid_goes_on_and_so_does_a_ball_that_spins():
    away = wb.Joint("away", "free", None, "ball", start_velocity=(0, 0, 30.0, 0, 0, 2000.0))
    sim = simulation([ball(z=5.0)], joints=[away])
    assert sim.rollout(None, 3).final.q[0, 2].item() == pytest.approx(0.09, rel=1e-3)
    spin = wb.Joint("spin", "revolute", None, "ball", position=(0.03, 0.03, 0.09), axis=(0, 0, 1),
                    start_velocity=(2000.0,))  # fmt: skip
    assert simulation([ball(z=0.09)], joints=[spin]).rollout(None, 3).final.qd.item() == pytest.approx(2000.0)


def test_matter_that_is_squeezed_between_two_rigid_bodies_stops_with_their_names():
    """In the step in which a particle is half a cell deep, and not after it has passed through a plate."""
    plate = S.Box((-0.05, -0.05, -0.02), (0.05, 0.05, 0.02))
    lower = wb.RigidBody("lower", plate, position=(0.03, 0.03, -0.02))
    upper = wb.RigidBody("upper", plate, 1e6, position=(0.03, 0.03, 0.06))
    joints = [wb.Joint("fix", "fixed", None, "lower"),
              wb.Joint("press", "prismatic", None, "upper", axis=(0, 0, -1), start_velocity=(2.0,))]  # fmt: skip
    with pytest.raises(wb.SimulationError, match=r"particle \d+ of 'jelly' in world 0, at \[.*\] m, is 0\.00\d+ m inside "
                       r"RigidBody '(lower|upper)', .* squeezed between RigidBody 'lower' and RigidBody 'upper'.* use a "
                       r"smaller MPM"):  # fmt: skip
        simulation([lower, upper], joints=joints, obstacles=[]).rollout(None, 40)


def test_obstacles_that_meet_at_a_rigid_body_stop_in_the_same_step_as_without_matter():
    times = np.array([0.0, 0.15])
    press = wb.Obstacle(S.Box((0.12, 0.12, 0.10), (0.24, 0.24, 0.2)), name="press", friction=0.0,
                        motion=wb.PrescribedMotion(times, [[0, 0, 0], [0, 0, -0.15]]))  # fmt: skip
    block = wb.RigidBody("block", S.Box((-0.02,) * 3, (0.02,) * 3), position=(0.18, 0.18, 0.02), points=26)
    laws = [wb.Contact("block", name, 1e8, 1e9) for name in ("floor", "press")]
    failures, bdf1 = [], wb.Articulated("bdf1")
    for bodies, solver, more in ([block], bdf1, {}), ([JELLY, block], wb.Coupled(wb.MPM(0.01), bdf1), ROOM):
        scene = wb.Scene(bodies, obstacles=[wb.floor(friction=0.0), press], contacts=laws, **more)
        with pytest.raises(wb.SimulationError, match=r"RigidBody 'block' in world 0, at \[0\.18, .*\] m, is between the "
                           r"obstacles '(floor|press)' and '(floor|press)': they have met") as failure:  # fmt: skip
            wb.Simulation(scene, solver, 2e-3, 2).rollout(None, 75)
        failures.append(failure.value.place.step)
    assert failures[0] == failures[1]


def test_a_body_that_starts_in_matter_is_refused_at_its_start_coordinates():
    """MPM binds no particles to rigid bodies; springs and projective dynamics do."""
    for around in ball(z=0.03), ball(z=0.02, radius=1e-3):
        with pytest.raises(wb.SceneError, match=r"RigidBody 'ball': it reaches into SoftBody 'jelly' at the start, "
                           r"around \[0\.03, 0\.03, 0\.0[23]\] m, deeper than bodies in contact \(0\.0025 m, .*; move "
                           r"them apart or use ProjectiveDynamics or Coupled\(MassSpring"):  # fmt: skip
            simulation([around])
    lift = wb.Joint("lift", "prismatic", None, "ball", axis=(0, 0, 1), start=(0.05,))
    assert simulation([ball(z=0.03)], joints=[lift]).state().q.item() == pytest.approx(0.05)
    low = dataclasses.replace(lift, start=(-0.05,))
    with pytest.raises(wb.SceneError, match="RigidBody 'ball': it reaches into SoftBody 'jelly'"):
        simulation([ball(z=0.08)], joints=[low])


def test_a_body_thinner_than_a_cell_gets_a_warning_with_the_cell_that_would_do():
    plate = wb.RigidBody("plate", S.Box((0, 0, 0), (0.05, 0.05, 0.004)), position=(0, 0, 0.06))
    rod = wb.RigidBody("rod", S.Capsule((0, 0, 0), (0.05, 0, 0), 0.003), position=(0, 0, 0.06))
    with pytest.warns(UserWarning, match=r"RigidBody 'plate' is 0\.004 m thick, less than a cell of 0\.01 m: matter on "
                      r"its two sides sticks .*; use MPM\(dx=\.\.\.\) of at most 0\.004 m"):  # fmt: skip
        simulation([plate])
    with pytest.warns(UserWarning, match=r"'plate' is 0\.004 m thick.* \(1 more bodies likewise\)"):
        simulation([plate, rod])
    with pytest.warns(UserWarning, match="'rod' is 0.006 m thick, .* sinks into matter like a wire"):
        simulation([rod])
    simulation([dataclasses.replace(rod, shape=S.Capsule((0, 0, 0), (0.05, 0, 0), 0.005))])


@pytest.mark.skipif(precision != "float32", reason="positions in float64 are fine enough")
def test_matter_far_from_the_origin_is_refused_in_single_precision():
    far = dataclasses.replace(JELLY, shape=S.Box((3e4, 0, 0), (3e4 + 0.06, 0.06, 0.04)))
    scene = wb.Scene([far, ball()], domain=((3e4 - 0.04, -0.04, -0.04), (3e4 + 0.1, 0.1, 0.1)))
    with pytest.raises(ValueError, match=r"matter is 30000\.1 m from the origin.* set WARPBOTS_PRECISION=float64"):
        wb.Simulation(scene, wb.Coupled(wb.MPM(0.01)), 1e-3).state()


CLOTH = wb.SoftBody("cloth", S.Sheet([(0, 0, 0.07), (0.05, 0, 0.07), (0, 0.05, 0.07)], [(0, 1, 2)], 1e-3),
                    wb.Material(1e5))  # fmt: skip
OTHER = dataclasses.replace(JELLY, name="other", shape=S.Box((0.07, 0, 0), (0.09, 0.02, 0.02)))
ROLLING = ball(points=20)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: simulation([ROLLING], contacts=[wb.Contact("ball", "floor", 1e6, 1e6, restitution=0.5,
                                                               impact="instant")]),
            "Contact 'ball on floor': instant impacts divide a step, which Coupled cannot; use impact='compliant'",
        ),
        (
            lambda: simulation([ROLLING], contacts=[wb.Contact("ball", "jelly", 1e6)]),
            "Contact 'ball on jelly': matter and rigid bodies touch without a law under Coupled; leave it out "
            r"\(the friction is the mean of SoftBody.friction and RigidBody.friction\) or use ProjectiveDynamics",
        ),
        (
            lambda: simulation([ball()], contacts=[wb.Contact("jelly", "floor", 1e6)]),
            "Contact 'jelly on floor': matter and obstacles touch without a law under Coupled; leave it out "
            r"\(the friction is Obstacle.friction\) or use ProjectiveDynamics$",
        ),
        (
            lambda: simulation([ball(), OTHER], contacts=[wb.Contact("other", "jelly", 1e6)]),
            "Contact 'other on jelly': matter and other matter touch without a law under Coupled; leave it out "
            r"\(soft bodies stick together where they meet in a cell\) or use ProjectiveDynamics$",
        ),
        (
            lambda: simulation([ball(), OTHER], matter=wb.MassSpring, contacts=[wb.Contact("other", "jelly", 1e6)]),
            r"leave it out \(soft bodies touch under MassSpring\(collision=\.\.\.\), without friction\) or use Proj",
        ),
        (
            lambda: wb.Simulation(wb.Scene([ball()]), wb.Coupled(wb.MPM(0.02)), 1e-3),
            "Coupled simulates matter by MPM beside rigid bodies and takes no scenes without soft bodies: use ProjectiveDyn",
        ),
        (lambda: simulation([ball(), CLOTH]), "Coupled .* takes no sheets: use ProjectiveDynamics"),
        (
            lambda: wb.Scene([wb.SoftBody("flat", S.Box((0, 0), (0.1, 0.1)), wb.Material(1e4)), ball()]),
            "RigidBody 'ball' is 3D in a 2D scene; give it a 2D shape, such as Sphere\\(\\(0, 0\\), 0.1\\), which is a disc",
        ),
        (lambda: simulation([wb.RigidBody("dot", None)]), "'dot', which has no mass and carries none; give it a shape"),
    ],
)  # fmt: skip
def test_a_scene_that_coupled_does_not_take_is_refused(make, said):
    with pytest.raises(wb.SceneError, match=said):
        make()


def test_a_body_beside_matter_that_falls_through_the_floor_gets_a_warning_and_one_above_matter_none():
    simulation([ball()])
    with pytest.warns(UserWarning, match=r"RigidBody 'ball' falls through Obstacle 'floor', .* contacts=\[wb\.Contact"):
        simulation([dataclasses.replace(ball(), position=(-0.05, 0.03, 0.08))])
    above = dataclasses.replace(ball(), name="above", position=(0.03, 0.03, 0.2))
    with pytest.warns(UserWarning, match="'above' falls through RigidBody 'ball', because no Contact names both"):
        simulation([ball(), above])


def test_a_robot_leaves_the_grid_and_comes_back():
    """There is no matter outside: a ball thrown up flies as it would alone, and rests on the matter afterwards."""
    up = wb.Joint("up", "prismatic", None, "ball", axis=(0, 0, 1), start_velocity=(0.7,))
    sim = simulation([ball()], 5e-3, joints=[up])
    states = [sim.state()]
    for _ in range(40):
        states.append(sim.step(states[-1], STILL))
    heights = [state.q.item() for state in states]
    assert max(heights) == pytest.approx(0.7**2 / 2 / 9.81, rel=0.05)
    assert max(heights) > 0.02  # beyond the grid, which ends 0.02 above the centre of the ball
    assert -0.03 < heights[-1] < -0.01
