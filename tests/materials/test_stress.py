"""Every law: tau = dPsi/dF F^T, its derivative, and its values against the same law written anew.

Derivatives are judged by central differences in float64. Their error for a smooth function of order-one scale is
h^2/6 |f'''| from truncation and eps/h |f| from rounding: 1e-10 for h = 1e-5 and third derivatives near 10.
"""

import numpy as np
import pytest
import warp as wp
from cases import FLUIDS, LAW_CASES, LAWS, UPRIGHT_LAWS
from law_points import WRITTEN_ANEW, deformations, elasticities, evaluate, lame, reference

import warpbots.materials
from warpbots.materials import law_of
from warpbots.materials.incompressible import incompressible
from warpbots.numerics import matrix, precision, real

H = 1e-5


def error(a: np.ndarray, b: np.ndarray) -> float:
    """Largest difference, each deformation gradient measured by one plus its largest entry of `b`."""
    a, b = (v.reshape(len(v), -1) for v in (a, b))
    return float((np.abs(a - b).max(1) / (1.0 + np.abs(b).max(1))).max())


def truncation(law: str) -> float:
    """Of fluids at the smallest volumes, 1/8, third derivatives are 1e3 times as large.

    Laws with constants may have powers of stretches, such as s^-2, with a third derivative of 768 at the smallest, 1/2.
    """
    return 1e3 if law in FLUIDS else 10.0 if LAW_CASES[law].constants else 1.0


def deformations_of(law: str, dim: int) -> np.ndarray:
    """Matter turned inside out too, where the law is defined for it."""
    return deformations(dim, inverted=law not in UPRIGHT_LAWS)


def differences(f, F: np.ndarray) -> np.ndarray:
    """df/dF for every entry of F by central differences, shape (n, dim, dim)."""
    dim = F.shape[-1]
    slope = np.zeros_like(F)
    for i in range(dim):
        for j in range(dim):
            step = np.zeros((dim, dim))
            step[i, j] = H
            slope[:, i, j] = (f(F + step) - f(F - step)) / (2 * H)
    return slope


def test_every_law_is_listed():
    assert {*LAWS, *FLUIDS} == set(warpbots.materials.LAWS)


@pytest.mark.verification
@elasticities(LAWS + FLUIDS)
def test_stress_is_the_slope_of_the_energy(law, incompressibility, dim):
    """P = dPsi/dF and tau = P F^T: by differences and by `wp.grad`."""
    F = deformations_of(law, dim)
    point = evaluate(law, incompressibility, F)
    slope = differences(lambda G: evaluate(law, incompressibility, G).energy, F)
    Ft = np.swapaxes(F, 1, 2)
    assert error(point.stress, slope @ Ft) < 1e-9 * truncation(law)
    assert error(point.stress, point.energy_slope @ Ft) < 1e-12
    assert error(point.piola, point.energy_slope) < 1e-12


@pytest.mark.verification(float32=True)
@elasticities(WRITTEN_ANEW + FLUIDS)
def test_energy_and_stress_are_those_of_the_literature(law, incompressibility, dim):
    """Against a second implementation in singular values: float64 1e-11, float32 2e-5 of E."""
    F = deformations_of(law, dim)
    F = F.astype(np.float32).astype(np.float64)  # the same numbers in either precision
    point = evaluate(law, incompressibility, F, E=2.0, nu=0.4)
    energy, stress = reference(law, incompressibility, F, E=2.0, nu=0.4)
    tolerance = {"float64": 1e-11, "float32": 2e-5}[precision]
    assert error(point.energy, energy) < tolerance
    assert error(point.stress, stress) < tolerance


@pytest.mark.verification(float32=True)
@elasticities(LAWS + FLUIDS)
def test_nothing_is_stored_and_nothing_pulls_at_rest(law, incompressibility, dim):
    """Psi(I) = 0 and tau(I) = 0: exactly, but for rotations in 3D, which have rounding."""
    point = evaluate(law, incompressibility, np.eye(dim)[None])
    rounding = 4 * np.finfo(precision).eps if law in ("fixed_corotated", "corotated") and dim == 3 else 0.0
    assert np.abs(point.stress).max() <= rounding
    assert 0.0 <= point.energy[0] <= rounding**2


@pytest.mark.verification(float32=True)
@elasticities(LAWS + FLUIDS)
def test_small_strains_store_their_energy(law, incompressibility, dim, rng):
    """Of 1e-4 after a rotation of 0.5: rounding was eight times the energy; float32 5 %, float64 at 1e-6 1e-4."""
    scale = {"float64": 1e-6, "float32": 1e-4}[precision]
    turn = np.eye(dim)
    if law != "linear":
        turn[:2, :2] = [[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]]
    H = rng.uniform(-1.0, 1.0, (50, dim, dim)) + np.eye(dim)  # in sum not without a change of volume
    F = (turn @ (np.eye(dim) + scale * H)).astype(np.float32 if precision == "float32" else np.float64)
    F = F.astype(np.float64)
    energy = evaluate(law, incompressibility, F, E=2.0).energy
    C = np.swapaxes(F, 1, 2) @ F
    e = (C - np.eye(dim)) / 2.0
    trace, (mu, lam) = np.trace(e, axis1=1, axis2=2), lame(2.0, 0.3)
    stiffer = 2.0 * 2.0 / (3.0 * (1.0 - 2.0 * 0.3)) if incompressibility == 2 else 0.0
    hooke = mu * (e**2).sum((1, 2)) + (lam + stiffer) / 2.0 * trace**2
    if law in FLUIDS:
        hooke = (lam + 2.0 / 3.0 * mu + stiffer) / 2.0 * trace**2
    assert np.abs(energy - hooke).max() < {"float64": 1e-4, "float32": 0.05}[precision] * hooke.max()


@pytest.mark.verification
@elasticities(LAWS + FLUIDS)
def test_stress_has_the_right_derivative_everywhere(law, incompressibility, dim, rng):
    """d(T : tau)/dF by differences, for a random T: at rest, where singular values (nearly) coincide, inside out."""
    F = deformations_of(law, dim)
    T = rng.normal(size=F.shape)
    point = evaluate(law, incompressibility, F, T=T)
    slope = differences(lambda G: (T * evaluate(law, incompressibility, G).stress).sum((1, 2)), F)
    assert np.isfinite(point.pull_slope).all()
    assert error(point.pull_slope, slope) < 1e-8 * truncation(law)


@pytest.mark.verification
@pytest.mark.parametrize("exponent", [6, 32])
@pytest.mark.parametrize("unrolled", [3, 16])
def test_large_exponents_have_the_right_derivative_in_kernels_that_unroll_no_loops(exponent, unrolled, rng):
    """Warp unrolls up to 3 passes in the kernels of second derivatives, up to 16 in others, and here p - 2."""
    mat = matrix(3)
    _, _, piola = incompressible(3, exponent)
    module = wp.get_module(f"test_incompressible_{exponent}_{unrolled}")
    wp.set_module_options({"max_unroll": unrolled}, module)

    @wp.func
    def pull(F: mat, T: mat):
        return wp.ddot(T, piola(F, real(2.0), real(0.3)))

    @wp.kernel(module=module, enable_backward=False)
    def evaluate_pull(F: wp.array[mat], T: wp.array[mat], value_out: wp.array[real], slope_out: wp.array[mat]):
        i = wp.tid()
        F_adj, _T_adj = wp.grad(pull)(F[i], T[i])
        slope_out[i] = F_adj
        value_out[i] = pull(F[i], T[i])

    F, T, D = 1.3 * np.eye(3) + 0.1 * rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    given = [wp.array(a, dtype=mat, device="cpu") for a in ([F, F + H * D, F - H * D], [T, T, T])]
    value, slope = wp.zeros(3, dtype=real, device="cpu"), wp.zeros(3, dtype=mat, device="cpu")
    wp.launch(evaluate_pull, 3, [*given, value, slope], device="cpu")
    at, ahead, behind = value.numpy()
    assert (slope.numpy()[0] * D).sum() == pytest.approx((ahead - behind) / (2.0 * H), rel=1e-6)
    assert abs(at) > 1e-3


@pytest.mark.verification
@elasticities(WRITTEN_ANEW + FLUIDS)
def test_stress_has_the_right_derivative_to_the_engineering_constants(law, incompressibility, dim, rng):
    """dtau/dE = tau/E, and dtau/dnu by complex step.

    So the factor P that eq. A95 of the ChainQueen paper lacks is there, and A100 is
    dmu/dnu = -mu/(1 + nu), dlam/dnu = E (1 + 2 nu^2) / ((1 + nu)^2 (1 - 2 nu)^2).
    """
    E, nu = 3.0, 0.35
    F = deformations_of(law, dim)
    T = rng.normal(size=F.shape)
    point = evaluate(law, incompressibility, F, E, nu, T)
    stress = reference(law, incompressibility, F, E, nu)[1]
    h = 1e-30
    slope = reference(law, incompressibility, F, E, nu + 1j * h)[1].imag / h
    assert error(point.pull_E, (T * stress).sum((1, 2)) / E) < 1e-12
    assert error(point.pull_nu, (T * slope).sum((1, 2))) < 1e-12


@pytest.mark.verification
@elasticities(tuple(law for law, case in LAW_CASES.items() if case.constants))
def test_stress_has_the_right_derivative_to_the_constants_of_the_law(law, incompressibility, dim, rng):
    """By central differences over 1e-5 of each constant, and of nu: below 1e-8 as the tests above."""
    F = deformations_of(law, dim)
    T = rng.normal(size=F.shape)
    point = evaluate(law, incompressibility, F, T=T)

    def pull(nu: float = 0.3, **constants: float) -> np.ndarray:
        return (T * evaluate(law, incompressibility, F, nu=nu, constants=constants).stress).sum((1, 2))

    assert error(point.pull_nu, (pull(0.3 + H) - pull(0.3 - H)) / (2 * H)) < 1e-8
    for k, c in enumerate(law_of(law).constants):
        value, h = LAW_CASES[law].constants[c.name], H * LAW_CASES[law].constants[c.name]
        slope = (pull(**{c.name: value + h}) - pull(**{c.name: value - h})) / (2 * h)
        assert np.abs(slope).max() > 1e-3
        assert error(point.pull_constants[:, k], slope) < 1e-8, c.name


def test_lame_constants_have_the_derivatives_of_the_corrected_paper():
    """The reference itself: complex step against the printed formulas above."""
    E, nu, h = 3.0, 0.35, 1e-30
    mu, lam = lame(E, nu)
    dmu, dlam = (v.imag / h for v in lame(E, nu + 1j * h))
    assert dmu == pytest.approx(-mu / (1 + nu), rel=1e-14)
    assert dlam == pytest.approx(E * (1 + 2 * nu**2) / ((1 + nu) ** 2 * (1 - 2 * nu) ** 2), rel=1e-14)
    assert (mu, lam) == pytest.approx((1.1111111111111112, 2.592592592592593), rel=1e-14)
