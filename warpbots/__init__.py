"""Differentiable simulation of soft and hybrid robots on NVIDIA Warp.

The names are in the order in which data flows: a scene is built by a solver into a model, stepped into states, whose
trajectory gives a loss, whose gradient moves parameters.
"""

import warp as _warp

from warpbots import controllers, materials, meshing, observers, usd, view
from warpbots.gradients import Checkpoints
from warpbots.optimize import Bounded, History, fit, hessian_product
from warpbots.robots import hold_pose, load_robot, set_down
from warpbots.scene import (
    Attachment,
    Cable,
    Cloud,
    Constraint,
    Contact,
    Expansion,
    Fibre,
    Fluid,
    Inertia,
    Joint,
    Load,
    Material,
    Motor,
    Muscle,
    Obstacle,
    Oscillation,
    PneumaticCell,
    Pressure,
    RigidBody,
    Scene,
    SceneError,
    Servo,
    SoftBody,
    Task,
    Torque,
    floor,
    shapes,
    walls,
)
from warpbots.shape_files import load_mesh, load_sheet, load_silhouette, load_tetrahedra
from warpbots.simulation import Simulation, SimulationError
from warpbots.solvers import MPM, Articulated, MassSpring, ProjectiveDynamics
from warpbots.trajectory import Trajectory

__all__ = [
    "MPM",
    "Articulated",
    "Attachment",
    "Bounded",
    "Cable",
    "Checkpoints",
    "Cloud",
    "Constraint",
    "Contact",
    "Expansion",
    "Fibre",
    "Fluid",
    "History",
    "Inertia",
    "Joint",
    "Load",
    "MassSpring",
    "Material",
    "Motor",
    "Muscle",
    "Obstacle",
    "Oscillation",
    "PneumaticCell",
    "Pressure",
    "ProjectiveDynamics",
    "RigidBody",
    "Scene",
    "SceneError",
    "Servo",
    "Simulation",
    "SimulationError",
    "SoftBody",
    "Task",
    "Torque",
    "Trajectory",
    "controllers",
    "fit",
    "floor",
    "hessian_product",
    "hold_pose",
    "load_mesh",
    "load_robot",
    "load_sheet",
    "load_silhouette",
    "load_tetrahedra",
    "materials",
    "meshing",
    "observers",
    "set_down",
    "shapes",
    "usd",
    "view",
    "walls",
]

__version__ = "0.1.0"

if _warp.config.log_level == _warp.LOG_INFO:  # the default: a line for every kernel module that is loaded
    _warp.config.log_level = _warp.LOG_WARNING
