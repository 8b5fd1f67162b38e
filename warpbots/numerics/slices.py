"""Slices of launches, by which several threads of a CPU share the work on one body.

A launch of Warp on a CPU is one thread. A kernel over many items, such as the masses of a lattice, can be launched in
slices: its first argument is a `Slice`, and an item is ``part.start + wp.tid()``. In a capture with `Slices` each
thread gets a graph of its own. The graph of the first thread has all launches; of a divided launch it has the first
slice. The graphs of the other threads have only their slices. All threads meet before and after each divided launch,
so that they see what the launches before have written; the first thread alone does all other work meanwhile.

A slice writes only to its own items. Where items of a kernel add to later items, too, each slice also visits the items
before it that add to its own ones, and leaves out what is added outside of it (`Edges`). So each item receives its
terms in the order in which one thread would add them, and results do not depend on the number of slices.
"""

import ctypes
import functools
import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import warp as wp

from warpbots.numerics.warp_settings import with_own_settings

__all__ = ["CHUNKS", "Edges", "Targets", "Slice", "Slices", "chunk_length", "launch_slice", "within"]

_LEAST = 2048
"""Items of a launch from which on it is divided."""


@wp.struct
class Slice:
    """Consecutive items of a launch, and the items that the launch visits, which may be others.

    start: First item that the launch visits.
    first: First item of the slice.
    end: First item after the slice.
    """

    start: int
    first: int
    end: int


@functools.cache
def within(edge: bool) -> wp.Function:
    """Warp function within(part, i): whether item i belongs to a slice; always true unless `edge` is true."""
    if edge:

        @wp.func
        def belongs(part: Slice, i: int):
            """Whether item i belongs to a slice."""
            return i >= part.first and i < part.end

    else:

        @wp.func
        def belongs(part: Slice, i: int):
            """True, for items that add only to items of their slice."""
            return True

    return belongs


class Edges(NamedTuple):
    """The edges of slices, for a kernel whose items also add to later items.

    Attributes:
        kernel: The kernel for items at an edge. It adds only to items of the slice (`within`).
        bounds: Function of the first item of a slice and of the first item after it. The first result is the first
            item that adds to items of the slice; the second one is the first item that adds to items after the slice.
    """

    kernel: wp.Kernel
    bounds: Callable[[int, int], tuple[int, int]]

    def launches(self, kernel: wp.Kernel, count: int, k: int, n: int) -> list["_Launch"]:
        """The launches of slice k of n, in their order; `kernel` has `count` items."""
        first, end = part = _part(count, k, n)
        start, inner = self.bounds(first, end)
        inner = max(first, inner)
        return [
            (self.kernel, (start, first), part),
            (kernel, (first, inner), part),
            (self.kernel, (inner, end), part),
        ]


class Targets(NamedTuple):
    """A division of places, for a kernel whose items add to places that are not known before it runs.

    Each slice visits all items, and adds only to places of its own; the `Slice` numbers parts of the places.

    Attributes:
        kernel: The kernel for a slice. Without slices there is another one, which adds to all places.
        parts: Number of parts of the places.
    """

    kernel: wp.Kernel
    parts: int

    def launches(self, kernel: wp.Kernel, count: int, k: int, n: int) -> list["_Launch"]:
        """The launches of slice k of n, in their order; the kernels have `count` items."""
        return [(self.kernel, (0, count), _part(self.parts, k, n))]


_Launch = tuple[wp.Kernel, tuple[int, int], tuple[int, int]]
"""A kernel, the items that it visits from the first one to the one after the last, and its slice."""

CHUNKS = 64
"""Number of chunks of consecutive items, of which a slice of independent items consists."""


def chunk_length(count: int) -> int:
    """Length of the chunks of `count` items; the last chunks may be shorter, or empty."""
    return -(-count // CHUNKS)


def _part(count: int, k: int, n: int) -> tuple[int, int]:
    """First item of slice k of n, and first item after it."""
    return count * k // n, count * (k + 1) // n


def _launches_of(kernel: wp.Kernel, count: int, k: int, n: int) -> list[_Launch]:
    """The launch of slice k of n of independent items."""
    length = chunk_length(count)
    part = tuple(min(count, length * chunk) for chunk in _part(CHUNKS, k, n))
    return [(kernel, part, part)]


def _address_of_yield() -> int:
    """Address of the function of the system by which a thread offers its core to others; 0 if there is none."""
    try:
        library = ctypes.CDLL(None) if os.name == "posix" else ctypes.WinDLL("kernel32")
        function = library.sched_yield if os.name == "posix" else library.SwitchToThread
    except (OSError, AttributeError):
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


_YIELD = _address_of_yield()


# Threads rarely wait for long if each has a core. If not, waiting threads must not keep the others from their work.
@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    const uint64_t goal = (__atomic_fetch_add(&meeting.data[0], uint64_t(1), __ATOMIC_ACQ_REL) / threads + 1) * threads;
    for (int i = 1; __atomic_load_n(&meeting.data[0], __ATOMIC_ACQUIRE) < goal; i++) {
        if (__atomic_load_n(&meeting.data[1], __ATOMIC_RELAXED))
            break;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
        if (offer_core && i % 256 == 0)
            reinterpret_cast<void (*)()>(offer_core)();
    }
#endif
""")
def _meet(meeting: wp.array[wp.uint64], threads: int, offer_core: wp.uint64):
    """Wait until all threads have arrived, or until the meeting is off; then their writes are visible."""


@wp.kernel(module=wp.get_module("warpbots.slices"), enable_backward=False)
def meet_kernel(threads: int, offer_core: wp.uint64, meeting_out: wp.array[wp.uint64]):
    """Wait until all threads run this kernel.

    The first entry of `meeting_out` counts the arrivals; the second one is 1 if nobody is to wait. `offer_core` is the
    address of a function that offers the core to other threads, or 0.
    """
    _meet(meeting_out, threads, offer_core)


def launch_slice(
    kernel: wp.Kernel,
    visited: tuple[int, int],
    part: tuple[int, int],
    lanes: Sequence[int],
    inputs: list,
    outputs: list,
    device: wp.Device,
    loads: bool = False,
    gradients: tuple[list, list] | None = None,
) -> None:
    """Launch a kernel for one slice, or its adjoint if there are `gradients`.

    Args:
        kernel: A kernel whose first argument is a `Slice`.
        visited: First item that the launch visits, and first item after them.
        part: First item of the slice, and first item after it.
        lanes: Numbers of threads along further axes, for each item.
        inputs: Inputs of the kernel, without the slice.
        outputs: Outputs of the kernel.
        device: Device of the arrays.
        loads: Whether the kernel is loaded only, and not run.
        gradients: Gradients of the inputs and of the outputs; None for the kernel itself.
    """
    own = Slice()
    (own.start, stop), (own.first, own.end) = visited, part
    of_inputs, of_outputs = gradients or ([], [])
    with_own_settings(
        wp.launch, kernel, (stop - own.start, *lanes), [own, *inputs], outputs,
        [Slice(), *of_inputs] if gradients else [], of_outputs, device=device, adjoint=gradients is not None,
        record_tape=False, record_cmd=loads,
    )  # fmt: skip


class Slices:
    """The divided launches of one capture, and the place where its threads meet.

    Attributes:
        threads: Number of threads.
    """

    def __init__(self, threads: int, device: wp.Device):
        self.threads, self._device = threads, device
        self._launches: list[tuple] = []
        self._meeting = wp.zeros(2, dtype=wp.uint64, device=device)
        self._state: np.ndarray = self._meeting.numpy()

    def __len__(self) -> int:
        """Number of launches that were divided."""
        return len(self._launches)

    def divides(self, count: int) -> bool:
        """Whether launches of `count` items are divided."""
        return count >= _LEAST

    def divide(
        self,
        kernel: wp.Kernel,
        dim: Sequence[int],
        inputs: list,
        outputs: list,
        division: Edges | Targets | None,
        gradients: tuple[list, list] | None,
    ) -> bool:
        """Launch the slice of the first thread, and keep the slices of the others; returns whether it did.

        The arguments are those of `launch_slices`.
        """
        if not self.divides(dim[0]):
            return False
        launches = division.launches if division else _launches_of
        each = [launches(kernel, dim[0], k, self.threads) for k in range(self.threads)]
        self._launches.append((each, dim[1:], inputs, outputs, gradients))
        self._launch(0, *self._launches[-1])
        return True

    def launch(self, thread: int) -> None:
        """Launch all slices of a thread."""
        for launches in self._launches:
            self._launch(thread, *launches)

    def _launch(
        self,
        thread: int,
        each: list[list[_Launch]],
        lanes: Sequence[int],
        inputs: list,
        outputs: list,
        gradients: tuple[list, list] | None,
    ) -> None:
        self._meet()
        for kernel, (start, stop), part in each[thread]:
            if start < stop:
                launch_slice(kernel, (start, stop), part, lanes, inputs, outputs, self._device, gradients=gradients)
        self._meet()

    def _meet(self) -> None:
        with_own_settings(
            wp.launch, meet_kernel, 1, [self.threads, _YIELD], [self._meeting], device=self._device, record_tape=False
        )

    def convene(self) -> None:
        """Prepare a replay in which the threads meet; none of them may be running."""
        self._state[:] = 0

    def call_off(self) -> None:
        """Let threads pass from now on without meeting, because one of them does not come; results are invalid."""
        self._state[1] = 1
