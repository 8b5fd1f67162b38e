"""Quantities of a motion that are shown as colours: a parameter of the model, or the activation of matter."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from warpbots.actuation_laws.contraction import contraction
from warpbots.scene import SoftBody
from warpbots.solvers.resampling import interpolated
from warpbots.trajectory import Trajectory
from warpbots.usd.stage.color_map import ColorMap

__all__ = ["ACTIVATION", "PointValues", "point_values"]

ACTIVATION = "activation"
"""Name of the quantity that shows the control signals of the actuators that drive matter."""


@dataclasses.dataclass(frozen=True)
class PointValues:
    """A value for each point of the matter.

    Attributes:
        color_map: Colours of the values.
        at: Function of the time [s] that returns the value of each point, shape (n,).
        changes: Whether the values change with time.
        known: Whether each point has a value, shape (n,), bool; False if its body has no elements with the shown
            parameter.
    """

    color_map: ColorMap
    at: Callable[[float], np.ndarray]
    changes: bool
    known: np.ndarray


def point_values(trajectory: Trajectory[Any], color: str) -> PointValues:
    """Values of the points of the matter of a motion.

    Args:
        trajectory: The motion; only its first world is used.
        color: ``"activation"``, or the name of a parameter of elements. The activation of a point is the sum of the
            control signals of all actuators that drive the point, in the last control interval; it is negative for
            expansion. A parameter is interpolated between the centres of the elements.

    Raises:
        ValueError: There is no parameter called `color`, or it does not belong to elements of soft bodies.
    """
    if color == ACTIVATION:
        known = np.ones(len(trajectory.matter.position), dtype=bool)
        return PointValues(ColorMap(ACTIVATION, -1.0, 1.0, diverging=True), _activation(trajectory), True, known)
    values, known = _parameter(trajectory, color)
    color_map = ColorMap(color, float(values[known].min()), float(values[known].max()))
    return PointValues(color_map, lambda time: values, False, known)


def _activation(trajectory: Trajectory[Any]) -> Callable[[float], np.ndarray]:
    """Function of time [s] that returns the contraction of all points relative to full contraction [1], shape (n,)."""
    matter, dt = trajectory.matter, trajectory.control_interval
    actuators = trajectory.scene.actuators
    regions = [vars(actuator).get("region") for actuator in actuators]
    none = np.zeros(len(matter.position), dtype=bool)
    driven = np.array([matter.regions[r] if r is not None else none for r in regions], dtype=float)
    control = trajectory.control[0].detach().cpu().numpy()

    def at(time: float) -> np.ndarray:
        signal = control[max(round(time / dt) - 1, 0)]
        pull = np.array([contraction(a, u) for a, u in zip(actuators, signal, strict=True)])
        return pull @ driven.reshape(len(signal), len(none))

    return at


def _parameter(trajectory: Trajectory[Any], name: str) -> tuple[np.ndarray, np.ndarray]:
    """The values of a parameter of elements at all points, and whether each point has a value, both of shape (n,).

    The norm of a parameter with several components is used.
    """
    model, matter, scene = trajectory.simulation.model, trajectory.matter, trajectory.scene
    places = {n: model.places(spec.per) for n, spec in model.parameters().items()}
    soft = [i for i, body in enumerate(scene.bodies) if isinstance(body, SoftBody)]
    shown = [n for n, p in places.items() if p is not None and len(p) and np.isin(p.body, soft).all()]
    if name not in shown:
        raise ValueError(f"write: color must be one of {', '.join([ACTIVATION, *shown])}, got {name!r}")
    if name in trajectory.parameters:
        given = trajectory.parameters[name][0].cpu().numpy().astype(float)
    else:
        given = model.parameter(name).numpy()[0].astype(float)
    given = given if given.ndim == 1 else np.linalg.norm(given, axis=-1)
    values, known = np.zeros(len(matter.position)), np.isin(matter.body, places[name].body)
    for body in np.unique(places[name].body):
        here, there = places[name].body == body, matter.body == body
        values[there] = interpolated(places[name].center[here], given[here], matter.position[there])
    return values, known
