"""Quasi-Newton, SQP and trust-region methods of SciPy, with exact gradients and Jacobians."""

import warnings
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import numpy as np

from warpbots.optimize.problem import Problem
from warpbots.optimize.recorded import Recorded, RecordedEvaluations
from warpbots.optimize.run import LIMIT, Ending, Progress
from warpbots.scene.field_types import checked

__all__ = ["SciPy"]

_CONSTRAINED = {"L-BFGS-B": False, "SLSQP": True, "trust-constr": True}
_REASONS = {  # by status
    "L-BFGS-B": {0: "converged", 1: "evaluation limit", 2: "line search failed"},
    "SLSQP": {0: "converged", 4: "infeasible constraints", 8: "line search failed", 9: LIMIT.reason},
    "trust-constr": {0: LIMIT.reason, 1: "converged", 2: "converged"},
}
_GTOL = 1e-5  # tolerance of the gradient for L-BFGS-B, if the options have none: the default of SciPy


class SciPy:
    """A method of `scipy.optimize.minimize`, with gradients and Jacobians by adjoints; all of them respect bounds.

    One rollout gives loss and constraints, and one backward pass each row of the Jacobian. An iteration is an iteration
    of the method, which may evaluate the loss several times. The loss must be deterministic: line searches fail on
    noise.

    **Steps.** If all unknowns have two bounds, SciPy's L-BFGS-B first tries the full step along the gradient, which
    often ends in a corner of the bounds. Here it begins with a multiple of the unit matrix as inverse Hessian, such
    that no unknown changes by more than its scale in the first trial. Later steps are SciPy's.

    **Rollouts that fail** after the first one have an infinite loss for SLSQP, which then takes a tenth of the step,
    and for trust-constr, which shrinks its region. L-BFGS-B cannot compute with infinities; it receives the value of a
    parabola along the step, with the loss and slope at the start of the step and the minimum at a tenth of the step, so
    that it tries that point next. Its gradient, and the gradient for trust-constr, have the slope of the end of this
    parabola. ``History.failures`` counts such rollouts. A first rollout that fails ends the search, as do derivatives
    that are not finite.
    """

    @checked
    def __init__(self, name: str = "SLSQP", **options: Any):
        """Choose a method.

        Args:
            name: ``"L-BFGS-B"`` for many unknowns without constraints, ``"SLSQP"`` for up to some hundred with
                constraints, ``"trust-constr"`` for many constraints; it needs many more iterations.
            options: Options of SciPy for the method, such as ``ftol=1e-9``; the largest number of iterations is that
                of `warpbots.minimize`.

        Raises:
            ValueError: There is no such method, or SciPy does not take an option for it, or the value of an option;
                instead of ``maxiter``, use ``iterations`` of `warpbots.minimize`.
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
        """Whether it takes constraints."""
        return _CONSTRAINED[self.name]

    def about(self) -> Mapping[str, Any]:
        """Settings that determine the result, by name."""
        return {"optimizer": self.name, **self.options, "scipy": metadata.version("scipy")}

    def search(self, problem: Problem) -> "_SciPySearch":
        """The method at work on a problem."""
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

        def iterated(z: np.ndarray, *_: Any) -> None:
            if name != "SLSQP":
                self._note(run, z / stretch)

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
        """Record the point at the end of an iteration."""
        if self._noted is None or not np.array_equal(self._noted.point.numpy(), z):
            self._noted = self._evaluations.at(z, derivatives=True)
            self._evaluations.note(run, self._noted)

    def _parabola(self, trial: Recorded) -> float:
        """The loss that replaces the loss of a failed trial.

        With the slope m < 0 along the step from the point of the last iteration, the parabola f + m s + 5 |m| s² has
        its minimum at a tenth of the step. At the end of the step, s = 1, its value is f + 4 |m| and its slope -9 m.
        """
        slope = (self._noted.jacobian[0] @ (trial.point - self._noted.point)).item()
        return self._noted.loss + 4.0 * abs(slope)

    def _jacobian(self, z: np.ndarray) -> np.ndarray:
        """Gradients of loss and constraints, shape (1 + n_equality + n_inequality, n), a copy that SciPy may change.

        For a failed trial, the gradients of the last iteration, the first scaled to the slope of the parabola; SLSQP
        needs none.
        """
        if self._evaluations.at(z).failed and self._method.name != "SLSQP":
            rows = self._noted.jacobian.numpy().copy()
            rows[0] *= -9.0
            return rows
        return self._evaluations.at(z, derivatives=True).jacobian.numpy().copy()

    def _constraints(self, n_equality: int, n_inequality: int) -> Any:
        """Constraints in the form that the method expects."""
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
    """Factor that stretches the unknowns so that no entry of a step along `gradient`, shape (n,), is above one.

    Stretched by s, the gradient is 1/s as large, and a step in the original unknowns 1/s² as long. A power of two, so
    that stretching changes no bits.
    """
    largest = np.abs(gradient).max()
    return 2.0 ** np.ceil(0.5 * np.log2(largest)) if largest > 1.0 else 1.0


def _try_option(name: str, option: str, value: Any) -> None:
    """Try an option of SciPy on a small parabola, and refuse it if the method does not take it or its value."""
    from scipy.optimize import OptimizeWarning, minimize

    try:
        with warnings.catch_warnings(action="ignore"):
            warnings.simplefilter("error", OptimizeWarning)
            minimize(lambda z: (float(z @ z), 2.0 * z), np.ones(2), jac=True, method=name, options={option: value})
    except (TypeError, ValueError, AttributeError, ArithmeticError, OptimizeWarning) as error:
        raise ValueError(f"methods.SciPy: {name} does not take the option {option}={value!r}: {error}") from None
