"""Displacements of contacts by a change of the force of one: by matter, joints, free rotations and free normals."""

import warp as wp

from warpbots.numerics import real, vector
from warpbots.numerics.simd import add_multiples
from warpbots.solvers.projective.contact.contact_arrays import (
    ContactArrays,
    ContactTopology,
    JointCoupling,
    joint_in,
    places_in,
)
from warpbots.solvers.projective.contact.coulomb_law import columns_of, compliant
from warpbots.solvers.projective.contact.free_rotation import RotationArrays, body_of
from warpbots.solvers.projective.elements.free_normals import NormalArrays, lift, lifted
from warpbots.solvers.projective.iterate.compliance import ComplianceArrays

__all__ = ["carried", "carry", "rest", "spread"]

_vec = vector(3)


@wp.func
def spread(
    topology: ContactTopology, contacts: ContactArrays, compliance: ComplianceArrays, coupling: JointCoupling,
    rotation: RotationArrays, normals: NormalArrays, scaling: real, w: int, count: int, i: int, change: _vec,
    lane: int, lanes: int,
):  # fmt: skip
    """Move contacts, joints and unconstrained bodies by a `change` of the force of the contact at entry i."""
    first = w * topology.contacts
    scaled = change / scaling
    k = first + contacts.order[i]
    if contacts.borne[k] == 0:
        if count <= compliance.side:
            row = (w * compliance.side + i - first) * compliance.side
            add_multiples(contacts.gap, first, compliance.mutual, row, scaled, count, lane, lanes)
        else:
            columns = columns_of(topology, contacts, compliance, k)
            for j in range(lane, count, lanes):
                d = first + contacts.order[first + j]
                share = compliant(topology, contacts, compliance, columns, contacts.weight[k], d)
                contacts.gap[first + j] = contacts.gap[first + j] + share * scaled
    carry(contacts, coupling, rotation, normals, w, k, change, lane, lanes)


@wp.func
def carry(
    contacts: ContactArrays, coupling: JointCoupling, rotation: RotationArrays, normals: NormalArrays, w: int, k: int,
    change: _vec, lane: int, lanes: int,
):  # fmt: skip
    """Move joints, unconstrained bodies and nodes with free normals by a `change` of the force of contact k."""
    if coupling.freedom > 0:
        span = coupling.span[k]
        for p in range(lane, places_in(span), lanes):
            j = w * coupling.freedom + joint_in(span, p)
            reply = wp.dot(coupling.response[k * coupling.width + p], change)
            coupling.displacement[j] = coupling.displacement[j] + reply
    if rotation.count > 0 and lane == 0:
        for p in range(4):
            node = contacts.node[k][p]
            b = body_of(rotation, node)
            if b >= 0:
                n = w * rotation.count + b
                arm = contacts.weight[k][p] * rotation.arm[w * rotation.nodes + node]
                rotation.angle[n] = rotation.angle[n] + rotation.gain[n] * wp.vec3d(wp.cross(arm, change))
    if normals.count > 0 and lane == 0:
        for p in range(4):
            lift(normals, w, contacts.node[k][p], contacts.weight[k][p] * change)


@wp.func
def carried(
    contacts: ContactArrays, coupling: JointCoupling, rotation: RotationArrays, normals: NormalArrays, w: int, k: int
):
    """Displacement of contact k by joints, free rotations and free normals."""
    total = _vec()
    if coupling.freedom > 0:
        span = coupling.span[k]
        for p in range(places_in(span)):
            j = w * coupling.freedom + joint_in(span, p)
            total += coupling.displacement[j] * coupling.jacobian[k * coupling.width + p]
    if rotation.count > 0:
        for p in range(4):
            node = contacts.node[k][p]
            b = body_of(rotation, node)
            if b >= 0:
                arm = contacts.weight[k][p] * rotation.arm[w * rotation.nodes + node]
                total += wp.cross(_vec(rotation.angle[w * rotation.count + b]), arm)
    if normals.count > 0:
        for p in range(4):
            total += contacts.weight[k][p] * lifted(normals, w, contacts.node[k][p])
    return total


@wp.func
def rest(coupling: JointCoupling, rotation: RotationArrays, normals: NormalArrays, w: int, lane: int, lanes: int):
    """Set displacements of joints, rotations of bodies and displacements along free normals to zero."""
    for j in range(lane, coupling.freedom, lanes):
        coupling.displacement[w * coupling.freedom + j] = real(0.0)
    for b in range(lane, rotation.count, lanes):
        rotation.angle[w * rotation.count + b] = wp.vec3d()
    for k in range(lane, normals.count, lanes):
        normals.lift[w * normals.count + k] = real(0.0)
