"""A quadruped of a public file learns to walk on a floor, on sand and on snow, by gradients through the ground.

    python benchmarks/tasks/ground.py stand A1
    python benchmarks/tasks/ground.py begin A1 [--seed 0] [--method adam|cma]
    python benchmarks/tasks/ground.py learn A1 sand [--seed 0] [--method adam|cma]
    python benchmarks/tasks/ground.py table A1
    python benchmarks/tasks/ground.py check A1 sand [--seed 0]
    python benchmarks/tasks/ground.py play A1 sand [--policy floor] [--usd USD] [--film FILM]

A1 is unitree_a1/a1.xml of MuJoCo Menagerie (https://github.com/google-deepmind/mujoco_menagerie), unchanged. It starts
in the keyframe "home" and has the position actuators of the file. A policy is a gait: each of the twelve joints has a
mean, a sine and a cosine of 2.5 Hz, which are added to its target. The loss is minus the distance that the trunk has
gone, plus penalties on tilt, on drift to the side, and on torques. ``begin`` starts from stepping on the spot, on the
floor, and learns through 0.5 s; ``learn`` continues on a ground, through 0.8 s. Found gaits are in ground.npz.

``stand`` prints the weight on each ground and the sinkage of the feet. ``table`` tries each gait on each ground, for
1.2 s. ``check`` tries the gait of a ground, and the gait from which it was learned, on this ground: as found, from
starts a tenth of a millimeter apart, in half the step, and in smaller cells.
"""

import argparse
import dataclasses
import functools
import math
import sys
import warnings
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from fast import FAST, sized  # noqa: E402

import warpbots as wb  # noqa: E402

STEP, PERIOD = 0.01, 0.4
"""Control interval and period of a gait [s]."""
LEARN = sized({"begin": (1.25, 1.25), "learn": (2.0, 0.5)}, {"begin": (0.05, 0.05), "learn": (0.1, 0.05)})
"""Periods of a rollout for learning from stepping on the spot and then on each ground, and of a part of it: from one
part to the next, gradients pass through the place of the trunk alone."""
TRY = sized(3, 0.05)
"""Periods of a rollout for the table."""
SETTLE = sized(0.4, 0.02)
"""Time for which the robot stands before it walks [s]."""
DEPTH, CELL, FINE = 0.08, 0.04, sized((0.032, 0.026), (0.032,))
"""Depth of a bed, and sizes of cells for learning and for the check [m]."""
SHIFTS = sized((1e-4, 2e-4, -1e-4), (1e-4,))
"""Distances by which the start is moved for the check [m]: feet that slip and sink are chaotic."""
NEAR, FAR = sized((0.35, 0.6), (0.0, 0.0))
"""Ground in front of the robot for learning, and for the table [m]."""
NARROW, WIDE = 0.24, 0.36
"""Half the width of a bed for learning, and for the table [m]: a gait that is not steered drifts."""
LARGEST = 0.12
"""Bound of every number of a gait [rad]."""
ITERATIONS, RATE = {"begin": sized(10, 1), "learn": sized(5, 1)}, {"begin": 0.015, "learn": 0.007}
"""Iterations and rate of learning from stepping on the spot, and then on each ground [rad]."""
FOUND = HERE / "ground.npz"
MOST = 33.5
"""Largest torque of a motor in the file [N m]; a `Servo` has no such limit, so the loss has it."""

GROUNDS = "floor", "sand", "snow"
MATERIALS = {
    "sand": wb.Material(2e5, 0.3, 1600.0, "hencky", plasticity=wb.materials.DruckerPrager(friction_angle=35.0)),
    "snow": wb.Material(5e4, 0.2, 300.0, "hencky", plasticity=wb.materials.CamClay(preconsolidation_pressure=5e3)),
}
TRUNK, LEGS = (0.86, 0.42, 0.16), (0.25, 0.27, 0.30)
COLORS = {"sand": (0.80, 0.68, 0.45), "snow": (0.85, 0.90, 0.96)}


@dataclasses.dataclass(frozen=True)
class Course:
    """A robot that stands on a ground.

    Attributes:
        sim: The simulation.
        start: Its state after the robot has settled.
        reach: Largest change of each target, at u = 1 [rad].
    """

    sim: wb.Simulation
    start: object
    reach: torch.Tensor


def robot_of(file: Path) -> wb.Scene:
    """The robot in its home pose, with its feet on a floor at height 0 that it holds firmly."""
    with warnings.catch_warnings(action="ignore", category=wb.FileWarning):
        robot = wb.robots.load(
            file, keyframe="home", self_contact=False, contact_points=16, obstacles=[wb.floor(friction=0.8)]
        )
    root = next(j.child for j in robot.joints if j.kind == "free")
    painted = [dataclasses.replace(b, color=TRUNK if b.name == root else LEGS) for b in robot.bodies]
    firm = {"stiffness": 3e8, "damping": 3e9, "viscosity": 1e8}
    laws = [dataclasses.replace(law, **firm) for law in robot.contacts]
    robot = dataclasses.replace(robot, bodies=painted, contacts=laws)
    return wb.robots.set_down(robot)


@functools.cache
def course_of(file: Path, ground: str, length: float, cell: float = CELL, halves: int = 1) -> Course:
    """The robot on a ground, after it has settled.

    Args:
        file: MJCF of the robot.
        ground: One of `GROUNDS`.
        length: Distance for which there is ground in front of the robot [m].
        cell: Size of a cell of the ground [m].
        halves: Divisor of the length of the steps.
    """
    robot = robot_of(file)
    if ground == "floor":
        sim = wb.Simulation(robot, wb.Articulated(), STEP, substeps=8 * halves)
    else:
        sim = wb.Simulation(scene_on(robot, ground, length), wb.Coupled(wb.MPM(cell)), STEP)
        if halves > 1:
            sim = wb.Simulation(sim.scene, sim.solver, STEP, substeps=halves * sim.substeps)
    with torch.no_grad():
        start = sim.rollout(None, round(SETTLE / STEP)).final
    reach = torch.tensor([a.reach for a in robot.actuators], dtype=torch.float64)
    return Course(sim, start, reach)


def scene_on(robot: wb.Scene, ground: str, length: float) -> wb.Scene:
    """The robot on a bed of sand or snow in a tray, on whose floor its feet would stand if they sank so deep."""
    side = NARROW if length <= NEAR else WIDE
    low, high = (-0.28, -side, -DEPTH), (0.24 + length, side, 0.0)
    bed = wb.SoftBody("bed", wb.shapes.Box(low, high), MATERIALS[ground], friction=0.5, color=COLORS[ground])
    room = low, (*high[:2], 0.12)
    laws = [dataclasses.replace(law, solid="wall_z_low", name=None) for law in robot.contacts]
    return dataclasses.replace(
        robot, bodies=[bed, *robot.rigid], contacts=laws, obstacles=wb.walls(*room, "friction", 0.5), domain=room
    )


def first_gait(seed: int) -> torch.Tensor:
    """A gait that steps on the spot, with diagonal legs in phase and small random differences, shape (3, 12) [rad].

    The rows are mean, sine and cosine.
    """
    gait = 0.02 * torch.randn(3, 12, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    gait[2, 2::3] += 0.1 * torch.tensor([1.0, -1.0, -1.0, 1.0])  # knees of FR, FL, RR and RL
    return gait.clamp(-LARGEST, LARGEST)


def targets(gait: torch.Tensor, steps: int) -> torch.Tensor:
    """Changes of the targets in each control interval, which begin within a quarter of a period [rad]."""
    t = STEP * torch.arange(steps, dtype=gait.dtype)[:, None]
    wave = 2.0 * math.pi * t / PERIOD
    return (gait[0] + gait[1] * wave.sin() + gait[2] * wave.cos()) * (4.0 * t / PERIOD).clamp(max=1.0)


def walk(course: Course, gait: torch.Tensor, periods: float) -> wb.Trajectory:
    """The motion with a gait; the observation has the joint coordinates."""
    steps = round(periods * PERIOD / STEP)
    control = (targets(gait, steps) / course.reach).to(course.start.time.dtype)
    return course.sim.rollout(control, steps, course.start, observe=lambda state: state.q)


def walk_in_parts(course: Course, gait: torch.Tensor, periods: float, part: float) -> torch.Tensor:
    """Joint coordinates of the same motion, shape (steps, coordinates); gradients end at the ends of parts.

    Only the place of the trunk passes them on: it does not matter where a stride begins. Feet that slip and sink are
    chaotic, and gradients through several strides grow a thousandfold.

    Args:
        course: The robot on a ground.
        gait: The gait.
        periods: Periods of the motion.
        part: Periods of a part.
    """
    control = (targets(gait, round(periods * PERIOD / STEP)) / course.reach).to(course.start.time.dtype)
    first, state, found = base_of(course), course.start, []
    place = state.q[0, first : first + 3]
    for own in control.split(round(part * PERIOD / STEP)):
        motion = course.sim.rollout(own, len(own), state, observe=lambda state: state.q)
        q = motion.observation[0]
        moved = q[:, first : first + 3] - state.q[0, first : first + 3]
        found.append(torch.cat([q[:, :first], place + moved, q[:, first + 3 :]], dim=1))
        place, state = found[-1][-1, first : first + 3], motion.final.mapped(torch.Tensor.detach)
    return torch.cat(found)


def base_of(course: Course) -> int:
    """First coordinate of the joint on which the trunk is free."""
    return course.sim.model.robot.coordinates[next(j.name for j in course.sim.scene.joints if j.kind == "free")].start


@dataclasses.dataclass(frozen=True)
class Walk:
    """What counts in a motion, differentiably: means are over time.

    Attributes:
        distance: How far the trunk has gone forward [m].
        side: Mean square of the drift of the trunk to the side [m^2] and of its turn [rad^2].
        tilt: Mean square of the tilt of the trunk [rad^2].
        torque: Mean square of the torques of the motors [N^2 m^2].
        excess: Mean square of their torques beyond the limit of the file [N^2 m^2].
        most: Largest torque [N m].
    """

    distance: torch.Tensor
    side: torch.Tensor
    tilt: torch.Tensor
    torque: torch.Tensor
    excess: torch.Tensor
    most: float

    @property
    def loss(self) -> torch.Tensor:
        """Minus the distance [m], plus penalties."""
        return -self.distance + 2.0 * self.side + 2.0 * self.tilt + 2e-4 * self.torque + 1e-3 * self.excess


def judged(course: Course, q: torch.Tensor, gait: torch.Tensor) -> Walk:
    """What counts in a motion with the joint coordinates `q`, shape (steps, coordinates)."""
    start, at, base = course.start.q[0], course.sim.model.robot.coordinates, base_of(course)
    x, (i, j, k, w) = q[:, base : base + 3] - start[base : base + 3], q[:, base + 3 : base + 7].unbind(-1)
    up, ahead = 1.0 - 2.0 * (i * i + j * j), 2.0 * (i * j + k * w)  # z of the vertical axis, y of the forward axis
    servos = course.sim.scene.actuators
    own = torch.stack([q[:, at[a.joint].start] for a in servos], dim=1)
    home, gain = (torch.tensor([getattr(a, n) for a in servos], dtype=q.dtype) for n in ("target", "stiffness"))
    torque = gain * (home + targets(gait, len(q)) - own)
    side = x[:, 1].square() + ahead.square()
    excess = (torque.abs() - MOST).clamp(min=0.0)
    return Walk(
        x[-1, 0], side.mean(), 2.0 * (1.0 - up).mean(), torque.square().mean(), excess.square().mean(),
        float(torque.detach().abs().max()),
    )  # fmt: skip


def improve(course: Course, gait: torch.Tensor, method: str, stage: str, seed: int) -> wb.optimize.History:
    """Improve a gait in place, by either method in equally many rollouts."""

    def loss() -> torch.Tensor:
        return judged(course, walk_in_parts(course, gait, *LEARN[stage]), gait).loss

    gait.requires_grad_()
    unknown = wb.Unknown(gait, -LARGEST, LARGEST)
    if method == "cma":
        rule = wb.methods.CMA(RATE[stage], seed=seed + 1, population=sized(5, 2))
        return wb.minimize(loss, unknown, rule, episodes=ITERATIONS[stage] + 1, callback=told)
    rule = wb.methods.Torch(torch.optim.Adam, lr=RATE[stage], max_norm=1.0)
    return wb.minimize(loss, unknown, rule, iterations=ITERATIONS[stage], callback=told)


def told(history: wb.optimize.History) -> None:
    """Print the last iteration, for runs that take minutes."""
    print(f"{history.episodes[-1]:4d} rollouts, loss {history.loss[-1]:.4f}", flush=True)


def name_of(ground: str, method: str, seed: int) -> str:
    """Name of a gait in ground.npz."""
    return f"{ground} {method} {seed}"


def known() -> dict[str, np.ndarray]:
    """All gaits found so far, by the names of `name_of`."""
    return dict(np.load(FOUND)) if FOUND.exists() else {}


def tried(course: Course, gait: np.ndarray | None) -> tuple[wb.Trajectory, Walk]:
    """The motion with a gait, or with u = 0, for three periods, and what counts in it."""
    gait = torch.zeros(3, 12, dtype=torch.float64) if gait is None else torch.as_tensor(gait)
    with torch.no_grad():
        motion = walk(course, gait, TRY)
        return motion, judged(course, motion.observation[0], gait)


def print_learned(file: Path, stage: str, ground: str, method: str, seed: int) -> None:
    """Learn, and add the gait to ground.npz: from stepping on the spot, or on a ground from what that has given."""
    name = name_of("begun" if stage == "begin" else ground, method, seed)
    gait = first_gait(seed) if stage == "begin" or FAST else torch.as_tensor(known()[name_of("begun", "adam", seed)])
    improve(course_of(file, ground, NEAR), gait, method, stage, seed)
    if not FAST:
        np.savez(FOUND, **known() | {name: gait.detach().numpy()})
    found = tried(course_of(file, ground, FAR), gait.detach())[1]
    print(f"{name}: {float(found.distance):.3f} m in {TRY * PERIOD:.1f} s")


def print_standing(file: Path) -> None:
    """Print weight and sinkage of the feet on each ground; why a motion ends early is told on standard error."""
    print("| ground | cells [mm] | force / weight | depth of the lowest points of the feet [mm] |\n|---|---|---|---|")
    for ground, cell in (
        ("floor", CELL),
        *((g, c) for g in ("sand", "snow") for c in sized((CELL, *FINE), (CELL,))),
    ):
        try:
            course = course_of(file, ground, 0.0, cell)
        except wb.SimulationError as error:
            print(error, file=sys.stderr)
            print(f"| {ground} | {1e3 * cell:.0f} | ends early | |", flush=True)
            continue
        sim, motion, forces = course.sim, [course.start], []
        for _ in range(sized(10, 1)):  # the mean force of 0.1 s, in which the rest of the landing dies out
            motion.append(sim.step(motion[-1], torch.zeros(1, sim.channels)))
            found = sim.sense(motion[-1])
            pressed = -found.obstacle_force if ground == "floor" else found.matter_force
            forces.append(float(pressed[0, :, 2].sum()))
        feet = [
            (sim.model.robot.body(b.name), b.shape) for b in sim.scene.rigid if isinstance(b.shape, wb.shapes.Sphere)
        ]
        low = [
            float(found.position[0, k, 2])
            + float(found.rotation[0, k, 2].numpy() @ np.array(ball.center))
            - ball.radius
            for k, ball in feet
        ]
        weight = 9.81 * float(sim.parameter("mass")[0].sum())
        print(
            f"| {ground} | {1e3 * cell:.0f} | {np.mean(forces) / weight:.3f} | {-1e3 * np.mean(low):.1f} |", flush=True
        )


def print_table(file: Path) -> None:
    """Print how far each gait goes on each ground."""
    rows: dict[tuple[str, str], list] = {("u = 0", ""): [None]}
    for name, gait in sized(known(), {}).items():
        rows.setdefault(tuple(name.split()[:2]), []).append(gait)
    print(f"| learned | by | {' | '.join(f'{g} [mm]' for g in GROUNDS)} |\n|{5 * '---|'}")
    for (ground, method), kinds in rows.items():
        cells = []
        for other in GROUNDS:
            found = [1e3 * float(tried(course_of(file, other, FAR), gait)[1].distance) for gait in kinds]
            cells.append(f"{np.mean(found):.0f}" + (f" ± {np.std(found, ddof=1):.0f}" if len(found) > 1 else ""))
        print(f"| {ground} | {method} | {' | '.join(cells)} |", flush=True)


def print_check(file: Path, ground: str, method: str, seed: int) -> None:
    """Print how far the gait of a ground, and the one from which it was learned, go there when the simulation changes.

    The floor has no cells, and is the same everywhere. A motion that ends early is told on standard error.
    """
    changes: list[tuple[str, dict, float]] = [("as found", {}, 0.0), ("half the step", {"halves": 2}, 0.0)]
    if ground in MATERIALS:
        changes += [(f"start moved by {1e3 * shift:.1f} mm", {}, shift) for shift in SHIFTS]
        changes += [(f"cells of {1e3 * cell:.0f} mm", {"cell": cell}, 0.0) for cell in FINE]
    kinds = [known()[name] for name in (name_of("begun", "adam", seed), name_of(ground, method, seed))]
    print("| | start [mm] | learned [mm] | share kept of both |\n|---|---|---|---|")
    first: list[float] = []
    for title, finer, shift in changes:
        found = [distance(file, ground, gait, shift, **finer) for gait in kinds]
        first = first or found
        shares = ", ".join(f"{100.0 * f / o:.0f} %" for f, o in zip(found, first, strict=True))
        print(f"| {title} | {' | '.join(f'{f:.0f}' for f in found)} | {shares} |", flush=True)


def distance(file: Path, ground: str, gait: np.ndarray, shift: float, **finer: float) -> float:
    """How far the trunk goes with a gait [mm]; nan where the motion ends early, with the reason on standard error.

    Args:
        file: MJCF of the robot.
        ground: One of `GROUNDS`.
        gait: The gait.
        shift: How far forward the robot begins on its ground [m].
        finer: Changes of `course_of`.
    """
    try:
        course = course_of(file, ground, FAR, **finer)
        q = course.start.q.clone()
        q[0, base_of(course)] += shift
        course = dataclasses.replace(course, start=dataclasses.replace(course.start, q=q))
        return 1e3 * float(tried(course, gait)[1].distance)
    except wb.SimulationError as error:
        print(error, file=sys.stderr)
        return math.nan


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("stand", "begin", "learn", "table", "check", "play"))
    parser.add_argument("robot", type=Path, metavar="A1", help="MJCF of the robot")
    parser.add_argument("ground", choices=GROUNDS, nargs="?", default="floor")
    parser.add_argument("--policy", choices=GROUNDS, help="the ground on which the gait was learned")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--method", choices=("adam", "cma"), default="adam")
    parser.add_argument("--usd", type=Path, help="where to write the motion as USD")
    parser.add_argument("--film", type=Path, help="where to write the film: .gif, .mp4, or .png for a strip")
    asked = parser.parse_args()
    if asked.what in ITERATIONS:
        print_learned(asked.robot, asked.what, asked.ground, asked.method, asked.seed)
    elif asked.what == "stand":
        print_standing(asked.robot)
    elif asked.what == "table":
        print_table(asked.robot)
    elif asked.what == "check":
        print_check(asked.robot, asked.ground, asked.method, asked.seed)
    else:
        gait = known().get(name_of(asked.policy or asked.ground, asked.method, asked.seed))
        motion, found = tried(course_of(asked.robot, asked.ground, FAR), gait)
        print(found)
        if asked.usd:
            wb.usd.write(asked.usd, motion)
        if asked.film and asked.film.suffix == ".png":
            wb.view.film_strip(motion, 5).save(asked.film)
        elif asked.film:
            wb.view.animate(asked.film, motion, fps=20.0, seconds=2.0 * motion.steps * STEP, width=480)


if __name__ == "__main__":
    main()
