"""The augmented Lagrangian of a constrained problem (Nocedal and Wright, Numerical Optimization, 2006, chapter 17)."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch

from warpbots.optimize.problem import Evaluation
from warpbots.scene.field_types import conform

__all__ = ["AugmentedLagrangian", "Multipliers"]

_ENOUGH = 0.25  # a violation that falls to this fraction between two updates falls fast enough


@dataclasses.dataclass(frozen=True)
class AugmentedLagrangian:
    """Settings with which a torch optimiser enforces constraints, with multipliers λ and μ and a quadratic penalty ρ.

    For the loss f, equality constraints h = 0 and inequality constraints g ≤ 0, the optimiser minimises f + λ·h + ρ/2
    |h|² + 1/(2ρ) |max(0, μ + ρ g)|². After every `every` iterations λ becomes λ + ρ h, μ becomes max(0, μ + ρ g), and
    the momentum or curvature of the optimiser is reset. If `growth` is above one and the violation has not fallen to a
    quarter since the last update, ρ is multiplied by `growth`. An optimiser with a constant step never reduces the
    violation that far, and a large ρ slows down the optimiser; so combine a `growth` above one with a scheduler that
    reduces the step.

    Attributes:
        penalty: Initial value of ρ, in units of the loss per square of a constraint.
        every: Number of iterations between two updates of the multipliers.
        growth: Factor by which ρ is multiplied if the violation does not fall enough; 1 to keep ρ constant.
    """

    penalty: float = 1.0
    every: int = 50
    growth: float = 1.0

    def __post_init__(self):
        conform(self)
        if not (self.penalty > 0.0 and self.every >= 1 and self.growth >= 1.0):
            raise ValueError(
                f"AugmentedLagrangian: penalty must be positive, every and growth at least 1, got {self.penalty:g}, "
                f"{self.every} and {self.growth:g}"
            )


class Multipliers:
    """Current multipliers and penalty of a search."""

    def __init__(self, settings: AugmentedLagrangian):
        """Set the multipliers to zero, and ρ to the `penalty` of the settings."""
        self._settings = settings
        self._equality = self._inequality = torch.zeros(0)
        self._penalty, self._violation = settings.penalty, torch.inf

    def merit(self, now: Evaluation) -> torch.Tensor:
        """Value of the augmented Lagrangian for an evaluation, up to a constant."""
        h, g, rho = now.equality, now.inequality, self._penalty
        if self._equality.shape != h.shape or self._inequality.shape != g.shape:  # the first evaluation
            self._equality, self._inequality = torch.zeros_like(h).detach(), torch.zeros_like(g).detach()
        bent = torch.relu(self._inequality.to(g) + rho * g).square().sum()
        return now.loss + self._equality.to(h) @ h + 0.5 * rho * h.square().sum() + 0.5 / rho * bent

    def after(self, iteration: int, now: Evaluation) -> bool:
        """Update the multipliers if an update is due after `iteration`, and return whether an update was due.

        Args:
            iteration: Index of the iteration that has ended.
            now: The last evaluation of this iteration.
        """
        if (iteration + 1) % self._settings.every:
            return False
        self._equality = self._equality + self._penalty * now.equality.detach()
        self._inequality = torch.relu(self._inequality + self._penalty * now.inequality.detach())
        if now.violation > _ENOUGH * self._violation:
            self._penalty *= self._settings.growth
        self._violation = now.violation
        return True

    def state_dict(self) -> dict[str, Any]:
        """State of the multipliers and the penalty, for a checkpoint."""
        return {
            "equality": self._equality,
            "inequality": self._inequality,
            "penalty": self._penalty,
            "violation": self._violation,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        self._equality, self._inequality = state["equality"], state["inequality"]
        self._penalty, self._violation = state["penalty"], state["violation"]
