"""Quasi-Newton, SQP and trust-region methods of SciPy, with exact gradients and Jacobians."""

from collections.abc import Mapping
from importlib import metadata
from typing import Any

import numpy as np

from warpbots.optimize.problem import Problem
from warpbots.optimize.recorded import RecordedEvaluations
from warpbots.optimize.run import Progress

__all__ = ["SciPy"]

_CONSTRAINED = {"L-BFGS-B": False, "SLSQP": True, "trust-constr": True}


class SciPy:
    """A method of `scipy.optimize.minimize`, with gradients and Jacobians by adjoints; all of them respect bounds.

    One rollout gives loss and constraints, and one backward pass each row of the Jacobian. An iteration is one of the
    method, which may evaluate the loss several times. Losses have to repeat: a search along a line is lost in noise.
    """

    def __init__(self, name: str = "SLSQP", **options: Any):
        """Choose a method.

        Args:
            name: ``"L-BFGS-B"`` for many unknowns without constraints, ``"SLSQP"`` for up to some hundred with
                constraints, ``"trust-constr"`` for many constraints; it needs many more iterations.
            options: Options of SciPy for the method, such as ``ftol=1e-9``; the largest number of iterations is that
                of `warpbots.minimize`.

        Raises:
            ValueError: There is no such method, or `options` contains ``maxiter``.
        """
        if name not in _CONSTRAINED:
            raise ValueError(f"methods.SciPy: there is no method {name!r}, choose from {', '.join(_CONSTRAINED)}")
        if "maxiter" in options:
            raise ValueError("methods.SciPy: maxiter is the option iterations of warpbots.minimize")
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
        self._noted: np.ndarray | None = None

    def state_dict(self) -> dict[str, Any]:
        return {"start": self._start.tolist(), **self._evaluations.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._start = np.array(state["start"])
        self._evaluations.load_state_dict(state)

    def run(self, run: Progress) -> None:
        from scipy.optimize import Bounds, minimize

        name, at = self._method.name, self._evaluations.at
        first = at(self._start, derivatives=True)
        lower, upper = self._problem.unknowns.bounds()

        def gradient(z: np.ndarray) -> np.ndarray:
            row = at(z, derivatives=True).jacobian[0].numpy().copy()  # SciPy may change it in place
            if name == "SLSQP":  # its callback comes after the next trial; gradients are taken where a step ends
                self._note(run, z)
            return row

        def iterated(z: np.ndarray, *_: Any) -> None:
            if name != "SLSQP":
                self._note(run, z)

        if name != "SLSQP":
            self._note(run, self._start)
        result = minimize(
            lambda z: at(z).loss,
            self._start,
            method=name,
            jac=gradient,
            bounds=Bounds(lower, upper) if self._problem.unknowns.bounded else None,
            constraints=self._constraints(len(first.equality), len(first.inequality)),
            callback=iterated,
            options={**self._method.options, "maxiter": run.iterations},
        )
        self._note(run, result.x)

    def _note(self, run: Progress, z: np.ndarray) -> None:
        """Record where an iteration has arrived."""
        if self._noted is None or not np.array_equal(self._noted, z):
            self._noted = z.copy()
            self._evaluations.note(run, self._evaluations.at(z, derivatives=True))

    def _constraints(self, n_equality: int, n_inequality: int) -> Any:
        """Constraints as the method wants them."""
        from scipy.optimize import NonlinearConstraint

        at, border = self._evaluations.at, 1 + n_equality
        kinds = []
        if n_equality:
            kinds.append(("eq", 1.0, 0.0, lambda z: at(z).equality.numpy().copy(), slice(1, border)))
        if n_inequality:
            kinds.append(("ineq", -1.0, -np.inf, lambda z: at(z).inequality.numpy().copy(), slice(border, None)))

        def jacobian(z: np.ndarray, rows: slice) -> np.ndarray:
            return at(z, derivatives=True).jacobian[rows].numpy().copy()

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
