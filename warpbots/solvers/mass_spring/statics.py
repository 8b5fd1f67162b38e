"""Static equilibrium of a lattice under its loads; on the host, in double precision."""

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import splu

from warpbots.solvers.growing_motions import growing_motions, linear_fields, unstable
from warpbots.solvers.mass_spring.modal_analysis import free_motions, spring_constants, stiffness_matrix
from warpbots.solvers.mass_spring.model import MassSpringModel
from warpbots.user_warning import warn_user

__all__ = ["equilibrium", "forces"]

_ITERATIONS = 30
_SMALL = 1e-10
"""Largest Newton step of a converged solution, relative to the size of the lattice."""
_HALVINGS = 12
"""Largest number of trial lengths of a Newton step."""
_STEP = 1.0
"""Length of the step whose eigenvalues tell whether an equilibrium is stable [s]."""
_ROUNDING = 1e-13
"""Error of the stiffness of a smooth motion, relative to the stiffness of a mass."""
_NOISE = 1e-9
"""Error of an eigenvalue relative to the largest one."""
_REMEDY = "add a small load to the side, and more `parts`, or simulate a motion with drag from a bent state"


def forces(model: MassSpringModel, position: np.ndarray, world: int = 0) -> np.ndarray:
    """Forces of the springs on the masses [N], shape (n_masses, dim); actuators and plastic strains are ignored.

    Args:
        model: Model of the springs.
        position: Positions of the masses [m], shape (n_masses, dim).
        world: Index of the world.
    """
    i, j = model.lattice.ends.T
    k, l0, _ = spring_constants(model, world)
    d = position[j] - position[i]
    pull = (k * (1.0 - l0 / np.linalg.norm(d, axis=1)))[:, None] * d
    return np.stack([np.bincount(i, p, len(position)) - np.bincount(j, p, len(position)) for p in pull.T], axis=1)


def equilibrium(model: MassSpringModel, world: int = 0, parts: int = 8) -> np.ndarray:
    """Positions in static equilibrium under loads, gravity and constraints [m], shape (n_masses, dim).

    The load is increased in `parts` equal increments. For each increment Newton's method starts from the previous
    solution. Each Newton step is halved until the simplified Newton step from its end point is shorter than the Newton
    step itself (Deuflhard, Newton Methods for Nonlinear Problems, section 3.3). Obstacles and actuators are ignored.
    Newton's method also finds unstable equilibria, as a column that stays straight beyond its buckling load; a warning
    then names the body that leaves it.

    Args:
        model: Model with loads and gravity.
        world: Index of the world.
        parts: Number of load increments; slender bodies that bend far need more increments.

    Raises:
        RuntimeError: The lattice can move without resistance, or the method does not converge.
    """
    Z, x = free_motions(model), model.lattice.position.copy()
    outer = model.load.numpy()[world] + model.mass.numpy()[world][:, None] * model.gravity.numpy()[world]
    small = _SMALL * np.ptp(x, axis=0).max()
    for share in np.arange(1, parts + 1) / parts:
        for _ in range(_ITERATIONS):
            newton = _newton_step(model, world, x, Z, share * outer)
            step = newton(x)
            if not np.abs(step).max() > small:
                x = x + step
                break
            trials = (0.5**n * step for n in range(_HALVINGS))
            length = np.linalg.norm(step)
            x = x + next((s for s in trials if np.linalg.norm(newton(x + s)) < length), 0.5**_HALVINGS * step)
        if not np.abs(step).max() <= small:
            raise RuntimeError(f"equilibrium: did not converge at {share:.2f} of the load; use more than {parts} parts")
    _warn_of_instability(model, world, x, Z)
    return x


def _warn_of_instability(model: MassSpringModel, world: int, x: np.ndarray, Z: csr_matrix) -> None:
    """Warn if a motion grows from an equilibrium."""
    mass = np.repeat(model.mass.numpy()[world].astype(np.float64), model.dim)
    K, M = (Z.T @ A @ Z for A in (stiffness_matrix(model, world, x), diags(mass)))
    M, diagonal = M.diagonal(), K.diagonal()
    H = splu((diags(M) + _STEP**2 * K).tocsc())
    part, field = np.zeros(len(M), dtype=int), linear_fields(model.lattice.position, model.lattice.body)
    neutral = np.array([_STEP**2 * _ROUNDING * np.abs(diagonal / M).max(initial=0.0)])
    start = Z.T @ field.reshape(-1)

    def product(g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u = H.solve(g)
        return M * u, _STEP**2 * (K @ u)

    growth, motion = growing_motions(product, start, M, part, neutral, _NOISE, _NOISE)
    if growth[0] > 0.0:
        energy = (mass * (Z @ motion) ** 2).reshape(x.shape).sum(axis=1)
        body = model.scene.bodies[int(np.bincount(model.lattice.body, energy).argmax())]
        where = f" in world {world}" if model.worlds > 1 else ""
        warn_user(unstable(body, growth[0] / _STEP, where, _REMEDY))


def _newton_step(
    model: MassSpringModel, world: int, start: np.ndarray, Z: csr_matrix, load: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Function that maps positions to the Newton step there, both of shape (n_masses, dim).

    The step uses the forces at the given positions and the stiffness matrix at the positions `start`.
    """
    try:
        K = splu((Z.T @ stiffness_matrix(model, world, start) @ Z).tocsc())
    except RuntimeError as error:
        raise RuntimeError(f"equilibrium: the lattice can move without a force; hold more of it ({error})") from None

    def step(x: np.ndarray) -> np.ndarray:
        return (Z @ K.solve(Z.T @ (load + forces(model, x, world)).reshape(-1))).reshape(x.shape)

    return step
