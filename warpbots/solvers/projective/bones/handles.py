"""Bones as handles of soft bodies: a global step that moves bones and soft bodies together.

A bone with the orientation R and the origin p is a handle with the four columns T = (R, p). The global matrix A gives
every node i a weight v_ic for each column c of all bones: the node follows the columns with these weights if no other
forces act. For a bound node they are its position (r, 1) in the frame of its bone; for all other nodes they are
-A_ff^-1 A_fb times the weights of the bound nodes. A rigid body without flesh moves no
node, and has no weights. The global step

    B^T A B dz = B^T b,   B = (1, v G)

of the soft multi-body paper (section 4, eq. 8 and 16) then separates into the solve y = A_ff^-1 b_f, without bones, and
a small dense system for the joints,

    (K + G^T (v^T A v) G) dx = G^T v^T b - r,   du = y + v G dx,

with the residual r and the Jacobian K of the articulated bodies without soft bodies, and the derivative G of the
handles with respect to the joints. As A couples nodes and not coordinates, v and v^T A v are constant, and only G
changes. Rows of the system belong to velocities of joints, and columns to displacements of joints; the two differ for
ball joints (`articulated.joints`).

Joints that neither other joints nor soft matter connect are not coupled in this system. Therefore it consists of blocks
on its diagonal, each with one or several skeletons.
"""

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.articulated.implicit_integrators import Past, inverse_length, predict, recall
from warpbots.solvers.articulated.lu import factorise_at, solve_at
from warpbots.solvers.articulated.residual import evaluate, orient_frames
from warpbots.solvers.articulated.robot_arrays import JointTree, RobotArrays
from warpbots.solvers.articulated.spatial import Twist, angular, linear, mat33, scalar, vec3
from warpbots.solvers.articulated.step_arrays import ImplicitStage, Links, StepArrays
from warpbots.solvers.projective.bones.handle_arrays import (
    HandleArrays,
    HandleWork,
    derivative_at,
    double,
    lever_of,
    matrix_at,
    moves,
    single,
)
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.nodes import packed
from warpbots.solvers.projective.islands import Islands

__all__ = [
    "begin_joints_kernel",
    "carried_to",
    "stay_kernel",
    "follow_kernel",
    "handle_force_kernel",
    "handle_rate",
    "join_kernel",
    "joint_step_kernel",
    "place_kernel",
    "pose_kernel",
    "signal_kernel",
]

_vec = vector(3)


@wp.kernel
def signal_kernel(
    # model
    motor: wp.array[int],
    # state
    control: wp.array2d[real],
    gravity: wp.array[_vec],
    # out
    control_out: wp.array2d[scalar],
    gravity_out: wp.array[vec3],
):
    """Convert the control signals of motors, and gravity, to the precision of bones."""
    w = wp.tid()
    for m in range(motor.shape[0]):
        control_out[w, m] = scalar(control[w, motor[m]])
    gravity_out[w] = double(gravity[w])


@wp.kernel(enable_backward=False)
def begin_joints_kernel(
    # model
    handles: HandleArrays,
    tree: JointTree,
    # state
    past: Past,
    # out
    stage_out: ImplicitStage,
    u_out: wp.array[NODE],
):
    """Write the state of the joints before a step, and the initial guess of their displacements."""
    w = wp.tid()
    stage_out.c[w] = inverse_length(past, w)
    for e in range(tree.elements):
        recall(tree, past, stage_out, stage_out, w, e, 1)
    for j in range(tree.freedom):
        predict(tree, past, stage_out, stage_out, w, j, 1)
        u_out[w * handles.stride + handles.nodes + j] = NODE(
            real(stage_out.x[w * tree.freedom + j]), real(0.0), real(0.0), real(0.0)
        )


@wp.func
def handle_rate(R: mat33, p: vec3, c: int, twist: Twist):
    """Rate of change of column c of (R, p) if the bone moves with `twist`."""
    rate = wp.cross(angular(twist), p) + linear(twist)
    if c < 3:
        rate = wp.cross(angular(twist), vec3(R[0, c], R[1, c], R[2, c]))
    return rate


@wp.kernel(enable_backward=False)
def pose_kernel(
    # model
    handles: HandleArrays,
    robot: RobotArrays,
    # state
    active: wp.array[int],
    control: wp.array2d[scalar],
    u: wp.array[NODE],
    # out
    stage_out: ImplicitStage,
    work_out: StepArrays,
    handle_out: HandleWork,
):
    """Evaluate bones at the joint displacements in `u`: residual, Jacobian, and derivatives of the handles."""
    w = wp.tid()
    if active[w] == 0:
        return
    tree = robot.tree
    n = handles.freedom
    for j in range(n):
        stage_out.x[w * n + j] = scalar(u[w * handles.stride + handles.nodes + j][0])
    orient_frames(robot, work_out, w, 0, 1)
    evaluate(robot, stage_out, work_out, control, w, 0, 1)
    for i in range(n):
        handle_out.residual[w * n + i] = -work_out.residual[w * n + i]
        b = handles.block_of[i]
        for j in range(handles.block[b], handles.block[b + 1]):
            handle_out.matrix[matrix_at(handles, w, i, j)] = work_out.jacobian[(w * n + i) * n + j]
    for k in range(tree.bodies):
        R = work_out.links.body_rotation[w * tree.bodies + k]
        p = work_out.links.body_position[w * tree.bodies + k]
        for j in range(handles.span[k][0], handles.span[k][1]):
            carries = tree.carries[tree.of_dof[j] * tree.elements + tree.element[k]]
            for c in range(4):
                m = derivative_at(handles, w, k, c, j)
                handle_out.rows[m] = vec3()
                handle_out.columns[m] = vec3()
                if carries == 1:
                    handle_out.rows[m] = handle_rate(R, p, c, work_out.axis[w * n + j])
                    handle_out.columns[m] = handle_rate(R, p, c, work_out.change[w * n + j].displaced)


@wp.func
def carried_to(handles: HandleArrays, tree: JointTree, links: Links, w: int, b: int):
    """Position of bound point number b on its bone: p + R r."""
    k = w * tree.bodies + handles.bone[b]
    return links.body_position[k] + links.body_rotation[k] @ handles.place[b]


@wp.kernel(enable_backward=False)
def place_kernel(
    # model
    handles: HandleArrays,
    tree: JointTree,
    # state
    links: Links,
    active: wp.array[int],
    x: wp.array[_vec],
    # out
    u_out: wp.array[NODE],
):
    """Write the displacements of bound nodes: p + R r - x."""
    w, b = wp.tid()
    if active[w] == 0:
        return
    i = handles.node[b]
    X = carried_to(handles, tree, links, w, b)
    u_out[w * handles.stride + i] = packed(single(X - double(x[w * handles.nodes + i])))


@wp.kernel(enable_backward=False)
def handle_force_kernel(
    # model
    handles: HandleArrays,
    # state
    active: wp.array[int],
    residual: wp.array[NODE],
    # out
    handle_out: HandleWork,
):
    """Write the force on each handle: sum of v_ic b_i."""
    w, handle = wp.tid()
    if active[w] == 0:
        return
    k = handle / 4
    c = handle % 4
    total = vec3()
    if handles.flesh_of[k] >= 0:
        first = (4 * handles.flesh_of[k] + c) * handles.soft
        for i in range(handles.soft):
            total += scalar(handles.weight[first + i]) * double(at(residual, w * handles.stride + i))
    for b in range(handles.bare[k], handles.bare[k + 1]):
        total += lever_of(handles, b, c) * double(at(residual, w * handles.stride + handles.node[b]))
    handle_out.force[w * handles.handles + handle] = total


@wp.func
def carry(handles: HandleArrays, handle: HandleWork, s: scalar, w: int, k: int, c: int, j: int):
    """Product of `stiffness` with column j, for column c of the bone k with bound nodes, times s."""
    side = 4 * handles.fleshed
    row = (4 * handles.flesh_of[k] + c) * side
    total = vec3()
    for m in range(handles.fleshed):
        if moves(handles, handles.flesh[m], j):
            for d in range(4):
                column = handle.columns[derivative_at(handles, w, handles.flesh[m], d, j)]
                total += handles.stiffness[row + 4 * m + d] * column
    return s * total


@wp.func
def assemble(handles: HandleArrays, handle: HandleWork, s: scalar, w: int):
    """Replace K by K + s G^T (v^T A v) G, with the scaling s of the matrix A."""
    for m in range(handles.fleshed):
        k = handles.flesh[m]
        for c in range(4):
            for j in range(handles.span[k][0], handles.span[k][1]):
                handle.carried[derivative_at(handles, w, k, c, j)] = carry(handles, handle, s, w, k, c, j)
    for i in range(handles.freedom):
        b = handles.block_of[i]
        for j in range(handles.block[b], handles.block[b + 1]):
            slope = scalar(handle.matrix[matrix_at(handles, w, i, j)])
            for m in range(handles.fleshed):
                k = handles.flesh[m]
                if moves(handles, k, i):
                    for c in range(4):
                        row = handle.rows[derivative_at(handles, w, k, c, i)]
                        slope += wp.dot(row, handle.carried[derivative_at(handles, w, k, c, j)])
            handle.matrix[matrix_at(handles, w, i, j)] = slope


@wp.func
def invert(handles: HandleArrays, handle: HandleWork, w: int):
    """Write the inverse of the matrix, block after block."""
    for b in range(handles.blocks):
        first = handles.block[b]
        n = handles.block[b + 1] - first
        a = w * handles.entry[handles.blocks] + handles.entry[b]
        s = w * handles.freedom + first
        factorise_at(handle.matrix, handle.pivot, a, s, n)
        for j in range(n):
            for i in range(n):
                handle.step[s + i] = wp.where(i == j, scalar(1.0), scalar(0.0))
            solve_at(handle.matrix, handle.pivot, handle.step, a, s, n)
            for i in range(n):
                handle.inverse[a + i * n + j] = handle.step[s + i]


@wp.kernel(enable_backward=False)
def join_kernel(
    # model
    handles: HandleArrays,
    # state
    active: wp.array[int],
    # work
    scaling: wp.array[real],
    # out
    handle_out: HandleWork,
):
    """Write the matrix of the joints with soft bodies at the present poses of bones, and its inverse."""
    w = wp.tid()
    if active[w] == 1:
        assemble(handles, handle_out, scalar(scaling[w]), w)
        invert(handles, handle_out, w)


@wp.kernel(enable_backward=False)
def joint_step_kernel(
    # model
    handles: HandleArrays,
    # state
    active: wp.array[int],
    # out
    handle_out: HandleWork,
    f_out: wp.array[NODE],
):
    """Write the corrections of joints and of handles."""
    w = wp.tid()
    if active[w] == 0:
        return
    n = handles.freedom
    h = handles.handles
    for j in range(n):
        torque = scalar(handle_out.residual[w * n + j])
        for k in range(h / 4):
            if moves(handles, k, j):
                for c in range(4):
                    row = handle_out.rows[derivative_at(handles, w, k, c, j)]
                    torque += wp.dot(row, handle_out.force[w * h + 4 * k + c])
        handle_out.torque[w * n + j] = torque
    for i in range(n):
        step = scalar(0.0)
        b = handles.block_of[i]
        for j in range(handles.block[b], handles.block[b + 1]):
            step += handle_out.inverse[matrix_at(handles, w, i, j)] * handle_out.torque[w * n + j]
        handle_out.step[w * n + i] = step
        f_out[w * handles.stride + handles.nodes + i] = NODE(real(step), real(0.0), real(0.0), real(0.0))
    for k in range(h / 4):
        for c in range(4):
            moved = vec3()
            for j in range(handles.span[k][0], handles.span[k][1]):
                moved += handle_out.step[w * n + j] * handle_out.columns[derivative_at(handles, w, k, c, j)]
            handle_out.moved[w * h + 4 * k + c] = moved


@wp.kernel(enable_backward=False)
def follow_kernel(
    # model
    handles: HandleArrays,
    # state
    active: wp.array[int],
    # work
    handle: HandleWork,
    # out
    f_out: wp.array[NODE],
):
    """Add sum of v_ic dT_c to the corrections of free nodes, and write this sum as the corrections of bound points."""
    w, i = wp.tid()
    if active[w] == 0:
        return
    k = w * handles.stride + i
    bone = handles.bone_of[i]
    total = vec3()
    if bone >= 0:
        for c in range(4):
            lever = lever_of(handles, handles.number[i], c)
            total += lever * handle.moved[w * handles.handles + 4 * bone + c]
    else:
        total = double(at(f_out, k))
        if i < handles.soft:
            for m in range(handles.fleshed):
                for c in range(4):
                    weight = scalar(handles.weight[(4 * m + c) * handles.soft + i])
                    total += weight * handle.moved[w * handles.handles + 4 * handles.flesh[m] + c]
    f_out[k] = packed(single(total))


@wp.kernel(enable_backward=False)
def stay_kernel(
    # work
    islands: Islands,
    component: wp.array[int],
    # state
    before: wp.array[scalar],
    # out
    after_out: wp.array[scalar],
):
    """Restore the coordinates, or velocities, of joints in components whose step failed."""
    w, i = wp.tid()
    if islands.sound[w * islands.count + component[i]] == 0:
        k = w * component.shape[0] + i
        after_out[k] = before[k]
