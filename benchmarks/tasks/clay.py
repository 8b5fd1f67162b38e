"""A hand presses clay into a wanted shape, by the gradient of its motion.

    python benchmarks/tasks/clay.py [--steps 1 2] [--play] [--usd FILE] [--film FILE]

A hand of two fingers hangs above a block of clay (von Mises). Servos move the palm along x and z and turn each finger;
the unknowns are their targets at four times, 16 numbers, with straight lines between them. Afterwards the hand rises.
The wanted shape is what a hidden motion leaves behind, known only as the density of clay in cells of 11 mm about its
centre of mass. The loss is the squared difference of densities; it is 1 for a block that nobody touches. A search takes
the mean of the losses in steps of several lengths, because a motion that is found in one length belongs in part to it:
``--steps`` are divisors of the safe length. The search starts from a straight press of both fingers, because a hand
that does not touch has no gradient. The gradient and CMA-ES have the same number of episodes, each with one rollout for
each length, and each is repeated with several seeds: of the start, which is disturbed, and of the random numbers. The
best motion is played again in shorter steps and on a finer grid. ``--play`` shows what was found before.
"""

from collections.abc import Sequence

import numpy as np
import torch
from common import learn, load, options, save, show, sized

import warpbots as wb

Box, Capsule = wb.shapes.Box, wb.shapes.Capsule
SIDE, HEIGHT, DX, DT = 0.09, 0.045, 0.015, 0.02
PRESS, LIFT = sized((32, 10), (3, 1))
"""Number of control intervals in which the hand presses, and number of those in which the hand rises."""
HIDDEN = ((0.0, 0.1, 0.4, 0.5), (-0.5, -0.8, -0.85, -0.7), (0.0, 0.0, 0.5, 0.9), (0.0, 0.2, 0.2, 0.1))
STRAIGHT = ((0.0,) * 4, (-0.4, -0.55, -0.55, -0.55), (0.0,) * 4, (0.0,) * 4)
"""Targets of the servos (x, z, left finger, right finger) at four times, over their reach [1]."""
EPISODES, SEEDS = sized(12, 2), sized(2, 1)


def clay_scene() -> wb.Scene:
    """A block of clay on a sticky floor, and a hand 8 mm above it."""
    law = wb.materials.VonMises(yield_stress=1e3)
    clay = wb.Material(2e4, 0.3, 1500.0, "hencky", plasticity=law)
    block = wb.SoftBody("clay", Box((0, 0, 0), (SIDE, SIDE, HEIGHT)), clay, friction=0.3, color=(0.72, 0.42, 0.3))
    x, y, z = SIDE / 2, SIDE / 2, HEIGHT + 0.008 + 0.0625
    steel = {"friction": 0.3, "points": 0, "color": (0.35, 0.4, 0.48)}
    palm = wb.RigidBody("palm", Box((-0.04, -0.015, 0.0), (0.04, 0.015, 0.015)), 1500.0, position=(x, y, z), **steel)
    bodies, joints = [palm], [wb.Joint("arm", "translational", None, "palm", position=(x, y, z))]
    servos = [
        wb.actuators.Servo("x", "arm", 2e3, 60.0, reach=0.03, axis=0),
        wb.actuators.Servo("hold y", "arm", 2e3, 60.0, axis=1),
        wb.actuators.Servo("z", "arm", 2e3, 60.0, reach=0.04, axis=2),
    ]
    for name, side in (("left", -1.0), ("right", 1.0)):
        at = (x + 0.027 * side, y, z)
        bodies.append(wb.RigidBody(name, Capsule((0, 0, -0.05), (0, 0, 0), 0.0125), 2000.0, position=at, **steel))
        joints.append(wb.Joint(name, "revolute", "palm", name, position=at, axis=(0, side, 0)))
        servos.append(wb.actuators.Servo(name, name, 10.0, 0.2, reach=0.6))
    domain = (-0.03, -0.03, 0.0), (SIDE + 0.03, SIDE + 0.03, 0.18)
    return wb.Scene([block, *bodies], servos, [wb.floor(0.0, condition="sticky")], joints=joints, domain=domain,
                    name="clay")  # fmt: skip


def simulation(dx: float = DX, finer: int = 1) -> wb.Simulation:
    """Steps of the safe length, or `finer` times shorter ones."""
    solver, scene = wb.Coupled(wb.MPM(dx)), clay_scene()
    steps = wb.Simulation(scene, solver, DT, substeps=None).substeps
    return wb.Simulation(scene, solver, DT, substeps=finer * steps)


def control(knots: torch.Tensor) -> torch.Tensor:
    """Signals of all servos, from their targets at four times, shape (4, 4): first lines, then back to the start."""
    start = torch.zeros_like(knots[:, :1])
    k = torch.nn.functional.interpolate(
        torch.cat([start, knots], dim=1)[None], PRESS + 1, mode="linear", align_corners=True
    )[0, :, 1:]
    fall = torch.linspace(1.0, 0.0, LIFT // 2 + 2, dtype=k.dtype)[1:]
    away = torch.cat([k[:, -1:] * fall, k[:, -1:] * torch.zeros(LIFT - len(fall), dtype=k.dtype)], dim=1)[:, :LIFT]
    x, z, left, right = torch.cat([k, away], dim=1).float()
    return torch.stack([x, torch.zeros_like(x), z, left, right], dim=1)


class Press:
    """The task on one grid: what a motion leaves behind, and how far that is from the wanted shape."""

    def __init__(self, sim: wb.Simulation):
        self.sim, self._fields = sim, wb.observers.Grid(8, 1.6).bind(sim)
        self.wanted, self.unit = None, 1.0

    def density(self, knots: torch.Tensor) -> torch.Tensor:
        """Density of clay in each cell after a motion, over that at rest."""
        signals = control(knots.reshape(4, 4))
        return self._fields(self.sim.rollout(signals, len(signals)).final).reshape(4, -1)[0]  # then three of momentum

    def loss(self, knots: torch.Tensor) -> torch.Tensor:
        """Squared difference of the density from the wanted density; 1 for a block that nobody touches."""
        return (self.density(knots) - self.wanted).square().sum() / self.unit

    def want(self, density: torch.Tensor) -> None:
        """Set the wanted density."""
        with torch.no_grad():
            self.wanted, self.unit = density, 1.0
            self.unit = float(self.loss(torch.zeros(16)))


def wanted_density() -> torch.Tensor:
    """The density that the hidden motion leaves in steps of the safe length."""
    with torch.no_grad():
        return Press(simulation()).density(torch.tensor(HIDDEN))


def learn_press(steps: Sequence[int]) -> dict[str, np.ndarray]:
    """Search with each method and seed for the least mean loss in all lengths of the step, and print what was found."""
    tasks, wanted, straight = [Press(simulation(finer=finer)) for finer in steps], wanted_density(), np.ravel(STRAIGHT)
    for task in tasks:
        task.want(wanted)

    def loss(knots: torch.Tensor) -> torch.Tensor:
        """Mean of the losses in all lengths of the step."""
        return torch.stack([task.loss(knots) for task in tasks]).mean()

    print("| method | episodes | difference from the wanted shape |\n|---|---|---|\n| hand stays up | 1 | 1 |")
    with torch.no_grad():
        print(f"| straight press | 1 | {float(loss(torch.tensor(straight))):.3f} |", flush=True)
    best, curves = None, {}
    for name in ("gradient", "CMA-ES"):
        losses = []
        for seed in range(SEEDS):
            start = straight + 0.05 * np.random.default_rng(seed).normal(size=16)
            method = wb.methods.Torch(lr=0.06) if name == "gradient" else wb.methods.CMA(0.2, seed=seed)
            found = learn(loss, start, (-1.0, 1.0), 1.0, method, EPISODES)
            losses.append(found.loss)
            if best is None or found.loss < best.loss:
                best = found
        curves[name] = losses
        row = " to ".join(f"{v:.3f}" for v in (min(losses), max(losses)))
        print(f"| {name} | {found.episodes} | {row} ({SEEDS} seeds) |", flush=True)
    return {"knots": best.values, **{k: np.array(v) for k, v in curves.items()}}


def print_replays(knots: np.ndarray) -> None:
    """Print the loss of a motion in shorter steps and on a finer grid, against the same wanted density."""
    with torch.no_grad():
        wanted = wanted_density()
        print("\n| played | difference from the wanted shape | the hidden motion itself |\n|---|---|---|")
        cases = {"safe step": (DX, 1), "half the step": (DX, 2), "a third": (DX, 3), "a quarter": (DX, 4)}
        cases["cells of 11 mm"] = 0.09 / 8, 1
        for name, (dx, finer) in list(cases.items())[: sized(5, 1)]:
            task = Press(simulation(dx, finer))
            task.want(wanted)
            own, hidden = (float(task.loss(torch.tensor(k).double())) for k in (knots, np.ravel(HIDDEN)))
            print(f"| {name} | {own:.3f} | {hidden:.3f} |", flush=True)


def main() -> None:
    """Run the command line."""
    parser = options(__doc__)
    parser.add_argument("--steps", type=int, nargs="+", default=[1, 2], help="divisors of the safe length of a step")
    asked = parser.parse_args()
    if asked.play:
        found = load(__file__)
    else:
        found = learn_press(asked.steps)
        save(__file__, **found)
        print_replays(found["knots"])
    if asked.usd or asked.film:
        sim = simulation()
        signals = (
            control(torch.as_tensor(k).reshape(4, 4)) for k in (found["knots"], np.array(STRAIGHT), np.array(HIDDEN))
        )
        pressed, straight, hidden = (sim.rollout(own, len(own)) for own in signals)
        show(asked, pressed, straight, pressed, hidden, frames=2)


if __name__ == "__main__":
    main()
