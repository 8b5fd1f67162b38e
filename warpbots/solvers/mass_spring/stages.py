"""Positions, velocities and body forces of a stage, the end of a step without contact, and the adjoints of both.

All loops have constant bounds and are unrolled.
"""

import functools

import warp as wp

from warpbots.numerics import NODE, Slice, real, vector

__all__ = ["adj_end_kernel", "adj_stage_kernel", "end_kernel", "lift", "stage_kernel"]


@functools.cache
def lift(dim: int) -> tuple[wp.Function, wp.Function]:
    """Warp functions node(a), which pads a vector with zeros, and components(h), which removes the padding."""
    vec = vector(dim)

    if dim == 2:

        @wp.func
        def node(a: vec):
            """A vector padded with zeros."""
            return NODE(a[0], a[1], real(0.0), real(0.0))

        @wp.func
        def components(h: NODE):
            """The first two components of a node."""
            return vec(h[0], h[1])

    else:

        @wp.func
        def node(a: vec):
            """A vector padded with a zero."""
            return NODE(a[0], a[1], a[2], real(0.0))

        @wp.func
        def components(h: NODE):
            """The first three components of a node."""
            return vec(h[0], h[1], h[2])

    return node, components


@wp.func
def _world(i: int, count: int, total: int):
    """Index of the world of mass i, with `count` masses in each world and `total` masses in all worlds.

    With a single world the function returns 0 without a division.
    """
    w = 0
    if count < total:
        w = i // count
    return w


@functools.cache
def stage_kernel(dim: int, number: int) -> wp.Kernel:
    """Kernel over the masses of all worlds: computes positions, velocities and body forces of one stage.

    The body forces are weight, load and drag.

    Args:
        dim: 2 or 3.
        number: Index of the stage, from 0.
    """
    vec = vector(dim)
    node, components = lift(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.springs.stage_{dim}d_{number}"), enable_backward=False)
    def stage(
        # launch
        part: Slice,
        # model
        mass: wp.array[real],
        drag: wp.array[real],
        load: wp.array[vec],
        gravity: wp.array[vec],
        count: int,
        # step
        drift: real,
        A: NODE,
        B: NODE,
        # state
        x: wp.array[vec],
        v: wp.array[vec],
        # work
        force: wp.array[NODE],
        # out
        x_out: wp.array[NODE],
        v_out: wp.array[NODE],
        force_out: wp.array[NODE],
    ):
        """X = x + drift v + sum_j A_j f_j / m, V = v + sum_j B_j f_j / m, f = m g + load - drag V.

        The sums run over the forces f_j of earlier stages. The weights contain the length h of the step: `drift` is c
        h, `A` is h^2 times a row of the matrix A of the scheme, and `B` is h times a row of the matrix B.
        """
        i = part.start + wp.tid()
        m = mass[i]
        V = v[i]
        X = x[i] + drift * V
        for j in range(wp.static(number)):
            a = components(force[j * x.shape[0] + i]) / m
            X += A[j] * a
            V += B[j] * a
        x_out[i] = node(X)
        v_out[i] = node(V)
        g = gravity[_world(i, count, x.shape[0])]
        force_out[wp.static(number) * x.shape[0] + i] = node(m * g + load[i] - drag[i] * V)

    return stage


@functools.cache
def adj_stage_kernel(dim: int, number: int) -> wp.Kernel:
    """Kernel over the masses of all worlds: adjoint of `stage_kernel`."""
    vec = vector(dim)
    node, components = lift(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.springs.adj_stage_{dim}d_{number}"), enable_backward=False)
    def adj_stage(
        # launch
        part: Slice,
        # model
        mass: wp.array[real],
        drag: wp.array[real],
        gravity: wp.array[vec],
        count: int,
        copies: int,
        # step
        drift: real,
        A: NODE,
        B: NODE,
        # work
        V: wp.array[NODE],
        force: wp.array[NODE],
        X_adj: wp.array[NODE],
        V_adj: wp.array[NODE],
        # out
        mass_adj_out: wp.array[real],
        drag_adj_out: wp.array[real],
        load_adj_out: wp.array[vec],
        gravity_adj_out: wp.array[vec],
        x_adj_out: wp.array[vec],
        v_adj_out: wp.array[vec],
        force_adj_out: wp.array[NODE],
    ):
        """V* -= drag f*, x* += X*, v* += V* + drift X*, f_j* += (A_j X* + B_j V*) / m, in this order.

        An asterisk marks the gradient with respect to a quantity. The kernel also adds to the gradients with respect to
        mass, drag, load and gravity, unless the array of the gradient is None.
        """
        i = part.start + wp.tid()
        n = x_adj_out.shape[0]
        m = mass[i]
        f_adj = components(force_adj_out[wp.static(number) * n + i])
        x_adj = components(X_adj[i])
        v_adj = components(V_adj[i]) - drag[i] * f_adj
        x_adj_out[i] = x_adj_out[i] + x_adj
        v_adj_out[i] = v_adj_out[i] + v_adj + drift * x_adj
        w = _world(i, count, n)
        m_adj = wp.dot(gravity[w], f_adj)
        for j in range(wp.static(number)):
            a_adj = (A[j] * x_adj + B[j] * v_adj) / m
            force_adj_out[j * n + i] = force_adj_out[j * n + i] + node(a_adj)
            m_adj -= wp.dot(components(force[j * n + i]), a_adj) / m
        if mass_adj_out:
            mass_adj_out[i] = mass_adj_out[i] + m_adj
        if drag_adj_out:
            drag_adj_out[i] = drag_adj_out[i] - wp.dot(components(V[i]), f_adj)
        if load_adj_out:
            load_adj_out[i] = load_adj_out[i] + f_adj
        if gravity_adj_out:
            wp.atomic_add(gravity_adj_out, w * copies + (i & (copies - 1)), m * f_adj)

    return adj_stage


@functools.cache
def end_kernel(dim: int, stages: int) -> wp.Kernel:
    """Kernel over the masses of all worlds: computes the end of a step without contact from the forces of its stages.

    Args:
        dim: 2 or 3.
        stages: Stages of the scheme.
    """
    vec = vector(dim)
    _, components = lift(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.springs.end_{dim}d_{stages}"), enable_backward=False)
    def end(
        # launch
        part: Slice,
        # model
        mass: wp.array[real],
        count: int,
        # step
        h: real,
        p: NODE,
        q: NODE,
        passed: wp.float64,
        # state
        x: wp.array[vec],
        v: wp.array[vec],
        time: wp.array[wp.float64],
        # work
        force: wp.array[NODE],
        # out
        x_out: wp.array[vec],
        v_out: wp.array[vec],
        time_out: wp.array[wp.float64],
    ):
        """x' = x + h v + sum_s p_s f_s / m, v' = v + sum_s q_s f_s / m, t' = t + h.

        The sums run over the forces f_s of all stages s. `p` and `q` are the weights of the scheme, multiplied by h^2
        and by h. `passed` is h in double precision, by which time advances without drift.
        """
        i = part.start + wp.tid()
        V = v[i]
        X = x[i] + h * V
        w_m = real(1.0) / mass[i]
        for s in range(wp.static(stages)):
            a = w_m * components(force[s * x.shape[0] + i])
            X += p[s] * a
            V += q[s] * a
        x_out[i] = X
        v_out[i] = V
        w = _world(i, count, x.shape[0])
        if i == w * count:
            time_out[w] = time[w] + passed

    return end


@functools.cache
def adj_end_kernel(dim: int, stages: int) -> wp.Kernel:
    """Kernel over the masses of all worlds: adjoint of `end_kernel`."""
    vec = vector(dim)
    node, components = lift(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.springs.adj_end_{dim}d_{stages}"), enable_backward=False)
    def adj_end(
        # launch
        part: Slice,
        # model
        mass: wp.array[real],
        count: int,
        # step
        h: real,
        p: NODE,
        q: NODE,
        # work
        force: wp.array[NODE],
        # state
        ended_x_adj: wp.array[vec],
        ended_v_adj: wp.array[vec],
        ended_time_adj: wp.array[wp.float64],
        # out
        mass_adj_out: wp.array[real],
        x_adj_out: wp.array[vec],
        v_adj_out: wp.array[vec],
        time_adj_out: wp.array[wp.float64],
        force_adj_out: wp.array[NODE],
    ):
        """x* += x'*, v* += v'* + h x'*, f_s* = (p_s x'* + q_s v'*) / m, t* += t'*.

        An asterisk marks the gradient with respect to a quantity. The kernel also adds to the gradient with respect to
        the masses, unless `mass_adj_out` is None.
        """
        i = part.start + wp.tid()
        n = x_adj_out.shape[0]
        x_adj = ended_x_adj[i]
        v_adj = ended_v_adj[i]
        w_m = real(1.0) / mass[i]
        m_adj = real(0.0)
        for s in range(wp.static(stages)):
            a_adj = w_m * (p[s] * x_adj + q[s] * v_adj)
            force_adj_out[s * n + i] = node(a_adj)
            m_adj -= w_m * wp.dot(components(force[s * n + i]), a_adj)
        x_adj_out[i] = x_adj_out[i] + x_adj
        v_adj_out[i] = v_adj_out[i] + v_adj + h * x_adj
        if mass_adj_out:
            mass_adj_out[i] = mass_adj_out[i] + m_adj
        w = _world(i, count, n)
        if i == w * count:
            time_adj_out[w] = time_adj_out[w] + ended_time_adj[w]

    return adj_end
