"""Where Warp meets torch: the only `torch.autograd.Function`."""

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from warpbots.gradients.replay import Replay, Tensors

__all__ = ["Bridge", "Segment"]


class Segment:
    """Control intervals whose substeps are in memory together until their gradient has been computed.

    Attributes:
        keep: Whether intervals that run now keep their substeps.
    """

    def __init__(self, bridge: "Bridge", keep: bool):
        self.keep = keep
        self._bridge = bridge
        self._kept: dict[int, tuple[tuple, Replay]] = {}

    def hold(self, index: int, key: tuple, interval: Replay) -> None:
        """Keep the buffers of the call with number `index`."""
        self.release(index)
        self._kept[index] = (key, interval)

    def held(self, index: int) -> Replay | None:
        """The buffers of the call with number `index`, if they are still held."""
        return self._kept[index][1] if index in self._kept else None

    def release(self, index: int) -> None:
        """Let others use the buffers of the call with number `index`."""
        if index in self._kept:
            self._bridge.give_back(*self._kept.pop(index))

    def __del__(self):
        for index in list(self._kept):
            self.release(index)


@dataclasses.dataclass
class _Keeping(contextlib.AbstractContextManager):
    """Sets whether a segment keeps substeps; entered again for each backward pass through a retained graph."""

    segment: Segment
    keep: bool

    def __enter__(self) -> None:
        self.segment.keep = self.keep

    def __exit__(self, *_: object) -> None:
        pass


@dataclasses.dataclass
class Bridge:
    """Runs control intervals, or readings, under torch's autograd and lends out the buffers they need.

    Attributes:
        outputs: Names of what comes out.
        make: Makes an `Replay` for a set of replaced parameters and a set of inputs that want gradients.
        refuse: Raises if the outputs of an interval, given its inputs and outputs, are not what physics allows.
        lost: How gradients can stop being finite within an interval, and what helps.
    """

    outputs: tuple[str, ...]
    make: Callable[[frozenset, frozenset], Replay]
    refuse: Callable[[Tensors, Tensors], None]
    lost: str
    _idle: dict[tuple, list[Replay]] = dataclasses.field(default_factory=dict)

    def run(self, inputs: Tensors, segment: Segment, index: int) -> Tensors:
        """Outputs of one control interval, differentiable with respect to `inputs`.

        Args:
            inputs: Fields of the state, then ``control``, then replaced parameters.
            segment: What holds its substeps.
            index: Number of the call in its segment.
        """
        names = tuple(inputs)
        wanted = frozenset(n for n in names if inputs[n].requires_grad) if torch.is_grad_enabled() else frozenset()
        if not wanted:
            return self.forward(inputs)
        outputs = _ControlInterval.apply(self, names, wanted, segment, index, *inputs.values())
        return dict(zip(self.outputs, outputs, strict=True))

    def forward(self, inputs: Tensors) -> Tensors:
        """Outputs of one control interval whose substeps nobody will ask for."""
        key = (tuple(inputs), frozenset())
        interval = self.lend(key)
        outputs = interval.run(inputs)
        self.give_back(key, interval)
        self.refuse(inputs, outputs)
        return outputs

    def segment(self, run: Callable[..., Any], keep: bool, *tensors: torch.Tensor) -> Any:
        """Call ``run(segment, *tensors)``; without `keep` it is called again when its gradients are due."""
        segment = Segment(self, keep=True)
        if keep or not torch.is_grad_enabled():
            return run(segment, *tensors)

        return checkpoint(
            lambda *t: run(segment, *t), *tensors, use_reentrant=False, preserve_rng_state=False,
            context_fn=lambda: (_Keeping(segment, False), _Keeping(segment, True)),
        )  # fmt: skip

    def lend(self, key: tuple[tuple, frozenset]) -> Replay:
        """An interval for these inputs and wanted gradients: an idle one, or a new one."""
        idle = self._idle.setdefault(key, [])
        return idle.pop() if idle else self.make(frozenset(key[0]), key[1])

    def give_back(self, key: tuple[tuple, frozenset], interval: Replay) -> None:
        """Let others use the buffers of `interval`."""
        self._idle[key].append(interval)


class _ControlInterval(torch.autograd.Function):
    """One control interval. Its inputs are saved; its substeps are held by the segment, or computed again."""

    @staticmethod
    def forward(ctx, bridge: Bridge, names: tuple, wanted: frozenset, segment: Segment, index: int, *values):
        ctx.save_for_backward(*values)
        ctx.bridge, ctx.names, ctx.wanted, ctx.segment, ctx.index = bridge, names, wanted, segment, index
        inputs = dict(zip(names, values, strict=True))
        if not segment.keep:
            return tuple(bridge.forward(inputs).values())
        interval = bridge.lend((names, wanted))
        outputs = interval.run(inputs)
        segment.hold(index, (names, wanted), interval)
        bridge.refuse(inputs, outputs)
        return tuple(outputs.values())

    @staticmethod
    @once_differentiable
    def backward(ctx, *gradients):
        inputs = dict(zip(ctx.names, ctx.saved_tensors, strict=True))  # computes the segment again if need be
        interval = ctx.segment.held(ctx.index)
        if interval is None:  # a second backward through a retained graph
            interval = ctx.bridge.lend((ctx.names, ctx.wanted))
            interval.run(inputs)
            ctx.segment.hold(ctx.index, (ctx.names, ctx.wanted), interval)
        results = interval.backward(dict(zip(ctx.bridge.outputs, gradients, strict=True)))
        ctx.segment.release(ctx.index)
        seeded = all(torch.isfinite(g).all() for g in gradients if g is not None)
        cause = ctx.bridge.lost if seeded else "the loss has no finite gradient to what it looks at: check its weights"
        for name, result in results.items():
            if not torch.isfinite(result).all():
                first = [int(i) for i in torch.nonzero(~torch.isfinite(result))[0]]
                raise FloatingPointError(
                    f"the gradient to {name} is {result[tuple(first)].item()} at index {first} of shape "
                    f"{tuple(result.shape)}; {cause}"
                )
        return None, None, None, None, None, *(results.get(name) for name in ctx.names)
