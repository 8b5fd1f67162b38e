"""Scenes, stages and a stand-in for a trajectory that the tests of warpbots.usd share."""

import dataclasses
import math
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import torch
import usd_validation_nvidia as nvidia
import warp as wp
from pxr import Usd, UsdValidation

import warpbots as wb
from warpbots.scene import (
    CONDITIONS,
    JOINTS,
    Attachment,
    Box,
    Cable,
    Capsule,
    Cavity,
    Cloud,
    Constraint,
    Contact,
    Cylinder,
    DielectricElastomer,
    DistanceGrid,
    Expansion,
    Fibre,
    Fluid,
    HalfSpace,
    Heightfield,
    Inertia,
    Joint,
    Load,
    Material,
    Motor,
    Muscle,
    Obstacle,
    Oscillation,
    PneumaticCell,
    Points,
    Posed,
    PrescribedMotion,
    Pressure,
    RigidBody,
    Scene,
    Servo,
    Sheet,
    Silhouette,
    SoftBody,
    Sphere,
    Task,
    TetMesh,
    Torque,
    TriangleMesh,
    Truss,
    Union,
    VelocityDrive,
)
from warpbots.solvers.matter import Matter
from warpbots.solvers.motion_parameters import motion_parameters

ROUND = Material(5e4)
"""Every number of it is exact in single precision or a short decimal."""

ODD = Material(1e5 / 3, 0.123456789012345, 1070.1 / 7, "fixed_corotated", 2, 1e-3 / 7, 0.1 / 3, 1 / 7)
"""No number of it is."""


def numbers(*shape, seed=0):
    """Numbers that have no short decimal and are not exact in single precision."""
    return np.random.default_rng(seed).normal(size=shape)


def turn(dim, angle=0.3):
    c, s = math.cos(angle), math.sin(angle)
    if dim == 2:
        return ((c, -s), (s, c))
    q, _ = np.linalg.qr(numbers(3, 3, seed=3))
    return tuple(map(tuple, q * np.sign(np.linalg.det(q))))


def octahedron(size=0.1):
    points = size * np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], dtype=float)
    faces = [[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]]
    return TriangleMesh(points, faces)


def kites(size=0.1):
    """Two tetrahedra on one face, the second with its vertices in another order."""
    points = size * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]], dtype=float)
    return TetMesh(points, [[0, 1, 2, 3], [2, 3, 1, 4]])


def blob():
    """A silhouette with runs of different length, a hole and a gap."""
    mask = np.array([list("..####..."), list(".##..##.#"), list("#########"), list(".##...##.")]) == "#"
    return Silhouette(mask, (0.1, 1.0 / 7.0), 1.0 / 30.0)


SOLIDS = {
    3: {
        "box": Box((0.0, 0.1, 0.2), (0.1, 0.3, 0.7)),
        "odd box": Box(tuple(numbers(3)), tuple(numbers(3) + 1.0 / 3.0)),
        "sphere": Sphere((0.1, 0.2, 0.3), 1.0 / 3.0),
        "capsule": Capsule((0.1, 0.2, 0.3), (0.5, 0.1, 0.2), 0.07),
        "capsule along -x": Capsule((0.5, 0.0, 0.1), (0.1, 0.0, 0.1), 0.07),
        "cylinder": Cylinder((0.1, 0.2, 0.3), (0.5, 0.1, 0.2), 0.07),
        "cylinder along y": Cylinder((0.1, 0.2, 0.3), (0.1, 0.4, 0.3), 0.07),
        "mesh": octahedron(1.0 / 3.0),
        "exact mesh": octahedron(0.25),
        "tetrahedra": kites(1.0 / 3.0),
        "exact tetrahedra": kites(0.25),
        "sheet": Sheet.rectangle((0.1, 0.2), (0.5, 1.0 / 3.0), 1e-3, (2, 3), 1.0 / 7.0),
        "odd sheet": Sheet(octahedron().vertices, octahedron().faces[1:], 1e-2 / 7.0, 1e-4 / 3.0),
        "exact sheet": Sheet.rectangle((0.0, 0.0), (0.5, 0.25), 0.125, (2, 1), bending=0.25),
        "points": Points(numbers(20, 3), np.abs(numbers(20)) + 0.1),
        "exact points": Points(np.arange(12.0).reshape(4, 3), np.ones(4)),
        "truss": Truss(numbers(5, 3), [[0, 1], [1, 2], [3, 0], [4, 1], [2, 4]], np.abs(numbers(5)) + 0.01),
        "exact truss": Truss([[0, 0, 0], [1, 0, 0], [0, 0, 2]], [[0, 1], [1, 2]], 0.25),
        "posed": Posed(Posed(Box((0, 0, 0), (0.1, 0.3, 0.7)), (0.1, 0.2, 0.3), turn(3)), (1 / 3, 0, 0), turn(3)),
        "union": Union((Sphere((0, 0, 0), 0.1), Posed(Union((Box((0, 0, 0), (1, 1, 1)),)), (1, 2, 3), turn(3)))),
    },
    2: {
        "box": Box((0.0, 0.1), (0.1, 0.7)),
        "disc": Sphere((0.1, 0.2), 1.0 / 3.0),
        "capsule": Capsule((0.1, 0.2), (0.5, 0.1), 0.07),
        "rectangle": Cylinder((0.1, 0.2), (0.5, 0.1), 0.07),
        "upright rectangle": Cylinder((0.1, 0.2), (0.1, 0.4), 0.07),
        "silhouette": blob(),
        "points": Points(numbers(20, 2), np.abs(numbers(20)) + 0.1),
        "truss": Truss(numbers(4, 2), [[0, 1], [1, 2], [3, 0]], 0.07),
        "posed": Posed(blob(), (0.1, 1.0 / 3.0), turn(2)),
        "union": Union((Sphere((0, 0), 0.1), Posed(Union((Box((0, 0), (1, 1)),)), (1, 2), turn(2, math.pi / 2)))),
    },
}
"""What a body can be, by dimension."""

STATIC = {
    3: {
        **{f"half-space {n}": HalfSpace(tuple(numbers(3)), n) for n in np.vstack([np.eye(3), -np.eye(3)]).tolist()},
        "tilted half-space": HalfSpace((0.1, 0.2, 0.3), (1, 2, -3)),
        "terrain": Heightfield((0.1, 0.2), 0.05, numbers(5, 2)),
        "posed terrain": Posed(Heightfield((0.1, 0.2), 0.05, numbers(3, 4)), (0.1, 0.2, 0.3), turn(3)),
        "distance grid": DistanceGrid(numbers(3, 4, 5), (0.1, 0.2, 0.3), 0.07),
        "distance grid without inside": DistanceGrid(np.abs(numbers(2, 2, 2)) + 1.0, (0.1, 0.2, 0.3), 0.07),
    },
    2: {
        **{f"half-space {n}": HalfSpace(tuple(numbers(2)), n) for n in np.vstack([np.eye(2), -np.eye(2)]).tolist()},
        "tilted half-space": HalfSpace((0.1, 0.2), (1, -2)),
        "terrain": Heightfield((0.1,), 0.05, numbers(5)),
        "posed terrain": Posed(Heightfield((0.1,), 0.05, numbers(5)), (0.1, 0.2), turn(2)),
        "distance grid": DistanceGrid(numbers(3, 4), (0.1, 0.2), 0.07),
    },
}
"""What only an obstacle or a region can be, by dimension."""


def simple_scene(dim=3, **changes):
    """A block with one muscle on a floor."""
    down = -9.81 * np.eye(dim)[-1]
    scene = Scene(
        bodies=[
            SoftBody("block", Box((0.0,) * dim, (0.1,) * dim), ROUND, regions={"all": Box((-1,) * dim, (1,) * dim)})
        ],
        actuators=[Muscle("pull", "all", tuple(np.eye(dim)[0]), 1e4)],
        obstacles=[Obstacle(HalfSpace((0.0,) * dim, tuple(np.eye(dim)[-1])), "friction", 0.5)],
        gravity=tuple(down),
    )
    return dataclasses.replace(scene, **changes)


def motion(dim, **changes):
    """A table with translation and rotation."""
    turns = 0.3 * (numbers(3) if dim == 2 else numbers(3, 3))
    table = PrescribedMotion(np.array([0, 1 / 3, 0.7]), numbers(3, dim), turns, tuple(numbers(dim, seed=4)))
    return dataclasses.replace(table, **changes)


def moving_parts(dim):
    """An obstacle with a table, one with a surface that moves, and drives of both."""
    box, axis, pivot = Box((0.0,) * dim, (1 / 3,) * dim), tuple(numbers(dim, seed=2)), tuple(numbers(dim, seed=5))
    obstacles = [
        Obstacle(box, name="shaker", motion=PrescribedMotion([0, 1], numbers(2, dim), None, None, "linear", "hold")),
        Obstacle(box, "sticky", name="belt", surface_velocity=tuple(numbers(dim))),
    ]
    drives = [
        VelocityDrive("slide", "shaker", 1 / 3, axis),
        VelocityDrive("spin", "shaker", 2 / 3, axis if dim == 3 else None, "rotation", pivot),
        VelocityDrive("run", "belt", 1 / 7, axis, "surface"),
    ]
    return obstacles, drives


def moving_scene(dim):
    """Obstacles and constraints that move in every way, beside a block on a floor."""
    (obstacles, drives), scene = moving_parts(dim), simple_scene(dim)
    box = Box((0.0,) * dim, (1 / 3,) * dim)
    turning = [
        Obstacle(box, name="tool", motion=motion(dim)),
        Obstacle(box, name="stirrer", motion=motion(dim, positions=None, interpolation="linear"), friction=0.0),
    ]
    held = [Constraint("all", motion=motion(dim)), Constraint("all", "plane", tuple(numbers(dim)), "glass")]
    drives = [*drives, VelocityDrive("haul", "glass", 1 / 7, tuple(numbers(dim)))]
    return dataclasses.replace(
        scene,
        obstacles=[*scene.obstacles, *turning, *obstacles],
        actuators=[*drives, *scene.actuators],
        constraints=held,
    )


def full_scene(dim):
    """Every shape, actuator, condition and optional field; numbers that only double precision holds."""
    shapes = SOLIDS[dim]
    bodies = []
    for k, (name, shape) in enumerate(shapes.items()):
        material = (ROUND, ODD)[k % 2]
        regions = {"left leg": shape, "all": Box((-9,) * dim, (9,) * dim), "up": HalfSpace((0.1,) * dim, (1,) * dim)}
        stiff = {"left leg": dataclasses.replace(material, youngs_modulus=1e6 / 7.0)}
        bodies.append(
            SoftBody(
                name=name,
                shape=shape,
                material=material,
                regions=regions if k < 3 else None,
                region_materials=stiff if k < 2 else None,
                velocity=tuple(numbers(dim, seed=k)) if k % 3 == 0 else None,
                friction=0.1 * (k % 7),
                color=tuple(np.abs(numbers(3, seed=k)) % 1.0) if k % 2 else (0.35, 0.6, 0.85),
            )
        )
    actuators = [
        Pressure("chamber 1", "left leg", 1e4 / 3.0),
        Muscle("muscle", "left leg", tuple(numbers(dim)), 2e4 / 7.0),
        DielectricElastomer("dielectric", "up", tuple(numbers(dim, seed=7)), 1e7 / 3.0, 14.0 / 3.0),
        Fibre("fibre", "left leg", tuple(numbers(dim, seed=5)), 1e5 / 7.0, 1.0 / 3.0),
        PneumaticCell("cell", "up", 1e5 / 3.0, 1.0 / 7.0),
        Cavity("pump", "left leg", 1e4 / 7.0),
        Cavity("gas", "up", max_gas_ratio=4.0 / 3.0, ambient_pressure=1e5 / 3.0),
        Cable("long", tuple(map(tuple, numbers(4, dim))), 100.0 / 3.0, 1.0 / 3.0),
        Cable("short", tuple(map(tuple, numbers(2, dim))), 100.0),
        Expansion("grows", "all", 1.0 / 3.0),
        Expansion("grows along", "left leg", 0.1, tuple(numbers(dim))),
        Oscillation("beats", "up", 1.0 / 7.0, 10.0 / 3.0),
        Oscillation("beats along", "up", 0.1, 2.0, 1.0 / 3.0, tuple(numbers(dim)), wave=tuple(numbers(dim, seed=3))),
        Motor("turns", "axle", "left leg", "up", 10.0 / 3.0, 100.0 / 7.0),
    ]
    moving, drives = moving_parts(dim)
    obstacles = [
        Obstacle(shape, CONDITIONS[k % 4], k / 7.0, name, (k + 1) / 7.0 if k % 3 == 0 else None)
        for k, (name, shape) in enumerate({**STATIC[dim], **shapes}.items())
    ]
    obstacles, actuators = [*moving, *obstacles], [*actuators, *drives]
    return Scene(
        bodies,
        actuators,
        obstacles,
        gravity=tuple(numbers(dim)),
        domain=((-20.0,) * dim, (41.0 / 3.0,) * dim),
        task=Task(1 / 80, 1 / 300, 7, 801, tuple(numbers(dim)), 9, 1 / 7),
        name="my röbot",
        fluid=Fluid(1000.0 / 3.0, tuple(numbers(dim, seed=9)), 1.0 / 7.0),
        constraints=[
            Constraint("left leg", motion=motion(dim, beyond="hold")),
            Constraint("up", "line", tuple(numbers(dim)), name="rail"),
            Constraint("all", "plane", tuple(numbers(dim, seed=1)), name="glass"),
        ],
        attachments=[Attachment("axle", bodies[0].name, bodies[1].name, tuple(map(tuple, numbers(2, dim))))],
        loads=[Load("up", tuple(numbers(dim))), Load("all", (1.0,) * dim, name="wind")],
    )


def rigid_scene():
    """A rigid body or several for every kind of joint, every motor and contact; numbers that only double precision holds."""
    bodies = [
        RigidBody("hip", SOLIDS[3]["posed"], 1070.1 / 7, position=tuple(numbers(3)), rotation=turn(3)),
        RigidBody("plain", Box((0, 0, 0), (0.1, 0.2, 0.3)), position=(1.0, 2.0, 3.0), friction=1 / 3),
        RigidBody("heavy", SOLIDS[3]["union"], inertia=Inertia(1 / 3, tuple(numbers(3)), inertia(5)), points=7),
        RigidBody("bare", None, inertia=Inertia(2.0, (0.0, 0.0, 0.0), (0.1, 0.2, 0.25)), surface="rubber"),
        RigidBody("dust", None),
        RigidBody("cloudy", octahedron(1 / 7), points=Cloud(numbers(5, 3), np.abs(numbers(5)) + 0.1), surface="rubber"),
    ]
    for k, kind in enumerate(JOINTS):
        place = {"position": tuple(numbers(3, seed=k)), "rotation": turn(3) if k % 2 else np.eye(3)}
        bodies.append(RigidBody(f"on {kind}", SOLIDS[3]["capsule"], color=(0.1, 1 / 3, 0.5), **place))
    joints = [Joint(f"to {kind}", kind, *pair, **joint_values(kind, k)) for k, (kind, pair) in enumerate(TREE.items())]
    joints += [
        Joint("spin", "revolute", "on free", "bare", axis=(-1, 0, 0), lower=-1.0, start=4.0, position=(0.1, 0.2, 0.3)),
        Joint("bridge", "revolute", "bare", "dust", axis=(1, 2, 3), start=0.0),
        Joint("arm", "prismatic", "dust", "cloudy", axis=(0, -1, 0), upper=1 / 3, armature=0.01, damping=1 / 3),
    ]
    motors = [
        Servo("hold", "to revolute", 100 / 3, 1 / 7, 0.1, 0.3),
        Torque("push", "to planar", 10 / 3, axis=1),
        Servo("twist", "to free_2d", 2.0, axis=2),
        Torque("again", "to revolute", 3.0),
        Torque("roll", "to ball", 1 / 3, axis=2),
        Torque("fly", "to free", 1 / 3, axis=0),
    ]
    contacts = [
        Contact("heavy", "floor", 1e7 / 3, 1e6, 0.3, 1e5 / 7),
        Contact("rubber", "hip", 1e6, name="soft"),
        Contact("rubber", "floor", 1e6, 1e7, friction=1 / 3, viscosity=1.0, restitution=1 / 3, impact="instant"),
    ]
    floor = Obstacle(HalfSpace((0, 0, -9), (0, 0, 1)))
    return Scene(bodies, motors, [floor], gravity=tuple(numbers(3)), name="röbot", joints=joints, contacts=contacts)


TREE = {
    "fixed": (None, "on fixed"),
    "revolute": ("on fixed", "on revolute"),
    "prismatic": ("on revolute", "on prismatic"),
    "cylindrical": ("on prismatic", "on cylindrical"),
    "planar": ("on cylindrical", "on planar"),
    "translational": ("on planar", "on translational"),
    "ball": ("on translational", "on ball"),
    "free_2d": ("on ball", "on free_2d"),
    "free": (None, "on free"),
}
"""Parent and child of a joint of each kind."""


def joint_values(kind, seed):
    freedom, coordinates = JOINTS[kind].freedom, JOINTS[kind].coordinates
    values = {
        "position": tuple(numbers(3, seed=seed)),
        "rotation": turn(3),
        "axis": tuple(numbers(3, seed=seed + 1)),
        "start": tuple(0.3 * numbers(coordinates, seed=seed)),
        "start_velocity": tuple(numbers(freedom, seed=seed)),
        "stiffness": tuple(np.abs(numbers(freedom, seed=seed))),
        "damping": tuple(np.abs(numbers(freedom, seed=seed))),
        "armature": tuple(np.abs(numbers(freedom, seed=seed))),
        "limit_stiffness": 1e4 / 3,
        "limit_damping": 10 / 3,
    }
    if not freedom:
        values |= {"start": None, "start_velocity": None}
    if kind in ("ball", "free"):
        q = numbers(4, seed=seed)
        values["start"] = (*values["start"][:-4], *(q / np.linalg.norm(q)))
    elif freedom:
        values |= {"neutral": tuple(numbers(freedom)), "lower": -1 / 3, "upper": tuple(np.abs(numbers(freedom)) + 0.1)}
    return values


def inertia(seed):
    """Moments that are not diagonal."""
    A = numbers(3, 3, seed=seed)
    J = A @ A.T + 9.0 * np.eye(3)
    return (J + J.T) / 2.0


def differences(a, b):
    """Names of the fields in which two scenes differ, for messages."""
    return [f.name for f in dataclasses.fields(Scene) if f.compare and getattr(a, f.name) != getattr(b, f.name)]


def findings(file):
    """All findings of the two validators in the stage or the path `file`, as texts."""
    stage = file if isinstance(file, Usd.Stage) else Usd.Stage.Open(str(file))
    validators = UsdValidation.ValidationRegistry().GetOrLoadAllValidators()
    found = [f"{e.GetName()}: {e.GetMessage()}" for e in UsdValidation.ValidationContext(validators).Validate(stage)]
    for issue in nvidia.ValidationEngine(init_rules=True).validate(stage).issues():
        found.append(f"{issue.rule and issue.rule.__name__}: {issue.message} {issue.at and issue.at.as_str()}")
    # said of every file where the installed OpenUSD comes without the definitions of its shaders (25.11)
    return [text for text in found if "No UsdPreviewSurface shader definitions are registered" not in text]


class Particles(Matter):
    """Particles of a solver, and surfaces that have some of them as vertices."""

    def __init__(self, position, volume, body, surfaces=()):
        super().__init__(position, 0.0 * position, volume, 0.0 * volume, body, {})
        object.__setattr__(self, "_surfaces", surfaces)

    @property
    def surfaces(self):
        return self._surfaces


class Trajectory(wb.Trajectory):
    """The part of a trajectory that writing needs: the particles of each body drift and tremble."""

    scene = steps = control_interval = matter = None
    designed = property(lambda self: self.scene)

    def __init__(self, scene, count=50, steps=6, control_interval=1 / 60):
        self.scene, self.steps, self.control_interval = scene, steps, control_interval
        n = count * len(scene.bodies)
        volume = np.abs(numbers(n)) * 1e-3 + 1e-4
        self.matter = Particles(numbers(n, scene.dim), volume, np.arange(n) % len(scene.bodies))

    parameters: ClassVar = {}

    @property
    def simulation(self):
        motion = motion_parameters(self.scene, 1, "cpu")
        model = SimpleNamespace(parameter=lambda name: wp.to_torch(motion[name]))
        return SimpleNamespace(scene=self.scene, model=model)

    def frames(self, every=1):
        for k in range(0, self.steps + 1, every):
            velocity = numbers(*self.matter.position.shape, seed=k)
            yield k * self.control_interval, self.matter.position + 0.01 * velocity, velocity

    def states(self, every=1):
        for time, position, velocity in self.frames(every):
            moved = {"position": torch.from_numpy(position)[None], "velocity": torch.from_numpy(velocity)[None]}
            none = torch.zeros(1, len(self.simulation.model.parameter("drive_speed")[0]), dtype=torch.float64)
            yield time, SimpleNamespace(**moved, time=torch.tensor([time], dtype=torch.float64), travel=none)


class MeshTrajectory(Trajectory):
    """The same for bodies whose particles are the nodes of their meshes: a TetMesh, a Sheet, or `meshed` by name."""

    def __init__(self, scene, meshed=None, steps=6, control_interval=1 / 60):
        self.scene, self.steps, self.control_interval = scene, steps, control_interval
        shapes = [(meshed or {}).get(b.name, b.shape) for b in scene.bodies]
        first = np.cumsum([0, *(len(s.vertices) for s in shapes)])
        body = np.repeat(np.arange(len(shapes)), np.diff(first))
        position = np.concatenate([s.vertices for s in shapes])
        surfaces = tuple(
            SimpleNamespace(
                body=k, nodes=slice(*first[k : k + 2]), faces=s.faces if isinstance(s, Sheet) else s.surface
            )
            for k, s in enumerate(shapes)
        )
        self.matter = Particles(position, np.full(len(position), 1e-6), body, surfaces)


def names(folder):
    """Names of all files in `folder`, hidden ones too, sorted."""
    return sorted(path.name for path in folder.iterdir())


def prim(kind, name, *apis, text=""):
    """The text of a prim of type `kind` with the applied schemas `apis` and the properties and children `text`."""
    schemas = ", ".join(f'"{api}"' for api in apis)
    applied = f"(\n prepend apiSchemas = [{schemas}]\n)" if apis else ""
    return f'def {kind} "{name}" {applied} {{\n{text}\n}}\n'


def write_text(path, text):
    path.write_text("#usda 1.0\n" + text)
    return path
