"""The step of a solver, checked against the stability bound and the cautions of the solver."""

import functools
import math

from warpbots.gradients import Tensors, at_turn
from warpbots.simulation.input_validation import Inputs, Seen
from warpbots.solvers import Cautious, Model, Solver, Statics
from warpbots.user_warning import warn_user

__all__ = ["MOST_SUBSTEPS", "ControlInterval"]

MOST_SUBSTEPS = 2**31
"""Every number of substeps is below this number."""

_INTERVAL = 0.01
"""Default length of a control interval [s]."""

_LONG = 1.0
"""Length of a control interval beyond which it is probably in milliseconds [s]."""

_NEAR = 1.25
"""Factor on the longest safe step beyond which a step is near the stability bound, and a warning is due."""

_SLACK = 0.95
"""Factor by which a cheap lower bound of the stability bound has to fall before the exact one is computed again."""

_FACTORS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Factors on the safe number of substeps, tried in this order until shorter steps remove no further caution."""


class ControlInterval:
    """The length of a control interval and the number of its substeps.

    Attributes:
        dt: Length of the control interval [s].
        substeps: Number of solver steps in a control interval.
    """

    def __init__(self, solver: Solver, model: Model, dt: float | None, substeps: int | None):
        """Choose `dt` and `substeps` if they are None, and check the solver step against its stability bound.

        Args:
            solver: The solver.
            model: The model of the scene.
            dt: Length of the control interval [s]; None for the interval of the scene's task, or else 0.01 s.
            substeps: Number of solver steps in a control interval; None for the smallest safe number. If `dt` is None
                as well, and the solver has a caution against this number (`Cautious`), the number is multiplied by the
                smallest power of two, up to 128, with which the solver has none.

        Raises:
            ValueError: The step is over the bound, or the smallest safe number of substeps is 2³¹ or more.
        """
        self._solver, self._model = solver, model
        task = model.scene.task
        self.dt = dt if dt is not None else task.control_interval if task is not None else _INTERVAL
        self._judged, self._cautioned, self._warned, self._looked_at = Seen(), False, False, math.inf
        self.substeps = self._safe_substeps(self.bound) if substeps is None else substeps
        still = isinstance(solver, Statics)  # long steps lead to an equilibrium
        if substeps is None and dt is not None and dt > _LONG and not still:
            warn_user(
                f"Simulation: a control interval of dt = {dt:g} s is long: give seconds (1 ms is 1e-3), or say with "
                f"substeps= that it is meant; {self.substeps} would be chosen"
            )
        if substeps is None and dt is None:
            self.substeps *= self._heeded(self.substeps)
        self._refuse()
        self._caution(model)

    @property
    def length(self) -> float:
        """Length of a substep [s]."""
        return self.dt / self.substeps

    @functools.cached_property
    def bound(self) -> float:
        """Largest stable substep [s] according to the solver."""
        return self._solver.max_time_step(self._model)

    def judge(self, inputs: Inputs, parameters: Tensors) -> None:
        """Check the step with replaced parameters, unless these are unchanged since the last call.

        The first parameters with which the step is near a bound that is below the bound without them cause a warning.

        Raises:
            ValueError: With these parameters the step is over the bound.
        """
        if not parameters or self._judged.all_unchanged(parameters):
            return
        bounded, cautious = math.isfinite(self.bound), isinstance(self._solver, Cautious) and not self._cautioned
        if bounded or cautious:
            model = inputs.model_with(parameters)
            if bounded:
                self._refuse_with(model, parameters)
            self._caution(model)
        self._judged.replace(parameters)

    def _safe_substeps(self, bound: float) -> int:
        """Smallest number of substeps with which a step is below `margin` of the solver times `bound`."""
        safe = self._solver.margin * bound
        if not self.dt < (MOST_SUBSTEPS - 1) * safe:
            raise ValueError(
                f"Simulation: dt = {self.dt:g} s is {self.dt / safe if safe else math.inf:.3g} safe steps of "
                f"{safe:.3g} s, more than can be counted; use a shorter dt, softer or denser material, or larger cells"
            )
        return int(self.dt / safe) + 1

    def _heeded(self, substeps: int) -> int:
        """Smallest factor on `substeps` with which shorter steps remove no further caution; 1 without one."""

        def caution(factor: int) -> str | None:
            return self._solver.caution(self._model, self.dt / (substeps * factor))

        if not isinstance(self._solver, Cautious) or caution(1) is None:
            return 1
        last = caution(_FACTORS[-1])
        enough = (factor for factor in _FACTORS[:-1] if caution(factor) == last)
        return next(enough, _FACTORS[-1] if last is None else 1)

    def _refuse(self) -> None:
        bound, dt = self.bound, self.length
        if dt > bound:
            raise ValueError(
                f"the solver step of {dt:.3g} s (dt={self.dt:g} in {self.substeps} substeps) is over the stability "
                f"bound of {bound:.3g} s; use substeps={self._safe_substeps(bound)}, softer or denser material, "
                f"or a larger grid cell"
            )
        if self._is_near(bound):
            warn_user(self._near_in_words(bound))

    def _is_near(self, bound: float) -> bool:
        return self.length > _NEAR * self._solver.margin * bound

    def _near_in_words(self, bound: float) -> str:
        """Warning that the step is near a bound [s], with a safe number of substeps."""
        return (
            f"the solver step of {self.length:.3g} s is {self.length / bound:.2f} of the stability bound of "
            f"{bound:.3g} s, which holds for matter at rest: free surfaces and large deformation may diverge; "
            f"substeps={self._safe_substeps(bound)} is safe"
        )

    def _refuse_with(self, model: Model, parameters: Tensors) -> None:
        """Raise if the step is over the stability bound of `model`, whose `parameters` have been replaced.

        Warn once if the step is near a bound that is below the bound without replaced parameters.
        """
        dt = self.length
        bound = self._solver.max_time_step(model, enough=dt)  # above dt it may be a cheap lower bound
        if dt > bound:
            raise ValueError(
                f"with {_in_words(model, parameters)} replaced, the solver step of {dt:.3g} s is over the stability "
                f"bound of {bound:.3g} s (it is {self.bound:.3g} s without); make the simulation with "
                f"substeps={self._safe_substeps(bound)}, or keep them lower by a projection or a reparametrisation "
                f"(see warpbots.optimize)"
            )
        if self._warned or not self._is_near(bound) or bound > _SLACK * self._looked_at:
            return
        self._looked_at = bound
        exact = self._solver.max_time_step(model)
        if exact < self.bound and self._is_near(exact):
            self._warned = True
            warn_user(f"with {_in_words(model, parameters)} replaced, {self._near_in_words(exact)}")

    def _caution(self, model: Model) -> None:
        """Warn once if the solver cautions against the accuracy of its step."""
        if self._cautioned or not isinstance(self._solver, Cautious):
            return
        with at_turn(self._model.device):
            words = self._solver.caution(model, self.length)
        if words:
            self._cautioned = True
            warn_user(words)


def _in_words(model: Model, parameters: Tensors) -> str:
    """Names of parameters, each with the range of its values, such as "youngs_modulus (1e+04 to 4e+05 Pa)"."""
    words = []
    for name, spec in model.parameters().items():
        if name in parameters and parameters[name].numel():
            ends = dict.fromkeys(f"{end.item():.3g}" for end in parameters[name].aminmax())
            words.append(f"{name} ({' to '.join(ends)}{spec.suffix(model.scene.dim)})")
    return ", ".join(words)
