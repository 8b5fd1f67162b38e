"""The result of a fit to data: values, their covariance and intervals."""

import dataclasses
from functools import cached_property

import numpy as np

from warpbots.optimize.history import History

__all__ = ["Estimate"]


@dataclasses.dataclass(frozen=True, eq=False)
class Estimate:
    """Values of the unknowns that fit data best, and their uncertainty due to noise in the data.

    Let J be the Jacobian of the residuals, each divided by the standard deviation of its noise. Near the minimum the
    residuals are treated as linear in the unknowns. The covariance of the estimate is then the inverse of the
    Gauss-Newton matrix Jᵀ J (Seber and Wild, Nonlinear Regression, 1989, section 2.1). Errors of the model are not
    included.

    An unknown that is a tensor consists of several numbers. n is the number of all numbers of all unknowns, and m is
    the number of residuals.

    Attributes:
        names: Name of each number, such as ``E`` or ``E[2]``, shape (n,).
        value: Estimate of each number, in the units of the unknowns, shape (n,).
        residual: Residuals at the estimate, shape (m,). They are divided by the standard deviations of the noise if
            these were given, otherwise they have the units of the residual function.
        jacobian: Derivative of `residual` with respect to `value`, shape (m, n).
        at_bound: Whether each number lies on one of its bounds, so that its interval means little, shape (n,), bool.
        noise_known: Whether the noise was given; if not, the noise is estimated from the residuals.
        history: History of the search, whose loss is half the sum of the squares of `residual`.
    """

    names: list[str]
    value: np.ndarray
    residual: np.ndarray
    jacobian: np.ndarray
    at_bound: np.ndarray
    noise_known: bool
    history: History

    @property
    def freedom(self) -> int:
        """Degrees of freedom m - n: number of residuals minus number of unknowns."""
        return self.jacobian.shape[0] - self.jacobian.shape[1]

    @property
    def reduced_chi_square(self) -> float:
        """Sum of the squares of `residual`, divided by `freedom`: close to 1 if the noise and the model are right.

        If the noise was not given, the number is an estimate of the variance of the noise. It is NaN if `freedom` is
        zero.
        """
        return float(self.residual @ self.residual / self.freedom) if self.freedom else float("nan")

    @cached_property
    def covariance(self) -> np.ndarray:
        """Covariance (Jᵀ J)⁻¹ of the estimate, times `reduced_chi_square` if the noise was not given, shape (n, n).

        Raises:
            ValueError: The data do not determine all unknowns.
        """
        size = np.linalg.norm(self.jacobian, axis=0)  # so that units do not matter
        _, s, directions = np.linalg.svd(self.jacobian / np.where(size > 0.0, size, 1.0), full_matrices=False)
        if s[-1] <= _SINGULAR * s[0]:
            parts = ", ".join(
                f"{part:+.2g} of {name!r}"
                for part, name in zip(directions[-1], self.names, strict=True)
                if abs(part) > 0.1
            )
            raise ValueError(
                f"the data do not tell the unknowns apart: the residuals do not change along {parts}, relative to the "
                f"columns of the Jacobian (singular values {s[-1]:.2g} and {s[0]:.2g}); leave an unknown out, or add "
                f"another experiment"
            )
        root = directions.T / s / size[:, None]
        return root @ root.T * (1.0 if self.noise_known else self.reduced_chi_square)

    @property
    def deviation(self) -> np.ndarray:
        """Standard deviation of each number, in the units of the unknowns, shape (n,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def correlation(self) -> np.ndarray:
        """Correlation coefficient of each pair of estimated numbers, shape (n, n)."""
        return self.covariance / np.outer(self.deviation, self.deviation)

    def interval(self, level: float = 0.95) -> np.ndarray:
        """Confidence interval of each number by itself, in the units of the unknowns.

        Args:
            level: Confidence level, in (0, 1). The normal distribution is used if the noise was given, otherwise
                Student's t distribution.

        Returns:
            Lower and upper end of each interval, shape (n, 2).

        Raises:
            ValueError: `level` is out of range.
        """
        from scipy import stats

        if not 0.0 < level < 1.0:
            raise ValueError(f"Estimate.interval: level must be between 0 and 1, got {level:g}")
        law = stats.norm() if self.noise_known else stats.t(self.freedom)
        half = law.ppf(0.5 + 0.5 * level) * self.deviation
        return np.stack([self.value - half, self.value + half], axis=1)

    def __str__(self) -> str:
        """Text with a line for each number: its value and the half-width of its 95 % confidence interval.

        If the search has not converged, so that the intervals may be wrong, a last line says why it ended.
        """
        half = 0.5 * np.diff(self.interval(), axis=1)[:, 0]
        lines = (
            f"{name} = {v:.6g} ± {h:.2g}" + (" (on a bound)" if bound else "")
            for name, v, h, bound in zip(self.names, self.value, half, self.at_bound, strict=True)
        )
        ended = self.history.reason
        return "\n".join([*lines, *([f"not converged: {ended}"] if ended not in ("", "converged") else [])])


_SINGULAR = 1e-5  # ratio of singular values below which rollouts in single precision tell nothing
