"""Checks of the laws of stress actuators at some random deformations, before anything runs.

A stress that is not symmetric would turn matter without a torque, and a stress that Warp differentiates wrongly would
give wrong gradients. The same differences show whether P = F S has an energy: then the derivative of P is symmetric.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType

import numpy as np
import warp as wp
from numpy.typing import ArrayLike

from warpbots.actuation_laws.constants import constants_type, made, name_of
from warpbots.actuation_laws.stress import StressFunction, acts_as_stress, proportional, stress_law
from warpbots.numerics import matrix, real, wrong_arguments
from warpbots.numerics.derivative_checks import ALLOWED, Sampled, disagreement, kernel_of, sampled
from warpbots.numerics.derivative_checks import evaluated as evaluated_by
from warpbots.scene import Actuator, Scene, SceneError

__all__ = ["evaluated", "kept_stress_laws", "law_and_constants", "refuse_wrong_laws", "without_energy"]

_SAMPLES = 8
_STRAIN = 0.2
"""Largest entry of F - I in a sample [1]."""

_UNROLLED = 3
"""Largest number of passes of unrolled loops in kernels of second derivatives, the smallest in all kernels."""

_kept: ContextVar[Mapping[type, Callable]] = ContextVar("kept stress laws", default=MappingProxyType({}))


@contextlib.contextmanager
def kept_stress_laws(functions: Mapping[type, Callable]) -> Iterator[None]:
    """Context in which actuators have the laws of `functions`, by class, whatever has been registered since.

    Args:
        functions: Functions that were registered with `stress_law`, by the class of the actuator.
    """
    token = _kept.set(functions)
    try:
        yield
    finally:
        _kept.reset(token)


def law_and_constants(actuator: Actuator, dim: int) -> tuple[StressFunction, np.ndarray]:
    """The law of a stress actuator and its constants as an array, see `stress_law`.

    Raises:
        SceneError: What is registered for the actuator returns something else.
    """
    found = _kept.get().get(type(actuator), stress_law)(actuator, dim)
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
        faults = _stress_faults(found.value) or _derivative_faults(found)
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
    by_F = found.slope[..., : dim * dim].reshape(_SAMPLES, dim, dim, dim, dim)
    slope = np.einsum("nki,nijlm->nkjlm", found.F, by_F)
    slope += np.einsum("kl,nmj->nkjlm", np.eye(dim), found.value)
    return bool(np.abs(slope - slope.transpose(0, 3, 4, 1, 2)).max() <= ALLOWED * np.abs(slope).max())


def _stress_faults(S: np.ndarray) -> str:
    """Text that says what is wrong with stresses, or "" if nothing is."""
    if not np.isfinite(S).all():
        return "must be finite for det F > 0 and u in [-1, 1]; it is not, for a strain below 0.2"
    if not np.abs(S - S.swapaxes(1, 2)).max() <= ALLOWED * np.abs(S).max():
        return "must be a symmetric matrix, or it would turn matter without a torque; return (S + S^T) / 2"
    return ""


def _derivative_faults(found: Sampled) -> str:
    """Text that says what is wrong with the gradients by Warp, or "" if nothing is."""
    m = found.F[0].size + 1  # F and u
    by = np.einsum("nij,nijm->nm", found.T, found.slope[..., :m])
    if fault := disagreement(found, found.adjoint[:, :m], by, ("F", "u")):
        return (
            f"has other derivatives with respect to {fault.argument} by Warp than by differences ({fault.found:.4g} "
            f"and {fault.right:.4g}); write it without loops over more than three passes, and without functions that "
            f"Warp cannot differentiate"
        )
    return ""


def _sampled(definition: StressFunction, constants: ArrayLike, dim: int) -> Sampled:
    """Stress and derivatives of a law at random points."""
    rng = np.random.default_rng(0)
    F = np.eye(dim) + _STRAIN * rng.uniform(-1.0, 1.0, (_SAMPLES, dim, dim))
    u, c = rng.uniform(-1.0, 1.0, _SAMPLES), np.asarray(constants, dtype=float)
    kernel = _kernel(definition, c.shape, dim)
    scale = np.concatenate([np.ones(1), np.zeros(c.size)])  # constants stay as they are
    return sampled(functools.partial(evaluated_by, kernel), F, u, np.tile(c, (_SAMPLES, *(1,) * c.ndim)), scale)


def evaluated(
    definition: StressFunction, constants: ArrayLike, dim: int, F: np.ndarray, u: np.ndarray, T: np.ndarray
) -> list[np.ndarray]:
    """S, and the gradients of T : S with respect to F and u, at many points."""
    c = np.asarray(constants, dtype=float)
    repeated = np.tile(c, (len(u), *(1,) * c.ndim))
    return evaluated_by(_kernel(definition, c.shape, dim), F, u, repeated, T)[:3]


def _kernel(definition: StressFunction, shape: tuple[int, ...], dim: int) -> wp.Kernel:
    """Kernel over points: S, and the gradients of T : S."""
    module = f"warpbots.actuation_laws.{name_of(definition)}_{dim}d"
    return kernel_of(made(definition, dim), constants_type(shape), dim, module, _UNROLLED)
