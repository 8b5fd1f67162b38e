"""Constitutive laws at points: what `warpbots.materials` gives, and the same laws written anew in NumPy.

The NumPy laws are functions of singular values and invariants, so they share no formula with the Warp ones; the
Poisson's ratio may be complex, for derivatives by complex step.
"""

import dataclasses
import functools

import numpy as np
import pytest
import warp as wp
from cases import DIMENSIONS, FLUIDS, INCOMPRESSIBILITY, LAW_CASES, LAWS, lame, rotation_of

from warpbots.materials import constant_values, elasticity, law_of, numbers_type
from warpbots.numerics import matrix, precision, real, real_numpy
from warpbots.numerics.derivative_checks import brief_module

COMPILED = {"float32": (3,), "float64": DIMENSIONS}[precision]
"""Dimensions in which every run judges laws at points: each law is a module of its own, which has to be compiled."""

everywhere = pytest.mark.parametrize(
    "dim", [pytest.param(dim, marks=() if dim in COMPILED else pytest.mark.slow) for dim in DIMENSIONS]
)
"""Parametrizes a test by dimensions, those that are not compiled in every run being slow."""


def elasticities(laws: tuple[str, ...] = LAWS):
    """Parametrizes a test by laws, exponents of the added volumetric energy and dimensions.

    Each law alone and with one of the exponents in turn, for all laws add the same term. Those in a plane in float32 are
    slow.
    """
    points = [
        pytest.param(law, p, dim, marks=() if dim in COMPILED else pytest.mark.slow)
        for law in laws
        for p in (0, INCOMPRESSIBILITY[1 + (LAWS + FLUIDS).index(law) % 2])
        for dim in DIMENSIONS
    ]
    return pytest.mark.parametrize(("law", "incompressibility", "dim"), points)


@dataclasses.dataclass(frozen=True)
class Point:
    """What a law says at n deformation gradients, in float64.

    Attributes:
        energy: Psi, shape (n,).
        stress: tau, shape (n, dim, dim).
        piola: P, shape (n, dim, dim).
        energy_slope: dPsi/dF by `wp.grad`, shape (n, dim, dim).
        pull_slope: Gradient of T : tau to F by `wp.grad`, shape (n, dim, dim).
        pull_E: The same to E, shape (n,).
        pull_nu: The same to nu, shape (n,).
        pull_constants: The same to the constants of the law, shape (n, k).
    """

    energy: np.ndarray
    stress: np.ndarray
    piola: np.ndarray
    energy_slope: np.ndarray
    pull_slope: np.ndarray
    pull_E: np.ndarray
    pull_nu: np.ndarray
    pull_constants: np.ndarray


@functools.cache
def _kernel(law: str, incompressibility: int, dim: int) -> wp.Kernel:
    mat, Numbers = matrix(dim), numbers_type(law_of(law))
    energy, stress, piola = elasticity(law, incompressibility, dim)

    @wp.func
    def pull(F: mat, E: real, s: Numbers, T: mat):
        """T : tau."""
        return wp.ddot(T, stress(F, E, s))

    @wp.kernel(module=brief_module(f"test_{law}_{incompressibility}_{dim}d"), enable_backward=False)
    def evaluate_law(
        F: wp.array[mat],
        E: real,
        s: Numbers,
        T: wp.array[mat],
        energy_out: wp.array[real],
        stress_out: wp.array[mat],
        piola_out: wp.array[mat],
        energy_slope_out: wp.array[mat],
        pull_slope_out: wp.array[mat],
        pull_E_out: wp.array[real],
        pull_numbers_out: wp.array[Numbers],
    ):
        """All of `Point`; gradients first (see `warpbots.solvers.mpm.transfer_adjoint`)."""
        i = wp.tid()
        F_adj, E_adj, s_adj, _T_adj = wp.grad(pull)(F[i], E, s, T[i])
        slope, _E_adj, _s_adj = wp.grad(energy)(F[i], E, s)
        pull_slope_out[i] = F_adj
        pull_E_out[i] = E_adj
        pull_numbers_out[i] = s_adj
        energy_slope_out[i] = slope
        energy_out[i] = energy(F[i], E, s)
        stress_out[i] = stress(F[i], E, s)
        piola_out[i] = piola(F[i], E, s)

    return evaluate_law


def numbers_of(law: str, nu: float, constants: dict[str, float] | None = None):
    """The numbers s of a law: nu, and the constants of its tests, some replaced by `constants`."""
    own, declared = LAW_CASES[law].constants if law in LAW_CASES else {}, law_of(law).constants
    values = constant_values(law, declared, {**own, **(constants or {})})
    return numbers_type(law_of(law))(*map(real, (nu, *values)))


def evaluate(law: str, incompressibility: int, F, E=1.0, nu=0.3, T=None, constants=None) -> Point:
    """The law at deformation gradients `F` and its gradients along stresses `T`, each of shape (n, dim, dim)."""
    F = np.ascontiguousarray(F, dtype=real_numpy)
    n, dim = F.shape[:2]
    T = np.zeros_like(F) if T is None else np.ascontiguousarray(T, dtype=real_numpy)
    mat, s = matrix(dim), numbers_of(law, nu, constants)
    types = (real, mat, mat, mat, mat, real, type(s))
    outputs = [wp.zeros(n, dtype=t, device="cpu") for t in types]
    inputs = [wp.array(F, dtype=mat, device="cpu"), real(E), s, wp.array(T, dtype=mat, device="cpu")]
    wp.launch(_kernel(law, incompressibility, dim), n, inputs, outputs, device="cpu")
    *values, slopes = (o.numpy().astype(np.float64) for o in outputs)
    slopes = slopes.reshape(n, -1)
    return Point(*values, slopes[:, 0], slopes[:, 1:])


def stretches(F: np.ndarray) -> np.ndarray:
    """Singular values, the smallest with the sign of det F, shape (n, dim)."""
    s = np.linalg.svd(F, compute_uv=False)
    s[..., -1] *= np.sign(np.linalg.det(F))
    return s


WRITTEN_ANEW = (
    "neo_hookean", "fixed_corotated", "corotated", "linear", "st_venant_kirchhoff", "hencky", "mooney_rivlin", "ogden",
    "gent",
)  # fmt: skip
"""Laws of solids that `reference` has; it has the fluids, too."""


def reference(law: str, incompressibility: int, F: np.ndarray, E=1.0, nu=0.3) -> tuple[np.ndarray, np.ndarray]:
    """Psi, shape (n,), and tau, shape (n, dim, dim), from the definitions in the literature (Bonet & Wood 1997 for
    neo-Hookean (6.28), St. Venant-Kirchhoff (6.44), Ogden (6.64) and the volumetric term, Stomakhin et al. 2012 for
    fixed corotated, Mooney 1940, Gent 1996). Constants of laws are those of their tests.
    """
    c = LAW_CASES[law].constants if law in LAW_CASES else {}
    mu, lam = lame(E, nu)
    dim = F.shape[-1]
    I, Ft = np.eye(dim), np.swapaxes(F, -1, -2)
    J = np.linalg.det(F)
    s = stretches(F)

    def volume(pressure):
        return pressure[:, None, None] * I

    if law == "neo_hookean":  # mu/2 (I_C - d) - mu ln J + lam/2 (ln J)^2
        energy = mu / 2 * ((s**2).sum(-1) - dim) - mu * np.log(J) + lam / 2 * np.log(J) ** 2
        stress = mu * (F @ Ft - I) + volume(lam * np.log(J))
    elif law == "fixed_corotated":  # mu sum (s_i - 1)^2 + lam/2 (J - 1)^2
        energy = mu * ((s - 1) ** 2).sum(-1) + lam / 2 * (J - 1) ** 2
        stress = 2 * mu * (F @ Ft - rotation_of(F) @ Ft) + volume(lam * (J - 1) * J)
    elif law == "corotated":  # mu sum (s_i - 1)^2 + lam/2 (sum s_i - d)^2
        growth = s.sum(-1) - dim
        energy = mu * ((s - 1) ** 2).sum(-1) + lam / 2 * growth**2
        stretch = rotation_of(F) @ Ft
        stress = 2 * mu * (F @ Ft - stretch) + lam * growth[:, None, None] * stretch
    elif law == "linear":  # Hooke's law for the displacement gradient
        e = (F + Ft) / 2 - I
        trace = np.trace(e, axis1=-2, axis2=-1)
        energy = mu * (e**2).sum((-2, -1)) + lam / 2 * trace**2
        stress = (2 * mu * e + volume(lam * trace)) @ Ft
    elif law == "st_venant_kirchhoff":  # mu sum e_i^2 + lam/2 (sum e_i)^2 with e_i = (s_i^2 - 1)/2
        e = (s**2 - 1) / 2
        trace = e.sum(-1)
        energy = mu * (e**2).sum(-1) + lam / 2 * trace**2
        B = F @ Ft  # tau = F S F^T with S = 2 mu e + lam tr(e) I, and F (C - I) F^T = B^2 - B
        stress = mu * (B @ B - B) + lam * trace[:, None, None] * B
    elif law == "hencky":  # mu sum (ln s_i)^2 + lam/2 (ln J)^2
        energy = mu * (np.log(s) ** 2).sum(-1) + lam / 2 * np.log(J) ** 2
        U, singular, _ = np.linalg.svd(F)
        stress = 2 * mu * (U * np.log(singular)[:, None]) @ np.swapaxes(U, 1, 2) + volume(lam * np.log(J))
    elif law in ("mooney_rivlin", "ogden", "gent"):  # functions of principal stretches
        if law == "mooney_rivlin":  # C_1 (I_1 - d) + C_2 (I_2/J^2 - d), as Ogden's terms with exponents 2 and -2
            terms = [(mu * (1 - c["second_invariant_share"]), 2.0), (-mu * c["second_invariant_share"], -2.0)]
        elif law == "ogden":  # sum mu_p/alpha_p (sum s^alpha_p - d - alpha_p ln J), sum mu_p alpha_p = 2 mu
            a, b, w = c["exponent"], c["second_exponent"], c["second_share"]
            terms = [(2 * mu * (1 - w) / a, a), (2 * mu * w / b, b)]
        else:  # the neo-Hookean term in a logarithm
            terms = [(mu, 2.0)]
        U, singular, _ = np.linalg.svd(F)
        energy = sum(m / a * ((singular**a).sum(-1) - dim - a * np.log(J)) for m, a in terms)
        principal = sum(m * (singular**a - 1) for m, a in terms)
        if law == "gent":
            limit = mu / 2 * c["locking_invariant"]
            principal = principal / (1 - energy / limit)[:, None]
            energy = -limit * np.log1p(-energy / limit)
        energy = energy + lam / 2 * np.log(J) ** 2
        stress = (U * principal[:, None]) @ np.swapaxes(U, 1, 2) + volume(lam * np.log(J))
    elif law == "weakly_compressible":  # Tait: p = K/7 (J^-7 - 1), and its integral
        K = lam + 2 * mu / 3
        energy = K / 7 * (J - 1) + K / 42 * (J**-6 - 1)
        stress = volume(-K / 7 * (J**-7 - 1) * J)
    else:
        raise ValueError(f"there is no reference for {law!r}: write one")
    if incompressibility:  # K (J - 1)^p with the bulk modulus K = E / (3 (1 - 2 nu))
        p, K = incompressibility, E / (3 * (1 - 2 * nu))
        energy = energy + K * (J - 1) ** p
        stress = stress + volume(K * p * (J - 1) ** (p - 1) * J)
    return energy, stress


def rotations(rng: np.random.Generator, n: int, dim: int) -> np.ndarray:
    """Random rotations, shape (n, dim, dim)."""
    return rotation_of(rng.normal(size=(n, dim, dim)))


def turned(rng: np.random.Generator, stretches) -> np.ndarray:
    """U diag(s) V^T with random rotations U, V for each row s of `stretches`, shape (n, dim, dim)."""
    s = np.atleast_2d(np.array(stretches, dtype=np.float64))
    U, V = (rotations(rng, len(s), s.shape[1]) for _ in range(2))
    return np.einsum("nij,nj,nkj->nik", U, s, V)


def deformations(dim: int, inverted: bool = False) -> np.ndarray:
    """Deformation gradients that a law has to master, shape (n, dim, dim).

    No deformation, pure rotation, repeated and nearly repeated (1e-9) singular values, stretch and squash by up to two,
    shear, and 30 at random; with `inverted` also such with det F < 0.
    """
    rng = np.random.default_rng(dim)
    special = [(1.0,) * dim, (1.2,) * dim, (0.7,) * dim, (1.0, *(1.0 + 1e-9,) * (dim - 1)), (2.0, *(0.6,) * (dim - 1))]
    special += [(1.5, 1.5 + 1e-9, 0.8)[:dim], (1.3, 0.8, 0.8 + 1e-9)[:dim], (2.0, 1.0, 0.5)[:dim], (0.5,) * dim]
    special += [(1.0, 1.0 + 1e-6, 1.0 - 1e-6)[:dim], (0.6, 1.9, 1.1)[:dim]]
    diagonal = np.array([np.diag(s) for s in special])
    shear = np.eye(dim) + 0.4 * np.eye(dim, k=1)
    noise = np.eye(dim) + 0.25 * rng.normal(size=(120, dim, dim))
    noise = noise[np.linalg.det(noise) > 0.2][:30]
    assert len(noise) == 30
    F = [diagonal, rotations(rng, 3, dim), turned(rng, special), shear[None], noise]
    if inverted:
        F.append(turned(rng, [(1.2, 0.9, -0.3)[3 - dim :], (1.0, 1.0, -0.5)[3 - dim :], (1.5, 1.1, -0.7)[3 - dim :]]))
    return np.concatenate(F)


def returned(kernel: wp.Kernel, F: np.ndarray, history, strength, weights=None):
    """F' and history' by a kernel of a return mapping, with arrays (F, history, strength, F', history').

    With weights of both also the gradients of their weighted sum with respect to F, history and strength.
    """
    mat = matrix(F.shape[-1])
    arrays = [
        wp.array(np.ascontiguousarray(F, real_numpy), dtype=mat, requires_grad=True, device="cpu"),
        wp.array(np.broadcast_to(history, len(F)).astype(real_numpy), dtype=real, requires_grad=True, device="cpu"),
        wp.array(np.array(strength, real_numpy), dtype=real, requires_grad=True, device="cpu"),
    ]
    outputs = [wp.zeros(len(F), dtype=t, requires_grad=True, device="cpu") for t in (mat, real)]
    with wp.Tape() as tape:
        wp.launch(kernel, len(F), arrays, outputs, device="cpu")
    values = [o.numpy().astype(np.float64) for o in outputs]
    if weights is None:
        return values
    grads = [wp.array(w.astype(real_numpy), dtype=o.dtype, device="cpu") for w, o in zip(weights, outputs, strict=True)]
    tape.backward(grads=dict(zip(outputs, grads, strict=True)))
    return values, [array.grad.numpy().astype(np.float64) for array in arrays]
