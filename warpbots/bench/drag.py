"""A point that the pointer drags: at a body by a force (`pull`), or at an obstacle by its control signals (`tool`)."""

import dataclasses
from typing import Any

import numpy as np
import torch

from warpbots.bench.ray import Ray

__all__ = ["Drag"]


@dataclasses.dataclass(eq=False)
class Drag:
    """A point that is held, and the place to which the pointer drags it.

    Attributes:
        point: The held point, in the frame of the browser [m], shape (3,).
        target: The place to which it is dragged, in this frame [m], shape (3,).
    """

    point: np.ndarray
    target: np.ndarray

    def follow(self, ray: Ray) -> None:
        """Drag towards a line of sight, in the plane of the point that is parallel to the screen."""
        self.target = ray.beside(self.point)

    def signals(self, state: Any, parameters: dict[str, torch.Tensor]) -> dict[int, float]:
        """Control signals in [-1, 1] of the next control interval, by channel; none without drives.

        Args:
            state: The state at the start of the interval.
            parameters: Tensors that replace parameters of the model, by name.
        """
        return {}

    def loads(self, state: Any, parameters: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Parameters of the model that exert a force in the next control interval, by name; none without a force.

        Args:
            state: The state at the start of the interval.
            parameters: Tensors that replace parameters of the model, by name.
        """
        return {}

    def released(self) -> dict[int, float]:
        """Control signals with which whatever was held stops, by channel."""
        return {}
