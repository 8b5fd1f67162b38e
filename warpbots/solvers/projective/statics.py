"""Static equilibrium of bodies under their loads, actuators and contacts."""

import dataclasses
from typing import Any

import numpy as np
import warp as wp

from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.report import KEPT, keep_report
from warpbots.solvers.projective.stability import warn_of_instability
from warpbots.solvers.projective.states import ProjectiveState

__all__ = ["Equilibrium", "equilibrium"]


@dataclasses.dataclass(frozen=True)
class Equilibrium:
    """A static equilibrium.

    Attributes:
        state: The state, without motion, as Warp arrays.
        residual: Largest unbalanced force on a node, including contact forces [N], shape (worlds,).
        moved: Largest displacement of a node, or of a joint of a body without flesh, in the last step [m or rad], shape
            (worlds,).
        steps: Number of steps.
    """

    state: ProjectiveState[wp.array]
    residual: np.ndarray
    moved: np.ndarray
    steps: int


def equilibrium(
    solver: Any,
    model: ProjectiveModel,
    control: np.ndarray | None = None,
    state: ProjectiveState[wp.array] | None = None,
    dt: float = 1.0,
    steps: int = 200,
    tolerance: float | None = None,
) -> Equilibrium:
    """The equilibrium to which long steps of implicit Euler lead, each of which starts with zero velocities.

    A step from rest minimises E(x) + 1/(2 dt^2) |x - x_last|_M^2, with the energy E of matter, loads and actuators, and
    with Coulomb's law at contacts. Each step divides the distance from the equilibrium by 1 + (omega dt)^2, with the
    angular frequency omega of the slowest motion. The sequence ends when no node moves further than `tolerance`.
    An instability that grows as exp(s t) multiplies this distance by 1 / (1 - (s dt)^2): for s dt above the square root
    of 2 the sequence converges to the unstable equilibrium, too; for a smaller dt it departs from it. At the end, the
    adjoint of the last step shows whether a motion grows, and a warning names its body and the time 1 / s, without
    damping. Where one seems to grow, a step of at most half this time decides. Not found are motions that grow by less
    than 5 % in a step; motions with s^2 below the rounding of stiffness, 1e-7 k / m in single precision, with the
    stiffness k and the mass m of a node; and motions that oscillate as they grow, which friction and fluids can cause.

    Contacts are included; if friction allows several equilibria, the result is the one that bodies reach from `state`.
    A long step of a simulation that starts at this equilibrium has the derivatives of the equilibrium. Prescribed
    motions go on in each step, for `dt`.

    Args:
        solver: The `ProjectiveDynamics` with the tolerance of a step.
        model: The model.
        control: Control signals in [-1, 1], shape (worlds, channels) or (channels,); None for no control.
        state: The state at the start; None for bodies at rest. Velocities in the state are ignored.
        dt: Length of a step [s]. A body that only contact and friction hold may need shorter steps, and so does one
            that may buckle or tip over.
        steps: Number of steps after which to give up.
        tolerance: Largest displacement of a node in the last step [mean edges]; None for the tolerance of `solver`.

    Raises:
        ValueError: `control` has the wrong shape or is out of range, or `dt`, `steps` or `tolerance` is not positive.
        RuntimeError: A step does not converge, or bodies still move after `steps` of them.
    """
    if dt <= 0.0 or steps < 1:
        raise ValueError(f"equilibrium: dt must be positive [s], and steps at least 1, got {dt:g} and {steps}")
    tolerance = solver.tolerance if tolerance is None else tolerance
    topology = model.topology
    small = tolerance * topology.point_edge[: topology.sizes.nodes]
    little = tolerance * topology.components.length[topology.of_joints[0]]  # of coordinates: m, or rad at an arm of 1 m
    little[~_unseen(model)] = np.inf
    if not tolerance > 0.0:
        raise ValueError(f"equilibrium: tolerance must be positive [mean edges], got {tolerance:g}")
    start, state, after = state, solver.state(model, requires_grad=True), solver.state(model, requires_grad=True)
    if start is not None:
        for given, array in zip(start.fields(), state.fields(), strict=True):
            wp.copy(array, given)
    signals = wp.array(_signals(model, control), dtype=model.scalar, device=model.device)
    for count in range(1, steps + 1):
        _stop(state)
        solver.step(model, state, signals, after, dt)
        while grown := solver.grown(model):
            model = grown
            solver.step(model, state, signals, after, dt)
        before, reached = ({n: a.numpy() for n, a in vars(s).items()} for s in (state, after))
        if reached["lost"].any():
            raise RuntimeError(f"equilibrium: step {count}: {solver.diagnose(model, before, reached, dt)}")
        moved = np.linalg.norm(reached["position"] - before["position"], axis=-1)
        turned = np.abs(reached["q"] - before["q"]) if model.skeleton else np.zeros((model.worlds, 0))
        state, after = after, state
        if (moved <= small).all() and (turned <= little).all():
            report = keep_report(model, dt, solver.tolerance_of(dt))
            found = state.mapped(lambda a: wp.clone(a, requires_grad=False))
            _stop(found)
            warn_of_instability(solver, model, after, signals, state, dt)
            model.workspace.stepped.fill_(KEPT)
            seen = np.append(moved, turned * np.isfinite(little), axis=1)
            return Equilibrium(found, report.residual, seen.max(axis=1), count)
    if (turned > little).any():
        k = int((turned / little).max(axis=0).argmax())
        joint = next(n for n, at in model.skeleton.robot.coordinates.items() if at.start <= k < at.stop)
        raise RuntimeError(
            f"equilibrium: a coordinate of joint {joint!r} still changes by {turned[:, k].max():.3g} in a step "
            f"(tolerance {little[k]:.3g}) after {steps} steps of {dt:g} s; constrain free bodies, use more steps or "
            f"another dt, or accept a larger tolerance"
        )
    node = int((moved / small).max(axis=0).argmax())
    raise RuntimeError(
        f"equilibrium: a node still moves by {moved[:, node].max():.3g} m in a step (tolerance {small[node]:.3g} m) "
        f"after {steps} "
        f"steps of {dt:g} s; constrain free bodies, use more steps or another dt, or accept a larger tolerance"
    )


def _unseen(model: ProjectiveModel) -> np.ndarray:
    """Which joint coordinates move a body to which no node is bound, shape (n_coordinates,), bool."""
    bound, robot = np.unique(model.mesh.bone), model.skeleton and model.skeleton.robot
    unseen = np.zeros(len(robot.start) if robot else 0, dtype=bool)
    for k, joint in enumerate(robot.joints if robot else ()):
        unseen[robot.coordinates[joint.name]] = k not in bound
    return unseen


def _signals(model: ProjectiveModel, control: np.ndarray | None) -> np.ndarray:
    """Control signals of every world, shape (worlds, channels)."""
    shape = model.worlds, model.channels
    try:
        signals = np.broadcast_to(np.zeros(shape) if control is None else np.asarray(control, dtype=float), shape)
    except ValueError:
        raise ValueError(
            f"equilibrium: control must have the shape {shape} or {shape[1:]}, got {np.shape(control)}"
        ) from None
    wrong = np.argwhere(~(np.abs(signals) <= 1.0))
    if len(wrong):
        world, channel = (int(i) for i in wrong[0])
        raise ValueError(
            f"equilibrium: control[{world}, {channel}] of actuator {model.scene.actuators[channel].name!r} is "
            f"{signals[world, channel]:g}; controls must be in [-1, 1]: bound yours with tanh"
        )
    return signals


def _stop(state: ProjectiveState[wp.array]) -> None:
    """Set all velocities of a state to zero."""
    for name, values in vars(state).items():
        if name in ("velocity", "qd"):
            values.zero_()
