"""Gradients of a smoothed loss, from rollouts under perturbed unknowns.

Suh, Pang and Tedrake, Bundled gradients through contact via randomized smoothing, RA-L 2022.
"""

import dataclasses
from collections.abc import Iterator

import torch

from warpbots.optimize.unknowns import Unknowns
from warpbots.scene.field_types import conform

__all__ = ["Smoothing"]


@dataclasses.dataclass(frozen=True)
class Smoothing:
    """Settings with which a torch optimiser minimises a smoothed loss.

    The smoothed loss is the mean E f(x + σ ε) of the loss f over perturbed unknowns, with normally distributed ε. The
    gradient of f itself ignores contacts that do not occur in the rollout, and is erratic at impacts; the smoothed
    gradient takes account of all values of the unknowns within about one deviation. Perturbations are drawn in pairs of
    opposite sign from torch's global generator. Losses in the history are means over all samples.

    Attributes:
        deviation: Standard deviation σ of the perturbations, in units of the scales of the unknowns.
        samples: Number of rollouts in each evaluation, an even number.
        order: With 1, the smoothed gradient is the mean of gradients. With 0, it is the mean of (f(x + σ ε) − f(x − σ
            ε)) ε / 2σ, which is noisier but includes jumps of the loss, and needs no gradient of the simulation.
    """

    deviation: float
    samples: int = 8
    order: int = 1

    def __post_init__(self):
        conform(self)
        if not (self.deviation > 0.0 and self.samples >= 2 and self.samples % 2 == 0 and self.order in (0, 1)):
            raise ValueError(
                f"Smoothing: deviation must be positive, samples even and at least 2, order 0 or 1, got "
                f"{self.deviation:g}, {self.samples} and {self.order}"
            )

    def perturbed(self, unknowns: Unknowns) -> Iterator[tuple[list[torch.Tensor], float]]:
        """Perturb the unknowns for one sample after another, and restore them at the end.

        Yields:
            For each sample, the direction of the perturbation of each unknown, and the sign (1 or -1) of the
            perturbation.
        """
        base = [t.detach().clone() for t in unknowns.tensors]
        try:
            for _ in range(self.samples // 2):
                directions = [torch.randn_like(t) for t in base]
                for sign in (1.0, -1.0):
                    unknowns.assign(base)
                    unknowns.shift(directions, sign * self.deviation)
                    yield directions, sign
        finally:
            unknowns.assign(base)
