"""Coupling of contacts with joints of bones."""

import warp as wp

from warpbots.numerics import vector
from warpbots.solvers.articulated.spatial import scalar, vec3
from warpbots.solvers.projective.bones.handles import HandleArrays, HandleWork, single
from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, ContactTopology, JointCoupling

__all__ = ["joint_coupling_kernel"]

_vec = vector(3)


@wp.func
def contact_weight(handles: HandleArrays, contacts: ContactArrays, k: int, c: int):
    """Weight with which contact k follows handle c: sum of a_i v_ic over the nodes i of the contact."""
    total = scalar(0.0)
    for p in range(4):
        i = contacts.node[k][p]
        if i >= 0:
            total += scalar(contacts.weight[k][p]) * scalar(handles.weight[c * handles.nodes + i])
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
    if active[w] == 0 or contacts.listed[k] == 0:
        return
    n = handles.freedom
    for j in range(n):
        coupling_out.jacobian[k * n + j] = _vec()
        coupling_out.response[k * n + j] = _vec()
    for c in range(handles.handles):
        weight = contact_weight(handles, contacts, k, c)
        m = (w * handles.handles + c) * n
        for j in range(n):
            coupling_out.jacobian[k * n + j] = coupling_out.jacobian[k * n + j] + single(weight * handle.columns[m + j])
            reply = vec3()
            for l in range(n):
                reply += weight * handle.inverse[(w * n + j) * n + l] * handle.rows[m + l]
            coupling_out.response[k * n + j] = coupling_out.response[k * n + j] + single(reply)
