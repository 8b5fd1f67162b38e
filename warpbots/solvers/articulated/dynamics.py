"""The equations of motion at a state: mass matrix, bias and acceleration."""

import dataclasses

import numpy as np
import warp as wp

from warpbots.numerics import launch
from warpbots.solvers.articulated.cloud_contact import bound_group
from warpbots.solvers.articulated.lu import factorise, solve
from warpbots.solvers.articulated.model import ArticulatedModel, ArticulatedState
from warpbots.solvers.articulated.newton import Factors
from warpbots.solvers.articulated.residual import evaluate
from warpbots.solvers.articulated.robot_arrays import RobotArrays
from warpbots.solvers.articulated.spatial import momentum, scalar
from warpbots.solvers.articulated.step_arrays import Stage, StepArrays

__all__ = ["Dynamics", "dynamics"]


@dataclasses.dataclass(frozen=True)
class Dynamics:
    """M a + bias = 0 for the accelerations a of a free motion.

    Attributes:
        mass_matrix: M [kg m^2 or kg], shape (worlds, n_velocities, n_velocities).
        bias: Forces without accelerations: gravity, velocities, springs, dampers, motors and contacts [N m or N], shape
            (worlds, n_velocities).
        acceleration: a [rad/s^2 or m/s^2], shape (worlds, n_velocities).
    """

    mass_matrix: np.ndarray
    bias: np.ndarray
    acceleration: np.ndarray


@wp.kernel(enable_backward=False)
def dynamics_kernel(
    # model
    robot: RobotArrays,
    # step
    stage: Stage,
    # state
    control: wp.array2d[scalar],
    # out
    work_out: StepArrays,
    factors_out: Factors,
    mass_matrix_out: wp.array[scalar],
):
    """Mass matrix of a world, and its acceleration in `work.step`; its bias stays in `work.residual`."""
    w = wp.tid()
    tree = robot.tree
    n = tree.freedom
    for g in range(robot.contacts.groups):
        bound_group(robot.contacts, work_out.pairs, w, g)
    evaluate(robot, stage, work_out, control, w, 0, 1)
    for j in range(n):
        e = tree.of_dof[j]
        m = w * tree.elements + e
        h = momentum(work_out.mass[m], work_out.moment[m], work_out.inertia[m], work_out.axis[w * n + j])
        for i in range(n):
            if tree.carries[tree.of_dof[i] * tree.elements + e] == 1:
                M = wp.dot(work_out.axis[w * n + i], h)
                mass_matrix_out[(w * n + i) * n + j] = M
                mass_matrix_out[(w * n + j) * n + i] = M
        mass_matrix_out[(w * n + j) * n + j] += robot.design.armature[w * n + j]
        work_out.step[w * n + j] = -work_out.residual[w * n + j]
    for i in range(n * n):
        factors_out.matrix[w * n * n + i] = mass_matrix_out[w * n * n + i]
    factorise(factors_out.matrix, factors_out.pivot, w, n)
    solve(factors_out.matrix, factors_out.pivot, work_out.step, w, n)


def dynamics(model: ArticulatedModel, state: ArticulatedState, control: wp.array | None = None) -> Dynamics:
    """Equations of motion at a state (for one step of which they are exact only in the limit).

    Args:
        model: From `Articulated.build`.
        state: Coordinates and velocities.
        control: Control signals, double precision, shape (worlds, channels); None for none.
    """
    worlds, n, device = model.worlds, model.tree.freedom, model.device

    def zeros(size: int | tuple, dtype: type = scalar) -> wp.array:
        return wp.zeros(size, dtype=dtype, device=device)

    stage, factors = model.workspace.at_rest(state), Factors()
    factors.matrix, factors.pivot = zeros(worlds * n * n), zeros(worlds * n, int)
    matrix = zeros(worlds * n * n)
    workspace = model.workspace
    control = zeros((worlds, model.channels)) if control is None else control
    launch(dynamics_kernel, worlds, [model.robot_arrays, stage, control, workspace.work, factors], [matrix], device)
    return Dynamics(
        matrix.numpy().reshape(worlds, n, n),
        workspace.work.residual.numpy().reshape(worlds, n).copy(),
        workspace.work.step.numpy().reshape(worlds, n).copy(),
    )
