"""Runs the threads of a launch on a CPU in another order than one after the other, as a GPU might.

`install` changes the loop that Warp writes around every kernel: which thread comes next is read from the launch itself,
so that kernels are compiled once for all orders. Where the threads of a block wait for one another, blocks change
places and threads do not: which of them holds what is the same on every GPU, too. Replayed graphs of a CPU forget the
order, and nothing can be captured.

Warp does not see that its templates were changed: kernels go to a cache of their own.
"""

import contextlib
import hashlib
import pathlib
from collections.abc import Iterator

import warp as wp

__all__ = ["ORDERS", "install", "order"]

ORDERS = {"ordinary": 0, "reversed": 1, "shuffled": 2}
"""Codes of the orders of threads."""

_SHIFT = 32  # where in `coord_mult` of a launch, which stays below, its order is
_current = [0]  # code of the order in which launches have their threads now

_HEADER = """
// The thread that is number k of n: the same, the last but k, or a line through the integers modulo n.
static inline size_t thread_of(size_t k, size_t n, size_t order)
{{
    if (order == 0 || n < 2) return k;
    if (order == 1) return n - 1 - k;
    size_t stride = (order * 2654435761u) % n + 1;
    for (;; ++stride) {{
        size_t a = stride, b = n;
        while (b != 0) {{ const size_t rest = a % b; a = b; b = rest; }}
        if (a == 1) break;
    }}
    return (stride % n * k + order * 40503u) % n;
}}
#define WITHOUT_ORDER(N) \\
    wp::launch_bounds_t<N> bounds = *dim; \\
    [[maybe_unused]] const size_t order = bounds.coord_mult >> 32; \\
    bounds.coord_mult &= 0xffffffffu;
"""
_CHANGES = {
    "module": [
        (
            "    for (size_t task_index = 0; task_index < dim->size; ++task_index)\n    {{",
            "    WITHOUT_ORDER({launch_ndim})\n    for (size_t k = 0; k < dim->size; ++k)\n    {{\n"
            "        const size_t task_index = thread_of(k, dim->size, order);",
        ),
        ("(\n            *dim, task_index", "(\n            bounds, task_index"),
        ("(*dim, task_index", "(bounds, task_index"),
    ],
    "block_module": [
        (
            "    const size_t task_index = payload->block_first + (size_t)lane;",
            "    WITHOUT_ORDER({launch_ndim})\n    const size_t task_index = payload->block_first + (size_t)lane;",
        ),
        ("(*dim, task_index", "(bounds, task_index"),
    ],
    "block_entry_body": [
        (
            "    while (block_first < total)\n    {{",
            "    const size_t blocks = (total + block_dim - 1) / block_dim;\n"
            "    for (size_t k = 0; k < blocks; ++k)\n    {{\n"
            "        block_id = thread_of(k, blocks, dim->coord_mult >> 32);\n"
            "        block_first = block_id * block_dim;",
        ),
    ],
}


def install() -> None:
    """Change the templates of this process and where its kernels are cached; before any kernel is compiled.

    Raises:
        RuntimeError: Warp's templates are others than those that this was written for.
    """
    codegen, context = wp._src.codegen, wp._src.context
    for part, rules in _CHANGES.items():
        for direction in ("forward", "backward"):
            name = {
                "module": f"cpu_module_template_{direction}",
                "block_module": f"cpu_block_module_template_{direction}",
                "block_entry_body": f"cpu_block_entry_body_{direction}",
            }[part]
            text = getattr(codegen, name)
            if rules[0][0] not in text:
                raise RuntimeError(f"{name} of Warp {wp.__version__} is another one than this was written for")
            for old, new in rules:
                text = text.replace(old, new)
            setattr(codegen, name, text)
    codegen.cpu_module_header += _HEADER
    build = context._build_launch_bounds_from_tuple

    def ordered(dim: tuple[int, ...], kernel_dim: int) -> object:
        bounds = build(dim, kernel_dim)
        bounds.coord_mult |= _current[0] << _SHIFT
        return bounds

    def refuse(*words, **options) -> None:
        raise RuntimeError("graphs of a CPU forget the order of threads")

    context._build_launch_bounds_from_tuple, wp.ScopedCapture = ordered, refuse
    changed = hashlib.sha256((_HEADER + repr(_CHANGES)).encode()).hexdigest()[:8]
    wp.init()
    folder = pathlib.Path(f"{wp.config.kernel_cache_dir}-orders-{changed}")
    folder.mkdir(parents=True, exist_ok=True)
    wp.config.kernel_cache_dir = str(folder)


@contextlib.contextmanager
def order(name: str) -> Iterator[None]:
    """Launches and captures within it have their threads in the order with that name."""
    _current[0] = ORDERS[name]
    try:
        yield
    finally:
        _current[0] = 0
