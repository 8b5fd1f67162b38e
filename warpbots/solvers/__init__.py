"""Solvers, one folder each, and the modules that all of them use."""

import importlib
from typing import TYPE_CHECKING

from warpbots.numerics.parameters import Parameter
from warpbots.renamed import refuse_former
from warpbots.solvers.array_model import ArrayModel
from warpbots.solvers.device_arrays import device_array, tiled
from warpbots.solvers.matter import Matter, regions_at
from warpbots.solvers.places import Places, element_places
from warpbots.solvers.solver import (
    Cautious,
    ChangesRestLengths,
    ChoosesByWorlds,
    ChoosesCellSize,
    DiagnosesGradients,
    Grows,
    MeasuresElements,
    Model,
    Multibody,
    Reports,
    Senses,
    SensesSteps,
    Solver,
    State,
    Statics,
)

if TYPE_CHECKING:
    from warpbots.solvers.articulated import Articulated
    from warpbots.solvers.coupled import Coupled
    from warpbots.solvers.mass_spring import MassSpring
    from warpbots.solvers.mpm import MPM
    from warpbots.solvers.projective import ProjectiveDynamics

__all__ = [
    "MPM",
    "ArrayModel",
    "Articulated",
    "Cautious",
    "ChangesRestLengths",
    "Coupled",
    "DiagnosesGradients",
    "Grows",
    "MassSpring",
    "Matter",
    "MeasuresElements",
    "Model",
    "Multibody",
    "Parameter",
    "Places",
    "ProjectiveDynamics",
    "Reports",
    "Senses",
    "SensesSteps",
    "ChoosesByWorlds",
    "ChoosesCellSize",
    "Solver",
    "State",
    "Statics",
    "device_array",
    "element_places",
    "regions_at",
    "tiled",
]

_LOADED_WHEN_USED = {
    "MPM": "mpm", "Articulated": "articulated", "MassSpring": "mass_spring", "ProjectiveDynamics": "projective",
    "Coupled": "coupled",
}  # fmt: skip


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _LOADED_WHEN_USED:
            refuse_former(__name__)(name)
        globals()[name] = getattr(importlib.import_module(f"{__name__}.{_LOADED_WHEN_USED[name]}"), name)
        return globals()[name]
