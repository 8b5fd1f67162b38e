"""Checks the arguments of a simulation and builds its model; refuses numbers that do not fit into its arrays."""

import dataclasses
from collections.abc import Callable

import numpy as np
import warp as wp

from warpbots.gradients import tensor_of, turn
from warpbots.numerics import warp_device
from warpbots.scene import Scene, SceneError
from warpbots.scene.field_types import fitted, shown
from warpbots.simulation.input_validation import parameter_fault
from warpbots.simulation.stability_bound import MOST_SUBSTEPS
from warpbots.solvers import ChoosesCellSize, Model, Solver
from warpbots.solvers.baking import at_rest, with_fields
from warpbots.solvers.doubtful_units import warn_of_units
from warpbots.solvers.hidden_friction import warn_of_unused_friction
from warpbots.solvers.initial_state import PREFIX, initial_state
from warpbots.solvers.kept_laws import laws_as_now
from warpbots.solvers.region_densities import warn_of_densities

__all__ = ["build", "built_again", "device_of", "interval", "scene_and_solver"]


def scene_and_solver(scene: Scene, solver: Solver) -> tuple[Scene, Solver]:
    """A scene and the solver for it, whose cell size is chosen if it has none.

    Raises:
        ValueError: One of them is of the wrong type.
        SceneError: The scene has no body.
    """
    scene = fitted(scene, Scene, "Simulation: scene")
    if not scene.bodies:
        raise SceneError(
            f"Scene {scene.name!r}: it has no body to simulate, only obstacles ({len(scene.obstacles)}); put them "
            f"around bodies: dataclasses.replace(robot, obstacles=scene.obstacles), or "
            f"wb.robots.load(..., obstacles=scene.obstacles)"
        )
    if not isinstance(solver, Solver) or isinstance(solver, type):
        raise ValueError(f"Simulation: solver must be an instance such as MPM(dx=0.01), got {shown(solver)}")
    return scene, solver.sized(scene) if isinstance(solver, ChoosesCellSize) else solver


def interval(dt: float | None, substeps: int | None) -> tuple[float | None, int | None]:
    """Length of a control interval [s] and number of its solver steps, each None if it is to be chosen.

    Raises:
        ValueError: One of them is of the wrong type or out of range.
    """
    dt, substeps = fitted(dt, float | None, "Simulation: dt"), fitted(substeps, int | None, "Simulation: substeps")
    if (dt is not None and not dt > 0.0) or (substeps is not None and not 1 <= substeps < MOST_SUBSTEPS):
        raise ValueError(
            f"Simulation: dt must be positive and substeps at least 1, got {shown(dt)} s and {shown(substeps)}"
        )
    return dt, substeps


def device_of(name: wp.DeviceLike) -> wp.Device:
    """The Warp device of a given name; None for the current device."""
    try:
        return warp_device(name)
    except (ValueError, RuntimeError):
        known = ", ".join(str(d) for d in wp.get_devices())
        raise ValueError(f"Simulation: there is no device {name!r}; this machine has {known}") from None


def build(
    scene: Scene, solver: Solver, worlds: int, device: wp.Device
) -> tuple[Model, dict[str, np.ndarray], tuple[str, ...]]:
    """Build the model of a scene with its fields.

    Args:
        scene: The scene.
        solver: The solver, with its cell size.
        worlds: Number of independent copies of the scene.
        device: Device of the arrays.

    Returns:
        The model; the arrays of the initial state that the scene prescribes, by name, each with the shape of one world;
        the names of the fields of a state.

    Raises:
        SceneError: The solver cannot simulate the scene, or a number of the scene does not fit into the arrays.
    """
    try:
        with turn, np.errstate(over="ignore"):  # values too large for the arrays are refused by name
            plain = solver.build(dataclasses.replace(scene, fields=()), worlds, device)
            of_start = [f for f in scene.fields if f.name.startswith(PREFIX)]
            rest, who = at_rest(solver, plain), type(solver).__name__
            start = initial_state(of_start, rest, who)
            model = with_fields(plain, [f for f in scene.fields if f not in of_start], who)
    except MemoryError as fault:
        raise SceneError(
            f"Scene {scene.name!r}: it does not fit into memory ({fault}); use larger cells or fewer worlds"
        ) from fault
    except OverflowError as fault:
        raise SceneError(
            f"Scene {scene.name!r}: a length or a mass in it is beyond all floating point ({fault}); use SI units"
        ) from fault
    _refuse_rounding(scene, model)
    if "body_friction" not in plain.parameters() and getattr(solver, "collisions", True):  # others pass through
        warn_of_unused_friction(scene, type(solver).__name__)
    warn_of_units(scene)
    if plain.matter is not None:
        warn_of_densities(scene, plain.matter)
    return model, start, tuple(rest)


def built_again(scene: Scene, solver: Solver, device: wp.Device) -> Callable[[int], Model]:
    """A function that builds the model of a scene again for a number of worlds, with the laws that it has now.

    Args:
        scene: The scene.
        solver: The solver, with its cell size.
        device: Device of the arrays.
    """
    as_now = laws_as_now(scene)

    def again(worlds: int) -> Model:
        with as_now():
            return build(scene, solver, worlds, device)[0]

    return again


def _refuse_rounding(scene: Scene, model: Model) -> None:
    """Raise if a number of the scene, rounded to the precision of the arrays, leaves its range."""
    for name, spec in model.parameters().items():
        values = tensor_of(model.parameter(name))
        values = values if values.stride(0) else values[:1]  # worlds share one row
        if fault := parameter_fault(name, spec, values, scene.dim):
            dtype = str(values.dtype).removeprefix("torch.")
            raise SceneError(
                f"Scene {scene.name!r}: {fault}, as {dtype} rounds it; choose other values, or double "
                f"precision (WARPBOTS_PRECISION=float64)"
            )
