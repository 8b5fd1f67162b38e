"""A stretch of a rollout whose states are computed again when its gradient is due."""

import contextlib
import dataclasses
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.graph import saved_tensors_hooks

from warpbots.gradients.replay import Replay, Tensors

if TYPE_CHECKING:
    from warpbots.gradients.torch_bridge import Bridge

__all__ = ["Segment"]


@dataclasses.dataclass(frozen=True)
class _Place:
    """What autograd saves in the place of a view of a state: which state of the segment, which field, which view."""

    index: int
    field: str
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


class Segment:
    """Control intervals whose substeps are in memory together until their gradient has been computed.

    One that keeps them computes nothing twice. One that does not keeps the first state alone: whatever autograd saves
    of the other ones, for the steps or for the controller between them, is saved as a place in the motion, and the
    motion is computed again, under the controls that were given the first time, when the first of them is asked for.
    A controller is called once.

    Attributes:
        keep: Whether intervals keep their substeps.
        marks: Of the interval that ran last.
    """

    marks: torch.Tensor

    def __init__(self, bridge: "Bridge", keep: bool):
        self.keep = keep
        self._bridge = bridge
        self._kept: dict[int, tuple[tuple, Replay]] = {}
        self._calls: dict[int, weakref.ref] = {}  # what autograd saved of each interval, which belongs to its graph
        self._states: dict[int, Tensors] = {}  # computed again, by the interval that starts from them
        self._index = 0
        self._fields: dict[int, tuple[str, int]] = {}  # address -> name and version, of the state that is passed now

    def saving_places(self) -> contextlib.AbstractContextManager:
        """Within it, autograd saves states of a segment that does not keep them as places."""
        if self.keep or not torch.is_grad_enabled():
            return contextlib.nullcontext()
        return saved_tensors_hooks(self._pack, self._unpack)

    def record(self, index: int, call: Any) -> None:
        """Note the context of autograd under which the interval with number `index` runs."""
        self._calls[index] = weakref.ref(call)

    def reach(self, index: int, state: Tensors) -> None:
        """Say which tensors are the state before the interval with number `index`."""
        self._index = index
        self._fields = {t.untyped_storage().data_ptr(): (n, t._version) for n, t in state.items() if t.numel()}

    def hold(self, index: int, key: tuple, interval: Replay) -> None:
        """Keep the buffers of the call with number `index`."""
        self._give_back(index)
        self._kept[index] = (key, interval)

    def held(self, index: int) -> Replay | None:
        """The buffers of the call with number `index`, if they are still held."""
        return self._kept[index][1] if index in self._kept else None

    def release(self, index: int) -> None:
        """Let others use the buffers of the call with number `index`, after which nobody looks at later states."""
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
