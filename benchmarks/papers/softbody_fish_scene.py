"""The fish of the soft multi-body paper as a scene: a soft body with a skeleton, in water.

The mesh is cells of a grid whose nodes are moved into the shape of the animal, cut into six tetrahedra each. It is as
heavy as the water it displaces, and there is no gravity. Drag and thrust have the coefficients of the paper's code (the
defaults of `warpbots.Fluid`).
"""

import itertools

import numpy as np
from softbody_shapes import cut

import warpbots as wb

__all__ = ["TAIL_ROOT", "fish", "fish_mesh"]

WATER = 1000.0
"""Density of the water, of flesh and of bones [kg/m^3]."""

TAIL_ROOT = -0.06
"""Where the caudal fin begins, behind the last bone [m]."""
_BODY, _TAIL = 0.24, 0.14
"""Lengths of the fish in front of and behind its peduncle at x = 0 [m]."""
_PLATE, _FIN_SPAN, _FIN_HEIGHT = 0.003, 0.065, 0.004
"""Half the thickness of bones; span and half the height of a pectoral fin [m]."""
_JOINTS = {"tail": -0.012, "rear": 0.08, "neck": 0.16}
"""Where the spine bends [m]."""


def _fish_cells(fineness: int) -> tuple[set[tuple[int, int, int]], int, int]:
    """Cells of the fish, and the lengths of the fish and of its tail [cells].

    Indices of cells are counted from the peduncle in the middle plane.
    """
    body, tail, half = 10 * fineness, 6 * fineness, 2
    high = 2 * fineness
    cells = set(itertools.product(range(body), range(-half, half), range(-high, high)))
    cells |= set(itertools.product(range(-tail, 0), range(-1, 1), range(-high, high)))
    root = 6 * fineness
    sides = (*range(-half - 3, -half), *range(half, half + 3))
    return cells | set(itertools.product(range(root, root + 2 * fineness), sides, (-1, 0))), body, tail


def fish_mesh(fineness: int = 1) -> wb.shapes.TetMesh:
    """A fish along x, 0.38 m long, with the peduncle at the origin, a caudal fin and two pectoral fins.

    Args:
        fineness: Cells of the spine and of the height, relative to the coarsest mesh.
    """
    cells, body, tail = _fish_cells(fineness)
    shift = 2 * np.array([tail, 5, 2 * fineness])  # `cut` mirrors cells by the parity of their indices
    nodes, tets = cut([tuple(int(i) for i in np.add(cell, shift)) for cell in cells], 6 * len(cells))
    i, j, k = (nodes - shift).T.astype(float)
    along = np.where(i < 0, i / tail, i / body)  # -1 to 0 in the tail, 0 to 1 in the body
    swell = np.sin(np.pi * np.clip(0.03 + 0.94 * along, 0.0, 1.0)) ** 0.8
    flare = np.clip((-along - 0.3) / 0.7, 0.0, 1.0) ** 1.2
    width = np.where(i < 0, 0.010 + 0.006 * (1.0 + along), 0.010 + 0.028 * swell)
    height = np.where(i < 0, 0.020 + 0.045 * flare, 0.016 + 0.044 * swell)
    across, up = np.clip(j / 2.0, -1.0, 1.0), k / (2.0 * fineness)
    outside = np.maximum(np.abs(j) - 2.0, 0.0) / 3.0  # 0 to 1 along a pectoral fin
    round_ = np.where(i < 0, 0.0, 0.35)
    x = np.where(i < 0, _TAIL, _BODY) * along
    y = np.where(i < 0, 0.5 * width * j, width * across * np.sqrt(1.0 - round_ * up**2))
    z = height * up * np.sqrt(1.0 - round_ * across**2)
    return wb.shapes.TetMesh.oriented(
        np.stack([x, y + np.sign(j) * _FIN_SPAN * outside, np.where(outside > 0.0, _FIN_HEIGHT * k, z)], axis=1), tets
    )


def fish(fineness: int = 1) -> wb.Scene:
    """A fish with a bone in its tail, three in its body and one in each pectoral fin, and a motor at all five joints.

    Bones are plates in the middle plane, to whose nodes flesh is bound. The caudal fin behind the last bone is soft.

    Args:
        fineness: Fineness of the mesh, as in `fish_mesh`.
    """
    mesh = fish_mesh(fineness)
    Box, up = wb.shapes.Box, np.array([0.0, 0.0, 1.0])

    def plate(start: float, end: float, height: float) -> wb.shapes.Box:
        return Box((start, -_PLATE, -height), (end, _PLATE, height))

    def fin(side: int) -> wb.shapes.Box:
        ends = np.array([[0.1435, side * 0.05, -5e-4], [0.1925, side * 0.104, 5e-4]])
        return Box(ends.min(axis=0), ends.max(axis=0))

    shapes = {
        "tail": plate(TAIL_ROOT, -0.02, 0.021), "rear": plate(-0.005, 0.075, 0.025), "middle": plate(0.09, 0.15, 0.04),
        "head": plate(0.165, 0.225, 0.025), "left fin": fin(1), "right fin": fin(-1),
    }  # fmt: skip
    ivory = (0.93, 0.9, 0.8)
    bones = [wb.RigidBody(name, shape, WATER, color=ivory) for name, shape in shapes.items()]
    parents = {"tail": "rear", "rear": "middle", "neck": "middle"}
    children = {"neck": "head"}
    joints = [
        wb.Joint(f"{name} joint", "revolute", parents[name], children.get(name, name), (x, 0.0, 0.0), axis=up)
        for name, x in _JOINTS.items()
    ] + [
        wb.Joint(f"{name} joint", "revolute", "middle", name, (0.168, side * 0.042, 0.0), axis=(0.0, 1.0, 0.0))
        for name, side in (("left fin", 1), ("right fin", -1))
    ]
    motors = [
        wb.actuators.Torque(j.name.replace("joint", "motor"), j.name, 0.06 if "fin" in j.name else 0.3) for j in joints
    ]
    caudal = wb.shapes.HalfSpace((TAIL_ROOT, 0.0, 0.0), (1.0, 0.0, 0.0))
    flesh = wb.Material(1e5, 0.3, WATER, "corotated")
    body = wb.SoftBody("fish", mesh, flesh, {"caudal fin": caudal}, color=(0.4, 0.6, 0.75))
    return wb.Scene([body, *bones], motors, joints=joints, gravity=(0.0, 0.0, 0.0), fluid=wb.Fluid(WATER), name="fish")
