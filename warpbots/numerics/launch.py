"""Kernel launches and launches of their adjoints, loops and branches around launches, and structs of inputs.

Solvers launch the adjoints of their kernels themselves, instead of recording launches on a tape.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar

import warp as wp

from warpbots.numerics.slices import Edges, Slices, Targets, launch_slice
from warpbots.numerics.warp_settings import with_own_settings

__all__ = [
    "Launch",
    "clear_gradients",
    "dividing",
    "if_then",
    "launch",
    "launch_adjoint",
    "launch_adjoints",
    "launch_all",
    "launch_lanes",
    "launch_own_adjoint",
    "launch_slices",
    "load",
    "preparing",
    "rarely",
    "repeat",
    "shared",
    "without_rare_bodies",
    "struct_of",
    "while_loop",
]

Launch = tuple[wp.Kernel, int | tuple, list, list]
"""A kernel, the size of its launch, its inputs and its outputs."""

_Body = Callable[[], None]

_met: ContextVar[dict[object, _Body | None] | None] = ContextVar("met", default=None)
_loading: ContextVar[bool] = ContextVar("loading", default=False)
_missed: ContextVar[wp.array | None] = ContextVar("missed", default=None)
_slices: ContextVar[Slices | None] = ContextVar("slices", default=None)


@contextlib.contextmanager
def preparing() -> Iterator[list[_Body]]:
    """Context of a first run of launches, which compiles and loads their kernels, so that they can be captured later.

    Bodies of loops and branches that come from the same place in the program must launch the same kernels.

    Yields:
        A list of the bodies that were not entered, for `load`. The list is complete after the context.
    """
    met: dict[object, _Body | None] = {}
    left: list[_Body] = []
    with _set(_met, met):
        yield left
    left.extend(filter(None, met.values()))


def load(bodies: Iterable[_Body]) -> None:
    """Compile and load the kernels of `bodies` without running them, and create arrays that are created on first use.

    Fills and copies are executed. So if there is a body, the arrays that the launches write are undefined until the
    launches have run again.
    """
    with _set(_loading, True):
        for body in bodies:
            body()


def while_loop(condition: wp.array, body: _Body) -> None:
    """Repeat `body` as long as the flag `condition`, shape (1,), int, is not zero.

    In a captured graph, the device tests the flag.
    """
    _enter(wp.capture_while, condition, body)


def if_then(condition: wp.array, body: _Body) -> None:
    """Run `body` if the flag `condition`, shape (1,), int, is not zero.

    In a captured graph, the device tests the flag.
    """
    _enter(wp.capture_if, condition, body)


def repeat(body: _Body, times: int, left: wp.array) -> None:
    """Run `body` a number of times; a graph on a CPU holds its launches once.

    A replay reads the arguments of all launches of a graph. In a graph with many steps these are megabytes, which take
    longer to read than small robots take to move.

    Args:
        body: Function that launches the same kernels with the same arguments at each call.
        times: Number of times.
        left: Array for the number of times that are left, shape (1,), int.
    """
    if times < 2 or left.device.is_cuda or _slices.get() is not None:
        for _ in range(times):
            body()
        return

    def counted() -> None:
        body()
        launch(count_kernel, 1, [], [left], left.device)

    left.fill_(times)
    while_loop(left, counted)


@wp.kernel(enable_backward=False)
def count_kernel(
    # out
    left_out: wp.array[int],
):
    """Subtract 1 from the number of times that are left."""
    left_out[0] = left_out[0] - 1


@contextlib.contextmanager
def without_rare_bodies(missed: wp.array) -> Iterator[None]:
    """Context in which captures leave out the bodies that are passed to `rarely`.

    Args:
        missed: Flag, shape (1,), int. A replay of the capture sets the flag to 1 if it should have run a body that was
            left out; all results of this replay are then invalid.
    """
    with _set(_missed, missed):
        yield


def rarely(condition: wp.array, body: _Body) -> None:
    """Run a large body that is hardly ever needed if `condition` is not zero, as `if_then` does.

    Captures in the context of `without_rare_bodies` leave the body out.
    """
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
    """Set `missed_out` to 1 if `condition` is not zero, so that a body that was left out should have run."""
    if condition[0] != 0:
        missed_out[0] = 1


def _enter(how: Callable, condition: wp.array, body: _Body) -> None:
    met = _met.get()
    if _loading.get():
        body()
    elif met is None:
        with _set(_slices, None):  # the other threads do not know how often the body runs
            how(condition, body)
    else:
        met.setdefault(body.__code__, body)

        def entered() -> None:
            met[body.__code__] = None
            body()

        how(condition, entered)


@contextlib.contextmanager
def dividing(slices: Slices | None) -> Iterator[None]:
    """Context of a capture in which `launch_slices` divides launches, unless `slices` is None."""
    with _set(_slices, slices):
        yield


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
    """Launch a kernel without recording the launch on the tape; `block_dim` is the number of threads per block."""
    with_own_settings(
        wp.launch, kernel, dim, inputs, outputs, device=device, record_tape=False, record_cmd=_loading.get(),
        block_dim=block_dim,
    )  # fmt: skip


def launch_slices(
    kernel: wp.Kernel,
    dim: int | tuple,
    inputs: list,
    outputs: list,
    device: wp.Device,
    division: Edges | Targets | None = None,
    alone: bool = False,
    gradients: tuple[list, list] | None = None,
) -> None:
    """Launch a kernel whose first argument is a `Slice`; threads of a CPU may share its items.

    Args:
        kernel: The kernel. Each item writes only to itself, unless there is a `division`.
        dim: Number of items, and numbers of threads along further axes.
        inputs: Inputs of the kernel, without the slice.
        outputs: Outputs of the kernel.
        device: Device of the arrays.
        division: How slices are divided if items add to other items or places.
        alone: Whether one thread must visit all items, because they add to one place.
        gradients: Gradients of the inputs and of the outputs, to launch the adjoint that Warp generated instead.
    """
    slices, (count, *lanes) = _slices.get(), (dim,) if isinstance(dim, int) else dim
    if alone or slices is None or not slices.divide(kernel, (count, *lanes), inputs, outputs, division, gradients):
        launch_slice(kernel, (0, count), (0, count), lanes, inputs, outputs, device, _loading.get(), gradients)


def shared(count: int) -> bool:
    """Whether `launch_slices` divides launches of `count` items here."""
    slices = _slices.get()
    return slices is not None and slices.divides(count)


def launch_lanes(
    kernel: wp.Kernel, dim: int | tuple, lanes: int, inputs: list, outputs: list, device: wp.Device
) -> None:
    """Launch a kernel with `lanes` threads (on a CPU one thread) for each index.

    The last result of `wp.tid` is the index of the thread. The threads of an index share Warp tiles, with which they
    compute joint results such as sums.
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
    """Launch the adjoint that Warp generated for a kernel.

    The adjoint adds to the gradients of the inputs, from the gradients of the outputs.
    """
    with_own_settings(
        wp.launch, kernel, dim, inputs, outputs, adj_inputs, adj_outputs, device=device, adjoint=True,
        record_tape=False, record_cmd=_loading.get(),
    )  # fmt: skip


def launch_own_adjoint(kernel: wp.Kernel, dim: int | tuple, inputs: list, device: wp.Device) -> None:
    """Call `launch_adjoint` with the field `grad` of each array as its gradient, including arrays in structs."""
    launch_adjoint(kernel, dim, inputs, [], [_gradient_of(a) for a in inputs], [], device)


def _gradient_of(argument: object) -> object:
    """Gradient of a kernel argument: `grad` of an array, a struct of gradients for a struct, otherwise None."""
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
    """Call `launch` for each of the launches `steps`, one after the other."""
    for kernel, dim, inputs, outputs in steps:
        launch(kernel, dim, inputs, outputs, device)


def launch_adjoints(steps: Sequence[Launch], adjoints: Sequence[tuple[list, list]], device: wp.Device) -> None:
    """Call `launch_adjoint` for each of the launches `steps`, in reverse order.

    `adjoints` holds for each launch the gradients of its inputs and the gradients of its outputs.
    """
    for (kernel, dim, inputs, outputs), (adj_inputs, adj_outputs) in reversed(list(zip(steps, adjoints, strict=True))):
        launch_adjoint(kernel, dim, inputs, outputs, adj_inputs, adj_outputs, device)


def clear_gradients(arrays: Iterable[wp.array]) -> None:
    """Set the gradients of `arrays` to zero."""
    for array in arrays:
        array.grad.zero_()


def struct_of(cls: type, arrays: Sequence[wp.array | None]) -> object:
    """Build a Warp struct whose fields are `arrays` in this order, each flattened over all worlds.

    None leaves a field null.
    """
    struct = cls()
    for name, array in zip(cls.vars, arrays, strict=True):
        if array is not None:
            setattr(struct, name, array.flatten())
    return struct
