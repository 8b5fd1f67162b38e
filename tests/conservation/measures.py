"""Momentum, angular momentum and energy of a state, in float64."""

import numpy as np
from cases import to_numpy

from warpbots.simulation import Simulation
from warpbots.solvers import State
from warpbots.trajectory import Trajectory


def masses(sim: Simulation) -> np.ndarray:
    """Mass of every particle [kg], shape (worlds, n)."""
    if "mass" in sim.parameters():
        return to_numpy(sim.parameter("mass"))
    if "volume" not in sim.parameters():  # nodes of elements
        return np.tile(sim.model.matter.density * sim.model.matter.volume, (sim.worlds, 1))
    return to_numpy(sim.parameter("density")) * to_numpy(sim.parameter("volume"))


def momentum(sim: Simulation, state: State) -> np.ndarray:
    """sum m v [kg m/s], shape (worlds, dim)."""
    return np.einsum("wp,wpi->wi", masses(sim), to_numpy(state.velocity))


def angular_momentum(sim: Simulation, state: State) -> np.ndarray:
    """sum m x cross v about the origin [kg m^2/s], shape (worlds, 1 or 3).

    A particle of APIC also spins: its affine field C on the quadratic B-spline's moment dx^2/4 carries
    m dx^2/4 axial(C - C^T) (Jiang et al. 2015, "The affine particle-in-cell method", proposition 5.7).
    """
    spin = np.einsum("wpi,wpj->wpij", to_numpy(state.velocity), to_numpy(state.position))
    if hasattr(state, "velocity_gradient"):
        spin = spin + sim.solver.dx**2 / 4 * to_numpy(state.velocity_gradient)
    return _moment(sim, spin)


def taken_by_implicit_euler(sim: Simulation, trajectory: Trajectory) -> np.ndarray:
    """Angular momentum that a motion in single steps gains by the rule, h sum m v' cross v [kg m^2/s], (worlds, 3).

    Forces within a body have no torque about where it ends, sum m x' cross (v' - v) = 0, and x' = x + h v'. A body that
    spins at w loses (w h)^2 of its angular momentum in a step.
    """
    velocities = [to_numpy(state.velocity) for _, state in trajectory.states()]
    pairs = zip(velocities, velocities[1:], strict=False)
    return sim.dt * sum(_moment(sim, np.einsum("wpi,wpj->wpij", before, after)) for before, after in pairs)


def _moment(sim: Simulation, spin: np.ndarray) -> np.ndarray:
    """sum m b cross a for spin = a b^T, shape (worlds, n, dim, dim)."""
    L = np.einsum("wp,wpij->wij", masses(sim), spin - np.swapaxes(spin, 2, 3))
    pairs = [(1, 0)] if L.shape[-1] == 2 else [(2, 1), (0, 2), (1, 0)]
    return np.stack([L[:, i, j] for i, j in pairs], axis=-1)


def kinetic_energy(sim: Simulation, state: State) -> np.ndarray:
    """sum m/2 (|v|^2 + dx^2/4 |C|^2) [J], shape (worlds,)."""
    square = (to_numpy(state.velocity) ** 2).sum(-1)
    if hasattr(state, "velocity_gradient"):
        square = square + sim.solver.dx**2 / 4 * (to_numpy(state.velocity_gradient) ** 2).sum((-1, -2))
    return (masses(sim) / 2 * square).sum(-1)


def elastic_energy(sim: Simulation, state: State) -> np.ndarray:
    """sum k/2 (l - l0)^2, or sum V (mu/2 (|F|^2 - d) - mu ln J + lam/2 ln^2 J) of neo-Hookean matter [J]; (worlds,).

    That of springs, and of elements other than linear ones, is what their solver measures.
    """
    if "stiffness" in sim.parameters() or (hasattr(sim.model.matter, "tets") and not len(sim.model.matter.tets)):
        return to_numpy(sim.sense(state).elastic_energy)
    E = to_numpy(sim.parameter("youngs_modulus"))
    own = "poissons_ratio" in sim.parameters()
    nu = to_numpy(sim.parameter("poissons_ratio")) if own else sim.scene.soft[0].material.poissons_ratio
    mu, lam = E / (2 * (1 + nu)), E * nu / ((1 + nu) * (1 - 2 * nu))
    if hasattr(state, "deformation"):
        F, V = to_numpy(state.deformation), to_numpy(sim.parameter("volume"))
    else:
        tets = sim.model.tets.numpy() if hasattr(sim.model, "tets") else sim.model.matter.tets
        rest, now = (
            x[:, tets[:, 1:]] - x[:, tets[:, :1]] for x in map(to_numpy, (sim.state().position, state.position))
        )
        F, V = np.swapaxes(np.linalg.inv(rest) @ now, -1, -2), np.linalg.det(rest) / 6.0
    ln_J = np.log(np.linalg.det(F))
    return (V * (mu / 2 * ((F**2).sum((-1, -2)) - F.shape[-1]) - mu * ln_J + lam / 2 * ln_J**2)).sum(-1)
