"""The bridge between Warp and torch: the only file with a `torch.autograd.Function`."""

import dataclasses
import functools
import weakref
from collections.abc import Callable

import numpy as np
import torch
from torch.autograd import forward_ad

from warpbots.gradients.deferred_checks import BackwardWatch, Found
from warpbots.gradients.finite_checks import flaw
from warpbots.gradients.replay import Replay, Tensors
from warpbots.gradients.segment import Segment
from warpbots.gradients.streams import turn

__all__ = ["Bridge", "refuse_transforms"]


@dataclasses.dataclass
class Bridge:
    """Runs control intervals, or readings, under torch's autograd, and manages the replays that compute them.

    Attributes:
        outputs: Names of the outputs.
        make: Function that makes a `Replay`, from the names of the inputs and the names of the inputs that require
            gradients.
        lost: Function that says why a gradient became infinite or NaN within an interval, and the remedy, as the end of
            an error message.
        watch: Collector of the marks of backward passes.
        renew: Function that is called after each forward pass, with the time that its kernels took [s]. If later calls
            of `make` shall make other replays, because the pass had too little memory or should be divided among
            threads, the function returns True, and the pass is repeated.
    """

    outputs: tuple[str, ...]
    make: Callable[[frozenset, frozenset], Replay]
    lost: Callable[[], str]
    watch: BackwardWatch
    renew: Callable[[float], bool] = lambda seconds: False
    _idle: dict[tuple, list[Replay]] = dataclasses.field(default_factory=dict)
    _roomy: weakref.WeakSet[Replay] = dataclasses.field(default_factory=weakref.WeakSet)

    def run(self, inputs: Tensors, segment: Segment, index: int) -> tuple[Tensors, torch.Tensor]:
        """Run one control interval; return its outputs, differentiable with respect to `inputs`, and marks of faults.

        Args:
            inputs: Fields of the state, then ``control``, then replaced parameters, by name.
            segment: Segment to which the interval belongs; the segment may hold the substeps of the interval.
            index: Index of the interval in the segment.
        """
        refuse_transforms(inputs)
        names = tuple(inputs)
        wanted = frozenset(n for n in names if inputs[n].requires_grad) if torch.is_grad_enabled() else frozenset()
        if not wanted:
            segment.reach(index + 1, {})  # without a graph this state cannot be recomputed
            return self.forward(inputs)
        values = _ControlInterval.apply(self, names, wanted, segment, index, *inputs.values())
        outputs = dict(zip(self.outputs, values, strict=True))
        segment.reach(index + 1, outputs)
        return outputs, segment.marks

    def forward(self, inputs: Tensors) -> tuple[Tensors, torch.Tensor]:
        """Run one control interval without keeping its substeps for a backward pass; return outputs and marks."""
        key = (tuple(inputs), frozenset())
        interval, outputs, marks = self.take(key, inputs)
        self.give_back(key, interval)
        return outputs, marks

    def take(self, key: tuple[tuple, frozenset], inputs: Tensors) -> tuple[Replay, Tensors, torch.Tensor]:
        """Lend a replay and run it; repeat this as long as other replays are to be used (`renew`).

        Args:
            key: Names of all inputs, and names of the inputs that require gradients.
            inputs: Inputs by name.

        Returns:
            The replay, which the caller must give back, the outputs and the marks.
        """
        while True:
            interval = self.lend(key)
            outputs, marks = interval.run(inputs)
            with turn:
                if not self.renew(interval.seconds):
                    return interval, outputs, marks
                self.forget()

    def forget(self) -> None:
        """Use no present replay again."""
        self._idle.clear()
        self._roomy.clear()

    def lend(self, key: tuple[tuple, frozenset]) -> Replay:
        """Lend an unused replay for `key`, or make a new replay.

        `key` consists of the names of all inputs and the names of the inputs that require gradients.
        """
        with turn:
            idle = self._idle.setdefault(key, [])
            if idle:
                return idle.pop()
            interval = self.make(frozenset(key[0]), key[1])
            self._roomy.add(interval)
            return interval

    def give_back(self, key: tuple[tuple, frozenset], interval: Replay) -> None:
        """Take back a lent replay for later use; drop it if replays with more memory have been made since then."""
        if interval in self._roomy:
            self._idle.setdefault(key, []).append(interval)


def refuse_transforms(tensors: Tensors) -> None:
    """Raise an error if a tensor takes part in forward-mode differentiation or belongs to a transform of `torch.func`.

    Steps have no derivatives of these kinds, and torch would take their derivatives as zero.

    Raises:
        NotImplementedError: A tensor carries a forward-mode tangent, or belongs to a transform of `torch.func`.
    """
    for name, tensor in tensors.items():
        try:
            tensor.data_ptr()
        except RuntimeError:  # a tensor of torch.func has no memory
            raise NotImplementedError(
                f"{name} is inside a transform of torch.func: a simulation has derivatives in reverse mode only; "
                f"use torch.autograd.grad or .backward(), and worlds for a batch"
            ) from None
        if forward_ad.unpack_dual(tensor).tangent is not None:
            raise NotImplementedError(
                f"{name} carries a tangent: a simulation has no forward mode; use torch.autograd.grad or .backward()"
            )


class _ControlInterval(torch.autograd.Function):
    """A control interval under autograd.

    Autograd saves the inputs of the interval; the segment holds the substeps or recomputes them.
    """

    @staticmethod
    def forward(ctx, bridge: Bridge, names: tuple, wanted: frozenset, segment: Segment, index: int, *values):
        ctx.save_for_backward(*values)
        ctx.bridge, ctx.names, ctx.wanted, ctx.segment, ctx.index = bridge, names, wanted, segment, index
        segment.record(index, ctx)
        inputs = dict(zip(names, values, strict=True))
        if segment.keep:
            interval, outputs, segment.marks = bridge.take((names, wanted), inputs)
            segment.hold(index, (names, wanted), interval)
        else:
            outputs, segment.marks = bridge.forward(inputs)
        return tuple(outputs.values())

    @staticmethod
    def backward(ctx, *gradients):
        values = ctx.saved_tensors  # recomputes the segment if necessary
        results = dict(
            zip(sorted(ctx.wanted), _IntervalAdjoint.apply(ctx, len(gradients), *gradients, *values), strict=True)
        )
        return None, None, None, None, None, *(results.get(name) for name in ctx.names)


class _IntervalAdjoint(torch.autograd.Function):
    """The gradient of a control interval under autograd; an attempt to differentiate the gradient raises an error."""

    @staticmethod
    def forward(ctx, call, count: int, *tensors):
        gradients, inputs = tensors[:count], dict(zip(call.names, tensors[count:], strict=True))
        bridge, segment, key = call.bridge, call.segment, (call.names, call.wanted)
        interval = segment.held(call.index)
        if interval is None:
            interval = bridge.lend(key)
            interval.run(inputs)
            segment.hold(call.index, key, interval)
        results, marks = interval.backward(dict(zip(bridge.outputs, gradients, strict=True)))
        segment.release(call.index)
        shapes = {name: tuple(result.shape) for name, result in results.items()}
        lost = functools.partial(_why, bridge.lost, segment.first, call.index)
        bridge.watch.note(marks, lambda found: _refuse(found, shapes, lost))
        return tuple(results[name] for name in sorted(call.wanted))

    @staticmethod
    def backward(ctx, *gradients):
        raise NotImplementedError(
            "a simulation has first derivatives only: the gradient of a gradient (create_graph=True, hessian, a "
            "gradient penalty) needs second ones; warpbots.optimize.hessian_product gives them along a direction, by "
            "differences"
        )


def _why(lost: Callable[[], str], first: int | None, index: int) -> str:
    """Why a gradient became infinite or NaN within interval `index` of a segment whose first interval is `first`."""
    return lost() if first is None else f"in control step {first + index}, {lost()}"


def _refuse(found: Found, shapes: dict[str, tuple[int, ...]], why: Callable[[], str]) -> None:
    """Raise an error if a gradient of an interval is not finite.

    Args:
        found: Rows of marks, first for the gradients with respect to the outputs of the interval, then for the
            gradients with respect to its inputs.
        shapes: Shapes of the gradients with respect to the inputs, by name of the input.
        why: Function that says why a gradient became infinite or NaN within the interval.
    """
    seeds, results = found[: -len(shapes)], found[-len(shapes) :]
    if not any(map(flaw, results)):
        return
    cause = why()  # asked in any case, because a solver forgets with its answer what it has recorded
    if any(map(flaw, seeds)):
        cause = "the gradient of the loss itself is not finite: check its weights"
    for (name, shape), mark in zip(shapes.items(), results, strict=True):
        if bad := flaw(mark):
            at, value = bad
            index = [int(i) for i in np.unravel_index(at, shape)]
            raise FloatingPointError(
                f"the gradient with respect to {name} is {value} at index {index} of shape {shape}; {cause}"
            )
