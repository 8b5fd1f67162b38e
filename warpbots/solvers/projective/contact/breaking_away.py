"""Contacts that break away: which coefficient of friction a contact has for the rest of a step.

If the coefficient of static friction is above the coefficient of sliding friction, the force of a contact drops where
the contact begins to slide, which loads its neighbours. A slide that is shorter than the drop times the compliance does
not last: at the next point of the iteration the contact sticks, then slides again. Neither state is a solution, so the
iteration would alternate without end, or the solve for the forces of a single point would. A contact that has changed
many times (`contact_arrays.holding`) therefore has the sliding coefficient for the rest of the step. It obeys Coulomb's
law with either coefficient: it slides with the sliding one, or sticks with no more than that. The adjoint reads the
number of changes from the end of the step, and so differentiates the law that held there. Therefore the iteration does
not end at a point at which a contact alternates, or gets the sliding coefficient.
"""

import warp as wp

from warpbots.numerics import NODE, real
from warpbots.solvers.projective.contact.contact_arrays import (
    ContactArrays,
    ContactTopology,
    JointCoupling,
    entry_of,
    holding,
)
from warpbots.solvers.projective.contact.contact_response import carried
from warpbots.solvers.projective.contact.coulomb_law import law
from warpbots.solvers.projective.contact.free_rotation import RotationArrays
from warpbots.solvers.projective.elements.element import at
from warpbots.solvers.projective.elements.free_normals import NormalArrays
from warpbots.solvers.projective.islands import Islands, island_of
from warpbots.solvers.projective.iterate.anderson import restart_beyond
from warpbots.solvers.projective.iterate.anderson_arrays import IterationState

__all__ = ["note_changes_kernel"]

_HALF = wp.constant(real(0.5))


@wp.kernel(enable_backward=False)
def note_changes_kernel(
    # model
    topology: ContactTopology,
    # state
    active: wp.array[int],
    z: wp.array[NODE],
    f: wp.array[NODE],
    # work
    coupling: JointCoupling,
    rotation: RotationArrays,
    normals: NormalArrays,
    islands: Islands,
    # out
    contacts_out: ContactArrays,
    progress_out: IterationState,
):
    """Count the changes of active contacts between sticking and sliding, after the solve for their forces.

    A contact whose force is off by the drop of friction has alternated within this solve, which counts as two changes.
    """
    w, number = wp.tid()
    count = contacts_out.count[w]
    if active[w] == 0 or number >= count[0] + count[1]:
        return
    i = entry_of(topology.contacts, count[0], w, number)
    c = contacts_out.order[i]
    k = w * topology.contacts + c
    mu = contacts_out.friction[k]
    extra = contacts_out.extra[k]
    if extra == real(0.0):
        return
    j = w * topology.stride + topology.first + c
    lam = at(z, j) + at(f, j)
    n = contacts_out.normal[k]
    q = contacts_out.gap[i] + carried(contacts_out, coupling, rotation, normals, w, k)
    l = law(
        q, n, lam, contacts_out.own[k], contacts_out.skin[k], contacts_out.condition[k], mu, extra,
        contacts_out.closed[k],
    )  # fmt: skip
    q -= (contacts_out.own[k] - contacts_out.skin[k]) * lam
    depth = -wp.dot(q, n)
    slides = int(depth > real(0.0) and wp.length(q + depth * n) > (mu + extra) * depth)
    changes = contacts_out.changes[k]
    more = int(changes % 2 != slides)
    alternates = wp.length(l - lam) > _HALF * extra * wp.dot(lam, n)
    if alternates:
        more += 2
    contacts_out.changes[k] = changes + more
    if alternates or (more > 0 and holding(extra, changes + more) == real(0.0)):
        restart_beyond(progress_out, island_of(islands, w, topology.first + c))
