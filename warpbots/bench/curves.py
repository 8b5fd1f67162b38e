"""Numbers that are plotted while a simulation runs."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from warpbots.simulation import Simulation

__all__ = ["Curves"]

_ENERGIES = ("kinetic_energy", "elastic_energy", "potential_energy")

Curve = Callable[[Any], torch.Tensor | float]


class Curves:
    """Functions of a state, by name; those of readings are energies [J], summed over bodies.

    Attributes:
        names: Names of the curves.
    """

    def __init__(self, simulation: "Simulation[Any]", curves: Mapping[str, Curve] | None, world: int):
        """Choose the curves.

        Args:
            simulation: The simulation.
            curves: Functions of a state that return one number, or one number for each world, by name; None for the
                energies among the readings of the solver.
            world: Index of the world.
        """
        self._simulation, self._given, self._world = simulation, curves, world
        if curves is None:
            readings = simulation.sense(simulation.state(), steps=False)
            known = {field.name for field in dataclasses.fields(readings)}
            self._energies = [name for name in _ENERGIES if name in known]
            self.names = [name.replace("_", " ") + " [J]" for name in self._energies]
        else:
            self.names = list(curves)

    def at(self, state: Any, parameters: dict[str, torch.Tensor]) -> list[float]:
        """The numbers of a state.

        Raises:
            ValueError: A function returned more than one number for a world.
        """
        if self._given is None:
            readings = self._simulation.sense(state, steps=False, **parameters)
            return [float(getattr(readings, name)[self._world].sum()) for name in self._energies]
        return [self._number(name, curve(state)) for name, curve in self._given.items()]

    def _number(self, name: str, value: torch.Tensor | float) -> float:
        value = torch.as_tensor(value).detach()
        if value.dim() == 1 and len(value) == self._simulation.worlds:
            value = value[self._world]
        if value.dim() != 0:
            raise ValueError(
                f"bench: curve {name!r} must return one number, or one for each world, got shape {tuple(value.shape)}"
            )
        return float(value)
