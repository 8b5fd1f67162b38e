"""Parameters of a simulation that are multiplied by factors while it runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from warpbots.simulation import Simulation

__all__ = ["ParameterFactors"]

_USUAL = (
    "youngs_modulus", "friction", "body_friction", "contact_friction", "gravity", "damping", "joint_damping",
)  # fmt: skip
_MOST = 4  # largest number of parameters that are chosen if none is asked for


class ParameterFactors:
    """ParameterFactors of parameters; every parameter begins with the factor 1.

    Attributes:
        values: The factors, by the name of the parameter.
    """

    def __init__(self, simulation: "Simulation[Any]", names: Sequence[str] | None):
        """Choose the parameters.

        Args:
            simulation: The simulation.
            names: Names of parameters; None for up to four usual ones that are not zero everywhere.

        Raises:
            KeyError: The simulation has no such parameter.
            ValueError: A parameter is zero everywhere, so that a factor has no effect.
        """
        if names is None:
            usual = [n for n in _USUAL if n in simulation.parameters() and simulation.parameter(n).count_nonzero()]
            names = usual[:_MOST]
        self._start = {name: simulation.parameter(name) for name in names}
        for name, value in self._start.items():
            if not value.count_nonzero():
                raise ValueError(
                    f"bench: parameter {name!r} is 0 everywhere, and stays 0 times any factor; leave it out"
                )
        self._known, self._now = simulation.parameters(), {}
        self.values = dict.fromkeys(self._start, 1.0)

    def set(self, name: str, factor: float) -> float:
        """Change a factor.

        Args:
            name: Name of the parameter.
            factor: The factor.

        Returns:
            The factor before.

        Raises:
            KeyError: The parameter has no factor.
        """
        if name not in self.values:
            raise KeyError(f"bench: there is no slider {name!r}; there are {', '.join(self.values) or 'none'}")
        before, self.values[name] = self.values[name], factor
        self._now = {n: value * self._start[n] for n, value in self.values.items() if value != 1.0}
        return before

    def parameters(self) -> dict[str, torch.Tensor]:
        """Parameters whose factor differs from 1, by name; the tensors stay the same until a factor changes."""
        return dict(self._now)

    def header(self) -> list[dict[str, Any]]:
        """Name, unit, meaning and typical value of each parameter, for a browser."""
        return [
            {
                "name": name,
                "unit": self._known[name].unit,
                "doc": self._known[name].meaning or self._known[name].doc,
                "value": float(value[value != 0].abs().mean()),
            }
            for name, value in self._start.items()
        ]
