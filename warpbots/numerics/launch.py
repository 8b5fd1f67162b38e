"""Launches with adjoints that solvers call themselves, loops and branches around launches, and structs of inputs."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar

import warp as wp

from warpbots.numerics.warp_settings import with_own_settings

__all__ = [
    "Launch",
    "clear_gradients",
    "if_then",
    "launch",
    "launch_adjoint",
    "launch_adjoints",
    "launch_all",
    "launch_lanes",
    "launch_own_adjoint",
    "preparing",
    "rarely",
    "sparing",
    "struct_of",
    "while_loop",
]

Launch = tuple[wp.Kernel, int | tuple, list, list]
"""A kernel, the size of its launch, its inputs and its outputs."""

_Body = Callable[[], None]

_met: ContextVar[dict[object, _Body | None] | None] = ContextVar("met", default=None)
_loading: ContextVar[bool] = ContextVar("loading", default=False)
_missed: ContextVar[wp.array | None] = ContextVar("missed", default=None)


@contextlib.contextmanager
def preparing() -> Iterator[list[_Body]]:
    """Run work once in this context to prepare its capture: all its kernels are compiled and loaded on the device.

    At the end of the context, loops and branches that were not entered are loaded: their kernels are loaded, and arrays
    that are created on first use are created. Bodies from the same place of the program must launch the same kernels.

    Yields:
        The bodies that were not entered; the list is complete after the block, when the bodies have been loaded.
        Loading executes the fills and copies of these bodies. So if the list is not empty, arrays that the work writes
        are undefined until the work has run again.
    """
    met: dict[object, _Body | None] = {}
    left: list[_Body] = []
    with _set(_met, met):
        yield left
    left.extend(filter(None, met.values()))
    with _set(_loading, True):
        for body in left:
            body()


def while_loop(condition: wp.array, body: _Body) -> None:
    """Repeat `body` while `condition`, shape (1,), int, is not zero; in a captured graph the device tests it."""
    _enter(wp.capture_while, condition, body)


def if_then(condition: wp.array, body: _Body) -> None:
    """Run `body` if `condition`, shape (1,), int, is not zero; in a captured graph the device tests it."""
    _enter(wp.capture_if, condition, body)


@contextlib.contextmanager
def sparing(missed: wp.array) -> Iterator[None]:
    """Within this context, captures leave out the bodies that are passed to `rarely`.

    Args:
        missed: Set to 1 by a replay of the capture that should have run such a body, shape (1,), int; all results of
            this replay are then invalid.
    """
    with _set(_missed, missed):
        yield


def rarely(condition: wp.array, body: _Body) -> None:
    """`if_then` for a large body that hardly ever runs; captures within `sparing` leave the body out."""
    missed = _missed.get()
    if missed is None:
        if_then(condition, body)
    elif condition.device.is_capturing:
        launch(miss_kernel, 1, [condition], [missed], condition.device)
    else:
        with _set(_loading, True):
            launch(miss_kernel, 1, [condition], [missed], condition.device)
        with _set(_met, None):  # a body that does not run now is loaded when it is needed
            if_then(condition, body)


@wp.kernel(enable_backward=False)
def miss_kernel(
    # state
    condition: wp.array[int],
    # out
    missed_out: wp.array[int],
):
    """Set `missed_out` to 1 if a left-out body should have run."""
    if condition[0] != 0:
        missed_out[0] = 1


def _enter(how: Callable, condition: wp.array, body: _Body) -> None:
    met = _met.get()
    if _loading.get():
        body()
    elif met is None:
        how(condition, body)
    else:
        met.setdefault(body.__code__, body)

        def entered() -> None:
            met[body.__code__] = None
            body()

        how(condition, entered)


@contextlib.contextmanager
def _set(variable: ContextVar, value: object) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def launch(
    kernel: wp.Kernel,
    dim: int | tuple,
    inputs: list,
    outputs: list,
    device: wp.Device,
    block_dim: int | None = None,
) -> None:
    """Launch a kernel without recording it on the tape. `block_dim`: number of threads per block."""
    with_own_settings(
        wp.launch, kernel, dim, inputs, outputs, device=device, record_tape=False, record_cmd=_loading.get(),
        block_dim=block_dim,
    )  # fmt: skip


def launch_lanes(
    kernel: wp.Kernel, dim: int | tuple, lanes: int, inputs: list, outputs: list, device: wp.Device
) -> None:
    """Launch a kernel with `lanes` threads (a CPU: one) for each index; the thread is the last result of `wp.tid`.

    The threads of an index share Warp tiles, which compute results that depend on all of these threads, such as sums.
    """
    with_own_settings(
        wp.launch_tiled, kernel, dim=dim, inputs=inputs, outputs=outputs, block_dim=lanes, device=device,
        record_tape=False, record_cmd=_loading.get(),
    )  # fmt: skip


def launch_adjoint(
    kernel: wp.Kernel,
    dim: int | tuple,
    inputs: list,
    outputs: list,
    adj_inputs: list,
    adj_outputs: list,
    device: wp.Device,
) -> None:
    """Launch the adjoint that Warp generated for a kernel: from gradients of outputs to gradients of inputs."""
    with_own_settings(
        wp.launch, kernel, dim, inputs, outputs, adj_inputs, adj_outputs, device=device, adjoint=True,
        record_tape=False, record_cmd=_loading.get(),
    )  # fmt: skip


def launch_own_adjoint(kernel: wp.Kernel, dim: int | tuple, inputs: list, device: wp.Device) -> None:
    """Call `launch_adjoint` with the gradients that the arrays own (`grad`), including arrays in structs."""
    launch_adjoint(kernel, dim, inputs, [], [_gradient_of(a) for a in inputs], [], device)


def _gradient_of(argument: object) -> object:
    """The adjoint of an argument: the gradient of an array, a struct of the gradients of a struct, otherwise None."""
    if isinstance(argument, wp.array):
        return argument.grad
    if not isinstance(argument, wp._src.codegen.StructInstance):
        return None
    gradient = argument._cls()
    for name in argument._cls.vars:
        value = getattr(argument, name)
        own = _gradient_of(value)
        if own is not None:
            setattr(gradient, name, own)
    return gradient


def launch_all(steps: Sequence[Launch], device: wp.Device) -> None:
    """Call `launch` for all steps, one after the other."""
    for kernel, dim, inputs, outputs in steps:
        launch(kernel, dim, inputs, outputs, device)


def launch_adjoints(steps: Sequence[Launch], adjoints: Sequence[tuple[list, list]], device: wp.Device) -> None:
    """Call `launch_adjoint` for all steps in reverse; `adjoints` has the gradients of their inputs and outputs."""
    for (kernel, dim, inputs, outputs), (adj_inputs, adj_outputs) in reversed(list(zip(steps, adjoints, strict=True))):
        launch_adjoint(kernel, dim, inputs, outputs, adj_inputs, adj_outputs, device)


def clear_gradients(arrays: Iterable[wp.array]) -> None:
    """Set the gradients of `arrays` to zero."""
    for array in arrays:
        array.grad.zero_()


def struct_of(cls: type, arrays: Sequence[wp.array | None]) -> object:
    """A Warp struct with its fields set to `arrays` in order, flattened over all worlds; None leaves a field null."""
    struct = cls()
    for name, array in zip(cls.vars, arrays, strict=True):
        if array is not None:
            setattr(struct, name, array.flatten())
    return struct
