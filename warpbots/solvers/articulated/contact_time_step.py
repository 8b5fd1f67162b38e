"""Check whether steps are short enough for the contacts.

A point of stiffness k that carries a mass m is in contact for about pi / w, with w = sqrt(k / m). When contact begins
or ends, the time derivative of the force jumps within a step. The jump causes energy errors of second order, whose sign
depends on the time of the jump within the step: SDIRK2 gains energy about as often as it loses energy. BDF1 also loses
energy while contact lasts, to first order. The table gives the measured error of the energy after an impact, divided by
the energy of the impact. Each number is the root mean square over all times within a step of length h at which contact
can begin. The three numbers are for coefficients of restitution of 1, 0.5 and 0; for laws without a coefficient, whose
damping gives the same rebound, the errors differ by less than a third.

    h w     SDIRK2                   BDF1
    0.1     0.001 / 0.001 / 0.001    0.27 / 0.06 / 0
    0.3     0.009 / 0.008 / 0.01     0.60 / 0.15 / 0
    0.5     0.02  / 0.02  / 0.03     0.78 / 0.19 / 0
    1       0.07  / 0.07  / 0.11     0.94 / 0.23 / 0
    2       0.19  / 0.10  / 0.19     0.99 / 0.25 / 0
    5       0.46  / 0.69  / 0.35     1.00 / 0.25 / 0

With SDIRK2 and h w above 2, a single impact can end with twice its initial energy. BDF1 loses the fraction e^2 (1 -
exp(-pi h w)) of the energy for a restitution e. It never gains energy, and for e = 0 it is correct at every step
length.
"""

import math

import numpy as np
import warp as wp

from warpbots.numerics import launch
from warpbots.numerics.parameters import parameters_of
from warpbots.solvers.articulated.cloud_contact import area_of
from warpbots.solvers.articulated.contact_list import ContactList, approach
from warpbots.solvers.articulated.joints import freedom_of
from warpbots.solvers.articulated.kinematics import body_frame, joint_frame, move, twist_along
from warpbots.solvers.articulated.mass_inverse import invert_masses
from warpbots.solvers.articulated.model import ArticulatedModel, ArticulatedState
from warpbots.solvers.articulated.newton import Factors
from warpbots.solvers.articulated.robot_arrays import RobotArrays
from warpbots.solvers.articulated.spatial import angular, linear, scalar, vec3
from warpbots.solvers.articulated.step_arrays import ImplicitStage, StepArrays
from warpbots.solvers.articulated.surface_motion import solid_pose

__all__ = ["contacts_at_start", "unresolved"]

_LOST = 0.1
"""Largest relative error of the energy of an impact that a step may cause."""

_LAW = ("contact_stiffness", "contact_damping", "contact_restitution", "contact_friction", "contact_viscosity",
        "contact_scale")  # fmt: skip

_SPEED = 1.0
"""Speed of the impact for which a law without a coefficient of restitution is assessed [m/s]."""


def _longest(integrator: str, e: float) -> float:
    """Product h w at which the relative energy error of an impact with the restitution e is `_LOST`."""
    if integrator == "bdf1":
        return -math.log1p(-_LOST / e**2) / math.pi if e**2 > _LOST else math.inf
    return 1.0


def _advised(longest: float, h: float) -> float:
    """Largest step with two significant digits that is at most `longest` and shorter than `h`.

    The step is compared with `h` as rounded in messages.
    """
    digit = 10.0 ** (math.floor(math.log10(longest)) - 1)
    count = math.floor(longest / digit)
    shown = float(f"{h:.3g}")
    return next(step for n in range(count, 0, -1) if (step := float(f"{n * digit:.2g}")) <= longest and step < shown)


@wp.func
def away(robot: RobotArrays, work: StepArrays, w: int, s: int, x: vec3):
    """Unit vector from the centre of the sampled solid s to x; it replaces the normal outside of the samples."""
    solids = robot.solids
    R, p = solid_pose(robot.tree, work.links, solids, w, s)
    top = solids.resolution[s] - wp.vec3i(1, 1, 1)
    half = scalar(0.5) * vec3(scalar(top[0]), scalar(top[1]), scalar(top[2]))
    return wp.normalize(x - p - R @ wp.cw_mul(half, solids.size[s]))


@wp.kernel(enable_backward=False)
def mobility_kernel(
    # model
    robot: RobotArrays,
    # step
    stage: ImplicitStage,
    contact_list: ContactList,
    candidates: int,
    # out
    work_out: StepArrays,
    factors_out: Factors,
    softness_out: wp.array2d[scalar],
    mobility_out: wp.array2d[scalar],
    depth_out: wp.array2d[scalar],
):
    """Find for each law the contact point with the greatest ratio of area to effective mass, and for each pair a depth.

    The effective mass 1 / (J M^-1 J^T) of a point is its inertia against a force along the normal of the solid, with
    the mass matrix M and the Jacobian J of the velocity of the point along the normal. The kernel writes this ratio to
    `softness_out`, and the inverse of the effective mass of the point to `mobility_out`. The depth of a pair
    is the distance of its deepest point from the surface of the solid [m], 0 if all are outside.
    """
    w = wp.tid()
    tree = robot.tree
    contacts = robot.contacts
    n = tree.freedom
    for e in range(tree.elements):
        b = w * tree.bodies + tree.body[e]
        joint = joint_frame(robot.design, b)
        move(tree, robot.design, stage, joint, body_frame(robot.design, b), work_out.links, w, e)
        m = w * tree.elements + e
        for k in range(freedom_of(tree.kind[e])):
            one = vec3()
            one[k] = scalar(1.0)
            axis = twist_along(tree.kind[e], work_out.links.basis[m], work_out.links.position[m], one)
            work_out.axis[w * n + tree.dof[e] + k] = axis
    invert_masses(robot, work_out, factors_out, w)
    for c in range(candidates):
        pair = contact_list.pair[c]
        if contacts.pair_crossed[pair] >= 0:
            continue  # corners have the same law and area, and are farther from the centre than points of edges
        x, d, slope = approach(robot, work_out.links, w, pair, contact_list.point[c])
        depth_out[w, pair] = wp.max(depth_out[w, pair], -d)
        up = wp.normalize(slope)
        if wp.length(slope) == scalar(0.0):
            up = away(robot, work_out, w, contacts.pair_solid[pair], x)
        body = contacts.group_body[contacts.pair_group[pair]]
        solid = robot.solids.body[contacts.pair_solid[pair]]
        for j in range(n):
            e = tree.of_dof[j]
            side = int(0)
            if body >= 0:
                side += tree.carries[e * tree.elements + tree.element[body]]
            if solid >= 0:
                side -= tree.carries[e * tree.elements + tree.element[solid]]
            S = work_out.axis[w * n + j]
            work_out.step[w * n + j] = scalar(side) * wp.dot(up, linear(S) + wp.cross(angular(S), x))
        inverse = scalar(0.0)
        for i in range(n):
            s = work_out.step[w * n + i]
            if s != scalar(0.0):
                for j in range(n):
                    inverse += s * work_out.jacobian[(w * n + i) * n + j] * work_out.step[w * n + j]
        softness = area_of(contacts, w, pair, contact_list.point[c]) * inverse
        law = contacts.pair_law[pair]
        if softness > softness_out[w, law]:
            softness_out[w, law] = softness
            mobility_out[w, law] = inverse


def contacts_at_start(model: ArticulatedModel, state: ArticulatedState) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ratio of area to effective mass [m^2/kg], and inverse effective mass [1/kg], of the worst point of each law.

    The worst point has the greatest ratio, and so the shortest contacts. Each array has shape (worlds, n_contacts). The
    third array is the depth of the deepest point of each pair [m], shape (worlds, n_pairs). The result is cached,
    because it does not depend on the parameters of contact laws.
    """
    arrays = [getattr(model, name) for name in parameters_of(ArticulatedModel) if name not in _LAW]
    kept = model.workspace.contacts_at_start
    if kept and all(a is b for a, b in zip(arrays, kept[0], strict=True)):
        return kept[1]
    worlds, n, device = model.worlds, model.tree.freedom, model.device
    factors = Factors()
    factors.matrix = wp.zeros(worlds * n * n, dtype=scalar, device=device)
    factors.pivot = wp.zeros(worlds * n, dtype=int, device=device)
    laws, pairs = len(model.scene.laws), model.contact_topology.pairs
    found = [wp.zeros((worlds, size), dtype=scalar, device=device) for size in (laws, laws, pairs)]
    contact_list = model.workspace.contact_list
    inputs = [model.robot_arrays, model.workspace.at_rest(state), contact_list, contact_list.pair.size]
    launch(mobility_kernel, worlds, inputs, [model.workspace.work, factors, *found], device)
    softness, mobility, depth = (array.numpy() for array in found)
    model.workspace.contacts_at_start = arrays, (softness, mobility, depth)
    return softness, mobility, depth


def unresolved(model: ArticulatedModel, state: ArticulatedState, integrator: str, h: float) -> str | None:
    """Warning that names the contact that steps of length `h` resolve worst.

    The result is None if the energy error of this contact is at most a tenth. Each point is assumed to be alone in
    contact. A law without a coefficient of restitution is assessed for impacts at 1 m/s.

    Args:
        model: The model.
        state: State at which effective masses are computed.
        integrator: Name of the integrator.
        h: Length of a step [s].
    """
    if not (model.contact_topology.pairs and model.tree.freedom):
        return None
    softness, mobility, _ = contacts_at_start(model, state)
    stiffness, damping = model.contact_stiffness.numpy(), model.contact_damping.numpy()
    bounded = np.array([c.restitution is not None for c in model.scene.laws])
    with np.errstate(divide="ignore", invalid="ignore"):
        rebound = np.where(bounded, model.contact_restitution.numpy(), 1.0 / (1.0 + damping / stiffness * _SPEED / 1.5))
        frequency = np.sqrt(stiffness * model.contact_scale.numpy()[:, None] * softness)
        longest = np.vectorize(lambda e: _longest(integrator, e))(rebound) / frequency
    longest[~(frequency > 0.0)] = np.inf
    longest[:, [c.impact == "instant" for c in model.scene.laws]] = np.inf
    at = np.unravel_index(np.argmin(longest), longest.shape)
    if h <= longest[at]:
        return None
    k, m = frequency[at] ** 2 / mobility[at], 1.0 / mobility[at]
    advice = "" if integrator == "bdf1" else ", or integrator='bdf1', under which unresolved contacts do not bounce"
    return (
        f"Contact {model.scene.laws[at[1]].name!r} is not resolved by steps of {h:.3g} s: a point of "
        f"{k:.3g} N/m that carries {m:.3g} kg is in contact for {math.pi / frequency[at]:.2g} s, and the energy "
        f"after impacts is wrong by more than a tenth; use steps of at most {_advised(longest[at], h):.2g} s, softer "
        f"contact{advice}"
    )
