"""Kernels over fixed buffers, as two replayable graphs: forwards, and their adjoint backwards."""

import threading
from collections.abc import Callable

import torch
import warp as wp

from warpbots.gradients.notice import said_when_slow
from warpbots.math import clear_gradients

__all__ = ["Replay", "Tensors", "turn"]

Tensors = dict[str, torch.Tensor]
"""Inputs or outputs by name."""

turn = threading.RLock()
"""Held by the thread that launches kernels: what is captured and what is taped are one for the whole process."""


class Replay:
    """Work that reads and writes the same arrays every time.

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
    ):
        """Nothing runs yet.

        Args:
            device: Device of all arrays.
            inputs: What the work reads, by name.
            outputs: What it writes, by name.
            wanted: Names of inputs to which gradients are wanted.
            work: Launches the kernels, recording on the tape that it is given, if any.
            cleared: Names of inputs whose gradients the adjoint of the work clears itself.
        """
        self._device, self._inputs, self._outputs, self._work = device, inputs, outputs, work
        self._cleared = cleared
        self._wanted = [name for name in inputs if name in wanted]
        self._forward_graph: wp.Graph | None = None
        self._backward_graph: wp.Graph | None = None
        self._tape = wp.Tape()

    def run(self, inputs: Tensors) -> Tensors:
        """The outputs for `inputs`, as new tensors."""
        with turn, self._stream():
            for name, array in self._inputs.items():
                wp.to_torch(array, requires_grad=False).copy_(inputs[name])
            if self._forward_graph is None:
                with said_when_slow("preparing kernels (compiled at their first use, then cached)"):
                    self._work(None)  # compiles what is not compiled yet, which must not happen during a capture
                self._forward_graph = self._capture(lambda: self._work(None))
            else:
                wp.capture_launch(self._forward_graph)
            return {name: wp.to_torch(array, requires_grad=False).clone() for name, array in self._outputs.items()}

    def backward(self, gradients: Tensors) -> Tensors:
        """Gradients to the wanted inputs from those to the outputs; `run` must have filled the buffers."""
        with turn, self._stream():
            if self._backward_graph is None:
                with self._tape:
                    self._work(self._tape)
                self._seed(gradients)
                with said_when_slow("preparing kernels of the gradient (compiled at their first use, then cached)"):
                    self._adjoint()
                self._backward_graph = self._capture(self._adjoint)
            self._seed(gradients)
            wp.capture_launch(self._backward_graph)
            return {name: wp.to_torch(self._inputs[name].grad).clone() for name in self._wanted}

    def _seed(self, gradients: Tensors) -> None:
        for name, array in self._outputs.items():
            wp.to_torch(array.grad, requires_grad=False).copy_(gradients[name])

    def _adjoint(self) -> None:
        clear_gradients(self._inputs[name] for name in self._wanted if name not in self._cleared)
        self._tape.backward()

    def _capture(self, work: Callable[[], None]) -> wp.Graph:
        with wp.ScopedCapture(device=self._device) as capture:
            work()
        return capture.graph

    def _stream(self) -> wp.ScopedStream | wp.ScopedDevice:
        """On a GPU work goes to torch's stream, so that neither library has to wait for the other."""
        if self._device.is_cuda:
            return wp.ScopedStream(wp.stream_from_torch(wp.device_to_torch(self._device)))
        return wp.ScopedDevice(self._device)
