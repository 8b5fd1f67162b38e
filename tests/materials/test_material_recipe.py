"""The recipe of a material: a law with a constant of its own from one file, as CONTRIBUTING says.

Yeoh's law with two terms (Yeoh 1993), in the form of `warpbots.materials.gent`, whose invariant x it shares.
"""

import importlib.util

import cases
import pytest
import test_differential
import test_invariance
import test_law_constants
import test_stress
from cases import LawCase

import warpbots as wb
from warpbots.materials import CONSTANTS, LAWS

FILE = '''"""Yeoh's elasticity with two terms (Yeoh 1993, "Some forms of the strain energy function for rubber").

    x   = F : F - d - 2 ln J
    Psi = mu/2 (x + k x^2) + lambda/2 (ln J)^2
    tau = mu (1 + 2 k x) (F F^T - I) + lambda ln(J) I
    P   = tau F^-T
"""

import warp as wp

from warpbots.materials import LawConstant, with_constants
from warpbots.numerics import matrix, real

__all__ = ["law"]

vec = wp.types.vector(1, real)


@with_constants(LawConstant("second_coefficient", "k", "1", "ratio C_2 / C_1 of Yeoh", lower=0.0, inclusive=True))
def law(dim):
    """Psi(F, mu, lambda, c), tau(F, mu, lambda, c) and P(F, mu, lambda, c) [Pa] with c = (k)."""
    mat = matrix(dim)

    @wp.func
    def invariant(F: mat):
        """x = F : F - d - 2 ln J."""
        return wp.ddot(F, F) - real(dim) - real(2.0) * wp.log(wp.determinant(F))

    @wp.func
    def energy(F: mat, mu: real, lam: real, c: vec):
        """Psi = mu/2 (x + k x^2) + lambda/2 (ln J)^2."""
        x = invariant(F)
        log_J = wp.log(wp.determinant(F))
        return real(0.5) * (mu * (x + c[0] * x * x) + lam * log_J * log_J)

    @wp.func
    def stress(F: mat, mu: real, lam: real, c: vec):
        """tau = mu (1 + 2 k x) (F F^T - I) + lambda ln(J) I."""
        I = wp.identity(n=dim, dtype=real)
        stiff = mu * (real(1.0) + real(2.0) * c[0] * invariant(F))
        return stiff * (F @ wp.transpose(F) - I) + lam * wp.log(wp.determinant(F)) * I

    @wp.func
    def piola(F: mat, mu: real, lam: real, c: vec):
        """P = tau F^-T."""
        return stress(F, mu, lam, c) @ wp.transpose(wp.inverse(F))

    return energy, stress, piola
'''


@pytest.fixture
def yeoh(tmp_path, monkeypatch):
    """The recipe: the file, the line that registers the law, and the line in `cases.py`."""
    path = tmp_path / "yeoh.py"
    path.write_text(FILE)
    spec = importlib.util.spec_from_file_location("yeoh", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(LAWS, "yeoh", module.law)
    monkeypatch.setitem(cases.LAW_CASES, "yeoh", LawCase({"second_coefficient": 0.2}))
    monkeypatch.setattr(test_stress, "UPRIGHT_LAWS", (*cases.UPRIGHT_LAWS, "yeoh"))
    monkeypatch.setattr(test_differential, "UPRIGHT_LAWS", (*cases.UPRIGHT_LAWS, "yeoh"))
    yield "yeoh"
    del CONSTANTS[module.law]


@pytest.mark.verification
def test_the_checks_of_all_laws_judge_the_new_one(yeoh, rng):
    """As they are, with and without the added volumetric energy."""
    for p in (0, 2):
        test_stress.test_stress_is_the_slope_of_the_energy(yeoh, p, 3)
        test_stress.test_stress_has_the_right_derivative_everywhere(yeoh, p, 3, rng)
        test_stress.test_stress_has_the_right_derivative_to_the_constants_of_the_law(yeoh, p, 3, rng)
        test_stress.test_nothing_is_stored_and_nothing_pulls_at_rest(yeoh, p, 3)
        test_invariance.test_a_turned_observer_sees_the_same(yeoh, p, 3, rng)
        test_invariance.test_matter_has_no_grain(yeoh, p, 3, rng)
        test_invariance.test_small_strains_follow_hooke(yeoh, p, 3, rng)
        test_differential.test_the_closed_form_is_the_slope_of_the_stress(yeoh, p, 3, rng)
        test_differential.test_it_is_symmetric(yeoh, p, 3, rng)


@pytest.mark.verification
@pytest.mark.parametrize(("solver", "dim"), [("mpm", 2), ("projective", 3)])
def test_both_solvers_run_and_differentiate_it(yeoh, solver, dim, rng):
    test_law_constants.test_gradients_to_the_constants_are_the_differences(yeoh, solver, dim, rng)
    test_law_constants.test_matter_of_each_region_has_its_own_constants(yeoh, solver, dim)


def test_files_keep_it(yeoh, tmp_path):
    """To the last bit."""
    material = wb.Material(1e4, law=yeoh, constants={"second_coefficient": 1 / 3})
    body = wb.SoftBody("b", wb.shapes.Box((0.0,) * 3, (0.1,) * 3), material)
    wb.usd.write(tmp_path / "yeoh.usda", wb.Scene([body]))
    assert "warpbots:constants:second_coefficient = 0.33333" in (tmp_path / "yeoh.usda").read_text()
    assert wb.usd.read(tmp_path / "yeoh.usda").bodies == (body,)
