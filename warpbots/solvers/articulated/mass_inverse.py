"""The inverse of the mass matrix of a world."""

import warp as wp

from warpbots.solvers.articulated.kinematics import first_moment, moments
from warpbots.solvers.articulated.lu import factorise, solve
from warpbots.solvers.articulated.newton import Factors
from warpbots.solvers.articulated.robot_arrays import RobotArrays
from warpbots.solvers.articulated.spatial import momentum, scalar
from warpbots.solvers.articulated.step_arrays import StepArrays

__all__ = ["invert_masses"]


@wp.func
def invert_masses(robot: RobotArrays, work: StepArrays, factors: Factors, w: int):
    """Write the inverse of the mass matrix of world w to `work.jacobian`, by one thread.

    The function reads the twists of unit velocities from `work.axis`.
    """
    tree = robot.tree
    n = tree.freedom
    for i in range(n):
        for j in range(n):
            M = scalar(0.0)
            if i == j:
                M = robot.design.armature[w * n + i]
            for k in range(tree.bodies):
                e = tree.element[k]
                if (
                    tree.carries[tree.of_dof[i] * tree.elements + e] * tree.carries[tree.of_dof[j] * tree.elements + e]
                    == 1
                ):
                    b = w * tree.bodies + k
                    mc = first_moment(robot.design, work.links, b)
                    J = moments(robot.design, work.links, b)
                    h = momentum(robot.design.mass[b], mc, J, work.axis[w * n + j])
                    M += wp.dot(work.axis[w * n + i], h)
            factors.matrix[(w * n + i) * n + j] = M
    factorise(factors.matrix, factors.pivot, w, n)
    for j in range(n):
        for i in range(n):
            work.step[w * n + i] = wp.where(i == j, scalar(1.0), scalar(0.0))
        solve(factors.matrix, factors.pivot, work.step, w, n)
        for i in range(n):
            work.jacobian[(w * n + i) * n + j] = work.step[w * n + i]
