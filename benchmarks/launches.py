"""Number of launches in a control interval of one substep on a GPU, inside and outside of its graphs.

    WARPBOTS_PARALLEL=1 python benchmarks/launches.py [NAME ...] [--device cpu] [--ptx FOLDER]

Graphs are examined while they are captured, so that no GPU is needed: WARPBOTS_PARALLEL makes a CPU launch the kernels
of a GPU. The script counts for the forward pass and for the backward pass: kernels, and fills or copies, in the graph
(launches within loops and branches count once, and again in a separate number); kernels of fewer than 2,048 threads,
which leave most of a GPU idle; operators of torch; and waits of the host for the device. `--ptx` compiles all launched
kernels for compute capability 9.0; `registers.py` lists their registers.
"""

import argparse
import collections
import contextlib
import math
import pathlib
from collections.abc import Callable, Iterator

import torch
import warp as wp
from scenes import BENCHMARKS, make, method
from torch.utils._python_dispatch import TorchDispatchMode

import warpbots as wb
from warpbots.numerics import subnormals

__all__ = ["Around", "Captures", "compile_for_gpu", "counts"]

NAMES = (
    "mpm-3d-5k", "mass-spring-10k", "mass-spring-100k-rk4", "projective-10k", "projective-10k-collisions",
    "articulated-hand",
)  # fmt: skip
COUNTED = ("kernels", "small", "memory")
"""Counts per graph: kernels, kernels of few threads, fills and copies."""
FEW = 2048
"""Number of threads below which a kernel counts as small."""
THREADS = 256
"""Threads per block of a launch that names no number."""
VIEWS = (
    "view", "detach", "expand", "empty", "alias", "slice", "select", "as_strided", "unsqueeze", "t.default",
    "transpose",
)  # fmt: skip
"""Operators of torch that launch no kernel."""
CPU_ALONE = (subnormals.begin_kernel, subnormals.end_kernel)
"""Kernels that are launched on a CPU only."""


class Captures:
    """Counter of launches within captures.

    Attributes:
        graphs: For each capture, the number of launches of each kind: ``"kernels"``, ``"small"`` and ``"memory"``, and
            these names followed by ``" in loops"``.
        kernels: All kernels that were launched, within captures or outside of them, by module.
        blocks: Numbers of threads per block with which a GPU would launch the kernels of a module, by module.
    """

    def __init__(self):
        self.graphs: list[collections.Counter] = []
        self.kernels: dict[wp.Module, set[wp.Kernel]] = {}
        self.blocks: dict[wp.Module, set[int]] = {}
        self._depth: int | None = None

    def _count(self, what: str) -> None:
        if self._depth is not None:
            self.graphs[-1][what + " in loops" * (self._depth > 0)] += 1

    @contextlib.contextmanager
    def watching(self) -> Iterator["Captures"]:
        """Context in which launches are counted and executed as usual."""
        with contextlib.ExitStack() as stack:
            for name in ("launch", "launch_tiled"):
                self._replace(stack, wp, name, self._launch)
            for name in ("capture_while", "capture_if"):
                self._replace(stack, wp, name, self._nested)
            self._replace(stack, wp, "ScopedCapture", self._capture)
            for owner, name in ((wp, "copy"), (wp.array, "zero_"), (wp.array, "fill_")):
                self._replace(stack, owner, name, self._memory)
            for owner, name in ((wp.Bvh, "refit"), (wp.HashGrid, "build")):
                self._replace(stack, owner, name, self._built)
            yield self

    def _replace(self, stack: contextlib.ExitStack, owner: object, name: str, make: Callable) -> None:
        original = getattr(owner, name)
        setattr(owner, name, make(original))
        stack.callback(setattr, owner, name, original)

    def _launch(self, original: Callable) -> Callable:
        def launch(kernel: wp.Kernel, *words, **options):
            dim = options["dim"] if "dim" in options else words[0]
            if kernel in CPU_ALONE:
                return original(kernel, *words, **options)
            self.kernels.setdefault(kernel.module, set()).add(kernel)
            size = options.get("block_dim") or THREADS
            self.blocks.setdefault(kernel.module, set()).add(THREADS if size == 1 else size)
            self._count("kernels")
            lanes = options.get("block_dim") if original.__name__ == "launch_tiled" else 1
            if lanes * math.prod(dim if isinstance(dim, tuple) else (dim,)) < FEW:
                self._count("small")
            return original(kernel, *words, **options)

        return launch

    def _nested(self, original: Callable) -> Callable:
        def nested(condition: wp.array, body: Callable[[], None], *words, **options):
            def inner():
                if self._depth is not None:
                    self._depth += 1
                body()
                if self._depth is not None:
                    self._depth -= 1

            return original(condition, inner, *words, **options)

        return nested

    def _capture(self, original: type) -> type:
        captures = self

        class Counted(original):
            def __enter__(self):
                captures.graphs.append(collections.Counter())
                captures._depth = 0
                return super().__enter__()

            def __exit__(self, *fault):
                captures._depth = None
                return super().__exit__(*fault)

        return Counted

    def _memory(self, original: Callable) -> Callable:
        def memory(*words, **options):
            self._count("memory")
            return original(*words, **options)

        return memory

    def _built(self, original: Callable) -> Callable:
        def built(*words, **options):
            self._count("trees")
            return original(*words, **options)

        return built


class Around(TorchDispatchMode):
    """Counter of operators of torch that would launch a kernel, and of operators for which the host waits."""

    def __init__(self):
        super().__init__()
        self.operators = self.reads = 0

    def __torch_dispatch__(self, operator, types, words=(), options=None):
        name = str(operator).removeprefix("aten.")
        if name.startswith(("_local_scalar_dense", "item")):
            self.reads += 1
        elif not any(view in name for view in VIEWS):
            self.operators += 1
        return operator(*words, **(options or {}))


@contextlib.contextmanager
def around() -> Iterator[Around]:
    """Context with an `Around` that also counts reads that bypass torch's dispatcher on a CPU."""
    with contextlib.ExitStack() as stack:
        counter = Around()
        for name in ("tolist", "cpu", "numpy"):
            original = getattr(torch.Tensor, name)

            def read(self, *words, _original=original, **options):
                counter.reads += 1
                with torch.utils._python_dispatch._disable_current_modes():
                    return _original(self, *words, **options)

            setattr(torch.Tensor, name, read)
            stack.callback(setattr, torch.Tensor, name, original)
        stack.enter_context(counter)
        yield counter


def counts(sim: wb.Simulation) -> tuple[list[tuple[collections.Counter, Around]], Captures]:
    """Count the launches of a control interval and of its gradient, inside and outside of the graphs.

    Returns the counts of the forward pass and of the backward pass, and the `Captures` with all launched kernels.
    """
    state = type(sim.state())(**{n: t.clone().requires_grad_() for n, t in vars(sim.state()).items()})
    like = next(iter(vars(state).values()))
    control = torch.zeros(sim.worlds, sim.channels, dtype=like.dtype, device=like.device, requires_grad=True)
    captures = Captures()
    with captures.watching():
        for _ in range(2):  # the second step is captured
            _loss(sim.step(state, control)).backward()
    with around() as forwards:
        out = sim.step(state, control)
    loss = _loss(out)
    with around() as backwards:
        loss.backward()
    first, second = captures.graphs
    return [(first, forwards), (second, backwards)], captures


def _loss(state: object) -> torch.Tensor:
    return sum(t.sum() for t in vars(state).values())


def compile_for_gpu(module: wp.Module, folder: pathlib.Path, arch: int = 90) -> pathlib.Path:
    """Compile a module to PTX for a compute capability, unless `folder` already has the file; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    found = f"{module.get_module_identifier()}*.sm{arch}.ptx"
    if not any(folder.glob(found)):
        wp.compile_aot_module(module, arch=arch, module_dir=folder, use_ptx=True)
    (path,) = folder.glob(found)
    return path


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME", help="scenes of the benchmarks")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--ptx", metavar="FOLDER", type=pathlib.Path, help="write PTX of the kernels here")
    options = parser.parse_args()
    heads = ["scene", "direction", *COUNTED, *(f"{what} in loops" for what in COUNTED), "torch operators", "host reads"]
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for name in options.names:
        benchmark = next((b for b in BENCHMARKS if b["name"] == name), None)
        if benchmark is None:
            parser.error(f"there is no scene {name!r}; there are {', '.join(b['name'] for b in BENCHMARKS)}")
        sim = wb.Simulation(
            make(benchmark), method(benchmark), benchmark.get("dt", 1e-4), 1, worlds=benchmark.get("worlds", 1),
            device=options.device,
        )  # fmt: skip
        found, captures = counts(sim)
        for direction, (graph, outside) in zip(("forwards", "backwards"), found, strict=True):
            numbers = [graph[what + where] for where in ("", " in loops") for what in COUNTED]
            print("| " + " | ".join(map(str, [name, direction, *numbers, outside.operators, outside.reads])) + " |")
        if options.ptx:
            for module in captures.kernels:
                compile_for_gpu(module, options.ptx)


if __name__ == "__main__":
    main()
