"""Checks of the laws of users at some deformations, before anything runs.

Users write energy, stresses and derivatives of a law as separate functions, and Warp gives wrong derivatives of some
functions without an error. So P is compared with differences of Psi, tau with P F^T, the derivatives by Warp with
differences, and dP, as it is compiled in kernels of second derivatives, with differences of P. Laws of this package are
not checked here but by its tests.

Nothing is compared at kinks, nor where a law is not finite away from rest: laws need not be defined everywhere.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import warp as wp

from warpbots.materials.differential import differential
from warpbots.materials.elasticity import (
    DIFFERENTIALS,
    FLUIDS,
    LAWS,
    Definition,
    Differential,
    Law,
    elasticity,
    numbers_type,
)
from warpbots.materials.law_constants import LawConstant
from warpbots.numerics import matrix, real
from warpbots.numerics.derivative_checks import (
    ALLOWED,
    NOISE,
    Difference,
    Sampled,
    brief_module,
    disagreement,
    evaluated,
    is_smooth,
    kernel_of,
    sampled,
)
from warpbots.scene import SceneError
from warpbots.user_warning import warn_user

__all__ = ["check_law", "without_checks"]

_POISSONS_RATIO = 0.25
"""Poisson's ratio of the samples [1]: lambda = mu, so that neither hides an error in the other."""

_NEAR, _STRAINS = 1e-3, (1e-3, 1e-3, 0.02, 0.02, 0.02, 0.2, 0.2, 0.2, 0.2)
"""Largest strain at which a law must be finite, and largest entries of F - I in the samples [1], besides rest."""

_DEVIATION = 0.05
"""Relative deviation of the stiffness at rest above which there is a warning [1]."""

_UNROLLED = 3
"""Largest number of passes of unrolled loops in kernels of second derivatives; in others it is Warp's default."""

_At = Callable[[int], str]
"""Text with the arguments of the law at a sample."""

_without_checks: set[tuple[Definition, Differential | None]] = set()


def without_checks() -> None:
    """Exempt all laws that are registered so far from checks: the laws of this package, which its tests check."""
    _without_checks.update((law, DIFFERENTIALS.get(law)) for law in LAWS.values())


class _Law(NamedTuple):
    """A law at the samples, each function with its derivatives, and dP along the random matrices of P."""

    energy: Sampled
    kirchhoff: Sampled
    piola: Sampled
    change: np.ndarray | None

    @property
    def named(self) -> dict[str, Sampled]:
        """The functions by name."""
        return {"energy Psi": self.energy, "Kirchhoff stress tau": self.kirchhoff, "stress P": self.piola}


def check_law(law: Law, dim: int, E: float, constants: tuple[float, ...], second: bool) -> None:
    """Raise if energy, stresses and derivatives of a law do not agree; warn if E and nu do not give its stiffness.

    Args:
        law: The law.
        dim: 2 or 3.
        E: Young's modulus [Pa].
        constants: Values of the constants of the law.
        second: Whether second derivatives are needed; then dP is checked, too.

    Raises:
        SceneError: The law is wrong, or not finite at rest and near it; the message says how.
    """
    if (law.definition, law.differential) in _without_checks:
        return
    fault, deviation = _faults(law, dim, E, constants, second)
    if fault:
        raise SceneError(f"law {law.name!r}: {fault}")
    if deviation:
        warn_user(f"law {law.name!r}: {deviation}")


@functools.cache
def _faults(law: Law, dim: int, E: float, constants: tuple[float, ...], second: bool) -> tuple[str, str]:
    """Texts about a fault of a law, and about a deviation of its stiffness at rest; "" if there is none."""
    found = _sampled(law, dim, E, constants, second)
    names = ("F", "E", "nu", *(c.name for c in law.constants))

    def at(point: int) -> str:
        k, *s = found.piola.numbers[point]
        values = ", ".join(f"{name} = {v:.4g}" for name, v in zip(names[1:], (k, *s), strict=True))
        return f"at F = {np.round(found.piola.F[point], 4).tolist()}, {values}"

    fault = _not_finite(found, at) or _inconsistent(found, at, E) or _not_derived(law, found, names, at, E)
    return fault, "" if fault or law.name in FLUIDS else _deviation(found, at, E)


def _deviation(found: _Law, at: _At, E: float) -> str:
    """Text if dtau/dF at rest, the first sample, is not lambda I (x) I + 2 mu sym; nothing is compared at a kink."""
    of = found.kirchhoff
    dim, I = len(of.F[0]), np.eye(len(of.F[0]))
    mu, lam = (
        E / (2.0 * (1.0 + _POISSONS_RATIO)),
        E * _POISSONS_RATIO / (1.0 - _POISSONS_RATIO - 2.0 * _POISSONS_RATIO**2),
    )
    expected = lam * np.einsum("ij,kl->ijkl", I, I)
    expected += mu * (np.einsum("ik,jl->ijkl", I, I) + np.einsum("il,jk->ijkl", I, I))
    C = of.slope[0, :, :, : dim * dim].reshape(expected.shape)
    if not is_smooth(of, slice(0, dim * dim))[0]:
        return ""
    far = np.abs(C - expected) - of.error[0, : dim * dim].max()
    worst = np.unravel_index(np.argmax(far), far.shape)
    if far[worst] <= _DEVIATION * np.abs(expected).max():
        return ""
    i, j, k, l = worst
    return (
        f"its stiffness at rest does not follow from E and nu: dtau_{i}{j}/dF_{k}{l} is {C[worst]:.4g} Pa instead of "
        f"{expected[worst]:.4g} Pa {at(0)}; stable steps, damping and the matrix of the global step follow E and nu: "
        f"scale the law, or expect smaller steps"
    )


def _not_finite(found: _Law, at: _At) -> str:
    """Text if a function or a derivative by Warp is not finite at rest or near it."""
    F = found.piola.F
    near = np.flatnonzero(np.abs(F - np.eye(F.shape[-1])).max(axis=(1, 2)) <= _NEAR)
    values = {name: of.value for name, of in found.named.items()}
    values |= {f"derivative by Warp of the {name}": of.adjoint for name, of in found.named.items()}
    values |= {"derivative dP": found.change} if found.change is not None else {}
    for name, value in values.items():
        finite = np.isfinite(value[near]).reshape(len(near), -1).all(axis=1)
        if not finite.all():
            return f"the {name} must be finite at rest and near it, and is not {at(near[np.argmin(finite)])}"
    if not any(np.isfinite(of.slope).all(axis=(1, 2, 3)).any() for of in found.named.values()):
        return "its differences are not finite at any sample with strains of up to 0.2; widen its range"
    return ""


def _inconsistent(found: _Law, at: _At, E: float) -> str:
    """Text if P is not the derivative of Psi, or tau is not P F^T."""
    energy, piola = found.energy, found.piola
    n, dim = piola.F.shape[:2]
    by = energy.slope[:, 0, 0, : dim * dim]
    if fault := disagreement(energy, piola.value.reshape(n, -1), by, ("F",), E):
        return (
            f"the first Piola-Kirchhoff stress P must be the derivative of the energy Psi with respect to F: an entry "
            f"of P is {fault.found:.4g} Pa, by differences of Psi {fault.right:.4g} Pa, {at(fault.point)}; correct P "
            f"or Psi"
        )
    tau, expected = found.kirchhoff.value, piola.value @ piola.F.swapaxes(1, 2)
    with np.errstate(invalid="ignore"):
        wrong = np.abs(tau - expected).max(axis=(1, 2)) > ALLOWED * np.abs(expected).max(axis=(1, 2)) + NOISE * E
    if wrong.any():
        i = int(np.argmax(wrong))
        return (
            f"the Kirchhoff stress tau must be P F^T, but is {np.round(tau[i], 4).tolist()} instead of "
            f"{np.round(expected[i], 4).tolist()} Pa {at(i)}; correct tau or P"
        )
    return ""


def _not_derived(law: Law, found: _Law, names: tuple[str, ...], at: _At, E: float) -> str:
    """Text if a derivative differs from differences."""

    def text(what: str, fault: Difference, remedy: str) -> str:
        return (
            f"{what} has another derivative with respect to {fault.argument} than differences "
            f"({fault.found:.4g} and {fault.right:.4g} Pa per relative change of it, {at(fault.point)}); {remedy}"
        )

    written = (
        "write it without loops over more than {} passes, and without functions that Warp cannot differentiate, or "
        "give Warp their derivative (wp.func_grad)"
    )
    for name, of in found.named.items():
        by = np.einsum("nij,nijm->nm", of.T, of.slope)
        if fault := disagreement(of, of.adjoint, by, names, E):
            return text(f"the {name}, differentiated by Warp,", fault, written.format(wp.config.max_unroll))
    if found.change is None:
        return ""
    of = found.piola
    n, dim = of.F.shape[:2]
    by = np.einsum("nijm,nm->nij", of.slope[..., : dim * dim], of.T.reshape(n, -1)).reshape(n, -1)
    if fault := disagreement(of, found.change.reshape(n, -1), by, ("F",), E):
        if law.differential is not None:
            return text("dP of its differential", fault, "correct it, or leave it out of DIFFERENTIALS")
        written = written.format(_UNROLLED) + ", or register dP (DIFFERENTIALS)"
        return text("the stress P, differentiated by Warp in kernels of second derivatives,", fault, written)
    return ""


def _sampled(law: Law, dim: int, E: float, constants: tuple[float, ...], second: bool) -> _Law:
    """The law and its derivatives at rest and at random deformations."""
    rng = np.random.default_rng(0)
    strains = np.array(_STRAINS)[:, None, None] * rng.uniform(-1.0, 1.0, (len(_STRAINS), dim, dim))
    F = np.eye(dim) + np.concatenate([np.zeros((1, dim, dim)), strains])
    scales = [_scale(c, value, E) for c, value in zip(law.constants, constants, strict=True)]
    inside = [_inside(c, v, h) for c, v, h in zip(law.constants, constants, scales, strict=True)]
    s = np.tile([_POISSONS_RATIO, *inside] if inside else _POISSONS_RATIO, (len(F), 1) if inside else len(F))
    scale = np.array([E, _POISSONS_RATIO, *scales])
    given = F, np.full(len(F), E), s
    made = [sampled(functools.partial(evaluated, kernel), *given, scale) for kernel in _kernels(law, dim)]
    change = evaluated(_change_kernel(law, dim), *given, made[2].T)[0] if second else None
    return _Law(*made, change)


def _scale(constant: LawConstant, value: float, E: float) -> float:
    """Size of changes of a constant."""
    size = abs(value) or (E if constant.unit == "Pa" else 1.0)
    return min(size, 0.25 * (constant.upper - constant.lower))


def _inside(constant: LawConstant, value: float, scale: float) -> float:
    """The value, moved so that small changes of it stay in the range of the constant."""
    margin = 0.03 * scale
    return float(np.clip(value, constant.lower + margin, constant.upper - margin))


@functools.cache
def _kernels(law: Law, dim: int) -> tuple[wp.Kernel, ...]:
    """Kernels of Psi I, tau and P."""
    energy, stress, piola = elasticity(law, 0, dim)
    mat, Numbers = matrix(dim), numbers_type(law)

    @wp.func
    def energy_matrix(F: mat, E: real, s: Numbers):
        """Psi I."""
        return energy(F, E, s) * wp.identity(n=dim, dtype=real)

    functions = {"energy": energy_matrix, "kirchhoff": stress, "piola": piola}
    module = f"warpbots.materials.{law.module}_{dim}d"
    return tuple(kernel_of(f, Numbers, dim, f"{module}_{name}") for name, f in functions.items())


@functools.cache
def _change_kernel(law: Law, dim: int) -> wp.Kernel:
    """Kernel over points that evaluates dP along T as kernels of second derivatives do; arguments as `kernel_of`."""
    _, point, change = differential(law, 0, dim)
    mat, Numbers = matrix(dim), numbers_type(law)
    module = brief_module(f"warpbots.materials.{law.module}_{dim}d_change")
    wp.set_module_options({"max_unroll": _UNROLLED}, module)

    @wp.kernel(module=module, enable_backward=False)
    def evaluate_change(
        # state
        F: wp.array[mat],
        E: wp.array[real],
        s: wp.array[Numbers],
        T: wp.array[mat],
        # out
        change_out: wp.array[mat],
    ):
        """dP along T."""
        i = wp.tid()
        change_out[i] = change(point(F[i], E[i], s[i]), T[i])

    return evaluate_change
