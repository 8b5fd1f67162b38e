"""An arm with two soft pads puts a soft ball into a cup.

    python benchmarks/tasks/ball.py [FILE] [--film FILM ...] [--usd USD] [--half] [--fine] [--zero] [--weights]

FILE is the Panda of Franka Robotics, as for `arm.py`; without a file, the small arm of `grasping.py` does it. The ball
is between the pads at the start. The hand closes, moves over the cup, which stands loose on the floor, and opens.
Coordinates of the joints and the torques that carry the arm come from gradients of readings (`grasping.py`).

``--half`` takes steps of half the length, and ``--fine`` takes a ball of four times as many faces. ``--zero`` leaves
all signals at zero. ``--weights`` holds balls of several densities in the air, and prints their acceleration beside the
closed form, 0 or 2 mu N / m - g.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from arm import robot_of, simulation
from fast import sized
from grasping import GAP, Arm, Hand, Plan, around, at, grasp_scene, held_loads, painted, store
from mug import mug

import warpbots as wb

STEP = 1e-2
FRICTION, GRIP = 0.6, 1.0
"""Coulomb coefficient of everything [1], and force of a finger [N]."""
RADIUS, MODULUS, DENSITY = 0.02, 1e5, 300.0
"""Of the ball [m, Pa, kg/m^3]."""
CUP, WALL, RIM = 0.045, 5e-3, 0.07
"""Radius of the cup, thickness of its wall, and height of its rim [m]."""
BEGIN, END = 0.24, -0.16
"""Angles about the base where the motion starts, and of the cup [rad]."""
HIGH = 0.17
"""Height of the ball at the start [m]."""
ABOVE = 0.03
"""Height of the ball above the rim where the hand opens [m]."""


def ball(place: np.ndarray, density: float = DENSITY, fine: int = 1) -> wb.SoftBody:
    """A soft ball: an icosahedron whose edges are halved `fine` times, with faces joined to the centre."""
    import trimesh

    sphere = trimesh.creation.icosphere(fine, RADIUS)
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))  # no edge lies in a plane of symmetry
    vertices = np.concatenate([sphere.vertices, np.zeros((1, 3))]) @ turn + place
    tets = np.column_stack([sphere.faces, np.full(len(sphere.faces), len(sphere.vertices))])
    foam = wb.Material(MODULUS, 0.3, density, damping=2e-3)
    all_of_it = {"thing": wb.shapes.Box((-9.0,) * 3, (9.0,) * 3)}
    mesh = wb.shapes.TetMesh.oriented(vertices, tets)
    return wb.SoftBody("ball", mesh, foam, all_of_it, friction=FRICTION, color=(0.35, 0.62, 0.45))


def put(robot: wb.Scene, hand: Hand, dt: float = STEP, fine: int = 1) -> tuple[wb.Simulation, Plan]:
    """The simulation, and the plan of the motion."""
    start, goal = at(hand, BEGIN, HIGH), at(hand, END, 0.0)
    cup = wb.RigidBody(
        "cup", mug(CUP, RIM, WALL, sectors=12, rings=2), 2400.0, position=goal + [0.0, 0.0, GAP],
        color=(0.45, 0.62, 0.85), friction=FRICTION,
    )  # fmt: skip
    begun = around(robot, hand, start, 2.0 * RADIUS)
    bodies = [ball(start, fine=fine), cup]
    scene = grasp_scene(painted(begun, hand), hand, [], friction=FRICTION, cells=8e-3, bodies=bodies)
    plan = Plan(Arm(begun, hand), dt)
    over = goal + [0.0, 0.0, RIM + RADIUS + ABOVE]
    plan.wait(0.15, GRIP)
    plan.go(over, 0.8, GRIP)
    plan.wait(0.15, GRIP)
    plan.mark("over the cup")
    plan.wait(0.25, -2.0)
    plan.go(over + [0.0, 0.0, 0.06], 0.3, 0.0)
    plan.wait(0.3, 0.0)
    return simulation(scene, dt), plan


def drop(robot: wb.Scene, hand: Hand, dt: float, fine: int, share: float) -> wb.Trajectory:
    """The motion with a share of the signals; prints where the ball is at the end."""
    sim, plan = put(robot, hand, dt, fine)
    control = share * plan.control[: sized(None, 5)]
    with torch.no_grad():
        motion = sim.rollout(control, len(control), observe=lambda x: sim.center_of_mass(x, "thing"))
    moved = motion.observation[0].double().numpy()
    cup = sim.sense(motion.final).center[0, sim.model.robot.body("cup")].double().numpy()
    held = moved[min(plan.marks["over the cup"], len(moved)) - 1]
    aside, speed = np.linalg.norm((moved[-1] - cup)[:2]), np.linalg.norm(moved[-1] - moved[-2]) / dt
    inside = aside < CUP - WALL and moved[-1, 2] < RIM
    print(
        f"step {1e3 * dt:g} ms, ball of {int((sim.model.mesh.body == len(sim.scene.bodies) - 2).sum())} nodes: held "
        f"{1e3 * (held[2] - RIM):.0f} mm above the rim; at the end {1e3 * aside:.1f} mm from the axis of the cup, "
        f"centre {1e3 * moved[-1, 2]:.1f} mm above the floor, {1e3 * speed:.1f} mm/s, "
        f"{'in the cup' if inside else 'missed'}; "
        f"the cup moved by {1e3 * np.linalg.norm(cup[:2] - at(hand, END, 0.0)[:2]):.2f} mm",
        flush=True,
    )
    return motion


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robot", type=Path, nargs="?", metavar="FILE", help="URDF or MJCF of the arm")
    parser.add_argument("--film", type=Path, nargs="+", help="where to write films: .gif, .mp4, or .png for a strip")
    parser.add_argument("--usd", type=Path, help="where to write the motion as USD")
    parser.add_argument("--half", action="store_true", help="steps of half the length")
    parser.add_argument("--fine", action="store_true", help="a ball of four times as many faces")
    parser.add_argument("--zero", action="store_true", help="all signals at zero")
    parser.add_argument("--weights", action="store_true", help="hold balls of several densities")
    asked = parser.parse_args()
    robot, hand = robot_of(asked.robot)
    if asked.weights:
        place = at(hand, 0.0, HIGH)
        begun = around(robot, hand, place, 2.0 * RADIUS)
        body = ball(place)
        held_loads(begun, hand, lambda rho: ball(place, rho), body.shape.volumes.sum(), FRICTION, GRIP)
        return
    motion = drop(robot, hand, STEP / (1 + asked.half), 1 + asked.fine, 1.0 - asked.zero)
    store(motion, asked.film, asked.usd)


if __name__ == "__main__":
    main()
