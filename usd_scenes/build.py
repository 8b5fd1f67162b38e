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


def soft_legs() -> wb.Scene:
    """Four soft legs on a stiff body, each turned by a motor on its own axle, as in figure 1c of Cronos.

    The body is a plate with four stubs, the axles; a leg is a soft cross about one of them, 10 cm across, and turns on
    the two points at which the axle enters and leaves it. Sizes, stiffness and torques are chosen, the paper has none.
    """
    height, half, reach = 0.05, 0.01, 0.05
    places = {
        f"{end}_{side}": (x, y)
        for end, x in (("front", 0.07), ("hind", -0.07))
        for side, y in (("left", 0.05), ("right", -0.05))
    }

    def block(x: float, y: float, across: float, up: float) -> Box:
        """A box about a point of an axle, as wide along it as a leg."""
        return Box((x - across, y - half, height - up), (x + across, y + half, height + up))

    plate = Box((-0.10, -0.04, height - half), (0.10, 0.04, height + half))
    stubs = [block(x, y, half, half) for x, y in places.values()]
    stiff = wb.Material(youngs_modulus=1e6, poissons_ratio=0.25, density=400.0, damping=2e-5)
    soft = wb.Material(youngs_modulus=1e5, poissons_ratio=0.25, density=1000.0, damping=2e-4)
    body = wb.SoftBody("body", Union((plate, *stubs)), stiff, regions={"plate": plate}, color=(0.45, 0.47, 0.50))
    legs = [
        wb.SoftBody(
            name,
            Union((block(x, y, half, reach), block(x, y, reach, half))),
            soft,
            regions={f"{name}_hub": block(x, y, half, half)},
            color=(0.90, 0.45, 0.20),
        )
        for name, (x, y) in places.items()
    ]
    return wb.Scene(
        name="soft_legs",
        bodies=[body, *legs],
        attachments=[
            wb.Attachment(f"{name}_axle", "body", name, ((x, y - half, height), (x, y + half, height)))
            for name, (x, y) in places.items()
        ],
        actuators=[wb.Motor(name, f"{name}_axle", f"{name}_hub", "plate", 0.1, 12.0) for name in places],
        obstacles=[wb.floor(friction=0.8)],
        task=wb.Task(cell_size=0.01, control_interval=0.02, substeps=500, steps=100, direction=(1.0, 0.0, 0.0)),
    )


SCENES = {"walker": walker, "soft_legs": soft_legs}

if __name__ == "__main__":
    for name, scene in SCENES.items():
        wb.usd.write(FOLDER / f"{name}.usda", scene())
