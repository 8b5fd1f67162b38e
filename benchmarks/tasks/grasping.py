"""Soft pads on the fingers of a robot arm, and a plan with which it picks up cubes; `arm.py` and tests use it.

Everything acts on the records of a scene: the robot stays as its file describes it. Positions of joints, weights and
the ways between them come from gradients of readings.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from fast import sized
from scipy.interpolate import CubicSpline

import warpbots as wb

__all__ = [
    "GAP", "HANDS", "Arm", "Cube", "Hand", "Plan", "around", "at", "grasp_scene", "held_loads", "painted", "small_arm",
    "store",
]  # fmt: skip

GAP = 3e-4
"""Between bodies and the floor at the start [m]."""
KNOTS = 6
"""Parts of a way of the hand, through whose ends joints follow splines."""


@dataclasses.dataclass(frozen=True)
class Hand:
    """A hand with two fingers on slides.

    Attributes:
        link: The link that carries the fingers.
        fingers: The links of the fingers.
        slides: The joints of the fingers, which open with their coordinates.
        pad: A soft pad in the frame of each finger [m]; its back is inside the finger.
        middle: The point between the pads in the frame of `link` [m].
        distance: From the axis of the base to the things it picks up [m].
        crosswise: Angle about the vertical from its home pose to the pose in which the fingers close at right angles
            to the way out from the base [rad].
    """

    link: str
    fingers: tuple[str, str]
    slides: tuple[str, str]
    pad: wb.shapes.Box
    middle: tuple[float, float, float]
    distance: float
    crosswise: float = 0.0


_PAD = wb.shapes.Box((-0.0085, -0.006, 0.036), (0.0085, 0.002, 0.053))
_MIDDLE = 0.0, 0.0, 0.0584 + 0.0445
HANDS = (
    Hand(
        "hand", ("left_finger", "right_finger"), ("finger_joint1", "finger_joint2"), _PAD, _MIDDLE, 0.5,
        crosswise=-math.pi / 2.0,
    ),
    Hand(
        "panda_hand", ("panda_leftfinger", "panda_rightfinger"), ("panda_finger_joint1", "panda_finger_joint2"), _PAD,
        _MIDDLE, 0.5, crosswise=-math.pi / 2.0,
    ),
)  # fmt: skip
"""Hands of the Panda of Franka Robotics, by the names of links in its MJCF of MuJoCo Menagerie and in its URDF."""


def small_arm() -> tuple[wb.Scene, Hand]:
    """A small arm of a turret, two links and a hand that points downwards, with two fingers on slides; and its hand."""
    box, at_rest = wb.shapes.Box, (0.0, 0.7, 1.4, math.pi - 2.1)
    finger = {"shape": box((-0.01, 0.0, 0.55), (0.01, 0.012, 0.615)), "density": 1500.0, "color": (0.32, 0.34, 0.38)}
    white = {"density": 600.0, "color": (0.92, 0.92, 0.9)}
    bodies = [
        wb.RigidBody("base", wb.shapes.Cylinder((0, 0, 0), (0, 0, 0.05), 0.06), **white),
        wb.RigidBody("turret", wb.shapes.Cylinder((0, 0, 0.052), (0, 0, 0.12), 0.04), **white),
        wb.RigidBody("upper", wb.shapes.Capsule((0, 0, 0.1), (0, 0, 0.3), 0.025), **white),
        wb.RigidBody("lower", wb.shapes.Capsule((0, 0, 0.3), (0, 0, 0.5), 0.02), **white),
        wb.RigidBody("hand", box((-0.015, -0.06, 0.51), (0.015, 0.06, 0.545)), 600.0, color=(0.32, 0.34, 0.38)),
        wb.RigidBody("left", **finger),
        wb.RigidBody("right", **finger, rotation=_about_z(math.pi)),
    ]
    hinges = ("turn", "base", "turret", 0.05, "z"), ("shoulder", "turret", "upper", 0.1, "y"), \
        ("elbow", "upper", "lower", 0.3, "y"), ("wrist", "lower", "hand", 0.5, "y")  # fmt: skip
    axes = {"y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
    joints = [wb.Joint("stand", "fixed", None, "base")]
    joints += [
        wb.Joint(name, "revolute", parent, child, (0, 0, z), axis=axes[axis], start=q, armature=0.01)
        for (name, parent, child, z, axis), q in zip(hinges, at_rest, strict=True)
    ]
    joints += [
        wb.Joint(f"{side} slide", "prismatic", "hand", side, axis=(0.0, way, 0.0), start=0.035, lower=0.0, upper=0.035)
        for side, way in (("left", 1.0), ("right", -1.0))
    ]
    servos = [
        wb.actuators.Servo(name, name, 500.0, 25.0, target=q, reach=3.0)
        for (name, *_), q in zip(hinges, at_rest, strict=True)
    ]
    pad = box((-0.008, -0.006, 0.595), (0.008, 0.002, 0.611))
    hand = Hand("hand", ("left", "right"), ("left slide", "right slide"), pad, (0.0, 0.0, 0.603), 0.26)
    return wb.Scene(bodies, servos, joints=joints, name="arm"), hand


@dataclasses.dataclass(frozen=True)
class Cube:
    """A cube on the floor.

    Attributes:
        name: Its name.
        place: Distance from the axis of the base [m], and angle about this axis [degrees].
        side: Its edge [m].
        density: Mass per volume [kg/m^3].
        modulus: Young's modulus [Pa]; None for a rigid cube.
        color: Red, green and blue in [0, 1].
        height: Of its lower side at the start [m].
    """

    name: str
    place: tuple[float, float]
    side: float = 0.04
    density: float = 1000.0
    modulus: float | None = None
    color: tuple[float, float, float] = (0.3, 0.5, 0.75)
    height: float = GAP

    @property
    def mass(self) -> float:
        """Its mass [kg]."""
        return self.density * self.side**3

    @property
    def turn(self) -> np.ndarray:
        """Rotation from the x axis to its place, shape (3, 3)."""
        c, s = (f(math.radians(self.place[1])) for f in (math.cos, math.sin))
        return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])

    @property
    def center(self) -> np.ndarray:
        """Its centre at the start [m], shape (3,)."""
        return self.turn[:, 0] * self.place[0] + [0.0, 0.0, self.side / 2.0 + self.height]

    def body(self, friction: float) -> wb.RigidBody | wb.SoftBody:
        """The cube, with four cells across if it is soft."""
        half = self.side / 2.0
        box = wb.shapes.Box((-half,) * 3, (half,) * 3)
        common = {"friction": friction, "color": self.color}
        if self.modulus is None:
            return wb.RigidBody(self.name, box, self.density, position=self.center, rotation=self.turn, **common)
        material = wb.Material(self.modulus, 0.3, self.density, damping=2e-3)
        return wb.SoftBody(self.name, _placed(box, half / 2.0, self.center, self.turn), material, **common)


def _placed(box: wb.shapes.Box, cells: float, position: np.ndarray, rotation: np.ndarray) -> wb.shapes.TetMesh:
    mesh = wb.meshing.tetrahedra(box, cells)
    return wb.shapes.TetMesh(mesh.vertices @ np.asarray(rotation).T + position, mesh.tets)


def grasp_scene(
    robot: wb.Scene, hand: Hand, cubes: Sequence[Cube], *, friction: float = 0.6, cells: float = 4e-3,
    modulus: float = 2e5, force: float = 20.0, damping: float = 20.0,
    bodies: Sequence[wb.SoftBody | wb.RigidBody] = (), obstacles: Sequence[wb.Obstacle] = (),
) -> wb.Scene:  # fmt: skip
    """A robot with soft pads and motors at its fingers, and cubes or other things on a floor.

    Args:
        robot: The robot, with servos on the joints of the arm.
        hand: Its hand.
        cubes: The cubes.
        friction: Coulomb coefficient of pads, cubes and floor [1].
        cells: Size of the cells of the pads [m].
        modulus: Young's modulus of the pads [Pa].
        force: Force with which u = -1 closes a finger [N].
        damping: Of the slides, which limits the speed of the fingers [N s/m].
        bodies: Other things.
        obstacles: Obstacles beside the floor.
    """
    arm = Arm(robot, hand)
    rubber = wb.Material(modulus, 0.3, 1100.0, damping=2e-3)
    pads = [
        wb.SoftBody(
            f"{finger} pad", _placed(hand.pad, cells, *arm.pose(finger)), rubber, friction=friction,
            color=(0.91, 0.45, 0.2),
        )
        for finger in hand.fingers
    ]  # fmt: skip
    motors = [wb.actuators.Torque(f"grip {slide}", slide, force) for slide in hand.slides]
    joints = [dataclasses.replace(j, damping=(damping,)) if j.name in hand.slides else j for j in robot.joints]
    return dataclasses.replace(
        robot, bodies=(*robot.bodies, *pads, *(c.body(friction) for c in cubes), *bodies),
        actuators=(*robot.actuators, *motors), joints=joints, contacts=None,
        obstacles=(wb.floor(friction=friction), *obstacles),
    )  # fmt: skip


class Arm:
    """Kinematics and weight of a robot without its surroundings, and their gradients.

    Attributes:
        hand: Its hand.
        servos: Its servos, whose channels come first.
        start: Coordinates of the servos at the start [rad or m], shape (servos,).
    """

    def __init__(self, robot: wb.Scene, hand: Hand):
        bare = [dataclasses.replace(b, points=0) for b in robot.rigid]
        alone = dataclasses.replace(robot, bodies=bare, contacts=(), obstacles=())
        self._sim = wb.Simulation(alone, wb.Articulated(), 1e-3)
        self.hand, self.servos = hand, [a for a in robot.actuators if isinstance(a, wb.actuators.Servo)]
        self._at = self.coordinates(self._sim)
        self.start = self._sim.state().q[0, self._at]

    def coordinates(self, sim: wb.Simulation) -> list[int]:
        """Indices of the coordinates of the servos in a simulation with the robot."""
        return [sim.model.robot.coordinates[a.joint].start + a.axis for a in self.servos]

    def _readings(self, q: torch.Tensor) -> object:
        state = self._sim.state()
        whole = state.q.clone()
        whole[:, self._at] = q
        return self._sim.sense(dataclasses.replace(state, q=whole))

    def pose(self, link: str, q: torch.Tensor | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Position [m] and rotation matrix of a link, at the start or with the coordinates `q` of the servos."""
        readings, k = self._readings(self.start if q is None else q), self._sim.model.robot.body(link)
        return readings.position[0, k].numpy(), readings.rotation[0, k].numpy()

    def middle(self, q: torch.Tensor | None = None) -> np.ndarray:
        """The point between the pads [m], shape (3,)."""
        position, rotation = self.pose(self.hand.link, q)
        return position + rotation @ self.hand.middle

    def reach(self, q: torch.Tensor, middle: np.ndarray, rotation: np.ndarray) -> torch.Tensor:
        """Coordinates near `q` at which the point between the pads is at `middle` [m] and the hand has `rotation`.

        Steps of Gauss and Newton of least length; the Jacobian consists of gradients of readings.

        Raises:
            ValueError: The arm does not reach it.
        """
        k, goal = self._sim.model.robot.body(self.hand.link), torch.as_tensor(middle)
        turned, own = torch.as_tensor(rotation), torch.tensor(self.hand.middle, dtype=torch.float64)

        def error(q: torch.Tensor) -> torch.Tensor:
            readings = self._readings(q)
            R = readings.rotation[0, k]
            missing = torch.linalg.cross(R, turned, dim=0).sum(dim=1) / 2.0
            return torch.cat([readings.position[0, k] + R @ own - goal, 0.3 * missing])

        for _ in range(50):
            r = error(q)
            if float(r.norm()) < 1e-7:
                return q
            J = torch.autograd.functional.jacobian(error, q)
            q = q - min(1.0, 0.3 / float(r.norm())) * torch.linalg.pinv(J, rtol=1e-4) @ r
        raise ValueError(f"the hand does not reach {middle.round(3).tolist()} m: {float(r.norm()):.2g} are missing")

    def way(self, q: torch.Tensor, middle: np.ndarray) -> list[torch.Tensor]:
        """Coordinates at `KNOTS` + 1 points of a way of the point between the pads from the coordinates `q` on.

        Distance from the axis of the base, angle about it, and height change in proportion; the hand turns with the
        angle.

        Args:
            q: Coordinates of the servos at the start of the way [rad or m], shape (servos,).
            middle: Where the way ends [m].
        """
        begin, end, home = (_cylindrical(x) for x in (self.middle(q), middle, self.middle()))
        _, rotation = self.pose(self.hand.link)
        knots = [q]
        for share in np.arange(1, KNOTS + 1) / KNOTS:
            radius, angle, height = begin + share * (end - begin)
            place = np.array([radius * math.cos(angle), radius * math.sin(angle), height])
            knots.append(self.reach(knots[-1], place, _about_z(angle - home[1]) @ rotation))
        return knots

    def turned(self, q: torch.Tensor, angle: float) -> torch.Tensor:
        """Coordinates at which the hand is where the coordinates `q` place it, turned about the vertical by `angle`."""
        middle, (_, rotation) = self.middle(q), self.pose(self.hand.link, q)
        for part in np.linspace(0.0, angle, KNOTS + 1)[1:]:
            q = self.reach(q, middle, _about_z(part) @ rotation)
        return q

    def weight(self, q: torch.Tensor) -> torch.Tensor:
        """Torques that carry the weight of the robot, the derivative of its potential energy [N m or N]."""
        q = q.clone().requires_grad_()
        return torch.autograd.grad(self._readings(q).potential_energy.sum(), q)[0]

    def control(self, path: torch.Tensor, dt: float, every: int = 10) -> torch.Tensor:
        """Signals with which the servos follow a path, apart from the inertia of the links.

        Args:
            path: Coordinates at the ends of control intervals [rad or m], shape (steps, servos).
            dt: Length of a control interval [s].
            every: Number of intervals after which the weight is computed anew.
        """
        gains = torch.tensor([[a.stiffness, a.damping, a.target, a.reach] for a in self.servos], dtype=torch.float64).T
        velocity = torch.diff(path, dim=0, prepend=path[:1]) / dt
        knots = np.unique(np.append(np.arange(0, len(path), every), len(path) - 1))
        weights = np.stack([self.weight(path[k]).numpy() for k in knots], axis=1)
        weight = np.stack([np.interp(np.arange(len(path)), knots, own) for own in weights], axis=1)
        return (path + (gains[1] * velocity + torch.as_tensor(weight)) / gains[0] - gains[2]) / gains[3]


def around(
    robot: wb.Scene, hand: Hand, middle: np.ndarray, width: float, gap: float = 5e-4, turn: float = 0.0
) -> wb.Scene:
    """The robot with its hand around a thing from the start, and its servos aimed at this pose.

    Args:
        robot: The robot, with servos on the joints of the arm.
        hand: Its hand.
        middle: The middle of the thing [m].
        width: Its width between the pads [m].
        gap: Between the pads and the thing [m].
        turn: Angle about the vertical by which the hand turns from its home pose [rad].
    """
    arm = Arm(robot, hand)
    q = arm.turned(arm.way(arm.start, middle)[-1], turn)
    aim = dict(zip((a.joint for a in arm.servos), q.tolist(), strict=True))
    starts = aim | dict.fromkeys(hand.slides, width / 2.0 - hand.pad.lower[1] + gap)
    joints = [dataclasses.replace(j, start=(starts[j.name],)) if j.name in starts else j for j in robot.joints]
    motors = [dataclasses.replace(a, target=aim[a.joint]) if a in arm.servos else a for a in robot.actuators]
    return dataclasses.replace(robot, joints=joints, actuators=motors)


def at(hand: Hand, angle: float, height: float) -> np.ndarray:
    """The point at an angle about the base [rad] and a height [m], as far out as the hand works."""
    return np.array([hand.distance * math.cos(angle), hand.distance * math.sin(angle), height])


class Plan:
    """A motion of an arm and its grip, made of parts that follow each other.

    Attributes:
        arm: The arm.
        dt: Length of a control interval [s].
        force: Force of a finger for u = -1 [N].
        marks: Number of control intervals until named moments.
    """

    def __init__(self, arm: Arm, dt: float, force: float = 20.0):
        self.arm, self.dt, self.force = arm, dt, force
        self.marks: dict[str, int] = {}
        self._q = arm.start
        self._path: list[torch.Tensor] = []
        self._grip: list[torch.Tensor] = []

    def __len__(self) -> int:
        return sum(map(len, self._path))

    @property
    def path(self) -> torch.Tensor:
        """Coordinates of the servos at the ends of all control intervals, shape (steps, servos)."""
        return torch.cat(self._path)

    @property
    def control(self) -> torch.Tensor:
        """Control signals of all channels, shape (steps, channels)."""
        grip = torch.cat(self._grip)[:, None].expand(-1, 2)
        return torch.cat([self.arm.control(self.path, self.dt), grip], dim=1).to(torch.get_default_dtype())

    def mark(self, name: str) -> None:
        """Name the present moment."""
        self.marks[name] = len(self)

    def go(self, middle: np.ndarray, seconds: float, grip: float) -> None:
        """Move the point between the pads (`Arm.way`), from rest to rest.

        Args:
            middle: Where the way ends [m].
            seconds: Duration [s].
            grip: Force that closes the fingers, negative to open them [N].
        """
        knots, steps = self.arm.way(self._q, middle), round(seconds / self.dt)
        t = np.arange(1, steps + 1) / steps
        way = CubicSpline(np.linspace(0.0, 1.0, KNOTS + 1), torch.stack(knots).numpy())
        self._add(torch.as_tensor(way(t**3 * (10.0 - 15.0 * t + 6.0 * t**2))), grip)
        self._q = knots[-1]

    def wait(self, seconds: float, grip: float) -> None:
        """Stay in place and close the fingers with `grip` [N]."""
        self._add(self._q.expand(round(seconds / self.dt), -1), grip)

    def _add(self, path: torch.Tensor, grip: float) -> None:
        self._path.append(path)
        self._grip.append(torch.full((len(path),), -grip / self.force, dtype=torch.float64))

    def pick(self, cube: Cube, grip: float, lift: float = 0.12, pace: float = 1.0, release: bool = True) -> None:
        """Grasp a cube, lift it, hold it, and put it down again.

        Args:
            cube: The cube.
            grip: Force of each finger [N].
            lift: How high [m].
            pace: Factor of all durations.
            release: Whether to put it down.
        """
        up, open_ = cube.center + [0.0, 0.0, lift], -2.0
        self.go(up, 0.8 * pace, open_)
        self.go(cube.center, 0.5 * pace, open_)
        self.mark(f"{cube.name} reached")
        self.wait(0.45, grip)
        self.mark(f"{cube.name} gripped")
        self.go(up, 0.5 * pace, grip)
        self.wait(0.3 * pace, grip)
        self.mark(f"{cube.name} held")
        if release:
            self.go(cube.center + [0.0, 0.0, GAP], 0.5 * pace, grip)
            self.wait(0.1, grip)
            self.wait(0.2, open_)
            self.go(up, 0.5 * pace, open_)


def painted(robot: wb.Scene, hand: Hand) -> wb.Scene:
    """The robot in white, with a dark hand."""
    dark = {hand.link, *hand.fingers}
    colors = {b.name: (0.32, 0.34, 0.38) if b.name in dark else (0.92, 0.92, 0.9) for b in robot.bodies}
    return dataclasses.replace(robot, bodies=[dataclasses.replace(b, color=colors[b.name]) for b in robot.bodies])


def held_loads(
    robot: wb.Scene, hand: Hand, thing: Callable[[float], wb.SoftBody], volume: float, friction: float, grip: float,
    loads: Sequence[float] = (0.5, 0.9, 1.1, 1.3, 2.0), dt: float = 5e-3,
) -> None:  # fmt: skip
    """Print the acceleration of things of several densities in the air, beside the one of Coulomb's law.

    A thing is gripped firmly until it is at rest, and then with the given force.

    Args:
        robot: The robot, with its hand around the thing.
        hand: Its hand.
        thing: The thing with a density [kg/m^3]; its region "thing" contains all of it.
        volume: Of the thing [m^3].
        friction: Coulomb coefficient [1].
        grip: Force of a finger [N].
        loads: Weights of the thing divided by 2 mu N.
        dt: Length of a step [s].
    """
    g, settle, slide, last = 9.81, 0.3, 0.03, 0.04
    print("| weight / (2 mu N) | density [kg/m^3] | mass [g] | acceleration [m/s^2] | Coulomb's law | |")
    print("|---|---|---|---|---|---|")
    for load in loads[: sized(None, 1)]:
        mass = load * 2.0 * friction * grip / g
        body = thing(mass / volume)
        scene = grasp_scene(robot, hand, [], friction=friction, cells=8e-3, bodies=[body])
        sim = wb.Simulation(scene, wb.ProjectiveDynamics(cell_size=0.3), dt, substeps=1)
        plan = Plan(Arm(robot, hand), dt)
        plan.wait(sized(settle, 2.0 * dt), 2.0 * grip * max(load, 1.0))
        plan.wait(sized(slide, dt), grip)
        plan.wait(sized(last, dt), grip)
        control = plan.control
        with torch.no_grad():
            seen = sim.rollout(control, len(control), observe=functools.partial(sim.center_of_mass, region="thing"))
        speed = torch.diff(seen.observation[0, :, 2].double()) / dt
        steps = round(sized(last, dt) / dt)
        found, law = float(speed[-1] - speed[-1 - steps]) / (steps * dt), min(0.0, g * (1.0 / load - 1.0))
        row = f"{load:g}", f"{body.material.density:.0f}", f"{1e3 * mass:.0f}", f"{found:.3f}", f"{law:.3f}"
        print("| " + " | ".join([*row, "drops" if found < -0.05 * g else "held"]) + " |", flush=True)


def store(motion: wb.Trajectory, films: Sequence[Path] | None, usd: Path | None) -> None:
    """Write a motion as films, or as strips of pictures (.png), and as USD."""
    if usd:
        wb.usd.write(usd, motion)
    for film in films or ():
        if film.suffix == ".png":
            wb.view.film_strip(motion, 8).save(film)
        else:
            wb.view.animate(film, motion, fps=12.5, width=400)


def _cylindrical(x: np.ndarray) -> np.ndarray:
    """Distance from the z axis [m], angle about it [rad], and height [m] of a point."""
    return np.array([math.hypot(x[0], x[1]), math.atan2(x[1], x[0]), x[2]])


def _about_z(angle: float) -> np.ndarray:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
