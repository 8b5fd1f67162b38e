"""Bones as handles of soft bodies: a global step that moves bones and soft bodies together.

A bone with the orientation R and the origin p is a handle with the four columns T = (R, p). The global matrix A gives
every node i a weight v_ic for each column c of all bones: the node follows the columns with these weights if no other
forces act. For a bound node they are its position (r, 1) in the frame of its bone; for all other nodes they are
-A_ff^-1 A_fb times the weights of the bound nodes. The global step

    B^T A B dz = B^T b,   B = (1, v G)

of the soft multi-body paper (section 4, eq. 8 and 16) then separates into the solve y = A_ff^-1 b_f, without bones, and
a small dense system for the joints,

    (K + G^T (v^T A v) G) dx = G^T v^T b - r,   du = y + v G dx,

with the residual r and the Jacobian K of the articulated bodies without soft bodies, and the derivative G of the
handles with respect to the joints. As A couples nodes and not coordinates, v and v^T A v are constant, and only G
changes. Rows of the system belong to velocities of joints, and columns to displacements of joints; the two differ for
ball joints (`articulated.joints`).
"""

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.articulated.implicit_integrators import Past, inverse_length, predict, recall
from warpbots.solvers.articulated.lu import factorise, solve
from warpbots.solvers.articulated.residual import evaluate
from warpbots.solvers.articulated.robot_arrays import JointTree, RobotArrays
from warpbots.solvers.articulated.spatial import Twist, angular, linear, mat33, scalar, vec3
from warpbots.solvers.articulated.step_arrays import ImplicitStage, Links, StepArrays
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.nodes import packed
from warpbots.solvers.projective.islands import Islands

__all__ = [
    "HandleArrays",
    "HandleWork",
    "begin_joints_kernel",
    "carried_to",
    "double",
    "stay_kernel",
    "follow_kernel",
    "handle_force_kernel",
    "handle_rate",
    "join_kernel",
    "joint_step_kernel",
    "place_kernel",
    "pose_kernel",
    "signal_kernel",
    "single",
]

_vec = vector(3)


@wp.struct
class HandleArrays:
    """Handles, the same in all worlds.

    nodes: Points of one world: nodes, vertices of bone surfaces, and ends of edges of obstacles.
    stride: Entries of an iterate of one world.
    freedom: Number of joint velocities.
    handles: Number of handles, four for each bone.
    bone_of: Bone that each point is bound to, -1 for none, shape (nodes,).
    bound: Number of points that are bound to bones, all vertices of bone surfaces included.
    node: Bound points, shape (bound,).
    bone: Bone of each bound point, shape (bound,).
    place: Position of each bound point in the frame of its bone [m], shape (bound,).
    weight: Weights v_ic [m, 1], handle after handle, shape (handles * nodes,).
    stiffness: The product v^T A v of the weights v with the matrix A [N m, N, N/m], shape (handles * handles,).
    """

    nodes: int
    stride: int
    freedom: int
    handles: int
    bone_of: wp.array[int]
    bound: int
    node: wp.array[int]
    bone: wp.array[int]
    place: wp.array[vec3]
    weight: wp.array[real]
    stiffness: wp.array[scalar]


@wp.struct
class HandleWork:
    """Arrays of a global step, all worlds in one row.

    rows: Derivative of each handle with respect to velocities of joints, shape (worlds * handles * freedom,).
    columns: Derivative of each handle with respect to displacements of joints, shape (worlds * handles * freedom,).
    carried: Product of `HandleArrays.stiffness` with `columns`, shape (worlds * handles * freedom,).
    force: Force on each handle, v^T b, shape (worlds * handles,).
    moved: Correction of each handle, shape (worlds * handles,).
    residual: Residual of the articulated bodies without soft bodies, -r [N m or N], shape (worlds * freedom,).
    matrix: Jacobian K of the articulated bodies without soft bodies, then the factors of K + G^T (v^T A v) G, shape
        (worlds * freedom * freedom,).
    pivot: Rows that the factorisation exchanged, shape (worlds * freedom,).
    inverse: Inverse of K + G^T (v^T A v) G, shape (worlds * freedom * freedom,).
    torque: Residual with soft bodies, G^T v^T b - r [N m or N], shape (worlds * freedom,).
    step: Right-hand side, then solution, of the system for the joints, shape (worlds * freedom,).
    """

    rows: wp.array[vec3]
    columns: wp.array[vec3]
    carried: wp.array[vec3]
    force: wp.array[vec3]
    moved: wp.array[vec3]
    residual: wp.array[scalar]
    matrix: wp.array[scalar]
    pivot: wp.array[int]
    inverse: wp.array[scalar]
    torque: wp.array[scalar]
    step: wp.array[scalar]


@wp.func
def double(a: _vec):
    """Convert a vector from the precision of nodes to the precision of bones."""
    return vec3(scalar(a[0]), scalar(a[1]), scalar(a[2]))


@wp.func
def single(a: vec3):
    """Convert a vector from the precision of bones to the precision of nodes."""
    return _vec(real(a[0]), real(a[1]), real(a[2]))


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
    evaluate(robot, stage_out, work_out, control, w, 0, 1)
    for j in range(n):
        handle_out.residual[w * n + j] = -work_out.residual[w * n + j]
        for i in range(n):
            handle_out.matrix[(w * n + i) * n + j] = work_out.jacobian[(w * n + i) * n + j]
        for k in range(tree.bodies):
            R = work_out.links.body_rotation[w * tree.bodies + k]
            p = work_out.links.body_position[w * tree.bodies + k]
            carries = tree.carries[tree.of_dof[j] * tree.elements + tree.element[k]]
            for c in range(4):
                m = (w * handles.handles + 4 * k + c) * n + j
                handle_out.rows[m] = vec3()
                handle_out.columns[m] = vec3()
                if carries == 1:
                    handle_out.rows[m] = handle_rate(R, p, c, work_out.axis[w * n + j])
                    handle_out.columns[m] = handle_rate(R, p, c, work_out.displaced[w * n + j])


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
    w, c = wp.tid()
    if active[w] == 0:
        return
    total = vec3()
    for i in range(handles.nodes):
        total += scalar(handles.weight[c * handles.nodes + i]) * double(at(residual, w * handles.stride + i))
    handle_out.force[w * handles.handles + c] = total


@wp.func
def assemble(handles: HandleArrays, handle: HandleWork, s: scalar, w: int):
    """Replace K by K + s G^T (v^T A v) G, with the scaling s of the matrix A."""
    n = handles.freedom
    h = handles.handles
    for c in range(h):
        for j in range(n):
            total = vec3()
            for d in range(h):
                total += handles.stiffness[c * h + d] * handle.columns[(w * h + d) * n + j]
            handle.carried[(w * h + c) * n + j] = s * total
    for i in range(n):
        for j in range(n):
            slope = scalar(handle.matrix[(w * n + i) * n + j])
            for c in range(h):
                m = (w * h + c) * n
                slope += wp.dot(handle.rows[m + i], handle.carried[m + j])
            handle.matrix[(w * n + i) * n + j] = slope


@wp.func
def invert(handle: HandleWork, w: int, n: int):
    """Write the inverse of the factored matrix."""
    factorise(handle.matrix, handle.pivot, w, n)
    for j in range(n):
        for i in range(n):
            handle.step[w * n + i] = wp.where(i == j, scalar(1.0), scalar(0.0))
        solve(handle.matrix, handle.pivot, handle.step, w, n)
        for i in range(n):
            handle.inverse[(w * n + i) * n + j] = handle.step[w * n + i]


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
        invert(handle_out, w, handles.freedom)


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
        for c in range(h):
            torque += wp.dot(handle_out.rows[(w * h + c) * n + j], handle_out.force[w * h + c])
        handle_out.torque[w * n + j] = torque
    for i in range(n):
        step = scalar(0.0)
        for j in range(n):
            step += handle_out.inverse[(w * n + i) * n + j] * handle_out.torque[w * n + j]
        handle_out.step[w * n + i] = step
        f_out[w * handles.stride + handles.nodes + i] = NODE(real(step), real(0.0), real(0.0), real(0.0))
    for c in range(h):
        moved = vec3()
        for j in range(n):
            moved += handle_out.step[w * n + j] * handle_out.columns[(w * h + c) * n + j]
        handle_out.moved[w * h + c] = moved


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
    """Add sum of v_ic dT_c to the corrections of free nodes, and write this sum as the corrections of bound nodes."""
    w, i = wp.tid()
    if active[w] == 0:
        return
    k = w * handles.stride + i
    total = vec3()
    if handles.bone_of[i] < 0:
        total = double(at(f_out, k))
    for c in range(handles.handles):
        total += scalar(handles.weight[c * handles.nodes + i]) * handle.moved[w * handles.handles + c]
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
