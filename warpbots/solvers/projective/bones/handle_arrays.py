"""Arrays of the handles of bones and of the global step, and access to their entries; `handles` has the symbols."""

import warp as wp

from warpbots.numerics import real, vector
from warpbots.solvers.articulated.spatial import scalar, vec3

__all__ = [
    "HandleArrays",
    "HandleWork",
    "derivative_at",
    "double",
    "lever_of",
    "matrix_at",
    "moves",
    "single",
    "weight_of",
]

_vec = vector(3)


@wp.struct
class HandleArrays:
    """Handles, the same in all worlds.

    nodes: Points of one world: nodes, vertices of bone surfaces, and ends of edges of obstacles.
    soft: Number of nodes.
    stride: Entries of an iterate of one world.
    freedom: Number of joint velocities.
    handles: Number of handles, four for each bone.
    bone_of: Bone that each point is bound to, -1 for none, shape (nodes,).
    bound: Number of points that are bound to bones, all vertices of bone surfaces included.
    number: Index of each point among the bound points, -1 for none, shape (nodes,).
    node: Bound points, shape (bound,).
    bone: Bone of each bound point, shape (bound,).
    place: Position of each bound point in the frame of its bone [m], shape (bound,).
    bare: First vertex of the surface of each bone among the bound points, and the end of the last, shape (bones + 1,).
    fleshed: Number of bones with bound nodes.
    flesh: These bones, shape (fleshed,).
    flesh_of: Index of a bone in `flesh`, -1 for a bone without bound nodes, shape (bones,).
    weight: Weights v_ic of nodes [m, 1], handle after handle of these bones, shape (4 * fleshed * soft,).
    stiffness: The product v^T A v of the weights v with the matrix A [N m, N, N/m], shape ((4 * fleshed)^2,).
    blocks: Number of blocks of the system for the joints.
    block: First joint velocity of each block, and the end of the last, shape (blocks + 1,).
    entry: First entry of each block in a matrix of one world, and the end of the last, shape (blocks + 1,).
    block_of: Block of each joint velocity, shape (freedom,).
    block_at: Block that moves each point, -1 for none, shape (nodes,).
    span: First velocity, and end, of the block that moves each bone, shape (bones,).
    slot: First entry of each bone in the derivatives of handles of one world, and the end, shape (bones + 1,).
    """

    nodes: int
    soft: int
    stride: int
    freedom: int
    handles: int
    bone_of: wp.array[int]
    bound: int
    number: wp.array[int]
    node: wp.array[int]
    bone: wp.array[int]
    place: wp.array[vec3]
    bare: wp.array[int]
    fleshed: int
    flesh: wp.array[int]
    flesh_of: wp.array[int]
    weight: wp.array[real]
    stiffness: wp.array[scalar]
    blocks: int
    block: wp.array[int]
    entry: wp.array[int]
    block_of: wp.array[int]
    block_at: wp.array[int]
    span: wp.array[wp.vec2i]
    slot: wp.array[int]


@wp.struct
class HandleWork:
    """Arrays of a global step, all worlds in one row.

    Matrices consist of the blocks of `HandleArrays.block` (`matrix_at`), with `entries` numbers in each world, and
    derivatives of handles of those joints that may move them (`derivative_at`), with `slots` entries in each world.

    rows: Derivative of each handle with respect to velocities of joints, shape (worlds * slots,).
    columns: Derivative of each handle with respect to displacements of joints, shape (worlds * slots,).
    carried: Product of `HandleArrays.stiffness` with `columns`, shape (worlds * slots,).
    force: Force on each handle, v^T b, shape (worlds * handles,).
    moved: Correction of each handle, shape (worlds * handles,).
    residual: Residual of the articulated bodies without soft bodies, -r [N m or N], shape (worlds * freedom,).
    matrix: Jacobian K of the articulated bodies without soft bodies, then the factors of K + G^T (v^T A v) G, shape
        (worlds * entries,).
    pivot: Rows that the factorisation exchanged, shape (worlds * freedom,).
    inverse: Inverse of K + G^T (v^T A v) G, shape (worlds * entries,).
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
def matrix_at(handles: HandleArrays, w: int, i: int, j: int):
    """Index of the entry in row i and column j of a matrix of world w; both belong to one block."""
    b = handles.block_of[i]
    first = handles.block[b]
    size = handles.block[b + 1] - first
    return w * handles.entry[handles.blocks] + handles.entry[b] + (i - first) * size + j - first


@wp.func
def derivative_at(handles: HandleArrays, w: int, k: int, c: int, j: int):
    """Index of the derivative of column c of bone k with respect to joint velocity j of `HandleArrays.span`."""
    span = handles.span[k]
    slots = handles.slot[handles.slot.shape[0] - 1]
    return w * slots + handles.slot[k] + c * (span[1] - span[0]) + j - span[0]


@wp.func
def moves(handles: HandleArrays, k: int, j: int):
    """Whether joint velocity j is in the block that moves bone k."""
    span = handles.span[k]
    return j >= span[0] and j < span[1]


@wp.func
def lever_of(handles: HandleArrays, b: int, c: int):
    """Weight with which bound point number b follows column c of its bone."""
    lever = scalar(1.0)
    if c < 3:
        lever = scalar(real(handles.place[b][c]))
    return lever


@wp.func
def weight_of(handles: HandleArrays, i: int, k: int, c: int):
    """Weight v_ic with which point i follows column c of bone k."""
    weight = scalar(0.0)
    if handles.bone_of[i] >= 0:
        if handles.bone_of[i] == k:
            weight = lever_of(handles, handles.number[i], c)
    elif i < handles.soft and handles.flesh_of[k] >= 0:
        weight = scalar(handles.weight[(4 * handles.flesh_of[k] + c) * handles.soft + i])
    return weight


@wp.func
def double(a: _vec):
    """Convert a vector from the precision of nodes to the precision of bones."""
    return vec3(scalar(a[0]), scalar(a[1]), scalar(a[2]))


@wp.func
def single(a: vec3):
    """Convert a vector from the precision of bones to the precision of nodes."""
    return _vec(real(a[0]), real(a[1]), real(a[2]))
