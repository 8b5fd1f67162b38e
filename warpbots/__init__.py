"""Differentiable simulation of soft and hybrid robots on NVIDIA Warp.

The names are in the order in which data flows: a scene is built by a solver into a model, stepped into states, whose
trajectory gives a loss, whose gradient moves parameters.
"""

import warp as _warp

from warpbots import controllers, materials, observers, usd, view
from warpbots.assets import load_mesh, load_silhouette
from warpbots.gradients import Checkpoints
from warpbots.optimize import Bounded, History, fit
from warpbots.scene import (
    Attachment,
    Cable,
    Constraint,
    Expansion,
    Load,
    Material,
    Motor,
    Muscle,
    Obstacle,
    Oscillation,
    Pressure,
    Scene,
    SceneError,
    SoftBody,
    Task,
    floor,
    shapes,
    walls,
)
from warpbots.simulation import Simulation, SimulationError
from warpbots.solvers import MPM, MassSpring
from warpbots.trajectory import Trajectory

__all__ = [
    "MPM",
    "Attachment",
    "Bounded",
    "Cable",
    "Checkpoints",
    "Constraint",
    "Expansion",
    "History",
    "Load",
    "MassSpring",
    "Material",
    "Motor",
    "Muscle",
    "Obstacle",
    "Oscillation",
    "Pressure",
    "Scene",
    "SceneError",
    "Simulation",
    "SimulationError",
    "SoftBody",
    "Task",
    "Trajectory",
    "controllers",
    "fit",
    "floor",
    "load_mesh",
    "load_silhouette",
    "materials",
    "observers",
    "shapes",
    "usd",
    "view",
    "walls",
]

__version__ = "0.1.0"

if _warp.config.log_level == _warp.LOG_INFO:  # the default: a line for every kernel module that is loaded
    _warp.config.log_level = _warp.LOG_WARNING
