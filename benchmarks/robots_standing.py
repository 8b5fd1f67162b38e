"""Do robots stand? Robot files in warpbots and MuJoCo: a table, and a picture of the final poses.

    python benchmarks/robots_standing.py FILE... [--solver articulated|projective] [--picture PNG]

Each FILE is URDF or MJCF, with options after commas: ``@NAME`` starts at a keyframe (the default is the keyframe "home"
if there is one), ``float`` lets the base of URDF float, ``bare`` leaves out equality constraints, ``alone`` omits the
static world of the file, ``apart`` lets the links of a robot pass through one another, and ``WORD=VALUE`` sets the
coordinate of all joints with WORD in their names, as in ``a1.urdf,float,thigh=0.8,calf=-1.6``. Joints that start
outside of their limits are moved to them. Floating robots without a keyframe are placed on the floor; if the file has
no floor, one is added in both programs, at the height of the option ``floor=HEIGHT`` (0 by default).

Robots hold their pose for 2 s in steps of 2 ms: by the position actuators of the file if it has no other motors, at
the controls of the keyframe if there is one, or else by the servos of `warpbots.robots.hold_pose`. MuJoCo gets the same
gains, as actuators or as springs and dampers. The table gives the largest final deflection of
a joint [rad or m], the descent [m] and the tilt [degrees] of the base, each with MuJoCo's in parentheses, and figures
of the free motion of the solver.

For `Articulated` this is the largest difference of a joint coordinate from MuJoCo's after 50 ms of free motion without
contacts, motors and limits, in steps of 0.1 ms here and 0.01 ms there [rad or m].

For `ProjectiveDynamics` robots move for 50 ms without contacts, with all motors at u = 0.3, within their limits. The
table gives the largest difference of a joint coordinate from `Articulated("bdf1")`, which takes the same steps of 1 ms
[rad or m], its difference from `Articulated` of second order in steps of 0.1 ms, and how many times smaller this
difference is in steps of 0.5 ms. It also gives the force on the floor in the last step, divided by the weight of a
robot that floats and the pull of the springs that its file attaches to its base.
"""

import argparse
import contextlib
import dataclasses
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import mujoco  # noqa: TID253
import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

from fast import sized  # noqa: E402

import warpbots as wb  # noqa: E402
from warpbots.robots.mujoco_source import Source, read  # noqa: E402

STEP, SECONDS = 2e-3, sized(2.0, 0.01)
FREE, FINE, COARSE = 0.05, 1e-5, 1e-4
"""Free motion [s], and the steps of MuJoCo and of warpbots [s]."""
DRIVEN = 0.3
"""Control signal of all motors in the free motion of projective dynamics."""

SOLVERS = {"articulated": wb.Articulated, "projective": wb.ProjectiveDynamics}

_OFF = mujoco.mjtDisableBit


@dataclasses.dataclass
class Robot:
    """A file of a robot, and the options with which the file is tested."""

    path: Path
    keyframe: str | None
    floats: bool
    bare: bool
    alone: bool
    apart: bool
    floor: float
    words: dict[str, float]

    @classmethod
    def parse(cls, text: str) -> "Robot":
        """Parse an argument of the command line."""
        path, *options = text.split(",")
        words = {k: float(v) for k, v in (option.split("=") for option in options if "=" in option)}
        keyframe = next((option[1:] for option in options if option.startswith("@")), None)
        flags = (word in options for word in ("float", "bare", "alone", "apart"))
        return cls(Path(path), keyframe, *flags, words.pop("floor", 0.0), words)


@dataclasses.dataclass
class Case:
    """A robot in both programs, in its initial pose."""

    source: Source
    scene: wb.Scene
    model: mujoco.MjModel
    data: mujoco.MjData
    held: dict[str, float]
    """Coordinates at which the joints are held."""


def case_of(robot: Robot) -> Case:
    """Build the robot in both programs, in the same pose and with the same motors."""
    source = read(robot.path)
    for parts, names in ((source.spec.joints, source.joints), (source.spec.bodies, source.bodies)):
        for part in (p for p in parts if not p.name):
            part.name = names[part.id]
    keys = [source.model.key(k).name for k in range(source.model.nkey)]
    keyframe = robot.keyframe or ("home" if "home" in keys else None)
    if robot.alone:
        for geom in list(source.spec.worldbody.geoms):
            source.spec.delete(geom)
    given = mujoco.mjtGeom.mjGEOM_PLANE in source.model.geom_type and not robot.alone
    floor = () if given else (wb.floor(robot.floor, friction=1.0),)
    if floor:
        source.spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], pos=[0, 0, robot.floor], name="standing_floor"
        )
    fixed = False if robot.floats else None
    scene = wb.robots.load(
        robot.path, fixed_base=fixed, obstacles=floor, surroundings=not robot.alone, keyframe=keyframe,
        ignore_loops=robot.bare, self_contact=not robot.apart,
    )  # fmt: skip
    servos = [a for a in scene.actuators if isinstance(a, wb.actuators.Servo)]
    own = keyframe is not None and servos and len(servos) == len(scene.actuators) == source.model.nu
    if not own:
        scene = wb.robots.hold_pose(scene, _pose(scene, robot.words))
    if keyframe is None and any(joint.kind == "free" for joint in scene.joints):
        scene = wb.robots.set_down(scene, robot.floor)
    if robot.floats:
        for body in source.spec.worldbody.bodies:
            body.add_freejoint(name=next(j.name for j in scene.joints if j.child == body.name))
    model = source.spec.compile()
    model.opt.timestep = STEP
    if robot.apart:
        model.geom_conaffinity[model.geom_bodyid > 0] = 0
    data = mujoco.MjData(model)
    if own:
        data.ctrl = model.key_ctrl[keys.index(keyframe)]
    else:
        _drive(model, scene)
    if robot.bare:
        model.opt.disableflags |= _OFF.mjDSBL_EQUALITY
    _start(model, data, scene)
    joints = {j.name: j for j in scene.joints}
    held = {a.joint: joints[a.joint].start[a.axis] for a in scene.actuators if isinstance(a, wb.actuators.Servo)}
    return Case(source, scene, model, data, held)


def _pose(scene: wb.Scene, words: dict[str, float]) -> dict[str, float]:
    """Coordinates of joints that options give by name, and of joints that start outside of their limits."""
    pose = {}
    for joint in scene.joints:
        if joint.kind not in ("revolute", "prismatic"):
            continue
        q = joint.start[0] if joint.start else 0.0
        for word, value in words.items():
            q = value if word in joint.name else q
        if joint.lower is not None:
            q = min(max(q, joint.lower[0]), joint.upper[0])
        if q != (joint.start[0] if joint.start else 0.0):
            pose[joint.name] = q
    return pose


def _smooth(scene: wb.Scene) -> list[wb.RigidBody]:
    """Rigid bodies of the scene without contact."""
    return [dataclasses.replace(b, points=0) for b in scene.rigid]


def _drive(model: mujoco.MjModel, scene: wb.Scene) -> None:
    """Replace all actuators of MuJoCo by springs and dampers equal to the servos of a scene."""
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model.opt.disableflags |= _OFF.mjDSBL_ACTUATION
    for motor in (a for a in scene.actuators if isinstance(a, wb.actuators.Servo)):
        j = model.joint(motor.joint).id
        at, stiffness = model.jnt_qposadr[j], model.jnt_stiffness[j] + motor.stiffness
        torque = model.jnt_stiffness[j] * model.qpos_spring[at] + motor.stiffness * motor.target
        model.jnt_stiffness[j], model.qpos_spring[at] = stiffness, torque / stiffness
        model.dof_damping[model.jnt_dofadr[j]] += motor.damping


def _start(model: mujoco.MjModel, data: mujoco.MjData, scene: wb.Scene) -> None:
    for joint in scene.joints:
        if joint.kind == "fixed" or joint.start is None:
            continue
        at, q = model.joint(joint.name).qposadr[0], np.array(joint.start)
        if joint.kind in ("ball", "free"):
            q[-4:] = np.roll(q[-4:], 1)
        data.qpos[at : at + len(q)] = q


def compared(case: Case, sim: wb.Simulation, state: object) -> float:
    """Largest difference of joint coordinates between both programs [rad or m]."""
    worst = 0.0
    for joint in case.scene.joints:
        if joint.kind == "fixed":
            continue
        own = state.q[0, sim.model.robot.coordinates[joint.name]].numpy().copy()
        at = case.model.joint(joint.name).qposadr[0]
        other = case.data.qpos[at : at + len(own)].copy()
        if joint.kind in ("ball", "free"):
            other[-4:] = np.roll(other[-4:], -1)
            other[-4:] *= math.copysign(1.0, own[-4:] @ other[-4:])
        worst = max(worst, float(np.abs(own - other).max()))
    return worst


def freely(case: Case) -> float:
    """Largest difference of `Articulated` from MuJoCo after free motion [rad or m]."""
    scene = dataclasses.replace(
        case.scene, actuators=(), contacts=(),
        bodies=_smooth(case.scene),
        joints=[dataclasses.replace(j, lower=None, upper=None) for j in case.scene.joints],
    )  # fmt: skip
    sim = wb.Simulation(scene, wb.Articulated(), dt=COARSE)
    state = sim.rollout(None, round(FREE / COARSE)).final
    model = case.source.spec.compile()
    model.opt.timestep, model.opt.integrator = FINE, mujoco.mjtIntegrator.mjINT_IMPLICIT
    model.opt.disableflags |= _OFF.mjDSBL_CONSTRAINT | _OFF.mjDSBL_ACTUATION
    model.body_gravcomp[:] = 0.0
    data = mujoco.MjData(model)
    _start(model, data, scene)
    mujoco.mj_step(model, data, round(FREE / FINE))
    return compared(dataclasses.replace(case, scene=scene, model=model, data=data), sim, state)


def driven_freely(case: Case) -> tuple[float, float, float]:
    """Free motion of `ProjectiveDynamics` with motors and limits, compared with `Articulated`.

    Returns:
        The difference from `Articulated("bdf1")` in the same steps, the difference from `Articulated` of second order
        in fine steps, both [rad or m], and how many times smaller the latter is in half of the steps.
    """
    scene = dataclasses.replace(case.scene, contacts=(), obstacles=(), bodies=_smooth(case.scene))

    def moved(solver: object, dt: float) -> object:
        sim = wb.Simulation(scene, solver, dt=dt, substeps=1)
        steps = round(FREE / dt)
        return sim.rollout([[DRIVEN] * sim.channels] * steps, steps).final.q

    step, implicit = STEP / 2.0, wb.ProjectiveDynamics(collisions=False)
    ends = [moved(implicit, h) for h in (step, step / 2.0)]
    same, fine = moved(wb.Articulated("bdf1"), step), moved(wb.Articulated(), COARSE)
    errors = [float((end - fine).abs().max()) for end in ends]
    return float((ends[0] - same).abs().max()), errors[0], errors[0] / errors[1]


def _away(case: Case, coordinate: Callable[[str], float]) -> float:
    return max((abs(coordinate(name) - home) for name, home in case.held.items()), default=0.0)


def _base(case: Case) -> int:
    """Index of the first floating body, or else of the first body that also exists in MuJoCo."""
    names = {j.child for j in case.scene.joints if j.kind == "free"} or set(case.source.bodies)
    return next(k for k, b in enumerate(case.scene.rigid) if b.name in names)


def _tilt(before: np.ndarray, after: np.ndarray) -> float:
    """Angle between the z axes of two rotations [degrees]."""
    up = before.T @ np.array([0.0, 0.0, 1.0])
    return math.degrees(math.acos(np.clip((after @ up)[2], -1.0, 1.0)))


def _pull(scene: wb.Scene, sim: wb.Simulation, q: np.ndarray) -> float:
    """Downward force of the springs that tie floating bodies to their neutral poses [N]."""
    tied = [j for j in scene.joints if j.kind == "free"]
    return sum(j.stiffness[2] * (q[sim.model.robot.coordinates[j.name]][2] - j.neutral[2]) for j in tied)


def standing(case: Case, solver: object) -> tuple[dict[str, float], tuple[np.ndarray, np.ndarray]]:
    """Hold a pose in both programs; returns the printed figures and the final poses of the bodies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sim = wb.Simulation(case.scene, solver, dt=STEP, substeps=1)
    steps, base = round(SECONDS / STEP), _base(case)
    begun = time.perf_counter()
    first = sim.sense(sim.state())
    final = sim.rollout(None, steps).final
    taken = time.perf_counter() - begun
    last = sim.sense(final)
    q = final.q[0].numpy()
    result = {
        "away": _away(case, lambda name: q[sim.model.robot.coordinates[name]][0]),
        "down": float(first.position[0, base, 2] - last.position[0, base, 2]),
        "tilt": _tilt(first.rotation[0, base].numpy(), last.rotation[0, base].numpy()),
        "speed": float(final.qd.abs().max()),
        "seconds": taken,
    }
    if isinstance(solver, wb.ProjectiveDynamics):
        weight = 9.81 * float(sim.parameter("mass")[0].sum()) + _pull(case.scene, sim, q)
        result["share"] = -float(sim.report().obstacle_force[0, :, 2].sum()) / weight
    model, data = case.model, case.data
    body = model.body(case.scene.rigid[base].name).id
    mujoco.mj_forward(model, data)
    height, turn = data.xpos[body, 2].copy(), data.xmat[body].reshape(3, 3).copy()
    mujoco.mj_step(model, data, steps)
    result |= {
        "their away": _away(case, lambda name: data.qpos[model.joint(name).qposadr[0]]),
        "their down": float(height - data.xpos[body, 2]),
        "their tilt": _tilt(turn, data.xmat[body].reshape(3, 3)),
    }
    return result, (last.position[0].numpy(), last.rotation[0].numpy())


def picture(places: list[tuple[str, wb.Scene, tuple[np.ndarray, np.ndarray]]], path: Path) -> None:
    """Draw all robots in one figure."""
    import matplotlib.pyplot as plt

    columns = 5
    rows = math.ceil(len(places) / columns)
    figure, axes = plt.subplots(rows, columns, figsize=(2.1 * columns, 2.2 * rows), squeeze=False)
    for ax in axes.flat:
        ax.axis("off")
    for ax, (name, scene, poses) in zip(axes.flat, places, strict=False):
        wb.view.draw(scene, poses=poses, ax=ax)
        for text in list(ax.texts):
            text.remove()
        ax.set_title(name, fontsize=7, pad=2)
    figure.subplots_adjust(0.0, 0.0, 1.0, 0.97, 0.02, 0.1)
    figure.savefig(path, dpi=110)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress warnings about parts of files that are not simulated; `third_party_files.py` reports them."""
    with warnings.catch_warnings(action="ignore", category=wb.FileWarning):
        yield


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="+", metavar="FILE", help="URDF or MJCF, with options after commas")
    parser.add_argument("--solver", choices=SOLVERS, default="articulated")
    parser.add_argument("--picture", type=Path, help="where to draw the robots at the end, as PNG")
    asked = parser.parse_args()
    solver = SOLVERS[asked.solver]()
    implicit = isinstance(solver, wb.ProjectiveDynamics)
    free = ["from bdf1", "from second order", "halved step", "force / weight"] if implicit else ["free motion"]
    columns = ["robot", "joint velocities", "mass [kg]", "deflection [rad]", "descent [mm]", "tilt [deg]", *free]
    print(f"| {' | '.join([*columns, 'time [s]'])} |\n|{(len(columns) + 1) * '---|'}")
    places = []
    for robot in map(Robot.parse, asked.robots):
        name = f"{robot.path.parent.name}/{robot.path.name}"
        try:
            with _quiet():
                case = case_of(robot)
            free = "{:.0e} | {:.0e} | {:.2f}".format(*driven_freely(case)) if implicit else f"{freely(case):.0e}"
            r, poses = standing(case, solver)
        except (ValueError, RuntimeError, OSError) as fault:
            print(f"| {name} | {type(fault).__name__}: {' '.join(str(fault).split())[:200]} |", flush=True)
            continue
        places.append((name.removesuffix(robot.path.suffix), case.scene, poses))
        if implicit:
            free += f" | {r['share']:.4f}" if any(j.kind == "free" for j in case.scene.joints) else " | -"
        print(
            f"| {name} | {case.model.nv} | {case.model.body_mass.sum():.3g} | "
            f"{r['away']:.4f} ({r['their away']:.4f}) | {1e3 * r['down']:.1f} ({1e3 * r['their down']:.1f}) | "
            f"{r['tilt']:.2f} ({r['their tilt']:.2f}) | {free} | {r['seconds']:.1f} |",
            flush=True,
        )
    if asked.picture and places:
        picture(places, asked.picture)


if __name__ == "__main__":
    main()
