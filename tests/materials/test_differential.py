"""dP of every law: the closed form against Warp's derivative of the stress, and against central differences."""

import functools

import numpy as np
import pytest
import warp as wp
from cases import LAWS, UPRIGHT_LAWS
from law_points import deformations, elasticities, numbers_of, turned

import warpbots.materials
from warpbots.materials import DIFFERENTIALS, differential, elasticity, law_of, numbers_type
from warpbots.materials.differential import _generated
from warpbots.numerics import matrix, precision, real, real_numpy
from warpbots.numerics.derivative_checks import brief_module

H = 1e-5
E, NU = 2.0, 0.35


@functools.cache
def kernel(make, law: str, incompressibility: int, dim: int) -> wp.Kernel:
    Point, point_of, differential_of = make(law, incompressibility, dim)
    _, _, piola = elasticity(law, incompressibility, dim)
    mat, Numbers = matrix(dim), numbers_type(law_of(law))
    module = brief_module(f"test_differential_{make.__name__}_{law}_{incompressibility}_{dim}d")

    @wp.kernel(module=module, enable_backward=False)
    def evaluate(F: wp.array[mat], s: Numbers, dF: wp.array[mat], P_out: wp.array[mat], dP_out: wp.array[mat]):
        i = wp.tid()
        dP_out[i] = differential_of(point_of(F[i], real(E), s), dF[i])
        P_out[i] = piola(F[i], real(E), s)

    return evaluate


def evaluated(make, law: str, incompressibility: int, F: np.ndarray, dF: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P(F) and dP(F, dF) in float64, each of shape (n, dim, dim)."""
    mat = matrix(F.shape[-1])
    F, dF = (wp.array(np.ascontiguousarray(a, dtype=real_numpy), dtype=mat, device="cpu") for a in (F, dF))
    outputs = [wp.zeros(len(F), dtype=mat, device="cpu") for _ in range(2)]
    inputs = [F, numbers_of(law, NU), dF]
    wp.launch(kernel(make, law, incompressibility, mat._shape_[0]), len(F), inputs, outputs, device="cpu")
    return tuple(o.numpy().astype(np.float64) for o in outputs)


def points(law: str, dim: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Deformation gradients, some near those where the rotation is not unique, and changes of them."""
    F = deformations(dim, inverted=law not in UPRIGHT_LAWS)
    if law not in UPRIGHT_LAWS:
        F = np.concatenate([F, turned(rng, [(1.3, 0.5, -0.45)[3 - dim :], (1.0, 0.8, -0.7)[3 - dim :]])])
    return F, rng.normal(size=F.shape)


def error(a: np.ndarray, b: np.ndarray) -> float:
    """Largest difference, each point measured by one plus its largest entry of `b`."""
    return float((np.abs(a - b).max((1, 2)) / (1.0 + np.abs(b).max((1, 2)))).max())


@pytest.mark.verification(float32=True)
@elasticities()
def test_the_closed_form_is_what_warp_derives(law, incompressibility, dim, rng):
    """To 1e-12 in double and 1e-4 in single precision, which loses digits where the rotation is nearly not unique."""
    F, dF = points(law, dim, rng)
    _, closed = evaluated(differential, law, incompressibility, F, dF)
    _, generated = evaluated(_generated, law, incompressibility, F, dF)
    assert np.abs(closed).max() > 1.0
    assert error(closed, generated) < {"float64": 1e-12, "float32": 1e-4}[precision]


@pytest.mark.verification
@elasticities()
def test_the_closed_form_is_the_slope_of_the_stress(law, incompressibility, dim, rng):
    """Differences of fourth order: h^4/30 |f'''''| from truncation and eps/h |f| from rounding are below 1e-9."""
    F, dF = points(law, dim, rng)
    _, closed = evaluated(differential, law, incompressibility, F, dF)

    def stress(step: float) -> np.ndarray:
        return evaluated(differential, law, incompressibility, F + step * dF, dF)[0]

    h = 10.0 * H
    slope = (8.0 * (stress(h) - stress(-h)) - (stress(2.0 * h) - stress(-2.0 * h))) / (12.0 * h)
    assert error(closed, slope) < 1e-8


@pytest.mark.verification
@elasticities()
def test_it_is_symmetric(law, incompressibility, dim, rng):
    """A : dP(B) = B : dP(A), for it is the second derivative of an energy."""
    F, A = points(law, dim, rng)
    B = rng.normal(size=A.shape)
    (_, of_A), (_, of_B) = (evaluated(differential, law, incompressibility, F, d) for d in (A, B))
    left, right = (A * of_B).sum((1, 2)), (B * of_A).sum((1, 2))
    assert (np.abs(left - right) / (1.0 + np.abs(left))).max() < 1e-11


def test_closed_forms_are_of_laws_under_test():
    """So that the tests above judge each of them; a law without one is differentiated by Warp."""
    assert set(DIFFERENTIALS) <= {warpbots.materials.LAWS[law] for law in LAWS}


@pytest.mark.verification(float32=True)
def test_a_law_without_one_is_differentiated_by_warp(monkeypatch, rng):
    """Also one that takes the name of a law that has."""
    ours = warpbots.materials.LAWS["linear"]
    monkeypatch.setitem(warpbots.materials.LAWS, "of_a_user", lambda dim: ours(dim))
    assert differential("of_a_user", 0, 3)[0] is not differential("linear", 0, 3)[0]
    F, dF = points("linear", 3, rng)
    _, by_warp = evaluated(differential, "of_a_user", 0, F, dF)
    _, closed = evaluated(differential, "linear", 0, F, dF)
    assert error(by_warp, closed) < {"float64": 1e-13, "float32": 1e-5}[precision]
