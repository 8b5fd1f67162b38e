"""A Maxwell branch: a spring and a dashpot in series, at finite strains.

Finite linear viscoelasticity in logarithmic strains, integrated by the exponential map (Reese & Govindjee 1998): the
branch has an elastic deformation G of its own. G follows the motion as the deformation gradient does, and relaxes:

    e   = dev ln(G G^T) / 2                          (logarithmic strain of the spring, without its volume)
    Psi = mu e : e
    tau = 2 mu e
    de/dt = D - e / T,   D the rate of strain

with the shear modulus mu and the relaxation time T. If D is constant during a step dt = x T, the strain after the step
is

    e' = exp(-x) e + b dt D = b (a e + dt D),   b = (1 - exp(-x)) / x,   a = x / (exp(x) - 1),   a b = exp(-x)

so a step multiplies the strain of the spring by a, adds the strain of the motion, and multiplies the sum by b. This is
exact for small strains at every constant rate, including zero. For large strains it is a symmetric splitting with an
error of second order. Relaxation of the strain e to c e keeps the axes of e: G' = exp((c - 1) e) G, which has the
rotation and the determinant of G. The dashpot dissipates 2 mu e : e / T >= 0. In 2D, dev is the deviator in the plane.
"""

import functools

import warp as wp

from warpbots.materials.hencky import log_strain
from warpbots.numerics import exp_symmetric, matrix, real

__all__ = ["maxwell", "maxwell_step"]


@functools.cache
def _deviator(dim: int) -> wp.Function:
    mat, strain = matrix(dim), log_strain(dim)
    d = real(dim)

    @wp.func
    def spring_strain(G: mat):
        """e = dev ln(G G^T) / 2."""
        e = strain(G)
        return e - wp.trace(e) / d * wp.identity(n=dim, dtype=real)

    return spring_strain


@functools.cache
def maxwell(dim: int) -> tuple[wp.Function, wp.Function]:
    """Warp functions Psi(G, mu) and tau(G, mu) [Pa] for the deformation G of the spring, shape (`dim`, `dim`)."""
    mat, spring_strain = matrix(dim), _deviator(dim)

    @wp.func
    def branch_energy(G: mat, mu: real):
        """Psi = mu e : e."""
        e = spring_strain(G)
        return mu * wp.ddot(e, e)

    @wp.func
    def branch_stress(G: mat, mu: real):
        """tau = 2 mu e."""
        return real(2.0) * mu * spring_strain(G)

    return branch_energy, branch_stress


@wp.func
def lost_before(x: real):
    """The fraction 1 - a of the strain that is lost before the motion, with the factor a of the module's formula.

    For small x it is computed as 1 + y - y coth y, with y = x/2 and Lambert's continued fraction of y coth y - 1,
    because the subtraction of nearly equal numbers would magnify the rounding error by 1/x.
    """
    if x < real(1.0):
        y = real(0.5) * x
        z = y * y
        tail = real(11.0) + z / (real(13.0) + z / real(15.0))
        return y - z / (real(3.0) + z / (real(5.0) + z / (real(7.0) + z / (real(9.0) + z / tail))))
    fading = wp.exp(-x)
    return real(1.0) - x * fading / (real(1.0) - fading)


@wp.func
def lost_after(x: real):
    """The fraction 1 - b of the strain that is lost after the motion; for small x computed from a b = exp(-x)."""
    if x < real(1.0):
        t = wp.tanh(real(0.5) * x)
        lost = real(2.0) * t / (real(1.0) + t)  # 1 - exp(-x)
        before = lost_before(x)
        return (lost - before) / (real(1.0) - before)
    return real(1.0) - (real(1.0) - wp.exp(-x)) / x


@functools.cache
def maxwell_step(dim: int) -> wp.Function:
    """Warp function G'(G, M, T, dt): elastic deformation of the spring after the motion M of matter in the time dt [s].

    M = F' F^-1 is the relative deformation gradient of the step, of shape (`dim`, `dim`); T is the relaxation time [s].
    """
    mat, spring_strain, exp = matrix(dim), _deviator(dim), exp_symmetric(dim)

    @wp.func
    def relaxed(G: mat, lost: real):
        """exp(-lost e) G."""
        return exp(-lost * spring_strain(G)) @ G

    @wp.func
    def moved_and_relaxed(G: mat, M: mat, T: real, dt: real):
        """G': G with the strain relaxed by the factor a, moved by M, and with the strain relaxed by the factor b."""
        x = dt / T
        return relaxed(M @ relaxed(G, lost_before(x)), lost_after(x))

    return moved_and_relaxed
