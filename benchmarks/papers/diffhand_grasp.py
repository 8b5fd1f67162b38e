"""The gripper of DiffHand's Free-form Gripper (Xu et al. 2021, section IV-D): two cubes that become fingers, a diamond.

Masses, damping, contact laws and positions are taken from the published scene, in SI units. Meshes and cages are our
own, with the published numbers of vertices and handles. Both fingers have the same mesh in the same cage; the right
finger is turned by half a turn, so that in the frame of each finger x points to the other finger.
"""

import copy
import dataclasses
from pathlib import Path

import numpy as np
import torch

import warpbots as wb
from warpbots.design import CagedBody, designed_parameters, grid_cage, surface_points

__all__ = [
    "CM", "DESIGN", "GRIP", "INTERVAL", "STEPS", "FreeMesh", "control", "designed_scene", "fingers", "gripper_scene",
    "inner_handles", "moved", "parameters",
]  # fmt: skip

CM = 0.01
"""Centimetre [m]: the unit of the paper."""
SIDE = 10.0 * CM
"""Edge of a finger as it was [m]."""
MARGIN = 0.5 * CM
"""How far the cage is outside of it [m]."""
INTERVAL, STEPS = 0.02, 4
"""Time for which forces are held [s], and steps of the solver in it, 5 ms each as in the paper."""
LEVELS, RISE = (2.0 * CM, 4.0 * CM, 6.0 * CM, 4.0 * CM, 2.0 * CM), 1.5 * CM
"""Widths of the five cuboids of the diamond from below, and the height of each [m]."""
FLOOR = -10.0 * CM

POINT = (0.625 * CM) ** 2
"""Area for which a published contact point stands [m^2]."""
STIFFNESS, DAMPING, VISCOSITY = (value / POINT for value in (100.0, 100.0, 0.1))
"""1e5 dyn/cm, 1e3 dyn s/cm^2 and 1e2 dyn s/cm a point, as pressures [Pa/m, Pa s/m^2, Pa s/m]."""
FRICTION = 0.5

GRAVITY, BASE, FINGER, DIAMOND = 9.8, 0.020, 0.002, 0.0228
"""Acceleration [m/s^2]; masses of base, finger and diamond [kg]."""
DESIGN = "diffhand_gripper_design.csv"
"""File of the best design: how far the free handles of the left finger have moved, then the right's [mm]."""
CLOSING, GRIP, LIFTING = 0.8, 0.9, 1.4
"""When the fingers have closed, when the lift begins, and when its push ends [s]."""


def control(intervals: int) -> torch.Tensor:
    """Predefined forces of lift, left finger and right finger [N], shape (intervals, 3).

    The forces are the control signals, because all motors have a largest force of 1 N. The fingers close at 12 cm/s and
    then press with half of their largest force. The gripper rests on the floor with 0.02 N. Then the motor carries the
    gripper and the diamond, and for half a second pushes with another 0.02 N, which lifts them by 10 cm against the
    damping of the base.
    """
    t = INTERVAL * (torch.arange(intervals, dtype=torch.float64) + 0.5)
    gripper = GRAVITY * (BASE + 2.0 * FINGER)
    lift = torch.where(t < GRIP, gripper - 0.02, gripper + GRAVITY * DIAMOND + 0.02 * (t < LIFTING))
    close = torch.where(t < CLOSING, 0.12, 0.5).to(t)
    return torch.stack([lift, close, close], dim=1)


def fingers(cells: int = 32, points: int = 300) -> tuple[CagedBody, CagedBody]:
    """The left and the right finger: cubes of 6 cells^2 + 2 vertices in cages of 386 handles.

    Args:
        cells: Cells along an edge of the mesh, a multiple of 8.
        points: Approximate number of contact points, spread over the surface that may touch the diamond or the floor:
            the inner side except its top and its edges, and the bottom beside the inner side.
    """
    mesh = grid_cage((0.0, -SIDE / 2, -SIDE / 2), (SIDE, SIDE / 2, SIDE / 2), (cells,) * 3)
    lower, upper = mesh.handles.min(axis=0) - MARGIN, mesh.handles.max(axis=0) + MARGIN
    x, y, z = mesh.handles[mesh.faces].mean(axis=1).T / SIDE
    touching = mesh.faces[(x > 7 / 8) & (abs(y) < 3 / 8) & (z < 1 / 4)]
    contacts = surface_points(mesh.handles, touching, points)
    cage = grid_cage(tuple(lower), tuple(upper), (8, 8, 8))
    left = CagedBody("left", mesh.handles, mesh.faces, cage, FINGER / SIDE**3, contacts)
    right = copy.copy(left)
    right.name = "right"
    return left, right


def inner_handles(cage: np.ndarray, rings: int) -> np.ndarray:
    """Indices of the handles on the inner side that a design moves, without the bottom and the top 3/8, shape (k,).

    Args:
        cage: Handles or vertices on a regular grid on the faces of a box, shape (n, 3).
        rings: Number of rows beside the inner side that also count. With one row, a cage of 386 handles has 66 free
            handles, as in the paper; with nineteen rows, a mesh of 6146 vertices has 1491 free vertices, as in the
            paper.
    """
    lower, upper = cage.min(axis=0), cage.max(axis=0)
    x, y, z = ((cage - lower) / (upper - lower)).T
    row = 1.0 / np.sqrt((len(cage) - 2) / 6)
    near, low = x > 1.0 - (rings + 0.5) * row, z < 5 / 8 + row / 2
    return np.flatnonzero(near & low & ((x > 1.0 - row / 2) | (abs(y - 0.5) > 0.5 - row / 2)))


class FreeMesh(CagedBody):
    """A finger whose vertices are its handles: the parameterisation with which the paper compares cages."""

    def __init__(self, finger: CagedBody):
        """Take the mesh of `finger` without its cage."""
        self.name, self.density, self.contacts = finger.name, finger.density, finger.contacts
        self.vertices, self.faces = finger.vertices, finger.faces

    @property
    def rest(self) -> torch.Tensor:
        """The vertices at rest [m], shape (n, 3)."""
        return self.vertices

    def deformed(self, handles: torch.Tensor) -> torch.Tensor:
        """The vertices themselves [m], shape (n, 3)."""
        return handles


def moved(bodies: tuple[CagedBody, CagedBody], free: torch.Tensor, moves: torch.Tensor) -> list[torch.Tensor]:
    """Handles of both fingers [m] after the free handles, shape (k,), are displaced by `moves` [m], shape (2, k, 3)."""
    return [body.rest.index_add(0, free, move) for body, move in zip(bodies, moves, strict=True)]


def parameters(
    sim: wb.Simulation, bodies: tuple[CagedBody, CagedBody], handles: list[torch.Tensor], viscosity: float = 1.0
) -> dict[str, torch.Tensor]:
    """Parameters of the model for a design; `viscosity` multiplies the viscosity between fingers and diamond."""
    factor = torch.tensor([viscosity, 1.0, 1.0], dtype=torch.float64)
    values = designed_parameters(sim, dict(zip(bodies, handles, strict=True)))
    return values | {"contact_viscosity": sim.parameter("contact_viscosity") * factor}


def gripper_scene(bodies: tuple[CagedBody, CagedBody], handles: list[torch.Tensor] | None = None) -> wb.Scene:
    """The gripper above a diamond on the floor; its fingers have their shapes at rest, or the shapes with `handles`."""
    base = wb.RigidBody("base", wb.shapes.Box((-2 * SIDE, -SIDE / 2, 0.0), (2 * SIDE, SIDE / 2, SIDE / 2)), 10.0)
    rigid, joints = [base], [wb.Joint("lift", "prismatic", None, "base", axis=(0.0, 0.0, 1.0), damping=0.1)]
    for body, shape, side in zip(bodies, handles or (None, None), (-1, 1), strict=True):
        place, turn = (side * 2 * SIDE, 0.0, -SIDE / 2), np.diag([-side, -side, 1.0])
        rigid.append(body.rigid_body(shape, position=place, rotation=turn, surface="finger", color=(0.93, 0.55, 0.25)))
        joints.append(
            wb.Joint(body.name, "prismatic", "base", body.name, place, axis=(-side, 0.0, 0.0), damping=1.0, upper=SIDE)
        )
    diamond = _diamond()
    law = (STIFFNESS, DAMPING, FRICTION, VISCOSITY)
    laws = [
        wb.Contact("finger", "diamond", *law),
        wb.Contact("diamond", "floor", *law),
        wb.Contact("finger", "floor", STIFFNESS, DAMPING),
    ]
    return wb.Scene(
        [*rigid, diamond], [wb.actuators.Torque(name, name, 1.0) for name in ("lift", "left", "right")],
        [wb.floor(FLOOR)],
        joints=[*joints, wb.Joint("diamond", "free", None, "diamond", diamond.position)], contacts=laws,
        gravity=(0.0, 0.0, -GRAVITY), name="gripper",
    )  # fmt: skip


def designed_scene() -> wb.Scene:
    """The gripper with the best design; its fingers have a coarser mesh, rounded to a tenth of a micrometre."""
    bodies = fingers(16, 200)
    free = torch.as_tensor(inner_handles(bodies[0].cage.handles, 1))
    moves = 1e-3 * np.loadtxt(Path(__file__).with_name(DESIGN), delimiter=",").reshape(2, len(free), 3)
    scene = gripper_scene(bodies, moved(bodies, free, torch.as_tensor(moves)))
    rigid = [_rounded(body) if body.surface == "finger" else body for body in scene.rigid]
    return dataclasses.replace(scene, bodies=rigid)


def _rounded(body: wb.RigidBody) -> wb.RigidBody:
    """Round the numbers of a body to a few digits, which do not depend on the machine."""
    shape = wb.shapes.TriangleMesh(body.shape.vertices.round(7), body.shape.faces)
    points = wb.Cloud(body.points.positions.round(7), body.points.areas.round(11))
    return dataclasses.replace(body, shape=shape, points=points)


def _diamond() -> wb.RigidBody:
    """Five cuboids on one another; their corners are its contact points on the floor."""
    lower = RISE * (np.arange(5) - 2.5)
    boxes = [
        wb.shapes.Box((-w / 2, -w / 2, z), (w / 2, w / 2, z + RISE))
        for w, z in zip(LEVELS, lower.tolist(), strict=True)
    ]
    corners = [
        (x, y, z)
        for box in boxes
        for z in (box.lower[2], box.upper[2])
        for y in (box.lower[1], box.upper[1])
        for x in (box.lower[0], box.upper[0])
    ]
    place = (0.0, 0.0, FLOOR + 2.5 * RISE)
    return wb.RigidBody(
        "diamond", wb.shapes.Union(tuple(boxes)), 200.0, position=place, points=wb.Cloud(np.array(corners), POINT),
        color=(0.45, 0.6, 0.75),
    )  # fmt: skip
