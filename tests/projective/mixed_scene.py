"""A scene with all kinds: a robot from a file pushes a sponge that carries a loose cube; a press and a muscle act too."""

from pathlib import Path

from loose_bodies import GAP, cube, simulated

import warpbots as wb
from warpbots.simulation import Simulation

RAM = """<mujoco><worldbody>
  <body name="ram" pos="-0.0207 0.03 0.017">
    <joint name="slide" type="slide" axis="1 0 0"/>
    <geom type="box" size="0.02 0.02 0.012" mass="0.3" friction="0.5"/>
    <body name="flap" pos="0 0 0.03"><joint name="hinge" axis="0 1 0" damping="0.001"/>
      <geom type="capsule" size="0.006" fromto="0 0 0 0 0 0.03" mass="0.02" friction="0.5"/></body>
  </body>
</worldbody><actuator><position joint="slide" kp="400" kv="10" ctrlrange="-0.05 0.05"/></actuator></mujoco>"""
CONTROL = (0.6, 0.8, 0.5)
"""Of the ram, the muscle and the press."""


def mixed(folder: Path) -> wb.Scene:
    """The scene."""
    path = folder / "ram.xml"
    path.write_text(RAM)
    robot = wb.robots.load(path)
    box, top = wb.shapes.Box, 0.03 + GAP
    sponge = wb.SoftBody(
        "sponge", box((0.0, 0.0, GAP), (0.06, 0.06, top)), wb.Material(3e4, 0.3, 300.0), {"all": box((-1,) * 3, (1,) * 3)},
        friction=0.5,
    )  # fmt: skip
    load = cube("load", (0.01, 0.015, top + GAP), 2000.0, side=0.03)
    ceiling = top + 0.03 + 3.0 * GAP
    press = wb.Obstacle(box((0.0, 0.0, ceiling), (0.06, 0.06, ceiling + 0.02)), "friction", 0.4, name="press")
    pull = wb.actuators.Muscle("pull", "all", (0, 1, 0), max_stress=1e3)
    down = wb.actuators.VelocityDrive("down", "press", max_speed=0.08, axis=(0, 0, -1))
    return wb.Scene(
        (*robot.bodies, sponge, load), (*robot.actuators, pull, down), (wb.floor(friction=0.6), press),
        joints=robot.joints, name="mixed",
    )  # fmt: skip


def simulation(folder: Path, worlds: int = 1, **options) -> Simulation:
    """The scene under projective dynamics in steps of 4 ms."""
    return simulated(mixed(folder), 0.03, 4e-3, worlds, **options)
