"""Why the adjoint of a step has no result: a record on the device, written where the cause arises, and its words.

An adjoint without a result ends as NaN in every gradient, steps before it included, and on a GPU the marks are read
only at the end of a backward pass. So the first cause in each world stays until a message is made of it.
"""

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, ContactTopology
from warpbots.solvers.projective.contact.contacts_without_gradient import plane_change
from warpbots.solvers.projective.contact.pair_arrays import HELD, PairArrays
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.islands import Islands
from warpbots.solvers.projective.iterate.anderson_arrays import IterationState

__all__ = ["FROZEN", "INFINITE", "LONG", "ROOM", "TURNS", "GradientLoss", "gradient_loss", "note_loss_kernel"]

_vec = vector(3)
_NONE, FROZEN, TURNS, LONG, INFINITE, ROOM = (wp.constant(k) for k in range(6))
"""Causes: none; a plane of a pair that was frozen, or that still turned; an iteration that did not converge, or was not
finite; and no room for the compliances of all nodes in contact."""


@wp.struct
class GradientLoss:
    """The first cause in each world, since the last message, for which the adjoint of a step had no result.

    Arrays have the shape (worlds,).

    cause: One of the causes of this module.
    node: Points of the pair whose plane is the worst: a frozen one, or the one that changed most; of several such
        pairs, the one with the largest force.
    place: Mean position of these points at the end of the step [m].
    size: Change of the plane after its last update [1], or estimated error of the adjoint relative to the largest
        that is allowed [1].
    iterations: Number of iterations of the adjoint.
    length: Length of the step [s].
    passed: Number of steps so far whose adjoint has run.
    at: Value of `passed` for the step.
    """

    cause: wp.array[int]
    node: wp.array[wp.vec4i]
    place: wp.array[wp.vec3d]
    size: wp.array[wp.float64]
    iterations: wp.array[int]
    length: wp.array[wp.float64]
    passed: wp.array[int]
    at: wp.array[int]


def gradient_loss(worlds: int, device: wp.Device) -> GradientLoss:
    """Arrays for `worlds` worlds, without a cause."""
    loss = GradientLoss()
    for name, variable in GradientLoss.vars.items():
        setattr(loss, name, wp.zeros(worlds, dtype=variable.type.dtype, device=device))
    return loss


@wp.func
def note_iteration(islands: Islands, progress: IterationState, w: int, loss_out: GradientLoss):
    """Record the worst island of a world whose adjoint did not converge."""
    worst = wp.float64(0.0)
    loss_out.cause[w] = LONG
    for c in range(islands.count):
        u = w * islands.count + c
        if islands.root[u] == c and progress.converged[u] == 0:
            ratio = progress.size[u] / progress.enough[u]
            loss_out.iterations[w] = wp.max(loss_out.iterations[w], progress.iterations[u])
            if not wp.isfinite(progress.size[u]):
                loss_out.cause[w] = INFINITE
            worst = wp.max(worst, ratio)
    loss_out.size[w] = worst


@wp.func
def worst_pair(
    topology: ContactTopology, pairs: PairArrays, contacts: ContactArrays, loose: real, z: wp.array[NODE], w: int
):
    """The pair whose plane changed most, and its change; -1 if no plane changed by more than `loose`."""
    worst = int(-1)
    most = real(0.0)
    strongest = real(0.0)
    for p in range(wp.min(pairs.count[w], pairs.capacity)):
        change, force = plane_change(topology, pairs, contacts, topology.solids, z, w, p)
        lost = force > real(0.0) and not (change <= loose)
        if lost and (worst < 0 or change > most or (change == most and force > strongest)):
            worst = p
            most = change
            strongest = force
    return worst, most


@wp.kernel(enable_backward=False)
def note_loss_kernel(
    # model
    topology: ContactTopology,
    pairs: PairArrays,
    # state
    h: wp.float64,
    whole: int,
    loose: real,
    x: wp.array[_vec],
    z: wp.array[NODE],
    # work
    islands: Islands,
    progress: IterationState,
    missing: wp.array[int],
    contacts: ContactArrays,
    # out
    loss_out: GradientLoss,
):
    """Record why the adjoint of a step of length h has no result, and count `whole` steps."""
    w = wp.tid()
    loss_out.passed[w] = loss_out.passed[w] + whole
    if progress.found[w] == 1 or loss_out.cause[w] > 0:
        return
    loss_out.at[w] = loss_out.passed[w]
    loss_out.length[w] = h
    loss_out.iterations[w] = 0
    p = int(-1)
    change = real(0.0)
    if pairs.capacity > 0:
        p, change = worst_pair(topology, pairs, contacts, loose, z, w)
    if p >= 0:
        m = w * pairs.capacity + p
        place = wp.vec3d()
        for k in range(4):
            i = pairs.node[m][k]
            place += wp.vec3d(x[w * pairs.nodes + i]) + wp.vec3d(at(z, w * pairs.stride + i))
        loss_out.cause[w] = wp.where(pairs.kind[m] > HELD, FROZEN, TURNS)
        loss_out.node[w] = pairs.node[m]
        loss_out.place[w] = wp.float64(0.25) * place
        loss_out.size[w] = wp.float64(change)
    elif missing.shape[0] > 0 and missing[0] > 0:
        loss_out.cause[w] = ROOM
    else:
        note_iteration(islands, progress, w, loss_out)
