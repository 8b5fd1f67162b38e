"""Static equilibrium of a lattice under its loads; on the host, in double precision."""

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import splu

from warpbots.solvers.mass_spring.modal_analysis import free_motions, spring_constants, stiffness_matrix
from warpbots.solvers.mass_spring.model import MassSpringModel

__all__ = ["equilibrium", "forces"]

_ITERATIONS = 30
_SMALL = 1e-10
"""Largest Newton step of a converged solution, relative to the size of the lattice."""
_HALVINGS = 12
"""Largest number of trial lengths of a Newton step."""


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
    return x


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
