"""A mug with a handle as a closed triangle mesh, and without the handle a cup."""

import math

import numpy as np

import warpbots as wb

__all__ = ["mug"]


def mug(
    radius: float, height: float, wall: float, handle: float = 0.0, sectors: int = 12, rings: int = 5
) -> wb.shapes.TriangleMesh:
    """A round vessel that stands on z = 0, open at the top, whose handle points along x.

    It consists of cells of a grid in cylindrical coordinates, whose outer faces are the surface.

    Args:
        radius: Of its outer wall [m].
        height: Its height [m].
        wall: Thickness of the wall and of the bottom [m].
        handle: How far the handle reaches out from the wall; 0 for none [m].
        sectors: Cells around the wall.
        rings: Cells over the wall, at least 4 with a handle.
    """
    r = np.array([0.0, radius - wall, radius, radius + handle - wall, radius + handle])
    z = np.concatenate([[0.0], np.linspace(wall, height, rings)])
    cells = {(0, j, 0) for j in range(sectors)} | {(1, j, k) for j in range(sectors) for k in range(rings)}
    if handle:
        low, high = 1, rings - 2
        cells |= {(2, 0, low), (2, 0, high)} | {(3, 0, k) for k in range(low, high + 1)}

    def place(i: int, j: int, k: int) -> tuple[float, float, float]:
        angle, within = 2.0 * math.pi * (j - 0.5) / sectors, min(r[i], radius)
        return within * math.cos(angle) + r[i] - within, within * math.sin(angle), z[k]

    index: dict[tuple[float, float, float], int] = {}
    faces = []
    for cell in cells:
        for axis in range(3):
            for side in (0, 1):
                beside = [c + (2 * side - 1) * (a == axis) for a, c in enumerate(cell)]
                beside[1] %= sectors
                if tuple(beside) in cells or (axis == 0 and cell[0] + side == 0):
                    continue
                quad = []
                for one, other in ((0, 0), (1, 0), (1, 1), (0, 1))[:: 2 * side - 1]:
                    corner = [c + s for c, s in zip(cell, np.insert((one, other), axis, side), strict=True)]
                    corner[1] %= sectors
                    x = tuple(round(float(v), 12) for v in place(*corner))
                    quad.append(index.setdefault(x, len(index)))
                if axis == 1:
                    quad.reverse()  # r, z has the other handedness about the angle
                triangles = (quad[0], quad[1], quad[2]), (quad[0], quad[2], quad[3])
                faces += [t for t in triangles if len(set(t)) == 3]
    return wb.shapes.TriangleMesh(np.array(list(index)), np.array(faces))
