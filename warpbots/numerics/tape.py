"""Access to the `wp.Tape` that is recording.

Warp has no public handle to the active tape, but a step with a hand-written adjoint must add itself to this tape. Only
this file accesses the private handle.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence

import warp as wp

__all__ = ["copy", "record", "recording"]


@contextlib.contextmanager
def recording(tape: wp.Tape | None) -> Iterator[None]:
    """Context in which `tape` is the active tape; if `tape` is None, no tape is active."""
    runtime = wp._src.context.runtime
    before, runtime.tape = runtime.tape, tape
    try:
        yield
    finally:
        runtime.tape = before


def copy(destination: wp.array, source: wp.array) -> None:
    """Copy `source` to `destination` without recording the copy on the tape.

    The adjoint of a step that calls this function must contain the adjoint of the copy.
    """
    with recording(None):
        wp.copy(destination, source)


def record(backward: Callable[[], None], reads: Sequence[wp.array], writes: Sequence[wp.array]) -> None:
    """Add `backward` to the active tape, if a tape is recording and any of the arrays requires a gradient.

    Under ``wp.config.verify_autograd_array_access`` Warp warns if a step overwrites an array that the tape has read, as
    for launches that Warp records.

    Args:
        backward: Function without arguments that ``tape.backward()`` calls. The function must read the gradients of the
            arrays that the step wrote, and add to the gradients of the arrays that the step read.
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
