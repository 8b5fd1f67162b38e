"""Differentiable simulation of soft and hybrid robots on NVIDIA Warp.

The public names are listed in the order in which data flows. A solver builds a model from a scene; its time steps lead
from state to state. The states of a rollout form a trajectory, from which a loss is computed; an optimiser changes
parameters by the gradient of the loss.
"""

import importlib as _importlib
from typing import TYPE_CHECKING, Any

from warpbots import actuators, controllers, materials, meshing, observers, optimize, shapes
from warpbots.file_warnings import FileWarning
from warpbots.gradients import Checkpoints
from warpbots.optimize import Bounded, Outcome, Unknown, fit, least_squares, methods, minimize, search
from warpbots.renamed import refuse_former as _refuse_former
from warpbots.scene import (
    Attachment,
    Cloud,
    Constraint,
    Contact,
    Fluid,
    Inertia,
    Joint,
    Load,
    Material,
    Obstacle,
    PrescribedMotion,
    RigidBody,
    Scene,
    SceneError,
    SoftBody,
    Task,
    floor,
    walls,
)
from warpbots.simulation import LostWorldWarning, Simulation, SimulationError
from warpbots.tables import Table as _Table
from warpbots.tables import scene_table as _scene_table
from warpbots.trajectory import Trajectory

if TYPE_CHECKING:
    from warpbots import bench, design, labs, morphology, robots, usd, view
    from warpbots.solvers import MPM, Articulated, Coupled, MassSpring, ProjectiveDynamics

__all__ = [
    "Scene",
    "SceneError",
    "Task",
    "SoftBody",
    "Material",
    "RigidBody",
    "Inertia",
    "Cloud",
    "Joint",
    "Attachment",
    "Constraint",
    "Load",
    "Contact",
    "Obstacle",
    "floor",
    "walls",
    "PrescribedMotion",
    "Fluid",
    "shapes",
    "materials",
    "actuators",
    "design",
    "robots",
    "usd",
    "FileWarning",
    "MPM",
    "MassSpring",
    "ProjectiveDynamics",
    "Articulated",
    "Coupled",
    "meshing",
    "Simulation",
    "SimulationError",
    "LostWorldWarning",
    "Trajectory",
    "Checkpoints",
    "morphology",
    "observers",
    "controllers",
    "minimize",
    "fit",
    "least_squares",
    "search",
    "Unknown",
    "Bounded",
    "Outcome",
    "methods",
    "optimize",
    "view",
    "bench",
    "labs",
]

__version__ = "0.1.0"

_LOADED_WHEN_USED = {
    **dict.fromkeys(("MPM", "Articulated", "Coupled", "MassSpring", "ProjectiveDynamics"), "warpbots.solvers"),
    **dict.fromkeys(("bench", "design", "labs", "morphology", "robots", "usd", "view"), ""),
}
"""Names from modules that are slow to import, imported on first use, with their module; empty if a module itself."""


if not TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name: str) -> object:
        if name not in _LOADED_WHEN_USED:
            _refuse_former(__name__)(name)
        place = _LOADED_WHEN_USED[name]
        module = _importlib.import_module(place or f"warpbots.{name}")
        globals()[name] = getattr(module, name) if place else module
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _mimebundle(trajectory: Trajectory[Any]) -> dict:
    """The content that a notebook shows for a trajectory."""
    from warpbots.view import mimebundle

    return mimebundle(trajectory)


def _scene_text(scene: Scene) -> str:
    """The text that `print` shows for a scene: a table."""
    return _scene_table(scene).text()


def _scene_mimebundle(scene: Scene) -> dict:
    """The content that a notebook shows for a scene."""
    from warpbots.view import table_with_picture

    return table_with_picture(scene, _scene_table(scene))


def _simulation_mimebundle(simulation: Simulation[Any], table: _Table) -> dict:
    """The content that a notebook shows for a simulation."""
    from warpbots.view import table_with_picture

    return table_with_picture(simulation.scene, table, simulation.model.matter)


def _bench(simulation: Simulation[Any], **options: Any) -> Any:
    """A live view of a simulation."""
    from warpbots.bench import Bench

    return Bench(simulation, **options)


Trajectory.mimebundle = staticmethod(_mimebundle)  # trajectories, simulations and scenes know nothing of pictures
Simulation.mimebundle = staticmethod(_simulation_mimebundle)
Simulation.bench_of = staticmethod(_bench)
Scene.mimebundle = staticmethod(_scene_mimebundle)
Scene.text = staticmethod(_scene_text)
