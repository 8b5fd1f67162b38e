"""Whether an equilibrium is stable: motions that grow from it, found by adjoints of the step that ended there."""

import dataclasses
from typing import Any

import numpy as np
import warp as wp

from warpbots.numerics import clear_gradients, real_numpy
from warpbots.scene import RigidBody, SoftBody
from warpbots.solvers.growing_motions import growing_motions, linear_fields, unstable
from warpbots.solvers.projective.gradient_diagnosis import gradient_diagnosis
from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.states import ProjectiveState
from warpbots.user_warning import warn_user

__all__ = ["warn_of_instability"]

_TOLERANCE = 1e-3
"""Tolerance of the adjoints; that of a step would give the same growth to three digits, in twice the time."""
_ERROR = 3.0 * _TOLERANCE
"""Error of the relative change of a displacement in a step."""
_ROUNDING = float(np.finfo(real_numpy).eps)
"""Error of the stiffness of a smooth motion relative to the stiffness of a node; free rotations had a quarter of it."""
_NOISE = 1e-2
"""Error of an eigenvalue of a stiff motion relative to the eigenvalue of the softest one."""
_PATIENCE = 200
"""Number of iterations after which an adjoint has failed, if `ProjectiveDynamics.max_iterations` is not less."""
_SHORTER = 20.0
"""Ratio of the length of a step to that of the step that replaces it if its adjoint fails."""


def warn_of_instability(
    solver: Any, model: ProjectiveModel, before: ProjectiveState, control: wp.array, after: ProjectiveState, dt: float
) -> None:
    """Warn if a motion grows from the equilibrium in which a step ended, or if this could not be found out.

    The adjoint of a long step may not converge, such as one of a second for a rigid body that stands on the floor. Then
    a shorter step from the equilibrium, which ends there too, is judged. So is a step of at most half the time 1 / s in
    which a motion seems to grow: stiff motions in contact have small eigenvalues in a long step, whose sign may be an
    error. Its ratio is a power of two, because a matrix is kept for each length of a step.

    Args:
        solver: The `ProjectiveDynamics` that has just taken the step.
        model: The model.
        before: The state at the start of the step, at rest, with gradients; overwritten.
        control: Control signals, shape (worlds, channels).
        after: The state at the end of the step, with gradients; overwritten.
        dt: Length of the step [s].
    """
    motions = _Motions(solver, model, before, control, after, dt)
    growth, why = motions.growth()
    for _ in range(2):  # a shorter step because of an adjoint that fails, and another one to confirm a growth
        slowest = growth[growth > 0.0].min(initial=np.inf)
        ratio = _SHORTER if np.isnan(growth).any() else float(np.exp2(np.ceil(np.log2(2.0 * slowest))))
        if not 1.0 < ratio < np.inf:
            break
        before, after, dt = after, before, dt / ratio
        for name in motions.names:
            getattr(before, name).zero_()
        solver.step(model, before, control, after, dt)
        motions = _Motions(solver, model, before, control, after, dt)
        growth, why = motions.growth()
    if (growth > 0.0).any():
        part = int(np.nanargmax(growth))
        rate = growth[part] / dt
        where = f" in world {part // len(model.topology.components)}" if model.worlds > 1 else ""
        remedy = f"begin in a `state` that is bent or tilted, with a dt of at most {0.5 / rate:.2g} s"
        warn_user(unstable(motions.body(part), rate, where, remedy))
    elif np.isnan(growth).any():
        warn_user(f"equilibrium: it is not known whether this equilibrium is stable, because {why}")


class _Motions:
    """Velocities of nodes and joints of all worlds in one row, and products with the derivative of a step."""

    def __init__(self, solver: Any, model: ProjectiveModel, before: Any, control: wp.array, after: Any, dt: float):
        """Collect the arrays; the arguments are those of `warn_of_instability`."""
        limit = min(_PATIENCE, solver.max_iterations)
        self._solver = dataclasses.replace(solver, tolerance=_TOLERANCE, max_iterations=limit)
        self._model, self._dt = model, dt
        self._before, self._control, self._after = before, control, after
        self.names = ("velocity", "qd") if model.skeleton else ("velocity",)
        topology, worlds, count = model.topology, model.worlds, len(model.topology.components)
        free = ~topology.fixed & (model.mesh.bone < 0)
        self._node_mass = model.nodes.mass.numpy().reshape(worlds, -1).astype(float)
        mass = np.repeat(np.where(free, self._node_mass, 0.0), 3, axis=1)
        self._joint = self._joints()
        if model.skeleton:  # links may have no mass; angles count at an arm of 1 m
            mean = model.skeleton.mass.numpy().mean(axis=1, keepdims=True)
            mass = np.hstack([mass, np.repeat(mean, len(self._joint), axis=1)])
        self._mass = mass.reshape(-1)
        root = model.matrices.islands.root.numpy().reshape(worlds, -1)
        component = np.append(np.repeat(topology.components.of[: len(free)], 3), topology.of_joints[1])
        self._part = (np.arange(worlds)[:, None] * count + root[:, component]).reshape(-1)
        moving = linear_fields(model.mesh.position, topology.components.of[: len(free)])
        turning = np.random.default_rng(0).standard_normal(len(self._joint))
        self._start = np.tile(np.append(moving, turning), worlds)
        self._neutral = self._errors(root, free)

    def _joints(self) -> np.ndarray:
        """Index of the body that each joint velocity moves, shape (freedom,), int."""
        robot = self._model.skeleton and self._model.skeleton.robot
        body = np.zeros(len(robot.start_velocity) if robot else 0, dtype=int)
        for k, joint in enumerate(robot.joints if robot else ()):
            body[robot.velocities[joint.name]] = k
        return body

    def _errors(self, root: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Error of w^2 h^2 in each part, from the rounding of stiffness."""
        model, mass, (worlds, count) = self._model, self._node_mass, root.shape
        stiff = model.matrices.of(self._dt).stiff[: len(free)] * model.workspace.scaling.numpy()[:, None]
        square = np.divide(stiff, mass, out=np.zeros_like(mass), where=free & (mass > 0.0))
        error = np.zeros((worlds, count))
        w, i = np.nonzero(square)
        np.maximum.at(error, (w, root[w, model.topology.components.of[i]]), _ROUNDING * self._dt**2 * square[w, i])
        return error.reshape(-1)

    def growth(self) -> tuple[np.ndarray, str | None]:
        """Growth in a step of each part of all worlds, NaN where an adjoint failed, and why it did."""
        model, solver = self._model, self._solver
        gradient_diagnosis(model, 0, 1, solver.tolerance, solver.max_iterations)  # forgets an earlier adjoint
        given = self._start, self._mass, self._part, self._neutral
        kept = [(a.grad, wp.clone(a.grad)) for a in model.parameter_arrays() if a.requires_grad]
        growth, self._found = growing_motions(self._product, *given, _ERROR, _NOISE)
        for gradient, before in kept:
            wp.copy(gradient, before)
        return growth, gradient_diagnosis(model, 0, 1, solver.tolerance, solver.max_iterations)

    def _product(self, momentum: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Transposes of A and B of `growing_motions` times a vector of the form of momenta, each of shape (n,)."""
        rows = np.split(momentum.reshape(self._model.worlds, -1), [self._model.mesh.position.size], axis=1)
        clear_gradients([*self._before.fields(), *self._after.fields()])
        for name, values in zip(self.names, rows, strict=False):
            array = getattr(self._after, name).grad
            array.assign(values.reshape(array.numpy().shape))
        self._solver._step_adjoint(self._model, self._before, self._control, self._after, self._dt)
        before = {
            n: a.grad.numpy().reshape(self._model.worlds, -1).astype(float) for n, a in vars(self._before).items()
        }
        kept, less = [before[name] for name in self.names], [before["position"]]
        if self._model.skeleton:
            less.append(self._turned(before["q"]))
        return np.hstack(kept).reshape(-1), -self._dt * np.hstack(less).reshape(-1)

    def _turned(self, g: np.ndarray) -> np.ndarray:
        """The gradient with respect to joint displacements, from the gradient with respect to coordinates.

        Turning a ball by a small angle a in the axes of the child changes its quaternion q by q (a, 0) / 2.
        """
        robot, q = self._model.skeleton.robot, self._before.q.numpy()
        found = np.zeros((len(g), robot.freedom))
        for joint in robot.joints:
            at, to = robot.coordinates[joint.name], robot.velocities[joint.name]
            if at.stop - at.start == to.stop - to.start:
                found[:, to] = g[:, at]
                continue
            found[:, to.start : to.stop - 3] = g[:, at.start : at.stop - 4]
            (x, y, z, w), of_q = q[:, at.stop - 4 : at.stop].T, g[:, at.stop - 4 : at.stop]
            turn = np.array([[w, z, -y, -x], [-z, w, x, -y], [y, -x, w, -z]])  # rows: d q / d a
            found[:, to.stop - 3 : to.stop] = 0.5 * np.einsum("acw,wc->wa", turn, of_q)
        return found

    def body(self, part: int) -> SoftBody | RigidBody:
        """The body with most of the kinetic energy of the motion that has been found in a part."""
        model, scene = self._model, self._model.scene
        energy = (self._found**2 * self._mass * (self._part == part)).reshape(model.worlds, -1).sum(axis=0)
        of_nodes, of_joints = np.split(energy, [model.mesh.position.size])
        own = np.bincount(np.repeat(model.mesh.body, 3), of_nodes, len(scene.bodies))
        rigid = np.array([k for k, body in enumerate(scene.bodies) if isinstance(body, RigidBody)], dtype=int)
        np.add.at(own, rigid[self._joint], of_joints)
        return scene.bodies[int(own.argmax())]
