"""Identification of the unknowns that fit data best, in the sense of least squares."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import numpy as np
import torch

from warpbots.optimize.doubts import OptimizeWarning
from warpbots.optimize.estimate import Estimate
from warpbots.optimize.history import History
from warpbots.optimize.problem import Problem
from warpbots.optimize.progress_bar import progress_bar
from warpbots.optimize.rollout_error import RolloutError
from warpbots.optimize.run import LIMIT, Complete, Ending, Progress, Run
from warpbots.optimize.unknowns import UnknownLike, Unknowns
from warpbots.scene.field_types import checked
from warpbots.user_warning import warn_user

__all__ = ["least_squares"]


@checked
def least_squares(
    residual: Callable[[], torch.Tensor],
    unknowns: UnknownLike | Iterable[UnknownLike] | Mapping[str, UnknownLike],
    *,
    noise: float | torch.Tensor | None = None,
    jacobian: Literal["adjoint", "differences"] | None = None,
    step: float | None = None,
    iterations: int = 50,
    tolerance: float = 1e-6,
    progress: bool = True,
    callback: Callable[[History], bool | None] | None = None,
) -> Estimate:
    """Find the unknowns with the smallest sum of squared residuals, and their uncertainty.

    The method is the trust-region reflective algorithm of `scipy.optimize.least_squares`, which respects the bounds of
    the unknowns. With the Jacobian by ``"adjoint"`` the derivatives are exact, and each row of the Jacobian takes one
    backward pass through the same rollout. With the Jacobian by ``"differences"`` each column takes two rollouts, in
    which one number is changed by +`step` and by -`step`. If a rollout after the first rollout fails, the trust-region
    step becomes four times smaller, and `History.failures` counts the rollout. Ctrl-C ends the search and keeps the
    best values. If the search has not converged at the limit of iterations, there is an `OptimizeWarning`.

    Args:
        residual: Function that runs a rollout and returns the prediction minus the data, a tensor of any shape that is
            the same at each call.
        unknowns: The unknowns to identify, changed in place, in any of the forms that `warpbots.minimize` takes. The
            scale of an unknown is a typical change of its values.
        noise: Standard deviation of the noise in each residual, in the units of the residual: a number, or a tensor of
            the shape of the residuals. None if the standard deviation is not known but equal for all residuals; it is
            then estimated from the residuals, so that errors of the model count as noise.
        jacobian: ``"adjoint"``, ``"differences"``, or None to choose the way that takes fewer rollouts and backward
            passes.
        step: Step of the differences, in units of the scales. None for the cube root of three times the square root of
            the rounding unit, as in `warpbots.optimize.hessian_product`: 0.1 in float32, 0.004 in float64.
        iterations: Largest number of iterations, each with a Jacobian.
        tolerance: Relative change of the sum of squares, or of the unknowns, below which the search has converged.
        progress: Whether to show a progress bar with the loss, half the sum of squares, and the remaining time.
        callback: Function that is called with the history in every iteration; the search ends if the function returns
            a true value.

    Returns:
        The estimate with its covariance and intervals, in the units of the unknowns, and the history.

    Raises:
        ValueError: An argument is out of range, an unknown is invalid (see `warpbots.minimize`), or there are fewer
            residuals than unknown numbers; if `noise` is None, there must be more residuals than unknown numbers.
        RolloutError: The first rollout or a rollout for a difference failed, or its residuals are not finite.
        RuntimeError: The search was interrupted before the first Jacobian.
        FloatingPointError: A derivative is not finite.
    """
    if iterations < 1 or not tolerance > 0.0 or not (step is None or step > 0.0):
        raise ValueError(
            f"least_squares: iterations must be at least 1, tolerance and step positive, got {iterations}, "
            f"{tolerance:g} and {step}"
        )
    search = _Search(residual, Unknowns(unknowns), noise, jacobian, step, tolerance)
    history = History()
    with progress_bar(total=iterations, unit="it", desc="fitting", **({} if progress else {"disable": True})) as bar:
        Run(search.problem, search, iterations, {}, history, bar, callback=callback).work()
    if history.reason == LIMIT.reason:
        failed = f" ({history.failures[-1]} of {history.episodes[-1]} rollouts failed)" if history.failures[-1] else ""
        warn_user(
            OptimizeWarning(
                f"least_squares: the search has not converged after {len(history.loss)} iterations{failed}, so that "
                f"its covariance and intervals, which hold at a minimum, may be wrong; use more iterations, or another "
                f"start or scale"
            )
        )
    return search.estimate(history)


class _Search:
    """A run of `scipy.optimize.least_squares`, with residuals divided by the noise and unknowns by their scales."""

    def __init__(
        self,
        residual: Callable[[], torch.Tensor],
        unknowns: Unknowns,
        noise: float | torch.Tensor | None,
        jacobian: str | None,
        step: float | None,
        tolerance: float,
    ):
        self.problem = Problem(self._loss, unknowns, constrained=False)
        self._residual, self._noise, self._jacobian, self._tolerance = residual, noise, jacobian, tolerance
        eps = max(torch.finfo(t.dtype).eps for t in unknowns.tensors)
        self._step = (3.0 * eps**0.5) ** (1 / 3) if step is None else step
        self._graph: torch.Tensor | None = None  # residuals of the last rollout, with their graph
        self._iteration = 0
        self._shape: torch.Size | None = None
        self._point = np.array([])  # of the last rollout, in units of the scales
        self._best: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # point, residuals and their Jacobian

    def state_dict(self) -> dict[str, Any]:
        raise NotImplementedError("a fit has no checkpoint")

    load_state_dict = state_dict

    def run(self, run: Progress) -> Ending:
        from scipy.optimize import least_squares

        start = self.problem.unknowns.vector()
        first = self._at(start)
        self._check_count(len(first), len(start))
        if self._jacobian is None:
            self._jacobian = "adjoint" if len(first) <= 2 * len(start) else "differences"

        def residuals(z: np.ndarray) -> np.ndarray:
            try:
                return self._at(z)
            except RolloutError:  # SciPy then takes a smaller step
                return np.full(len(first), np.inf)

        def jacobian(z: np.ndarray) -> np.ndarray:  # taken at the start and wherever a step ends
            r = self._at(z)
            J = self.problem.gradients(self._graph) if self._jacobian == "adjoint" else self._by_differences(z)
            self._best = z.copy(), r.copy(), J
            self.problem.unknowns.set_vector(z)
            run.note(0.5 * (r @ r).item(), 0.0, np.linalg.norm(J.T @ r).item())
            if self._iteration > 0:
                run.complete()
            self._iteration += 1
            if run.done >= run.iterations:
                raise Complete
            return J

        result = least_squares(
            residuals,
            start,
            jacobian,
            bounds=self.problem.unknowns.bounds(),
            ftol=self._tolerance,
            xtol=self._tolerance,
        )
        return Ending("converged" if result.status > 0 else LIMIT.reason, result.message)

    def estimate(self, history: History) -> Estimate:
        """Run the search, and return the estimate in the units of the unknowns."""
        if self._best is None:
            raise RuntimeError("least_squares: interrupted before the first Jacobian; there is no estimate")
        unknowns, (z, r, J) = self.problem.unknowns, self._best
        lower, upper = unknowns.bounds()
        scales = unknowns.scales()
        near = self._tolerance * np.maximum(1.0, np.abs(z))
        at_bound = (z - lower <= near) | (upper - z <= near)
        return Estimate(unknowns.number_names(), z * scales, r, J / scales, at_bound, self._noise is not None, history)

    def _check_count(self, m: int, n: int) -> None:
        fewest = n + (self._noise is None)
        if m < fewest:
            raise ValueError(
                f"least_squares: {n} unknown numbers need at least {fewest} residuals"
                f"{', one more than unknowns, to estimate the noise' if self._noise is None else ''}, got {m}"
            )

    def _loss(self) -> torch.Tensor:
        found = self._residual()
        if not isinstance(found, torch.Tensor):
            raise TypeError(f"least_squares: the residual must be a tensor, got {type(found).__name__}")
        if self._shape is None:
            self._shape = found.shape
        if found.shape != self._shape:
            raise ValueError(
                f"least_squares: the residual has the shape {tuple(found.shape)} and had {tuple(self._shape)} before; "
                f"return the same shape each time"
            )
        self._graph = (found / self._sigma(found)).reshape(-1)
        return 0.5 * self._graph.square().sum()

    def _sigma(self, found: torch.Tensor) -> torch.Tensor:
        sigma = torch.as_tensor(1.0 if self._noise is None else self._noise, dtype=found.dtype, device=found.device)
        if sigma.shape not in ((), found.shape) or not ((sigma > 0.0) & sigma.isfinite()).all():
            raise ValueError(
                f"least_squares: noise must be positive, a number or a tensor of the shape {tuple(found.shape)} of the "
                f"residual, got the shape {tuple(sigma.shape)} and a smallest value of {sigma.min().item():g}"
            )
        return sigma

    def _at(self, z: np.ndarray) -> np.ndarray:
        """Residuals for the unknowns `z` times their scales, shape (m,); torch's graph is kept for adjoints."""
        if not np.array_equal(self._point, z):
            self.problem.unknowns.set_vector(z)
            self._point = np.array([])
            with torch.set_grad_enabled(self._jacobian != "differences"):
                self.problem.evaluate(self._iteration)
            self._point = z.copy()
        return self._graph.detach().double().cpu().numpy()

    def _by_differences(self, z: np.ndarray) -> np.ndarray:
        lower, upper = self.problem.unknowns.bounds()
        columns = []
        for i in range(len(z)):
            ends = np.stack([z, z])
            ends[:, i] = np.clip(z[i] + self._step * np.array([-1.0, 1.0]), lower[i], upper[i])
            with torch.no_grad():
                back, ahead = (self._at(end) for end in ends)
            columns.append((ahead - back) / (ends[1, i] - ends[0, i]))
        return np.stack(columns, axis=1)
