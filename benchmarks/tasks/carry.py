"""A pneumatic gripper carries a rigid cube, a rod and a mug; the grasp is found by gradient.

    python benchmarks/tasks/carry.py [LOAD ...] [--rest TIME] [--seeds N] [--episodes N]
    python benchmarks/tasks/carry.py [LOAD ...] --play [--rest TIME] [--film FILM] [--usd USD]
    python benchmarks/tasks/carry.py [LOAD ...] --grip

The gripper of `softbody_gripper.py` has four soft arms with 14 pneumatic cells each, under a drone on three servos. The
load is a rigid body of 1 kg that lies loose on the floor, in the same implicit step as the arms. Unknown are the
activation of each arm and the velocity of the drone along three axes in each of 50 steps of 10 ms: 350 numbers. The
loss is the distance of the load's centre of mass from its target after the last step. Each arm starts with a random
activation, which is too weak to lift the cube. CMA-ES has as many episodes as the gradient. With ``--rest``, all
controls then stay as they are for a time, and the loss is the mean distance from the end of the motion to the end of
this rest, so that the load has to be held.

``--play`` plays the best motion of each load again: with control at zero, without its flight, with the grip of the
start, held for another half second, in steps of half the length, and with twice as many cells across the arms and
smaller faces of the load. ``--grip`` lifts each load with the same activation in all arms, and prints what holds.
Found motions are in carry.npz.
"""

import argparse
import dataclasses
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "papers"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from common import load, options, save, show, sized
from fast import FAST
from mug import mug
from softbody_grip import RADIUS, gripper_with
from softbody_gripper import ARMS, STEP, SUBSTEPS, Grip, learn

import warpbots as wb

FRICTION, MASS = 0.8, 1.0
"""Coulomb coefficient of everything [1], and mass of a load [kg]."""
WAY = 0.15, 0.1, 0.25
"""From the place of a load to its target [m]."""
ROD, FACES = 0.08, 0.1
"""Radius of the rod, and largest edge of the faces of a rigid load [m]."""
LOADS = {"cube": (0.2, 0.35), "rod": (0.4, 0.7), "mug": (0.4, 0.7)}
"""Names of the loads, and bounds of the random activation of each arm at the start: for the cube too weak to lift."""
HELD = sized(0.5, 0.01)
"""Time for which a load is held at its target [s]."""
FOUND = Path(__file__).with_suffix(".npz")
"""Where `search` adds what it finds."""


def rigid(name: str) -> wb.RigidBody:
    """A load on the floor of the gripper, one of `LOADS`; the handle of the mug is between two arms."""
    angle, height = 0.0, 0.0
    if name == "cube":
        shape, volume = wb.shapes.Box((-RADIUS,) * 3, (RADIUS,) * 3), (2.0 * RADIUS) ** 3
    elif name == "rod":
        shape, height = wb.shapes.Cylinder((-RADIUS, 0.0, 0.0), (RADIUS, 0.0, 0.0), ROD), ROD - RADIUS
        volume = math.pi * ROD**2 * 2.0 * RADIUS
    else:
        shape, angle, height = mug(RADIUS, 0.19, 0.012, 0.05, sectors=16), math.pi / 4, -RADIUS
        volume = shape.volume
    c, s = math.cos(angle), math.sin(angle)
    return wb.RigidBody(
        "load", shape, MASS / volume, position=(0.0, 0.0, height), friction=FRICTION, color=(0.30, 0.50, 0.75),
        rotation=((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)),
    )  # fmt: skip


def carry_scene(name: str, across: int = 1) -> wb.Scene:
    """The gripper above a rigid load, one of `LOADS`, with a number of cells in the width of an arm."""
    return dataclasses.replace(gripper_with(rigid(name), FRICTION, across), name="carry")


class Carry(Grip):
    """Episodes with a rigid load.

    Attributes:
        weak: Bounds of the activation of each arm at the start.
        rest: Control intervals after the motion in which all controls stay as they are.
        best: The unknowns of the episode with the least loss since the last `start`, shape (steps, 7).
    """

    def __init__(self, name: str, halves: int = 1, fine: int = 1, worlds: int = 1, rest: float = 0.0):
        """Build the simulation.

        Args:
            name: One of `LOADS`.
            halves: Divisor of the length of the steps.
            fine: Divisor of the size of cells across the arms and of the faces of the load.
            worlds: Number of copies.
            rest: Time after the motion [s]. All controls stay as they are, and the loss includes this time.
        """
        self.weak, self.rest = LOADS[name], round(rest / STEP)
        solver = wb.ProjectiveDynamics(cell_size=FACES / fine)
        sim = wb.Simulation(
            carry_scene(name, fine), solver, STEP, halves * SUBSTEPS, checkpoints=wb.Checkpoints.all(), worlds=worlds
        )
        super().__init__(sim)
        self.target = (self.centre(sim.state()) + torch.tensor(WAY, dtype=torch.float64)).detach()

    def start(self, seed: int) -> None:
        """Set the initial controls: a weak random activation of each arm, and a drift of a few centimetres."""
        rng = np.random.default_rng(seed)
        first = np.concatenate([np.arctanh(rng.uniform(*self.weak, ARMS)), 0.05 * rng.normal(size=3)])
        self.raw = torch.tensor(np.tile(first, (self.steps, 1)), dtype=torch.get_default_dtype(), requires_grad=True)
        self.losses, self.best = [], self.raw.detach().clone()

    def centre(self, state: object) -> torch.Tensor:
        """Centre of mass of the load [m], shape (3,)."""
        return self.centres(state)[0]

    def centres(self, state: object) -> torch.Tensor:
        """Centre of mass of the load in each world [m], shape (worlds, 3)."""
        return self.sim.sense(state).center[:, self.sim.model.robot.body("load")]

    def loss(self) -> torch.Tensor:
        """Mean distance of the load from its target, from the end of the motion to the end of the rest [m]."""
        control = self.controls()
        control = torch.cat([control, control[-1:].expand(self.rest, -1)])
        centres = self.sim.rollout(control, len(control), observe=self.centres).observation
        loss = (centres[0, self.steps - 1 :] - self.target.to(centres)).norm(dim=-1).mean()
        self.losses.append(float(loss.detach()))
        if self.losses[-1] == min(self.losses):
            self.best = self.raw.detach().clone()
        return loss

    def unchanged(self, motion: wb.Trajectory) -> torch.Tensor:
        """Signals that stay as they were at the end of a motion, for `HELD`, shape (1, steps, 7)."""
        return motion.control[:, -1:].expand(-1, round(HELD / STEP), -1)

    def held(self, motion: wb.Trajectory) -> wb.Trajectory:
        """A motion and the time for which its load is held at the end."""
        control = torch.cat([motion.control, self.unchanged(motion)], dim=1)
        with torch.no_grad():
            return self.sim.rollout(control, control.shape[1], motion.start)

    def ending(self, motion: wb.Trajectory) -> tuple[float, float]:
        """Distance of the load from its target after a motion, and how far it then sinks against the drone [m].

        For `HELD`, all controls stay as they were at the end.
        """
        with torch.no_grad():
            later = self.sim.rollout(self.unchanged(motion), round(HELD / STEP), motion.final).final
        height = self.sim.model.robot.coordinates["flight"].start + 2
        below = [float(s.q[0, height] - self.centre(s)[2]) for s in (motion.final, later)]
        return float((self.centre(motion.final) - self.target).norm()), below[1] - below[0]

    def played(self, raw: np.ndarray, grips: np.ndarray | None = None, flies: bool = True) -> wb.Trajectory:
        """The motion of an episode.

        Args:
            raw: The unknowns, shape (steps, 7).
            grips: Unknowns of which to take the activations instead, shape (steps, 7).
            flies: Whether the drone flies.
        """
        control = []
        for own in (raw if grips is None else grips, raw):
            self.raw = torch.as_tensor(own, dtype=torch.get_default_dtype())
            control.append(self.controls())
        with torch.no_grad():
            both = torch.cat([control[0][:, :ARMS], control[1][:, ARMS:] * flies], dim=1)
            return self.sim.rollout(both, self.steps)


def case(name: str, rest: float) -> str:
    """A load and its rest, as carry.npz calls them."""
    return f"{name} {rest:g} s" if rest else name


def search(names: Sequence[str], seeds: int, episodes: int, methods: Sequence[str], rest: float) -> None:
    """Learn with both methods from every seed, print tables, and add what was found to carry.npz."""
    for name in names:
        grip, rows, kept = Carry(name, rest=rest), {}, case(name, rest)
        for method in methods:
            for seed in range(seeds):
                curve = learn(grip, method, seed, episodes)["curve"][:episodes]
                before = {} if FAST or not FOUND.is_file() else load(__file__)
                found = {
                    f"{kept} {method} {seed}": grip.best.numpy(),
                    f"{kept} {method} {seed} losses": np.array(curve),
                }
                save(__file__, **before | found)
                rows.setdefault(method, []).append(curve)
        for method, curves in rows.items():
            best = 1e3 * np.array([min(curve) for curve in curves])
            print(
                f"{kept}, {method}: from {1e3 * curves[0][0]:.0f} mm to {best.round(1)} mm in "
                f"{[len(curve) for curve in curves]} episodes",
                flush=True,
            )


def print_grips(name: str) -> None:
    """Lift a load straight up with the same activation in all arms, and print how far each rises."""
    activations = torch.tensor([0.0, 0.15, 0.3, 0.45, 0.6])[: sized(None, 2)]
    grip = Carry(name, worlds=len(activations))
    control = torch.zeros(len(activations), grip.steps, ARMS + 3)
    control[:, :, :ARMS] = activations[:, None, None]
    control[:, :, -1] = torch.linspace(0.0, 0.8, grip.steps)
    with torch.no_grad():
        motion = grip.sim.rollout(control, grip.steps)
        rise = (grip.centres(motion.final) - grip.centres(motion.start))[:, 2]
    print(f"{name}: " + ", ".join(f"{a:.2f} {1e3 * z:.0f} mm" for a, z in zip(activations, rise, strict=True)))


def play(asked: argparse.Namespace, name: str) -> None:
    """Play the best motion of a load again in several ways, print how it ends, and write its film."""
    known, kept = load(__file__), case(name, asked.rest)
    found = {
        key: known[f"{key} losses"].min()
        for key in known
        if key.startswith(f"{kept} gradient") and f"{key} losses" in known
    }
    if not found:
        raise SystemExit(f"carry.npz has no motion of the {kept}: learn first, without --play")
    best = min(found, key=found.get)
    raw, grip = known[best], Carry(name)
    grip.start(int(best.split()[-1]))
    start = grip.raw.detach().numpy()
    still = np.zeros_like(raw)
    cases = {
        "as found": (grip, grip.played(raw)),
        "control at zero": (grip, grip.played(still)),
        "start": (grip, grip.played(start)),
        "flight as found, grip of the start": (grip, grip.played(raw, start)),
    }
    for how, finer in (("half the step", {"halves": 2}), ("cells and faces of half the size", {"fine": 2})):
        other = Carry(name, **finer)
        cases[how] = other, other.played(raw)
    for how, (own, motion) in cases.items():
        distance, sunk = own.ending(motion)
        print(f"{name}, {how}: {1e3 * distance:.1f} mm from its target, then sinks by {1e3 * sunk:.1f} mm", flush=True)
    (held, gripped), parts = (np.tanh(x[:, :ARMS]) for x in (start, raw)), (slice(0, 15), slice(-15, None))
    print(f"{name}: activations {held[0].round(2)} become {[gripped[p].mean(axis=0).round(2) for p in parts]}")
    found = cases["as found"][1]
    show(asked, grip.held(found) if asked.film or asked.usd else found, cases["start"][1], found, frames=4)


def main() -> None:
    """Run the command line."""
    parser = options(__doc__)
    parser.add_argument("loads", nargs="*", metavar="LOAD", help=f"one of {', '.join(LOADS)}; all")
    parser.add_argument("--seeds", type=int, default=sized(5, 1))
    parser.add_argument("--episodes", type=int, default=sized(10, 1), help="of each method (%(default)s)")
    parser.add_argument("--rest", type=float, default=0.0, help="time of rest that counts in the loss [s]")
    parser.add_argument("--grip", action="store_true", help="find which activation of all arms lifts a load")
    parser.add_argument("--methods", nargs="*", default=["gradient", "CMA-ES"])
    asked = parser.parse_args()
    if (asked.film or asked.usd) and len(asked.loads) != 1:
        parser.error(f"--film and --usd hold the motion of one load: name one of {', '.join(LOADS)}")
    if asked.grip:
        for name in asked.loads or LOADS:
            print_grips(name)
    elif asked.play:
        for name in asked.loads or LOADS:
            play(asked, name)
    else:
        search(asked.loads or LOADS, asked.seeds, asked.episodes, asked.methods, asked.rest)


if __name__ == "__main__":
    main()
