"""An arm with two soft pads folds a cloth in half over a bar.

    python benchmarks/tasks/cloth.py [FILE] [--film FILM] [--usd USD]
    python benchmarks/tasks/cloth.py --learn early|rest [--by gradient|parts|cma] [--seed 0]
    python benchmarks/tasks/cloth.py --play early|rest [--by gradient|parts|cma] [--seed 0] [--film FILM] [--usd USD]

FILE is the Panda of `arm.py`; without a file, the small arm of `grasping.py` does it. The cloth, a felt, hangs between
the pads at the start. The hand closes, draws the cloth across the bar, lowers its upper edge on the other side, opens
and goes away. The motion is planned with gradients of readings (`grasping.py`). Prints how far the middle line of the
cloth is from the top of the bar at the end: as planned, with a plan that opens the hand too early, with all signals at
zero, with a smaller tolerance, in steps of half the length, and with smaller cells of cloth.

``--learn`` adds offsets to the targets of the four servos of the small arm, on lines between `KNOTS` moments, and
learns them: from the plan that opens the hand too early, or from an arm at rest whose hand grips and opens as in this
plan. The loss is the mean distance from the moment when the hand opens. It is learned by gradients through the whole
motion, by gradients that end after `REACH` steps, or by CMA-ES, in equally many rollouts; what was found is in
cloth.npz. ``--play`` shows it, also in steps of half the length and with smaller cells.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from arm import robot_of
from common import learn, load, save, show, sized
from grasping import Arm, Hand, Plan, around, at, grasp_scene, painted

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
BEGIN, OVER = -0.091, 0.026
"""Distances from the bar, along a circle about the base, where the motion starts and behind the bar [m]."""
HIGH = 0.29
"""Height of the middle of the pads at the start [m]."""
PLANNED, EARLY = (0.0858, 0.17), (0.0728, 0.19)
"""Distance from the bar along the circle, and height, where the hand opens, as planned and too early [m]."""
KNOTS, JUDGED, REACH = 5, 45, 40
"""Moments with an offset, number of last steps whose mean distance is the loss, and steps after which gradients end."""
EPISODES, RATE, SPREAD = sized(11, 3), {"early": 0.03, "rest": 0.12}, 0.02
"""Rollouts of a search, its rate and the standard deviation of the first offsets [rad]."""


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


def beside(hand: Hand, along: float, height: float) -> np.ndarray:
    """The point `along` a circle about the base from the bar [m], at a height [m]."""
    return at(hand, along / hand.distance, height)


def begun(robot: wb.Scene, hand: Hand) -> wb.Scene:
    """The robot with its hand around the cloth."""
    return around(robot, hand, beside(hand, BEGIN, HIGH), THICKNESS, APART, hand.crosswise)


def cloth_scene(robot: wb.Scene, hand: Hand, cells: float = CELLS) -> wb.Scene:
    """The robot, the cloth between its pads, and the bar."""
    near, far = (hand.distance + side * (WIDTH / 2.0 + 0.02) for side in (-1, 1))
    shape = wb.shapes.Capsule((near, 0.0, BAR), (far, 0.0, BAR), RADIUS)
    return grasp_scene(
        painted(begun(robot, hand), hand), hand, [], friction=FRICTION, cells=8e-3,
        bodies=[cloth(beside(hand, BEGIN, HIGH), BEGIN / hand.distance, cells)],
        obstacles=[wb.Obstacle(shape, "friction", FRICTION, "bar")],
    )  # fmt: skip


def planned(robot: wb.Scene, hand: Hand, opens: tuple[float, float]) -> torch.Tensor:
    """Signals of a plan, shape (steps, channels).

    Args:
        robot: The robot.
        hand: Its hand.
        opens: Distance from the bar and height where the hand opens [m].
    """
    (along, low), plan = opens, Plan(Arm(begun(robot, hand), hand), STEP)
    plan.wait(0.06, GRIP)
    plan.go(beside(hand, OVER, HIGH), 0.35, GRIP)
    plan.go(beside(hand, along, low), 0.3, GRIP)
    plan.wait(0.1, -2.0)
    plan.go(beside(hand, along + 0.078, low), 0.15, 0.0)
    plan.wait(0.2, 0.0)
    return plan.control[: sized(None, 2)]


class Fold:
    """The simulation of a plan.

    Attributes:
        sim: The simulation.
        plan: Signals of the plan, shape (steps, channels).
    """

    def __init__(
        self, robot: wb.Scene, hand: Hand, opens: tuple[float, float] = PLANNED, halves: int = 1, cells: float = CELLS,
        tolerance: float = TOLERANCE,
    ):  # fmt: skip
        """Build the simulation.

        Args:
            robot: The robot.
            hand: Its hand.
            opens: Distance from the bar and height where the hand opens [m].
            halves: Divisor of the length of the steps.
            cells: Size of the cells of the cloth [m].
            tolerance: Of a step [mean edges].
        """
        scene, solver = cloth_scene(robot, hand, cells), wb.ProjectiveDynamics(cell_size=0.3, tolerance=tolerance)
        self.sim = wb.Simulation(scene, solver, STEP, halves, checkpoints=wb.Checkpoints.all())
        self.plan = planned(robot, hand, opens)

    def move(self, signals: torch.Tensor) -> wb.Trajectory:
        """The motion with these signals, shape (steps, channels)."""
        with torch.no_grad():
            return self.sim.rollout(signals, len(signals))

    def signals(self, start: str, offsets: torch.Tensor) -> torch.Tensor:
        """Signals of the plan, or of an arm at rest, with offsets of the targets, shape (steps, channels).

        Args:
            start: "early" for the signals of the plan, "rest" for those of its grip alone.
            offsets: At `KNOTS` moments [rad], shape (KNOTS * servos,).
        """
        steps, reach = len(self.plan), [a.reach for a in self.sim.scene.actuators if isinstance(a, wb.actuators.Servo)]
        knots = torch.cat([offsets.new_zeros(1, len(reach)), offsets.reshape(KNOTS, len(reach))]).T[None]
        lines = torch.nn.functional.interpolate(knots, steps + 1, mode="linear", align_corners=True)[0].T[1:]
        servos, grip = self.plan[:, : len(reach)] * (start == "early"), self.plan[:, len(reach) :]
        return torch.cat([servos + (lines / torch.tensor(reach)).to(servos), grip], dim=1)

    def loss(self, signals: torch.Tensor, reach: int) -> torch.Tensor:
        """Mean distance of the middle line from the top of the bar in the last `JUDGED` steps [m].

        A part of the motion whose steps have no gradient passes none on, and a line says so.

        Args:
            signals: Shape (steps, channels).
            reach: Number of steps of a part of the motion, after which gradients end.
        """
        state, ends, total, slopes = None, len(signals) - min(JUDGED, len(signals)), 0.0, []
        for first, part in zip(range(0, len(signals), reach), signals.split(reach), strict=True):
            own = part.detach().requires_grad_(signals.requires_grad)
            motion = self.sim.rollout(own, len(own), state, observe=lambda state: self.distance(state)[None, None])
            loss = motion.observation[0, max(ends - first, 0) :, 0].sum() / (len(signals) - ends)
            slopes.append(torch.zeros_like(part))
            if loss.requires_grad and first + len(own) > ends:
                try:
                    (slopes[-1],) = torch.autograd.grad(loss, own)
                except FloatingPointError as error:
                    why = str(error).partition("; ")[2]
                    print(f"  no gradient of steps {first} to {first + len(own)}: {why}", flush=True)
            total, state = total + loss.detach(), motion.final.mapped(torch.Tensor.detach)
        return total + (torch.cat(slopes) * (signals - signals.detach())).sum()

    def distance(self, state: object) -> torch.Tensor:
        """Root mean square distance of the middle line from the top of the bar [m]."""
        line = state.position[0, self.sim.region("middle")]
        return (line[:, 1:] - torch.tensor([0.0, BAR + RADIUS + THICKNESS / 2.0])).square().sum(dim=1).mean().sqrt()

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


def search(start: str, by: str, seed: int, rollouts: int) -> None:
    """Learn offsets, print losses, and add what was found to cloth.npz.

    Args:
        start: "early" or "rest".
        by: "gradient", "parts" or "cma".
        seed: Of the first offsets and of CMA-ES.
        rollouts: Their largest number.
    """
    fold = Fold(*robot_of(None), EARLY)
    rule = wb.methods.Torch(torch.optim.Adam, lr=RATE[start])
    if by == "cma":
        rule = wb.methods.CMA(2.0 * RATE[start], seed=seed + 1, population=sized(5, 2))

    def loss(offsets: torch.Tensor) -> torch.Tensor:
        found = fold.loss(fold.signals(start, offsets), REACH if by == "parts" else len(fold.plan))
        print(f"  {1e3 * float(found.detach()):.1f} mm", flush=True)
        return found

    first = SPREAD * np.random.default_rng(seed).normal(size=KNOTS * 4) * (seed > 0)
    found = learn(loss, first, (-1.5, 1.5), 1.0, rule, rollouts)
    name = f"{start} {by} {seed}"
    print(f"{name}: {1e3 * found.loss:.1f} mm in {found.episodes} rollouts, {found.seconds:.0f} s", flush=True)
    known = load(__file__) if Path(__file__).with_suffix(".npz").is_file() else {}
    save(__file__, **known | {name: found.values})


def print_cases(asked: argparse.Namespace) -> None:
    """Print how the cloth ends as planned, and how in other cases."""
    robot, hand = robot_of(asked.robot)
    cases = (
        ("hand opens too early", {"opens": EARLY}, 1.0), ("as planned", {}, 1.0), ("all signals at zero", {}, 0.0),
        ("a tenth of the tolerance", {"tolerance": TOLERANCE / 10.0}, 1.0), ("half the step", {"halves": 2}, 1.0),
        ("cells of two thirds of the size", {"cells": FINE}, 1.0),
    )  # fmt: skip
    motions = []
    for how, changes, share in cases[: sized(None, 2)]:
        fold = Fold(robot, hand, **changes)
        motions.append(fold.move(share * fold.plan))
        print(f"{how}: {fold.ending(motions[-1])}", flush=True)
        if len(motions) == 2:
            show(asked, motions[1], *motions, frames=4)


def print_learned(asked: argparse.Namespace) -> None:
    """Print how the cloth ends before and after learning, and after it in shorter steps and with smaller cells."""
    name = f"{asked.play} {asked.by} {asked.seed}"
    known = load(__file__)
    if name not in known:
        raise SystemExit(f"cloth.npz has no {name}, only {', '.join(known)}: learn it first, with --learn {asked.play}")
    robot, hand = robot_of(None)
    cases = (
        ("start", {}, 0.0), ("as learned", {}, 1.0), ("half the step", {"halves": 2}, 1.0),
        ("cells of two thirds of the size", {"cells": FINE}, 1.0),
    )  # fmt: skip
    motions = []
    for how, changes, share in cases:
        fold = Fold(robot, hand, EARLY, **changes)
        motions.append(fold.move(fold.signals(asked.play, share * torch.as_tensor(known[name]))))
        print(f"{name}, {how}: {fold.ending(motions[-1])}", flush=True)
        if len(motions) == 2:
            show(asked, motions[1], *motions, frames=4)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robot", type=Path, nargs="?", metavar="FILE", help="URDF or MJCF of the arm")
    parser.add_argument("--learn", choices=RATE, help="learn from this start")
    parser.add_argument("--by", choices=("gradient", "parts", "cma"), default="gradient", help="how to learn")
    parser.add_argument("--seed", type=int, default=0, help="of the first offsets and of CMA-ES")
    parser.add_argument("--rollouts", type=int, default=EPISODES, help="their largest number in a search")
    parser.add_argument("--play", choices=RATE, help="show what was learned from this start")
    parser.add_argument("--film", type=Path, help="where to write the film: .gif, .mp4, or .png for two strips")
    parser.add_argument("--usd", type=Path, help="where to write the motion as USD")
    asked = parser.parse_args()
    if asked.learn:
        search(asked.learn, asked.by, asked.seed, asked.rollouts)
    elif asked.play:
        print_learned(asked)
    else:
        print_cases(asked)


if __name__ == "__main__":
    main()
