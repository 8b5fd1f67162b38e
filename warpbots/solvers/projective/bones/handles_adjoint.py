"""The adjoint of a step with bones: rows and columns of its global step are exchanged (`handles`).

The residual of the adjoint equations at a bound node is the gradient with respect to its displacement, which is passed
on to the pose of its bone. With the power of soft bodies in virtual velocities of the joints, every gradient with
respect to parameters of joints and bones is the gradient of a power, as in the adjoint of articulated bodies
(`articulated.virtual_power`).
"""

import warp as wp

from warpbots.numerics import NODE, vector
from warpbots.solvers.articulated.robot_arrays import JointTree
from warpbots.solvers.articulated.spatial import Twist, angular, cross_motion, linear, scalar, vec3
from warpbots.solvers.articulated.step_arrays import Links, StepArrays
from warpbots.solvers.projective.bones.handle_arrays import (
    HandleArrays,
    HandleWork,
    derivative_at,
    double,
    matrix_at,
    single,
)
from warpbots.solvers.projective.bones.handles import carried_to, handle_rate
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.nodes import packed

__all__ = [
    "adjoint_residual_kernel",
    "soft_body_power_kernel",
    "gather_kernel",
    "hold_kernel",
    "release_kernel",
    "tangent_kernel",
    "velocity_kernel",
    "weigh_joints_kernel",
]

_vec = vector(3)


@wp.func
def tangent_of(handles: HandleArrays, tree: JointTree, work: StepArrays, handle: HandleWork, w: int, j: int, l: int):
    """Derivative of the force of soft bodies on joint velocity j by joint displacement l, for constant nodal forces."""
    n = handles.freedom
    S = work.axis[w * n + j]
    e = tree.of_dof[j]
    rotated = Twist()
    if tree.carries[tree.of_dof[l] * tree.elements + e] == 1:
        rotated = cross_motion(work.change[w * n + l].displaced, S)
    total = scalar(0.0)
    for k in range(tree.bodies):
        if tree.carries[e * tree.elements + tree.element[k]] == 1:
            R = work.links.body_rotation[w * tree.bodies + k]
            p = work.links.body_position[w * tree.bodies + k]
            for c in range(4):
                column = handle.columns[derivative_at(handles, w, k, c, l)]
                rate = handle_rate(R, p, c, rotated) + wp.cross(angular(S), column)
                total += wp.dot(rate, handle.force[w * handles.handles + 4 * k + c])
    return total


@wp.kernel(enable_backward=False)
def tangent_kernel(
    # model
    handles: HandleArrays,
    tree: JointTree,
    # work
    work: StepArrays,
    # out
    handle_out: HandleWork,
    tangent_out: wp.array[scalar],
):
    """Write the transposes of K and of K minus the derivative of the forces on bones, whose moments are in `force`.

    Only K preconditions the adjoint: forces that press a loose body from both sides may cancel its inertia.
    """
    w, j, l = wp.tid()
    n = handles.freedom
    if handles.block_of[j] == handles.block_of[l]:
        slope = work.jacobian[(w * n + j) * n + l]
        m = matrix_at(handles, w, l, j)
        handle_out.matrix[m] = slope
        tangent_out[m] = slope - tangent_of(handles, tree, work, handle_out, w, j, l)


@wp.kernel(enable_backward=False)
def adjoint_residual_kernel(
    # model
    handles: HandleArrays,
    # state
    active: wp.array[int],
    tangent: wp.array[scalar],
    seed: wp.array[scalar],
    z: wp.array[NODE],
    # out
    handle_out: HandleWork,
):
    """Write x* - T a, which replaces -r in the adjoint, with the transposed `tangent` T."""
    w, i = wp.tid()
    if active[w] == 0:
        return
    n = handles.freedom
    residual = scalar(seed[w * n + i])
    b = handles.block_of[i]
    for j in range(handles.block[b], handles.block[b + 1]):
        slope = tangent[matrix_at(handles, w, i, j)]
        residual -= slope * scalar(z[w * handles.stride + handles.nodes + j][0])
    handle_out.residual[w * n + i] = residual


@wp.kernel(enable_backward=False)
def weigh_joints_kernel(
    # model
    handles: HandleArrays,
    # state
    z: wp.array[NODE],
    # out
    weight_out: wp.array[scalar],
):
    """Write the virtual joint velocities -a; the power of all forces at these has the gradients of the step."""
    w, j = wp.tid()
    weight_out[w * handles.freedom + j] = -scalar(z[w * handles.stride + handles.nodes + j][0])


@wp.kernel(enable_backward=False)
def hold_kernel(
    # model
    handles: HandleArrays,
    # state
    residual: wp.array[NODE],
    # out
    held_out: wp.array[vec3],
):
    """Copy the entries of bound nodes from `residual`."""
    w, b = wp.tid()
    held_out[w * handles.bound + b] = double(at(residual, w * handles.stride + handles.node[b]))


@wp.kernel(enable_backward=False)
def release_kernel(
    # model
    handles: HandleArrays,
    # work
    moved: wp.array[vec3],
    # out
    x_adj_out: wp.array[_vec],
):
    """x* -= t, as displacements of bound nodes are measured from their start."""
    w, b = wp.tid()
    k = w * handles.nodes + handles.node[b]
    x_adj_out[k] = x_adj_out[k] - single(moved[w * handles.bound + b])


@wp.kernel
def soft_body_power_kernel(
    # model
    handles: HandleArrays,
    tree: JointTree,
    # state
    links: Links,
    # work
    sweep: wp.array[Twist],
    pushed: wp.array[vec3],
    moved: wp.array[vec3],
    # out
    power_out: wp.array[scalar],
):
    """Position of a bound node times t, the gradient by its displacement, minus force times virtual velocity."""
    w, b = wp.tid()
    X = carried_to(handles, tree, links, w, b)
    L = sweep[w * tree.elements + tree.element[handles.bone[b]]]
    v = linear(L) + wp.cross(angular(L), X)
    i = w * handles.bound + b
    power_out[i] = wp.dot(moved[i], X) - wp.dot(pushed[i], v)


@wp.func
def place_of(handles: HandleArrays, b: int, c: int):
    """Coordinate c of bound point number b in the frame of its bone, or 1, in the precision of bones."""
    lever = scalar(1.0)
    if c < 3:
        lever = handles.place[b][c]
    return lever


@wp.kernel(enable_backward=False)
def gather_kernel(
    # model
    handles: HandleArrays,
    # state
    residual: wp.array[NODE],
    # out
    handle_out: HandleWork,
):
    """Write to `force` the moments of the forces on the bound nodes of each bone only: sum of b_i (r_i, 1)_c."""
    w, c = wp.tid()
    k = c / 4
    total = vec3()
    if handles.flesh_of[k] >= 0:
        for b in range(handles.bare[0]):
            if handles.bone[b] == k:
                total += place_of(handles, b, c % 4) * double(at(residual, w * handles.stride + handles.node[b]))
    for b in range(handles.bare[k], handles.bare[k + 1]):
        total += place_of(handles, b, c % 4) * double(at(residual, w * handles.stride + handles.node[b]))
    handle_out.force[w * handles.handles + c] = total


@wp.kernel(enable_backward=False)
def velocity_kernel(
    # model
    handles: HandleArrays,
    # state
    active: wp.array[int],
    handle: HandleWork,
    z: wp.array[NODE],
    # out
    z_out: wp.array[NODE],
):
    """Write velocities of bound nodes that follow from the joint velocities in `z`."""
    w, b = wp.tid()
    if active[w] == 0:
        return
    k = handles.bone[b]
    total = vec3()
    span = handles.span[k]
    for c in range(4):
        lever = place_of(handles, b, c)
        first = derivative_at(handles, w, k, c, span[0]) - span[0]
        for j in range(span[0], span[1]):
            rate = scalar(z[w * handles.stride + handles.nodes + j][0])
            total += lever * rate * handle.rows[first + j]
    z_out[w * handles.stride + handles.node[b]] = packed(single(total))
