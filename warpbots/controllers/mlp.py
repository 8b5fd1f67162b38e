"""Neural-network controllers."""

import math
from collections.abc import Callable
from typing import Any

import torch

from warpbots.observers import BoundObserver, Centroid, Joints, Observer, detach, forget
from warpbots.scene.field_types import checked, fitted, shown
from warpbots.simulation import Simulation
from warpbots.simulation.ages import ages
from warpbots.solvers import State

__all__ = ["MLP"]


class MLP(torch.nn.Module):
    """Multilayer perceptron that maps an observation to a control, with hidden ReLU layers and tanh at the end.

    The network is the closed-loop controller of ChainQueen §4.

    Attributes:
        layers: The network, a `torch.nn.Sequential`.
    """

    @checked
    def __init__(
        self,
        simulation: "Simulation[Any]",
        observer: Observer | Callable[[Any], torch.Tensor] | None = None,
        hidden: tuple[int, ...] = (64, 64),
        clock: float | None = None,
        seed: int = 0,
    ):
        """Make a network with an output for each actuator of `simulation`.

        Args:
            simulation: The simulation to control.
            observer: Source of the inputs of the network: an observer of `warpbots.observers`, or a function of the
                state that returns a tensor of shape (worlds, features). None to observe the centre of mass of soft
                bodies, or the joints of rigid bodies.
            hidden: Number of neurons of each hidden layer.
            clock: Period of a clock [s]; its sine and cosine are additional inputs of the network, so that a gait need
                not arise from the motion of the body alone. None for no clock.
            seed: Seed of the initial weights.

        Raises:
            ValueError: A size in `hidden`, or `clock`, is not positive.
        """
        super().__init__()
        hidden = fitted(hidden, tuple[int, ...], "MLP: hidden")
        if min(hidden, default=1) < 1:
            raise ValueError(f"MLP: hidden layers must have at least one unit each, got {hidden}")
        clock = fitted(clock, float | None, "MLP: clock")
        if clock is not None and clock <= 0.0:
            raise ValueError(f"MLP: clock must be a positive period [s], or None for no clock, got {clock:g}")
        if isinstance(observer, type):
            raise ValueError(
                f"MLP: observer must be an observer, got {shown(observer)}; make one with {observer.__name__}(...)"
            )
        if observer is None:
            observer = Centroid() if simulation.model.robot is None else Joints()
        self._observe: Callable[[State], torch.Tensor] = (
            BoundObserver(observer, simulation) if isinstance(observer, Observer) else observer
        )
        self._clock = clock
        seen = self._observe(simulation.state())
        if not isinstance(seen, torch.Tensor) or seen.dim() != 2:
            raise ValueError(
                f"MLP: observer must return a torch tensor of shape (worlds, features), got "
                f"{shown(seen) if not isinstance(seen, torch.Tensor) else tuple(seen.shape)}"
            )
        self.forget()
        seen = self._features(simulation.state(), 0.0)
        self.forget()
        sizes = [seen.shape[-1], *hidden, simulation.channels]
        with torch.random.fork_rng(), torch.device("cpu"):  # a seed gives the same weights on every device
            torch.manual_seed(seed)
            layers = [torch.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:], strict=False)]
        stack = [module for layer in layers for module in (layer, torch.nn.ReLU())]
        self.layers = torch.nn.Sequential(*stack[:-1], torch.nn.Tanh()).to(seen)

    def forward(self, state: State, time: float | torch.Tensor) -> torch.Tensor:
        """Control signals for `state` at `time`, shape (worlds, channels).

        Args:
            state: The state that is observed.
            time: Time since the start of the worlds [s]: a single number, or, if worlds were reset at different times,
                one number for each world, shape (worlds,).

        Raises:
            ValueError: `time` is neither a number nor one number for each world.
        """
        return self.layers(self._features(state, time))

    def forget(self, worlds: torch.Tensor | None = None) -> None:
        """Clear the memory of the observer, if the observer has memory; see `warpbots.observers.Remembers`."""
        forget(self._observe, worlds=worlds)

    def detach(self) -> None:
        """Cut the gradient of the memory of the observer; see `warpbots.observers.Remembers`."""
        detach(self._observe)

    def _features(self, state: State, time: float | torch.Tensor) -> torch.Tensor:
        seen = self._observe(state)
        if self._clock is None:
            return seen
        phase = 2.0 * math.pi * ages(time, len(seen), seen.device, "MLP: time")[:, None] / self._clock
        return torch.cat([seen, phase.sin().to(seen), phase.cos().to(seen)], dim=-1)
