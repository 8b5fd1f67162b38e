"""Acceleration of sweeps over contacts, by Anderson's method.

Where many contacts share a load, as under a bone, a sweep hardly changes the sum of their forces, and hundreds are
needed. What sweeps change, c, depends on the forces at their start; with changes of c orthonormal, q_j, and the changes
s_j of the forces that go with them, the next sweep starts from

    lambda - sum_j (q_j . c) s_j,

where a linear c would be smallest (`iterate.anderson` does the same for the step as a whole). The law holds at every
contact as before, since a sweep is always last.
"""

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.articulated.thread_team import sync
from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, ContactTopology
from warpbots.solvers.projective.elements.element import at

__all__ = ["SweepArrays", "extrapolation", "learn", "note_change", "sweep_arrays"]

_vec = vector(3)
_SLOTS = 10
"""Number of remembered sweeps: the six motions of a bone, and a few more."""
_SIDE = 512
"""Number of contacts of a world up to which sweeps are accelerated."""
_ZERO = wp.constant(wp.float64(0.0))
_NEW = wp.constant(wp.float64(1e-4))  # part of a change that has to be new


@wp.struct
class SweepArrays:
    """What is remembered of sweeps, all worlds in one row; shape (worlds * side,) unless given.

    slots: Number of remembered sweeps.
    side: Number of contacts of a world up to which sweeps are accelerated.
    change: Change of each force in the last sweep, times its `own` [m].
    last_change: The same in the sweep before.
    last_force: Force after that [N].
    q: Orthonormal changes of `change`, shape (worlds * slots * side,).
    s: Changes of the forces [N], shape (worlds * slots * side,).
    """

    slots: int
    side: int
    change: wp.array[_vec]
    last_change: wp.array[_vec]
    last_force: wp.array[_vec]
    q: wp.array[_vec]
    s: wp.array[_vec]


def sweep_arrays(contacts: int, worlds: int, device: wp.Device) -> SweepArrays:
    """Nothing is remembered yet.

    Args:
        contacts: Contacts of one world.
        worlds: Number of worlds.
        device: Device of the arrays.
    """
    arrays = SweepArrays()
    arrays.slots, arrays.side = _SLOTS, min(contacts, _SIDE)
    for name, count in (("change", 1), ("last_change", 1), ("last_force", 1), ("q", _SLOTS), ("s", _SLOTS)):
        setattr(arrays, name, wp.zeros(worlds * count * arrays.side, dtype=_vec, device=device))
    return arrays


@wp.func
def note_change(sweeps: SweepArrays, w: int, i: int, change: _vec):
    """Remember what a sweep changes at number i of the active contacts."""
    if i < sweeps.side:
        sweeps.change[w * sweeps.side + i] = change


@wp.func
def product(a: wp.array[_vec], first: int, b: wp.array[_vec], second: int, count: int):
    """Product of two rows."""
    total = _ZERO
    for i in range(count):
        total += wp.float64(wp.dot(a[first + i], b[second + i]))
    return total


@wp.func
def learn(
    topology: ContactTopology, contacts: ContactArrays, sweeps: SweepArrays, z: wp.array[NODE], f: wp.array[NODE],
    w: int, count: int, number: int, lane: int, lanes: int,
):  # fmt: skip
    """Remember the last sweep, sweep `number` since there is something to remember."""
    first = w * sweeps.side
    slot = (number + sweeps.slots - 1) % sweeps.slots
    row = (w * sweeps.slots + slot) * sweeps.side
    start = w * topology.stride + topology.first
    for i in range(lane, count, lanes):
        c = start + contacts.order[w * topology.contacts + i]
        force = at(z, c) + at(f, c)
        sweeps.q[row + i] = sweeps.change[first + i] - sweeps.last_change[first + i]
        sweeps.s[row + i] = force - sweeps.last_force[first + i]
        sweeps.last_change[first + i] = sweeps.change[first + i]
        sweeps.last_force[first + i] = force
    sync()
    if number == 0:
        return
    before = product(sweeps.q, row, sweeps.q, row, count)
    for j in range(wp.min(number, sweeps.slots)):
        other = (w * sweeps.slots + j) * sweeps.side
        if j != slot:
            along = real(product(sweeps.q, row, sweeps.q, other, count))
            sync()
            for i in range(lane, count, lanes):
                sweeps.q[row + i] = sweeps.q[row + i] - along * sweeps.q[other + i]
                sweeps.s[row + i] = sweeps.s[row + i] - along * sweeps.s[other + i]
            sync()
    left = product(sweeps.q, row, sweeps.q, row, count)
    sync()
    scale = real(0.0)
    if left > _NEW * _NEW * before:
        scale = real(wp.float64(1.0) / wp.sqrt(left))
    for i in range(lane, count, lanes):
        sweeps.q[row + i] = scale * sweeps.q[row + i]
        sweeps.s[row + i] = scale * sweeps.s[row + i]
    sync()


@wp.func
def extrapolation(sweeps: SweepArrays, w: int, count: int, known: int, lane: int, lanes: int):
    """Write by how much the forces differ with which the next sweep starts [N], in the place of the last change."""
    first = w * sweeps.side
    for i in range(lane, count, lanes):
        sweeps.change[first + i] = _vec()
    for j in range(known):
        row = (w * sweeps.slots + j) * sweeps.side
        along = real(product(sweeps.q, row, sweeps.last_change, first, count))
        for i in range(lane, count, lanes):
            sweeps.change[first + i] = sweeps.change[first + i] - along * sweeps.s[row + i]
    sync()
