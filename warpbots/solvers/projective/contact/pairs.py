"""Coulomb's law at pairs: contacts between surfaces that move, at a point of the iteration."""

import warp as wp

from warpbots.contact import CODES
from warpbots.contact.moving_frames import MovingPoses
from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.contact.contact_arrays import (
    ContactArrays,
    ContactTopology,
    holding,
)
from warpbots.solvers.projective.contact.coulomb_law import acts, skin_of
from warpbots.solvers.projective.contact.pair_arrays import (
    HELD,
    NEAREST,
    NONE,
    PairArrays,
    clearance_of,
    law_of,
    obstacle_of,
    obstacle_side,
    one_is_rigid,
)
from warpbots.solvers.projective.contact.pair_geometry import nearest, pair_geometry
from warpbots.solvers.projective.elements.element import at

__all__ = [
    "displacements_of",
    "ends_of",
    "evaluate_pairs_kernel",
    "friction_of",
    "start_distance",
    "starts_of",
    "to_keep",
]

_vec, _vec2 = vector(3), vector(2)
_FRICTION = wp.constant(CODES["friction"])
_KEPT = wp.constant(real(0.25))  # distance that rigid bodies keep that touch when a step begins [clearances]
_NEAR, _FAR = wp.constant(real(0.4)), wp.constant(real(0.6))  # where it rises to the clearance [clearances]
_PARTING = wp.constant(real(0.1))  # time in which rigid bodies would part by the clearance [s]
_MOST = wp.constant(real(0.4))  # that the skin yields [distances that its pair keeps]
_LEAST = wp.constant(real(0.01))  # what they part by in any step, above the tolerance [clearances]


@wp.func
def displacements_of(pairs: PairArrays, z: wp.array[NODE], w: int, i: wp.vec4i):
    """Displacements of the nodes of a pair."""
    s = w * pairs.stride
    return at(z, s + i[0]), at(z, s + i[1]), at(z, s + i[2]), at(z, s + i[3])


@wp.func
def starts_of(pairs: PairArrays, x: wp.array[_vec], w: int, i: wp.vec4i):
    """Positions of the nodes of a pair when the step begins, relative to its first node.

    A pair is small and may be far from the origin, where single precision would round its geometry.
    """
    n = w * pairs.nodes
    o = x[n + i[0]]
    return _vec(), x[n + i[1]] - o, x[n + i[2]] - o, x[n + i[3]] - o


@wp.func
def ends_of(pairs: PairArrays, x: wp.array[_vec], z: wp.array[NODE], w: int, i: wp.vec4i):
    """Positions of the nodes of a pair at the end of a step, relative to the start of its first node."""
    a, b, c, d = starts_of(pairs, x, w, i)
    ua, ub, uc, ud = displacements_of(pairs, z, w, i)
    return a + ua, b + ub, c + uc, d + ud


@wp.func
def friction_of(pairs: PairArrays, w: int, i: wp.vec4i):
    """Coulomb coefficient of a pair, and the difference of its static coefficient from it; 0 without friction.

    A pair with a contact law has the coefficient of the law, a pair with an obstacle those of the obstacle, and a pair
    of bodies the mean of their coefficients; static friction differs only at an obstacle without a law.
    """
    o = obstacle_of(pairs, i)
    law = law_of(pairs, i)
    mu = real(0.0)
    extra = real(0.0)
    if o >= 0 and pairs.condition[wp.max(o, 0)] != _FRICTION:
        return mu, extra
    if law >= 0:
        mu = pairs.law_friction[w * pairs.laws + law]
    elif o < 0:
        first = w * pairs.movers
        mu = real(0.5) * (pairs.friction[first + pairs.body[i[0]]] + pairs.friction[first + pairs.body[i[3]]])
    else:
        mu = pairs.obstacle_friction[w * pairs.condition.shape[0] + o]
        extra = pairs.extra[o]
    return mu, extra


@wp.func
def start_distance(pairs: PairArrays, x: wp.array[_vec], w: int, m: int):
    """Distance of the sides of pair m when the step begins [m], and its derivative: a direction and weights.

    It is measured at the plane of the pair, or along its shortest connection, as they were then: the plane at the end
    of the step may have turned. A point that comes around an edge begins on the other side of the plane.
    """
    a, b, c, d = starts_of(pairs, x, w, pairs.node[m])
    kind = pairs.kind[m]
    n = pairs.normal[m]
    weight = pairs.weight[m]
    if kind <= HELD:
        side = kind
        if kind > NEAREST:
            side = kind - NEAREST
        else:
            n, weight, _holds = pair_geometry(kind, real(1.0), a, b, c, d)
        if kind > NEAREST or wp.dot(n, n) == real(0.0):
            weight = nearest(side, a, b, c, d)
            n = wp.normalize(weight[0] * a + weight[1] * b + weight[2] * c + weight[3] * d)
    distance = wp.dot(n, weight[0] * a + weight[1] * b + weight[2] * c + weight[3] * d)
    return wp.abs(distance), wp.sign(distance) * n, weight


@wp.func
def to_keep(pairs: PairArrays, h: wp.float64, i: wp.vec4i, start: real, yielded: real):
    """Distance that a pair keeps without load at the end of a step of length h [m], and how it follows from its start.

    A rigid body that begins nearer to another body than half the clearance, such as face to face, keeps a quarter of
    it, and parts slowly until then: at the clearance at once, a step of 1 ms would throw them apart at 0.3 m/s. Around
    half the clearance the distance rises steadily from a quarter to all of it. Two soft surfaces yield.

    The skin alone determines how contacts share a load, so it always yields; under large loads it hardens, so that it
    yields by less than a part of the distance that the pair keeps.

    Args:
        pairs: The pairs.
        h: Length of the step [s].
        i: Nodes of the pair.
        start: Distance when the step begins [m].
        yielded: Compression of the skin by the present force [m].

    Returns:
        The distance, and its derivatives with respect to `start` and to `yielded`.
    """
    clearance = clearance_of(pairs, i)
    keep = clearance
    follows = _vec2()
    if one_is_rigid(pairs, i) and start < _FAR * clearance:
        more = clearance * wp.clamp(real(h) / _PARTING, _LEAST, _KEPT)
        keep = wp.min(start + more, _KEPT * clearance)
        if keep < _KEPT * clearance:
            follows[0] = real(1.0)
        if start > _NEAR * clearance:
            follows[0] = (real(1.0) - _KEPT) / (_FAR - _NEAR)
            keep = _KEPT * clearance + follows[0] * (start - _NEAR * clearance)
    most = _MOST * keep
    if yielded > real(0.5) * most:
        part = real(0.5) * most / yielded  # of the skin: it yields by most (1 - part / 2)
        keep += yielded - most * (real(1.0) - real(0.5) * part)
        follows = _vec2(follows[0] * (real(1.0) - _MOST * (real(1.0) - part)), real(1.0) - part * part)
    return keep, follows


@wp.func
def belt_displacement(pairs: PairArrays, poses: MovingPoses, h: wp.float64, w: int, i: wp.vec4i):
    """Displacement of the surface of an obstacle relative to the obstacle, in a step of length h [m].

    It points away from the first side of the pair; 0 for a pair of two bodies.
    """
    o = obstacle_of(pairs, i)
    moved = _vec()
    if o >= 0:
        moved = -obstacle_side(pairs, i) * _vec(h * poses.belt[w, pairs.solid[o]])
    return moved


@wp.kernel(enable_backward=False)
def evaluate_pairs_kernel(
    # model
    topology: ContactTopology,
    pairs: PairArrays,
    first: int,
    poses: MovingPoses,
    # state
    h: wp.float64,
    active: wp.array[int],
    x: wp.array[_vec],
    z: wp.array[NODE],
    f: wp.array[NODE],
    # out
    contacts_out: ContactArrays,
):
    """Write the distances of pairs at the end of the step, measured at their planes as last updated."""
    w, p = wp.tid()
    if active[w] == 0:
        return
    k = w * topology.contacts + first + p
    m = w * pairs.capacity + p
    contacts_out.listed[k] = 0
    if p >= pairs.count[w] or pairs.kind[m] == NONE or pairs.redundant[m] == 1:
        return
    i = pairs.node[m]
    s = w * topology.stride
    a, b, c, d = ends_of(pairs, x, z, w, i)
    weight = pairs.weight[m]
    normal = pairs.normal[m]
    end = weight[0] * (a + at(f, s + i[0])) + weight[1] * (b + at(f, s + i[1]))
    end += weight[2] * (c + at(f, s + i[2])) + weight[3] * (d + at(f, s + i[3]))
    lam = at(z, s + topology.first + first + p)
    yielded = wp.dot(normal, lam) * skin_of(topology, i)
    start, _direction, _weight = start_distance(pairs, x, w, m)
    keep, follows = to_keep(pairs, h, i, start, yielded)
    phi = wp.dot(normal, end) - keep
    contacts_out.node[k] = i
    contacts_out.weight[k] = weight
    contacts_out.obstacle[k] = obstacle_of(pairs, i)
    contacts_out.distance[k] = phi
    contacts_out.follows[k] = follows
    contacts_out.normal[k] = normal
    contacts_out.surface[k] = belt_displacement(pairs, poses, h, w, i)
    contacts_out.condition[k] = _FRICTION
    mu, extra = friction_of(pairs, w, i)
    contacts_out.friction[k] = mu
    contacts_out.extra[k] = holding(extra, contacts_out.changes[k])
    contacts_out.law[k] = law_of(pairs, i)
    contacts_out.closed[k] = 0
    contacts_out.listed[k] = acts(phi, lam, _FRICTION, 0)
