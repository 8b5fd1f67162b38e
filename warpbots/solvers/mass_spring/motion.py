"""What happens at the masses: where a stage of a time step stands, and where the step ends; differentiated by Warp.

All loops here have constant bounds and are unrolled: Warp's backward pass does not repeat a loop that is not, and takes
what it accumulated for zero wherever a later operation is not linear in it.
"""

import functools

import warp as wp

from warpbots.contact import constrain, obstacle_arrays, penetration
from warpbots.math import NODE, real, vector
from warpbots.scene import FREEDOMS

__all__ = ["FREE", "constraint_arrays", "end_kernel", "mass_arrays", "stage_kernel"]

FREE = wp.constant(len(FREEDOMS))
"""Freedom of a mass without constraint; those with one have the position of its name in `FREEDOMS`."""

_LINE, _PLANE = wp.constant(FREEDOMS.index("line")), wp.constant(FREEDOMS.index("plane"))


@functools.cache
def mass_arrays(dim: int) -> type:
    """Warp struct of what masses are and what acts on them from outside."""
    vec = vector(dim)

    @wp.struct
    class MassArrays:
        """Masses, each of shape (worlds * n_masses,) but gravity.

        m: Mass [kg].
        drag: Coefficient of drag [kg/s].
        load: Steady force [N].
        gravity: Gravitational acceleration [m/s^2], shape (worlds,).
        """

        m: wp.array[real]
        drag: wp.array[real]
        load: wp.array[vec]
        gravity: wp.array[vec]

    return MassArrays


@functools.cache
def constraint_arrays(dim: int) -> type:
    """Warp struct of what masses may do."""
    vec = vector(dim)

    @wp.struct
    class ConstraintArrays:
        """What keeps the masses of one world, each of shape (n_masses,).

        freedom: Index in `warpbots.scene.FREEDOMS`, or `FREE`.
        direction: Unit vector of a line, or normal of a plane.
        contact: Stiffness of obstacles against the mass [N/m]; 0 for those that give way to nothing.
        """

        freedom: wp.array[int]
        direction: wp.array[vec]
        contact: wp.array[real]

    return ConstraintArrays


@functools.cache
def _lift(dim: int) -> tuple[wp.Function, wp.Function]:
    """Warp functions node(a), a vector with zeros behind it, and components(h), the vector in front of a node."""
    vec = vector(dim)

    @wp.func
    def node(a: vec):
        """A vector with zeros behind it."""
        h = NODE()
        for d in range(dim):
            h[d] = a[d]
        return h

    @wp.func
    def components(h: NODE):
        """The vector in front of a node."""
        a = vec()
        for d in range(dim):
            a[d] = h[d]
        return a

    return node, components


@functools.cache
def stage_kernel(dim: int, number: int) -> wp.Kernel:
    """Kernel over the masses of all worlds: a stage's positions, velocities, and forces but for the springs.

    Args:
        dim: 2 or 3.
        number: Number of the stage, from 0.
    """
    vec = vector(dim)
    MassArrays = mass_arrays(dim)
    node, components = _lift(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.springs.stage_{dim}d_{number}"))
    def stage(
        # model
        masses: MassArrays,
        count: int,
        # scheme
        drift: real,
        A: NODE,
        B: NODE,
        # state
        x: wp.array[vec],
        v: wp.array[vec],
        force: wp.array[NODE],
        # out
        x_out: wp.array[NODE],
        v_out: wp.array[NODE],
        force_out: wp.array[NODE],
    ):
        """X = x + c h v + h^2 sum A_j f_j / m, V = v + h sum B_j f_j / m, f = m g + load - drag V."""
        i = wp.tid()
        w = i // count
        m = masses.m[i]
        X = x[i] + drift * v[i]
        V = v[i]
        for j in range(wp.static(number)):
            a = components(force[j * x.shape[0] + i]) / m
            X += A[j] * a
            V += B[j] * a
        x_out[i] = node(X)
        v_out[i] = node(V)
        force_out[wp.static(number) * x.shape[0] + i] = node(
            m * masses.gravity[w] + masses.load[i] - masses.drag[i] * V
        )

    return stage


@functools.cache
def end_kernel(dim: int, stages: int, obstacle_count: int) -> wp.Kernel:
    """Kernel over the masses of all worlds: the end of a step from the forces at its stages, contact, constraints.

    Contact is that of `warpbots.contact.constrain`, applied to the new velocity where the first stage lies inside of an
    obstacle; the new position follows. A surface of stiffness K pushes with K times the depth, one of stiffness 0 gives
    way to nothing.

    Args:
        dim: 2 or 3.
        stages: Stages of the scheme.
        obstacle_count: Obstacles of the scene.
    """
    vec = vector(dim)
    MassArrays, ConstraintArrays, ObstacleArrays = mass_arrays(dim), constraint_arrays(dim), obstacle_arrays(dim)
    constrain_velocity, penetrate = constrain(dim), penetration(dim)
    _, components = _lift(dim)

    @wp.func
    def restrict(v: vec, freedom: int, n: vec):
        """What a constraint leaves of a velocity [m/s]."""
        along = wp.dot(n, v) * n
        left = vec()
        if freedom == _LINE:
            left = along
        if freedom == _PLANE:
            left = v - along
        return left

    module = wp.get_module(f"warpbots.springs.end_{dim}d_{stages}_{obstacle_count}")
    wp.set_module_options({"max_unroll": max(16, obstacle_count)}, module)

    @wp.kernel(module=module)
    def end(
        # model
        masses: MassArrays,
        constraints: ConstraintArrays,
        obstacles: ObstacleArrays,
        friction: wp.array2d[real],
        count: int,
        # scheme
        drift: real,
        p: NODE,
        q: NODE,
        follow: real,
        h: real,
        # state
        x: wp.array[vec],
        v: wp.array[vec],
        time: wp.array[wp.float64],
        force: wp.array[NODE],
        # out
        x_out: wp.array[vec],
        v_out: wp.array[vec],
        time_out: wp.array[wp.float64],
    ):
        """v' = constrain(v + h sum q_s f_s / m), x' = x + h v + h^2 sum p_s f_s / m + follow (v' - unconstrained)."""
        i = wp.tid()
        w = i // count
        mass = i - w * count
        dx = vec()
        dv = vec()
        for s in range(wp.static(stages)):
            a = components(force[s * x.shape[0] + i]) / masses.m[i]
            dx += p[s] * a
            dv += q[s] * a
        V = v[i] + dv
        allowed = V
        for o in range(wp.static(obstacle_count)):
            depth, n = penetrate(obstacles, o, x[i] + drift * v[i])
            if depth > real(0.0):
                push = -wp.dot(allowed, n)
                if constraints.contact[mass] > real(0.0):
                    push = constraints.contact[mass] * depth * h / masses.m[i]
                allowed = constrain_velocity(
                    allowed, n, push, obstacles.condition[o], friction[w, o], obstacles.extra[o]
                )
        freedom = constraints.freedom[mass]
        if freedom != FREE:
            allowed = restrict(allowed, freedom, constraints.direction[mass])
        x_out[i] = x[i] + h * v[i] + dx + follow * (allowed - V)
        v_out[i] = allowed
        if mass == 0:
            time_out[w] = time[w] + wp.float64(h)

    return end
