"""ChainQueen section 5.2, figure 8: a biped of four pressures learns to walk on terrain of particles: on sand.

    python benchmarks/papers/chainqueen_terrain.py [flat] [dunes] [--size full] [--seeds 5] [--processes 2]

The biped of `chainqueen_codesign` walks on a bed of sand in a tray, which is flat or has dunes. The sand yields by
Drucker and Prager's law, in the same MPM grid as the robot, and the gradient includes its flow. A perceptron observes
seven clusters of the robot and a clock. Writes ``chainqueen_terrain.png`` and film strips beside this file.
"""

import functools
import math

import numpy as np
from chainqueen_common import KILO, SIZES, Size, sized, wb
from chainqueen_shapes import Walker, experiment

DX = 1 / 60
"""Size of a cell at the small size [m]: legs are six cells wide, and chambers three."""
DEPTH, WIDTH = 4 * DX, 1.0
"""Mean depth and width of the bed [m]."""
DUNES = {"flat": 0.0, "dunes": 0.015}
"""Heights of the dunes above the mean [m]."""
DUNE = 0.3
"""Distance between dunes [m]; the steepest slope is 17 degrees."""
SAND = wb.Material(20 * KILO, 0.3, 1.5 * KILO, law="hencky", plasticity=wb.materials.DruckerPrager(friction_angle=33.0))
LEFT = 0.1
"""Where the robot begins [m]."""


def bed(height: float, size: Size) -> wb.shapes.Points:
    """Sand as fine as the robot; the surface has dunes of the given height, and is flat under the robot."""
    apart = size.cells * DX / size.per_axis
    x, y = (apart * (np.arange(round(extent / apart)) + 0.5) for extent in (WIDTH, DEPTH))
    past = np.maximum(x - LEFT - 0.3, 0.0)
    stretch = np.repeat(1.0 + height / DEPTH * np.sin(2.0 * math.pi * past / DUNE), len(y))
    place = np.stack([np.repeat(x, len(y)), stretch * np.tile(y, len(x))], axis=1)
    return wb.shapes.Points(place, apart**2 * stretch)


def scene(terrain: str, size: Size) -> wb.Scene:
    """The biped on its bed, both of a size; pressures reach 2 in the paper's units."""
    box, left = wb.shapes.Box, (0.0, 0.05, 0.2, 0.25)
    chambers = {f"chamber {k}": box((LEFT + x, DEPTH), (LEFT + x + 0.05, DEPTH + 0.1)) for k, x in enumerate(left)}
    shape = wb.shapes.Union((*chambers.values(), box((LEFT, DEPTH + 0.1), (LEFT + 0.3, DEPTH + 0.2))))
    robot = wb.SoftBody("biped", shape, wb.Material(10 * KILO, 0.3, KILO), {"robot": shape} | chambers)
    sand = wb.SoftBody("sand", bed(DUNES[terrain], size), SAND, color=(0.9, 0.75, 0.4))
    pressures = [wb.actuators.Pressure(name, name, 2 * KILO) for name in chambers]
    tray = wb.walls((0.0, 0.0), (WIDTH, 0.5), condition="friction", friction=0.5)
    return wb.Scene([robot, sand], pressures, tray, gravity=(0.0, -2.0), domain=((0.0, 0.0), (WIDTH, 0.5)))


TERRAINS = {
    key: {
        name: Walker(
            functools.partial(scene, name, size), DX, 0.01, sized(200, 3), 0.3, 0.25, 1e-2, 0.98, sized(45, 1), size
        )
        for name in DUNES
    }
    for key, size in (SIZES | {"full": Size(1 / 3, 3)}).items()
}
"""The terrains by size: 36,200 particles in the paper, about 34,000 at full size."""


def main() -> None:
    """Print the table, and draw the figures."""
    experiment("chainqueen_terrain", __doc__, TERRAINS)


if __name__ == "__main__":
    main()
