"""What symmetry and small strains demand of every law."""

import numpy as np
import pytest
from cases import FLUIDS, ROTATING_LAWS
from law_points import deformations, elasticities, evaluate, lame, rotations

pytestmark = pytest.mark.verification

TOLERANCE = 1e-12


@elasticities(ROTATING_LAWS + FLUIDS)
def test_a_turned_observer_sees_the_same(law, incompressibility, dim, rng):
    """Frame indifference: Psi(Q F) = Psi(F) and tau(Q F) = Q tau(F) Q^T."""
    F = deformations(dim)
    Q = rotations(rng, len(F), dim)
    point, turned = evaluate(law, incompressibility, F), evaluate(law, incompressibility, Q @ F)
    scale = 1.0 + np.abs(point.stress).max()
    assert np.abs(turned.energy - point.energy).max() < TOLERANCE * scale
    assert np.abs(turned.stress - Q @ point.stress @ np.swapaxes(Q, 1, 2)).max() < TOLERANCE * scale


@elasticities(ROTATING_LAWS + FLUIDS)
def test_matter_has_no_grain(law, incompressibility, dim, rng):
    """Isotropy: Psi(F Q) = Psi(F) and tau(F Q) = tau(F)."""
    F = deformations(dim)
    Q = rotations(rng, len(F), dim)
    point, turned = evaluate(law, incompressibility, F), evaluate(law, incompressibility, F @ Q)
    scale = 1.0 + np.abs(point.stress).max()
    assert np.abs(turned.energy - point.energy).max() < TOLERANCE * scale
    assert np.abs(turned.stress - point.stress).max() < TOLERANCE * scale


@elasticities(ROTATING_LAWS + FLUIDS)
def test_stress_exerts_no_torque(law, incompressibility, dim):
    """Tau is symmetric where the energy is frame-indifferent."""
    stress = evaluate(law, incompressibility, deformations(dim)).stress
    assert np.abs(stress - np.swapaxes(stress, 1, 2)).max() < TOLERANCE * (1.0 + np.abs(stress).max())


@elasticities()
def test_small_strains_follow_hooke(law, incompressibility, dim, rng):
    """Tau = 2 mu e + lam tr(e) I + o(e) with Lame's constants; p = 2 adds 2 K tr(e) I, K = E / (3 (1 - 2 nu)).

    With a displacement gradient of size h = 1e-6 the error is O(h) of the stress: below 20 h (the third derivatives of
    the energies are at most near 10 of the second).
    """
    E, nu, h = 2.0, 0.3, 1e-6
    mu, lam = lame(E, nu)
    if incompressibility == 2:
        lam += 2 * E / (3 * (1 - 2 * nu))
    H = h * rng.uniform(-1, 1, size=(20, dim, dim))
    e = (H + np.swapaxes(H, 1, 2)) / 2
    hooke = 2 * mu * e + lam * np.trace(e, axis1=1, axis2=2)[:, None, None] * np.eye(dim)
    stress = evaluate(law, incompressibility, np.eye(dim) + H, E, nu).stress
    assert np.abs(stress - hooke).max() < 20 * h * np.abs(hooke).max()
