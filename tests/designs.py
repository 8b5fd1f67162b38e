"""Small scenes that together have every parameter of every solver, and values for them as from a training."""

import dataclasses

import numpy as np
import torch
import trimesh
from cases import SOLVERS, busy, held, worn, yielding
from hollow_bodies import hollow_box
from hybrid_scenes import hammer

from warpbots.scene import (
    Attachment,
    Box,
    Cable,
    Capsule,
    Cavity,
    Cloud,
    Constraint,
    Contact,
    Fibre,
    Fluid,
    HalfSpace,
    Inertia,
    Joint,
    Load,
    Material,
    Motor,
    Obstacle,
    Oscillation,
    PneumaticCell,
    PrescribedMotion,
    RigidBody,
    Scene,
    Servo,
    Sheet,
    SoftBody,
    Sphere,
    Torque,
    TriangleMesh,
    Truss,
    VelocityDrive,
    floor,
)
from warpbots.simulation import Simulation
from warpbots.solvers import MPM, Articulated, Coupled, MassSpring, ProjectiveDynamics

SOFT = Material(1e4, 0.3, 1000.0)


def crossed() -> Scene:
    """Two bars on one axle; a motor turns one against the other."""
    boxes = {"stator": Box((-0.2, -0.05), (0.2, 0.05)), "rotor": Box((-0.05, -0.15), (0.05, 0.15))}
    bodies = [SoftBody(n, b, SOFT, regions={n: b}) for n, b in boxes.items()]
    axle = Attachment("axle", "stator", "rotor", ((0.0, 0.0),))
    return Scene(bodies, [Motor("motor", "axle", "rotor", "stator", 0.3, 10.0)], attachments=[axle])


def hybrid() -> Scene:
    """A soft arm with two bones, a mast on it, and a cloth beside it, in a slow stream above a floor."""
    box = Box((0.0, -0.03, -0.03), (0.3, 0.03, 0.03))
    arm = SoftBody("arm", box, SOFT, regions={"tip": HalfSpace((0.2, 0, 0), (-1, 0, 0)), "arm": box}, friction=0.3)
    mast = Truss([[0.15, 0, 0.03], [0.1, 0, 0.1], [0.2, 0, 0.1], [0.15, 0.05, 0.1]],
                 [[0, 1], [0, 2], [0, 3], [1, 2], [2, 3], [3, 1]], 3e-3)  # fmt: skip
    sheet = Sheet.rectangle((0.0, 0.2), (0.2, 0.3), 2e-3, (2, 1), height=0.02)
    edge = {"edge": HalfSpace((1e-3, 0, 0), (1, 0, 0))}
    soft = [arm, SoftBody("mast", mast, Material(1e6)), SoftBody("cloth", sheet, Material(1e5), regions=edge)]
    bones = [
        RigidBody("upper", Box((-0.01, -0.031, -0.031), (0.07, 0.031, 0.031)), 2000.0, points=1, surface="bone"),
        RigidBody("fore", Box((0.23, -0.031, -0.031), (0.31, 0.031, 0.031)), 2000.0, points=1, surface="bone"),
    ]
    turn = {"axis": (0.0, 1.0, 0.0), "stiffness": 0.1, "damping": 0.002, "armature": 1e-5, "limit_stiffness": 50.0}
    joints = [
        Joint("shoulder", "ball", None, "upper"),
        Joint("elbow", "revolute", "upper", "fore", position=(0.15, 0, 0), lower=-1.0, upper=1.0, **turn),
    ]
    actuators = [
        Torque("torque", "elbow", 0.1), Servo("servo", "elbow", 0.1, 1e-3),
        Fibre("fibre", "tip", (1, 0, 0), 2e3, 0.2), PneumaticCell("cell", "tip", 2e3, 0.2),
        Cable("cable", ((0, 0, 0.03), (0.3, 0, 0.03)), 100.0),
    ]  # fmt: skip
    return Scene(
        [*soft, *bones], actuators, [floor(-0.035, friction=0.3)], joints=joints, fluid=Fluid(1.0, (0.1, 0.0, 0.0)),
        constraints=[Constraint("edge")], loads=[Load("tip", (0.0, 0.0, -0.01))],
        attachments=[Attachment("foot", "arm", "mast", ((0.15, 0.0, 0.03),))],
        contacts=[Contact(part, "floor", 1e6, friction=0.2, viscosity=1e4) for part in ("arm", "bone")],
    )  # fmt: skip


def dragged() -> Scene:
    """The scene of `hybrid` with a tool that moves, which its bones touch, too."""
    scene = moving(hybrid(), -0.05)
    return dataclasses.replace(scene, contacts=[*scene.contacts, Contact("bone", "tool", 1e6)])


def chambered() -> Scene:
    """A damped finger with two chambers of air, whose end beats, and a block on it that a motor turns."""
    voids = Box((0.02, 0.02, 0.02), (0.06, 0.04, 0.04)), Box((0.08, 0.02, 0.02), (0.1, 0.04, 0.04))
    shape, box = hollow_box((0.12, 0.06, 0.06), voids, 0.02), Box((0.0, 0.0, 0.0), (0.04, 0.06, 0.06))
    regions = {"palm": voids[0], "tip": voids[1], "end": HalfSpace((0.08, 0, 0), (-1, 0, 0)), "finger": shape}
    damped = dataclasses.replace(SOFT, damping=0.01)
    bodies = SoftBody("finger", shape, damped, regions), SoftBody("block", box, damped, {"block": box})
    axle = Attachment("axle", "finger", "block", ((0.0, 0.0, 0.0), (0.0, 0.0, 0.06)))
    actuators = [
        Cavity("pump", "palm", 1e3), Cavity("gas", "tip", max_gas_ratio=1.5), Oscillation("beat", "end", 0.1, 7.0, 0.2),
        Motor("motor", "axle", "block", "finger", 0.01, 10.0),
    ]  # fmt: skip
    return Scene(bodies, actuators, attachments=[axle])


def tray() -> TriangleMesh:
    """A plate, as a mesh."""
    mesh = trimesh.creation.box((0.2, 0.2, 0.102))
    return TriangleMesh(mesh.vertices, mesh.faces)


def walker() -> Scene:
    """A stone on a floor, an arm on it, a flap on a chain, a flake on a tray, and every spring, limit, motor and law of contact."""
    bodies = [
        RigidBody("stone", Box((-0.1, -0.1, -0.1), (0.1, 0.1, 0.1)), 500.0, position=(0, 0, 0.098), points=8,
                  surface="wood"),
        RigidBody("arm", Capsule((0, 0, 0), (0.3, 0, 0), 0.05), position=(0.05, 0.02, 0.4), points=8),
        RigidBody("tip", Sphere((0, 0, 0), 0.04), position=(0.36, 0.02, 0.4), inertia=Inertia(0.3, (0, 0, 0.01),
                  (1e-3, 1e-3, 1e-3)), points=Cloud([[0.0, 0.0, -0.04]], [1e-3])),
        RigidBody("flap", Box((-0.1, -0.1, -0.1), (0.1, 0.1, 0.1)), 100.0, position=(0, 1, 1)),
        RigidBody("flake", Sphere((0, 0, 0), 0.05), position=(2, 1, 1), points=8),
        RigidBody("tray", tray(), position=(2, 1, 0.9)),
    ]  # fmt: skip
    joints = [
        Joint("elbow", "revolute", "stone", "arm", position=(0.05, 0.02, 0.4), axis=(0.1, 1, 0.2), damping=0.01,
              armature=0.01, start=0.21, lower=-0.2, upper=0.2, stiffness=0.3, neutral=0.1, limit_damping=0.1),
        Joint("wrist", "ball", "arm", "tip", position=(0.35, 0.02, 0.4), damping=0.01, armature=0.01, stiffness=0.3),
        Joint("flap", "free_2d", None, "flap", position=(0, 1, 1.2), stiffness=1.0, damping=0.1),
    ]  # fmt: skip
    laws = [
        Contact("wood", "floor", 5e5, 5e5, 0.4, 2e4), Contact("arm", "floor", 2e6, 2e5, 0.3, 2e4),
        Contact("tip", "floor", 1e6, 1e5, 0.3, 1e4, restitution=0.5), Contact("flake", "tray", 1e6, 1e5, 0.3, 1e4),
    ]  # fmt: skip
    motors = [Torque("t", "elbow", 0.5), Servo("s", "elbow", 2.0, 0.1, 0.1, 0.5), Torque("b", "wrist", 0.1, axis=1)]
    return Scene(bodies, motors, [floor()], joints=joints, contacts=laws)


def moving(scene: Scene, height: float = -0.02) -> Scene:
    """The scene with a tool at `height` below it that a table and drives move, a belt, and a table for each constraint."""
    dim = scene.dim
    to = np.arange(1, 1 + dim) * 1e-4
    table = {"times": [0.0, 0.03, 0.1], "positions": [0.0 * to, to, 2 * to], "pivot": (0.1,) * dim, "beyond": "hold"}
    turns = np.array([0.0, 0.01, -0.02])
    motion = PrescribedMotion(**table, rotations=turns if dim == 2 else turns[:, None] * [1.0, 0.5, -1.0])
    up = np.eye(dim)[-1]
    tool = Obstacle(HalfSpace(tuple(height * up), tuple(up)), name="tool", motion=motion, surface_velocity=tuple(to))
    drives = [
        VelocityDrive("slide", "tool", 0.01, tuple(up)), VelocityDrive("belt", "tool", 0.2, (1, 0, 0)[:dim], "surface"),
        VelocityDrive("turn", "tool", 0.1, (0, 1, 0) if dim == 3 else None, "rotation", (0.0,) * dim),
    ]  # fmt: skip
    held = [dataclasses.replace(c, motion=motion) for c in scene.constraints]
    return dataclasses.replace(
        scene, obstacles=[*scene.obstacles, tool], actuators=[*scene.actuators, *drives], constraints=held
    )


def swept() -> Scene:
    """The scene of `walker` with a tool that moves, on which the stone stands, too."""
    scene = moving(walker())
    return dataclasses.replace(scene, contacts=[*scene.contacts, Contact("stone", "tool", 5e5, 5e5, 0.4, 2e4)])


DESIGNS = {
    "mpm": lambda: (held(busy(2)), SOLVERS["mpm"](1 / 8)),
    "mpm-plastic": lambda: (yielding(2), SOLVERS["mpm"](1 / 8)),
    "springs": lambda: (worn(busy(2, solver="springs")), SOLVERS["springs"](1 / 8)),
    "springs-motor": lambda: (crossed(), MassSpring(0.05)),
    "springs-moving": lambda: (moving(held(busy(2, solver="springs"))), SOLVERS["springs"](1 / 16)),
    "projective": lambda: (hybrid(), ProjectiveDynamics(0.06)),
    "projective-driven": lambda: (chambered(), ProjectiveDynamics(0.02, collisions=False)),
    "mpm-moving": lambda: (moving(held(busy(2))), SOLVERS["mpm"](1 / 16)),
    "projective-moving": lambda: (dragged(), ProjectiveDynamics(0.06)),
    "articulated": lambda: (walker(), Articulated(samples=8)),
    "articulated-moving": lambda: (swept(), Articulated(samples=8)),
    "coupled": lambda: (moving(hammer()), Coupled(MPM(0.025), Articulated(samples=8))),
    "coupled-springs": lambda: (moving(hammer()), Coupled(MassSpring(0.025), Articulated(samples=8))),
    "own": lambda: (busy(3, solver="own"), SOLVERS["own"](1 / 8)),
}
"""Scenes, each with a solver."""

FINE = 40
"""Substeps of explicit solvers: enough for the varied parameters, too."""


def designed(name: str, worlds: int = 1, threads: int | None = None) -> Simulation:
    """The simulation of a design, by its name."""
    scene, solver = DESIGNS[name]()
    return Simulation(
        scene,
        solver,
        2e-3,
        FINE if not name.startswith(("projective", "articulated")) else 1,
        worlds=worlds,
        threads=threads,
    )


def varied(sim: Simulation, seed: int = 0) -> dict[str, torch.Tensor]:
    """All parameters, each changed by up to one per cent of itself, or of 0.001 where it is smaller."""
    rng, values = np.random.default_rng(seed), {}
    for name, spec in sim.parameters().items():
        value = sim.parameter(name)
        step = torch.as_tensor(rng.uniform(-1, 1, value.shape), dtype=value.dtype)
        size = value.abs().clamp(min=1e-3, max=1e9)
        values[name] = value + 0.01 * torch.where(value.abs() > 1e9, 0.0, step) * size
        if spec.lower == 0.0:
            values[name] = values[name].abs()
        if spec.entry == "inertia":  # by one factor for each body, so that its moments remain possible
            values[name] = value * (1.0 + 0.01 * step[..., :1, :1])
    if "rest_position" in values:  # a hundredth of a coordinate is more than an element can bear
        rest = sim.parameter("rest_position")
        values["rest_position"] = rest + 1e-3 * (values["rest_position"] - rest)
    return values


def without_fields(scene: Scene) -> Scene:
    """The scene by its records alone."""
    return dataclasses.replace(scene, fields=())
