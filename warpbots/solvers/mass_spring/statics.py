"""Static equilibrium of a lattice under its loads; on the host, in double precision."""

import numpy as np
from scipy.sparse.linalg import splu

from warpbots.solvers.mass_spring.modal_analysis import free_motions, spring_constants, stiffness_matrix
from warpbots.solvers.mass_spring.model import MassSpringModel

__all__ = ["equilibrium", "forces"]

_ITERATIONS = 30
_SMALL = 1e-10
"""Newton steps below this part of the lattice's size have converged."""


def forces(model: MassSpringModel, position: np.ndarray, world: int = 0) -> np.ndarray:
    """Forces of the springs on the masses [N], shape (n_masses, dim); rest lengths without signals and plastic strains.

    Args:
        model: Has the springs.
        position: Positions of the masses [m], shape (n_masses, dim).
        world: Number of the world.
    """
    i, j = model.lattice.ends.T
    k, l0, _ = spring_constants(model, world)
    d = position[j] - position[i]
    pull = (k * (1.0 - l0 / np.linalg.norm(d, axis=1)))[:, None] * d
    return np.stack([np.bincount(i, p, len(position)) - np.bincount(j, p, len(position)) for p in pull.T], axis=1)


def equilibrium(model: MassSpringModel, world: int = 0, parts: int = 8) -> np.ndarray:
    """Positions at rest under the model's loads, gravity and constraints [m], shape (n_masses, dim).

    Newton's method with the load applied in `parts`, each starting from the last. Obstacles and actuators are ignored.

    Args:
        model: What is loaded.
        world: Number of the world.
        parts: Number of load steps; more for slender bodies that bend far.

    Raises:
        RuntimeError: The lattice can move without a force, or the method does not converge.
    """
    Z, x = free_motions(model), model.lattice.position.copy()
    outer = model.load.numpy()[world] + model.mass.numpy()[world][:, None] * model.gravity.numpy()[world]
    small = _SMALL * np.ptp(x, axis=0).max()
    for share in np.arange(1, parts + 1) / parts:
        for _ in range(_ITERATIONS):
            K = (Z.T @ stiffness_matrix(model, world, x) @ Z).tocsc()
            residual = Z.T @ (share * outer + forces(model, x, world)).reshape(-1)
            try:
                step = Z @ splu(K).solve(residual)
            except RuntimeError as error:
                raise RuntimeError(
                    f"equilibrium: the lattice can move without a force; hold more of it ({error})"
                ) from None
            x += step.reshape(x.shape)
            if not np.abs(step).max() > small:
                break
        if not np.abs(step).max() <= small:
            raise RuntimeError(f"equilibrium: did not converge at {share:.2f} of the load; use more than {parts} parts")
    return x
