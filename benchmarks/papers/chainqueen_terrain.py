"""ChainQueen section 5.2, figure 8: a biped of four pressures learns to walk on terrain of particles: on sand.

    python benchmarks/papers/chainqueen_terrain.py [flat] [dunes] [--seeds 5] [--processes 2]

The biped of `chainqueen_codesign` walks on a bed of sand in a tray, which is flat or has dunes. The sand yields by
Drucker and Prager's law, in the same MPM grid as the robot, and the gradient includes its flow. A perceptron observes
seven clusters of the robot and a clock. Writes ``chainqueen_terrain.png`` and film strips beside this file.
"""

import functools
import math

import numpy as np
from chainqueen_common import KILO, options, sized, wb
from chainqueen_shapes import Walker, experiment

DX = 1 / 60
"""Size of a cell [m]: legs are six cells wide, and chambers three."""
DEPTH, WIDTH = 4 * DX, 1.0
"""Mean depth and width of the bed [m]."""
DUNES = {"flat": 0.0, "dunes": 0.015}
"""Heights of the dunes above the mean [m]."""
DUNE = 0.3
"""Distance between dunes [m]; the steepest slope is 17 degrees."""
SAND = wb.Material(20 * KILO, 0.3, 1.5 * KILO, law="hencky", plasticity=wb.materials.DruckerPrager(friction_angle=33.0))
LEFT = 0.1
"""Where the robot begins [m]."""


def bed(height: float) -> wb.shapes.Points:
    """Sand with four particles in each cell; the surface has dunes of the given height, and is flat under the robot."""
    x, y = (0.5 * DX * (np.arange(round(2.0 * extent / DX)) + 0.5) for extent in (WIDTH, DEPTH))
    past = np.maximum(x - LEFT - 0.3, 0.0)
    stretch = np.repeat(1.0 + height / DEPTH * np.sin(2.0 * math.pi * past / DUNE), len(y))
    place = np.stack([np.repeat(x, len(y)), stretch * np.tile(y, len(x))], axis=1)
    return wb.shapes.Points(place, (0.5 * DX) ** 2 * stretch)


def scene(terrain: str) -> wb.Scene:
    """The biped on its bed; pressures reach 2 in the paper's units."""
    box, left = wb.shapes.Box, (0.0, 0.05, 0.2, 0.25)
    chambers = {f"chamber {k}": box((LEFT + x, DEPTH), (LEFT + x + 0.05, DEPTH + 0.1)) for k, x in enumerate(left)}
    shape = wb.shapes.Union((*chambers.values(), box((LEFT, DEPTH + 0.1), (LEFT + 0.3, DEPTH + 0.2))))
    robot = wb.SoftBody("biped", shape, wb.Material(10 * KILO, 0.3, KILO), {"robot": shape} | chambers)
    sand = wb.SoftBody("sand", bed(DUNES[terrain]), SAND, color=(0.9, 0.75, 0.4))
    pressures = [wb.actuators.Pressure(name, name, 2 * KILO) for name in chambers]
    tray = wb.walls((0.0, 0.0), (WIDTH, 0.5), condition="friction", friction=0.5)
    return wb.Scene([robot, sand], pressures, tray, gravity=(0.0, -2.0), domain=((0.0, 0.0), (WIDTH, 0.5)))


TERRAINS = {
    name: Walker(functools.partial(scene, name), DX, 0.01, sized(200, 3), 0.3, 0.25, 1e-2, 0.98, sized(45, 1))
    for name in DUNES
}


def main() -> None:
    """Print the table, and draw the figures."""
    experiment("chainqueen_terrain", TERRAINS, options(__doc__, seeds=5, names=TERRAINS))


if __name__ == "__main__":
    main()
