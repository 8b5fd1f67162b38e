"""Makes every scene of this folder that is described in Python: ``python usd_scenes/build.py``.

A scene file is what these functions say, written by `warpbots.usd.write`; a test keeps the two in step.
"""

from pathlib import Path

import warpbots as wb
from warpbots.scene import Box, Union

FOLDER = Path(__file__).parent


def walker() -> wb.Scene:
    """The 2D walker of ChainQueen's appendix C: two legs, with a vertical muscle in every half of a leg.

    The paper's dimensionless numbers (robot 0.3 long, E 10, density 1, stress 2) become silicone of 20 kPa that is
    0.3 m long. The muscles pull with a tenth of E, half of what the paper's do: a fifth folds the legs and most gaits
    learnt with it end in a fall.
    """
    legs = {
        "left_leg_back": Box((0.20, 0.00), (0.25, 0.10)),
        "left_leg_front": Box((0.25, 0.00), (0.30, 0.10)),
        "right_leg_back": Box((0.40, 0.00), (0.45, 0.10)),
        "right_leg_front": Box((0.45, 0.00), (0.50, 0.10)),
    }
    body = wb.SoftBody(
        name="walker",
        shape=Union((Box((0.20, 0.0), (0.30, 0.10)), Box((0.40, 0.0), (0.50, 0.10)), Box((0.20, 0.10), (0.50, 0.20)))),
        material=wb.Material(youngs_modulus=2e4, poissons_ratio=0.3, density=1000.0),
        regions=legs,
    )
    return wb.Scene(
        name="walker",
        bodies=[body],
        actuators=[wb.Muscle(region, region, direction=(0.0, 1.0), max_stress=2e3) for region in legs],
        obstacles=[wb.floor(dim=2, friction=0.5)],
        domain=((-0.4, 0.0), (1.5, 0.4)),
        task=wb.Task(
            cell_size=1 / 80, control_interval=5e-3, substeps=5, steps=400, direction=(1.0, 0.0), clusters=7, clock=0.4
        ),
    )


SCENES = {"walker": walker}

if __name__ == "__main__":
    for name, scene in SCENES.items():
        wb.usd.write(FOLDER / f"{name}.usda", scene())
