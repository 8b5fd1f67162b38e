"""Observers of soft bodies: strain, pressure, rotation and acceleration of a region, and forces of obstacles."""

import dataclasses
from typing import Any

import torch

from warpbots.observers.contact_steps import measured_in_steps
from warpbots.observers.memory import Recall, interval
from warpbots.observers.observer import Observation, refuse_unknown
from warpbots.observers.region import Region, points_of
from warpbots.scene.field_types import checked, conform
from warpbots.simulation import Simulation
from warpbots.solvers import State

__all__ = ["Accelerometer", "Gyroscope", "ObstacleForces", "MeanPressure", "Strain"]

_STRESS = ("particle", "mass", "element")
"""Kinds of elements for which a solver may compute a stress: MPM, mass-spring and finite elements, in this order."""


@dataclasses.dataclass(frozen=True)
class Strain:
    """Mean Green-Lagrange strain E = (F^T F - 1)/2 of a region, as a stretchable sensor would measure the strain.

    F is the matrix of the affine map that best maps the positions at rest to the current positions, weighted by mass.
    Therefore the strain has the same meaning under every solver, and the region may have any size from a few particles
    to a whole limb.

    Attributes:
        region: Name of the region, or None for all matter.
    """

    region: str | None = None

    def __post_init__(self):
        conform(self)

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """Return a function that maps a state of `simulation` to the strain, shape (worlds, 6), in 2D (worlds, 3).

        The components are xx, yy, zz, yz, xz, xy or, in 2D, xx, yy, xy [1], in the axes of the region at rest.

        Raises:
            TypeError: The scene has no soft bodies.
            ValueError: There is no region of this name, or the region is flat.
        """
        region, dim = Region(simulation, self.region, "Strain"), simulation.scene.dim
        rows, columns = ((0, 1, 2, 1, 0, 0), (0, 1, 2, 2, 2, 1)) if dim == 3 else ((0, 1, 0), (0, 1, 1))

        def observe(state: State, **parameters: torch.Tensor) -> torch.Tensor:
            refuse_unknown(simulation, parameters)
            F = region.deformation(state)
            E = 0.5 * (F.mT @ F - torch.eye(dim, dtype=F.dtype, device=F.device))
            return E[:, rows, columns]

        return observe


@dataclasses.dataclass(frozen=True)
class MeanPressure:
    """Mean pressure -tr(sigma)/dim in the matter of a region, weighted by volumes at rest.

    sigma is the Cauchy stress in the readings of the solver (`warpbots.Simulation.sense`); the docstring of the
    readings says what the stress includes. In 2D the pressure is minus the mean of the normal stresses in the plane.

    Attributes:
        region: Name of the region, or None for all matter.
    """

    region: str | None = None

    def __post_init__(self):
        conform(self)

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """Return a function that maps (state, control=None) to the pressure [Pa], shape (worlds, 1).

        The control is an argument of the function because it is not part of a state; None means u = 0.

        Raises:
            TypeError: The scene has no soft bodies, or the solver has no readings.
            ValueError: There is no region of this name, or no element of matter lies in the region.
        """
        points_of(simulation, self.region, "MeanPressure")
        rest, model = simulation.state(), simulation.model
        count = simulation.sense(rest, steps=False).stress.shape[1]
        places = next(found for kind in _STRESS if (found := model.places(kind)) is not None)
        members = torch.ones(count, dtype=torch.bool)
        if self.region is not None:  # tetrahedra come first among the elements
            members = torch.as_tensor(places.members(simulation.scene, self.region)[:count])
        if not members.any():
            raise ValueError(
                f"MeanPressure: region {self.region!r} selects no element with a stress; use a larger region or "
                f"smaller cells"
            )
        weights = torch.where(members, self._volumes(simulation, places.vertices[:count]), 0.0).to(rest.position)
        weights = weights / weights.sum()

        def observe(state: State, control: torch.Tensor | None = None, **parameters: torch.Tensor) -> torch.Tensor:
            stress = simulation.sense(state, control, steps=False, **parameters).stress
            pressure = -stress.diagonal(dim1=-2, dim2=-1).mean(dim=-1)
            return (pressure @ weights)[:, None]

        return observe

    @staticmethod
    def _volumes(simulation: "Simulation[Any]", vertices: Any) -> torch.Tensor:
        """Weights of the elements of matter, up to a common factor.

        The weight of a point of matter is its volume at rest, the weight of a simplex is proportional to its volume.

        Args:
            simulation: The simulation with the matter.
            vertices: Vertices of the elements at rest.
        """
        if vertices.shape[1] == 1:
            return torch.as_tensor(simulation.model.matter.volume)
        corners = torch.as_tensor(vertices)
        return torch.linalg.det(corners[:, 1:4] - corners[:, :1]).abs()


@dataclasses.dataclass(frozen=True)
class ObstacleForces:
    """Forces of obstacles on bodies, such as the force of the floor on which they stand.

    The observer supports MPM, mass-spring lattices, and projective dynamics with a `contact_interval`.

    Attributes:
        obstacles: Names of the obstacles; None for all obstacles, in the order of `Scene.obstacles`.
    """

    obstacles: tuple[str, ...] | None = None

    def __post_init__(self):
        conform(self)

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """Return a function that maps (state, control=None) to the forces [N], shape (worlds, n_obstacles * dim).

        The control acts in the step whose forces are measured; None means u = 0.

        Raises:
            TypeError: The scene has no soft bodies, or the solver does not measure forces on obstacles.
            KeyError: There is no obstacle of this name.
            ValueError: The scene has no obstacles.
        """
        readings = vars(simulation.sense(simulation.state()))
        if "body_contact_force" not in readings:  # of rigid bodies beside soft ones, which may be alone
            points_of(simulation, None, "ObstacleForces")
        if "contact_force" not in readings:
            raise TypeError(f"ObstacleForces: {measured_in_steps(simulation)}")
        names = [obstacle.name for obstacle in simulation.scene.obstacles]
        if not names:
            raise ValueError(f"ObstacleForces: scene {simulation.scene.name!r} has no obstacles")
        for name in self.obstacles or ():
            if name not in names:
                raise KeyError(f"there is no obstacle {name!r}; the scene has {', '.join(map(repr, names))}")
        chosen = [names.index(n) for n in self.obstacles] if self.obstacles is not None else list(range(len(names)))

        def observe(state: State, control: torch.Tensor | None = None, **parameters: torch.Tensor) -> torch.Tensor:
            return -simulation.sense(state, control, **parameters).contact_force[:, chosen].flatten(start_dim=1)

        return observe


@dataclasses.dataclass(frozen=True)
class Gyroscope:
    """Angular velocity of a region in the axes of the region, as a gyroscope inside the region would measure it.

    It is the angular velocity of a rigid body with the inertia and the angular momentum of the region. The axes of the
    region coincide with the axes of the world at rest, and then rotate with the region.

    Attributes:
        region: Name of the region, or None for all matter.
    """

    region: str | None = None

    def __post_init__(self):
        conform(self)

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """Return a function that maps a state of `simulation` to the angular velocity [rad/s].

        The angular velocity has shape (worlds, 3) or, in 2D, (worlds, 1). The returned function raises a ValueError if
        the region is turned inside out.

        Raises:
            TypeError: The scene has no soft bodies.
            ValueError: There is no region of this name, or the region is flat.
        """
        region = Region(simulation, self.region, "Gyroscope")

        def observe(state: State, **parameters: torch.Tensor) -> torch.Tensor:
            refuse_unknown(simulation, parameters)
            w = region.angular_velocity(state)
            return w if w.shape[1] == 1 else (w[:, None] @ region.rotation(state))[:, 0]

        return observe


@dataclasses.dataclass(frozen=True)
class Accelerometer:
    """Specific force R^T (a - g) of a region in the axes of the region, as an accelerometer would measure it.

    a is the mean acceleration of the centre of mass over the last control interval (0 in the first call), g is the
    gravitational acceleration, and R is the rotation of the region from rest. At rest the specific force points upwards
    with the magnitude of g; in free fall it is zero.

    Attributes:
        region: Name of the region, or None for all matter.
    """

    region: str | None = None

    def __post_init__(self):
        conform(self)

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """Return a function that maps a state of `simulation` to the specific force [m/s^2], shape (worlds, dim).

        The function stores the last velocity (`warpbots.observers.Remembers`), so call it once in each control
        interval. The function raises a ValueError if the region is turned inside out.

        Raises:
            TypeError: The scene has no soft bodies.
            ValueError: There is no region of this name, or the region is flat.
        """
        return _SpecificForce(Region(simulation, self.region, "Accelerometer"), simulation)


class _SpecificForce:
    def __init__(self, region: Region, simulation: "Simulation[Any]"):
        self._region, self._simulation, self._recall = region, simulation, Recall(simulation, 1)
        self._gravity = simulation.parameter("gravity")

    def __call__(self, state: State, **parameters: torch.Tensor) -> torch.Tensor:
        refuse_unknown(self._simulation, parameters)
        v = self._region.center(state.velocity)
        g = parameters.get("gravity", self._gravity).expand_as(v)
        force = (v - self._recall(v)) / interval(self._simulation) - g
        return (force[:, None] @ self._region.rotation(state))[:, 0]

    def forget(self, worlds: torch.Tensor | None = None) -> None:
        self._recall.forget(worlds)

    def detach(self) -> None:
        self._recall.detach()
