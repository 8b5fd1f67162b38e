"""Laws of users are checked when a simulation is built: what is wrong in one is refused, and what is right is not."""

import pytest
import warp as wp
from cases import FLUIDS, LAW_CASES, SOLVERS

from warpbots.materials import (
    CONSTANTS,
    DIFFERENTIALS,
    LAWS,
    LawConstant,
    constant_values,
    gent,
    law_checks,
    law_of,
    neo_hookean,
)
from warpbots.numerics import matrix, real
from warpbots.scene import Box, Material, Scene, SceneError, SoftBody, VonMises

vec = wp.types.vector(1, real)
K = LawConstant("second_modulus", "K", "Pa", "stiffening", lower=0.0, inclusive=True)


def series(passes: int):
    """A law of the invariant x of neo-Hookean matter: g = sum (K x / mu)^n with n up to `passes`, in a loop.

    Psi = mu/2 sum (K / mu)^n x^(n + 1) / (n + 1) + lambda/2 (ln J)^2, tau = mu g (F F^T - I) + lambda ln(J) I.
    """

    def law(dim):
        mat = matrix(dim)

        @wp.func
        def invariant(F: mat):
            return wp.ddot(F, F) - real(dim) - real(2.0) * wp.log(wp.determinant(F))

        @wp.func
        def energy(F: mat, mu: real, lam: real, c: vec):
            x = invariant(F)
            power = real(1.0)
            total = x
            for n in range(passes):
                power = power * (c[0] * x / mu)
                total += power * x / real(n + 2)
            log_J = wp.log(wp.determinant(F))
            return real(0.5) * (mu * total + lam * log_J * log_J)

        @wp.func
        def tau(F: mat, mu: real, lam: real, c: vec):
            power = real(1.0)
            g = real(1.0)
            for _n in range(passes):
                power = power * (c[0] * invariant(F) / mu)
                g += power
            I = wp.identity(n=dim, dtype=real)
            return mu * g * (F @ wp.transpose(F) - I) + lam * wp.log(wp.determinant(F)) * I

        @wp.func
        def piola(F: mat, mu: real, lam: real, c: vec):
            return tau(F, mu, lam, c) @ wp.transpose(wp.inverse(F))

        return energy, tau, piola

    return law


def with_fault(fault: str):
    """`series` with a fault in one of its functions."""

    def law(dim):
        energy, tau, piola = series(1)(dim)
        mat = matrix(dim)

        @wp.func
        def less(F: mat, mu: real, lam: real, c: vec):
            return real(0.9) * energy(F, mu, lam, c)

        @wp.func
        def more(F: mat, mu: real, lam: real, c: vec):
            return real(1.1) * tau(F, mu, lam, c)

        @wp.func
        def hidden(K: real):
            return K

        @wp.func_grad(hidden)
        def adj_hidden(K: real, adj_ret: real):
            wp.adjoint[K] += real(0.5) * adj_ret

        @wp.func
        def of_hidden(F: mat, mu: real, lam: real, c: vec):
            return tau(F, mu, lam, vec(hidden(c[0])))

        @wp.func
        def length(F: mat, mu: real, lam: real, c: vec):
            r = wp.sqrt(wp.ddot(F, F) - real(dim) - real(2.0) * (wp.trace(F) - real(dim)))  # |F - I|
            return piola(F, mu, lam, c) + (r - r) * F

        @wp.func
        def infinite(F: mat, mu: real, lam: real, c: vec):
            return energy(F, mu, lam, c) + wp.log(wp.determinant(F) - wp.determinant(F))

        @wp.func
        def twice_energy(F: mat, mu: real, lam: real, c: vec):
            return energy(F, real(2.0) * mu, lam, c)

        @wp.func
        def twice_tau(F: mat, mu: real, lam: real, c: vec):
            return tau(F, real(2.0) * mu, lam, c)

        @wp.func
        def twice_piola(F: mat, mu: real, lam: real, c: vec):
            return piola(F, real(2.0) * mu, lam, c)

        return {
            "twice mu": (twice_energy, twice_tau, twice_piola),
            "energy": (less, tau, piola),
            "tau": (energy, more, piola),
            "constant": (energy, of_hidden, piola),
            "root at rest": (energy, tau, length),
            "infinite": (infinite, tau, piola),
        }[fault]

    return law


@pytest.fixture
def build(monkeypatch):
    """Registers a law as ``mine`` and builds a model of a body of it, whose region has a constant of its own."""

    def build(definition, solver="projective", differential=None):
        monkeypatch.setitem(LAWS, "mine", definition)
        monkeypatch.setitem(CONSTANTS, definition, (K,))
        if differential:
            monkeypatch.setitem(DIFFERENTIALS, definition, differential)
        stiff, soft = (Material(2e4, 0.45, law="mine", constants={"second_modulus": k}) for k in (5e3, 0.0))
        tip = Box((0.2, 0.2, 0.3), (0.4, 0.4, 0.4))
        body = SoftBody("finger", Box((0.2,) * 3, (0.4,) * 3), stiff, {"tip": tip}, {"tip": soft})
        return SOLVERS[solver](0.1).build(Scene([body], domain=((0.0,) * 3, (1.0,) * 3)))

    return build


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("solver", ["mpm", "projective"])
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (
            "energy",
            r"P must be the derivative of the energy Psi .* Pa, by differences of Psi .* Pa, at F = \[\[.*E = 2e\+04",
        ),
        (
            "tau",
            r"tau must be P F\^T, but is .* instead of .* at F = .*, nu = 0\.25, second_modulus = 5000; correct tau or P",
        ),
        ("constant", r"tau, differentiated by Warp, has another derivative with respect to second_modulus .*func_grad"),
        ("root at rest", r"derivative by Warp of the stress P must be finite at rest and near it.*F = \[\[1\.0, 0\.0"),
        ("infinite", "the energy Psi must be finite at rest and near it, and is not at F"),
    ],
)
def test_a_wrong_law_is_refused_before_anything_runs(build, solver, fault, words):
    with pytest.raises(SceneError, match=rf"^SoftBody 'finger': law 'mine': .*{words}"):
        build(with_fault(fault), solver)


@pytest.mark.verification(float32=True)
def test_a_law_whose_stiffness_is_not_what_young_s_modulus_says_is_built_with_a_warning(build):
    """mu = lambda = 0.4 E at nu = 1/4: dtau_00/dF_00 = lambda + 4 mu instead of lambda + 2 mu, of E = 2e4 Pa."""
    with pytest.warns(
        UserWarning,
        match=r"^law 'mine': its stiffness at rest does not follow .* dtau_(\d)\1/dF_\1\1 is 4e\+04 Pa .* 2\.4e",
    ):
        build(with_fault("twice mu"), "mpm")


@pytest.mark.verification(float32=True)
def test_loops_are_refused_where_they_are_not_unrolled(build):
    """With 6 passes in kernels of second derivatives alone, which a closed form of dP replaces; with 20 everywhere."""
    with pytest.raises(SceneError, match="stress P, differentiated by Warp in kernels of second.* more than 3 passes"):
        build(series(6))
    build(series(6), "mpm")
    build(series(3))
    for solver in ("mpm", "projective"):
        with pytest.raises(SceneError, match="energy Psi, differentiated by Warp, .* loops over more than 16 passes"):
            build(series(20), solver)


def scaled_differential(factor: float):
    """The dP of Gent's law, times a factor."""

    def differential(dim):
        Point, point, change = gent.differential(dim)
        mat, scale = matrix(dim), wp.constant(real(factor))

        @wp.func
        def scaled(p: Point, dF: mat):
            return scale * change(p, dF)

        return Point, point, scaled

    return differential


def as_gent(dim):
    return gent.law(dim)


@pytest.mark.verification(float32=True)
def test_a_closed_form_is_compared_with_differences(build):
    build(as_gent, differential=scaled_differential(1.0))
    with pytest.raises(
        SceneError, match=r"dP of its differential has another derivative .* correct it, or leave it out"
    ):
        build(as_gent, differential=scaled_differential(0.95))


def arguments(name: str):
    """A differential with a wrong function."""

    def differential(dim):
        Point, point, change = scaled_differential(1.0)(dim)
        mat = matrix(dim)

        @wp.func
        def without_c(F: mat, mu: real, lam: real):
            return Point()

        @wp.func
        def of_matrix(F: mat, dF: mat):
            return dF

        return {"c": (Point, without_c, change), "point": (Point, point, of_matrix), "two": (point, change)}[name]

    return differential


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("c", r"the function that fills the struct must take \(F: .*, c: vec1.*it takes \(F: .*, lam: float\d\d\)"),
        ("point", r"the function dP must take \(point: .*GentPoint, dF: mat33.*it takes \(F: mat33"),
        ("two", r"its differential must return a Warp struct and two Warp functions, .* got \(<Function"),
    ],
)
def test_a_closed_form_of_another_form_is_refused(build, fault, words):
    with pytest.raises(SceneError, match=f"^SoftBody 'finger': law 'mine': .*{words}"):
        build(as_gent, differential=arguments(fault))


def test_what_is_registered_by_name_is_refused(build, monkeypatch):
    """It would be ignored."""
    monkeypatch.setitem(DIFFERENTIALS, "mine", scaled_differential(1.0))
    with pytest.raises(ValueError, match=r"DIFFERENTIALS\['mine'\]: the key must be the definition .* LAWS\['mine'\]"):
        build(as_gent)


EXTREMES = {
    "gent": ({"locking_invariant": 0.02}, {"locking_invariant": 1e4}),
    "ogden": ({"exponent": 30.0}, {"exponent": 0.11, "second_exponent": -20.0, "second_share": 0.9}),
    "mooney_rivlin": ({"second_invariant_share": 0.0}, {"second_invariant_share": 0.999}),
}


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("law", [*LAW_CASES, *FLUIDS])
def test_no_law_of_the_package_would_be_refused(law):
    """They are not checked at build; with the constants of their tests, and with constants at the ends of their ranges."""
    found = law_of(law)
    for given in (LAW_CASES[law].constants if law in LAW_CASES else {}, *EXTREMES.get(law, ())):
        values = constant_values(law, found.constants, given)
        assert law_checks._faults(found, 3, 3e-2, values, True) == ("", "")


def test_laws_of_the_package_are_not_evaluated(monkeypatch):
    """A build pays nothing for them."""
    monkeypatch.setattr(law_checks, "_faults", lambda *_: pytest.fail("evaluated"))
    law_checks.check_law(law_of("ogden"), 3, 1e4, (2.0, -2.0, 0.0), True)
    with pytest.raises(pytest.fail.Exception):
        law_checks.check_law(law_of("ogden")._replace(definition=as_gent), 3, 1e4, (2.0, -2.0, 0.0), True)


@pytest.mark.parametrize(("name", "material"), [("hencky", {"plasticity": VonMises(1e3)}), ("weakly_compressible", {})])
def test_matter_that_flows_needs_the_law_of_the_package(monkeypatch, name, material):
    """Its return mapping is an equation of that law; elastic matter may have the replacement."""
    monkeypatch.setitem(LAWS, name, neo_hookean.law)
    box = Box((0.2,) * 3, (0.4,) * 3)
    scene = Scene([SoftBody("clay", box, Material(1e4, law=name, **material))], domain=((0.0,) * 3, (1.0,) * 3))
    with pytest.raises(SceneError, match=rf"^SoftBody 'clay': .* law '{name}' of warpbots, .* under another name"):
        SOLVERS["mpm"](0.1).build(scene)
