"""Contact forces of a world judged by Coulomb's law, with dense matrices in NumPy: independent of the solver's formulas."""

import dataclasses

import numpy as np
import pytest

from warpbots.contact import CODES
from warpbots.solvers.projective.contact_step import ContactStep


@dataclasses.dataclass(frozen=True)
class Solve:
    """One solve for contact forces in a world whose contacts were solved for together, N contacts.

    world: The world.
    sticking: Number of contacts that were eliminated.
    joints: Number of displacements of joints and rotations that the contacts share.
    before: Forces before the solve [N], or nu in the adjoint, shape (N, 3).
    after: The same after it.
    response: Displacement of the contacts per force [m/N], shape (N, 3, N, 3).
    q: q before the solve [m], or sum a_k a in the adjoint, shape (N, 3).
    normal: Normals, shape (N, 3).
    friction: Coulomb coefficients, shape (N,).
    skin: Compliances of the contacts themselves [m/N], shape (N,).
    own: Upper bounds of the diagonal of the response [m/N], shape (N,).
    by_displacement, by_force: Derivatives of the law, shape (N, 3, 3).
    """

    world: int
    sticking: int
    joints: int
    before: np.ndarray
    after: np.ndarray
    response: np.ndarray
    q: np.ndarray
    normal: np.ndarray
    friction: np.ndarray
    skin: np.ndarray
    own: np.ndarray
    by_displacement: np.ndarray
    by_force: np.ndarray

    def errors(self, forces: np.ndarray) -> np.ndarray:
        """What is missing for Coulomb's law at each contact [m].

        The gap is complementary to the pressure; friction is the point of the disk of its limit that is nearest to the
        friction minus a multiple of the slip.
        """
        u = self.q + np.einsum("iajb,jb->ia", self.response, forces - self.before) + self.skin[:, None] * forces
        gap, pressure = np.sum(u * self.normal, axis=1), np.sum(forces * self.normal, axis=1)
        slip, friction = u - gap[:, None] * self.normal, forces - pressure[:, None] * self.normal
        aim = friction - slip / self.own[:, None]
        limit, size = self.friction * np.maximum(pressure, 0.0), np.linalg.norm(aim, axis=1)
        nearest = aim * (np.minimum(limit, size) / np.maximum(size, 1e-300))[:, None]
        normal = np.minimum(gap / self.own, pressure)
        return self.own * np.maximum(np.abs(normal), np.linalg.norm(friction - nearest, axis=1))

    def adjoint_errors(self, nu: np.ndarray) -> np.ndarray:
        """What is missing for nu = sum a_k a + L^T nu at each contact."""
        force = np.einsum("jba,jb->ja", self.by_displacement, nu - self.before)
        a = self.q + np.einsum("iajb,jb->ia", self.response, force)
        return np.linalg.norm(a + np.einsum("iba,ib->ia", self.by_force, nu) - nu, axis=1)


def _skew(v: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def _rows(array, worlds: int) -> np.ndarray:
    values = array.numpy().copy()
    return values.reshape(worlds, len(values) // worlds, *values.shape[1:])


def _shared(step: ContactStep, w: int, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Displacement of contacts per displacement of joints and rotations, and of these per force: (3 N, m) and (m, 3 N)."""
    arrays, worlds, rotation = step._arrays, step._model.worlds, step._matrix.rotation
    freedom, bodies, size = arrays.coupling.freedom, rotation.count, len(chosen)
    J, R = np.zeros((size, 3, freedom + 3 * bodies)), np.zeros((freedom + 3 * bodies, size, 3))
    if freedom:
        width = arrays.coupling.width
        span = _rows(arrays.coupling.span, worlds)[w]
        jacobian, response = (
            _rows(a, worlds)[w].reshape(-1, width, 3) for a in (arrays.coupling.jacobian, arrays.coupling.response)
        )
        for i, c in enumerate(chosen):
            joints = [*range(span[c][0], span[c][1]), *range(span[c][2], span[c][3])]
            J[i][:, joints] = jacobian[c, : len(joints)].T
            R[joints, i] = response[c, : len(joints)]
    if bodies:
        node, weight = (_rows(a, worlds)[w] for a in (arrays.contacts.node, arrays.contacts.weight))
        body, arm, gain = rotation.body.numpy(), _rows(rotation.arm, worlds)[w], _rows(rotation.gain, worlds)[w]
        for i, c in enumerate(chosen):
            for n, share in zip(node[c], weight[c], strict=True):
                if n >= 0 and body[n] >= 0:
                    of = slice(freedom + 3 * body[n], freedom + 3 * body[n] + 3)
                    lever = share * _skew(arm[n].astype(float))
                    J[i][:, of] -= lever
                    R[of, i] += gain[body[n]] @ lever
    return J.reshape(3 * size, -1), R.reshape(-1, 3 * size)


def recorded_solves(monkeypatch: pytest.MonkeyPatch, step_of=ContactStep) -> tuple[list[Solve], list[Solve]]:
    """Lists to which each solve of a step, and each of an adjoint, adds the worlds whose contacts were eliminated."""
    forward, backward, solve = [], [], step_of._solve

    def recorded(step, kernels, active, z, seed, f):
        solve(step, kernels, active, z, seed, f)
        if not step._sizes.contacts:
            return
        arrays, worlds, topology, columns = step._arrays, step._model.worlds, step._topology, step._matrix.compliance
        contacts, counts, done = arrays.contacts, arrays.contacts.count.numpy(), arrays.forces.solved.numpy()
        points, changes = _rows(z, worlds), _rows(f, worlds)
        for w in range(worlds):
            swept, borne = counts[w]
            if active.numpy()[w] == 0 or done[w] == 0 or (borne == 0 and swept <= arrays.forces.side):
                continue
            order, total = _rows(contacts.order, worlds)[w], swept + (borne if done[w] == 1 else 0)
            entry = np.array([i if i < swept else len(order) - 1 - (i - swept) for i in range(total)])
            chosen = order[entry]
            assert (contacts.condition.numpy()[w * len(order) + chosen] == CODES["friction"]).all()
            mutual = _rows(columns.mutual, worlds)[w].reshape(columns.side, columns.side)[:swept, :swept]
            matter = np.zeros((total, total))
            matter[:swept, :swept] = mutual / step._workspace.scaling.numpy()[w]
            J, R = _shared(step, w, chosen)
            response = (np.kron(matter, np.eye(3)) + J @ R).reshape(total, 3, total, 3)
            at = topology.first + chosen
            before, after = (a[w, at, :3].astype(float) for a in (points, points + changes))
            kept = {
                name: _rows(getattr(contacts, name), worlds)[w][chosen].astype(float)
                for name in ("normal", "friction", "skin", "own", "by_displacement", "by_force")
            }
            q = _rows(contacts.gap, worlds)[w][entry].astype(float)
            sticking = int(arrays.sticking.kept.numpy()[w])
            used = int((np.abs(J).max(axis=0) > 0.0).sum())
            (backward if seed else forward).append(Solve(w, sticking, used, before, after, response, q, **kept))

    monkeypatch.setattr(step_of, "_solve", recorded)
    return forward, backward
