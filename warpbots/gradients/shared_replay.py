"""Replays of shares of the worlds, run by threads at the same time, which together are one replay of all worlds."""

import functools
from collections.abc import Callable, Sequence

import torch

from warpbots.gradients.replay import Replay, Tensors, new_tensor
from warpbots.gradients.thread_team import at_once

__all__ = ["SharedReplay"]


class SharedReplay:
    """A replay whose worlds are divided among several replays; all inputs and outputs have the worlds as first axis.

    Worlds never interact, so the results do not depend on the division.
    """

    def __init__(self, replays: Sequence[Replay], worlds: Sequence[int]):
        """Store the arguments; nothing runs yet.

        Args:
            replays: A replay for each share.
            worlds: Number of worlds of each share.
        """
        self._replays, self._worlds = replays, list(worlds)

    @property
    def seconds(self) -> float:
        """Time in which the last `run` replayed the longest graph [s]."""
        return max(replay.seconds for replay in self._replays)

    def run(self, inputs: Tensors) -> tuple[Tensors, torch.Tensor]:
        """Compute the outputs for `inputs`; see `Replay.run`."""
        return self._each([r.run for r in self._replays], inputs, self._replays[0].outputs)

    def backward(self, gradients: Tensors) -> tuple[Tensors, torch.Tensor]:
        """Compute gradients with respect to the wanted inputs; see `Replay.backward`."""
        return self._each([r.backward for r in self._replays], gradients, self._replays[0].gradients)

    def _each(
        self, calls: Sequence[Callable[..., tuple[Tensors, torch.Tensor]]], given: Tensors, like: Tensors
    ) -> tuple[Tensors, torch.Tensor]:
        total = sum(self._worlds)
        into = {name: new_tensor(t, (total, *t.shape[1:])) for name, t in like.items()}
        parts = zip(calls, self._parts(given), self._parts(into), strict=True)
        marks = [found for _, found in at_once([functools.partial(call, own, out) for call, own, out in parts])]
        return into, torch.stack(marks).amin(dim=0)

    def _parts(self, tensors: Tensors) -> list[Tensors]:
        pieces = [t.detach().split(self._worlds) for t in tensors.values()]
        return [dict(zip(tensors, own, strict=True)) for own in zip(*pieces, strict=True)]
