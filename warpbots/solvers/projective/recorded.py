"""Parameters of projective dynamics in the records of its scene.

Only parameters that do not enter the constant matrix of the global step are recorded: with a different matrix a step
takes different iterations, and ends at the same state only within its tolerance. Stiffness therefore stays in the
fields of the scene, as do the frames and masses of bones, to which nodes are bound.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from warpbots.scene import Cable, Oscillation, Scene
from warpbots.solvers.articulated.recorded import with_contact_laws, with_joints, with_motors
from warpbots.solvers.articulated.robot import ArticulatedRobot
from warpbots.solvers.records import changed, number, numbers, with_actuators, with_body_friction

__all__ = ["with_records"]

Values = Mapping[str, np.ndarray]


def with_records(
    scene: Scene, robot: ArticulatedRobot | None, bones: np.ndarray, values: Values, never: float
) -> Scene:
    """`scene` with other parameters of cables, oscillations, friction, the fluid, joints and motors of bones.

    Args:
        scene: The scene.
        robot: The bones and joints of the scene.
        bones: Indices of the bones with a surface, shape (n,).
        values: Parameters by name.
        never: Value of a joint limit that means no limit [rad or m].
    """
    scene = with_actuators(scene, Cable, {"cable_length": "rest_length"}, values)
    scene = with_actuators(scene, Oscillation, {name: name for name in ("amplitude", "frequency", "phase")}, values)
    scene = _with_fluid(with_body_friction(with_contact_laws(scene, values), bones, values), values)
    return with_joints(with_motors(scene, values), robot, values, never) if robot else scene


def _with_fluid(scene: Scene, values: Values) -> Scene:
    fluid = scene.fluid
    if fluid is None:
        return scene
    if "fluid_density" in values:
        fluid = changed(fluid, density=number(values["fluid_density"][0], fluid.density))
    if "fluid_velocity" in values:
        fluid = changed(fluid, velocity=numbers(values["fluid_velocity"][0], fluid.velocity or 0.0))
    for name in ("drag", "thrust"):
        if name in values:
            angles, before = zip(*getattr(fluid, name), strict=True)
            table = tuple(zip(angles, numbers(values[name], before), strict=True))
            fluid = changed(fluid, **{name: table})
    return dataclasses.replace(scene, fluid=fluid)
