"""A humanoid of our own shape with five bones, as soft matter, as soft matter with bones, and as rigid bodies.

All lengths are multiples of the width of a cell: torso, head, arms and legs are blocks of cells of a grid. It faces
along y, its arms point along x in a T-pose, and its soles are in the plane z = 0.
"""

import itertools

import numpy as np
from softbody_shapes import cut

import warpbots as wb

__all__ = ["ARMS", "BONES", "CELL", "LENGTH", "markers", "rigid_humanoid", "shape", "soft_humanoid"]

Range = tuple[float, float]

CELL = 0.04
"""Width of a cell [m]."""
CORNER = (-19, -3, 0)
"""Of the grid [half cells]."""
PARTS = {
    "left_leg": ((-7, -1), (-3, 3), (0, 16)),
    "right_leg": ((1, 7), (-3, 3), (0, 16)),
    "torso": ((-7, 7), (-3, 3), (16, 36)),
    "left_arm": ((-19, -7), (-3, 3), (28, 34)),
    "right_arm": ((7, 19), (-3, 3), (28, 34)),
    "head": ((-5, 5), (-3, 3), (36, 42)),
}
"""Blocks of the body [half cells]."""
BONES = {
    "torso": ((-3, 3), (-1, 1), (18, 34)),
    "left_leg": ((-5, -3), (-1, 1), (4, 14)),
    "right_leg": ((3, 5), (-1, 1), (4, 14)),
    "left_arm": ((-17, -9), (-1, 1), (30, 32)),
    "right_arm": ((9, 17), (-1, 1), (30, 32)),
}
"""Bones [half cells]; each is longest along its axis."""
ARMS = ("left_arm", "right_arm")
PIVOTS = {
    "left_leg": (-4, 0, 16), "right_leg": (4, 0, 16), "left_arm": (-7, 0, 31), "right_arm": (7, 0, 31)
}  # fmt: skip
"""Hips and shoulders [half cells]."""
LENGTH = 21 * CELL
"""From the soles to the top of the head [m]."""
FLESH = wb.Material(800.0, 0.4, 20.0, "neo_hookean")
"""Stiffness and Poisson's ratio of the published humanoid, as light as an inflated one."""
BONE_DENSITY = 50.0
SERVO, BRAKE, LIFT = 30.0, 0.5, np.pi / 4
"""Gains of the motors at the shoulders [N m/rad, N m s/rad], and how far they lift the arms at u = 1 [rad]."""
HIP = 1.0
"""Stiffness of the hips [N m/rad]."""
SOLE = 0.8
"""Coefficient of friction on the floor [1]."""


def box(block: tuple[Range, Range, Range], lift: float = 0.0, grow: float = 0.0) -> wb.shapes.Box:
    """A block in metres, raised by `lift` and larger by `grow` on all sides [m]."""
    lower, upper = (0.5 * CELL * np.array(side, dtype=float) for side in zip(*block, strict=True))
    up = np.array([0.0, 0.0, lift])
    return wb.shapes.Box(tuple(lower + up - grow), tuple(upper + up + grow))


def shape(lift: float = 0.0, finer: int = 1) -> wb.shapes.TetMesh:
    """The body as tetrahedra, six in each cell: 3,042 of them, or `finer`^3 times as many; raised by `lift` [m]."""
    cells: set[tuple[int, int, int]] = set()
    for block in PARTS.values():
        ends = (np.array(block) - np.array(CORNER)[:, None]) * finer // 2
        cells |= set(itertools.product(*(range(*side) for side in ends)))
    nodes, tets = cut(cells, 6 * len(cells))
    corner = 0.5 * CELL * np.array(CORNER) + (0.0, 0.0, lift)
    return wb.shapes.TetMesh.oriented(nodes * (CELL / finer) + corner, tets)


def markers(lift: float) -> dict[str, wb.shapes.Box]:
    """Regions whose motion is measured: at both ends of every bone, at the top of the head, and at both soles."""
    found = {}
    for bone, block in BONES.items():
        axis = int(np.argmax([b - a for a, b in block]))
        for name, at in zip(("first", "last"), block[axis], strict=True):
            thin = tuple((at - 0.5, at + 0.5) if k == axis else ends for k, ends in enumerate(block))
            found[f"{bone}_{name}"] = box(thin, lift, grow=1e-4)
    found["top"] = box(((-5, 5), (-3, 3), (41.5, 42)), lift, grow=1e-4)
    for leg in ("left_leg", "right_leg"):
        found[f"{leg}_sole"] = box((PARTS[leg][0], (-3, 3), (0, 0.5)), lift, grow=1e-4)
    return found


def joints(lift: float, velocity: np.ndarray) -> list[wb.Joint]:
    """Joints of the humanoid: the torso moves freely, hips swing the legs forwards, and shoulders lift the arms."""
    thrown = (*velocity, 0.0, 0.0, 0.0)
    found = [wb.Joint("flight", "free", None, "torso", (0.0, 0.0, 0.0), start_velocity=thrown)]
    for bone, pivot in PIVOTS.items():
        at = tuple(0.5 * CELL * np.array(pivot) + (0.0, 0.0, lift))
        axis = {"left_arm": (0, 1, 0), "right_arm": (0, -1, 0)}.get(bone, (1, 0, 0))
        spring = {} if bone in ARMS else {"stiffness": HIP, "damping": 0.05}
        found.append(wb.Joint(f"{bone}_joint", "revolute", "torso", bone, at, axis=axis, **spring))
    return found


def motors() -> list[wb.actuators.Servo]:
    """Motors at the shoulders, with position control."""
    return [wb.actuators.Servo(f"lift_{arm}", f"{arm}_joint", SERVO, BRAKE, reach=LIFT) for arm in ARMS]


def soft_humanoid(
    lift: float = 0.04, velocity: tuple[float, ...] = (0.0, 0.0, 0.0), bones: bool = True, torques: bool = True,
    finer: int = 1,
) -> wb.Scene:  # fmt: skip
    """The soft body above the floor.

    Args:
        lift: Height of the soles above the floor [m].
        velocity: Initial velocity [m/s].
        bones: Whether the body has its skeleton.
        torques: Whether motors lift the arms, which needs bones.
        finer: Number of cells along each edge of a cell of width `CELL`.
    """
    body = wb.SoftBody("body", shape(lift, finer), FLESH, markers(lift), velocity=velocity, color=(0.93, 0.91, 0.87))
    skeleton = [wb.RigidBody(b, box(block, lift), BONE_DENSITY, color=(0.35, 0.4, 0.5)) for b, block in BONES.items()]
    return wb.Scene(
        name="soft_humanoid",
        bodies=[body, *(skeleton if bones else ())],
        actuators=motors() if bones and torques else (),
        obstacles=[wb.floor(friction=SOLE)],
        joints=joints(lift, np.array(velocity)) if bones else (),
        task=wb.Task(
            cell_size=CELL, control_interval=0.01, substeps=2, steps=100, direction=(0.0, 0.0, 1.0), clusters=4
        ),
    )


def rigid_humanoid(lift: float = 0.04, velocity: tuple[float, ...] = (0.0, 0.0, 0.0)) -> wb.Scene:
    """The same blocks as rigid bodies of the same density, on the same joints with the same motors."""
    blocks = {"torso": ("torso", "head"), **{bone: (bone,) for bone in PIVOTS}}
    bodies = []
    for bone, parts in blocks.items():
        solid = wb.shapes.Union(tuple(box(PARTS[p], lift) for p in parts)) if len(parts) > 1 else box(PARTS[bone], lift)
        bodies.append(wb.RigidBody(bone, solid, FLESH.density, points=50, color=(0.93, 0.91, 0.87)))
    return wb.Scene(
        name="rigid_humanoid",
        bodies=bodies,
        actuators=motors(),
        obstacles=[wb.floor(friction=SOLE)],
        joints=joints(lift, np.array(velocity)),
        contacts=[wb.Contact(bone, "floor", 1e5, 1e5, SOLE, 1e5) for bone in blocks],
    )
