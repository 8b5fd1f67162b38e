"""The one place that knows which `wp.Tape` is recording.

Warp has no public handle to the active tape, and a step whose adjoint is orchestrated by hand must add itself to it.
Only this file accesses it.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence

import warp as wp

__all__ = ["copy", "record", "recording"]


@contextlib.contextmanager
def recording(tape: wp.Tape | None) -> Iterator[None]:
    """Within this context `tape` is the active tape, or no tape is active if it is None."""
    runtime = wp._src.context.runtime
    before, runtime.tape = runtime.tape, tape
    try:
        yield
    finally:
        runtime.tape = before


def copy(destination: wp.array, source: wp.array) -> None:
    """`wp.copy` without recording: its adjoint is part of the adjoint of a step."""
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
        writes: Arrays that the step writes. The tape registers all arrays of `reads` and `writes` with
            ``requires_grad``, so that ``tape.zero()`` clears their gradients.
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
            if array.size:  # many states share an array without entries
                array.mark_write()
