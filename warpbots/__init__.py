"""Differentiable simulation of soft and hybrid robots on NVIDIA Warp.

The names are in the order in which data flows: a scene is built by a solver into a model, stepped into states, whose
trajectory gives a loss, whose gradient moves parameters.
"""

import importlib as _importlib
from typing import TYPE_CHECKING, Any

import warp as _warp

from warpbots import controllers, materials, meshing, observers
from warpbots.file_warnings import FileWarning
from warpbots.gradients import Checkpoints
from warpbots.optimize import (
    Bounded,
    Estimate,
    History,
    Outcome,
    RolloutError,
    SearchHistory,
    Unknown,
    fit,
    hessian_product,
    least_squares,
    methods,
    minimize,
    search,
)
from warpbots.scene import (
    Attachment,
    Cable,
    CamClay,
    Cavity,
    Cloud,
    Constraint,
    Contact,
    DruckerPrager,
    Expansion,
    Fibre,
    FibreReinforcement,
    Field,
    Fluid,
    Inertia,
    Joint,
    Load,
    Material,
    MaxwellBranch,
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
    VonMises,
    floor,
    shapes,
    walls,
)
from warpbots.shape_files import load_mesh, load_sheet, load_silhouette, load_tetrahedra
from warpbots.simulation import LostWorldWarning, Simulation, SimulationError
from warpbots.tables import Table as _Table
from warpbots.tables import scene_table as _scene_table
from warpbots.trajectory import Trajectory

if TYPE_CHECKING:
    from warpbots import design, shape, usd, view
    from warpbots.robots import hold_pose, load_robot, replay_in_mujoco, save_robot, set_down
    from warpbots.solvers import MPM, Articulated, MassSpring, ProjectiveDynamics

__all__ = [
    "MPM",
    "Articulated",
    "Attachment",
    "Bounded",
    "Cable",
    "CamClay",
    "Cavity",
    "Checkpoints",
    "Cloud",
    "Constraint",
    "Contact",
    "DruckerPrager",
    "Estimate",
    "Expansion",
    "Fibre",
    "FibreReinforcement",
    "Field",
    "FileWarning",
    "Fluid",
    "History",
    "Inertia",
    "Joint",
    "Load",
    "LostWorldWarning",
    "MassSpring",
    "Material",
    "MaxwellBranch",
    "Motor",
    "Muscle",
    "Obstacle",
    "Oscillation",
    "Outcome",
    "PneumaticCell",
    "Pressure",
    "ProjectiveDynamics",
    "RigidBody",
    "RolloutError",
    "Scene",
    "SceneError",
    "SearchHistory",
    "Servo",
    "Simulation",
    "SimulationError",
    "SoftBody",
    "Task",
    "Torque",
    "Trajectory",
    "Unknown",
    "VonMises",
    "controllers",
    "fit",
    "floor",
    "hessian_product",
    "hold_pose",
    "least_squares",
    "load_mesh",
    "load_robot",
    "load_sheet",
    "load_silhouette",
    "load_tetrahedra",
    "materials",
    "meshing",
    "methods",
    "minimize",
    "observers",
    "replay_in_mujoco",
    "save_robot",
    "search",
    "set_down",
    "design",
    "shape",
    "shapes",
    "usd",
    "view",
    "walls",
]

__version__ = "0.1.0"

_LOADED_WHEN_USED = {
    **dict.fromkeys(("MPM", "Articulated", "MassSpring", "ProjectiveDynamics"), "warpbots.solvers"),
    **dict.fromkeys(("hold_pose", "load_robot", "replay_in_mujoco", "save_robot", "set_down"), "warpbots.robots"),
    **dict.fromkeys(("design", "shape", "usd", "view"), ""),
}
"""Names whose modules take long to import, and where they are; nothing for modules."""


def __getattr__(name: str) -> object:
    if name not in _LOADED_WHEN_USED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = _LOADED_WHEN_USED[name]
    found = getattr(_importlib.import_module(place), name) if place else _importlib.import_module(f"warpbots.{name}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _mimebundle(trajectory: Trajectory[Any]) -> dict:
    """What a notebook shows of a trajectory."""
    from warpbots.view import mimebundle

    return mimebundle(trajectory)


def _scene_text(scene: Scene) -> str:
    """What `print` shows of a scene: a table."""
    return _scene_table(scene).text()


def _scene_mimebundle(scene: Scene) -> dict:
    """What a notebook shows of a scene."""
    from warpbots.view import table_with_picture

    return table_with_picture(scene, _scene_table(scene))


def _simulation_mimebundle(simulation: Simulation[Any], table: _Table) -> dict:
    """What a notebook shows of a simulation."""
    from warpbots.view import table_with_picture

    return table_with_picture(simulation.scene, table, simulation.model.matter)


Trajectory.mimebundle = staticmethod(_mimebundle)  # trajectories, simulations and scenes know nothing of pictures
Simulation.mimebundle = staticmethod(_simulation_mimebundle)
Scene.mimebundle = staticmethod(_scene_mimebundle)
Scene.text = staticmethod(_scene_text)


if _warp.config.log_level == _warp.LOG_INFO:  # the default: a line for every kernel module that is loaded
    _warp.config.log_level = _warp.LOG_WARNING
