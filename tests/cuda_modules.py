"""The modules of every solver as CUDA code: ``python cuda_modules.py FOLDER NAME ...`` compiles those of scenes.

The name ``others`` stands for `OTHERS`.

Prints a line for each kernel that was launched: file and name of its source, its key, the numbers of threads per block of
its module, and the file of its module.
Scenes run as a GPU would have them, on a CPU. Code without optimisation takes a third of the time of optimised code for
the largest modules, but 16 times the room; only the names of its kernels are kept.
"""

import re
import sys
from pathlib import Path

import in_orders
import warp as wp
from launches import Captures, compile_for_gpu

from warpbots.contact.distance import _mesh_distance
from warpbots.contact.mesh_distance import nearest_kernel
from warpbots.materials import law_of
from warpbots.materials.law_checks import _change_kernel
from warpbots.meshing.self_intersection import _count_overlaps, _write_overlaps
from warpbots.numerics.launch import count_kernel, miss_kernel
from warpbots.numerics.slices import meet_kernel
from warpbots.numerics.subnormals import begin_kernel, end_kernel
from warpbots.solvers.articulated.contact_list import list_kernel
from warpbots.solvers.articulated.penetration import depth_kernel
from warpbots.solvers.mpm.shared_grid import planes_kernel
from warpbots.solvers.projective.contact.few_contacts import adj_solve_few_kernel, solve_few_kernel
from warpbots.solvers.projective.contact.sticking_contacts import adj_solve_sticking_kernel, solve_sticking_kernel
from warpbots.solvers.projective.iterate.block_cholesky import down_kernel
from warpbots.solvers.projective.iterate.sparse_cholesky import solve_kernel

OTHERS = (
    depth_kernel, _mesh_distance, nearest_kernel, list_kernel, solve_kernel, down_kernel, miss_kernel, count_kernel,
    meet_kernel, _change_kernel(law_of("neo_hookean"), 3), planes_kernel(3), _count_overlaps, _write_overlaps,
    begin_kernel, end_kernel, solve_few_kernel, adj_solve_few_kernel, solve_sticking_kernel, adj_solve_sticking_kernel,
)  # fmt: skip
"""Kernels that no such step launches: of messages, meshes and checks of laws, of threads and numbers of a CPU, and
of larger bodies."""


def compile_all(folder: Path, names: list[str]) -> None:
    """Run scenes by name and compile what they launch."""
    captures = Captures()
    with captures.watching():
        for name in names:
            if name != "others":
                getattr(in_orders, name)()
    for kernel in OTHERS if "others" in names else ():
        captures.kernels.setdefault(kernel.module, set()).add(kernel)
    for module, kernels in captures.kernels.items():
        wp.set_module_options({"mode": "debug"}, module)
        path = compile_for_gpu(module, folder, arch=75 if "2d" in module.name else 90)
        path.write_text("\n".join(re.findall(r"\.entry \w+", path.read_text(errors="replace"))))
        blocks = " ".join(map(str, sorted(captures.blocks.get(module, ()))))
        for kernel in kernels:
            source = kernel.func.__code__
            print(source.co_filename, source.co_name, kernel.key, blocks, path, sep="\t")


if __name__ == "__main__":
    import warnings

    wp.config.log_level = wp.LOG_WARNING
    warnings.simplefilter("ignore")
    compile_all(Path(sys.argv[1]), sys.argv[2:])
