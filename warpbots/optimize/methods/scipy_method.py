"""Quasi-Newton, SQP and trust-region methods of SciPy, with exact gradients and Jacobians."""

import warnings
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import numpy as np

from warpbots.optimize.problem import Problem, Spent
from warpbots.optimize.recorded import GradientFailed, Recorded, RecordedEvaluations
from warpbots.optimize.rollout_error import RolloutError
from warpbots.optimize.run import LIMIT, Ending, Progress
from warpbots.scene.field_types import checked

__all__ = ["SciPy"]

_CONSTRAINED = {"L-BFGS-B": False, "SLSQP": True, "trust-constr": True}
_REASONS = {  # by status
    "L-BFGS-B": {0: "converged", 1: "evaluation limit", 2: "line search failed"},
    "SLSQP": {0: "converged", 4: "infeasible constraints", 8: "line search failed", 9: LIMIT.reason},
    "trust-constr": {0: LIMIT.reason, 1: "converged", 2: "converged"},
}
_BARRIER = 1e-8  # barrier below which trust-constr may end, if the options have none: the default of SciPy
_GTOL = 1e-5  # tolerance of the gradient for L-BFGS-B, if the options have none: the default of SciPy


class SciPy:
    """A method of `scipy.optimize.minimize`, with gradients and Jacobians from adjoints.

    Every supported method respects bounds. One rollout gives the loss and the constraints; each row of the Jacobian
    takes one backward pass. In one iteration the method may evaluate the loss several times. The loss must be
    deterministic, because line searches fail on noise.

    **Steps.** If all unknowns have two bounds, SciPy's L-BFGS-B first tries the full step along the gradient, which
    often ends in a corner of the bounds. Here the initial inverse Hessian of L-BFGS-B is a multiple of the unit matrix,
    so small that no unknown changes by more than its scale in the first trial. Later steps are the steps of SciPy.

    **Failed rollouts.** If a rollout after the first rollout fails, SLSQP receives an infinite loss, and then takes a
    tenth of the step; trust-constr receives an infinite loss, and shrinks its trust region. L-BFGS-B cannot compute
    with infinities. It receives the value of a parabola along the step. At the start of the step, the parabola has the
    loss and the derivative of the last iteration; its minimum is at a tenth of the step, so that L-BFGS-B tries this
    point next. L-BFGS-B and trust-constr receive the gradient of the last iteration times -9, whose derivative along
    the step is the derivative of the parabola at the end of the step. A rollout whose gradient fails, because the
    adjoint of a step does not converge or is not finite, counts as a failed rollout. ``History.failures`` counts failed
    rollouts. If the first rollout or its gradient fails, the search ends.

    **The end within an iteration.** If the limit of episodes or a failed line search ends the search, the best of all
    rollouts counts, even if it is a trial of the unfinished iteration; it is then the last entry of the history.
    """

    @checked
    def __init__(self, name: str = "SLSQP", **options: Any):
        """Choose a method.

        Args:
            name: ``"L-BFGS-B"`` for many unknowns without constraints; ``"SLSQP"`` for up to some hundred unknowns with
                constraints; ``"trust-constr"`` for many constraints, which needs many more iterations.
            options: Options of SciPy for the method, such as ``ftol=1e-9``. ``maxiter`` is not allowed: set
                ``iterations`` of `warpbots.minimize` instead.

        Raises:
            ValueError: There is no method of this name, or SciPy refuses an option or its value for this method.
        """
        if name not in _CONSTRAINED:
            raise ValueError(f"methods.SciPy: there is no method {name!r}, choose from {', '.join(_CONSTRAINED)}")
        if "maxiter" in options:
            raise ValueError("methods.SciPy: instead of maxiter, use the option iterations of warpbots.minimize")
        for option, value in options.items():
            _try_option(name, option, value)
        self.name, self.options = name, options

    @property
    def constrained(self) -> bool:
        """Whether the method can take constraints."""
        return _CONSTRAINED[self.name]

    def about(self) -> Mapping[str, Any]:
        """Settings of the method that determine the result, by name."""
        return {"optimizer": self.name, **self.options, "scipy": metadata.version("scipy")}

    def search(self, problem: Problem) -> "_SciPySearch":
        """Make a search for the minimum of `problem` by this method."""
        return _SciPySearch(self, problem)


class _SciPySearch:
    def __init__(self, method: SciPy, problem: Problem):
        self._method, self._problem = method, problem
        self._start = problem.unknowns.vector()
        self._evaluations = RecordedEvaluations(problem)
        self._noted: Recorded | None = None

    def state_dict(self) -> dict[str, Any]:
        return {"start": self._start.tolist(), **self._evaluations.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._start = np.array(state["start"])
        self._evaluations.load_state_dict(state)

    def run(self, run: Progress) -> Ending:
        while True:
            try:
                ending = self._run(run)
                break
            except GradientFailed:
                self._evaluations.rewind()
                self._noted = None
            except (Spent, RolloutError):
                self._evaluations.note_unfinished(run)
                raise
        if ending.reason not in ("converged", LIMIT.reason):
            self._evaluations.note_unfinished(run)
            return ending._replace(message=f"{ending.message}{self._evaluations.faults}")
        return ending

    def _run(self, run: Progress) -> Ending:
        from scipy.optimize import Bounds, minimize

        name, at, options = self._method.name, self._evaluations.at, {**self._method.options}
        first = at(self._start, derivatives=True)
        lower, upper = self._problem.unknowns.bounds()
        stretch = 1.0
        if name == "L-BFGS-B" and self._problem.unknowns.boxed:
            stretch = _stretch(first.jacobian[0].numpy())
            options["gtol"] = options.get("gtol", _GTOL) / stretch

        def loss(z: np.ndarray) -> float:
            here = at(z / stretch)
            return self._parabola(here) if here.failed and name == "L-BFGS-B" else here.loss

        def gradient(z: np.ndarray) -> np.ndarray:
            row = self._jacobian(z / stretch)[0]
            if name == "SLSQP":  # its callback comes after the next trial; gradients are taken where a step ends
                self._note(run, z)
            return row / stretch

        def iterated(z: np.ndarray, *state: Any) -> None:
            if name != "SLSQP":
                self._note(run, z / stretch)
            # trust-constr would also end at the minimum of loss and barrier, however strong the barrier still is
            if state and state[0].get("barrier_parameter", 0.0) >= options.get("barrier_tol", _BARRIER):
                state[0].optimality = np.inf

        if name != "SLSQP":
            self._note(run, self._start)
        result = minimize(
            loss,
            stretch * self._start,
            method=name,
            jac=gradient,
            bounds=Bounds(stretch * lower, stretch * upper) if self._problem.unknowns.bounded else None,
            constraints=self._constraints(len(first.equality), len(first.inequality)),
            callback=iterated,
            options={**options, "maxiter": run.iterations},
        )
        self._note(run, result.x / stretch)
        return Ending(_REASONS[name].get(result.status, "failed"), str(result.message))

    def _note(self, run: Progress, z: np.ndarray) -> None:
        """Record the unknowns at the end of an iteration; `z` are the unknowns divided by their scales."""
        if self._noted is None or not np.array_equal(self._noted.point.numpy(), z):
            self._noted = self._evaluations.at(z, derivatives=True)
            self._evaluations.note(run, self._noted)

    def _parabola(self, trial: Recorded) -> float:
        """The loss that replaces the loss of a failed trial.

        Let f be the loss of the last iteration, m < 0 its derivative along the step, and s the coordinate along the
        step, from 0 to 1. The parabola f + m s + 5 |m| s² has its minimum at a tenth of the step, s = 0.1. At the end
        of the step, s = 1, its value is f + 4 |m| and its derivative -9 m.
        """
        slope = (self._noted.jacobian[0] @ (trial.point - self._noted.point)).item()
        return self._noted.loss + 4.0 * abs(slope)

    def _jacobian(self, z: np.ndarray) -> np.ndarray:
        """Gradients of loss and constraints at `z`, as a copy that SciPy may change.

        The result has shape (1 + n_equality + n_inequality, n). If the rollout at `z` has failed, it contains the
        gradients of the last iteration, but the gradient of the loss is multiplied by -9: its derivative along the step
        is then the derivative of `_parabola` at the end of the step. SLSQP never requests gradients at failed trials.
        """
        if self._evaluations.at(z).failed and self._method.name != "SLSQP":
            rows = self._noted.jacobian.numpy().copy()
            rows[0] *= -9.0
            return rows
        return self._evaluations.at(z, derivatives=True).jacobian.numpy().copy()

    def _constraints(self, n_equality: int, n_inequality: int) -> Any:
        """Constraints in the form that the method of SciPy expects."""
        from scipy.optimize import NonlinearConstraint

        at, border = self._evaluations.at, 1 + n_equality
        kinds = []
        if n_equality:
            kinds.append(("eq", 1.0, 0.0, lambda z: at(z).equality.numpy().copy(), slice(1, border)))
        if n_inequality:
            kinds.append(("ineq", -1.0, -np.inf, lambda z: at(z).inequality.numpy().copy(), slice(border, None)))

        def jacobian(z: np.ndarray, rows: slice) -> np.ndarray:
            return self._jacobian(z)[rows]

        if self._method.name == "trust-constr":
            return [
                NonlinearConstraint(value, lower, 0.0, jac=lambda z, rows=rows: jacobian(z, rows))
                for _, _, lower, value, rows in kinds
            ]
        return [
            {  # SLSQP wants inequality constraints to be positive
                "type": kind,
                "fun": lambda z, value=value, sign=sign: sign * value(z),
                "jac": lambda z, rows=rows, sign=sign: sign * jacobian(z, rows),
            }
            for kind, sign, _, value, rows in kinds
        ]


def _stretch(gradient: np.ndarray) -> float:
    """Factor s by which unknowns are multiplied so that a full step along the gradient changes none by more than one.

    The gradient with respect to the multiplied unknowns is smaller by the factor 1/s, and a step along this gradient is
    shorter by the factor 1/s² in the original unknowns. The factor s is a power of two, so that a multiplication by s
    does not round.

    Args:
        gradient: Gradient with respect to the original unknowns, shape (n,).
    """
    largest = np.abs(gradient).max()
    return 2.0 ** np.ceil(0.5 * np.log2(largest)) if largest > 1.0 else 1.0


def _try_option(name: str, option: str, value: Any) -> None:
    """Minimise a parabola with an option of SciPy; raise an error if the method refuses the option or its value."""
    from scipy.optimize import OptimizeWarning, minimize

    try:
        with warnings.catch_warnings(action="ignore"):
            warnings.simplefilter("error", OptimizeWarning)
            minimize(lambda z: (float(z @ z), 2.0 * z), np.ones(2), jac=True, method=name, options={option: value})
    except (TypeError, ValueError, AttributeError, ArithmeticError, OptimizeWarning) as error:
        raise ValueError(f"methods.SciPy: {name} does not take the option {option}={value!r}: {error}") from None
