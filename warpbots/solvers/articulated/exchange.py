"""Impulses between bodies and points of matter, solved together with the motion of the bodies.

A point of matter with the mass m at the place x touches a body. Without the body it would have the velocity v at the
end of a step; the body has the twist V. With the velocity of the point relative to the body, w = v - V(x), and its
velocity after contact by `constrain`, the impulse on the body is

    p = m (w - constrain(w)),

and the point receives -p. So both are at the same velocity where they stick, whatever their masses are: the step is
stable at every ratio of masses, because V is the twist at the end of the step. Momentum and angular momentum of body
and point together do not change. The impulse acts as the constant force c p during the last stage, whose length is
1 / c; so the body receives the whole impulse within the step.

Each point touches one body. During the last stage the points of a body move with the velocity of its centre of mass.
The arm of an impulse is then that at the start of the impulse, and the angular momentum of a free body that does not
spin changes by exactly x cross p. Normals and the set of points are constant in a step.
"""

import warp as wp

from warpbots.contact import CODES, constrain
from warpbots.numerics import sum_of_lanes
from warpbots.solvers.articulated.cloud_contact import apply
from warpbots.solvers.articulated.exchange_arrays import Exchange, ExchangeGradients
from warpbots.solvers.articulated.joints import freedom_of
from warpbots.solvers.articulated.kinematics import center_of
from warpbots.solvers.articulated.robot_arrays import RobotArrays
from warpbots.solvers.articulated.spatial import Twist, angular, cross_motion, linear, mat33, scalar, spatial, vec3
from warpbots.solvers.articulated.step_arrays import Links, StepArrays

__all__ = [
    "impulse_kernel",
    "differentiate_exchange",
    "is_pressed",
    "point_gradients_kernel",
    "sum_exchange",
    "touches_matter",
    "velocity_at",
]

_constrain = constrain(3, scalar)
_sum, _sum_of_twists = sum_of_lanes(vec3), sum_of_lanes(Twist)

# apart from `impulse_kernel`: Warp leaves out adjoints of functions that a kernel without a backward pass calls first
_gradients = wp.get_module("warpbots.articulated.exchange_gradients")

_STICKY, _SLIP, _SEPARATE = (wp.constant(CODES[name]) for name in ("sticky", "slip", "separate"))
_ZERO, _ONE = wp.constant(scalar(0.0)), wp.constant(scalar(1.0))


@wp.func
def velocity_at(V: Twist, x: vec3):
    """Velocity at x of a body with the twist V [m/s]."""
    return linear(V) + wp.cross(angular(V), x)


@wp.func
def moved(x: vec3, V: Twist, center: vec3, c: scalar):
    """Place at the end of a stage of a point that is at x at its start and moves with the centre of mass [m]."""
    return x + velocity_at(V, center) / c


@wp.func
def impulse(x: vec3, m: scalar, v: vec3, n: vec3, condition: int, mu: scalar, V: Twist):
    """Impulse p = m (w - constrain(w)) on a body of twist V [N s]."""
    w = v - velocity_at(V, x)
    return m * (w - _constrain(w, n, -wp.dot(w, n), condition, mu, _ZERO))


@wp.func
def constrain_tangent(w: vec3, n: vec3, condition: int, mu: scalar):
    """Derivative of constrain(w) with respect to w."""
    I = wp.identity(n=3, dtype=scalar)
    P = I - wp.outer(n, n)
    push = -wp.dot(w, n)
    C = P
    if condition == _STICKY:
        C = mat33()
    elif condition != _SLIP:
        if push <= _ZERO:
            C = I
        elif condition != _SEPARATE and mu > _ZERO:
            w_t = P @ w
            speed = wp.length(w_t)
            C = mat33()
            if speed > mu * push:
                share = mu * push / speed
                t = w_t / speed
                C = (_ONE - share) * P + share * wp.outer(t, t) + mu * wp.outer(t, n)
    return C


@wp.func
def sum_exchange(robot: RobotArrays, exchange: Exchange, links: Links, hardness: scalar, c: scalar, w: int, b: int):
    """Write the wrench of all points on body b, and its derivative, for the motion in `links`.

    The masses of the points are multiplied by `hardness`, which is 1 except during the continuation of `newton`.
    """
    tree = robot.tree
    V = links.twist[w * tree.elements + tree.element[b]]
    k = w * tree.bodies + b
    way = moved(vec3(), V, center_of(robot.design, links, k), c)
    first = exchange.first[k]
    force = vec3()
    torque = vec3()
    GG = mat33()
    XG = mat33()
    GX = mat33()
    XGX = mat33()
    mass = scalar(0.0)  # of points that stick; G = m I
    moment = vec3()
    moments = mat33()
    for i in range(first, first + exchange.count[k]):
        x = exchange.place[i] + way
        m = hardness * exchange.mass[i]
        relative = exchange.velocity[i] - velocity_at(V, x)
        p = m * relative
        if exchange.condition[i] == _STICKY:
            mass += m
            moment += m * x
            moments += wp.outer(m * x, x)
        else:
            n = exchange.normal[i]
            mu = exchange.friction[i]
            p = impulse(x, m, exchange.velocity[i], n, exchange.condition[i], mu, V)
            G = m * (wp.identity(n=3, dtype=scalar) - constrain_tangent(relative, n, exchange.condition[i], mu))
            X = wp.skew(x)
            GG += G
            XG += X @ G
            GX += G @ X
            XGX += X @ G @ X
        force += p
        torque += wp.cross(x, p)
    I = wp.identity(n=3, dtype=scalar)
    GG += mass * I
    XG += wp.skew(moment)
    GX += wp.skew(moment)
    XGX += moments - wp.trace(moments) * I
    exchange.wrench[k] = spatial(c * torque, c * force)
    exchange.blocks[4 * k] = -c * XGX
    exchange.blocks[4 * k + 1] = c * XG
    exchange.blocks[4 * k + 2] = -c * GX
    exchange.blocks[4 * k + 3] = c * GG


@wp.func
def differentiate_exchange(robot: RobotArrays, work: StepArrays, c: scalar, w: int, body: int, lane: int, lanes: int):
    """Add the derivatives of the wrench of the points of matter on a body to the Jacobian.

    The points move with the velocity of the centre of mass during the stage (`exchange`). The loop over columns is in
    here, because Warp copies structs at each call.
    """
    tree = robot.tree
    at = w * tree.freedom
    e = tree.element[body]
    k = w * tree.bodies + body
    V = work.links.twist[w * tree.elements + e]
    center = center_of(robot.design, work.links, k)
    force = linear(work.exchange.wrench[k])
    for j in range(lane, tree.freedom, lanes):
        if tree.carries[tree.of_dof[j] * tree.elements + e] == 1:
            s = work.change[at + j].displaced
            dV = work.change[at + j].drift + cross_motion(s, V)
            way = (velocity_at(dV, center) + wp.cross(angular(V), velocity_at(s, center))) / c
            dV = dV + spatial(vec3(), wp.cross(angular(V), way))
            dW = apply(work.exchange.blocks, 4 * k, dV) - spatial(wp.cross(way, force), vec3())
            column = w * tree.freedom * tree.freedom + j
            f = tree.element[body]
            while f >= 0:
                for m in range(freedom_of(tree.kind[f])):
                    i = tree.dof[f] + m
                    work.jacobian[column + i * tree.freedom] += wp.dot(work.axis[at + i], dW)
                f = tree.parent[f]


@wp.func
def touches_matter(work: StepArrays, k: int):
    """1 if points of matter touch body k of all worlds, else 0."""
    touched = int(0)
    if work.exchange.capacity > 0:
        touched = wp.min(1, work.exchange.count[k])
    return touched


@wp.func
def is_pressed(robot: RobotArrays, work: StepArrays, w: int):
    """1 if points of matter that are not bound touch bodies of a world, else 0."""
    pressed = int(0)
    if work.exchange.capacity > 0:
        end = (w + 1) * robot.tree.bodies - 1
        i = work.exchange.first[w * robot.tree.bodies]
        last = work.exchange.first[end] + work.exchange.count[end]
        while i < last and pressed == 0:
            if work.exchange.condition[i] != _STICKY:
                pressed = 1
            i += 1
    return pressed


@wp.func
def exchange_power(
    x: vec3, m: scalar, v: vec3, n: vec3, condition: int, mu: scalar, V: Twist, center: vec3, L: Twist, c: scalar,
    g: vec3,
):  # fmt: skip
    """Product (g - c L(y)) . p of an impulse p at the place y of a point at the end of the stage.

    g is the gradient with respect to p, L the virtual twist of the body.
    """
    y = moved(x, V, center, c)
    return wp.dot(g - c * velocity_at(L, y), impulse(y, m, v, n, condition, mu, V))


@wp.kernel(enable_backward=False)
def impulse_kernel(
    # model
    bodies: int,
    elements: int,
    element: wp.array[int],
    center: wp.array[vec3],
    # work
    exchange: Exchange,
    twist: wp.array[Twist],
    position: wp.array[vec3],
    rotation: wp.array[mat33],
    c: wp.array[scalar],
    # out
    impulse_out: wp.array[vec3],
):
    """Write the impulse of each point on its body."""
    w, b, lane = wp.tid()
    k = w * bodies + b
    V = twist[w * elements + element[b]]
    middle = position[k] + rotation[k] @ center[k]
    first = exchange.first[k]
    for i in range(first + lane, first + exchange.count[k], wp.block_dim()):
        y = moved(exchange.place[i], V, middle, c[w])
        impulse_out[i] = impulse(
            y, exchange.mass[i], exchange.velocity[i], exchange.normal[i], exchange.condition[i],
            exchange.friction[i], V,
        )  # fmt: skip


@wp.kernel(module=_gradients, enable_backward=False)
def point_gradients_kernel(
    # model
    bodies: int,
    elements: int,
    element: wp.array[int],
    center: wp.array[vec3],
    # work
    exchange: Exchange,
    twist: wp.array[Twist],
    position: wp.array[vec3],
    rotation: wp.array[mat33],
    c: wp.array[scalar],
    impulse_adj: wp.array[vec3],
    sweep: wp.array[Twist],
    # out
    gradients_out: ExchangeGradients,
    twist_adj_out: wp.array[Twist],
    sweep_adj_out: wp.array[Twist],
    position_adj_out: wp.array[vec3],
    rotation_adj_out: wp.array[mat33],
    center_adj_out: wp.array[vec3],
):
    """Write the gradients with respect to the points from those of the impulses; with `sweep`, add the virtual power's.

    The derivatives of the virtual power have `sweep` and no `impulse_adj`, those by the impulses no `sweep`. Gradients
    of twists, virtual twists, poses and centres of mass are added; the last ones only if they are wanted.
    """
    w, b, lane = wp.tid()
    k = w * bodies + b
    e = w * elements + element[b]
    V = twist[e]
    middle = position[k] + rotation[k] @ center[k]
    L = Twist()
    if sweep:
        L = sweep[e]
    V_total = Twist()
    L_total = Twist()
    middle_total = vec3()
    first = exchange.first[k]
    for i in range(first + lane, first + exchange.count[k], wp.block_dim()):
        g = vec3()
        if impulse_adj:
            g = impulse_adj[i]
        x_adj, m_adj, v_adj, n_adj, _condition, mu_adj, V_adj, middle_adj, L_adj, _c, _g = wp.grad(exchange_power)(
            exchange.place[i], exchange.mass[i], exchange.velocity[i], exchange.normal[i], exchange.condition[i],
            exchange.friction[i], V, middle, L, c[w], g,
        )  # fmt: skip
        if sweep:
            x_adj += gradients_out.place[i]
            m_adj += gradients_out.mass[i]
            v_adj += gradients_out.velocity[i]
            n_adj += gradients_out.normal[i]
            mu_adj += gradients_out.friction[i]
        gradients_out.place[i] = x_adj
        gradients_out.mass[i] = m_adj
        gradients_out.velocity[i] = v_adj
        gradients_out.normal[i] = n_adj
        gradients_out.friction[i] = mu_adj
        V_total += V_adj
        L_total += L_adj
        middle_total += middle_adj
    V_total = _sum_of_twists(V_total)
    L_total = _sum_of_twists(L_total)
    middle_total = _sum(middle_total)
    if lane == 0:
        twist_adj_out[e] = twist_adj_out[e] + V_total
        position_adj_out[k] = position_adj_out[k] + middle_total
        rotation_adj_out[k] = rotation_adj_out[k] + wp.outer(middle_total, center[k])
        if center_adj_out:
            center_adj_out[k] = center_adj_out[k] + wp.transpose(rotation[k]) @ middle_total
        if sweep:
            sweep_adj_out[e] = sweep_adj_out[e] + L_total
