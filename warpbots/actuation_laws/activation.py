"""Actuators of matter on the device: the stress or strain that they give to each element."""

import functools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import warp as wp

from warpbots.actuation_laws.constants import constants_type, made, name_of
from warpbots.actuation_laws.stress import StressFunction, proportional
from warpbots.actuation_laws.stress_checks import law_and_constants, refuse_wrong_laws
from warpbots.numerics import matrix, real
from warpbots.numerics.simd import index, item
from warpbots.scene import Actuator, SceneError

__all__ = ["ActivationArrays", "ActiveLaw", "activation", "active_laws", "active_stress", "active_work"]


@wp.struct
class ActivationArrays:
    """The actuators of each element of matter (a particle or a solid element), as compressed sparse rows.

    start: Index of the first entry of each element, followed by the total number of entries, shape (n + 1,).
    actuator: Index of the actuator of each entry, shape (n_entries,).
    channel: Control channel of each actuator, shape (n_actuators,).
    law: Index of the law of each actuator among the laws of the scene, shape (n_actuators,).
    first: Index of the first constant of each actuator, shape (n_actuators,).
    constant: Constants of the laws of all actuators, matrices row by row, shape (n_constants,).
    """

    start: wp.array[int]
    actuator: wp.array[int]
    channel: wp.array[int]
    law: wp.array[int]
    first: wp.array[int]
    constant: wp.array[real]


class ActiveLaw(NamedTuple):
    """A law of stress actuators, for which kernels are made.

    Attributes:
        name: Part of the names of the Warp modules with the kernels of the law; different laws have different names.
        definition: The function of the dimension that makes the Warp function of the law.
        shape: Shape of the constants of the law: (), (n,) or (dim, dim).
    """

    name: str
    definition: StressFunction
    shape: tuple[int, ...]


def _active_law(actuator: Actuator, dim: int) -> ActiveLaw:
    definition, constants = law_and_constants(actuator, dim)
    return ActiveLaw(name_of(definition), definition, constants.shape)


def active_laws(actuators: Iterable[Actuator], dim: int) -> tuple[ActiveLaw, ...]:
    """The laws of the stress actuators of a scene; the first law is always `proportional`, which costs no kernels."""
    first = ActiveLaw(name_of(proportional), proportional, (dim, dim))
    return (first, *sorted({_active_law(a, dim) for a in actuators} - {first}, key=lambda law: law.name))


def activation(
    actuators: dict[int, Actuator],
    regions: dict[str, np.ndarray],
    count: int,
    dim: int,
    device: wp.Device,
    laws: tuple[ActiveLaw, ...] | None = None,
) -> ActivationArrays:
    """Stress actuators and the elements that they drive, as a Warp struct.

    Args:
        actuators: Actuators by control channel.
        regions: For each region, by name, whether each element belongs to it, shape (count,), bool.
        count: Number of elements.
        dim: 2 or 3.
        device: Device of the arrays.
        laws: `active_laws` of the actuators, for which the kernels are made; None for kernels with `proportional` only.

    Raises:
        SceneError: The law of an actuator is not among `laws`, or its stress is not symmetric, finite and smooth.
    """
    laws = active_laws((), dim) if laws is None else laws
    drives = np.array([regions[a.region] for a in actuators.values()], dtype=bool).reshape(len(actuators), count)
    element, actuator = np.nonzero(drives.T)
    numbers, constants = [], []
    for a in actuators.values():
        law = _active_law(a, dim)
        if law not in laws:
            raise SceneError(
                f"{type(a).__name__} {a.name!r}: this solver has actuators whose stress is proportional to their "
                f"control only, such as Pressure and Muscle; use one of them, or MPM or ProjectiveDynamics"
            )
        refuse_wrong_laws(a, dim)
        numbers.append(laws.index(law))
        constants.append(law_and_constants(a, dim)[1].ravel())
    arrays = ActivationArrays()
    arrays.start = wp.array(np.searchsorted(element, np.arange(count + 1)), dtype=int, device=device)
    arrays.actuator = wp.array(actuator, dtype=int, device=device)
    arrays.channel = wp.array(list(actuators), dtype=int, device=device)
    arrays.law = wp.array(numbers, dtype=int, device=device)
    arrays.first = wp.array(np.cumsum([0, *map(len, constants)])[:-1], dtype=int, device=device)
    arrays.constant = wp.array(np.concatenate([np.zeros(0), *constants]), dtype=real, device=device)
    return arrays


@functools.cache
def _constants_of(shape: tuple[int, ...]) -> wp.Function:
    """Warp function (activation, a) that loads the constants, of the given shape, of actuator a: without a gradient."""
    kind, rows, columns = constants_type(shape), *(*shape, 1, 1)[:2]

    @wp.func
    def number(activation: ActivationArrays, a: int):
        """The only constant."""
        return item(activation.constant, index(activation.first, a))

    @wp.func
    def numbers(activation: ActivationArrays, a: int):
        """The constants as a vector."""
        c = kind()
        for i in range(rows):
            c[i] = item(activation.constant, index(activation.first, a) + i)
        return c

    @wp.func
    def table(activation: ActivationArrays, a: int):
        """The constants as a matrix."""
        c = kind()
        for i in range(rows):
            for j in range(columns):
                c[i, j] = item(activation.constant, index(activation.first, a) + columns * i + j)
        return c

    return (number, numbers, table)[len(shape)]


@functools.cache
def _stress_of(dim: int, laws: tuple[ActiveLaw, ...]) -> wp.Function:
    """Warp function S(activation, a, F, u): stress of actuator a [Pa] by the law of the actuator, one of `laws`."""
    *others, last = laws
    mat, stress, constants = matrix(dim), made(last.definition, dim), _constants_of(last.shape)

    @wp.func
    def by_last(activation: ActivationArrays, a: int, F: mat, u: real):
        """S(F, u, c)."""
        return stress(F, u, constants(activation, a))

    if not others:
        return by_last
    by_others, number = _stress_of(dim, tuple(others)), len(others)

    @wp.func
    def by_law(activation: ActivationArrays, a: int, F: mat, u: real):
        """S(F, u, c) by the law of actuator a."""
        S = mat()
        if activation.law[a] == number:
            S = by_last(activation, a, F, u)
        else:
            S = by_others(activation, a, F, u)
        return S

    return by_law


@functools.cache
def active_stress(dim: int, laws: tuple[ActiveLaw, ...] | None = None) -> wp.Function:
    """Warp function A(activation, e, w, u, F): total stress [Pa] of element e in world w; `laws` as in `activation`.

    With the law `proportional` A may be a strain, and F has no effect.
    """
    mat, stress = matrix(dim), _stress_of(dim, laws or active_laws((), dim))

    @wp.func
    def active_stress_of(activation: ActivationArrays, e: int, w: int, u: wp.array2d[real], F: mat):
        """A = sum_a S_a(F, u_a) over the actuators a of the element."""
        A = mat()
        for k in range(index(activation.start, e), index(activation.start, e + 1)):
            a = index(activation.actuator, k)
            A += stress(activation, a, F, u[w, index(activation.channel, a)])
        return A

    return active_stress_of


@functools.cache
def active_work(dim: int, laws: tuple[ActiveLaw, ...]) -> wp.Function:
    """Warp function (activation, a, F, u, T): T : S(F, u, c) of actuator a, whose gradient is the adjoint of S.

    Put wp.grad of this function above all calls of `active_stress` in a kernel: Warp 1.19 generates the adjoints of
    functions that S calls only if they first occur below wp.grad, otherwise these adjoints are silently 0. A function
    with wp.grad can only be called by a kernel.
    """
    mat, stress = matrix(dim), _stress_of(dim, laws or active_laws((), dim))

    @wp.func
    def work(activation: ActivationArrays, a: int, F: mat, u: real, T: mat):
        """T : S(F, u, c)."""
        return wp.ddot(T, stress(activation, a, F, u))

    return work
