"""Functions of kernels on fixed buffers, with two graphs to replay: the forward pass and its adjoint."""

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
import warp as wp

from warpbots.gradients.captured import Captured
from warpbots.gradients.finite_checks import Field, Marks
from warpbots.gradients.streams import at_turn
from warpbots.numerics import clear_gradients, recording

__all__ = ["Replay", "Tensors"]

Tensors = dict[str, torch.Tensor]
"""Tensors of inputs or outputs, by name."""


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
        """
        self._device, self._inputs, self._outputs, self._launches = device, inputs, outputs, work
        self._cleared, self._tape = cleared, wp.Tape()
        self._wanted = [name for name in inputs if name in wanted]
        results = [inputs[name].grad for name in self._wanted]
        seeds = [array.grad for array in outputs.values()] if results else []
        with at_turn(device):
            self._marks = Marks(device, watched)
            self._gradient_marks = Marks(device, *([(a, math.inf) for a in arrays] for arrays in (seeds, results)))
            self._in, self._out = _tensors(inputs.values()), _tensors(outputs.values())
            self._seeds, self._results = _tensors(seeds), _tensors(results)
        self._forward = Captured(device, lambda: self._work(None), self._record, "kernels")
        self._backward = Captured(device, self._adjoint, self._adjoint, "kernels of the gradient")

    def run(self, inputs: Tensors) -> tuple[Tensors, torch.Tensor]:
        """Compute the outputs for `inputs`.

        Returns:
            The outputs by name, as new tensors, and the marks of faults in the watched arrays (`Marks.taken`).
        """
        values = [inputs[name] for name in self._inputs]
        with at_turn(self._device) as stream:
            self._forward(lambda: torch._foreach_copy_(self._in, values), stream)
            outputs = [_copy(tensor) for tensor in self._out]
            return dict(zip(self._outputs, outputs, strict=True)), self._marks.taken()

    def backward(self, gradients: Tensors) -> tuple[Tensors, torch.Tensor]:
        """Compute gradients with respect to the wanted inputs; call `run` first.

        Args:
            gradients: Gradients with respect to the outputs, by name.

        Returns:
            The gradients with respect to the wanted inputs, by name; and the marks of gradients that are not finite,
            first rows for the gradients with respect to the outputs, then rows for the gradients with respect to the
            wanted inputs.
        """
        values = [gradients[name] for name in self._outputs]
        with at_turn(self._device) as stream:
            self._backward(lambda: torch._foreach_copy_(self._seeds, values), stream)
            results = [_copy(tensor) for tensor in self._results]
            return dict(zip(self._wanted, results, strict=True)), self._gradient_marks.taken()

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
    return [wp.to_torch(array, requires_grad=False) for array in arrays]


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of a tensor; on a CPU, NumPy allocates the memory of the copy.

    A long rollout keeps some states and frees many others. torch asks the C library for aligned memory, and glibc does
    not reuse freed memory for aligned blocks, so that the process would grow by half a state in every interval.
    """
    if tensor.device.type != "cpu":
        return tensor.clone()
    return torch.from_numpy(np.empty(tensor.shape, str(tensor.dtype).removeprefix("torch."))).copy_(tensor)
