"""A bar pulled at its ends, and one that may not thin out: closed forms of the laws at a point in 3D.

Uniaxial strain F = diag(s, 1, 1), with J = s and M = lam + 2 mu:
    neo-Hookean             tau_11 = mu (s^2 - 1) + lam ln s
    fixed corotated         tau_11 = M (s - 1) s
    linear                  tau_11 = M (s - 1) s
    St. Venant-Kirchhoff    tau_11 = M (s^2 - 1) s^2 / 2
    Hencky                  tau_11 = M ln s

Uniaxial stress F = diag(s, t, t) with t from tau_22 = 0:
    neo-Hookean             mu (t^2 - 1) + lam ln(s t^2) = 0               tau_11 = mu (s^2 - t^2)
    fixed corotated         2 mu (t - 1) t + lam (J - 1) J = 0, J = s t^2  tau_11 = 2 mu ((s - 1) s - (t - 1) t)
    linear                  t = 1 - nu (s - 1)                             tau_11 = E (s - 1) s
    St. Venant-Kirchhoff    t^2 = 1 - nu (s^2 - 1)                         tau_11 = E (s^2 - 1) s^2 / 2
    Hencky                  t = s^-nu                                      tau_11 = E ln s
"""

import numpy as np
import pytest
from cases import LAWS
from law_points import evaluate, lame
from scipy.optimize import brentq

pytestmark = [pytest.mark.verification, pytest.mark.parametrize("law", LAWS)]

E = 1.0
STRETCHES = (0.5, 0.8, 0.99, 1.0, 1.01, 1.2, 1.5, 2.0)
RATIOS = (0.0, 0.3, 0.45, 0.49)


@pytest.mark.parametrize("nu", RATIOS)
def test_uniaxial_strain(law, nu):
    s = np.array(STRETCHES)
    mu, lam = lame(E, nu)
    M = lam + 2 * mu
    expected = {
        "neo_hookean": mu * (s**2 - 1) + lam * np.log(s),
        "fixed_corotated": M * (s - 1) * s,
        "corotated": M * (s - 1) * s,
        "linear": M * (s - 1) * s,
        "st_venant_kirchhoff": M * (s**2 - 1) * s**2 / 2,
        "hencky": M * np.log(s),
    }[law]
    stress = evaluate(law, 0, np.array([np.diag([x, 1.0, 1.0]) for x in s]), E, nu).stress
    np.testing.assert_allclose(stress[:, 0, 0], expected, rtol=0, atol=1e-10)


def thickness(law: str, s: float, nu: float) -> float:
    """Lateral stretch t of a free bar that is stretched by s."""
    mu, lam = lame(E, nu)
    if law in ("linear", "corotated"):
        return 1 - nu * (s - 1)
    if law == "st_venant_kirchhoff":
        return np.sqrt(1 - nu * (s**2 - 1))
    if law == "hencky":
        return s**-nu
    free = {
        "neo_hookean": lambda t: mu * (t**2 - 1) + lam * np.log(s * t**2),
        "fixed_corotated": lambda t: 2 * mu * (t - 1) * t + lam * (s * t**2 - 1) * s * t**2,
    }[law]
    return brentq(free, 0.45, 2.0, xtol=1e-15, rtol=1e-15)


@pytest.mark.parametrize("nu", RATIOS)
def test_uniaxial_stress(law, nu):
    s = np.array([x for x in STRETCHES if law != "st_venant_kirchhoff" or nu * (x**2 - 1) < 0.9])
    t = np.array([thickness(law, x, nu) for x in s])
    mu, _ = lame(E, nu)
    expected = {
        "neo_hookean": mu * (s**2 - t**2),
        "fixed_corotated": 2 * mu * ((s - 1) * s - (t - 1) * t),
        "corotated": E * (s - 1) * s,
        "linear": E * (s - 1) * s,
        "st_venant_kirchhoff": E * (s**2 - 1) * s**2 / 2,
        "hencky": E * np.log(s),
    }[law]
    stress = evaluate(law, 0, np.array([np.diag([x, y, y]) for x, y in zip(s, t, strict=True)]), E, nu).stress
    np.testing.assert_allclose(stress[:, 1, 1], 0.0, rtol=0, atol=1e-10)
    np.testing.assert_allclose(stress[:, 0, 0], expected, rtol=0, atol=1e-10)
