"""Makes every scene of this folder that is described in Python: ``python usd_scenes/build.py``.

A scene file is what these functions say, written by `warpbots.usd.write`; a test keeps the two in step.
"""

import dataclasses
import sys
from pathlib import Path

import warpbots as wb
from warpbots.envs.tasks.walker_2d import walker_scene
from warpbots.scene import Box, Cylinder, Union

FOLDER = Path(__file__).parent
for place in ("benchmarks", "benchmarks/papers", "benchmarks/tasks"):
    sys.path.insert(0, str(FOLDER.parent / place))

from carry import carry_scene  # noqa: E402
from clay import clay_scene  # noqa: E402
from cloth import cloth_scene  # noqa: E402
from diffhand_grasp import designed_scene  # noqa: E402
from diffhand_hands import SCENES as HANDS  # noqa: E402  (from the folders above)
from float import boat_scene  # noqa: E402
from grasping import Cube, grasp_scene, small_arm  # noqa: E402
from pour import pour_scene  # noqa: E402
from scoop import scoop_scene  # noqa: E402
from softbody_fish_scene import fish  # noqa: E402
from softbody_grip import gripper_scene  # noqa: E402
from softbody_humanoid import soft_humanoid  # noqa: E402
from softbody_octopus_scene import octopus  # noqa: E402


def thermal() -> wb.Scene:
    """The soft thermal actuator of Miriyev et al. 2017: silicone whose ethanol boils when it is heated.

    A soft cylinder stands on the floor, held by friction alone. Its heated part is slightly off the axis, as in figure
    1a of Cronos, so that it leans away from it as it grows. Sizes and strain are chosen, they are not the papers'.
    """
    body = wb.SoftBody(
        name="actuator",
        shape=Cylinder((0.0, 0.0, 0.0), (0.0, 0.0, 0.045), 0.015),
        material=wb.Material(youngs_modulus=5e4, poissons_ratio=0.25, density=1000.0, damping=1e-4),
        regions={"heated": Cylinder((-0.003, 0.0, 0.005), (-0.003, 0.0, 0.050), 0.011)},
        color=(0.93, 0.72, 0.52),
    )
    return wb.Scene(
        name="thermal",
        bodies=[body],
        actuators=[wb.actuators.Expansion("heat", "heated", max_strain=0.5)],
        obstacles=[wb.floor(friction=0.8)],
        task=wb.Task(
            cell_size=2.5e-3, control_interval=0.02, substeps=250, steps=150, direction=(1.0, 0.0, 0.0), clusters=4
        ),
    )


def multigait() -> wb.Scene:
    """The crawling sheet of Shepherd et al. 2011: four legs and a spine, each with a row of chambers of its own.

    A flat H, 13.5 cm long, 6 cm wide and 1 cm thick, whose legs lie along x. Stripes across every member in its upper
    half are the chambers, which grow along x alone. The lower half is three times as stiff and passive, so that a
    member whose chambers are filled (u > 0) curls downwards. Stiffness and strain are chosen, they are not the paper's.
    """
    stripe, half, top = 5e-3, 5e-3, 10e-3
    left, right = (0.010, 0.030), (-0.030, -0.010)

    def chambers(first: float, y: tuple[float, float], count: int) -> Union:
        """Stripes along y, every other 5 mm of x from `first` on."""
        starts = [first + 2 * k * stripe for k in range(count)]
        return Union(tuple(Box((x, y[0], half), (x + stripe, y[1], top)) for x in starts))

    chambered = {
        "front_left": chambers(0.0275, left, 4),
        "front_right": chambers(0.0275, right, 4),
        "hind_left": chambers(-0.0625, left, 4),
        "hind_right": chambers(-0.0625, right, 4),
        "spine": chambers(-0.0225, (-0.030, 0.030), 5),
    }
    legs = [Box((x, y[0], 0.0), (x + 0.040, y[1], top)) for x in (0.0275, -0.0675) for y in (left, right)]
    ecoflex = wb.Material(youngs_modulus=1e5, poissons_ratio=0.25, density=1000.0, damping=1e-4)
    body = wb.SoftBody(
        name="sheet",
        shape=Union((Box((-0.0275, -0.030, 0.0), (0.0275, 0.030, top)), *legs)),
        material=ecoflex,
        regions={**chambered, "base": Box((-0.0675, -0.030, 0.0), (0.0675, 0.030, half))},
        region_materials={"base": dataclasses.replace(ecoflex, youngs_modulus=3e5)},
        color=(0.90, 0.84, 0.70),
    )
    return wb.Scene(
        name="multigait",
        bodies=[body],
        actuators=[wb.actuators.Expansion(name, name, max_strain=0.6, direction=(1.0, 0.0, 0.0)) for name in chambered],
        obstacles=[wb.floor(friction=0.6)],
        domain=((-0.3, -0.2, 0.0), (1.0, 0.2, 0.2)),
        task=wb.Task(
            cell_size=5e-3, control_interval=0.02, substeps=300, steps=100, direction=(1.0, 0.0, 0.0), clock=1.0
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
        actuators=[wb.actuators.Motor(name, f"{name}_axle", f"{name}_hub", "plate", 0.1, 12.0) for name in places],
        obstacles=[wb.floor(friction=0.8)],
        task=wb.Task(cell_size=0.01, control_interval=0.02, substeps=500, steps=100, direction=(1.0, 0.0, 0.0)),
    )


def arm() -> wb.Scene:
    """A small arm with soft pads on its two fingers, in front of a rigid and a soft cube, in tetrahedra.

    Its plan is in `benchmarks/tasks/grasping.py`: servos move the arm, and a motor closes each finger with a force.
    """
    robot, hand = small_arm()
    rigid = Cube("aluminium", (0.26, 12.0), 0.03, 2700.0, color=(0.62, 0.66, 0.72))
    soft = Cube("foam", (0.26, -12.0), 0.03, 300.0, 6e4, color=(0.35, 0.62, 0.45))
    return dataclasses.replace(
        grasp_scene(robot, hand, [rigid, soft], cells=8e-3),
        task=wb.Task(cell_size=0.1, control_interval=0.01, substeps=1, steps=100, direction=(1.0, 0.0, 0.0)),
    )


def of_task(scene: wb.Scene, cell_size: float, control_interval: float, substeps: int, steps: int) -> wb.Scene:
    """A scene of `benchmarks/tasks` with the steps of its script, which `warpbots simulate` takes."""
    return dataclasses.replace(
        scene, task=wb.Task(cell_size, control_interval, substeps, steps, direction=(1.0, 0.0, 0.0))
    )


DIFFHAND = {"finger_reach": "reach", "flip_box": "flip", "rotate_cube": "rotate", "assemble": "assemble"}
SCENES = {
    "walker": walker_scene,
    "thermal": thermal,
    "multigait": multigait,
    "soft_legs": soft_legs,
    **{name: lambda task=task: HANDS[task][0](HANDS[task][1]()) for name, task in DIFFHAND.items()},
    "gripper": designed_scene,
    "fish": fish,
    "pneumatic_gripper": gripper_scene,
    "soft_humanoid": soft_humanoid,
    "octopus": lambda: octopus(1),
    "arm": arm,
    "boat": lambda: of_task(boat_scene(), 0.02, 0.01, 9, 100),
    "carry": lambda: of_task(carry_scene("mug"), 0.1, 0.01, 2, 50),
    "clay": lambda: of_task(clay_scene(), 0.015, 0.02, 12, 42),
    "cloth": lambda: of_task(cloth_scene(*small_arm()), 0.3, 0.01, 1, 143),
    "pour": lambda: of_task(pour_scene(), 0.015, 0.02, 15, 50),
    "scoop": lambda: of_task(scoop_scene(), 0.025, 0.02, 9, 38),
}

if __name__ == "__main__":
    for name, scene in SCENES.items():
        wb.usd.write(FOLDER / f"{name}.usda", scene())
