"""Hencky's logarithmic elasticity (Hencky 1928; de Souza Neto et al. 2008, chapter 13).

    e   = ln(F F^T) / 2   (logarithmic strain)
    Psi = mu e : e + lambda/2 (ln J)^2 = mu sum_i (ln s_i)^2 + lambda/2 (ln J)^2
    tau = 2 mu e + lambda ln(J) I
    P   = tau F^-T

with the singular values s_i of F. The Kirchhoff stress is linear in the strain, which makes return mappings of plastic
matter as simple as for small strains (`warpbots.materials.von_mises`). In 2D the law describes plane strain. Valid
while J = det F > 0; ln J makes inverted matter NaN, which stops the run. The force on a bar decreases beyond a stretch
of 2.718.
"""

import functools

import warp as wp

from warpbots.numerics import cofactor, eigen, log_differential, log_symmetric, matrix, real

__all__ = ["differential", "law", "log_strain"]


@functools.cache
def log_strain(dim: int) -> wp.Function:
    """Warp function e(F) = ln(F F^T) / 2 [1] of deformation gradients of shape (`dim`, `dim`)."""
    mat = matrix(dim)
    log = log_symmetric(dim)

    @wp.func
    def hencky_strain(F: mat):
        """Spatial logarithmic strain, whose trace is ln |J|."""
        return real(0.5) * log(F @ wp.transpose(F))

    return hencky_strain


def law(dim: int) -> tuple[wp.Function, wp.Function, wp.Function]:
    """Psi(F, mu, lambda), tau(F, mu, lambda) and P(F, mu, lambda) [Pa] in `dim` dimensions."""
    mat, cof = matrix(dim), cofactor(dim)
    strain = log_strain(dim)

    @wp.func
    def hencky_energy(F: mat, mu: real, lam: real):
        """Psi = mu e : e + lambda/2 (ln J)^2."""
        e = strain(F)
        log_J = wp.log(wp.determinant(F))
        return mu * wp.ddot(e, e) + real(0.5) * lam * log_J * log_J

    @wp.func
    def hencky_stress(F: mat, mu: real, lam: real):
        """tau = 2 mu e + lambda ln(J) I."""
        return real(2.0) * mu * strain(F) + lam * wp.log(wp.determinant(F)) * wp.identity(n=dim, dtype=real)

    @wp.func
    def hencky_piola(F: mat, mu: real, lam: real):
        """P = tau F^-T."""
        return hencky_stress(F, mu, lam) @ cof(F) / wp.determinant(F)

    return hencky_energy, hencky_stress, hencky_piola


def differential(dim: int) -> tuple[type, wp.Function, wp.Function]:
    """A Warp struct of the terms of dP at F, the function of (F, mu, lambda) that fills it, and dP(point, dF) [Pa]."""
    mat, cof, eigen_of = matrix(dim), cofactor(dim), eigen(dim)
    slopes, change_of_log = log_differential(dim)
    _, stress, _ = law(dim)

    @wp.struct
    class HenckyPoint:
        """The terms of dP that depend on F.

        F: Deformation gradient F.
        inverse: Transposed inverse F^-T.
        tau: Kirchhoff stress tau [Pa].
        Q: Eigenvectors of F F^T.
        G: Divided differences of the logarithm at the eigenvalues of F F^T.
        mu: Lamé's constant mu [Pa].
        lam: Lamé's constant lambda [Pa].
        """

        F: mat
        inverse: mat
        tau: mat
        Q: mat
        G: mat
        mu: real
        lam: real

    @wp.func
    def hencky_point(F: mat, mu: real, lam: real):
        """The terms of dP at F."""
        squares, Q = eigen_of(F @ wp.transpose(F))
        point = HenckyPoint()
        point.F = F
        point.inverse = cof(F) / wp.determinant(F)
        point.tau = stress(F, mu, lam)
        point.Q = Q
        point.G = slopes(squares)
        point.mu = mu
        point.lam = lam
        return point

    @wp.func
    def hencky_differential(point: HenckyPoint, dF: mat):
        """dP = (dtau - tau F^-T dF^T) F^-T, with dtau = mu d(ln F F^T) + lambda (F^-T : dF) I."""
        half = dF @ wp.transpose(point.F)
        dtau = point.mu * change_of_log(point.Q, point.G, half + wp.transpose(half))
        dtau += point.lam * wp.ddot(point.inverse, dF) * wp.identity(n=dim, dtype=real)
        return (dtau - point.tau @ point.inverse @ wp.transpose(dF)) @ point.inverse

    return HenckyPoint, hencky_point, hencky_differential
