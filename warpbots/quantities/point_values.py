"""Quantities of a motion that are shown as colours: stress, strain, activation, or a parameter of the model."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from warpbots.actuation_laws.contraction import contraction
from warpbots.quantities.color_map import ColorMap
from warpbots.scene import SoftBody
from warpbots.solvers import MeasuresElements
from warpbots.solvers.places import Places
from warpbots.solvers.resampling import interpolated
from warpbots.trajectory import Trajectory

__all__ = ["ACTIVATION", "PointValues", "point_values"]

ACTIVATION = "activation"
"""Name of the quantity that shows the control signals of the actuators that drive matter."""


def _equivalent_stress(stress: np.ndarray) -> np.ndarray:
    """Von Mises' stress sqrt(3/2 s : s) with the deviator s, in 2D the difference of the principal stresses [Pa]."""
    deviator = _deviator(stress)
    return np.sqrt((1.5 if stress.shape[-1] == 3 else 2.0) * np.einsum("nij,nij->n", deviator, deviator))


def _equivalent_strain(strain: np.ndarray) -> np.ndarray:
    """The size of elongations of springs, or sqrt(2/3 e : e) with the deviator e of a strain, in 2D sqrt(e : e / 2)."""
    if strain.ndim == 1:
        return np.abs(strain)
    deviator = _deviator(strain)
    return np.sqrt((2.0 / 3.0 if strain.shape[-1] == 3 else 0.5) * np.einsum("nij,nij->n", deviator, deviator))


def _deviator(tensor: np.ndarray) -> np.ndarray:
    dim = tensor.shape[-1]
    return tensor - np.trace(tensor, axis1=1, axis2=2)[:, None, None] / dim * np.eye(dim)


_MEASURED = {"stress": ("Pa", _equivalent_stress), "strain": ("1", _equivalent_strain)}
"""Readings that are shown: their unit, and the function of the reading that computes what is shown."""


@dataclasses.dataclass(frozen=True)
class PointValues:
    """A value for each point of the matter.

    Attributes:
        color_map: Colours of the values; None if the range of the values is known only from the motion, see `spanning`.
        at: Function of the time [s] and the state at this time that returns the value of each point, shape (n,).
        changes: Whether the values change with time.
        known: Whether each point has a value, shape (n,), bool; False if its body has no elements with the shown
            quantity, or if the quantity is a constant of a plasticity that its body lacks.
        name: Name of the quantity.
        meaning: What the values are, for a colour bar.
    """

    color_map: ColorMap | None
    at: Callable[[float, Any], np.ndarray]
    changes: bool
    known: np.ndarray
    name: str
    meaning: str = ""

    def spanning(self, values: Iterable[np.ndarray]) -> "PointValues":
        """The same with colours from 0 to the largest of `values`, if their range was unknown."""
        if self.color_map is not None:
            return self
        upper = max(float(v[self.known].max(initial=0.0)) for v in values)
        color_map = ColorMap(self.name, 0.0, upper, unit=_MEASURED[self.name][0], meaning=self.meaning)
        return dataclasses.replace(self, color_map=color_map)


def point_values(trajectory: Trajectory[Any], color: str, who: str, world: int = 0) -> PointValues:
    """Values of the points of the matter of a motion.

    Args:
        trajectory: The motion.
        color: One of:

            - ``"stress"``: von Mises' stress of the Cauchy stress that the solver measures [Pa]; in 2D the difference
              of the principal stresses in the plane.
            - ``"strain"``: the equivalent strain of the Green-Lagrange strain [1]; for a lattice the mean size of the
              elongations of the springs at a mass.
            - ``"activation"``: the sum of the control signals of all actuators that drive a point, in the last control
              interval; it is negative for expansion.
            - the name of a parameter of elements, which is interpolated between their centres.

            Stress and strain at a node are the means over its elements.
        who: Name of the caller, for messages.
        world: Index of the world.

    Raises:
        ValueError: There is no quantity called `color`, or it does not belong to elements of soft bodies.
    """
    if trajectory.matter is None:
        raise ValueError(f"{who}: color={color!r} needs soft bodies, and the scene has none; leave color out")
    model = trajectory.simulation.model
    measured = model.measured_elements if isinstance(model, MeasuresElements) else {}
    shown = _shown_parameters(trajectory)
    if color == ACTIVATION:
        known = np.ones(len(trajectory.matter.position), dtype=bool)
        color_map = ColorMap(ACTIVATION, -1.0, 1.0, diverging=True)
        return PointValues(color_map, _activation(trajectory, world), True, known, color)
    if color in measured:
        return _measured(trajectory, color, measured[color], world)
    if color not in shown:
        raise ValueError(f"{who}: color must be one of {', '.join([ACTIVATION, *measured, *shown])}, got {color!r}")
    values, known = _parameter(trajectory, color, shown[color], world)
    spec, (lower, upper) = model.parameters()[color], (float(values[known].min()), float(values[known].max()))
    unit = spec.unit.replace("dim", str(trajectory.scene.dim))
    color_map = ColorMap(color, lower, upper, unit=unit, meaning=spec.doc)
    return PointValues(color_map, lambda time, state: values, False, known, color)


def _interval(trajectory: Trajectory[Any], time: float) -> int:
    """Index of the control interval that ends at `time` [s]; at the start, of the first."""
    return max(round(time / trajectory.control_interval) - 1, 0)


def _activation(trajectory: Trajectory[Any], world: int) -> Callable[[float, Any], np.ndarray]:
    """Function that returns the contraction of all points relative to full contraction [1], shape (n,)."""
    matter, actuators = trajectory.matter, trajectory.scene.actuators
    regions = [vars(actuator).get("region") for actuator in actuators]
    none = np.zeros(len(matter.position), dtype=bool)
    driven = np.array([matter.regions[r] if r is not None else none for r in regions], dtype=float)
    control = trajectory.control[world].detach().cpu().numpy()

    def at(time: float, state: Any) -> np.ndarray:
        signal = control[_interval(trajectory, time)]
        pull = np.array([contraction(a, u) for a, u in zip(actuators, signal, strict=True)])
        return pull @ driven.reshape(len(signal), len(none))

    return at


def _measured(trajectory: Trajectory[Any], name: str, kind: str, world: int) -> PointValues:
    """A reading of elements of the kind `kind`, as the mean over the elements at each point."""
    simulation, size = trajectory.simulation, _MEASURED[name][1]
    meaning = {"strain": "equivalent strain", "stress": "von Mises stress"}[name]
    if name == "strain" and kind == "spring":
        meaning = "size of the strain of springs"
    elif name == "stress" and trajectory.scene.dim == 2:
        meaning = "difference of the principal stresses"
    mean = _mean_over_elements(simulation.model.places(kind), trajectory.matter.position)

    def at(time: float, state: Any) -> np.ndarray:
        control = trajectory.control[:, _interval(trajectory, time)].detach()
        readings = simulation.sense(state, control, steps=False, **trajectory.parameters)
        return mean @ size(getattr(readings, name)[world].detach().cpu().numpy().astype(np.float64))

    return PointValues(None, at, True, np.diff(mean.indptr) > 0, name, meaning)


def _flows_by(body: Any, name: str) -> bool:
    """Whether a constant is of the plasticity of a body; matter without it has a value far from all others."""
    materials = body.materials if isinstance(body, SoftBody) else ()
    return any(name in vars(material.plasticity) for material in materials if material.plasticity is not None)


def _mean_over_elements(places: Places, position: np.ndarray) -> csr_matrix:
    """Matrix that gives each point the mean of the values of its elements, shape (n_points, n_elements)."""
    from scipy.spatial import cKDTree

    element, corner = np.nonzero(np.isfinite(places.vertices[..., 0]))
    point = cKDTree(position).query(places.vertices[element, corner])[1]
    count = np.bincount(point, minlength=len(position))
    shape = len(position), len(places)
    return csr_matrix((1.0 / count[point], (point, element)), shape=shape)


def _shown_parameters(trajectory: Trajectory[Any]) -> dict[str, Places]:
    """Parameters of elements of soft bodies, by name, with the places of these elements."""
    model, scene = trajectory.simulation.model, trajectory.scene
    places = {n: model.places(spec.per) for n, spec in model.parameters().items()}
    soft = [i for i, body in enumerate(scene.bodies) if isinstance(body, SoftBody)]
    return {n: p for n, p in places.items() if p is not None and len(p) and np.isin(p.body, soft).all()}


def _parameter(trajectory: Trajectory[Any], name: str, places: Places, world: int) -> tuple[np.ndarray, np.ndarray]:
    """The values of a parameter of elements at all points, and whether each point has a value, both of shape (n,).

    The norm of a parameter with several components is used.
    """
    matter = trajectory.matter
    if name in trajectory.parameters:
        given = trajectory.parameters[name][world].detach().cpu().numpy().astype(float)
    else:
        given = trajectory.simulation.model.parameter(name).numpy()[world].astype(float)
    given = given if given.ndim == 1 else np.linalg.norm(given.reshape(len(given), -1), axis=-1)
    values, known = np.zeros(len(matter.position)), np.isin(matter.body, places.body)
    if trajectory.simulation.model.parameters()[name].neutral is not None:
        flows = [i for i, body in enumerate(trajectory.scene.bodies) if _flows_by(body, name)]
        known &= np.isin(matter.body, flows)
    for body in np.unique(places.body):
        here, there = places.body == body, matter.body == body
        values[there] = interpolated(places.center[here], given[here], matter.position[there])
    return values, known
