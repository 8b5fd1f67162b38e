"""Four soft legs with motors on a rigid body, after Cronos figure 1c: does it go alike under two couplings?

    python benchmarks/tasks/legs.py [--command slowly] [--usd USD] [--film FILM]
    python benchmarks/tasks/legs.py --learn springs
    python benchmarks/tasks/legs.py --play --command learned [--usd USD] [--film FILM]
    python benchmarks/tasks/legs.py --starts 5 --command learned

A leg is a soft cross, which is bound to a rigid hub inside it; a motor turns the hub. The same scene runs under masses
and springs beside articulated bodies, and under projective dynamics, in three commands; the straight ones run also in
steps of half the length, and the slow one in smaller cells. Prints how far the body has gone and turned, how high it
hops, and how fast the legs turn.

``--learn`` finds voltages with which the robot goes far and straight under one coupling, by gradient and by CMA-ES in
equally many rollouts: the voltage of each motor at four times, with lines between them. They are kept in legs.npz, and
the command "learned" plays them under both couplings, also in steps of half the length and in smaller cells.

``--starts`` plays a command under springs from several heights, because one distance says little about a robot that
falls from arm to arm.
"""

import dataclasses
import sys
import time
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common import learn, load, options, save, show, sized

import warpbots as wb

INTERVAL, DURATION = 0.01, sized(1.0, 0.02)
"""Control interval, and duration of a run [s]."""
CELL = 0.01
"""Distance of masses, and size of tetrahedra [m]."""
TORQUE, SPEED = 0.1, 12.0
"""Torque at rest [N m] and speed without load [rad/s] of a motor, whose torque falls linearly with its speed."""
HEIGHT, REACH, HALF = 0.052, 0.05, 0.01
"""Height of the axles, length of an arm of a leg from its axle, and half of its width [m]."""
PLACES = {
    f"{end}_{side}": (x, y)
    for end, x in (("front", 0.07), ("hind", -0.07))
    for side, y in (("left", 0.06), ("right", -0.06))
}
"""Places of the axles [m]."""
COMMANDS = {
    "slowly": (0.35, 0.35, 0.35, 0.35),
    "slowly to the left": (0.15, 0.35, 0.15, 0.35),
    "at full voltage": (1.0, 1.0, 1.0, 1.0),
}
"""Voltages of the motors, in the order of `PLACES` [1]."""
LEARNED, KNOTS, EPISODES = "learned", 4, sized(12, 2)
"""Name of the command that was found, times at which it has voltages, and rollouts of a search."""
FINER, LIFT = 2 / 3 * CELL, 1e-4
"""Smaller cells, and difference in height of the starts with ``--starts`` [m]."""


def robot(lift: float = 0.0) -> wb.Scene:
    """The robot above a floor, each leg with one arm pointing down, and all of it higher by `lift` [m]."""
    Box, Union, height = wb.shapes.Box, wb.shapes.Union, HEIGHT + lift
    rubber = wb.Material(1e5, 0.25, 1000.0, damping=5e-4)
    size = np.array([0.1, 0.04, 0.01])
    body = wb.RigidBody("body", Box(-size, size), 800.0, position=(0, 0, height), color=(0.45, 0.47, 0.50))
    legs, hubs, joints = [], [], []
    for name, (x, y) in PLACES.items():
        axle = np.array([x, y, height])
        long, wide = np.array([REACH, HALF, HALF]), np.array([HALF, HALF, REACH])
        cross = Union((Box(axle - long, axle + long), Box(axle - wide, axle + wide)))
        hub = Box((-HALF,) * 3, (HALF,) * 3)
        legs.append(wb.SoftBody(f"{name}_leg", cross, rubber, friction=0.8, color=(0.90, 0.45, 0.20)))
        hubs.append(wb.RigidBody(f"{name}_hub", hub, 2700.0, position=axle, color=(0.25, 0.25, 0.3)))
        joints.append(
            wb.Joint(name, "revolute", "body", f"{name}_hub", position=axle, axis=(0, 1, 0), damping=TORQUE / SPEED)
        )
    motors = [wb.actuators.Torque(name, name, TORQUE) for name in PLACES]
    return wb.Scene([*legs, body, *hubs], motors, [wb.floor(0.0, friction=0.8)], joints=joints, name="hybrid_legs")


@dataclasses.dataclass(frozen=True)
class Coupling:
    """A solver of the robot, and steps that it takes in a control interval."""

    name: str
    solver: object
    substeps: int | None


def couplings(cell: float, halves: int) -> list[Coupling]:
    """Both couplings.

    Args:
        cell: Distance of masses, and size of tetrahedra [m].
        halves: Divisor of the length of the steps.
    """
    springs = wb.Coupled(wb.MassSpring(cell, contact_stiffness=1e7), wb.Articulated("bdf1"))
    safe = wb.Simulation(robot(), springs, INTERVAL).substeps
    return [
        Coupling("springs", springs, halves * safe),
        Coupling("tetrahedra", wb.ProjectiveDynamics(cell), halves * 4),
    ]


def built(coupling: Coupling, lift: float = 0.0) -> wb.Simulation:
    """The simulation of the robot, which starts higher by `lift` [m]."""
    return wb.Simulation(robot(lift), coupling.solver, INTERVAL, coupling.substeps)


def between(knots: torch.Tensor) -> torch.Tensor:
    """Voltages in all control intervals, on lines between those at `KNOTS` times, shape (steps, 4)."""
    table = knots.reshape(KNOTS, len(PLACES)).T[None]
    steps = round(DURATION / INTERVAL)
    return torch.nn.functional.interpolate(table, steps, mode="linear", align_corners=True)[0].T


def voltages(command: str, seed: int = 0) -> torch.Tensor:
    """Voltages of a command in all control intervals, shape (steps, 4)."""
    if command == LEARNED:
        return between(torch.as_tensor(load(__file__)["gradient"][seed])).to(torch.get_default_dtype())
    return torch.tensor(COMMANDS[command]).expand(round(DURATION / INTERVAL), -1)


def move(sim: wb.Simulation, control: torch.Tensor) -> wb.Trajectory:
    """The motion with these voltages; the observation has coordinates and velocities of the joints."""
    return sim.rollout(control, len(control), observe=lambda state: torch.cat([state.q, state.qd], dim=-1))


def run(coupling: Coupling, command: str, lift: float = 0.0) -> tuple[wb.Simulation, wb.Trajectory, float]:
    """Simulation, motion and computing time [s] of a command, from a start that is higher by `lift` [m]."""
    sim, control = built(coupling, lift), voltages(command)
    start = time.perf_counter()
    with torch.no_grad():
        motion = move(sim, control)
    return sim, motion, time.perf_counter() - start


def search(name: str, seeds: int) -> None:
    """Find voltages under a coupling by both methods, from half of the voltage with small differences."""
    coupling = next(c for c in couplings(CELL, 1) if c.name == name)
    sim, found = built(coupling), {}
    at = sim.model.robot.coordinates[sim.model.robot.joints[sim.model.robot.body("body")].name]

    def loss(knots: torch.Tensor) -> torch.Tensor:
        """Minus the distance ahead [m], plus the square of the distance aside per metre."""
        pose = move(sim, between(knots).to(torch.get_default_dtype())).observation[0][:, at]
        gone = (pose[-1, :2] - pose[0, :2]).to(knots)
        return -gone[0] + gone[1].square() / 0.1

    for seed in range(seeds):
        start = 0.5 + 0.1 * np.random.default_rng(seed).normal(size=KNOTS * len(PLACES))
        for method, rule in (
            ("gradient", wb.methods.Torch(torch.optim.Adam, lr=0.1, max_norm=1.0)),
            ("CMA-ES", wb.methods.CMA(0.2, seed=seed + 1, population=sized(6, 2))),
        ):
            result = learn(loss, start, (-1.0, 1.0), 1.0, rule, EPISODES)
            found.setdefault(method, []).append(result.values)
            with torch.no_grad():
                begun = float(loss(torch.as_tensor(start)))
            print(
                f"{name}, seed {seed}, {method}: loss {1e3 * begun:.0f} to {1e3 * result.loss:.0f} mm in "
                f"{result.episodes} rollouts, {result.seconds:.0f} s",
                flush=True,
            )
            save(__file__, **{key: np.array(rows) for key, rows in found.items()})


@dataclasses.dataclass(frozen=True)
class Gait:
    """What counts in a motion.

    Attributes:
        path: Positions of the body [m], shape (steps, 3).
        turn: Final heading of the body, to the left [degrees].
        hop: Standard deviation of the height of the body in the second half [m].
        speed: Mean speed of the legs in the second half [rad/s], shape (4,).
    """

    path: np.ndarray
    turn: float
    hop: float
    speed: np.ndarray


def judged(sim: wb.Simulation, motion: wb.Trajectory) -> Gait:
    """The gait of a motion."""
    at = sim.model.robot
    seen, n = motion.observation[0].double().numpy(), len(at.start)
    root = at.joints[at.body("body")].name
    pose, half = seen[:, at.coordinates[root]], len(seen) // 2
    i, j, k, w = pose[-1, 3:7]
    turn = np.degrees(np.arctan2(2.0 * (i * j + k * w), 1.0 - 2.0 * (j * j + k * k)))
    speed = np.array([seen[half:, n + at.velocities[name].start].mean() for name in PLACES])
    return Gait(pose[:, :3] - pose[0, :3], turn, pose[half:, 2].std(), speed)


def scatter(command: str, starts: int) -> None:
    """Print the distance of a command under springs from several heights, in both sizes of cells."""
    for cell in (CELL, FINER):
        springs = couplings(cell, 1)[0]
        gaits = [judged(*run(springs, command, LIFT * k)[:2]) for k in range(starts)]
        ahead = 1e3 * np.array([gait.path[-1, 0] for gait in gaits])
        print(
            f"{command}, springs {1e3 * cell:.1f} mm apart: {ahead.mean():.0f} mm ahead, standard deviation "
            f"{ahead.std(ddof=1):.0f} mm; {', '.join(f'{way:.0f}' for way in ahead)}",
            flush=True,
        )


def main() -> None:
    """Run the commands under both couplings, print the results and draw."""
    parser = options(__doc__)
    parser.add_argument("--command", choices=[*COMMANDS, LEARNED], default="slowly", help="what is drawn")
    parser.add_argument("--learn", choices=("springs", "tetrahedra"), help="find voltages under one coupling")
    parser.add_argument("--seeds", type=int, default=sized(5, 1))
    parser.add_argument("--starts", type=int, help="number of heights from which springs play the command, at least 2")
    asked = parser.parse_args()
    if asked.starts is not None and asked.starts < 2:
        parser.error(f"--starts must be at least 2, for a standard deviation, got {asked.starts}")
    if asked.learn:
        search(asked.learn, asked.seeds)
        return
    if asked.starts:
        scatter(asked.command, asked.starts)
        return
    runs = [(command, "as given", CELL, 1) for command in COMMANDS]
    runs += [(command, "half the step", CELL, 2) for command in ("slowly", "at full voltage")]
    runs += [("slowly", "finer", FINER, 1)]
    if asked.play:
        runs = [(asked.command, "as given", CELL, 1)]
        if asked.command == LEARNED:
            runs += [(LEARNED, "half the step", CELL, 2), (LEARNED, "finer", FINER, 1)]
    drawn = []
    for command, variant, cell, halves in runs:
        for coupling in couplings(cell, halves):
            sim, motion, seconds = run(coupling, command)
            gait = judged(sim, motion)
            legs = np.abs(gait.speed)
            print(
                f"{command}, {variant}, {coupling.name}: {1e3 * gait.path[-1, 0]:.0f} mm ahead, "
                f"{1e3 * gait.path[-1, 1]:.0f} mm aside, turned {gait.turn:.1f} degrees, hops {1e3 * gait.hop:.2f} mm, "
                f"legs {legs.min():.2f} to {legs.max():.2f} rad/s; {sim.substeps} steps, {seconds:.0f} s",
                flush=True,
            )
            if (command, variant) == (asked.command, "as given"):
                drawn.append(motion)
    show(asked, drawn[0], *drawn)


if __name__ == "__main__":
    main()
