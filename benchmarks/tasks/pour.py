"""A cup pours its water into a bowl.

    python benchmarks/tasks/pour.py [--play] [--usd FILE] [--film FILE]

Servos move a cup of water along x and z and tilt it; the unknowns are their targets at four times, 12 numbers, with
straight lines between them. The loss is the mean square of the distance of the water from the inside of the bowl. It is
1 for water that stays in the cup. The table also has the share of the water in the bowl. The search starts from a cup
that tilts where it stands and spills beside the bowl. The gradient and CMA-ES have the same number of episodes. The
motion that was found is played again in half the step and on a finer grid. ``--play`` shows what was found before.

SoftMAC (Liu et al. 2024) has a task of pouring, in which forces move a glass and the goal is the places of particles.
"""

import numpy as np
import torch
from common import learn, load, options, save, show, sized

import warpbots as wb

Box = wb.shapes.Box
DX, DT, WALL = 0.015, 0.02, 0.015
CUP, BOWL = (0.06, 0.06, 0.075), (0.105, 0.105, 0.045)
"""Insides of cup and bowl [m]."""
MIDDLE, PLACE = np.array([0.07, 0.09, 0.115]), np.array([0.24, 0.09, WALL])
"""Where the middle of the bottom of each inside is at the start [m]."""
POUR, REST = sized((36, 14), (3, 1))
"""Number of control intervals in which the cup moves, and number of those in which it rests."""
START = np.array([[0.0] * 4, [0.0] * 4, [0.2, 0.45, 0.6, 0.6]])
"""Targets of the servos (x, z, tilt) at four times, over their reach [1]."""
EPISODES = sized(40, 2)


def vessel(name: str, inside: tuple[float, float, float], at: np.ndarray, parent: str | None, **look) -> tuple:
    """Five plates around an inside, and the joints that fix the walls to the bottom and the bottom to `parent`."""
    (a, b, c), w = (inside[0] / 2, inside[1] / 2, inside[2]), WALL
    shapes = {
        "bottom": Box((-a - w, -b - w, -w), (a + w, b + w, 0)), "left": Box((-a - w, -b - w, 0), (-a, b + w, c)),
        "right": Box((a, -b - w, 0), (a + w, b + w, c)), "front": Box((-a, -b - w, 0), (a, -b, c)),
        "back": Box((-a, b, 0), (a, b + w, c)),
    }  # fmt: skip
    bodies = [wb.RigidBody(f"{name} {part}", shape, 1000.0, position=tuple(at), friction=0.0, points=0, **look)
              for part, shape in shapes.items()]  # fmt: skip
    joints = [wb.Joint(f"{b.name} fixed", "fixed", f"{name} bottom", b.name) for b in bodies[1:]]
    joints += [] if parent else [wb.Joint(f"{name} fixed", "fixed", None, f"{name} bottom")]
    return bodies, joints


def pour_scene() -> wb.Scene:
    """A cup of water on a hand, and a bowl beside and below it."""
    half = np.array([CUP[0] / 2, CUP[1] / 2, 0.0])
    inside = Box(tuple(MIDDLE - half), tuple(MIDDLE + half + [0.0, 0.0, CUP[2] - DX]))
    fluid = wb.Material(2e4, 1 / 3, 1000.0, "weakly_compressible", damping=2e-4)  # lone drops would bounce without
    water = wb.SoftBody("water", inside, fluid, friction=0.0, color=(0.35, 0.6, 0.85))
    cup, cup_joints = vessel("cup", CUP, MIDDLE, "hand", color=(0.8, 0.45, 0.3))
    bowl, bowl_joints = vessel("bowl", BOWL, PLACE, None, color=(0.5, 0.55, 0.6))
    grip = tuple(MIDDLE + [0.0, 0.0, CUP[2] / 2])
    hand = wb.RigidBody("hand", None, inertia=wb.scene.Inertia(0.3, (0, 0, 0), (1e-4,) * 3), position=grip)
    joints = [wb.Joint("arm", "translational", None, "hand", position=grip),
              wb.Joint("wrist", "revolute", "hand", "cup bottom", position=grip, axis=(0, 1, 0))]  # fmt: skip
    servos = [wb.actuators.Servo("x", "arm", 3e3, 100.0, reach=0.12, axis=0),
              wb.actuators.Servo("hold y", "arm", 3e3, 100.0, axis=1),
              wb.actuators.Servo("z", "arm", 3e3, 100.0, reach=0.06, axis=2),
              wb.actuators.Servo("tilt", "wrist", 30.0, 1.0, reach=2.6)]  # fmt: skip
    domain = (-0.04, 0.0, 0.0), (0.36, 0.18, 0.3)
    return wb.Scene([water, hand, *cup, *bowl], servos, wb.walls(*domain, "slip"), domain=domain,
                    joints=[*joints, *cup_joints, *bowl_joints], name="pour")  # fmt: skip


def simulation(dx: float = DX, finer: int = 1) -> wb.Simulation:
    """Steps of the safe length, or `finer` times shorter ones."""
    solver, scene = wb.Coupled(wb.MPM(dx)), pour_scene()
    steps = wb.Simulation(scene, solver, DT, substeps=None).substeps
    return wb.Simulation(scene, solver, DT, substeps=finer * steps)


def control(knots: torch.Tensor) -> torch.Tensor:
    """Signals of all servos, from their targets at four times, shape (12,) or (3, 4)."""
    knots = torch.nn.functional.pad(knots.reshape(1, 3, 4), (1, 0))
    x, z, tilt = torch.nn.functional.interpolate(knots, POUR + 1, mode="linear", align_corners=True)[0, :, 1:]
    signals = torch.stack([x, torch.zeros_like(x), z, tilt], dim=1)
    return torch.cat([signals, signals[-1:].expand(REST, -1)]).float()


def outside(sim: wb.Simulation, knots: torch.Tensor) -> torch.Tensor:
    """Distance of each particle of water from the inside of the bowl after a motion [m]."""
    signals = control(knots)
    x = sim.rollout(signals, len(signals)).final.position[0]
    half = torch.tensor([BOWL[0] / 2, BOWL[1] / 2, BOWL[2] / 2])
    beyond = (x - torch.tensor(PLACE + [0.0, 0.0, BOWL[2] / 2])).abs() - half
    return beyond.clamp(min=0.0).square().sum(dim=1)


def main() -> None:
    """Run the command line."""
    asked = options(__doc__).parse_args()
    sim = simulation(sized(DX, 0.03))
    if asked.play:
        found = load(__file__)
    else:
        with torch.no_grad():
            unit = float(outside(sim, torch.zeros(12)).mean())
        share = {}

        def loss(knots: torch.Tensor) -> torch.Tensor:
            beyond = outside(sim, knots)
            share[float(beyond.mean()) / unit] = float((beyond < (DX / 4) ** 2).double().mean())
            return beyond.mean() / unit

        with torch.no_grad():
            rows = [("cup stays", 1, np.zeros(12), float(loss(torch.zeros(12)))),
                    ("tilts where it stands", 1, START.ravel(), float(loss(torch.tensor(START))))]  # fmt: skip
        for name, method in {"gradient": wb.methods.Torch(lr=0.1), "CMA-ES": wb.methods.CMA(0.25)}.items():
            own = learn(loss, START.ravel(), (-1.0, 1.0), 1.0, method, EPISODES)
            rows.append((name, own.episodes, own.values, own.loss))
        print("| motion | episodes | loss | water in the bowl |\n|---|---|---|---|")
        for name, episodes, _, value in rows:
            print(f"| {name} | {episodes} | {value:.3f} | {100.0 * share[value]:.0f} % |", flush=True)
        found = {"knots": min(rows, key=lambda row: row[3])[2]}
        save(__file__, **found)
        print("\n| played | water in the bowl |\n|---|---|")
        cases = {
            "as learnt": (DX, 1),
            "half the step": (DX, 2),
            "cells of 12 mm": (0.012, 1),
            "cells of 12 mm, half the step": (0.012, 2),
        }
        for name, (dx, finer) in cases.items():
            with torch.no_grad():
                beyond = outside(simulation(sized(dx, 0.03), finer), torch.tensor(found["knots"]))
            print(f"| {name} | {100.0 * float((beyond < (DX / 4) ** 2).double().mean()):.0f} % |", flush=True)
    if asked.usd or asked.film:
        signals = [control(torch.tensor(knots)) for knots in (found["knots"], START)]
        poured, spilt = (sim.rollout(own, len(own)) for own in signals)
        show(asked, poured, spilt, poured, frames=4)


if __name__ == "__main__":
    main()
