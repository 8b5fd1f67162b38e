"""The states of a simulation: made from its start, and checked to belong to it."""

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from warpbots.gradients import Tensors, at_turn, tensor_of
from warpbots.near_names import meant
from warpbots.scene import JOINTS, Scene
from warpbots.scene.field_types import shown, with_article
from warpbots.simulation.input_validation import Inputs, kept, warn_of_w_first
from warpbots.simulation.possible_states import MARKS, refuse_impossible
from warpbots.simulation.stability_bound import ControlInterval
from warpbots.solvers import Solver
from warpbots.solvers.scene_support import refuse_far

__all__ = ["States", "fields_of"]

_ENTRIES = ("scalar", "vector", "matrix")
"""Types of an entry of a field by its number of axes."""


def fields_of(state: Any) -> Tensors:
    """The fields of a state or of measurements, by name."""
    return {f.name: getattr(state, f.name) for f in dataclasses.fields(state)}


def _check_quaternions(robot: Any, q: torch.Tensor, start: torch.Tensor) -> None:
    """Raise if the quaternion of a ball or of a free joint is no rotation; warn of one that begins with w.

    Args:
        robot: Names of the joints, and places of their coordinates.
        q: Joint coordinates, shape (worlds, coordinates).
        start: Joint coordinates of the scene, of the same shape.
    """
    for joint in robot.joints:
        if JOINTS[joint.kind].ball:
            quaternion, usual = (values[:, robot.coordinates[joint.name]][:, -4:] for values in (q, start))
            none = (quaternion == 0.0).all(-1)
            if none.any():
                raise ValueError(
                    f"state field 'q': the quaternion (x, y, z, w) of Joint {joint.name!r} has the length 0 in world "
                    f"{int(none.nonzero()[0])}, and must have one above 0; no rotation is (0, 0, 0, 1)"
                )
            warn_of_w_first(quaternion, usual, "state field 'q'", f" of Joint {joint.name!r}")


class States:
    """Makes states of a simulation, and checks states that it is given."""

    def __init__(
        self,
        scene: Scene,
        solver: Solver,
        time_step: ControlInterval,
        inputs: Inputs,
        start: Mapping[str, np.ndarray],
    ):
        """Check the positions at the start.

        Args:
            scene: The scene.
            solver: The solver.
            time_step: The control interval and its substeps.
            inputs: Fits values to the shapes of fields; has the model.
            start: Arrays of the initial state that the scene prescribes, by name, each with the shape of one world.

        Raises:
            ValueError: Matter is so far from the origin that rounding of positions is too coarse.
        """
        self._scene, self._solver, self._time_step, self._inputs, self._start = scene, solver, time_step, inputs, start
        if inputs.model.matter is not None:
            self._refuse_far(inputs.model.matter.position)

    def made(self, fields: Mapping[str, Any]) -> Any:
        """The state at the start with `fields` in place of its fields; see `Simulation.state`."""
        model = self._inputs.model
        with at_turn(model.device):
            arrays = self._solver.state(model)
            state = {name: tensor_of(array).clone() for name, array in fields_of(arrays).items()}
        for name, values in self._start.items():
            state[name] = self._inputs.fit(values, state[name], f"state field {name!r}").contiguous()
        for name, value in fields.items():
            if name not in state:
                raise ValueError(
                    f"state: there is no field {name!r}; a state has {', '.join(state)}{meant(name, state)}"
                )
            entry = None if name in MARKS else _ENTRIES[len(getattr(fields_of(arrays)[name].dtype, "_shape_", ()))]
            fitted = self._inputs.fit(value, state[name], f"state field {name!r}", entry).contiguous()
            usual, state[name] = state[name], fitted
            refuse_impossible({name: fitted}, "state")
            if name == "position" and model.matter is not None:
                self._refuse_far(fitted.detach().cpu().numpy())
            if name == "q":
                _check_quaternions(model.robot, fitted, usual)
        return type(arrays)(**state)

    def own(self, state: Any, what: str) -> Any:
        """Return `state` if it belongs to the simulation; while torch records gradients, with copies (see `kept`).

        Args:
            state: Any object.
            what: Name of the state in messages.

        Raises:
            ValueError: `state` is not a state, or belongs to another simulation.
        """
        cls, layout = self._layout
        if type(state) is not cls:
            raise ValueError(
                f"{what} must be {with_article(cls.__name__)} of this simulation, as sim.state() or the final "
                f"of a trajectory, got {shown(state)}"
            )
        for name, own in layout.items():
            value = getattr(state, name)
            if not isinstance(value, torch.Tensor):
                raise ValueError(f"{what}: field {name!r} must be a torch tensor, got {shown(value)}")
            if (value.shape, value.dtype) != (own.shape, own.dtype):
                raise ValueError(
                    f"{what} is one of another simulation: field {name!r} has shape {tuple(value.shape)} and "
                    f"type {value.dtype}, and must have {tuple(own.shape)} and {own.dtype}"
                )
        return state.mapped(kept) if torch.is_grad_enabled() else state

    def finite(self, state: Any, what: str) -> Any:
        """Return `state` as `own` does, if a motion can begin from it, apart from lost worlds.

        Raises:
            ValueError: `state` does not belong to the simulation, or a number is impossible.
        """
        state = self.own(state, what)
        refuse_impossible(fields_of(state), f"{what}:")
        return state

    @functools.cached_property
    def _layout(self) -> tuple[type, dict[str, torch.Tensor]]:
        """Class of the states, and tensors without data that have the shapes and types of their fields."""
        example = self.made({})
        return type(example), {name: field.detach().to("meta") for name, field in fields_of(example).items()}

    def _refuse_far(self, position: np.ndarray) -> None:
        volume = self._inputs.model.matter.volume
        spacing = float(np.median(volume[volume > 0.0]) ** (1.0 / self._scene.dim))
        refuse_far(position, spacing, self._time_step.length, math.hypot(*self._scene.gravity))
