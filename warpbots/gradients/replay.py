"""Functions of kernels on fixed buffers, with two graphs to replay: the forward pass and its adjoint."""

import dataclasses
import math
import threading
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
import warp as wp

from warpbots.gradients.captured import Captured
from warpbots.gradients.finite_checks import Field, Marks
from warpbots.gradients.streams import at_turn, model_lock, replaying
from warpbots.gradients.tensors import tensor_of
from warpbots.numerics import clear_gradients, recording

__all__ = ["Replay", "Share", "Tensors", "new_tensor"]

Tensors = dict[str, torch.Tensor]
"""Tensors of inputs or outputs, by name."""


@dataclasses.dataclass(frozen=True)
class Share:
    """Consecutive worlds of a simulation, which have a model of their own.

    Attributes:
        first: Index of the first of these worlds in the simulation.
        threads: Number of threads that share the launches over many items of these worlds.
        alone: Lock of the arrays of the model, which all its replays use.
        announced: First runs of the kernels of these worlds that have begun. Later replays of the same kernels compile
            nothing, and are not announced again.
    """

    first: int = 0
    threads: int = 1
    alone: threading.RLock = dataclasses.field(default_factory=model_lock)
    announced: set[object] = dataclasses.field(default_factory=set)


class Replay:
    """A function from inputs to outputs, and its adjoint, computed by kernels on the same arrays at every call.

    Simulations of small robots spend most of the time on launches. Therefore the launches of the function and of its
    adjoint are captured once and then replayed: as a CUDA graph on a GPU, and by the recorder of Warp on a CPU.
    """

    def __init__(
        self,
        device: wp.Device,
        inputs: dict[str, wp.array],
        outputs: dict[str, wp.array],
        wanted: frozenset,
        work: Callable[[wp.Tape | None], None],
        cleared: frozenset = frozenset(),
        watched: Sequence[Field] = (),
        share: Share | None = None,
    ):
        """Prepare the buffers; nothing runs yet.

        Args:
            device: Device of all arrays.
            inputs: Arrays that the kernels read, by name.
            outputs: Arrays that the kernels write, by name.
            wanted: Names of the inputs with respect to which gradients are wanted.
            work: Function that launches the kernels, and records the launches on its argument, a tape, unless the
                argument is None.
            cleared: Names of inputs whose gradients the adjoint of `work` clears; the gradients of all other inputs are
                cleared before the adjoint runs.
            watched: Inputs and outputs whose entries are checked against a range after the kernels have run.
            share: The worlds of the arrays, if they are only some of the worlds of a simulation; other replays with the
                same lock run before or after this one.
        """
        share = share or Share()
        self._device, self._inputs, self._outputs, self._launches = device, inputs, outputs, work
        self._cleared, self._tape, self._alone = cleared, wp.Tape(), share.alone
        self._wanted = [name for name in inputs if name in wanted]
        results = [inputs[name].grad for name in self._wanted]
        seeds = [array.grad for array in outputs.values()] if results else []
        with at_turn(device):
            self._marks = Marks(device, share.first, watched)
            watched_gradients = ([(a, math.inf) for a in arrays] for arrays in (seeds, results))
            self._gradient_marks = Marks(device, share.first, *watched_gradients)
            self._in, self._out = _tensors(inputs.values()), _tensors(outputs.values())
            self._seeds, self._results = _tensors(seeds), _tensors(results)
        rest = share.threads, share.announced, (tuple(outputs), bool(wanted))
        self._forward = Captured(device, lambda: self._work(None), self._record, "kernels", *rest)
        self._backward = Captured(device, self._adjoint, self._adjoint, "kernels of the gradient", *rest)

    @property
    def seconds(self) -> float:
        """Time in which the last `run` replayed its graph [s]; 0 if it launched the kernels."""
        return self._forward.seconds

    @property
    def outputs(self) -> Tensors:
        """The outputs of the last `run` by name, in arrays that the next `run` overwrites."""
        return dict(zip(self._outputs, self._out, strict=True))

    @property
    def gradients(self) -> Tensors:
        """The gradients of the last `backward` by name, in arrays that the next `backward` overwrites."""
        return dict(zip(self._wanted, self._results, strict=True))

    def run(self, inputs: Tensors, into: Tensors | None = None) -> tuple[Tensors, torch.Tensor]:
        """Compute the outputs for `inputs`.

        Args:
            inputs: The inputs by name.
            into: Tensors to which the outputs are written, by name; None for new tensors.

        Returns:
            The outputs by name, and the marks of faults in the watched arrays (`Marks.taken`).
        """
        values = [inputs[name] for name in self._inputs]
        with replaying(self._device, self._alone) as stream:
            self._forward(lambda: torch._foreach_copy_(self._in, values), stream)
            return _copied(self.outputs, into), self._marks.taken()

    def backward(self, gradients: Tensors, into: Tensors | None = None) -> tuple[Tensors, torch.Tensor]:
        """Compute gradients with respect to the wanted inputs; call `run` first.

        Args:
            gradients: Gradients with respect to the outputs, by name.
            into: Tensors to which the results are written, by name; None for new tensors.

        Returns:
            The gradients with respect to the wanted inputs, by name; and the marks of gradients that are not finite,
            first rows for the gradients with respect to the outputs, then rows for the gradients with respect to the
            wanted inputs.
        """
        values = [gradients[name] for name in self._outputs]
        with replaying(self._device, self._alone) as stream:
            self._backward(lambda: torch._foreach_copy_(self._seeds, values), stream)
            return _copied(self.gradients, into), self._gradient_marks.taken()

    def _record(self) -> None:
        self._tape = wp.Tape()
        self._work(self._tape if self._wanted else None)

    def _work(self, tape: wp.Tape | None) -> None:
        with recording(tape):
            self._launches(tape)
        self._marks.clear()
        self._marks.look()

    def _adjoint(self) -> None:
        self._gradient_marks.clear()
        self._gradient_marks.look(0)
        clear_gradients(self._inputs[name] for name in self._wanted if name not in self._cleared)
        self._tape.backward()
        self._gradient_marks.look(1)


def _tensors(arrays: Iterable[wp.array]) -> list[torch.Tensor]:
    return [tensor_of(array) for array in arrays]


def _copied(tensors: Tensors, into: Tensors | None) -> Tensors:
    """Copies of tensors, in `into` or in new tensors."""
    into = {name: new_tensor(tensor, tensor.shape) for name, tensor in tensors.items()} if into is None else into
    torch._foreach_copy_([into[name] for name in tensors], list(tensors.values()))
    return into


def new_tensor(like: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """A tensor without values, of the type and device of `like`; on a CPU, NumPy allocates its memory.

    A long rollout keeps some states and frees many others. torch asks the C library for aligned memory, and glibc does
    not reuse freed memory for aligned blocks, so that the process would grow by half a state in every interval.
    """
    if like.device.type != "cpu":
        return torch.empty(shape, dtype=like.dtype, device=like.device)
    return torch.from_numpy(np.empty(shape, str(like.dtype).removeprefix("torch.")))
