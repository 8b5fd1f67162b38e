"""The one place that knows which `wp.Tape` is recording.

Warp has no public handle to the active tape, and a step whose adjoint is orchestrated by hand must add itself to it.
Only this file reaches for it.
"""

from collections.abc import Callable, Iterable

import warp as wp

__all__ = ["record"]


def record(backward: Callable[[], None], arrays: Iterable[wp.array]) -> None:
    """Add `backward` to the active tape, if one is recording and any of `arrays` wants a gradient.

    Args:
        backward: Called without arguments during ``tape.backward()``; reads the gradients of what the step wrote and
            adds to the gradients of what it read.
        arrays: All arrays the step reads or writes. Those with ``requires_grad`` become known to the tape, so that
            ``tape.zero()`` clears them.
    """
    tape = wp._src.context.runtime.tape
    if tape is None:
        return
    differentiable = [a for a in arrays if a.requires_grad]
    if differentiable:
        tape.record_func(backward, differentiable)
