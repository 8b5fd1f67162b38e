"""Kernels on fixed buffers, as two replayable graphs: the forward pass and its adjoint."""

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
"""Inputs or outputs by name."""


class Replay:
    """Work on the same arrays every time, with its adjoint.

    Small robots are bound by the cost of launches, so both directions are captured once and replayed: as a CUDA graph
    on a GPU, by Warp's own recorder on a CPU.
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
            inputs: Arrays that the work reads, by name.
            outputs: Arrays that the work writes, by name.
            wanted: Names of inputs with respect to which gradients are wanted.
            work: Launches the kernels, recording on the given tape, if any.
            cleared: Names of inputs whose gradients the adjoint of the work clears itself.
            watched: Inputs and outputs that must stay in a range, which is checked after the work.
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
        """The outputs for `inputs`, as new tensors, and the marks of the watched arrays."""
        values = [inputs[name] for name in self._inputs]
        with at_turn(self._device) as stream:
            self._forward(lambda: torch._foreach_copy_(self._in, values), stream)
            outputs = [_copy(tensor) for tensor in self._out]
            return dict(zip(self._outputs, outputs, strict=True)), self._marks.taken()

    def backward(self, gradients: Tensors) -> tuple[Tensors, torch.Tensor]:
        """Gradients with respect to the wanted inputs, from gradients with respect to the outputs; call `run` first.

        Returns:
            The gradients by name, and marks of values that are not finite: first with respect to the outputs, then with
            respect to the inputs.
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
    """A copy, on a CPU in memory of NumPy's allocator.

    A long rollout keeps some states and frees many. torch asks the C library for aligned memory, which glibc does not
    find in the freed memory, so that a process would grow by half a state in every interval.
    """
    if tensor.device.type != "cpu":
        return tensor.clone()
    return torch.from_numpy(np.empty(tensor.shape, str(tensor.dtype).removeprefix("torch."))).copy_(tensor)
