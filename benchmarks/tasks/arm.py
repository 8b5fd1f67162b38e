"""A robot arm with two soft pads picks up a rigid and a soft cube, and holds what Coulomb's law allows.

    python benchmarks/tasks/arm.py [FILE] [--usd USD] [--film FILM ...] [--loads]

FILE is the Panda of Franka Robotics, as MJCF or URDF, unchanged: franka_emika_panda/panda.xml of MuJoCo Menagerie
(https://github.com/google-deepmind/mujoco_menagerie) or franka_panda/panda.urdf of bullet3. Other arms with two fingers
on slides need a `Hand` in `grasping.py`. Without a file, the small arm of this module picks up the cubes. The pads are
bound to the fingers, a motor closes each finger with a given force, and the arm has the servos of its file, or the
servos of `warpbots.robots.hold_pose`. The coordinates of the joints on the way of the hand, and the torques that carry
the weight of the arm, come from gradients of readings.

The arm reaches for the rigid cube, grips it, lifts and holds it, puts it down, and does the same with the soft one.
``--usd`` writes the motion as USD, and ``--film`` as GIF, MP4 or (as a strip of pictures) PNG. ``--loads`` holds the
rigid cube with forces N for which its weight is 0.5, 0.9, 1.3 and 2 times 2 mu N, and prints its acceleration beside
that of the closed form, 0 or 2 mu N / m - g; then the same with steps of half the length, with other meshes of the
pads, and with another coefficient.
"""

import argparse
import dataclasses
import sys
import warnings
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fast import sized
from grasping import HANDS, Arm, Cube, Hand, Plan, around, grasp_scene, painted, small_arm, store

import warpbots as wb

STEP = 5e-3
LOADS = 0.5, 0.9, 1.3, 2.0
"""Weight of the rigid cube divided by 2 mu N."""
G = 9.81


def cubes(hand: Hand) -> tuple[Cube, Cube]:
    """The rigid and the soft cube, in front of the robot."""
    rigid = Cube("aluminium", (hand.distance, 16.0), density=2700.0, color=(0.62, 0.66, 0.72))
    return rigid, Cube("foam", (hand.distance, -16.0), density=300.0, modulus=6e4, color=(0.35, 0.62, 0.45))


def robot_of(path: Path | None) -> tuple[wb.Scene, Hand]:
    """The robot in a file, in its home pose and with servos, and its hand; without a file, the small arm."""
    if path is None:
        return small_arm()
    with warnings.catch_warnings(action="ignore", category=wb.FileWarning):
        home = "home" if path.suffix == ".xml" else None
        robot = wb.robots.load(path, keyframe=home, ignore_loops=True, contact_points=0)
    names = {body.name for body in robot.rigid}
    hand = next((h for h in HANDS if {h.link, *h.fingers} <= names), None)
    if hand is None:
        raise SystemExit(f"{path} has none of the hands in grasping.py: {', '.join(h.link for h in HANDS)}")
    if home is None:
        pose = zip((f"panda_joint{k}" for k in range(1, 8)), (0.0, 0.0, 0.0, -1.57, 0.0, 1.57, -0.7853), strict=True)
        robot = wb.robots.hold_pose(robot, dict(pose) | dict.fromkeys(hand.slides, 0.04))
        servos = [a for a in robot.actuators if a.joint not in hand.slides]
        robot = dataclasses.replace(robot, actuators=servos)
    return robot, hand


def simulation(scene: wb.Scene, dt: float = STEP, worlds: int = 1) -> wb.Simulation:
    """Steps of one length; pads and soft cubes are meshes already, so the cell size is that of the rigid surfaces."""
    solver = wb.ProjectiveDynamics(cell_size=0.3)
    return wb.Simulation(scene, solver, dt, substeps=1, worlds=worlds, checkpoints=wb.Checkpoints.all())


def accelerations(robot: wb.Scene, hand: Hand, *, dt: float, cells: float, friction: float) -> np.ndarray:
    """Upward acceleration of the rigid cube at each of `LOADS`, after it has been lifted firmly [m/s^2]."""
    rigid, _ = cubes(hand)
    begun = around(robot, hand, rigid.center, rigid.side)
    scene = grasp_scene(begun, hand, [rigid], friction=friction, cells=cells)
    grips = rigid.mass * G / (2.0 * friction * np.array(LOADS))
    plan = Plan(Arm(begun, hand), dt)
    plan.wait(sized(0.1, 0.01), grips[0])
    plan.go(rigid.center + [0.0, 0.0, 0.04], sized(0.25, 0.01), grips[0])
    plan.wait(sized(0.3, 0.01), grips[0])
    held = simulation(scene, dt).rollout(plan.control, len(plan)).final
    sim = simulation(scene, dt, len(LOADS))
    state = sim.state(**{n: t.expand(len(LOADS), *t.shape[1:]) for n, t in vars(held).items()})
    control = plan.control[-1:].repeat(len(LOADS), 1)
    control[:, -2:] = -torch.as_tensor(grips)[:, None] / plan.force
    body, speeds = sim.model.robot.body(rigid.name), []
    for _ in range(round(0.08 / dt)):
        state = sim.step(state, control)
        speeds.append(sim.sense(state).velocity[:, body, 2].numpy())
    first = round(0.04 / dt)  # until then the pads expand to their shape under the new force
    return (speeds[-1] - speeds[first - 1]) / (dt * (len(speeds) - first))


def print_loads(robot: wb.Scene, hand: Hand) -> None:
    """Print the accelerations for several steps, meshes and coefficients."""
    print("| step [ms] | cells of the pads [mm] | mu | " + " | ".join(f"{x:g} of 2 mu N" for x in LOADS) + " |")
    print("|---|---|---|" + "---|" * len(LOADS))
    print("| closed form | | | " + " | ".join(f"{min(0.0, G * (1.0 / x - 1.0)):.3f}" for x in LOADS) + " |")
    usual = {"dt": STEP, "cells": 4e-3, "friction": 0.6}
    for other in ({}, {"dt": STEP / 2.0}, {"cells": 2.8e-3}, {"friction": 0.3})[: sized(4, 1)]:
        case = usual | other
        found = accelerations(robot, hand, **case)
        row = f"{1e3 * case['dt']:g}", f"{1e3 * case['cells']:g}", f"{case['friction']:g}"
        print("| " + " | ".join([*row, *(f"{a:.3f}" for a in found)]) + " |", flush=True)


def pick_both(robot: wb.Scene, hand: Hand, dt: float = 1e-2, cells: float = 8e-3) -> wb.Trajectory:
    """The motion in which both cubes are picked up in turn, with few cells; prints how high they were."""
    friction, picked = 0.6, cubes(hand)
    scene = grasp_scene(painted(robot, hand), hand, picked, friction=friction, cells=cells)
    plan = Plan(Arm(robot, hand), dt)
    for cube in picked:
        grip = max(cube.mass * G / (2.0 * friction * LOADS[0]), 1.0)
        plan.pick(cube, grip, pace=0.6)
    sim = simulation(scene, dt)
    own = torch.as_tensor(sim.model.mesh.body == [b.name for b in scene.bodies].index(picked[1].name))

    def heights(state: object) -> torch.Tensor:
        rigid = sim.sense(state).center[:, sim.model.robot.body(picked[0].name), 2]
        return torch.stack([rigid, state.position[:, own, 2].mean(dim=1).to(rigid)], dim=1)

    control = plan.control[: sized(None, 10)]
    with torch.no_grad():
        motion = sim.rollout(control, len(control), observe=heights)
    for k, cube in enumerate(picked):
        height = motion.observation[0, min(plan.marks[f"{cube.name} held"], len(control)) - 1, k]
        print(f"{cube.name}: {cube.mass:.3f} kg, held {1e3 * (float(height) - cube.center[2]):.1f} mm above its place")
    return motion


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robot", type=Path, nargs="?", metavar="FILE", help="URDF or MJCF of the arm")
    parser.add_argument("--usd", type=Path, help="where to write the motion as USD")
    parser.add_argument("--film", type=Path, nargs="+", help="where to write films: .gif, .mp4, or .png for a strip")
    parser.add_argument("--loads", action="store_true", help="hold the rigid cube with less and less force")
    asked = parser.parse_args()
    robot, hand = robot_of(asked.robot)
    if asked.loads:
        print_loads(robot, hand)
        return
    motion = pick_both(robot, hand)
    store(motion, asked.film, asked.usd)


if __name__ == "__main__":
    main()
