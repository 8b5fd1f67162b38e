"""Motions that grow from an equilibrium: eigenvalues of a long step of implicit Euler that begins there.

Near an equilibrium, with the masses M, the damping C and the stiffness K, a step of length h maps a small velocity v to
A v, and a small displacement u to a displacement that is smaller by B u:

    A = (M + h C + h^2 K)^-1 M,   B = (M + h C + h^2 K)^-1 h^2 K.

A motion with K u = w^2 M u and the damping C u = c M u has the eigenvalues mu = 1 / (1 + c h + w^2 h^2) of A and
beta = mu w^2 h^2 of B. Where it grows without damping as exp(s t), w^2 = -s^2, mu is below 0 or beta is. Slow motions,
stable or not, have the largest mu, so that Arnoldi's method for A finds them in a few products (Saad, Numerical Methods
for Large Eigenvalue Problems, chapter 6); the ratio beta / mu is w^2 h^2. The products are those of the transposes,
adjoints of the step, which have the same eigenvalues. A is symmetric in the inner product a . M^-1 b if all forces have
an energy.
"""

from collections.abc import Callable

import numpy as np

__all__ = ["growing_motions", "linear_fields", "unstable"]

_FEWEST, _MOST = 3, 8
"""Number of products, and the number after which a motion that has not converged is not judged."""
_NEAR = 0.5
"""Eigenvalue from which on another product may show that it is above 1."""
_CONVERGED = 0.5
"""Largest residual of mu and of beta, relative to the distance of mu from the range 0 to 1, or to beta."""


def growing_motions(
    product: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    start: np.ndarray,
    mass: np.ndarray,
    part: np.ndarray,
    neutral: np.ndarray,
    error: float,
    noise: float,
) -> tuple[np.ndarray, np.ndarray]:
    """The growth s h of a motion in each part of a system during a step, 0 if no motion grows, and these motions.

    Only growth counts, not flutter: complex eigenvalues, which friction and forces without an energy may have, are
    taken as stable.

    Args:
        product: Function that multiplies by A^T and by B^T, in all parts at the same time; parts do not affect one
            another.
        start: Velocities with a share of all motions, shape (n,).
        mass: Mass of each velocity, 0 where nothing moves, shape (n,).
        part: Part of each velocity, shape (n,), int.
        neutral: Error of w^2 h^2 in each part: a motion of zero stiffness may have any w^2 h^2 up to this, shape
            (parts,).
        error: Error of beta.
        noise: Error of mu in a part relative to the largest mu there.

    Returns:
        Growth, shape (parts,), NaN where a product is not finite, and the velocities of the motions, shape (n,).
    """
    inverse, parts = np.divide(1.0, mass, out=np.zeros(len(mass)), where=mass > 0.0), len(neutral)

    def times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.bincount(part, a * b * inverse, parts)

    def unit(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        length = np.sqrt(times(a, a))
        return length, a / np.where(length > 0.0, length, 1.0)[part]

    basis, stiff, H = [unit(mass * start)[1]], [], np.zeros((parts, _MOST + 1, _MOST))
    for count in range(1, _MOST + 1):
        rest, less = (np.where(mass > 0.0, a, 0.0) for a in product(basis[-1]))
        stiff.append(less)
        for _ in range(2):  # the second time removes rounding
            for i, v in enumerate(basis):
                along = times(v, rest)
                H[:, i, count - 1] += along
                rest = rest - along[part] * v
        length, rest = unit(rest)
        H[:, count, count - 1] = length
        left = length > noise**2 * np.abs(H[:, 0, 0])
        B, BB = (np.array([[times(a, b) for b in stiff] for a in rows]).transpose(2, 0, 1) for rows in (basis, stiff))
        finite = np.isfinite(H).all(axis=(1, 2)) & np.isfinite(BB).all(axis=(1, 2))
        projected = (np.where(finite[:, None, None], a, 0.0) for a in (H[:, : count + 1, :count], B, BB))
        growth, mode, more = _judged(*projected, neutral, error, noise)
        if not finite.all() or not (more | (growth == 0.0) & (count < _FEWEST) & left).any():
            break
        basis.append(rest)
    motion = inverse * np.einsum("nk,nk->n", mode[part], np.stack(basis[:count], axis=1))
    return np.where(finite, growth, np.nan), motion


def _judged(
    H: np.ndarray, B: np.ndarray, BB: np.ndarray, neutral: np.ndarray, error: float, noise: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Growth of each part, its motion in the basis, and whether another product may show that a motion grows.

    Args:
        H: A^T in the basis, with a row for what is outside of it, shape (parts, k + 1, k).
        B: B^T in the basis, shape (parts, k, k).
        BB: Products of the images of the basis under B^T with one another, shape (parts, k, k).
        neutral: See `growing_motions`.
        error: See `growing_motions`.
        noise: See `growing_motions`.
    """
    mu, vectors = np.linalg.eig(H[:, :-1])
    residual = np.abs(H[:, -1, -1, None] * vectors[:, -1])
    clear = (mu.imag == 0.0) & (np.abs(mu) > noise * np.abs(mu).max(axis=1, keepdims=True))
    y, mu = vectors.real, np.where(clear, mu.real, 1.0)
    beta, square = (np.einsum("pik,pij,pjk->pk", y, A, y) for A in (B, BB))
    damped = (beta * mu < 0.0) & (square - beta**2 < (_CONVERGED * beta) ** 2)
    growing = np.where(damped, -beta / mu, 1.0 - 1.0 / mu)  # s^2 h^2, of which damping hides c h in mu
    grows = clear & (growing > np.maximum(neutral[:, None], error / np.abs(mu)))
    found = grows & (residual < _CONVERGED * np.maximum(-mu, np.where(damped, -beta, mu - 1.0)))
    near = clear & (mu > _NEAR) & (1.0 - 1.0 / (mu + residual) > np.maximum(neutral[:, None], error))
    best = np.where(found, np.abs(mu), 0.0).argmax(axis=1)[:, None]
    some = np.take_along_axis(found, best, axis=1)[:, 0]
    growth = np.sqrt(np.where(some, np.take_along_axis(growing, best, axis=1)[:, 0], 0.0))
    mode = np.take_along_axis(y, best[:, None], axis=2)[..., 0]
    return growth, mode, (grows | near).any(axis=1) & ~some


def linear_fields(position: np.ndarray, part: np.ndarray) -> np.ndarray:
    """A random velocity field in each part of a system that is linear in space, shape (n, dim).

    Smooth velocities contain little of the stiff motions, which are stable.

    Args:
        position: Positions at rest [m], shape (n, dim).
        part: Part of each position, shape (n,), int.
    """
    random, field, dim = np.random.default_rng(0), np.zeros(position.shape), position.shape[1]
    for p in np.unique(part):
        d = position[part == p] - position[part == p].mean(axis=0)
        d /= max(np.abs(d).max(), np.finfo(float).tiny)
        field[part == p] = random.standard_normal(dim) + d @ random.standard_normal((dim, dim))
    return field


def unstable(body: object, rate: float, where: str, remedy: str) -> str:
    """Text of the warning about an unstable equilibrium.

    Args:
        body: The body that moves most.
        rate: Rate of growth s of the motion [1/s].
        where: Text that names the world.
        remedy: Text that says what to do.
    """
    return (
        f"equilibrium: an equilibrium{where} is unstable: a small push of {type(body).__name__} {body.name!r} grows by "
        f"a factor of 2.7 in {1.0 / rate:.2g} s. A real body leaves this state, and gradients are those of a state "
        f"that it leaves; {remedy}"
    )
