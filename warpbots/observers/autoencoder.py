"""A convolutional variational autoencoder for matter on a grid; a controller observes its latent variables."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from warpbots.observers.grid import Grid, GridFields
from warpbots.observers.observer import Observation, refuse_unknown
from warpbots.scene.field_types import checked, fitted
from warpbots.simulation import Simulation
from warpbots.solvers import State

__all__ = ["Autoencoder"]


class Autoencoder(torch.nn.Module):
    """A convolutional variational autoencoder of the fields of a `Grid`, as an observer.

    A controller observes the means of the latent variables. The autoencoder learns to encode motions (`learn`) either
    before the training of a controller, from rollouts with another controller, or during the training, from the
    rollouts of the training itself (ChainQueen §4; Spielberg et al., Learning-in-the-loop optimization, NeurIPS 2019;
    Kingma and Welling, Auto-encoding variational Bayes, 2014). `warpbots.minimize` does not change the weights of the
    autoencoder unless the autoencoder is one of the unknowns.

    Attributes:
        grid: The grid of the fields that are encoded.
        latent: Number of latent variables.
        beta: Weight in the loss of the divergence of the latent variables from a standard normal distribution.
    """

    @checked
    def __init__(
        self,
        simulation: "Simulation[Any]",
        latent: int = 8,
        *,
        grid: Grid | None = None,
        channels: tuple[int, ...] = (16, 32),
        beta: float = 1e-3,
        seed: int = 0,
    ):
        """Make the networks.

        Args:
            simulation: The simulation whose matter is observed.
            latent: Number of latent variables.
            grid: The grid of the fields; None for `Grid()`.
            channels: Number of output channels of each convolution; every convolution halves the number of cells along
                each axis.
            beta: Weight of the divergence in the loss.
            seed: Seed of the initial weights.

        Raises:
            TypeError: The scene has no soft bodies.
            ValueError: A number is out of range, or the region of the grid does not exist.
        """
        super().__init__()
        self.latent, self.beta = fitted(latent, int, "Autoencoder: latent"), fitted(beta, float, "Autoencoder: beta")
        channels = fitted(channels, tuple[int, ...], "Autoencoder: channels")
        if self.latent < 1 or not channels or min(channels) < 1 or self.beta < 0.0:
            raise ValueError(
                f"Autoencoder: latent and channels must be at least 1 and beta at least 0, got {latent}, {channels} "
                f"and {beta:g}"
            )
        self.grid = Grid() if grid is None else grid
        self._fields = GridFields(self.grid, simulation, 2 ** len(channels))
        like, dim = simulation.state().position, simulation.scene.dim
        down, up = ((torch.nn.Conv2d, torch.nn.ConvTranspose2d) if dim == 2 else
                    (torch.nn.Conv3d, torch.nn.ConvTranspose3d))  # fmt: skip
        small = [n // 2 ** len(channels) for n in self._fields.shape]
        flat = channels[-1] * math.prod(small)
        pairs = list(zip((1 + dim, *channels), channels, strict=False))
        with torch.random.fork_rng(), torch.device("cpu"):  # a seed gives the same weights on every device
            torch.manual_seed(seed)
            narrowing = [layer for a, b in pairs for layer in (down(a, b, 3, 2, 1), torch.nn.SiLU())]
            widening = [layer for a, b in reversed(pairs) for layer in (torch.nn.SiLU(), up(b, a, 4, 2, 1))]
            self.encoder = torch.nn.Sequential(*narrowing, torch.nn.Flatten(), torch.nn.Linear(flat, 2 * self.latent))
            self.decoder = torch.nn.Sequential(
                torch.nn.Linear(self.latent, flat), torch.nn.Unflatten(1, (channels[-1], *small)), *widening
            )
        self.to(like)

    def fields(self, state: State) -> torch.Tensor:
        """The fields of a state, shape (worlds, 1 + dim, cells along each axis).

        This method can be the argument `observe` of a rollout, whose observations `learn` then takes.
        """
        return self._fields(state)

    def encode(self, fields: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Means and logarithms of variances of the latent variables, each of shape (n, latent).

        Args:
            fields: Fields of n states, shape (n, 1 + dim, cells along each axis).
        """
        mean, log_variance = self.encoder(fields).chunk(2, dim=1)
        return mean, log_variance

    def decode(self, latent: torch.Tensor) -> torch.Tensor:
        """Decode fields from latent variables, shape (n, 1 + dim, cells along each axis).

        Args:
            latent: Latent variables, shape (n, latent).
        """
        return self.decoder(latent)

    def loss(self, fields: torch.Tensor) -> torch.Tensor:
        """Mean square error of the decoded fields, plus `beta` times the divergence of the latent variables.

        Fields are decoded from random samples of the latent variables, drawn with torch's global generator. The
        divergence is the Kullback-Leibler divergence from a standard normal distribution.

        Args:
            fields: Fields of n states, shape (n, 1 + dim, cells along each axis).
        """
        mean, log_variance = self.encode(fields)
        sample = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance).sum(dim=1).mean()
        return (self.decode(sample) - fields).square().mean() + self.beta * divergence

    @checked
    def learn(self, fields: torch.Tensor, iterations: int = 100, *, lr: float = 1e-3, batch: int = 64) -> list[float]:
        """Minimise `loss` by Adam on random batches, drawn with torch's global generator.

        Args:
            fields: Observations of rollouts with ``observe=autoencoder.fields``, shape (..., 1 + dim, cells along each
                axis); they receive no gradient.
            iterations: Number of steps of Adam, whose moments start from zero in each call.
            lr: Learning rate of Adam.
            batch: Number of samples in a batch.

        Returns:
            The loss in each iteration.

        Raises:
            ValueError: The fields have another shape, or a number is not positive.
        """
        if iterations < 1 or batch < 1 or not lr > 0.0:
            raise ValueError(
                f"Autoencoder: iterations and batch must be at least 1 and lr positive, got {iterations}, {batch} and "
                f"{lr:g}"
            )
        shape = (1 + len(self._fields.shape), *self._fields.shape)
        if tuple(fields.shape[-len(shape) :]) != shape:
            raise ValueError(
                f"Autoencoder: fields must have the shape (..., {_words(shape)}), got {tuple(fields.shape)}"
            )
        samples = fields.detach().reshape(-1, *shape)
        optimizer, losses = torch.optim.Adam(self.parameters(), lr=lr), []
        with torch.enable_grad():
            for _ in range(iterations):
                chosen = torch.randint(len(samples), (min(batch, len(samples)),), device=samples.device)
                optimizer.zero_grad()
                loss = self.loss(samples[chosen])
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        return losses

    @checked
    def bind(self, simulation: "Simulation[Any]") -> Observation:
        """Return a function that maps a state of `simulation` to the means of the latent variables.

        The means have shape (worlds, latent).

        Raises:
            ValueError: The grid for the robot of `simulation` has another shape than the grid of the autoencoder.
        """
        fields = GridFields(self.grid, simulation, self._multiple)
        if fields.shape != self._fields.shape:
            raise ValueError(
                f"Autoencoder: it was made for a grid of {_words(self._fields.shape)} cells, and that of "
                f"{simulation.scene.name!r} has {_words(fields.shape)}; make one for this robot"
            )

        def observe(state: State, **parameters: torch.Tensor) -> torch.Tensor:
            refuse_unknown(simulation, parameters)
            return self.encode(fields(state))[0]

        return observe

    @property
    def _multiple(self) -> int:
        return 2 ** sum(isinstance(layer, torch.nn.SiLU) for layer in self.encoder)


def _words(shape: Sequence[int]) -> str:
    return ", ".join(map(str, shape))
