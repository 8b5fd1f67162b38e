"""Checks of the laws of stress actuators at some random deformations, before anything runs.

Warp differentiates a law without an error even where it cannot, such as in a loop of unknown length; and a stress that
is not symmetric would turn matter without a torque. So the stress S and the gradients of T : S by Warp are compared at
random F, u and T with central differences of S. The same differences show whether P = F S has an energy: its derivative
is symmetric.
"""

import functools
from typing import NamedTuple

import numpy as np
import warp as wp
from numpy.typing import ArrayLike

from warpbots.actuation_laws.constants import constants_type, made, name_of
from warpbots.actuation_laws.stress import StressFunction, acts_as_stress, proportional, stress_law
from warpbots.numerics import launch, matrix, precision, real, real_numpy, wrong_arguments
from warpbots.scene import Actuator, Scene, SceneError

__all__ = ["evaluated", "law_and_constants", "refuse_wrong_laws", "without_energy"]

_SAMPLES = 8
_STRAIN = 0.2
"""Largest entry of F - I in a sample [1]."""

_STEP = {"float32": 1e-2, "float64": 1e-4}[precision]
_ALLOWED = 0.02
"""Relative error of differences and of symmetry that is attributed to rounding and to the curvature of S [1]."""

_KINK = 0.2
"""Relative change of a derivative within two steps that is attributed to a kink [1]."""


class _Samples(NamedTuple):
    """Stress and derivatives at random points, as float64.

    Attributes:
        F: Deformation gradients [1], shape (n, dim, dim).
        S: Stress [Pa], shape (n, dim, dim).
        by_F: Derivative of S with respect to F by differences [Pa], shape (n, dim, dim, dim, dim).
        by_u: Derivative of S with respect to u by differences [Pa], shape (n, dim, dim).
        T: Random symmetric matrices [1], shape (n, dim, dim).
        F_adj: Gradient of T : S with respect to F by Warp [Pa], shape (n, dim, dim).
        u_adj: Gradient of T : S with respect to u by Warp [Pa], shape (n,).
        bend: Largest change of a derivative of S from one side of a point to the other [Pa], shape (n,).
    """

    F: np.ndarray
    S: np.ndarray
    by_F: np.ndarray
    by_u: np.ndarray
    T: np.ndarray
    F_adj: np.ndarray
    u_adj: np.ndarray
    bend: np.ndarray


def law_and_constants(actuator: Actuator, dim: int) -> tuple[StressFunction, np.ndarray]:
    """The law of a stress actuator and its constants as an array, see `stress_law`.

    Raises:
        SceneError: What is registered for the actuator returns something else.
    """
    found = stress_law(actuator, dim)
    who = f"{type(actuator).__name__} {actuator.name!r}: its function registered with stress_law"
    if not isinstance(found, tuple) or len(found) != 2:
        raise SceneError(f"{who} must return a law and its constants, `law, c`, got {found!r}")
    definition, constants = found[0], np.asarray(found[1], dtype=float)
    if isinstance(definition, wp.Function) or not callable(definition):
        raise SceneError(
            f"{who} must return the function of the dimension that makes the Warp function, `law, c` instead of "
            f"`law(dim), c`, got {definition!r}"
        )
    try:
        kind = constants_type(constants.shape)
    except TypeError as fault:
        raise SceneError(f"{who}: {fault}") from None
    if fault := wrong_arguments(made(definition, dim), F=matrix(dim), u=real, c=kind):
        raise SceneError(f"{who} returns constants c of the shape {constants.shape}, and its Warp function {fault}")
    return definition, constants


def refuse_wrong_laws(actuator: Actuator, dim: int) -> None:
    """Raise if the stress of an actuator is not finite and symmetric, or if Warp differentiates it wrongly.

    Raises:
        SceneError: The law is wrong; the message says how.
    """
    definition, constants = law_and_constants(actuator, dim)
    who = f"{type(actuator).__name__} {actuator.name!r}: its stress S(F, u, c)"
    if definition is proportional:
        faults = _stress_faults(constants[None])
    else:
        found = _sampled(definition, constants, dim)
        faults = _stress_faults(found.S) or _derivative_faults(found)
    if faults:
        raise SceneError(f"{who} {faults}")


def without_energy(scene: Scene) -> list[Actuator]:
    """The stress actuators of a scene whose stress F S is not the derivative of an energy with respect to F."""
    return [a for a in scene.actuators if acts_as_stress(a) and not _has_energy(a, scene.dim)]


def _has_energy(actuator: Actuator, dim: int) -> bool:
    """Whether the derivative of F S with respect to F is symmetric."""
    definition, constants = law_and_constants(actuator, dim)
    if definition is proportional:
        return True
    found = _sampled(definition, constants, dim)
    slope = np.einsum("nki,nijlm->nkjlm", found.F, found.by_F)
    slope += np.einsum("kl,nmj->nkjlm", np.eye(dim), found.S)
    return bool(np.abs(slope - slope.transpose(0, 3, 4, 1, 2)).max() <= _ALLOWED * np.abs(slope).max())


def _stress_faults(S: np.ndarray) -> str:
    """Text that says what is wrong with stresses, or "" if nothing is."""
    if not np.isfinite(S).all():
        return "must be finite for det F > 0 and u in [-1, 1]; it is not, for a strain below 0.2"
    if not np.abs(S - S.swapaxes(1, 2)).max() <= _ALLOWED * np.abs(S).max():
        return "must be a symmetric matrix, or it would turn matter without a torque; return (S + S^T) / 2"
    return ""


def _derivative_faults(found: _Samples) -> str:
    """Text that says what is wrong with the gradients by Warp, or "" if nothing is.

    Differences across a kink of the law are ignored.
    """
    T, (F_adj, u_adj) = found.T, (found.F_adj, found.u_adj)
    by_F, by_u = np.einsum("nij,nijkl->nkl", T, found.by_F), np.einsum("nij,nij->n", T, found.by_u)
    size = np.abs(found.S).max() + np.abs(by_F).max() + np.abs(by_u).max()
    wrong = np.maximum(np.abs(F_adj - by_F).max(axis=(1, 2)), np.abs(u_adj - by_u)) > _ALLOWED * size
    if (wrong & (found.bend < _KINK * size)).any():
        return (
            "has other derivatives by Warp than by differences; write it without loops over more than three passes, "
            "and without functions that Warp cannot differentiate"
        )
    return ""


def _sampled(definition: StressFunction, constants: ArrayLike, dim: int) -> _Samples:
    """Stress and derivatives of a law at random points."""
    rng = np.random.default_rng(0)
    F = np.eye(dim) + _STRAIN * rng.uniform(-1.0, 1.0, (_SAMPLES, dim, dim))
    u, T = rng.uniform(-1.0, 1.0, _SAMPLES), rng.uniform(-1.0, 1.0, (_SAMPLES, dim, dim))
    T = T + T.swapaxes(1, 2)
    basis = _STEP * np.eye(dim * dim).reshape(-1, dim, dim)
    moves = [(D, 0.0) for D in (*basis, *-basis)] + [(np.zeros((dim, dim)), h) for h in (_STEP, -_STEP)]
    everywhere = [F, *(F + D for D, _ in moves)], [u, *(u + h for _, h in moves)], [T] * (1 + len(moves))
    S, F_adj, u_adj = evaluated(definition, constants, dim, *map(np.concatenate, everywhere))
    S, n = S.reshape(-1, _SAMPLES, dim, dim), dim * dim
    with np.errstate(invalid="ignore"):  # a stress that is not finite is refused
        ahead, behind = (np.append(S[i : i + n], S[j : j + 1], axis=0) for i, j in ((1, 1 + 2 * n), (1 + n, 2 + 2 * n)))
        slope = (ahead - behind) / (2.0 * _STEP)
        bend = np.abs(ahead - 2.0 * S[0] + behind).max(axis=(0, 2, 3)) / _STEP
    by_F = slope[:-1].reshape(dim, dim, _SAMPLES, dim, dim).transpose(2, 3, 4, 0, 1)
    return _Samples(F, S[0], by_F, slope[-1], T, F_adj[:_SAMPLES], u_adj[:_SAMPLES], bend)


def evaluated(
    definition: StressFunction, constants: ArrayLike, dim: int, F: np.ndarray, u: np.ndarray, T: np.ndarray
) -> list[np.ndarray]:
    """S, and the gradients of T : S with respect to F and u, at many points."""
    values = np.asarray(constants, dtype=real_numpy)
    kind, mat = constants_type(values.shape), matrix(dim)
    given = [
        wp.array(np.asarray(a, dtype=real_numpy), dtype=dtype, device="cpu")
        for a, dtype in ((F, mat), (u, real), (values[None], kind), (T, mat))
    ]
    written = [wp.zeros(len(u), dtype=dtype, device="cpu") for dtype in (mat, mat, real)]
    launch(_evaluate_kernel(definition, values.shape, dim), len(u), given, written, wp.get_device("cpu"))
    return [a.numpy().astype(float) for a in written]


@functools.cache
def _evaluate_kernel(definition: StressFunction, shape: tuple[int, ...], dim: int) -> wp.Kernel:
    """Kernel over points: S, and the gradients of T : S with respect to F and u."""
    Constants, mat, stress = constants_type(shape), matrix(dim), made(definition, dim)
    module = wp.get_module(f"warpbots.actuation_laws.{name_of(definition)}_{dim}d")
    # as in the kernels of second derivatives, which are those with the least unrolling
    wp.set_module_options({"max_unroll": 3}, module)

    @wp.func
    def work(F: mat, u: real, c: Constants, T: mat):
        """T : S(F, u, c)."""
        return wp.ddot(T, stress(F, u, c))

    @wp.kernel(module=module, enable_backward=False)
    def evaluate(
        # state
        F: wp.array[mat],
        u: wp.array[real],
        c: wp.array[Constants],
        T: wp.array[mat],
        # out
        S_out: wp.array[mat],
        F_adj_out: wp.array[mat],
        u_adj_out: wp.array[real],
    ):
        """S and the gradients of T : S."""
        i = wp.tid()
        F_adj, u_adj, _c, _T = wp.grad(work)(F[i], u[i], c[0], T[i])
        F_adj_out[i] = F_adj
        u_adj_out[i] = u_adj
        S_out[i] = stress(F[i], u[i], c[0])

    return evaluate
