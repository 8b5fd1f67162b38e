"""An arm with two soft pads folds a cloth over a bar.

    python benchmarks/tasks/cloth.py [FILE] [--film FILM ...] [--usd USD] [--half] [--fine] [--rest]

FILE is the arm of `arm.py`; without a file, the small arm of `grasping.py` does it. The cloth hangs between the pads at
the start. The hand closes, draws the cloth across the bar, lowers its upper edge on the other side, opens and goes
away. Coordinates of the joints and the torques that carry the arm come from gradients of readings (`grasping.py`).

``--half`` takes steps of half the length, and ``--fine`` smaller cells of cloth. With ``--rest`` all signals are zero.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from arm import robot_of, simulation
from fast import sized
from grasping import Arm, Hand, Plan, around, at, grasp_scene, painted, store

import warpbots as wb

STEP = 1e-2
FRICTION, GRIP = 0.6, 1.0
"""Coulomb coefficient of everything [1], and force of a finger [N]."""
WIDTH, LENGTH, GRIPPED, THICKNESS = 0.10, 0.24, 0.012, 1e-3
"""Of the cloth, how much of its length is above the middle of the pads, and its thickness [m]."""
CELLS, FINE = 0.0125, 0.00833
"""Size of the cells of the cloth [m]."""
MODULUS, DENSITY, BENDING = 2e5, 300.0, 2e-5
"""Of the cloth [Pa, kg/m^3, N m]."""
APART = 1e-3
"""Between the cloth and each pad at the start [m]."""
BAR, RADIUS = 0.17, 0.012
"""Height of the bar, which points away from the base, and its radius [m]."""
BEGIN, END = -0.35, 0.42
"""Angles about the base where the motion starts and where the hand opens; the bar is at 0 [rad]."""
HIGH, LOW = 0.29, 0.14
"""Height of the middle of the pads at the start, and where the hand opens [m]."""


def cloth(place: np.ndarray, turn: float, cells: float) -> wb.SoftBody:
    """The cloth, whose width points away from the base.

    Args:
        place: The middle of the pads [m].
        turn: Angle of this place about the base [rad].
        cells: Size of the cells [m].
    """
    lower, upper = (-WIDTH / 2.0, GRIPPED - LENGTH), (WIDTH / 2.0, GRIPPED)
    flat = wb.shapes.Sheet.rectangle(lower, upper, THICKNESS, (round(WIDTH / cells), round(LENGTH / cells)))
    out, up = flat.vertices[:, :1], flat.vertices[:, 1:2]
    vertices = out * [np.cos(turn), np.sin(turn), 0.0] + up * [0.0, 0.0, 1.0] + place
    sheet = wb.shapes.Sheet(vertices, flat.faces, THICKNESS, BENDING)
    cotton = wb.Material(MODULUS, 0.3, DENSITY, damping=2e-3)
    return wb.SoftBody("cloth", sheet, cotton, friction=FRICTION, color=(0.35, 0.62, 0.45))


def fold(robot: wb.Scene, hand: Hand, dt: float = STEP, cells: float = CELLS) -> tuple[wb.Simulation, Plan]:
    """The simulation, and the plan of the motion."""
    start = at(hand, BEGIN, HIGH)
    begun = around(robot, hand, start, THICKNESS, APART)
    near, far = (hand.distance + side * (WIDTH / 2.0 + 0.02) for side in (-1, 1))
    shape = wb.shapes.Capsule((near, 0.0, BAR), (far, 0.0, BAR), RADIUS)
    bar = wb.Obstacle(shape, "friction", FRICTION, "bar")
    scene = grasp_scene(
        painted(begun, hand), hand, [], friction=FRICTION, cells=8e-3, bodies=[cloth(start, BEGIN, cells)],
        obstacles=[bar],
    )  # fmt: skip
    plan = Plan(Arm(begun, hand), dt)
    plan.wait(0.1, GRIP)
    plan.go(at(hand, 0.15, HIGH), 0.5, GRIP)
    plan.go(at(hand, END, LOW), 0.5, GRIP)
    plan.wait(0.1, GRIP)
    plan.mark("over the bar")
    plan.wait(0.2, -2.0)
    plan.go(at(hand, END + 0.25, LOW), 0.3, 0.0)
    plan.wait(0.3, 0.0)
    return simulation(scene, dt), plan


def draw(robot: wb.Scene, hand: Hand, dt: float, cells: float, rest: bool) -> wb.Trajectory:
    """The motion; prints how the cloth hangs at the end."""
    sim, plan = fold(robot, hand, dt, cells)
    control = plan.control[: sized(None, 3)] * (not rest)
    with torch.no_grad():
        motion = sim.rollout(control, len(control))
    own = sim.model.mesh.body == [b.name for b in sim.scene.bodies].index("cloth")
    x, v = (getattr(motion.final, n)[0, torch.as_tensor(own)].double().numpy() for n in ("position", "velocity"))
    mass = (sim.model.matter.volume * sim.model.matter.density)[own]
    sides = [float(mass[side].sum() / mass.sum()) for side in (x[:, 1] < -RADIUS, x[:, 1] > RADIUS)]
    speed = np.sqrt((mass * (v**2).sum(axis=1)).sum() / mass.sum())
    print(
        f"step {1e3 * dt:g} ms, {int(own.sum())} nodes of cloth of {1e3 * mass.sum():.1f} g: {1e2 * sides[0]:.0f} % "
        f"before and {1e2 * sides[1]:.0f} % behind the bar, highest {1e3 * x[:, 2].max():.1f} mm, lowest "
        f"{1e3 * x[:, 2].min():.1f} mm above the floor, {1e3 * speed:.0f} mm/s, "
        f"{'hangs' if x[:, 2].max() > BAR and min(sides) > 0.2 else 'fell'}",
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
    parser.add_argument("--fine", action="store_true", help="smaller cells of cloth")
    parser.add_argument("--rest", action="store_true", help="with all signals at zero")
    asked = parser.parse_args()
    robot, hand = robot_of(asked.robot)
    motion = draw(robot, hand, STEP / (1 + asked.half), FINE if asked.fine else CELLS, asked.rest)
    store(motion, asked.film, asked.usd)


if __name__ == "__main__":
    main()
