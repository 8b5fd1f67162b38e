"""Former public names: using a former name raises an error that states the new name."""

import importlib.abc
import sys
import types
from collections.abc import Callable, Sequence
from typing import Never

__all__ = ["FormerAttribute", "FormerModules", "refuse_former"]

_ACTUATORS = [
    *("Cable", "Cavity", "Expansion", "Fibre", "Motor", "Muscle", "Oscillation", "PneumaticCell", "Pressure", "Servo"),
    *("StressActuator", "Torque"),
]
_MATERIALS = ["CamClay", "DruckerPrager", "FibreReinforcement", "MaxwellBranch", "VonMises"]
_RESULTS = ["Estimate", "History", "RolloutError", "SearchHistory", "hessian_product"]
_SHAPES = ["load_mesh", "load_sheet", "load_silhouette", "load_tetrahedra"]

_NEW_NAMES = {
    **{f"warpbots.{name}": f"warpbots.actuators.{name}" for name in _ACTUATORS},
    **{f"warpbots.{name}": f"warpbots.materials.{name}" for name in _MATERIALS},
    **{f"warpbots.{name}": f"warpbots.optimize.{name}" for name in _RESULTS},
    **{f"warpbots.{name}": f"warpbots.shapes.{name}" for name in _SHAPES},
    "warpbots.Field": "warpbots.scene.Field",
    "warpbots.actuation_laws.activation_arrays": "warpbots.actuation_laws.ActivationArrays",
    "warpbots.actuation_laws.pattern": "warpbots.actuation_laws.stress_law",
    "warpbots.design.export.Measures": "warpbots.design.export.PartMeasures",
    "warpbots.hold_pose": "warpbots.robots.hold_pose",
    "warpbots.load_robot": "warpbots.robots.load",
    "warpbots.math": "warpbots.numerics",
    "warpbots.observers.Pressure": "warpbots.observers.MeanPressure",
    "warpbots.optimize.Leg": "warpbots.optimize.SearchRun",
    "warpbots.replay_in_mujoco": "warpbots.robots.replay_in_mujoco",
    "warpbots.robots.Replay": "warpbots.robots.MujocoReplay",
    "warpbots.robots.load_robot": "warpbots.robots.load",
    "warpbots.robots.save_robot": "warpbots.robots.save",
    "warpbots.save_robot": "warpbots.robots.save",
    "warpbots.set_down": "warpbots.robots.set_down",
    "warpbots.shape": "warpbots.morphology",
    "warpbots.shape_files": "warpbots.shapes",
    "warpbots.simulation.Place": "warpbots.simulation.FailurePoint",
    "warpbots.solvers.Sizes": "warpbots.solvers.ChoosesCellSize",
    "warpbots.solvers.articulated.Readings": "warpbots.solvers.articulated.ArticulatedReadings",
    "warpbots.solvers.mass_spring.Readings": "warpbots.solvers.mass_spring.MassSpringReadings",
    "warpbots.solvers.mpm.Readings": "warpbots.solvers.mpm.MPMReadings",
}
"""The new name for every former name, in full."""


def refuse_former(module: str) -> Callable[[str], Never]:
    """A function `__getattr__` for a module that has former names.

    Args:
        module: Name of the module.

    Returns:
        A function that takes the name of a missing attribute and raises an AttributeError; the error states the new
        name if the missing name is a former name.
    """

    def refuse(name: str) -> Never:
        new = _NEW_NAMES.get(f"{module}.{name}")
        if new is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise AttributeError(f"{module}.{name} is now {new}")

    return refuse


class FormerAttribute:
    """A descriptor for the former name of an attribute.

    Reading the attribute raises an AttributeError with the new name.
    """

    def __init__(self, new: str):
        """Store `new`, the present name of the attribute."""
        self._new, self._old = new, ""

    def __set_name__(self, owner: type, name: str):
        self._old = name

    def __get__(self, instance: object, owner: type) -> Never:
        raise AttributeError(f"{owner.__name__}.{self._old} is now {owner.__name__}.{self._new}")


class FormerModules(importlib.abc.MetaPathFinder):
    """Makes ``import warpbots.old`` and ``from warpbots import old`` raise an error with the new name.

    Python calls this finder last, for modules that no other finder has found.
    """

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None) -> None:
        """Raise if `fullname` is a former name; otherwise return None, because this finder finds no modules.

        Raises:
            ImportError: `fullname` is a former name; the message states the new name.
        """
        if fullname in _NEW_NAMES:
            raise ImportError(f"{fullname} is now {_NEW_NAMES[fullname]}", name=fullname)


if not any(isinstance(finder, FormerModules) for finder in sys.meta_path):
    sys.meta_path.append(FormerModules())
