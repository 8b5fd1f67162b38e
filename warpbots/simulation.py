"""The handle on a simulation: a scene, a solver, a time step; torch tensors in and out."""

import dataclasses
import functools
import math
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import warp as wp

from warpbots.gradients import (
    BackwardWatch,
    Bridge,
    Checkpoints,
    Found,
    Replay,
    Segment,
    Tensors,
    Watch,
    at_turn,
    flaw,
    interval,
    reading,
    refuse_transforms,
    turn,
)
from warpbots.numerics import parallel
from warpbots.scene import Scene, SceneError
from warpbots.scene.field_types import fitted, shown
from warpbots.solvers import Cautious, Model, Parameter, Solver, State, with_parameters
from warpbots.solvers.checks import refuse_far
from warpbots.trajectory import Trajectory

__all__ = ["Controller", "Simulation", "SimulationError"]

_MOST = 2**31
"""Substeps that no control interval has."""

_UNREAD = 16
"""Control intervals of a rollout on a GPU whose faults wait to be read together, at most."""

_ALL = sys.maxsize
"""Those of a backward pass, which is read when it ends."""

Controller = Callable[[State, float], torch.Tensor]
"""What drives a robot: (state, time [s]) -> control of shape (worlds, channels) with values in [-1, 1]."""


class SimulationError(RuntimeError):
    """A simulation left the realm of physics. The message says when, where and why."""


class Simulation:
    """A scene under a solver, in steps of a control interval.

    Threads may share one: they take turns, so that several are no faster than one; processes run side by side.

    States are the solver's own dataclass with torch tensors as fields, each with the leading axis (worlds, ...).

    What goes wrong on a CPU is raised by the interval in which it does. A GPU would have to be waited for: there a
    rollout looks every few intervals, and a backward pass when it ends. They raise the same, but a controller has been
    called a few times more by then, and gradients that are not finite have been added to ``.grad``.

    Attributes:
        scene: What is simulated.
        solver: The method.
        model: The scene as the solver's arrays.
        dt: Length of a control interval [s].
        substeps: Solver steps per control interval.
        checkpoints: What rollouts keep for their backward pass.
    """

    def __init__(
        self,
        scene: Scene,
        solver: Solver,
        dt: float,
        substeps: int | None = 1,
        *,
        worlds: int = 1,
        device: wp.DeviceLike = None,
        checkpoints: Checkpoints | None = None,
    ):
        """Build the model.

        Args:
            scene: What to simulate.
            solver: The method, such as ``MPM(dx=0.01)``.
            dt: Time between two control signals [s].
            substeps: Solver steps in that time; None for the fewest that stay well below the stability bound.
            worlds: Number of independent copies of the scene.
            device: Warp device; None for the current one.
            checkpoints: What rollouts keep for their backward pass; None for `Checkpoints.sqrt`.

        Raises:
            ValueError: An argument is of another kind, `dt` or `substeps` is not positive, the solver step is over its
                stability bound, or matter is so far from the origin that positions have too few digits left.
            SceneError: The solver cannot simulate the scene.
        """
        self.scene = fitted(scene, Scene, "Simulation: scene")
        self.solver, self.dt = _method(solver), fitted(dt, float, "Simulation: dt")
        substeps = fitted(substeps, int | None, "Simulation: substeps")
        if not self.dt > 0.0 or (substeps is not None and not 1 <= substeps < _MOST):
            raise ValueError(
                f"Simulation: dt must be positive and substeps at least 1, got {dt:g} s and {shown(substeps)}"
            )
        self.checkpoints = fitted(checkpoints, Checkpoints | None, "Simulation: checkpoints") or Checkpoints.sqrt()
        worlds, device = fitted(worlds, int, "Simulation: worlds"), _device(device)
        try:
            with turn, np.errstate(over="ignore"):  # what is too large for the arrays is refused with its name
                self.model = solver.build(scene, worlds, device)
                fields = tuple(f.name for f in dataclasses.fields(solver.state(self.model)))
        except MemoryError as fault:
            raise SceneError(
                f"Scene {scene.name!r}: it does not fit into memory ({fault}); use larger cells or fewer worlds"
            ) from fault
        except OverflowError as fault:
            raise SceneError(
                f"Scene {scene.name!r}: a length or a mass in it is beyond all floating point ({fault}); use SI units"
            ) from fault
        self._refuse_rounding()
        self.substeps = self._safe_substeps(self.max_time_step) if substeps is None else substeps
        self._refuse_time_step()
        self._judged: dict[str, tuple[torch.Tensor, int]] = {}  # parameters last held against the step
        self._inside: dict[str, tuple[torch.Tensor, int]] = {}  # and against their ranges
        self._masses: dict[str | None, torch.Tensor] = {}  # of the particles in a region
        self._cautioned = False
        self._caution(self.model, stacklevel=3)
        if hasattr(self.model, "particles"):
            self._refuse_far(self.model.particles.position)
        self._no_control = wp.to_torch(
            wp.zeros((self.worlds, self.channels), dtype=self.model.scalar, device=self.model.device)
        )
        self._bridge = self._bridge_of(fields, self._make_interval)

    @property
    def worlds(self) -> int:
        """Number of independent copies of the scene."""
        return self.model.worlds

    @property
    def channels(self) -> int:
        """Number of control channels: one for each actuator of the scene, in its order."""
        return self.model.channels

    @functools.cached_property
    def max_time_step(self) -> float:
        """Largest stable substep [s] according to the solver."""
        return self.solver.max_time_step(self.model)

    def parameters(self) -> dict[str, Parameter]:
        """What can be differentiated besides states and controls: name -> unit, range and meaning."""
        return self.model.parameters()

    def parameter(self, name: str) -> torch.Tensor:
        """A copy of a parameter as a tensor of shape (worlds, ...), ready to be optimised and passed back by name.

        Raises:
            KeyError: The model has no such parameter.
        """
        if name not in self.parameters():
            raise KeyError(f"there is no parameter {name!r}; the model has {', '.join(self.parameters())}")
        with at_turn(self.model.device):
            return wp.to_torch(getattr(self.model, name), requires_grad=False).clone()

    def region(self, name: str) -> torch.Tensor:
        """Which particles belong to a region, shape (n_particles,), bool.

        For a parameter per region: ``E = stiff * sim.region("leg") + soft * ~sim.region("leg")``.

        Raises:
            KeyError: The scene has no such region; rigid bodies have none at all.
        """
        if not hasattr(self.model, "particles"):
            raise KeyError(f"there is no region {name!r}: regions are parts of soft bodies, and the scene has none")
        regions = self.model.particles.regions
        if name not in regions:
            raise KeyError(f"there is no region {name!r}; the scene has {', '.join(regions) or 'none'}")
        return torch.as_tensor(regions[name], device=wp.device_to_torch(self.model.device))

    def centre(self, state: State, region: str | None = None, **parameters: torch.Tensor) -> torch.Tensor:
        """Centre of mass of all matter, or of a region [m], shape (worlds, dim); differentiable.

        Masses of particles are those of the scene. The mean of the positions is another point where particles differ in
        mass, as the masses of a lattice do.

        Args:
            state: Where matter is.
            region: Name of a region of soft bodies, or None.
            parameters: Tensors in the place of the model's parameters, by name; rigid bodies are where these put them,
                and weigh what these say.

        Raises:
            KeyError: The scene has no such region.
            ValueError: A parameter has the wrong shape or an illegal value.
        """
        if not hasattr(self.model, "particles"):
            if region is not None:
                self.region(region)  # raises: there are none
            mass = parameters.get("mass", wp.to_torch(self.model.mass, requires_grad=False))
            mass = self._inputs({"mass": mass})["mass"]
            center = self.sense(state, **parameters).center
            return torch.einsum("wb,wbi->wi", mass / mass.sum(dim=1, keepdim=True), center)
        self._inputs(parameters)
        if region not in self._masses:
            particles = self.model.particles
            mass = torch.as_tensor(particles.density * particles.volume, device=state.position.device)
            self._masses[region] = mass if region is None else mass * self.region(region)
        mass = self._masses[region]
        flesh = torch.einsum("n,wni->wi", (mass / mass.sum()).to(state.position.dtype), state.position)
        if region is not None or not self.scene.rigid:
            return flesh
        bones = parameters.get("mass", wp.to_torch(self.model.mass, requires_grad=False))
        moment = torch.einsum("wb,wbi->wi", bones, self.sense(state, **parameters).center)
        total = mass.sum() + bones.sum(dim=1, keepdim=True)
        return ((mass.sum() * flesh + moment) / total).to(flesh.dtype)

    def state(self, **fields: torch.Tensor) -> State:
        """The scene at rest, with `fields` in the place of its own.

        Args:
            fields: Tensors by field name; their shapes must broadcast to the field's.

        Raises:
            ValueError: There is no such field, its shape does not fit, it is not finite, or matter is so far from the
                origin that positions have too few digits left.
        """
        with at_turn(self.model.device):
            arrays = self.solver.state(self.model)
            rest = {f.name: wp.to_torch(getattr(arrays, f.name)).clone() for f in dataclasses.fields(arrays)}
        for name, value in fields.items():
            if name not in rest:
                raise ValueError(f"state: there is no field {name!r}; a state has {', '.join(rest)}")
            rest[name] = fitted = self._fit(value, rest[name], f"state field {name!r}").contiguous()
            if not torch.isfinite(fitted).all():
                at = tuple(int(i) for i in torch.nonzero(~torch.isfinite(fitted))[0])
                raise ValueError(f"state field {name!r} must be finite, got {fitted[at].item():g} at index {at}")
            if name == "position" and hasattr(self.model, "particles"):
                self._refuse_far(fitted.detach().cpu().numpy())
        return type(arrays)(**rest)

    def step(self, state: State, control: torch.Tensor, **parameters: torch.Tensor) -> State:
        """One control interval: `substeps` solver steps under one control signal.

        Differentiable by torch with respect to every argument.

        Args:
            state: Where to start.
            control: Control signal in [-1, 1], shape (worlds, channels) or (channels,).
            parameters: Tensors in the place of the model's parameters, by name.

        Raises:
            ValueError: A control or a parameter has the wrong shape or an illegal value.
            SimulationError: The motion diverged or left the grid.
        """
        parameters = self._inputs(parameters)
        self._judge(parameters)
        inputs = _fields(state) | {"control": self._control(control)} | parameters
        outputs, marks = self._bridge.run(inputs, Segment(self._bridge, keep=True), 0)
        Watch(self.model.device, 1).note(marks, functools.partial(self._refuse, inputs, 0))
        return type(state)(**outputs)

    def sense(self, state: State, control: torch.Tensor | None = None, **parameters: torch.Tensor) -> Any:
        """What the solver can measure of a state: see `warpbots.solvers.articulated.Readings`.

        Differentiable by torch with respect to every argument. A rollout that replaces parameters has to replace them
        here, too.

        Args:
            state: What to measure.
            control: Control signal, on which the torques of motors depend, shape (worlds, channels) or (channels,);
                None for no control.
            parameters: Tensors in the place of the model's parameters, by name.

        Returns:
            The solver's dataclass with torch tensors as fields, each with the leading axis (worlds, ...).

        Raises:
            TypeError: The solver measures nothing.
            ValueError: A control or a parameter has the wrong shape or an illegal value.
        """
        if not hasattr(self.solver, "sense"):
            raise TypeError(f"{type(self.solver).__name__} measures nothing; its states hold all there is")
        given = self._no_control if control is None else self._control(control)
        inputs = _fields(state) | {"control": given} | self._inputs(parameters)
        outputs, marks = self._measured.run(inputs, Segment(self._measured, keep=False), 0)
        if control is not None:
            Watch(self.model.device, 1).note(marks, functools.partial(self._refuse, inputs, 0))
        return type(self.solver.readings(self.model))(**outputs)

    def report(self) -> object:
        """How the last step of the solver ended: iterations, residuals, forces of contacts; not differentiable.

        Returns:
            The solver's report as NumPy arrays, `warpbots.solvers.projective.StepReport` for `ProjectiveDynamics`.

        Raises:
            TypeError: The solver's steps are not iterated, so that there is nothing to report.
            RuntimeError: The last thing that ran was no step, but a backward pass.
        """
        if not hasattr(self.solver, "report"):
            raise TypeError(f"{type(self.solver).__name__} reports nothing on its steps")
        return self.solver.report(self.model, self.dt / self.substeps)

    @functools.cached_property
    def _measured(self) -> Bridge:
        """Readings under torch's autograd."""

        def make(names: frozenset, wanted: frozenset) -> Replay:
            return reading(self.solver, self.model, names & frozenset(self.parameters()), wanted)

        names = tuple(f.name for f in dataclasses.fields(self.solver.readings(self.model)))
        return self._bridge_of(names, make)

    def _bridge_of(self, outputs: tuple[str, ...], make: Callable[[frozenset, frozenset], Replay]) -> Bridge:
        device = self.model.device
        watch = BackwardWatch(device, _ALL if parallel(device) else 1)
        return Bridge(outputs, make, self.solver.lost_gradient, watch)

    def rollout(
        self,
        controller: Controller | torch.Tensor | None,
        steps: int,
        state: State | None = None,
        *,
        observe: Callable[[State], torch.Tensor] | None = None,
        **parameters: torch.Tensor,
    ) -> Trajectory:
        """`steps` control intervals.

        Args:
            controller: A callable (state, time) -> control, a table of controls of shape (steps, channels) or
                (worlds, steps, channels), or None for no control.
            steps: Number of control intervals.
            state: Where to start; None for rest.
            observe: A function of the state whose values after each interval are collected, differentiably.
            parameters: Tensors in the place of the model's parameters, by name.

        Returns:
            The trajectory; its final state, controls and observations are differentiable.

        Raises:
            ValueError: `steps` is below 1, or a control or parameter has the wrong shape or an illegal value.
            SimulationError: The motion diverged or left the grid.
        """
        if fitted(steps, int, "rollout: steps") < 1:
            raise ValueError(f"rollout: steps must be at least 1, got {steps}")
        start = state = self.state() if state is None else state
        controller = self._controller(controller, steps)
        parameters = self._inputs(parameters)
        self._judge(parameters)
        length = self.checkpoints.segment(steps, self.substeps)
        controls, observations = [], []
        with Watch(self.model.device, min(length, _UNREAD) if parallel(self.model.device) else 1) as watch:
            for first in range(0, steps, length):
                count = min(length, steps - first)
                segment = Segment(self._bridge, keep=self.checkpoints.keeps_all or first + count == steps)
                with segment.saving_places():
                    for i in range(count):
                        u = self._control(controller(state, (first + i) * self.dt))
                        controls.append(u.clone())  # a controller may fill the same tensor again
                        inputs = _fields(state) | {"control": u} | parameters
                        outputs, marks = self._bridge.run(inputs, segment, i)
                        given = inputs | {"control": controls[-1]}
                        watch.note(marks, functools.partial(self._refuse, given, first + i))
                        state = type(state)(**outputs)
                        if observe is not None:
                            observations.append(observe(state))
        return Trajectory(
            simulation=self,
            start=_copied(start),
            final=state,
            control=torch.stack(controls, dim=1),
            observation=torch.stack(observations, dim=1) if observations else None,
            parameters={n: p.detach().clone() for n, p in parameters.items()},
        )

    def _make_interval(self, names: frozenset, wanted: frozenset, substeps: int | None = None) -> Replay:
        replaced = names & frozenset(self.parameters())
        return interval(self.solver, self.model, self.dt / self.substeps, substeps or self.substeps, replaced, wanted)

    def _safe_substeps(self, bound: float) -> int:
        """Fewest substeps that stay below the part of the stability bound that the solver takes for safe."""
        safe = self.solver.margin * bound
        if not self.dt < (_MOST - 1) * safe:
            raise ValueError(
                f"Simulation: dt = {self.dt:g} s is {self.dt / safe if safe else math.inf:.3g} safe steps of "
                f"{safe:.3g} s, more than can be counted; use a shorter dt, softer or denser material, or larger cells"
            )
        return int(self.dt / safe) + 1

    def _refuse_rounding(self) -> None:
        """Raise if a number of the scene is another one in the precision of the arrays, and outside of its range."""
        for name, spec in self.parameters().items():
            values = self.parameter(name)
            if fault := _fault(name, spec, values):
                dtype = str(values.dtype).removeprefix("torch.")
                raise SceneError(
                    f"Scene {self.scene.name!r}: {fault}, as {dtype} rounds it; choose other values, or double "
                    f"precision (WARPBOTS_PRECISION=float64)"
                )

    def _refuse_time_step(self) -> None:
        bound, dt = self.max_time_step, self.dt / self.substeps
        if dt > bound:
            raise ValueError(
                f"the solver step of {dt:.3g} s (dt={self.dt:g} in {self.substeps} substeps) is over the stability "
                f"bound of {bound:.3g} s; use substeps={self._safe_substeps(bound)}, softer or denser material, "
                f"or a larger grid cell"
            )
        if dt > 1.25 * self.solver.margin * bound:
            warnings.warn(
                f"the solver step of {dt:.3g} s is {dt / bound:.2f} of the stability bound of {bound:.3g} s, which "
                f"holds for matter at rest: free surfaces and large deformation may diverge; "
                f"substeps={self._safe_substeps(bound)} is safe",
                stacklevel=3,
            )

    def _judge(self, parameters: Tensors) -> None:
        """Hold replaced parameters against the step, unless they are those of the last time."""
        if not parameters or (
            self._judged.keys() == parameters.keys()
            and all(_same(tensor, *self._judged[name]) for name, tensor in parameters.items())
        ):
            return
        bounded, cautious = math.isfinite(self.max_time_step), isinstance(self.solver, Cautious) and not self._cautioned
        if bounded or cautious:
            model = self._model_with(parameters)
            if bounded:
                self._refuse_bound(model, parameters)
            self._caution(model, stacklevel=4)
        self._judged = {name: (tensor.detach(), _version(tensor)) for name, tensor in parameters.items()}

    def _refuse_bound(self, model: Model, parameters: Tensors) -> None:
        """Raise if the step is over the stability bound of a `model` that has `parameters` in place."""
        dt = self.dt / self.substeps
        bound = self.solver.max_time_step(model, enough=dt)
        if dt > bound:
            raise ValueError(
                f"with {', '.join(parameters)} replaced, the solver step of {dt:.3g} s is over the stability bound of "
                f"{bound:.3g} s (it is {self.max_time_step:.3g} s without); make the simulation with "
                f"substeps={self._safe_substeps(bound)}, or keep them lower by a projection or a bijection (see "
                f"warpbots.optimize)"
            )

    def _caution(self, model: Model, stacklevel: int) -> None:
        """Warn, once, of what the solver's step leaves worse than one may think."""
        if self._cautioned or not isinstance(self.solver, Cautious):
            return
        with at_turn(self.model.device):
            words = self.solver.caution(model, self.dt / self.substeps)
        if words:
            self._cautioned = True
            warnings.warn(words, stacklevel=stacklevel)

    def _model_with(self, parameters: Tensors) -> Model:
        """The model with copies of `parameters` in the place of its own."""
        with at_turn(self.model.device):
            arrays = {name: wp.clone(getattr(self.model, name)) for name in parameters}
            for name, array in arrays.items():
                wp.to_torch(array, requires_grad=False).copy_(parameters[name].detach())
            return with_parameters(self.model, arrays)

    def _refuse_far(self, position: np.ndarray) -> None:
        volume = self.model.particles.volume
        spacing = float(np.median(volume[volume > 0.0]) ** (1.0 / self.scene.dim))
        refuse_far(position, spacing, self.dt / self.substeps, math.hypot(*self.scene.gravity), above=4)

    def _inputs(self, parameters: dict[str, Any]) -> Tensors:
        """Parameters checked against their ranges and spread to the shape of the model's."""
        known = self.parameters()
        fitted, new = {}, {}
        for name, value in parameters.items():
            if name not in known:
                raise ValueError(f"there is no parameter {name!r}; the model has {', '.join(known)}")
            array = wp.to_torch(getattr(self.model, name), requires_grad=False)
            fitted[name] = self._fit(value, array, f"parameter {name!r}")
            if name not in self._inside or not _same(fitted[name], *self._inside[name]):
                new[name] = fitted[name]
        bad = [_outside(known[name], tensor).any() for name, tensor in new.items()]
        if bad and torch.stack(bad).any():
            fault = next(filter(None, (_fault(name, known[name], tensor) for name, tensor in new.items())))
            raise ValueError(f"{fault}; keep it there with a projection or a bijection (see warpbots.optimize)")
        self._inside |= {name: (tensor.detach(), _version(tensor)) for name, tensor in new.items()}
        return fitted

    def _fit(self, value: Any, like: torch.Tensor, what: str) -> torch.Tensor:
        try:
            value = torch.as_tensor(value, device=like.device)
        except (TypeError, ValueError, RuntimeError):
            raise ValueError(f"{what} must be a tensor, an array or numbers, got {shown(value)}") from None
        refuse_transforms({what: value})
        if value.is_complex():
            raise ValueError(f"{what} must be real, got numbers of type {value.dtype}")
        try:
            return value.to(like.dtype).expand(like.shape)
        except RuntimeError:
            raise ValueError(
                f"{what} must have shape {tuple(like.shape)} or one that broadcasts to it, got {tuple(value.shape)}"
            ) from None

    def _controller(self, controller: Any, steps: int) -> Controller:
        if controller is None:
            return lambda state, time: self._no_control
        if callable(controller) and not isinstance(controller, type):
            return controller
        shape = (self.worlds, steps, self.channels)
        table = self._fit(controller, self._no_control[:, None].expand(shape), "the table of controls")
        return lambda state, time: table[:, round(time / self.dt)]

    def _control(self, control: torch.Tensor) -> torch.Tensor:
        return self._fit(control, self._no_control, "a control")

    def _refuse(self, inputs: Tensors, step: int, found: Found) -> None:
        """Raise if a control is out of its range, or a state is not finite.

        Args:
            inputs: What an interval was given.
            step: Its number.
            found: Marks of the control, and of the state after it.
        """
        control, *state = map(flaw, found)
        if control:
            world, channel = divmod(control[0], self.channels)
            raise ValueError(
                f"control[{world}, {channel}] of actuator {self.scene.actuators[channel].name!r} is "
                f"{inputs['control'][world, channel].item():g} at control step {step}; controls must be in [-1, 1]: "
                f"bound yours with tanh, or use a controller of warpbots.controllers"
            )
        if any(state):
            substep, reason = self._diagnose({n: t.detach() for n, t in inputs.items()})
            time = (step + substep / self.substeps) * self.dt
            raise SimulationError(f"control step {step}, substep {substep} (t = {time:.6g} s): {reason}")

    def _diagnose(self, inputs: Tensors) -> tuple[int, str]:
        """The substep at which a state goes wrong, and why."""
        single = self._make_interval(frozenset(inputs), frozenset(), substeps=1)
        for substep in range(self.substeps):
            after, marks = single.run(inputs)
            if any(map(flaw, marks.tolist()[1:])):
                before = {n: inputs[n].cpu().numpy() for n in after}
                bad = {n: t.cpu().numpy() for n, t in after.items()}
                model = self._model_with({n: t for n, t in inputs.items() if n in self.parameters()})
                return substep, self.solver.diagnose(model, before, bad, self.dt / self.substeps)
            inputs = inputs | after
        return self.substeps - 1, (
            "the state is not finite, and is when the interval is computed again: it is at the edge of what its steps "
            "can follow; use smaller ones"
        )


def _fault(name: str, spec: Parameter, values: torch.Tensor) -> str | None:
    """What is wrong with the first of `values` that is outside of the range of a parameter; None if all are inside."""
    bad = _outside(spec, values)
    if not bad.any():
        return None
    at = [int(i) for i in torch.nonzero(bad)[0]]
    left, value = "[" if spec.inclusive else "(", values[tuple(at)].item()
    span = f"{left}{spec.lower:g}, {spec.upper:g}) {spec.unit}"
    return f"parameter {name!r} must be in {span}, got {value:g} at index {at}"


def _outside(spec: Parameter, values: torch.Tensor) -> torch.Tensor:
    """Which of `values` are not in the range of a parameter."""
    low = (values < spec.lower) if spec.inclusive else (values <= spec.lower)
    return low | (values >= spec.upper) | ~torch.isfinite(values)


def _method(solver: Any) -> Solver:
    """`solver`, if it is one."""
    if isinstance(solver, type) or not hasattr(solver, "build"):
        raise ValueError(f"Simulation: solver must be an instance such as MPM(dx=0.01), got {shown(solver)}")
    return solver


def _device(device: wp.DeviceLike) -> wp.Device:
    """The device of that name."""
    try:
        return wp.get_device(device)
    except (ValueError, RuntimeError):
        known = ", ".join(str(d) for d in wp.get_devices())
        raise ValueError(f"Simulation: there is no device {device!r}; this machine has {known}") from None


def _same(tensor: torch.Tensor, other: torch.Tensor, version: int) -> bool:
    """Whether two tensors are one piece of memory that has not been changed since it had `version`."""
    return (tensor.data_ptr(), tensor.stride(), _version(tensor)) == (other.data_ptr(), other.stride(), version)


def _version(tensor: torch.Tensor) -> float:
    """How often a tensor was changed; nobody counts those of inference mode, which are never the same."""
    return math.nan if tensor.is_inference() else tensor._version


def _fields(state: State) -> Tensors:
    return {f.name: getattr(state, f.name) for f in dataclasses.fields(state)}


def _copied(state: State) -> State:
    return type(state)(**{name: field.detach().clone() for name, field in _fields(state).items()})
