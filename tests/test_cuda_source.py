"""The kernels as CUDA code, which needs Warp's compiler but no GPU."""

import ast
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import warp as wp

from warpbots.actuation_laws import active_laws
from warpbots.materials import law_of
from warpbots.numerics import precision
from warpbots.solvers.mass_spring.springs import adj_pull_kernel, pull_kernel
from warpbots.solvers.mpm.transfer import MatterKind, move_kernel, p2g_kernel
from warpbots.solvers.mpm.transfer_adjoint import adj_move_kernel

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="Warp for macOS comes without CUDA")

TESTS = Path(__file__).resolve().parent
SCENES = {
    "matter": (
        "flat", "machine", "particles", "charged", "yielding", "liquid", "carried", "drawn", "springs", "cubes", "bricks",
        "draped", "winged", "turning", "driven", "breathing", "tied", "factored", "others",
    ),
    "bodies": (
        "sled", "loose", "pressed", "hand", "tumbling", "lifted", "pounded", "hammered", "flung", "pinned", "whipped",
    ),
}  # fmt: skip
"""Scenes of `in_orders`, which together launch every kernel that a step has; two processes share them."""


@pytest.fixture(scope="module")
def launched() -> list[list[str]]:
    """What `cuda_modules` prints of `SCENES`, whose modules are kept from run to run."""
    wp.init()
    folders = [TESTS / name for name in (".", "orders", "projective")] + [TESTS.parent / "benchmarks"]
    environment = os.environ | {
        "WARPBOTS_PARALLEL": "1",
        "PYTHONPATH": os.pathsep.join([*map(str, folders), *sys.path]),
    }
    program = [sys.executable, str(TESTS / "cuda_modules.py")]

    def compile_modules(half: str) -> subprocess.CompletedProcess:
        words = [f"{wp.config.kernel_cache_dir}-ptx/{half}", *SCENES[half]]
        return subprocess.run([*program, *words], env=environment, capture_output=True, text=True, check=False)

    with ThreadPoolExecutor() as pool:
        runs = list(pool.map(compile_modules, SCENES))
    for run in runs:
        assert run.returncode == 0, run.stderr
    return [line.split("\t") for run in runs for line in run.stdout.splitlines()]


def source_of(file: str) -> Path:
    """The CUDA code from which a file of PTX was compiled."""
    return Path(file).with_suffix("").with_suffix(".cu")


@pytest.mark.slow
def test_every_kernel_of_every_solver_compiles_for_a_gpu(launched):
    """In two and three dimensions, with contact, bones, shells, cloth, bars, a fluid, cells, motors and cables."""
    codes = {file: Path(file).read_text() for *_, file in launched}
    missing = [key for _, _, key, _, file in launched if key not in codes[file]]
    assert not missing


@pytest.mark.slow
def test_no_large_module_is_compiled_for_two_sizes_of_blocks(launched):
    """A GPU compiles all kernels of a module anew for each number of threads per block; some take two minutes."""
    twice = {source_of(file) for *_, blocks, file in launched if " " in blocks}
    twice = {source.name for source in twice if source.stat().st_size > LARGE}
    assert not twice


@pytest.mark.slow
def test_no_kernel_is_left_out(launched):
    """All kernels of the package are among the launched ones."""
    met, left = {(Path(file).resolve(), name) for file, name, *_ in launched}, []
    for path in (TESTS.parent / "warpbots").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and any("wp.kernel" in ast.unparse(d) for d in node.decorator_list):
                if (path, node.name) not in met:
                    left.append(f"{path.name}: {node.name}")
    assert not left, "\n".join(left)


LARGE = 940_000
"""Size of the source [B] above which a module takes more than 39 s to compile without optimisation.

With optimisation, which a GPU needs, it can take minutes.
"""
STUB = "reverse mode disabled"
"""What Warp writes into an adjoint that it leaves out, of a function that it takes for one without a backward pass."""


def adjoints_left_out(code: str) -> set[tuple[str, str]]:
    """Functions of a module that call an adjoint without code, and these adjoints."""
    parts = re.split(r"\n(?=static|inline|template|extern|WP_API|CUDA_CALLABLE)", code)
    named = [(match.group(1), part) for part in parts if (match := re.search(r"\b(\w+)\(", part))]
    stubs = {name for name, part in named if STUB in part}
    full = {name for name, part in named if STUB not in part}  # another function may have the name of an adjoint
    return {
        (name, called)
        for name, part in named
        if STUB not in part
        for called in re.findall(r"\b(adj_\w+)\(", part)
        if called in stubs - full
    }


def value_and_slope(number: int) -> tuple[wp.Kernel, wp.Kernel]:
    """Kernels of one module for a function and its derivative; the number decides which of them is built first."""
    module, scale = wp.get_module(f"test_adjoints_{number}"), wp.constant(float(number + 1))

    @wp.func
    def square(x: float):
        return x * x

    @wp.func
    def twice(x: float):
        return 2.0 * square(x)

    @wp.kernel(module=module, enable_backward=False)
    def value(x: wp.array[float], y: wp.array[float]):
        y[wp.tid()] = scale * twice(x[wp.tid()])

    @wp.kernel(module=module, enable_backward=False)
    def slope(x: wp.array[float], y: wp.array[float]):
        y[wp.tid()] = wp.grad(twice)(x[wp.tid()])

    return value, slope


def test_adjoints_that_warp_leaves_out_are_seen(tmp_path):
    """If the kernel of the value is built first, `wp.grad` of a function that calls another function is zero."""
    seen = []
    for number in range(8):
        kernels = value_and_slope(number)  # a module has the kernels that live
        wp.compile_aot_module(kernels[0].module, arch=90, module_dir=tmp_path / str(number), use_ptx=True)
        seen += adjoints_left_out(next((tmp_path / str(number)).glob("*.cu")).read_text())
    if not seen:
        pytest.skip("this Warp writes every adjoint")
    assert all("twice" in name and "square" in called for name, called in seen)


@pytest.mark.slow
def test_every_adjoint_that_is_called_has_code(launched):
    """Or a gradient would be zero without a word."""
    sources = {source_of(file) for *_, file in launched}
    found = {source.name: left for source in sources if (left := adjoints_left_out(source.read_text()))}
    assert len(sources) > 50 and not found


def compiled(kernel: wp.Kernel, arch: int, folder: Path) -> str:
    """PTX of the module of a kernel for a compute capability."""
    wp.compile_aot_module(kernel.module, arch=arch, module_dir=folder, use_ptx=True)
    (path,) = folder.glob(f"wp_{kernel.module.name}*.sm{arch}.ptx")
    return path.read_text(errors="replace")


@pytest.mark.skipif(precision != "float32", reason="float64 has no vector atomics")
def test_nodes_move_in_one_instruction(tmp_path):
    """A scatter is 27 vector atomics and a gather 27 vector loads where the GPU has them."""
    rubber = MatterKind(law_of("neo_hookean"), 0, 3, damped=False, composite=False, active=active_laws((), 3))
    assert compiled(p2g_kernel(rubber), 90, tmp_path).count("atom.global.add.v4.f32") == 27
    assert compiled(move_kernel(3), 90, tmp_path).count("ld.global.v4.f32") == 27
    adjoint = compiled(adj_move_kernel(3), 90, tmp_path)
    assert adjoint.count("atom.global.add.v4.f32") == 27
    assert "atom.global.add.f32" not in adjoint


@pytest.mark.parametrize(
    "kernel", [pull_kernel(True, True, False), adj_pull_kernel(True, True, False, True)], ids=["pull", "adjoint"]
)
def test_springs_need_no_atomic_operation(kernel, tmp_path):
    """Each mass gathers from all its springs: no other thread writes to it, so a run repeats to the bit."""
    code = compiled(kernel, 90, tmp_path)
    assert "atom.global" not in code
    assert "red.global" not in code
