"""Inputs of a simulation: parameters, controls and fields of a state, checked and broadcast to shapes of the model."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import warp as wp

from warpbots.gradients import Tensors, at_turn, refuse_transforms, tensor_of
from warpbots.near_names import no_parameter
from warpbots.scene.field_types import fitted as fitted_to
from warpbots.scene.field_types import shown
from warpbots.solvers import ChangesRestLengths, Model, Parameter
from warpbots.trajectory import TensorState_co
from warpbots.user_warning import warn_user

__all__ = ["Controller", "Inputs", "Seen", "kept", "parameter_fault", "warn_of_w_first"]

Controller = Callable[[TensorState_co, float], torch.Tensor]
"""A controller of a robot: (state, time [s]) -> control of shape (worlds, channels) with values in [-1, 1].

The time is a number, or a tensor of shape (worlds,) if a rollout was started with one age for each world."""


class Seen:
    """Tensors that were checked before, known by their values: not every write to a tensor is counted by torch."""

    def __init__(self):
        """Begin without any tensors."""
        self._known: Tensors = {}

    def unchanged(self, name: str, tensor: torch.Tensor) -> bool:
        """Whether `tensor` has the values of the tensor that was last added under this name."""
        return name in self._known and torch.equal(self._known[name], tensor.detach())

    def all_unchanged(self, tensors: Tensors) -> bool:
        """Whether `tensors` are exactly the tensors added so far, under the same names and with the same values."""
        return self._known.keys() == tensors.keys() and all(self.unchanged(n, t) for n, t in tensors.items())

    def add(self, tensors: Tensors) -> None:
        """Remember `tensors` in addition to all earlier tensors."""
        self._known |= {name: tensor.detach().clone() for name, tensor in tensors.items()}

    def replace(self, tensors: Tensors) -> None:
        """Remember `tensors` and forget all others."""
        self._known = {}
        self.add(tensors)


def kept(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` if it requires a gradient, and otherwise a copy.

    A caller may fill the memory of its tensors and arrays again before the gradient is computed, and torch does not
    notice writes by NumPy. A copy of a tensor that requires a gradient would hide a change in place, which is refused.
    """
    return tensor if tensor.requires_grad else tensor.clone()


class Inputs:
    """Converts arguments of steps and rollouts to tensors with the shapes of the arrays of the model.

    Attributes:
        model: The model, which has the parameters; may be replaced by another model with the same parameters.
        no_control: Zero control signals, shape (worlds, channels).
    """

    def __init__(self, model: Model):
        """Allocate `no_control`.

        Args:
            model: The model, which has the parameters.
        """
        self.model, self._inside = model, Seen()
        shape = (model.worlds, model.channels)
        self.no_control = tensor_of(wp.zeros(shape, dtype=model.scalar, device=model.device))

    def fit(self, value: Any, like: torch.Tensor, what: str, entry: str | None = None) -> torch.Tensor:
        """`value` as a tensor of the type and shape of `like`; a copy, unless it requires a gradient (see `kept`).

        Args:
            value: A tensor, an array or numbers.
            like: A tensor of the shape that `value` must broadcast to.
            what: Name of the value in messages.
            entry: Type of an entry, as ``"scalar"`` or ``"vector"``, to refuse booleans, and one number for all
                components of a vector or a matrix unless it is 0; None to accept both.

        Raises:
            ValueError: `value` is not a real tensor, its shape does not fit, or it is of another kind than `entry`.
        """
        try:
            if isinstance(value, np.ndarray):
                value = value.copy()  # torch refuses reversed arrays, and warns of read-only memory
            found = torch.as_tensor(value, device=like.device)
            if found.is_floating_point() and not isinstance(value, torch.Tensor):
                found = torch.as_tensor(value, dtype=like.dtype, device=like.device)  # numbers, which torch would round
            value = found
        except (TypeError, ValueError, RuntimeError):
            raise ValueError(f"{what} must be a tensor, an array or numbers, got {shown(value)}") from None
        refuse_transforms({what: value})
        if value.is_complex():
            raise ValueError(f"{what} must be real, got numbers of type {value.dtype}")
        if entry is not None:
            _refuse_misread(value, what, entry)
        try:
            value = value.to(like.dtype).expand(like.shape)
        except RuntimeError:
            raise ValueError(
                f"{what} must have shape {tuple(like.shape)} or one that broadcasts to it, got {tuple(value.shape)}"
            ) from None
        return kept(value)

    def parameters(self, given: dict[str, Any]) -> Tensors:
        """Parameters, checked against their ranges and broadcast to the shapes of the parameters of the model.

        Raises:
            ValueError: There is no such parameter, its shape does not fit, or a value is outside its range.

        Warnings name quaternions that begin with w (see `warn_of_w_first`), and changes that have no effect.
        """
        known = self.model.parameters()
        fitted, new = {}, {}
        for name, value in given.items():
            if name not in known:
                raise ValueError(no_parameter(name, known))
            array = tensor_of(self.model.parameter(name))
            fitted[name] = self.fit(value, array, f"parameter {name!r}", known[name].entry)
            if not self._inside.unchanged(name, fitted[name]):
                new[name] = fitted[name]
        bad = [_outside(known[name], tensor).any() for name, tensor in new.items()]
        if bad and torch.stack(bad).any():
            dim = self.model.scene.dim
            faults = (parameter_fault(name, known[name], tensor, dim) for name, tensor in new.items())
            fault = next(filter(None, faults))
            raise ValueError(f"{fault}; keep it there with a projection or a reparametrisation (see warpbots.optimize)")
        if new.keys() & set(_LIMITS):
            self._refuse_crossed(fitted)
        if "amplitude" in new:
            self._refuse_vanishing(new["amplitude"])
        for name, tensor in new.items():
            if known[name].entry == "quaternion":
                warn_of_w_first(tensor, tensor_of(self.model.parameter(name)), f"parameter {name!r}")
        for name, stiffness in _ACTS_BY.items():
            if name in new and stiffness in known:
                self._warn_without_effect(name, fitted)
        self._inside.add(new)
        return fitted

    def _refuse_crossed(self, given: Tensors) -> None:
        """Raise if the lower limit of a joint is above its upper limit."""
        lower, upper = (given.get(name, tensor_of(self.model.parameter(name))).detach() for name in _LIMITS)
        crossed = lower > upper
        if crossed.any():
            at = tuple(crossed.nonzero()[0].tolist())
            raise ValueError(
                f"parameter 'joint_lower' must be at most 'joint_upper', got {lower[at].item():g} and "
                f"{upper[at].item():g} at index {list(at)}, where the joint would be pushed both ways; exchange them"
            )

    def _refuse_vanishing(self, amplitude: torch.Tensor) -> None:
        """Raise if actuators with replaced amplitudes together could shrink a length of matter at rest to zero."""
        strains = self.model.rest_strains if isinstance(self.model, ChangesRestLengths) else None
        if strains is not None and (fault := strains.fault(amplitude.detach().cpu().numpy())):
            raise ValueError(f"parameter 'amplitude': {fault}")

    def _warn_without_effect(self, name: str, given: Tensors) -> None:
        """Warn if a parameter is changed only where the stiffness by which it acts is 0."""
        own, by = tensor_of(self.model.parameter(name)).detach(), _ACTS_BY[name]
        stiffness = given.get(by, tensor_of(self.model.parameter(by))).detach()
        changed = given[name].detach() != own
        if changed.any() and not (changed & (stiffness != 0.0)).any():
            at = changed.nonzero()[0].tolist()
            warn_user(
                f"parameter {name!r} is changed only where {by!r} is 0, first at index {at}, and has no effect there; "
                f"give {by!r} as well{_REMEDY.get(name, '')}, or leave the change out"
            )

    def control(self, value: Any) -> torch.Tensor:
        """`value` as a control signal of shape (worlds, channels); a copy, unless it requires a gradient.

        Raises:
            ValueError: The shape of `value` does not broadcast to this shape.
        """
        return self.fit(value, self.no_control, "a control")

    def controller(self, controller: Any, steps: int) -> Controller[Any]:
        """The controller as a function of the state and the time, called once in each control interval.

        Args:
            controller: A function; a table of controls of a shape that broadcasts to (worlds, steps, channels); or None
                for no control.
            steps: Number of control intervals.

        Raises:
            ValueError: The shape of a table does not fit.
        """
        if controller is None:
            return lambda state, time: self.no_control
        if callable(controller) and not isinstance(controller, type):
            return fitted_to(controller, Callable[[Any, Any], Any], "rollout: controller")
        worlds, channels = self.no_control.shape
        like = self.no_control[:, None].expand((worlds, steps, channels))
        table = self.fit(controller, like, "the table of controls")
        rows = iter(table.unbind(dim=1))  # a table counts the intervals of the rollout, whatever the age of the worlds
        return lambda state, time: next(rows)

    def model_with(self, parameters: Tensors) -> Model:
        """The model with copies of `parameters` in place of its parameters."""
        with at_turn(self.model.device):
            arrays = {name: wp.clone(self.model.parameter(name)) for name in parameters}
            for name, array in arrays.items():
                tensor_of(array).copy_(parameters[name].detach())
            return self.model.with_parameters(arrays)


def warn_of_w_first(quaternions: torch.Tensor, usual: torch.Tensor, what: str, whose: str = "") -> None:
    """Warn of (1, 0, 0, 0) among quaternions (x, y, z, w): with w first it is no rotation, here half a turn about x.

    Args:
        quaternions: Quaternions, shape (..., 4).
        usual: Quaternions that they replace, of the same shape; where these are half a turn about x, so it is meant.
        what: Name of the quaternions in messages.
        whose: Name of what they belong to, with " of " before it; "" if there is none, and messages have the index.
    """
    half_turn = quaternions.new_tensor([1.0, 0.0, 0.0, 0.0])
    found = (quaternions.detach() == half_turn).all(-1) & ((usual.detach() ** 2).sum(-1) * _ALIKE > usual[..., 0] ** 2)
    if found.any():
        at = whose or f" at index {found.nonzero()[0].tolist()}"
        warn_user(
            f"{what}: the quaternion (1, 0, 0, 0){at} is half a turn about x, as quaternions are (x, y, z, w) here; no "
            f"rotation is (0, 0, 0, 1)"
        )


def _refuse_misread(value: torch.Tensor, what: str, entry: str) -> None:
    """Raise if a value would be read otherwise than it is meant, see `Inputs.fit`."""
    if value.dtype == torch.bool:
        raise ValueError(f"{what} must be numbers, got booleans, which would be 0 and 1")
    if entry != "scalar" and value.dim() < 2 and value.numel() == 1 and value.item() != 0.0:
        raise ValueError(
            f"{what} has a {'matrix' if entry == 'inertia' else entry} as each entry, and one number, "
            f"{value.item():g}, would be all of its components; give each component"
        )


def parameter_fault(name: str, spec: Parameter, values: torch.Tensor, dim: int) -> str | None:
    """Message about the first of `values` that is outside the range of the parameter; None if all are inside.

    Args:
        name: Name of the parameter.
        spec: The parameter, with its range.
        values: Values of the parameter.
        dim: Dimension of the scene; the unit of a density depends on it.
    """
    bad = _outside(spec, values)
    if not bad.any():
        return None
    at = [int(i) for i in torch.nonzero(bad)[0]]
    if not _out_of_range(spec, values)[tuple(at)]:
        at = at[: -2 if spec.entry == "inertia" else -1]
        return f"parameter {name!r} must be {_WHOLE[spec.entry][1]}, got {values[tuple(at)].tolist()} at index {at}"
    return f"parameter {name!r} must be in {spec.span(dim)}, got {values[tuple(at)].item():g} at index {at}"


def _outside(spec: Parameter, values: torch.Tensor) -> torch.Tensor:
    """A mask that is true for `values` outside the range of a parameter, and for all of an impossible entry."""
    outside = _out_of_range(spec, values)
    if spec.entry not in _WHOLE:
        return outside
    wrong = _WHOLE[spec.entry][0](torch.where(outside, 1.0, values.detach()))
    return outside | wrong.reshape(wrong.shape + (1,) * (values.dim() - wrong.dim()))


def _out_of_range(spec: Parameter, values: torch.Tensor) -> torch.Tensor:
    """A mask that is true for `values` outside the range of a parameter, or not finite."""
    low = (values < spec.lower) if spec.inclusive else (values <= spec.lower)
    return low | (values >= spec.upper) | ~torch.isfinite(values)


def _impossible_moments(inertia: torch.Tensor) -> torch.Tensor:
    """Whether the symmetric part of each matrix has a negative moment, or one above the other two together."""
    moments = torch.linalg.eigvalsh((inertia + inertia.mT) / 2.0)
    largest = moments[..., 2]
    return (moments[..., 0] < -_SLACK * largest.abs()) | (largest > (1.0 + _SLACK) * moments[..., :2].sum(-1))


_ACTS_BY = {"joint_neutral": "joint_stiffness", "motor_reach": "motor_stiffness", "motor_target": "motor_stiffness"}
"""Parameters that act by a stiffness in the same place."""

_REMEDY = dict.fromkeys(("motor_reach", "motor_target"), ", take a Servo in place of a Torque")

_LIMITS = ("joint_lower", "joint_upper")

_ALIKE = 1.0 - 1e-6
"""Square of the cosine of half the angle between two rotations that are alike to single precision [1]."""

_SLACK = 1e-3
"""Relative excess of a moment of inertia that is allowed, so that flat bodies have derivatives by differences [1]."""

_WHOLE: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], str]] = {
    "quaternion": (lambda q: (q == 0.0).all(-1), "a quaternion of a length above 0"),
    "direction": (lambda d: (d == 0.0).all(-1), "a vector of a length above 0"),
    "inertia": (_impossible_moments, "moments of inertia, none negative or above the other two together"),
}
"""What makes an entry impossible as a whole, and words for what it must be, by `Parameter.entry`."""
