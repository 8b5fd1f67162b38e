"""Segments of a rollout; the states of a segment are recomputed when the backward pass reaches the segment."""

import contextlib
import dataclasses
import weakref
from typing import Any, Protocol

import torch
from torch.autograd.graph import saved_tensors_hooks

from warpbots.gradients.replay import Replay, Tensors

__all__ = ["Lender", "Segment"]


class Lender(Protocol):
    """An object that lends replays of control intervals together with their buffers, such as a `Bridge`."""

    def lend(self, key: tuple[tuple, frozenset]) -> Replay:
        """Lend a replay for `key`: the names of all inputs, and the names of the inputs that require gradients."""

    def give_back(self, key: tuple[tuple, frozenset], interval: Replay) -> None:
        """Take back a lent replay."""


@dataclasses.dataclass(frozen=True)
class _Place:
    """Reference that autograd saves instead of a tensor of a state.

    The reference holds the index of the state, the name of the field, and the size, stride and offset of the view.
    """

    index: int
    field: str
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


class Segment:
    """Consecutive control intervals of a rollout, whose substeps are held until their gradients have been computed.

    If `keep` is true, the forward pass keeps the substeps, and nothing is recomputed. Otherwise the forward pass keeps
    only the first state. Instead of tensors of later states, autograd then saves references, for steps as well as for
    the controller. When the first of these tensors is needed, the motion is recomputed with the recorded controls; the
    controller is not called again.

    Attributes:
        keep: Whether the forward pass keeps the substeps.
        first: Index of the first interval in the rollout; None outside of rollouts.
        marks: Marks of the interval that ran last.
    """

    marks: torch.Tensor

    def __init__(self, bridge: Lender, keep: bool, first: int | None = None):
        self.keep, self.first = keep, first
        self._bridge = bridge
        self._kept: dict[int, tuple[tuple, Replay]] = {}
        self._calls: dict[int, weakref.ref] = {}  # contexts of the intervals, owned by the graph of autograd
        self._states: dict[int, Tensors] = {}  # recomputed states, by the interval that starts from them
        self._index = 0
        self._fields: dict[int, tuple[str, int]] = {}  # address -> name and version of the current state

    def saving_places(self) -> contextlib.AbstractContextManager:
        """Context in which autograd saves references instead of tensors of states, unless `keep` is true.

        Other saved tensors must not be changed in place before the gradient is computed; otherwise `_unpack` raises an
        error.
        """
        if not torch.is_grad_enabled():
            return contextlib.nullcontext()
        return saved_tensors_hooks(self._pack, self._unpack)

    def record(self, index: int, call: Any) -> None:
        """Store the autograd context of interval `index`."""
        self._calls[index] = weakref.ref(call)

    def reach(self, index: int, state: Tensors) -> None:
        """Set the state at the start of interval `index`.

        Until the next call, autograd saves references instead of the tensors of this state.
        """
        self._index = index
        if not self.keep:
            self._fields = {t.untyped_storage().data_ptr(): (n, t._version) for n, t in state.items() if t.numel()}

    def hold(self, index: int, key: tuple, interval: Replay) -> None:
        """Keep the replay of interval `index`, whose buffers hold the substeps; `key` is the key of `Lender.lend`."""
        self._give_back(index)
        self._kept[index] = (key, interval)

    def held(self, index: int) -> Replay | None:
        """The replay of interval `index`, or None if the segment does not hold this replay."""
        return self._kept[index][1] if index in self._kept else None

    def release(self, index: int) -> None:
        """Give back the replay of interval `index`, and free the recomputed states after this interval."""
        self._give_back(index)
        for later in [i for i in self._states if i > index]:
            del self._states[later]

    def _give_back(self, index: int) -> None:
        if index in self._kept:
            self._bridge.give_back(*self._kept.pop(index))

    def _pack(self, tensor: torch.Tensor) -> _Place | tuple[torch.Tensor, int]:
        name, version = (
            self._fields.get(tensor.untyped_storage().data_ptr(), (None, 0)) if tensor.numel() else (None, 0)
        )
        if name is None or tensor._version != version:
            return tensor, tensor._version
        return _Place(self._index, name, tensor.shape, tensor.stride(), tensor.storage_offset())

    def _unpack(self, saved: _Place | tuple[torch.Tensor, int]) -> torch.Tensor:
        if isinstance(saved, _Place):
            return self._state(saved.index)[saved.field].as_strided(saved.size, saved.stride, saved.offset)
        tensor, version = saved
        if tensor._version != version:
            raise RuntimeError(
                f"a tensor of shape {tuple(tensor.shape)} that the gradient of a rollout needs was changed in place "
                f"after the rollout: take the gradient before you change controls, parameters or weights, or give the "
                f"rollout a copy (.clone())"
            )
        return tensor

    def _state(self, index: int) -> Tensors:
        known = max((i for i in self._states if i <= index), default=min(self._calls))
        for i in range(known, index):
            call = self._calls[i]()
            inputs = dict(zip(call.names, call.saved_tensors, strict=True))
            key = (call.names, call.wanted)
            interval = self.held(i) or self._bridge.lend(key)
            self._states[i + 1], _ = interval.run(inputs)
            self._kept[i] = (key, interval)
        return self._states[index]

    def __del__(self):
        for index in list(self._kept):
            self._give_back(index)
