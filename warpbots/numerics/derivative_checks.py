"""Derivatives of Warp functions by Warp, compared with central differences at some points, before anything runs.

Warp gives wrong derivatives of some functions without an error, for example of a loop that it does not unroll. So the
laws of users, which are functions f(F, k, s) of a matrix F, a number k and numbers s, are evaluated at a few points.
The gradients of T : f by Warp, for a random T, are compared with central differences of f.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import warp as wp

from warpbots.numerics.devices import warp_device
from warpbots.numerics.launch import launch
from warpbots.numerics.scalars import matrix, precision, real, real_numpy

__all__ = [
    "ALLOWED",
    "BRIEF",
    "NOISE",
    "Difference",
    "Sampled",
    "brief_module",
    "disagreement",
    "evaluated",
    "is_smooth",
    "kernel_of",
    "sampled",
]

_STEP = {"float32": 1e-2, "float64": 1e-4}[precision]
"""Relative step of differences [1]."""

ALLOWED = 0.02
"""Relative error of differences that is attributed to rounding and to the curvature of f [1]."""

NOISE = 64.0 * float(np.finfo(precision).eps) / _STEP
"""Least error of differences by rounding, relative to the stiffness of f [1]."""

_KINK = 0.2
"""Relative change of a derivative within two steps that is attributed to a kink [1]."""


BRIEF = {"cpu_compiler_flags": "-march=native"}
"""Options of Warp modules whose kernels run a few times at a few points.

LLVM inlines as it does by default. With the higher thresholds of Warp, singular values take up to ten times as long to
compile.
"""


class Sampled(NamedTuple):
    """A function f(F, k, s) of m arguments and its derivatives at n points; k and s are divided by their scales.

    Attributes:
        F: Matrices F [1], shape (n, dim, dim).
        numbers: Numbers k and s, shape (n, m - dim^2).
        value: f, shape (n, dim, dim).
        slope: Derivative of f by differences, F row by row, shape (n, dim, dim, m).
        bend: Largest difference between the one-sided derivatives at a point, shape (n, m).
        error: Largest change of a derivative with twice the step, due to rounding and curvature, shape (n, m).
        T: The matrices T [1], shape (n, dim, dim).
        adjoint: Gradient of T : f by Warp, shape (n, m).
    """

    F: np.ndarray
    numbers: np.ndarray
    value: np.ndarray
    slope: np.ndarray
    bend: np.ndarray
    error: np.ndarray
    T: np.ndarray
    adjoint: np.ndarray


class Difference(NamedTuple):
    """A derivative that differs from central differences.

    Attributes:
        point: Index of the point.
        argument: Name of the argument.
        found: Value of the derivative.
        right: Value by differences.
    """

    point: int
    argument: str
    found: float
    right: float


def brief_module(name: str) -> wp.Module:
    """Warp module with a name and with the options `BRIEF`."""
    module = wp.get_module(name)
    wp.set_module_options(BRIEF, module)
    return module


@functools.cache
def kernel_of(function: wp.Function, kind: type, dim: int, module: str, unrolled: int | None = None) -> wp.Kernel:
    """Kernel over points: f(F, k, s), and the gradients of T : f.

    Args:
        function: The function f(F, k, s), whose values are matrices.
        kind: Type of s.
        dim: Number of rows and columns of F and f.
        module: Name of the Warp module of the kernel; each function needs its own.
        unrolled: Largest number of passes of loops that Warp unrolls; None for Warp's default.
    """
    mat, home = matrix(dim), brief_module(module)
    if unrolled is not None:
        wp.set_module_options({"max_unroll": unrolled}, home)

    @wp.func
    def work(F: mat, k: real, s: kind, T: mat):
        """T : f(F, k, s)."""
        return wp.ddot(T, function(F, k, s))

    @wp.kernel(module=home, enable_backward=False)
    def evaluate(
        # state
        F: wp.array[mat],
        k: wp.array[real],
        s: wp.array[kind],
        T: wp.array[mat],
        # out
        value_out: wp.array[mat],
        F_adj_out: wp.array[mat],
        k_adj_out: wp.array[real],
        s_adj_out: wp.array[kind],
    ):
        """f and the gradients of T : f; gradients first, see `warpbots.solvers.mpm.transfer_adjoint`."""
        i = wp.tid()
        F_adj, k_adj, s_adj, _T = wp.grad(work)(F[i], k[i], s[i], T[i])
        F_adj_out[i] = F_adj
        k_adj_out[i] = k_adj
        s_adj_out[i] = s_adj
        value_out[i] = function(F[i], k[i], s[i])

    return evaluate


def evaluated(kernel: wp.Kernel, F: np.ndarray, k: np.ndarray, s: np.ndarray, T: np.ndarray) -> list[np.ndarray]:
    """f and the gradients of T : f with respect to F, k and s at n points, float64.

    Args:
        kernel: `kernel_of` the function.
        F: Matrices F, shape (n, dim, dim).
        k: Numbers k, shape (n,).
        s: Numbers s, shape (n, *shape of s).
        T: Matrices T, shape (n, dim, dim).
    """
    kinds = [argument.type.dtype for argument in kernel.adj.args]
    given = [
        wp.array(np.ascontiguousarray(a, dtype=real_numpy), dtype=kind, device="cpu")
        for a, kind in zip((F, k, s, T), kinds, strict=False)
    ]
    written = [wp.zeros(len(F), dtype=kind, device="cpu") for kind in kinds[4:]]
    launch(kernel, len(F), given, written, warp_device("cpu"))
    return [a.numpy().astype(float) for a in written]


def sampled(
    evaluate: Callable[..., Sequence[np.ndarray]], F: np.ndarray, k: np.ndarray, s: np.ndarray, scale: np.ndarray
) -> Sampled:
    """Values and derivatives of a function at n points.

    Args:
        evaluate: Function of F, k, s and T that returns f and the gradients of T : f, as `evaluated` does.
        F: Matrices F, shape (n, dim, dim).
        k: Numbers k, shape (n,).
        s: Numbers s, shape (n, *shape of s).
        scale: Scales of k and of all entries of s, by which derivatives are multiplied, shape (number of entries + 1,).
    """
    n, dim = F.shape[:2]
    T = np.random.default_rng(1).uniform(-2.0, 2.0, F.shape)
    scales = np.concatenate([np.ones(dim * dim), scale])
    x = np.concatenate([F.reshape(n, -1), k[:, None], s.reshape(n, -1)], axis=1)
    moves = _STEP * np.diag(scales)
    steps = np.concatenate([np.zeros((1, x.shape[1])), moves, -moves, 2.0 * moves, -2.0 * moves])
    at = (x + steps[:, None]).reshape(-1, x.shape[1])
    found = evaluate(
        at[:, : dim * dim].reshape(-1, dim, dim),
        at[:, dim * dim],
        at[:, dim * dim + 1 :].reshape(-1, *s.shape[1:]),
        np.tile(T, (len(steps), 1, 1)),
    )
    values, *further = found[0].reshape(-1, n, dim, dim)
    ahead, behind, far_ahead, far_behind = np.split(np.array(further), 4)
    with np.errstate(invalid="ignore"):  # the caller judges values that are not finite
        slope = np.moveaxis(ahead - behind, 0, -1) / (2.0 * _STEP)
        bend = np.abs(ahead - 2.0 * values + behind).max(axis=(2, 3)).T / _STEP
        far = np.moveaxis(far_ahead - far_behind, 0, -1) / (4.0 * _STEP)
        error = np.abs(far - slope).max(axis=(1, 2))
        adjoint = np.concatenate([a[:n].reshape(n, -1) for a in found[1:]], axis=1) * scales
    return Sampled(F, x[:, dim * dim :], values, slope, bend, error, T, adjoint)


def is_smooth(found: Sampled, own: slice | int) -> np.ndarray:
    """Whether f, as a function of some arguments, is finite around each point and has no kink, shape (n,), bool."""
    n = len(found.F)
    bend, error = (v[:, own].reshape(n, -1).max(axis=1) for v in (found.bend, found.error))
    slope = np.abs(found.slope[..., own].reshape(n, -1)).max(axis=1)
    with np.errstate(invalid="ignore"):
        return np.isfinite(slope + error) & (bend <= _KINK * slope)


def disagreement(
    found: Sampled, claimed: np.ndarray, by: np.ndarray, arguments: Sequence[str], stiffness: float = 0.0
) -> Difference | None:
    """The first derivative that differs from differences, or None; kinks and values that are not finite are not judged.

    Args:
        found: The function at some points.
        claimed: Derivatives of one number with respect to the first of the m arguments, shape (n, up to m).
        by: These derivatives by differences, shape (n, up to m).
        arguments: Names of F, k and of each entry of s.
        stiffness: Size of derivatives to which rounding is relative, at least.
    """
    n, dim = found.F.shape[:2]
    size = stiffness + np.abs(found.value).max(axis=(1, 2)) + np.abs(found.slope).max(axis=(1, 2, 3))
    for name, own in zip(arguments, [slice(0, dim * dim), *range(dim * dim, claimed.shape[1])], strict=False):
        a, b = (v[:, own].reshape(n, -1) for v in (claimed, by))
        error = found.error[:, own].reshape(n, -1).max(axis=1)
        near = np.maximum(np.abs(found.slope[..., own].reshape(n, -1)).max(axis=1), np.abs(b).max(axis=1))
        judged = is_smooth(found, own)
        with np.errstate(invalid="ignore"):
            right = np.abs(a - b).max(axis=1) <= ALLOWED * near + dim * dim * error + NOISE * size
        if (judged & ~right).any():
            i = int(np.flatnonzero(judged & ~right)[0])
            far = np.abs(a[i] - b[i])
            worst = int(np.argmax(np.where(np.isfinite(far), far, np.inf)))
            return Difference(i, name, float(a[i, worst]), float(b[i, worst]))
    return None
