"""Coupling of contacts with joints of bones."""

import warp as wp

from warpbots.numerics import vector
from warpbots.solvers.articulated.spatial import scalar, vec3
from warpbots.solvers.projective.bones.handle_arrays import (
    HandleArrays,
    HandleWork,
    derivative_at,
    matrix_at,
    single,
    weight_of,
)
from warpbots.solvers.projective.contact.contact_arrays import (
    ContactArrays,
    ContactTopology,
    JointCoupling,
    place_of_joint,
    places_of,
)

__all__ = ["joint_coupling_kernel"]

_vec = vector(3)


@wp.func
def span_of(handles: HandleArrays, contacts: ContactArrays, k: int):
    """Ranges of the joint velocities that move contact k: of one block, or of two in their order."""
    lower = int(-1)
    upper = int(-1)
    for p in range(4):
        i = contacts.node[k][p]
        if i >= 0:
            b = handles.block_at[i]
            if b >= 0 and b != lower:
                upper = wp.max(lower, b)
                lower = wp.where(lower < 0, b, wp.min(lower, b))
    span = wp.vec4i()
    if lower >= 0:
        span = wp.vec4i(handles.block[lower], handles.block[lower + 1], 0, 0)
        if upper > lower:
            span = wp.vec4i(span[0], span[1], handles.block[upper], handles.block[upper + 1])
    return span


@wp.func
def contact_weight(handles: HandleArrays, contacts: ContactArrays, k: int, body: int, c: int):
    """Weight with which contact k follows column c of a bone: sum of a_i v_ic over the nodes i of the contact."""
    total = scalar(0.0)
    for p in range(4):
        i = contacts.node[k][p]
        if i >= 0:
            total += scalar(contacts.weight[k][p]) * weight_of(handles, i, body, c)
    return total


@wp.kernel(enable_backward=False)
def joint_coupling_kernel(
    # model
    topology: ContactTopology,
    handles: HandleArrays,
    # work
    handle: HandleWork,
    contacts: ContactArrays,
    active: wp.array[int],
    # out
    coupling_out: JointCoupling,
):
    """Write the displacement of each contact per joint displacement, and the joint displacements per contact force."""
    w, contact = wp.tid()
    k = w * topology.contacts + contact
    if coupling_out.freedom == 0 or active[w] == 0 or contacts.listed[k] == 0:  # bones that cannot move
        return
    coupling_out.span[k] = span_of(handles, contacts, k)
    places = places_of(coupling_out, k)
    if places == 0:
        return
    first = k * coupling_out.width
    for p in range(places):
        coupling_out.jacobian[first + p] = _vec()
        coupling_out.response[first + p] = _vec()
    for body in range(handles.handles / 4):
        span = handles.span[body]
        start = first + place_of_joint(coupling_out, k, span[0])
        if start >= first:
            for c in range(4):
                weight = contact_weight(handles, contacts, k, body, c)
                if weight != scalar(0.0):
                    derivative = derivative_at(handles, w, body, c, span[0])
                    for j in range(span[1] - span[0]):
                        m = start + j
                        column = handle.columns[derivative + j]
                        coupling_out.jacobian[m] = coupling_out.jacobian[m] + single(weight * column)
                        reply = vec3()
                        inverse = matrix_at(handles, w, span[0] + j, span[0])
                        for l in range(span[1] - span[0]):
                            reply += weight * handle.inverse[inverse + l] * handle.rows[derivative + l]
                        coupling_out.response[m] = coupling_out.response[m] + single(reply)
