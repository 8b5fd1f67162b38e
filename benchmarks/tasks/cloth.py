"""An arm with two soft pads folds a cloth in half over a bar.

    python benchmarks/tasks/cloth.py [FILE] [--episodes N]
    python benchmarks/tasks/cloth.py [FILE] --play [--film FILM] [--usd USD]

FILE is the arm of `arm.py`; without a file, the small arm of `grasping.py` does it. The cloth, a felt, hangs between
the pads at the start. The hand closes, draws the cloth across the bar, lowers its upper edge on the other side, opens
and goes away. It starts from a plan (`grasping.py`) that opens the hand too early, so that the cloth hangs unevenly.
Unknown are offsets of the servos' targets at four times, with lines between them: 16 numbers. The loss is the distance
of the middle line of the cloth from the top of the bar after the last step. CMA-ES starts from the same plan.

``--play`` plays the best motion again: with all signals at zero, as planned, with a smaller tolerance, in steps of half
the length, and with smaller cells of cloth. Found motions are in cloth.npz.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "papers"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from arm import robot_of
from common import load, options, save, show, sized
from fast import FAST
from grasping import Arm, Hand, Plan, around, at, grasp_scene, painted
from softbody_gripper import learn

import warpbots as wb

STEP, TOLERANCE = 1e-2, 1e-4
"""Length of a step [s], and its tolerance [mean edges]."""
FRICTION, GRIP = 0.6, 1.0
"""Coulomb coefficient of everything [1], and force of a finger [N]."""
WIDTH, LENGTH, GRIPPED, THICKNESS = 0.10, 0.24, 0.012, 2e-3
"""Of the cloth, how much of its length is above the middle of the pads, and its thickness [m]."""
CELLS, FINE = 0.02, 0.0133
"""Size of the cells of the cloth [m]."""
MODULUS, DENSITY, BENDING = 5e4, 300.0, 2e-4
"""Of the cloth [Pa, kg/m^3, N m]."""
APART = 1e-3
"""Between the cloth and each pad at the start [m]."""
BAR, RADIUS = 0.17, 0.012
"""Height of the bar, which points away from the base, and its radius [m]."""
BEGIN, OVER, END = -0.35, 0.1, 0.28
"""Angles about the base where the motion starts, behind the bar, and where the hand opens; the bar is at 0 [rad]."""
HIGH, LOW = 0.29, 0.19
"""Height of the middle of the pads at the start, and where the hand opens [m]."""
KNOTS, FARTHEST = 4, 0.3
"""Times at which targets have offsets, and largest offset [rad]."""
SERVOS = slice(0, -2)
"""Channels of the arm; the last two close the fingers."""
FOUND = Path(__file__).with_suffix(".npz")
"""Where `search` adds what it finds."""


def cloth(place: np.ndarray, turn: float, cells: float) -> wb.SoftBody:
    """The cloth, whose width points away from the base; its region "middle" is the line along which it is folded.

    Args:
        place: The middle of the pads [m].
        turn: Angle of this place about the base [rad].
        cells: Size of the cells [m].
    """
    lower, upper = (-WIDTH / 2.0, GRIPPED - LENGTH), (WIDTH / 2.0, GRIPPED)
    flat = wb.shapes.Sheet.rectangle(lower, upper, THICKNESS, (round(WIDTH / cells), 2 * round(LENGTH / cells / 2.0)))
    out, up = flat.vertices[:, :1], flat.vertices[:, 1:2]
    vertices = out * [np.cos(turn), np.sin(turn), 0.0] + up * [0.0, 0.0, 1.0] + place
    sheet = wb.shapes.Sheet(vertices, flat.faces, THICKNESS, BENDING)
    felt = wb.Material(MODULUS, 0.3, DENSITY, damping=2e-3)
    height = place[2] + GRIPPED - LENGTH / 2.0
    middle = wb.shapes.Box((-1.0, -1.0, height - 1e-3), (1.0, 1.0, height + 1e-3))
    return wb.SoftBody("cloth", sheet, felt, {"middle": middle}, friction=FRICTION, color=(0.35, 0.62, 0.45))


def begun(robot: wb.Scene, hand: Hand) -> wb.Scene:
    """The robot with its hand around the cloth."""
    return around(robot, hand, at(hand, BEGIN, HIGH), THICKNESS, APART)


def cloth_scene(robot: wb.Scene, hand: Hand, cells: float = CELLS) -> wb.Scene:
    """The robot, the cloth between its pads, and the bar."""
    near, far = (hand.distance + side * (WIDTH / 2.0 + 0.02) for side in (-1, 1))
    shape = wb.shapes.Capsule((near, 0.0, BAR), (far, 0.0, BAR), RADIUS)
    return grasp_scene(
        painted(begun(robot, hand), hand), hand, [], friction=FRICTION, cells=8e-3,
        bodies=[cloth(at(hand, BEGIN, HIGH), BEGIN, cells)],
        obstacles=[wb.Obstacle(shape, "friction", FRICTION, "bar")],
    )  # fmt: skip


def planned(robot: wb.Scene, hand: Hand) -> torch.Tensor:
    """Signals of the plan, shape (steps, channels)."""
    plan = Plan(Arm(begun(robot, hand), hand), STEP)
    plan.wait(0.06, GRIP)
    plan.go(at(hand, OVER, HIGH), 0.35, GRIP)
    plan.go(at(hand, END, LOW), 0.3, GRIP)
    plan.wait(0.1, -2.0)
    plan.go(at(hand, END + 0.3, LOW), 0.15, 0.0)
    plan.wait(0.2, 0.0)
    return plan.control[: sized(None, 2)]


class Fold:
    """Episodes of the arm.

    Attributes:
        sim: The simulation.
        plan: Signals of the plan, shape (steps, channels).
        raw: The unknowns, shape (knots, servos): offsets are bounded by tanh.
        best: The unknowns of the episode with the least loss since the last `start`.
        losses: Loss of every episode since the last `start` [m].
    """

    def __init__(
        self, robot: wb.Scene, hand: Hand, halves: int = 1, cells: float = CELLS, tolerance: float = TOLERANCE
    ):
        """Build the simulation.

        Args:
            robot: The robot.
            hand: Its hand.
            halves: Divisor of the length of the steps.
            cells: Size of the cells of the cloth [m].
            tolerance: Of a step [mean edges].
        """
        scene, solver = cloth_scene(robot, hand, cells), wb.ProjectiveDynamics(cell_size=0.3, tolerance=tolerance)
        self.sim = wb.Simulation(scene, solver, STEP, halves, checkpoints=wb.Checkpoints.all())
        self.plan = planned(robot, hand)
        self.reach = torch.tensor([a.reach for a in scene.actuators[SERVOS]])
        self.start(0)

    def start(self, seed: int) -> None:
        """Start from the plan, for every seed."""
        self.raw = torch.zeros(KNOTS, len(self.reach), requires_grad=True)
        self.losses, self.best = [], self.raw.detach().clone()

    def controls(self) -> torch.Tensor:
        """Signals of all steps, shape (steps, channels)."""
        table = torch.cat([torch.zeros_like(self.raw[:1]), FARTHEST * torch.tanh(self.raw)]).T[None]
        offset = torch.nn.functional.interpolate(table, len(self.plan), mode="linear", align_corners=True)[0].T
        return torch.cat([self.plan[:, SERVOS] + offset / self.reach, self.plan[:, SERVOS.stop :]], dim=1)

    def distance(self, state: object) -> torch.Tensor:
        """Root mean square distance of the middle line from the top of the bar [m]."""
        line = state.position[0, self.sim.region("middle")]
        return (line[:, 1:] - torch.tensor([0.0, BAR + RADIUS + THICKNESS / 2.0])).square().sum(dim=1).mean().sqrt()

    def loss(self) -> torch.Tensor:
        """The distance at the end [m]."""
        control = self.controls()
        loss = self.distance(self.sim.rollout(control, len(control)).final)
        self.losses.append(float(loss.detach()))
        if self.losses[-1] == min(self.losses):
            self.best = self.raw.detach().clone()
        return loss

    def played(self, raw: np.ndarray | None = None) -> wb.Trajectory:
        """The motion of an episode; with all signals at zero without unknowns."""
        with torch.no_grad():
            if raw is None:
                control = torch.zeros_like(self.plan)
            else:
                self.raw = torch.as_tensor(raw, dtype=torch.get_default_dtype())
                control = self.controls()
            return self.sim.rollout(control, len(control))

    def ending(self, motion: wb.Trajectory) -> str:
        """How the cloth hangs at the end, in words."""
        own = torch.as_tensor(self.sim.model.mesh.body == [b.name for b in self.sim.scene.bodies].index("cloth"))
        x, v = (getattr(motion.final, n)[0, own].double().numpy() for n in ("position", "velocity"))
        mass = (self.sim.model.matter.volume * self.sim.model.matter.density)[own.numpy()]
        sides = [1e2 * float(mass[side].sum() / mass.sum()) for side in (x[:, 1] < 0.0, x[:, 1] > 0.0)]
        speed = np.sqrt((mass * (v**2).sum(axis=1)).sum() / mass.sum())
        return (
            f"{1e3 * float(self.distance(motion.final)):.1f} mm from the bar; {sides[0]:.0f} % of the cloth before and "
            f"{sides[1]:.0f} % behind it, lowest {1e3 * x[:, 2].min():.0f} mm above the floor, {1e3 * speed:.0f} mm/s"
        )


def search(robot: wb.Scene, hand: Hand, episodes: int, methods: list[str]) -> None:
    """Learn with several methods, and add what was found to cloth.npz."""
    fold = Fold(robot, hand)
    for method in methods:
        curve = learn(fold, method, 0, episodes)["curve"][:episodes]
        before = {} if FAST or not FOUND.is_file() else load(__file__)
        save(__file__, **before | {method: fold.best.numpy(), f"{method} losses": np.array(curve)})


def play(asked: argparse.Namespace, robot: wb.Scene, hand: Hand) -> None:
    """Play the best motion again in several ways, print how it ends, and write its film."""
    known = load(__file__)
    best = min((key for key in known if f"{key} losses" in known), key=lambda key: known[f"{key} losses"].min())
    raw, fold = known[best], Fold(robot, hand)
    found = fold.played(raw)
    cases = {
        f"as found ({best})": (fold, found),
        "all signals at zero": (fold, fold.played()),
        "as planned": (fold, fold.played(np.zeros_like(raw))),
    }
    for how, other in (
        ("a tenth of the tolerance", {"tolerance": TOLERANCE / 10.0}), ("half the step", {"halves": 2}),
        ("cells of two thirds of the size", {"cells": FINE})
    )[: sized(None, 0)]:  # fmt: skip
        own = Fold(robot, hand, **other)
        cases[how] = own, own.played(raw)
    for how, (own, motion) in cases.items():
        print(f"{how}: {own.ending(motion)}", flush=True)
    show(asked, found, cases["as planned"][1], found, frames=4)


def main() -> None:
    """Run the command line."""
    parser = options(__doc__)
    parser.add_argument("robot", type=Path, nargs="?", metavar="FILE", help="URDF or MJCF of the arm")
    parser.add_argument("--episodes", type=int, default=sized(10, 1), help="of each method (%(default)s)")
    parser.add_argument("--methods", nargs="*", default=["gradient", "CMA-ES"])
    asked = parser.parse_args()
    robot, hand = robot_of(asked.robot)
    if asked.play:
        play(asked, robot, hand)
    else:
        search(robot, hand, asked.episodes, asked.methods)


if __name__ == "__main__":
    main()
