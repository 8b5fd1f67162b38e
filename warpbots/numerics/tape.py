"""The one place that knows which `wp.Tape` is recording.

Warp has no public handle to the active tape, and a step whose adjoint is orchestrated by hand must add itself to it.
Only this file reaches for it.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence

import warp as wp

__all__ = ["copy", "record", "recording"]


@contextlib.contextmanager
def recording(tape: wp.Tape | None) -> Iterator[None]:
    """Within it `tape` is the active one, or none is, whichever was before."""
    runtime = wp._src.context.runtime
    before, runtime.tape = runtime.tape, tape
    try:
        yield
    finally:
        runtime.tape = before


def copy(destination: wp.array, source: wp.array) -> None:
    """`wp.copy` that nothing is recorded of: its adjoint is part of a step's own."""
    with recording(None):
        wp.copy(destination, source)


def record(backward: Callable[[], None], reads: Sequence[wp.array], writes: Sequence[wp.array]) -> None:
    """Add `backward` to the active tape, if one is recording and any of the arrays wants a gradient.

    Under ``wp.config.verify_autograd_array_access`` Warp warns, as for its own launches, of a step that writes over
    an array that the tape has read.

    Args:
        backward: Called without arguments during ``tape.backward()``; reads the gradients of what the step wrote and
            adds to the gradients of what it read.
        reads: Arrays that the step reads.
        writes: Arrays that it writes. Those of both with ``requires_grad`` become known to the tape, so that
            ``tape.zero()`` clears them.
    """
    tape = wp._src.context.runtime.tape
    if tape is None:
        return
    differentiable = [a for a in (*reads, *writes) if a.requires_grad]
    if differentiable:
        tape.record_func(backward, differentiable)
    if wp.config.verify_autograd_array_access:
        for array in reads:
            array.mark_read()
        for array in writes:
            if array.size:  # what has no entries is shared by many states
                array.mark_write()
