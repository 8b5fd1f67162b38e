"""The shape of a scoop is designed by gradient, so that it lifts more sand.

    python benchmarks/tasks/scoop.py [--play] [--usd FILE] [--film FILE]

Servos push a scoop of four plates into a heap of sand, and lift it; this motion is the same for every shape. The shape
has four unknowns: the pitch of the floor, the lean of the back, the flare of the sides, and their height. They are the
frames of the joints that fix the plates to each other, parameters with a gradient through the contact. The loss is the
mass of the sand that has not been lifted, divided by the mass of the heap. The gradient and CMA-ES have the same number
of episodes. What was found is played again in half the step and on a finer grid. ``--play`` shows what was found
before.
"""

import math

import numpy as np
import torch
from common import learn, load, options, save, show, sized

import warpbots as wb

Box = wb.shapes.Box
DX, DT = 0.025, 0.02
LENGTH, WIDTH, THICK, WALL = 0.10, 0.125, 0.025, 0.045
"""Of the floor of the scoop, of the scoop, of its plates, and height of its walls [m]."""
HEAP = (0.15, 0.0, 0.0), (0.35, 0.2, 0.075)
PUSH, RAISE = sized((20, 18), (3, 2))
"""Control intervals in which the scoop moves forward and up."""
FORWARD, UP = 0.15, 0.14
LIFTED = 0.10
"""Height above which sand counts as lifted, within 5 mm [m]."""
LIMITS = np.array([[0.0, -0.4, -0.3, -0.01], [0.5, 0.6, 0.3, 0.03]])
"""Of pitch, lean, flare [rad] and height [m], so that no plate is in the ground or in a wall."""
SCALE = np.array([0.2, 0.3, 0.3, 0.015])
EPISODES = sized(6, 2)


def plates() -> list[tuple[str, Box, tuple, tuple]]:
    """Name, shape about its hinge, hinge in the world at the start, and axis of each plate that is designed."""
    y = HEAP[1][1] / 2
    floor = Box((0, -WIDTH / 2, -THICK / 2), (LENGTH, WIDTH / 2, THICK / 2))
    back = Box((-THICK, -WIDTH / 2, 0), (0, WIDTH / 2, WALL + THICK))
    side = Box((0, -THICK / 2, 0), (LENGTH, THICK / 2, WALL))
    x, z = 0.04, THICK / 2 + 0.002
    left, right = (y + s * (WIDTH - THICK) / 2 for s in (1.0, -1.0))
    return [
        ("floor", floor, (x, y, z), (0.0, -1.0, 0.0)), ("back", back, (x, y, z), (0.0, -1.0, 0.0)),
        ("left", side, (x, left, z), (0.0, 0.0, 1.0)), ("right", side, (x, right, z), (0.0, 0.0, -1.0)),
    ]  # fmt: skip


def scoop_scene() -> wb.Scene:
    """A heap of sand between walls, and the scoop before it, which a servo moves along x and z."""
    sand = wb.Material(3e4, 0.3, 1500.0, "hencky", plasticity=wb.materials.DruckerPrager(friction_angle=35.0))
    heap = wb.SoftBody("sand", Box(*HEAP), sand, friction=0.4, color=(0.85, 0.72, 0.48))
    y = HEAP[1][1] / 2
    steel = {"friction": 0.4, "points": 0, "color": (0.35, 0.4, 0.48)}
    start = (0.0, y, 0.04)
    handle = wb.RigidBody("handle", Box((-0.02, -0.02, 0.0), (0.02, 0.02, 0.08)), 2000.0, position=start, **steel)
    bodies, joints = [handle], [wb.Joint("rail", "translational", None, "handle", position=start)]
    for name, shape, at, _ in plates():
        bodies.append(wb.RigidBody(name, shape, 2000.0, position=at, **steel))
        joints.append(wb.Joint(f"{name} welded", "fixed", "handle", name, position=at))
    servos = [
        wb.actuators.Servo(axis, "rail", 2e4, 600.0, reach=reach, axis=k)
        for k, (axis, reach) in enumerate({"x": FORWARD, "hold y": 0.0, "z": UP}.items())
    ]
    domain = (-0.1, 0.0, 0.0), (0.35, 0.2, 0.35)
    return wb.Scene([heap, *bodies], servos, wb.walls(*domain, "friction", 0.5), joints=joints, domain=domain,
                    name="scoop")  # fmt: skip


def simulation(dx: float = DX, finer: int = 1) -> wb.Simulation:
    """Steps of the safe length, or `finer` times shorter ones."""
    solver, scene = wb.Coupled(wb.MPM(dx)), scoop_scene()
    steps = wb.Simulation(scene, solver, DT, substeps=None).substeps
    return wb.Simulation(scene, solver, DT, substeps=finer * steps)


def control(hold: int = 0) -> torch.Tensor:
    """Signals of the servos: forward, then up, from rest to rest, and `hold` control intervals at rest."""
    forward, up = (0.5 - 0.5 * torch.cos(math.pi * torch.arange(1, n + 1) / n) for n in (PUSH, RAISE))
    x = torch.cat([forward, torch.ones(RAISE)])
    z = torch.cat([torch.zeros(PUSH), up])
    moving = torch.stack([x, torch.zeros_like(x), z], dim=1)
    return torch.cat([moving, moving[-1:].expand(hold, -1)])


def frames(sim: wb.Simulation, shape: torch.Tensor) -> dict[str, torch.Tensor]:
    """Frames of the joints of the plates, from pitch, lean, flare [rad] and height [m]."""
    pitch, lean, flare, height = shape
    place, turn, robot = sim.parameter("joint_position")[0], sim.parameter("joint_rotation")[0], sim.model.robot
    places, turns = list(place), list(turn)
    for (name, _, _, axis), angle in zip(plates(), (pitch, -lean, flare, flare), strict=True):
        k, axis = robot.body(name), torch.tensor(axis, dtype=turn.dtype)
        turns[k] = torch.cat([axis * torch.sin(angle / 2.0), torch.cos(angle / 2.0)[None]]).to(turn)
        if name in ("left", "right"):
            places[k] = place[k] + height * torch.tensor([0.0, 0.0, 1.0], dtype=place.dtype)
    return {"joint_position": torch.stack(places)[None], "joint_rotation": torch.stack(turns)[None]}


def left_behind(sim: wb.Simulation, shape: torch.Tensor, hold: int = 0) -> torch.Tensor:
    """Share of the sand that has not been lifted at the end."""
    signals = control(hold)
    final = sim.rollout(signals, len(signals), **frames(sim, shape)).final
    height = final.position[0, :, 2]
    return 1.0 - torch.sigmoid((height - LIFTED) / 5e-3).mean()


def main() -> None:
    """Run the command line."""
    asked = options(__doc__).parse_args()
    sim = simulation(sized(DX, 0.04))
    heap = math.prod(b - a for a, b in zip(*HEAP, strict=True)) * 1500.0
    if asked.play:
        found = load(__file__)
    else:
        print("| method | episodes | pitch, lean, flare [rad], height [mm] | sand lifted [kg] |\n|---|---|---|---|")
        methods = {"gradient": wb.methods.SciPy("L-BFGS-B"), "CMA-ES": wb.methods.CMA(0.5, seed=0)}
        with torch.no_grad():
            rows = [("as drawn", 1, np.zeros(4), float(left_behind(sim, torch.zeros(4))))]
        for name, method in methods.items():
            own = learn(lambda s: 10.0 * left_behind(sim, s), np.zeros(4), tuple(LIMITS), SCALE, method, EPISODES)
            rows.append((name, own.episodes, own.values, own.loss / 10.0))
        for name, episodes, shape, loss in rows:
            numbers = ", ".join(f"{v:.2f}" for v in (*shape[:3], 1e3 * shape[3]))
            print(f"| {name} | {episodes} | {numbers} | {heap * (1.0 - loss):.3f} |", flush=True)
        found = {"shape": min(rows, key=lambda row: row[3])[2], "gradient": rows[1][2]}
        save(__file__, **found)
        print("\n| played | as drawn [kg] | as found [kg] | gain |\n|---|---|---|---|")
        cases = {"as learnt": (DX, 1, 0), "and held for 0.3 s": (DX, 1, sized(15, 1)), "half the step": (DX, 2, 0),
                 "cells of 20 mm, half the step": (0.02, 2, 0)}  # fmt: skip
        for name, (dx, finer, hold) in cases.items():
            other, shapes = simulation(sized(dx, 0.04), finer), (torch.zeros(4), torch.tensor(found["shape"]))
            with torch.no_grad():
                pair = [heap * (1.0 - float(left_behind(other, shape, hold))) for shape in shapes]
            print(f"| {name} | {pair[0]:.3f} | {pair[1]:.3f} | {pair[1] / pair[0]:.2f} |", flush=True)
    if asked.usd or asked.film:
        signals, shapes = control(), (torch.tensor(found["shape"]), torch.zeros(4))
        designed, drawn = (sim.rollout(signals, len(signals), **frames(sim, shape)) for shape in shapes)
        show(asked, designed, drawn, designed)


if __name__ == "__main__":
    main()
