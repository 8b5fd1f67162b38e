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

Laws with constants of their own, tau_i = f_i + lam ln J with f of the principal stretches, have the same free bar. Where
nothing changes its volume they are the textbook laws of rubber, of which differences of principal stresses are known:
with I_1 = s_1^2 + s_2^2 + s_3^2 and T_i - T_j of
    Mooney-Rivlin           2 (C_1 + C_2 s_k^2) (s_i^2 - s_j^2)                          (Rivlin 1948)
    Ogden                   sum_p mu_p (s_i^alpha_p - s_j^alpha_p)                       (Ogden 1972)
    Gent                    mu J_m / (J_m - I_1 + 3) (s_i^2 - s_j^2)                     (Gent 1996)
in uniaxial tension (s, s^-1/2, s^-1/2), equibiaxial tension (s, s, s^-2) and simple shear by an amount g, with the
shear stress 2 (C_1 + C_2) g, sum_p mu_p (s^alpha_p - s^-alpha_p) / (s + 1/s) with s - 1/s = g, and mu J_m / (J_m - g^2)
g.
"""

import numpy as np
import pytest
from cases import LAW_CASES
from law_points import evaluate, lame
from scipy.optimize import brentq

pytestmark = pytest.mark.verification

without_constants = pytest.mark.parametrize(
    "law", ["neo_hookean", "fixed_corotated", "corotated", "linear", "st_venant_kirchhoff", "hencky"]
)
with_constants = pytest.mark.parametrize("law", ["mooney_rivlin", "ogden", "gent"])

E = 1.0
STRETCHES = (0.5, 0.8, 0.99, 1.0, 1.01, 1.2, 1.5, 2.0)
RATIOS = (0.0, 0.3, 0.45, 0.49)


@without_constants
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


@without_constants
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


def terms(law: str, mu: float) -> list[tuple[float, float]]:
    """(mu_p, alpha_p) of the laws that are sums of powers of stretches; of Gent's law those of its invariant."""
    c = LAW_CASES[law].constants
    if law == "mooney_rivlin":
        q = c["second_invariant_share"]
        return [(mu * (1 - q), 2.0), (-mu * q, -2.0)]
    if law == "ogden":
        a, b, w = c["exponent"], c["second_exponent"], c["second_share"]
        return [(2 * mu * (1 - w) / a, a), (2 * mu * w / b, b)]
    return [(mu, 2.0)]


def principal(law: str, mu: float, lam: float, s: np.ndarray) -> np.ndarray:
    """Kirchhoff stress along the axes of the stretches s, shape (3,)."""
    log_J = np.log(s.prod())
    f = sum(m * (s**a - 1) for m, a in terms(law, mu))
    if law == "gent":
        J_m = LAW_CASES[law].constants["locking_invariant"]
        f = f * J_m / (J_m - ((s**2).sum() - 3 - 2 * log_J))
    return f + lam * log_J


@with_constants
@pytest.mark.parametrize("nu", RATIOS)
def test_uniaxial_strain_and_stress_with_constants(law, nu):
    """The free bar is solved for its thickness with SciPy; its sides bear nothing."""
    mu, lam = lame(E, nu)
    strained = [np.array([s, 1.0, 1.0]) for s in STRETCHES]
    free = []
    for s in STRETCHES:
        t = brentq(lambda t, s=s: principal(law, mu, lam, np.array([s, t, t]))[1], 0.4, 2.5, xtol=1e-15, rtol=1e-15)
        free.append(np.array([s, t, t]))
    for bars in (strained, free):
        stress = evaluate(law, 0, np.array([np.diag(s) for s in bars]), E, nu).stress
        expected = np.array([np.diag(principal(law, mu, lam, s)) for s in bars])
        np.testing.assert_allclose(stress, expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(stress[:, 1, 1], 0.0, rtol=0, atol=1e-10)


def difference(law: str, mu: float, s: np.ndarray, i: int, j: int) -> float:
    """T_i - T_j of an incompressible law, by the formulas above."""
    c, k = LAW_CASES[law].constants, 3 - i - j
    if law == "mooney_rivlin":
        C_2 = mu / 2 * c["second_invariant_share"]
        return 2 * (mu / 2 - C_2 + C_2 * s[k] ** 2) * (s[i] ** 2 - s[j] ** 2)
    if law == "ogden":
        return sum(m * (s[i] ** a - s[j] ** a) for m, a in terms(law, mu))
    J_m = c["locking_invariant"]
    return mu * J_m / (J_m - (s**2).sum() + 3) * (s[i] ** 2 - s[j] ** 2)


@with_constants
@pytest.mark.parametrize("s", [0.6, 0.9, 1.3, 2.0])
def test_rubber_of_constant_volume_follows_the_textbook(law, s):
    """Uniaxial and equibiaxial tension: no bulk modulus enters differences of principal stresses at J = 1."""
    mu, _ = lame(E, 0.45)
    for stretches in (np.array([s, s**-0.5, s**-0.5]), np.array([s, s, s**-2])):
        tau = evaluate(law, 0, np.diag(stretches)[None], E, 0.45).stress[0]
        for i, j in ((0, 1), (0, 2), (1, 2)):
            assert tau[i, i] - tau[j, j] == pytest.approx(difference(law, mu, stretches, i, j), abs=1e-10)


@with_constants
@pytest.mark.parametrize("g", [0.1, 0.7, 2.0])
def test_simple_shear(law, g):
    """The shear stress, and Rivlin's relation T_11 - T_22 = g T_12 of every isotropic elastic law."""
    mu, _ = lame(E, 0.45)
    F = np.eye(3)
    F[0, 1] = g
    tau = evaluate(law, 0, F[None], E, 0.45).stress[0]
    s = (g + np.sqrt(g**2 + 4)) / 2
    expected = {
        "mooney_rivlin": lambda: mu * g,
        "ogden": lambda: sum(m * (s**a - s**-a) for m, a in terms(law, mu)) / (s + 1 / s),
        "gent": lambda: (
            mu
            * LAW_CASES[law].constants["locking_invariant"]
            * g
            / (LAW_CASES[law].constants["locking_invariant"] - g**2)
        ),
    }[law]()
    assert tau[0, 1] == pytest.approx(expected, rel=1e-12)
    assert tau[0, 0] - tau[1, 1] == pytest.approx(g * tau[0, 1], rel=1e-10)


def test_limits_are_the_simpler_laws():
    """q = 0, J_m of infinity and the exponent 2 are neo-Hookean; the exponents 2 and -2 Mooney-Rivlin."""
    F = np.array([[1.3, 0.4, 0.0], [-0.1, 0.8, 0.2], [0.0, 0.3, 1.1]])[None]

    def stress(law: str, **constants: float) -> np.ndarray:
        return evaluate(law, 0, F, E, 0.4, constants=constants).stress

    plain = stress("neo_hookean")
    np.testing.assert_allclose(stress("mooney_rivlin", second_invariant_share=0.0), plain, rtol=0, atol=1e-13)
    np.testing.assert_allclose(stress("gent", locking_invariant=1e14), plain, rtol=0, atol=1e-13)
    np.testing.assert_allclose(stress("ogden", exponent=2.0, second_share=0.0), plain, rtol=0, atol=1e-13)
    both = stress("ogden", exponent=2.0, second_exponent=-2.0, second_share=0.3)
    np.testing.assert_allclose(both, stress("mooney_rivlin", second_invariant_share=0.3), rtol=0, atol=1e-13)
