"""The processes of a group of `torch.distributed` that minimise one loss together."""

import contextlib
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.distributed

from warpbots.scene.field_types import shown

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

__all__ = ["Processes"]


class Processes:
    """A group of processes, and the rank of this process in the group.

    Losses and gradients are averaged over the processes, so that all processes take the same steps.

    Attributes:
        count: Number of processes.
        rank: Rank of this process, from 0.
    """

    def __init__(self, group: "ProcessGroup | None" = None):
        """Join `group`; if `group` is None, this process is the only one."""
        if group is not None and not (
            torch.distributed.is_available() and isinstance(group, torch.distributed.ProcessGroup)
        ):
            raise ValueError(
                f"minimize: group must be a torch.distributed.ProcessGroup, such as group.WORLD after "
                f"init_process_group, or None, got {shown(group)}"
            )
        self._group = group
        self.count = 1 if group is None else torch.distributed.get_world_size(group)
        self.rank = 0 if group is None else torch.distributed.get_rank(group)
        if self.rank < 0:
            raise ValueError("minimize: this process is not in the group; pass the group of this process, or None")

    @property
    def first(self) -> bool:
        """Whether this process is the first process, which writes files and shows progress."""
        return self.rank == 0

    def mean(self, values: torch.Tensor) -> torch.Tensor:
        """The mean of `values` over all processes; each process must call this method with a tensor of the same shape.

        The derivative of the result with respect to `values` is defined as the identity, because the gradients of all
        processes are averaged once at the end (`averaged`).
        """
        return values if self.count == 1 else _Mean.apply(values, self)

    def averaged(
        self, gradients: Sequence[torch.Tensor | None], like: Sequence[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        """Means of gradients over all processes.

        Args:
            gradients: Gradients of this process; None for a tensor without a gradient.
            like: Tensors with respect to which the gradients are taken.

        Returns:
            The mean gradient with respect to each tensor; None if no process has a gradient with respect to the tensor.
        """
        if self.count == 1:
            return list(gradients)
        somewhere = {i for found in self.gathered([g is not None for g in gradients]) for i in np.flatnonzero(found)}
        own = [torch.zeros_like(t) if g is None else g.clone() for g, t in zip(gradients, like, strict=True)]
        return [self._mean_(g) if i in somewhere else None for i, g in enumerate(own)]

    def agreed(self, decision: bool) -> bool:
        """The value of `decision` in the first process."""
        return decision if self.count == 1 else bool(self.gathered(bool(decision))[0])

    def gathered(self, value: Any) -> list[Any]:
        """The `value` of every process, in the order of the ranks."""
        if self.count == 1:
            return [value]
        found: list[Any] = [None] * self.count
        with self._together():
            torch.distributed.all_gather_object(found, value, group=self._group)
        return found

    def refuse_apart(self, point: np.ndarray) -> None:
        """Raise an error if `point` is not the same in all processes.

        Args:
            point: Values of the unknowns in this process.

        Raises:
            RuntimeError: The points of the processes differ.
        """
        if self.count > 1 and len(set(self.gathered(zlib.crc32(point.tobytes())))) > 1:
            raise RuntimeError(
                "minimize: the processes of the group evaluate the loss at different unknowns; begin with the same "
                "values in each, and draw what differs between them, such as noise, from generators of their own "
                "instead of torch's global one"
            )

    def _mean_(self, values: torch.Tensor) -> torch.Tensor:
        with self._together():
            torch.distributed.all_reduce(values, group=self._group)
        return values.div_(self.count)

    @contextlib.contextmanager
    def _together(self) -> Iterator[None]:
        """Context in which an error of an operation of the group becomes an error about a lost process.

        Raises:
            RuntimeError: The operation of the group has failed.
        """
        try:
            yield
        except RuntimeError as fault:
            reason = " ".join(str(fault).split())[-200:]
            raise RuntimeError(
                f"minimize: process {self.rank} of {self.count} has lost another one of its group, which was killed or "
                f"has failed ({reason}); look for its message, start all of them again, and go on from the checkpoint "
                f"with resume=True (--resume on the command line)"
            ) from fault


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, processes: Processes) -> torch.Tensor:
        return processes._mean_(values.detach().clone(memory_format=torch.contiguous_format))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient, None
