"""The centre of mass of a scene, or of a region of it."""

from collections.abc import Callable
from typing import Any

import torch
import warp as wp

from warpbots.solvers import Model

__all__ = ["CenterOfMass"]


class CenterOfMass:
    """Masses of the matter of a simulation, by region, and the mean of a state that they weigh."""

    def __init__(self, model: Model, region: Callable[[str], torch.Tensor], sense: Callable[..., Any]):
        """Nothing is computed yet.

        Args:
            model: Has the masses.
            region: `Simulation.region`.
            sense: `Simulation.sense`.
        """
        self._model, self._region, self._sense = model, region, sense
        self._masses: dict[str | None, torch.Tensor] = {}

    def of(self, state: Any, region: str | None, parameters: dict[str, torch.Tensor]) -> torch.Tensor:
        """See `Simulation.center_of_mass`."""
        if self._model.matter is None:
            if region is not None:
                self._region(region)  # raises: there are none
            mass, center = self._bodies(state, parameters)
            return torch.einsum("wb,wbi->wi", mass / mass.sum(dim=1, keepdim=True), center)
        mass = self._matter(state, region)
        soft = torch.einsum("n,wni->wi", (mass / mass.sum()).to(state.position.dtype), state.position)
        if region is not None or self._model.robot is None:
            return soft
        bones, center = self._bodies(state, parameters)
        moment = torch.einsum("wb,wbi->wi", bones, center)
        total = mass.sum() + bones.sum(dim=1, keepdim=True)
        return ((mass.sum() * soft + moment) / total).to(soft.dtype)

    def _bodies(self, state: Any, parameters: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """Masses [kg] and centres of mass [m] of the rigid bodies."""
        own = wp.to_torch(self._model.parameter("mass"), requires_grad=False)
        return parameters.get("mass", own), self._sense(state, **parameters).center

    def _matter(self, state: Any, region: str | None) -> torch.Tensor:
        """Mass of each point of the matter [kg], 0 outside the region, shape (n,)."""
        if region not in self._masses:
            matter = self._model.matter
            mass = torch.as_tensor(matter.density * matter.volume, device=state.position.device)
            self._masses[region] = mass if region is None else mass * self._region(region)
        return self._masses[region]
