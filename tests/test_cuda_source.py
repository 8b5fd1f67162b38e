"""The kernels as CUDA code, which needs Warp's compiler but no GPU."""

import sys

import pytest
import warp as wp

from warpbots.actuators import cable_kernels
from warpbots.math import precision
from warpbots.solvers.articulated.dynamics import dynamics_kernel
from warpbots.solvers.articulated.newton import newton_kernel
from warpbots.solvers.articulated.passes import pose_kernel
from warpbots.solvers.articulated.power import (
    compact_kernel,
    contact_power_kernel,
    count_kernel,
    deep_kernel,
    finish_kernel,
    list_kernel,
    motor_power_kernel,
    power_kernel,
    recall_kernel,
    sweep_kernel,
    weigh_kernel,
)
from warpbots.solvers.articulated.sense import body_kernel, contact_kernel, torque_kernel
from warpbots.solvers.mass_spring.collision import adj_collide_kernel, collide_kernel, point_kernel
from warpbots.solvers.mass_spring.drive import adj_rest_kernel, pass_kernel, rest_kernel, signal_kernel
from warpbots.solvers.mass_spring.motion import adj_end_kernel, adj_stage_kernel, end_kernel, stage_kernel
from warpbots.solvers.mass_spring.motor import motor_kernels
from warpbots.solvers.mass_spring.restrain import adj_end_restrain_kernel, end_restrain_kernel, restrain_kernel
from warpbots.solvers.mass_spring.springs import adj_pull_kernel, pull_kernel
from warpbots.solvers.mass_spring.touch import stop_kernel, touch_kernel
from warpbots.solvers.mass_spring.wear import deform_kernel, wear_kernel
from warpbots.solvers.mpm.adjoint import adj_move_kernel, adj_p2g_kernel
from warpbots.solvers.mpm.force import adj_force_kernel, force_kernel
from warpbots.solvers.mpm.grid import clear_kernel, grid_kernel
from warpbots.solvers.mpm.transfer import move_kernel, p2g_kernel

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="Warp for macOS comes without CUDA")


def spring_kernels(dim: int) -> list[wp.Kernel]:
    """All kernels of a mass-spring step and its adjoint."""
    return [
        stage_kernel(dim, 0), stage_kernel(dim, 3), adj_stage_kernel(dim, 3), end_kernel(dim, 4), adj_end_kernel(dim, 4),
        touch_kernel(dim, 2, 4), stop_kernel(dim), restrain_kernel(dim), end_restrain_kernel(dim), adj_end_restrain_kernel(dim),
        *motor_kernels(), signal_kernel(), rest_kernel(), adj_rest_kernel(), pass_kernel(), wear_kernel(), deform_kernel(),
        pull_kernel(True, True, True), adj_pull_kernel(True, True, True, True), point_kernel(), collide_kernel(),
        adj_collide_kernel(),
    ]  # fmt: skip


def particle_kernels(dim: int) -> list[wp.Kernel]:
    """All kernels of an MPM step and its adjoint."""
    law = ("fixed_corotated", 0, dim)
    cables = cable_kernels(dim) if dim == 3 else ()
    return [
        clear_kernel(), p2g_kernel(*law), move_kernel(dim), grid_kernel(dim), force_kernel(dim),
        adj_p2g_kernel(*law), adj_move_kernel(dim), adj_force_kernel(dim), *cables,
    ]  # fmt: skip


def articulated_kernels() -> list[wp.Kernel]:
    """All kernels of a step of articulated bodies, of its adjoint and of readings."""
    return [
        newton_kernel, dynamics_kernel, finish_kernel, recall_kernel, weigh_kernel, sweep_kernel, power_kernel,
        motor_power_kernel, list_kernel, deep_kernel, count_kernel, compact_kernel, contact_power_kernel, pose_kernel,
        body_kernel, torque_kernel, contact_kernel,
    ]  # fmt: skip


def compiled(kernel: wp.Kernel, arch: int, folder) -> str:
    """PTX of the module of a kernel for a compute capability."""
    wp.compile_aot_module(kernel.module, arch=arch, module_dir=folder, use_ptx=True)
    (path,) = folder.glob(f"wp_{kernel.module.name}*.sm{arch}.ptx")
    return path.read_text(errors="replace")


@pytest.mark.parametrize(("dim", "arch"), [(2, 75), (3, 90)])
@pytest.mark.parametrize("kernels", [particle_kernels, spring_kernels])
def test_every_kernel_compiles_for_a_gpu(kernels, dim, arch, tmp_path):
    for kernel in kernels(dim):
        assert kernel.key in compiled(kernel, arch, tmp_path)


@pytest.mark.slow
def test_the_kernels_of_articulated_bodies_compile_for_a_gpu(tmp_path):
    for module in {kernel.module for kernel in articulated_kernels()}:
        kernels = [kernel.key for kernel in articulated_kernels() if kernel.module is module]
        source = compiled(next(k for k in articulated_kernels() if k.module is module), 90, tmp_path)
        assert all(key in source for key in kernels)


@pytest.mark.skipif(precision != "float32", reason="float64 has no vector atomics")
def test_nodes_move_in_one_instruction(tmp_path):
    """A scatter is 27 vector atomics and a gather 27 vector loads where the GPU has them."""
    law = ("neo_hookean", 0, 3)
    assert compiled(p2g_kernel(*law), 90, tmp_path).count("atom.global.add.v4.f32") == 27
    assert compiled(move_kernel(3), 90, tmp_path).count("ld.global.v4.f32") == 27
    adjoint = compiled(adj_move_kernel(3), 90, tmp_path)
    assert adjoint.count("atom.global.add.v4.f32") == 27
    assert "atom.global.add.f32" not in adjoint


@pytest.mark.parametrize(
    "kernel", [pull_kernel(True, True, False), adj_pull_kernel(True, True, False, True)], ids=["pull", "adjoint"]
)
def test_springs_need_no_atomic_operation(kernel, tmp_path):
    """Each mass gathers from all its springs: nobody else writes to it, so a run repeats to the bit."""
    code = compiled(kernel, 90, tmp_path)
    assert "atom.global" not in code
    assert "red.global" not in code
