"""Contact of surfaces that move: what `detection` has found, at a point of the iteration, and its adjoint."""

import warp as wp

from warpbots.contact import CODES
from warpbots.numerics import NODE, matrix, real, vector
from warpbots.solvers.projective.contact.coulomb import MeetingArrays, TouchArrays, law
from warpbots.solvers.projective.contact.detection import EDGES, FACE, HELD, NONE, PairArrays, pair_geometry
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.nodes import packed
from warpbots.solvers.projective.iterate.anderson import Progress, restart

__all__ = [
    "adj_pairs_kernel",
    "aim_kernel",
    "ask_kernel",
    "begin_pairs_kernel",
    "differentiate_pairs_kernel",
    "meet_pairs_kernel",
    "pull_pairs_kernel",
    "resolve_kernel",
    "stray_kernel",
    "turn_kernel",
]

_vec, _mat = vector(3), matrix(3)
_vec4 = vector(4)
_FRICTION = wp.constant(CODES["friction"])
_ROUNDS = wp.constant(60)  # searches for contacts in one step
_TURNS = wp.constant(30)  # searches after which planes stay as they are


@wp.func
def plane_of(kind: int, side: real, normal: _vec, weight: _vec4, a: _vec, b: _vec, c: _vec, d: _vec):
    """Normal and weights of a pair: of its plane where it is now, or those with which it is held."""
    n = normal
    v = weight
    if kind != HELD:
        n, v, _holds = pair_geometry(kind, side, a, b, c, d)
    return n, v


@wp.func
def pair_law(
    T: _vec,
    kind: int,
    side: real,
    normal: _vec,
    held: _vec4,
    clearance: real,
    a: _vec,
    b: _vec,
    c: _vec,
    d: _vec,
    ua: _vec,
    ub: _vec,
    uc: _vec,
    ud: _vec,
    lam: _vec,
    w: real,
    skin: real,
    mu: real,
):
    """T . l for four nodes at the end of a step, and their displacements in it."""
    n, weight = plane_of(kind, side, normal, held, a, b, c, d)
    u = weight[0] * ua + weight[1] * ub + weight[2] * uc + weight[3] * ud
    phi = wp.dot(n, weight[0] * a + weight[1] * b + weight[2] * c + weight[3] * d) - clearance
    return wp.dot(T, law(u - wp.dot(n, u) * n + phi * n, n, lam, w, skin, _FRICTION, mu, real(0.0), 0))


@wp.func
def pair_work(
    kind: int, side: real, normal: _vec, held: _vec4, a: _vec, b: _vec, c: _vec, d: _vec, lam: _vec, pa: _vec, pb: _vec,
    pc: _vec, pd: _vec,
):  # fmt: skip
    """Lambda . sum a_k p_k: the work of a contact's force in displacements p of its nodes."""
    _n, weight = plane_of(kind, side, normal, held, a, b, c, d)
    return wp.dot(lam, weight[0] * pa + weight[1] * pb + weight[2] * pc + weight[3] * pd)


@wp.kernel(enable_backward=False)
def begin_pairs_kernel(
    pairs_out: PairArrays, check_out: wp.array[int], any_out: wp.array[int], tally_out: wp.array[int],
    found_out: wp.array[int], near_out: wp.array[int], crossing_out: wp.array[wp.int64], lost_out: wp.array[int],
):  # fmt: skip
    """No pair is a contact yet, and all have to be searched."""
    w = wp.tid()
    pairs_out.count[w] = 0
    check_out[w] = 1
    tally_out[w] = 0
    found_out[w] = 0
    near_out[w] = 0
    crossing_out[w] = wp.int64(0)
    lost_out[w] = 0
    any_out[0] = 1


@wp.kernel(enable_backward=False)
def resolve_kernel(
    capacity: int,
    before: int,
    pairs: PairArrays,
    found: wp.array[int],
    check_out: wp.array[int],
    any_out: wp.array[int],
    tally_out: wp.array[int],
    crossing_out: wp.array[wp.int64],
    lost_out: wp.array[int],
    progress_out: Progress,
):
    """After a search: a step that had ended goes on if there are new contacts, and else has ended for good.

    It goes on, too, where surfaces cross and contacts can be held anew; where that has been tried, it has failed. Of a
    point of the iteration, the entries `before` those of pairs and those of pairs that there are mean something.
    """
    w = wp.tid()
    if check_out[w] == 0:
        return
    check_out[w] = 0
    any_out[0] = 0
    progress_out.used[w] = before + wp.min(pairs.count[w], capacity)
    ended = progress_out.found[w]
    crosses = crossing_out[w] > wp.int64(0)
    again = found[w] > 0 or crosses
    hopeless = crosses and lost_out[w] == 1
    if pairs.count[w] > capacity or (ended == 1 and again and (hopeless or tally_out[w] >= _ROUNDS)):
        progress_out.found[w] = 0
        progress_out.active[w] = 0
        wp.atomic_sub(progress_out.any, 0, 1)
    elif ended == 1:
        lost_out[w] = int(crosses)
        crossing_out[w] = wp.int64(0)
        if again:
            progress_out.found[w] = 0
            restart(progress_out, w)
        else:
            progress_out.active[w] = 0
            wp.atomic_sub(progress_out.any, 0, 1)
    tally_out[w] = tally_out[w] + 1


@wp.func
def ends(was: wp.array[int], progress: Progress, w: int):
    """Whether the step of a world has ended with the last correction."""
    return was[w] == 1 and progress.active[w] == 0 and progress.found[w] == 1


@wp.kernel(enable_backward=False)
def aim_kernel(
    pairs: PairArrays, check: wp.array[int], rounds: wp.array[int], z: wp.array[NODE], aim_out: wp.array[NODE]
):
    """Keep the way that the first search goes."""
    w, k = wp.tid()
    if check[w] == 1 and rounds[w] == 0:
        aim_out[w * pairs.vertex.shape[0] + k] = z[w * pairs.stride + pairs.vertex[k]]


@wp.kernel(enable_backward=False)
def stray_kernel(
    pairs: PairArrays, was: wp.array[int], progress: Progress, z: wp.array[NODE], aim: wp.array[NODE],
    near_out: wp.array[int],
):  # fmt: skip
    """A node that went further than half the margin from where the first search took it to may have come near.

    If no pair could come nearer than clearance and margin along the ways of the first search, and no node has left its
    own by more than half the margin, which it then has nowhere along it, no pair is nearer than the clearance.
    """
    w, k = wp.tid()
    if ends(was, progress, w):
        d = at(z, w * pairs.stride + pairs.vertex[k]) - at(aim, w * pairs.vertex.shape[0] + k)
        if not (wp.length(d) <= real(0.5) * pairs.margin):
            wp.atomic_add(near_out, w, 1)


@wp.kernel(enable_backward=False)
def ask_kernel(
    was: wp.array[int], near: wp.array[int], check_out: wp.array[int], any_out: wp.array[int],
    found_out: wp.array[int], progress_out: Progress,
):  # fmt: skip
    """A step that ended in this round is searched for contacts before it counts, unless nothing can be near."""
    w = wp.tid()
    found_out[w] = 0
    if ends(was, progress_out, w) and near[w] > 0:
        progress_out.active[w] = 1
        check_out[w] = 1
        any_out[0] = 1
        wp.atomic_add(progress_out.any, 0, 1)


@wp.func
def ways_of(pairs: PairArrays, z: wp.array[NODE], w: int, i: wp.vec4i):
    """Displacements of the nodes of a pair."""
    s = w * pairs.stride
    return at(z, s + i[0]), at(z, s + i[1]), at(z, s + i[2]), at(z, s + i[3])


@wp.func
def ends_of(pairs: PairArrays, x: wp.array[_vec], z: wp.array[NODE], w: int, i: wp.vec4i):
    """Where the nodes of a pair are at the end of a step."""
    n = w * pairs.nodes
    ua, ub, uc, ud = ways_of(pairs, z, w, i)
    return x[n + i[0]] + ua, x[n + i[1]] + ub, x[n + i[2]] + uc, x[n + i[3]] + ud


@wp.kernel(enable_backward=False)
def turn_kernel(
    pairs_out: PairArrays, turned: real, check: wp.array[int], rounds: wp.array[int], progress: Progress,
    x: wp.array[_vec], z: wp.array[NODE], found_out: wp.array[int],
):  # fmt: skip
    """Where a step has ended for planes as they were, bring them to where they are; whether one turned by too much.

    Planes follow in rounds and not in every iteration: those of a point far from the end would send it further away. A
    pair that is beside its plane is none any more; one that would pass through itself then is found anew.
    """
    w, p = wp.tid()
    if check[w] == 0 or progress.found[w] == 0 or rounds[w] > _TURNS or p >= pairs_out.count[w]:
        return
    m = w * pairs_out.capacity + p
    kind = pairs_out.kind[m]
    if kind != FACE and kind != EDGES:
        return
    a, b, c, d = ends_of(pairs_out, x, z, w, pairs_out.node[m])
    normal, weight, holds = pair_geometry(kind, pairs_out.side[m], a, b, c, d)
    change = wp.max(wp.length(normal - pairs_out.normal[m]), wp.length(weight - pairs_out.weight[m]))
    if holds == 0:
        pairs_out.kind[m] = NONE
    else:
        pairs_out.normal[m] = normal
        pairs_out.weight[m] = weight
    if holds == 0 or change > turned:
        wp.atomic_add(found_out, w, 1)


@wp.kernel(enable_backward=False)
def meet_pairs_kernel(
    touch: TouchArrays, pairs: PairArrays, first: int, active: wp.array[int], x: wp.array[_vec], z: wp.array[NODE],
    f: wp.array[NODE], meeting_out: MeetingArrays,
):  # fmt: skip
    """Where pairs are at the end of the step, against planes as they were when they were last looked at."""
    w, p = wp.tid()
    if active[w] == 0:
        return
    k = w * touch.contacts + first + p
    m = w * pairs.capacity + p
    meeting_out.listed[k] = 0
    if p >= pairs.count[w] or pairs.kind[m] == NONE:
        return
    i = pairs.node[m]
    s = w * touch.stride
    a, b, c, d = ends_of(pairs, x, z, w, i)
    weight = pairs.weight[m]
    normal = pairs.normal[m]
    end = weight[0] * (a + at(f, s + i[0])) + weight[1] * (b + at(f, s + i[1]))
    end += weight[2] * (c + at(f, s + i[2])) + weight[3] * (d + at(f, s + i[3]))
    phi = wp.dot(normal, end) - pairs.clearance
    lam = at(z, s + touch.first + first + p)
    other = pairs.friction[w * pairs.bodies + pairs.body[i[3]]]
    meeting_out.node[k] = i
    meeting_out.weight[k] = weight
    meeting_out.distance[k] = phi
    meeting_out.normal[k] = normal
    meeting_out.condition[k] = _FRICTION
    meeting_out.friction[k] = real(0.5) * (pairs.friction[w * pairs.bodies + pairs.body[i[0]]] + other)
    meeting_out.extra[k] = real(0.0)
    meeting_out.touched[k] = 0
    meeting_out.listed[k] = int(phi < real(0.0) or wp.dot(lam, lam) > real(0.0))


@wp.kernel(enable_backward=False)
def differentiate_pairs_kernel(
    touch: TouchArrays, pairs: PairArrays, first: int, x: wp.array[_vec], z: wp.array[NODE], meeting_out: MeetingArrays
):  # fmt: skip
    """A row of B_k and L of every contact that counts, and of dl/dq, where the displacements and forces are `z`."""
    w, p, r = wp.tid()
    k = w * touch.contacts + first + p
    if meeting_out.listed[k] == 0:
        return
    m = w * pairs.capacity + p
    i = pairs.node[m]
    ua, ub, uc, ud = ways_of(pairs, z, w, i)
    ya, yb, yc, yd = ends_of(pairs, x, z, w, i)
    own = meeting_out.own[k]
    T = _vec(real(int(r == 0)), real(int(r == 1)), real(int(r == 2)))
    _T, _k, _s, _n, _h, _cl, a, b, c, d, va, vb, vc, vd, lam_adj, _w, _sk, _mu = wp.grad(pair_law)(
        T,
        pairs.kind[m],
        pairs.side[m],
        pairs.normal[m],
        pairs.weight[m],
        pairs.clearance,
        ya,
        yb,
        yc,
        yd,
        ua,
        ub,
        uc,
        ud,
        at(z, w * touch.stride + touch.first + first + p),
        own,
        meeting_out.skin[k],
        meeting_out.friction[k],
    )
    by_displacement = -lam_adj / (own - meeting_out.skin[k])
    for j in range(3):
        meeting_out.by_node[4 * k][r, j] = a[j] + va[j]
        meeting_out.by_node[4 * k + 1][r, j] = b[j] + vb[j]
        meeting_out.by_node[4 * k + 2][r, j] = c[j] + vc[j]
        meeting_out.by_node[4 * k + 3][r, j] = d[j] + vd[j]
        meeting_out.by_force[k][r, j] = lam_adj[j]
        meeting_out.by_displacement[k][r, j] = by_displacement[j]


@wp.func
def pull_pair(
    touch: TouchArrays, pairs: PairArrays, first: int, x: wp.array[_vec], u: wp.array[NODE], z: wp.array[NODE], w: int,
    p: int, meeting: MeetingArrays,
):  # fmt: skip
    """B_k^T nu of a pair, and how the force on every node changes with the places of all."""
    k = w * touch.contacts + first + p
    m = w * pairs.capacity + p
    i = pairs.node[m]
    j = w * touch.stride + touch.first + first + p
    nu = at(z, j)
    ya, yb, yc, yd = ends_of(pairs, x, u, w, i)
    pa, pb, pc, pd = ways_of(pairs, z, w, i)
    _k, _s, _n, _h, a, b, c, d, _l, _pa, _pb, _pc, _pd = wp.grad(pair_work)(
        pairs.kind[m],
        pairs.side[m],
        pairs.normal[m],
        pairs.weight[m],
        ya,
        yb,
        yc,
        yd,
        at(u, j),
        pa,
        pb,
        pc,
        pd,
    )
    meeting.pull[4 * k] = wp.transpose(meeting.by_node[4 * k]) @ nu + a
    meeting.pull[4 * k + 1] = wp.transpose(meeting.by_node[4 * k + 1]) @ nu + b
    meeting.pull[4 * k + 2] = wp.transpose(meeting.by_node[4 * k + 2]) @ nu + c
    meeting.pull[4 * k + 3] = wp.transpose(meeting.by_node[4 * k + 3]) @ nu + d


@wp.kernel(enable_backward=False)
def pull_pairs_kernel(
    touch: TouchArrays, pairs: PairArrays, first: int, active: wp.array[int], x: wp.array[_vec], u: wp.array[NODE],
    z: wp.array[NODE], meeting_out: MeetingArrays,
):  # fmt: skip
    """What the adjoint has for a force of every pair that counts; most do not, and shall not set up what these need."""
    w, p = wp.tid()
    if active[w] == 1 and meeting_out.listed[w * touch.contacts + first + p] == 1:
        pull_pair(touch, pairs, first, x, u, z, w, p, meeting_out)


@wp.kernel(enable_backward=False)
def adj_pairs_kernel(
    touch: TouchArrays, pairs: PairArrays, first: int, x: wp.array[_vec], u: wp.array[NODE], meeting: MeetingArrays,
    adjoint: wp.array[NODE], x_adj_out: wp.array[_vec], u_adj_out: wp.array[NODE], friction_adj_out: wp.array[real],
):  # fmt: skip
    """Gradients to where the nodes started, to displacements of those that are fixed, and to friction."""
    w, p = wp.tid()
    k = w * touch.contacts + first + p
    if meeting.listed[k] == 0:
        return
    m = w * pairs.capacity + p
    i = pairs.node[m]
    n = w * touch.nodes
    s = w * touch.stride
    ua, ub, uc, ud = ways_of(pairs, u, w, i)
    ya, yb, yc, yd = ends_of(pairs, x, u, w, i)
    pa, pb, pc, pd = ways_of(pairs, adjoint, w, i)
    j = touch.first + first + p
    _T, _k, _s, _n, _h, _cl, a, b, c, d, va, vb, vc, vd, _lam, _w, _sk, mu_adj = wp.grad(pair_law)(
        at(adjoint, s + j),
        pairs.kind[m],
        pairs.side[m],
        pairs.normal[m],
        pairs.weight[m],
        pairs.clearance,
        ya,
        yb,
        yc,
        yd,
        ua,
        ub,
        uc,
        ud,
        at(u, s + j),
        meeting.own[k],
        meeting.skin[k],
        meeting.friction[k],
    )
    _k2, _s2, _n2, _h2, fa, fb, fc, fd, _l, _pa, _pb, _pc, _pd = wp.grad(pair_work)(
        pairs.kind[m],
        pairs.side[m],
        pairs.normal[m],
        pairs.weight[m],
        ya,
        yb,
        yc,
        yd,
        at(u, s + j),
        pa,
        pb,
        pc,
        pd,
    )
    wp.atomic_add(x_adj_out, n + i[0], a + fa)
    wp.atomic_add(x_adj_out, n + i[1], b + fb)
    wp.atomic_add(x_adj_out, n + i[2], c + fc)
    wp.atomic_add(x_adj_out, n + i[3], d + fd)
    wp.atomic_add(u_adj_out, s + i[0], packed(a + va + fa))
    wp.atomic_add(u_adj_out, s + i[1], packed(b + vb + fb))
    wp.atomic_add(u_adj_out, s + i[2], packed(c + vc + fc))
    wp.atomic_add(u_adj_out, s + i[3], packed(d + vd + fd))
    if friction_adj_out:
        wp.atomic_add(friction_adj_out, w * pairs.bodies + pairs.body[i[0]], real(0.5) * mu_adj)
        wp.atomic_add(friction_adj_out, w * pairs.bodies + pairs.body[i[3]], real(0.5) * mu_adj)
