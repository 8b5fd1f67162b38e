"""The centre of mass of a scene, or of a region of it."""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from warpbots.gradients import tensor_of
from warpbots.scene import Scene
from warpbots.solvers import Model

__all__ = ["CenterOfMass"]

_MASSES = {"density", "volume", "mass", "thickness", "section", "rest_position"}
"""Parameters from which the masses of matter follow."""


class CenterOfMass:
    """Computes the centre of mass of all bodies or of a region in a state; stores the masses of matter."""

    def __init__(self, scene: Scene, model: Model, region: Callable[[str], torch.Tensor], sense: Callable[..., Any]):
        """Store the arguments; masses are computed when they are first needed.

        Args:
            scene: The scene, with its fields.
            model: The model, which has the masses.
            region: `Simulation.region`.
            sense: `Simulation.sense`.
        """
        self._model, self._region, self._sense = model, region, sense
        self._bones = "body_mass" if "body_mass" in model.parameters() else "mass"  # "mass" may be of a lattice
        self._names = _MASSES if model.robot is None else _MASSES - {self._bones}
        self._designed = self._names & {field.name for field in scene.fields}
        self._masses: dict[str | None, torch.Tensor] = {}

    def of(self, state: Any, region: str | None, parameters: dict[str, torch.Tensor]) -> torch.Tensor:
        """See `Simulation.center_of_mass`."""
        if self._model.matter is None:
            if region is not None:
                self._region(region)  # raises: there are none
            mass, center = self._bodies(state, parameters)
            return torch.einsum("wb,wbi->wi", mass / mass.sum(dim=1, keepdim=True), center)
        mass, soft = self._matter(state, region, parameters)
        if region is not None or self._model.robot is None:
            return soft
        bones, center = self._bodies(state, parameters)
        moment = torch.einsum("wb,wbi->wi", bones, center)
        return ((mass * soft + moment) / (mass + bones.sum(dim=1, keepdim=True))).to(soft.dtype)

    def _bodies(self, state: Any, parameters: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """Masses [kg] and centres of mass [m] of the rigid bodies."""
        own = tensor_of(self._model.parameter(self._bones))
        return parameters.get(self._bones, own), self._sense(state, **parameters).center

    def _matter(
        self, state: Any, region: str | None, parameters: dict[str, torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Mass [kg], shape (worlds, 1) or (), and centre of mass [m], shape (worlds, dim), of matter in `region`."""
        if self._replaced(parameters):
            return self._sensed(state, region, parameters)
        if region not in self._masses:
            matter = self._model.matter
            mass = torch.as_tensor(matter.density * matter.volume, device=state.position.device)
            self._masses[region] = mass if region is None else mass * self._region(region)
        mass = self._masses[region]
        share = (mass / mass.sum()).to(state.position.dtype)
        return mass.sum(), torch.einsum("n,wni->wi", share, state.position)

    def _replaced(self, parameters: dict[str, torch.Tensor]) -> bool:
        """Whether `parameters` or fields of the scene replace the masses of matter that its records give."""
        return bool(self._designed | self._names & parameters.keys())

    def _sensed(
        self, state: Any, region: str | None, parameters: dict[str, torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Like `_matter`, but computed from momenta.

        The total momentum is Σ m if all velocities are 1, and Σ m x if the velocity of each point is its position x.
        """
        still = {} if self._model.robot is None else {"qd": torch.zeros_like(state.qd)}
        inside = torch.ones_like(state.position)
        if region is not None:
            inside = inside * self._region(region)[:, None]
        mass, moment = (
            self._sense(dataclasses.replace(state, velocity=velocity, **still), **parameters).momentum
            for velocity in (inside, state.position * inside)
        )
        return mass[:, :1], moment / mass[:, :1]
