"""The octopus of the soft multi-body paper as a scene: a mantle and eight legs with two muscles each, in water.

The mesh is cells of a grid whose nodes are moved into the shape of the animal, cut into six tetrahedra each. It is as
heavy as the water it displaces, and there is no gravity.
"""

import itertools
import math

import numpy as np
from softbody_shapes import cut

import warpbots as wb

__all__ = ["octopus", "octopus_mesh"]

_WATER = 1000.0
"""Density of water and flesh [kg/m^3]."""
_LEGS, _SEGMENTS = 8, 4
"""Legs, and segments of each muscle, which contract on their own."""
_RADIUS, _REACH, _THICK, _DOME = 0.15, 0.40, 0.025, 0.12
"""Radius of the mantle, length of a leg, half its thickness at the mantle, and height of the mantle [m]."""
_STIFFNESS, _CONTRACTION = 5e5, 0.4
"""Stiffness of fibres [Pa], and the fraction of its length that a fibre loses at a signal of 1."""
_HALF = math.radians(7.5)
"""Half the angle at which the root of a leg is seen from the middle."""


def octopus_mesh(fineness: int = 2) -> wb.shapes.TetMesh:
    """An octopus about the z axis: a dome of 6 x 6 x 2 cells, and legs of 1 x 2 cells that taper.

    Args:
        fineness: Cells along each of the four segments of a leg.
    """
    length = _SEGMENTS * fineness
    cells = set(itertools.product(range(-3, 3), range(-3, 3), (-1, 0)))
    for root, k, n in itertools.product((-2, 1), (-1, 0), range(length)):
        cells |= {(3 + n, root, k), (-4 - n, root, k), (root, 3 + n, k), (root, -4 - n, k)}
    shift = np.array([2 * length + 4, 2 * length + 4, 2])  # `cut` mirrors cells by the parity of their indices
    nodes, tets = cut([tuple(int(i) for i in np.add(cell, shift)) for cell in cells], 6 * len(cells))
    i, j, k = (nodes - shift).T.astype(float)
    far, near = np.maximum(abs(i), abs(j)), np.minimum(abs(i), abs(j))
    along = np.maximum(far - 3.0, 0.0) / length  # 0 to 1 in a leg
    ring = np.minimum(far, 3.0) / 3.0
    off = math.pi / 4.0 * near / np.where(far > 3.0, 3.0, np.maximum(far, 1.0))  # from the nearest axis
    angle = np.where(abs(i) >= abs(j), np.arctan2(0.0 * i, i) + off * np.sign(i * j), 0.0)
    angle = np.where(abs(j) > abs(i), np.sign(j) * math.pi / 2.0 - off * np.sign(i * j), angle)
    middle = (np.floor(angle / (math.pi / 4.0)) + 0.5) * math.pi / 4.0  # direction of the leg
    taper = 1.0 - 0.6 * along
    x, y = _RADIUS * ring * np.cos(angle), _RADIUS * ring * np.sin(angle)
    radial = _RADIUS * math.cos(_HALF) + _REACH * along
    side = _RADIUS * np.sin(angle - middle) * taper
    legged = along > 0.0
    x = np.where(legged, radial * np.cos(middle) - side * np.sin(middle), x)
    y = np.where(legged, radial * np.sin(middle) + side * np.cos(middle), y)
    z = k * _THICK * taper + _DOME * (1.0 - ring**2) * (k + 1.0) / 2.0
    return wb.shapes.TetMesh.oriented(np.stack([x, y, z], axis=1), tets)


def octopus(fineness: int = 2, pull: bool = False) -> wb.Scene:
    """An octopus with a muscle in the upper and one in the lower half of each leg, four segments each: 64 signals.

    Args:
        fineness: Fineness of the mesh, as in `octopus_mesh`.
        pull: Whether muscles are a stress that pulls, for signals from 0 to 1, as strongly as a fibre that is held at
            its length. Otherwise they are the fibres of the paper, which resist being shortened, and push for signals
            below 0.
    """
    regions, muscles = {}, []
    for leg in range(_LEGS):
        angle = (leg + 0.5) * math.pi / 4.0
        c, s = math.cos(angle), math.sin(angle)
        turn = ((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0))
        for half, segment in itertools.product(("upper", "lower"), range(_SEGMENTS)):
            start, step = _RADIUS * math.cos(_HALF), _REACH / _SEGMENTS
            bottom, top = (0.0, 0.05) if half == "upper" else (-0.05, 0.0)
            box = wb.shapes.Box((start + step * segment, -0.05, bottom), (start + step * (segment + 1), 0.05, top))
            name = f"leg {leg} {half} {segment}"
            regions[name] = wb.shapes.Posed(box, (0.0, 0.0, 0.0), turn)
            along = (c, s, 0.0)
            muscles.append(
                wb.actuators.Muscle(name, name, along, _STIFFNESS * _CONTRACTION)
                if pull
                else wb.actuators.Fibre(name, name, along, _STIFFNESS, _CONTRACTION)
            )
    flesh = wb.Material(1e5, 0.3, _WATER, "neo_hookean")
    body = wb.SoftBody("octopus", octopus_mesh(fineness), flesh, regions, color=(0.75, 0.4, 0.45))
    return wb.Scene([body], muscles, gravity=(0.0, 0.0, 0.0), fluid=wb.Fluid(_WATER), name="octopus")
