"""One control interval as two replayable graphs: its substeps forwards, and their adjoint backwards."""

import dataclasses

import torch
import warp as wp

from warpbots.gradients.notice import said_when_slow
from warpbots.math import clear_gradients
from warpbots.solvers import Model, Solver, State

__all__ = ["Interval", "Tensors"]

Tensors = dict[str, torch.Tensor]
"""Inputs or outputs of an interval by name: the fields of the state, ``control``, and replaced parameters."""


class Interval:
    """Buffers for the substeps of one control interval and the graphs that run over them.

    Small robots are bound by the cost of launches, so both directions are captured once and replayed: as a CUDA graph
    on a GPU, by Warp's own recorder on a CPU.
    """

    def __init__(self, solver: Solver, model: Model, dt: float, substeps: int, replaced: frozenset, wanted: frozenset):
        """Allocate the buffers.

        Args:
            solver: The method.
            model: What it simulates.
            dt: Length of a substep [s].
            substeps: Number of substeps.
            replaced: Names of model parameters that calls will pass.
            wanted: Names of inputs to which gradients are wanted; empty for an interval that only runs forwards.
        """
        self._solver, self._dt = solver, dt
        gradient = bool(wanted)
        own = {name: wp.clone(getattr(model, name), requires_grad=name in wanted) for name in replaced}
        self._model = dataclasses.replace(model, **own)
        # Without a gradient two states suffice, taken in turn; with one, two gradients do.
        count = substeps + 1 if gradient else 2
        states: list[State] = []
        for i in range(count):
            states.append(solver.state(model, requires_grad=gradient))
            if i >= 2:
                for array, earlier in zip(_named(states[i]).values(), _named(states[i - 2]).values(), strict=True):
                    array.grad = earlier.grad
        self._states = [states[i % count] for i in range(substeps + 1)]
        self._control = control = wp.zeros(
            (model.worlds, model.channels), dtype=model.scalar, device=model.device, requires_grad="control" in wanted
        )
        self._inputs = _named(self._states[0]) | {"control": control} | own
        self._outputs = _named(self._states[-1])
        self._wanted = [name for name in self._inputs if name in wanted]
        self._forward_graph: wp.Graph | None = None
        self._backward_graph: wp.Graph | None = None
        self._tape = wp.Tape()

    def run(self, inputs: Tensors) -> Tensors:
        """Substeps from `inputs`; returns the fields of the final state as new tensors."""
        with self._stream():
            for name, array in self._inputs.items():
                wp.to_torch(array, requires_grad=False).copy_(inputs[name])
            if self._forward_graph is None:
                with said_when_slow("preparing kernels (compiled at their first use, then cached)"):
                    self._substeps()  # compiles what is not compiled yet, which must not happen during a capture
                self._forward_graph = self._capture(self._substeps)
            else:
                wp.capture_launch(self._forward_graph)
        return {name: wp.to_torch(array, requires_grad=False).clone() for name, array in self._outputs.items()}

    def backward(self, gradients: Tensors) -> Tensors:
        """Gradients to the wanted inputs from those to the outputs; `run` must have filled the buffers."""
        with self._stream():
            if self._backward_graph is None:
                with self._tape:
                    self._substeps(recorded=True)
                self._seed(gradients)
                with said_when_slow("preparing kernels of the gradient (compiled at their first use, then cached)"):
                    self._adjoint()
                self._backward_graph = self._capture(self._adjoint)
            self._seed(gradients)
            wp.capture_launch(self._backward_graph)
        return {name: wp.to_torch(self._inputs[name].grad).clone() for name in self._wanted}

    def _substeps(self, recorded: bool = False) -> None:
        for before, after in zip(self._states, self._states[1:], strict=False):
            self._solver.step(self._model, before, self._control, after, self._dt)
            if recorded:  # comes before the adjoint of the step, which adds to what the step after next has left here
                self._tape.record_func(lambda state=before: clear_gradients(_named(state).values()), [])

    def _seed(self, gradients: Tensors) -> None:
        for name, array in self._outputs.items():
            wp.to_torch(array.grad, requires_grad=False).copy_(gradients[name])

    def _adjoint(self) -> None:
        clear_gradients(
            self._inputs[name] for name in self._wanted if name not in self._outputs
        )  # states are cleared on the tape
        self._tape.backward()

    def _capture(self, work) -> wp.Graph:
        with wp.ScopedCapture(device=self._model.device) as capture:
            work()
        return capture.graph

    def _stream(self) -> wp.ScopedStream | wp.ScopedDevice:
        """On a GPU work goes to torch's stream, so that neither library has to wait for the other."""
        device = self._model.device
        if device.is_cuda:
            return wp.ScopedStream(wp.stream_from_torch(wp.device_to_torch(device)))
        return wp.ScopedDevice(device)


def _named(state: State) -> dict[str, wp.array]:
    return {f.name: getattr(state, f.name) for f in dataclasses.fields(state)}
