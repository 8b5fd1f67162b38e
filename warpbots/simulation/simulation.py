"""The class `Simulation`: a scene, a solver and a time step, with torch tensors as inputs and outputs."""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic

import torch
import warp as wp

from warpbots.gradients import Checkpoints, at_turn, tensor_of, turn
from warpbots.near_names import names_arguments, no_parameter
from warpbots.notebook_cells import say
from warpbots.renamed import FormerAttribute
from warpbots.scene import Scene
from warpbots.scene.field_types import fitted
from warpbots.simulation import state_files
from warpbots.simulation.ages import age
from warpbots.simulation.center_of_mass import CenterOfMass
from warpbots.simulation.construction import build, built_again, device_of, interval, scene_and_solver
from warpbots.simulation.cost import Cost, device_memory, speed_of
from warpbots.simulation.input_validation import Controller, Inputs
from warpbots.simulation.motion_ends import refuse_ended
from warpbots.simulation.region_values import per_region, region
from warpbots.simulation.resets import reset
from warpbots.simulation.rollouts import roll_out, step
from warpbots.simulation.solver_operations import SolverOperations
from warpbots.simulation.stability_bound import ControlInterval
from warpbots.simulation.states import States, fields_of
from warpbots.simulation.summary import choice, simulation_table
from warpbots.simulation.world_shares import WorldShares, threads_of
from warpbots.solvers import (
    ChoosesByWorlds,
    Model,
    Multibody,
    Parameter,
    Reports,
    Senses,
    Solver,
    Statics,
)
from warpbots.solvers.baking import baked
from warpbots.solvers.scene_parts import takers
from warpbots.tables import Table
from warpbots.trajectory import TensorState_co, Trajectory

__all__ = ["Simulation"]


@names_arguments
class Simulation(Generic[TensorState_co]):
    """A scene simulated by a solver, in steps of one control interval.

    On a CPU, threads simulate shares of the worlds at the same time, or share the work on a single large world. Threads
    of a program may use several simulations at the same time, too; those that share one simulation run one after the
    other.

    A state is a dataclass of the solver with torch tensors as fields, each with the leading axis (worlds, ...).

    On a CPU an error is raised by the control interval in which it occurs. On a GPU, to avoid waiting, a rollout checks
    every few intervals, and a backward pass at its end. The same errors are raised, but by then the controller has been
    called a few more times, and gradients that are not finite have been added to ``.grad``.

    Attributes:
        scene: The scene.
        solver: The solver, with the cell size that was chosen.
        model: The scene as arrays of the solver.
        dt: Length of a control interval [s].
        substeps: Solver steps per control interval.
        checkpoints: Rule that says which states rollouts keep for the backward pass.
        mimebundle: The content that a notebook shows of a simulation; `warpbots` puts a table with a picture here.
        bench_of: The function behind `bench`; `warpbots` puts `warpbots.bench.Bench` here.
    """

    mimebundle: ClassVar[Callable[["Simulation[Any]", Table], dict]] = staticmethod(
        lambda simulation, table: table.mimebundle()
    )
    bench_of: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        scene: Scene,
        solver: Solver[torch.Tensor, TensorState_co],
        dt: float | None = None,
        substeps: int | None = None,
        *,
        worlds: int = 1,
        threads: int | None = None,
        device: wp.DeviceLike = None,
        checkpoints: Checkpoints | None = None,
    ):
        """Build the model.

        If arguments are not given, as in ``Simulation(scene, MPM())``, their values are chosen and reported in one
        line; printing the simulation shows them as well.

        Args:
            scene: The scene to simulate.
            solver: The solver, such as ``MPM(dx=0.01)``; without a cell size the solver chooses one by the rule in the
                docstring of its `sized`.
            dt: Time between two control signals [s]; None for the interval of the scene's task, or else 0.01 s.
            substeps: Solver steps per control interval; None for the smallest number with which the step is well below
                the stability bound. If `dt` is None as well, this number is multiplied by up to 128 if contacts of
                rigid bodies need shorter steps.
            worlds: Number of independent copies of the scene.
            threads: Largest number of threads of a CPU, at most `worlds` if there are several; results do not depend on
                it. Threads simulate worlds at the same time, or share a single world of a solver that can divide it, if
                it is large. None for the cores that the process may use, or the number in the environment variable
                ``WARPBOTS_THREADS``; several worlds then have one thread while a control interval takes less than 2 ms.
            device: Warp device; None for the current one.
            checkpoints: Rule that says which states rollouts keep for the backward pass; None for `Checkpoints.sqrt`.

        Raises:
            ValueError: An argument is of the wrong type, `dt` or `substeps` is not positive, the solver step is over
                its stability bound, or matter is so far from the origin that rounding of positions is too coarse.
            SceneError: The solver cannot simulate the scene.
        """
        self._scene, self._solver = scene_and_solver(scene, solver)
        dt, substeps = interval(dt, substeps)
        self.checkpoints = fitted(checkpoints, Checkpoints | None, "Simulation: checkpoints") or Checkpoints.sqrt()
        worlds, device = fitted(worlds, int, "Simulation: worlds"), device_of(device)
        model, start, fields = build(self.scene, self.solver, worlds, device)
        self._time_step, self._inputs = ControlInterval(self.solver, model, dt, substeps), Inputs(model)
        self._states = States(self.scene, self.solver, self._time_step, self._inputs, start)
        self._wanted_threads = fitted(threads, int | None, "Simulation: threads")
        chosen = self.solver.chosen(model) if isinstance(self.solver, ChoosesByWorlds) else self.solver
        shares = WorldShares(
            self.solver,
            self._inputs,
            threads_of(self._wanted_threads, worlds, device),
            threads is not None,
            built_again(self.scene, chosen, device),
        )
        self._operations = SolverOperations(self.scene, self.solver, self._time_step, self._inputs, fields, shares)
        self._center_of_mass = CenterOfMass(self.scene, model, self.region, functools.partial(self.sense, steps=False))
        self._cost: Cost | None = None
        if self.solver is not solver or dt is None:
            say(choice(self))

    @property
    def scene(self) -> Scene:
        """The scene."""
        return self._scene

    @property
    def solver(self) -> Solver[torch.Tensor, TensorState_co]:
        """The solver, with the cell size that was chosen."""
        return self._solver

    @property
    def model(self) -> Model:
        """The scene as arrays of the solver."""
        return self._inputs.model

    @property
    def dt(self) -> float:
        """Length of a control interval [s]."""
        return self._time_step.dt

    @property
    def substeps(self) -> int:
        """Solver steps per control interval."""
        return self._time_step.substeps

    @property
    def worlds(self) -> int:
        """Number of independent copies of the scene."""
        return self.model.worlds

    @property
    def threads(self) -> int:
        """Largest number of threads that work at the same time."""
        return self._operations.shares.threads

    @property
    def channels(self) -> int:
        """Number of control channels: one for each actuator of the scene, in its order."""
        return self.model.channels

    @property
    def max_time_step(self) -> float:
        """Largest stable substep [s] according to the solver."""
        return self._time_step.bound

    def parameters(self) -> dict[str, Parameter]:
        """All parameters of the model, by name, with unit, range and meaning; rollouts are differentiable by them."""
        return self.model.parameters()

    def parameter(self, name: str) -> torch.Tensor:
        """A copy of a parameter as a tensor of shape (worlds, ...), ready to be optimised and passed back by name.

        Raises:
            KeyError: The model has no such parameter.
        """
        if fitted(name, str, "parameter: name") not in self.parameters():
            raise KeyError(no_parameter(name, self.parameters()))
        with at_turn(self.model.device):
            return tensor_of(self.model.parameter(name)).clone()

    def scene_with(self, world: int = 0, records: bool = True, start: Any = None, **parameters: torch.Tensor) -> Scene:
        """A copy of the scene that contains given parameters, such as trained ones, to be written and simulated again.

        A ``Simulation(scene, solver, dt, substeps)`` of this copy with the same solver has these parameters to the last
        bit, and the same rollouts, even on other machines: if `warpbots.meshing` would not make the same mesh of a body
        again, the mesh of this simulation becomes the shape of the body. A simulation with another solver or resolution
        uses the values in records, such as friction, masses and joints, and interpolates properties of the material
        between the centres of elements. It reports the error of the interpolation, and refuses parameters that depend
        on the elements.

        Args:
            world: Index of the world whose parameters and start are taken.
            records: Whether a value is written to a record of the scene if a record can hold it. Otherwise all values
                go into `fields`, and the records of the scene stay as they are.
            start: The state from which simulations of the scene are to begin, such as the equilibrium of a robot, or
                the state of `warpbots.morphology.shaped`; None for the start of this simulation. Only simulations with
                the same solver and resolution can begin from this state; others refuse the scene.
            parameters: Tensors instead of the model's parameters, by name.

        Returns:
            The scene. Its `fields` hold the values that differ from element to element, and exact values if the records
            hold rounded ones.

        Raises:
            ValueError: A parameter has the wrong shape or an illegal value, `start` is not a state of this simulation,
                or there is no such world.
        """
        world, records = fitted(world, int, "scene_with: world"), fitted(records, bool, "scene_with: records")
        if not 0 <= world < self.worlds:
            raise ValueError(f"scene_with: world must be from 0 to {self.worlds - 1}, got {world}")
        given = self._inputs.parameters(parameters)
        values = {name: tensor[world].detach().cpu().numpy() for name, tensor in given.items()}
        rest = self.state()
        begin = rest if start is None else self.state(**fields_of(self._states.own(start, "scene_with: start")))
        one = {name: field[world].detach().cpu().numpy() for name, field in fields_of(begin).items()}
        with turn:
            return baked(self.solver, self.model, values, world, records, one)

    def region(self, name: str) -> torch.Tensor:
        """A mask that is true for the points of matter in a region, shape (n,), bool; for parameters see `per_region`.

        Raises:
            KeyError: The scene has no such region; rigid bodies have none at all.
        """
        return region(self.model, name)

    def per_region(self, values: Mapping[str, float | torch.Tensor], parameter: str) -> torch.Tensor:
        """A tensor of a parameter, made from values for regions, for steps and rollouts; differentiable.

        Example: ``sim.rollout(policy, 50, youngs_modulus=sim.per_region({"leg": 3e4}, "youngs_modulus"))``. A particle,
        a mass or a node is in the regions that contain it; a spring, a tetrahedron and any other element is in the
        regions that contain its centre. Elements in none of the regions keep the model's value.

        Args:
            values: A value for each region, by the name of the region: a number, or a tensor, for all worlds or with
                the worlds as first axis. Names that are not names of regions are taken as names of bodies, soft or
                rigid. An element in several of the regions gets the value of the last of these in `values`.
            parameter: Name of the parameter.

        Returns:
            The parameter, with the shape (worlds, ...) that `parameter` returns.

        Raises:
            KeyError: The model has no such parameter, or the scene has no such region or body.
            ValueError: The values of the parameter have no places in the bodies, as for gravity; a region contains no
                element; or a value has the wrong shape.
        """
        values = fitted(values, Mapping[str, Any], "per_region: values")
        return per_region(self.model, self._inputs, self.parameter(parameter), values, parameter)

    centre = FormerAttribute("center_of_mass")

    def center_of_mass(self, state: Any, region: str | None = None, **parameters: torch.Tensor) -> torch.Tensor:
        """Centre of mass of all bodies, or of a region [m], shape (worlds, dim); differentiable.

        It differs from the mean of the positions if the points of the matter differ in mass, as in a lattice.

        Args:
            state: The state of the bodies.
            region: Name of a region of soft bodies, or None.
            parameters: Tensors instead of the model's parameters, by name; the masses and the poses of rigid bodies are
                computed with them.

        Raises:
            KeyError: The scene has no such region.
            TypeError: `parameters` replace masses, and the solver has no readings (`sense`).
            ValueError: A parameter has the wrong shape or an illegal value.
        """
        state, region = (
            self._states.own(state, "center_of_mass: state"),
            fitted(region, str | None, "center_of_mass: region"),
        )
        return self._center_of_mass.of(state, region, self._inputs.parameters(parameters))

    def state(self, **fields: torch.Tensor) -> TensorState_co:
        """The state at rest, or the start given to `scene_with`, with `fields` in place of its fields.

        Args:
            fields: Tensors by the name of the field; the shape of a tensor must broadcast to the shape of the field.

        Raises:
            ValueError: There is no such field, a tensor has the wrong shape or impossible numbers, or matter is so far
                from the origin that rounding of positions is too coarse.
        """
        return self._states.made(fields)

    def reset(self, state: TensorState_co, worlds: Any, start: Any = None) -> TensorState_co:
        """A state in which some worlds are back at their start, such as after the end of an episode.

        All fields of the state are reset, including the time if there is such a field. The result is differentiable
        with respect to `state` in the worlds that continue, and with respect to `start` in the others. If a controller
        has memory, such as an MLP with a delayed observer, call its method `forget` as well.

        Args:
            state: The state of all worlds; not changed.
            worlds: The worlds to reset: a mask of shape (worlds,), bool, or a list of indices, or one index. A tensor
                or an array of integers is refused, because its 0 and 1 could be a mask or indices.
            start: A state of all worlds, from which the worlds to reset are copied; None for `state()`. Only these
                worlds of it must be finite.

        Raises:
            ValueError: `worlds` has another shape or an index out of range, or `start` is not a state of this
                simulation, or not finite.
        """
        self._states.own(state, "reset: state")
        return reset(state, self.state() if start is None else start, worlds, self._inputs, self.worlds)

    def save_state(self, path: str | Path, state: TensorState_co) -> None:
        """Write a state to a file, from which `load_state` restores the state bit for bit.

        Args:
            path: The file, which is replaced if it exists.
            state: A state of this simulation; its gradient is not written.

        Raises:
            ValueError: `state` belongs to another simulation, or is not finite; no motion could begin from it.
            OSError: The file cannot be written.
        """
        path = fitted(path, str | Path, "save_state: path")
        state_files.save(path, self._states.finite(state, "save_state: state"), self.state(), self.scene, self.solver)

    def load_state(self, path: str | Path) -> TensorState_co:
        """Read a state from a file of `save_state`. Files are read as data; no code in them runs.

        Args:
            path: The file.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file holds no state, or a state of another scene, solver, precision, number of worlds or
                discretisation.
        """
        path = fitted(path, str | Path, "load_state: path")
        return state_files.load(path, self.state(), self.scene, self.solver)

    def cost(self, intervals: int = 5) -> Cost:
        """Measure the cost of a simulation: simulated seconds per second of computing, and memory.

        The run starts from rest, without control and without gradient; kernels are compiled before the clock starts.
        Implicit methods take longer under contacts and fast motion. `print` of the simulation shows the last
        measurement.

        Args:
            intervals: Number of control intervals to simulate.

        Raises:
            ValueError: `intervals` is below 1.
            SimulationError: The motion diverged or left the grid.
        """
        intervals = fitted(intervals, int, "cost: intervals")
        if intervals < 1:
            raise ValueError(f"cost: intervals must be at least 1, got {intervals}")
        control, device = self._inputs.no_control, self.model.device
        speed = speed_of(lambda state: self.step(state, control), self.state(), intervals, self.dt, device)
        models = self._operations.shares.models
        self._cost = Cost(speed, device_memory(self.model, *models, self._operations.control_interval))
        return self._cost

    def step(self, state: Any, control: torch.Tensor, **parameters: torch.Tensor) -> TensorState_co:
        """One control interval: `substeps` solver steps under one control signal.

        Differentiable by torch with respect to every argument.

        Args:
            state: State at the start of the interval.
            control: Control signal in [-1, 1], shape (worlds, channels) or (channels,).
            parameters: Tensors instead of the model's parameters, by name.

        Raises:
            ValueError: A control or a parameter has the wrong shape or an illegal value, `state` is not finite, or the
                solver step is over the stability bound of the parameters; if it is near this bound, a warning is given
                once.
            SimulationError: The motion diverged or left the grid, or no world can go on. If only some worlds cannot go
                on, these keep their last state, a `LostWorldWarning` is given, and ``lost`` of the state marks them.
        """
        return step(self._operations, self._states.own(state, "step: state"), control, parameters)

    def sense(
        self, state: Any, control: torch.Tensor | None = None, *, steps: bool = True, **parameters: torch.Tensor
    ) -> Any:
        """Readings of a state: see `Readings` in the package of the solver, such as `warpbots.solvers.articulated`.

        Differentiable by torch with respect to every argument. If the state comes from a rollout with replaced
        parameters, pass the same parameters here.

        Args:
            state: The state to measure.
            control: Control signal, on which the torques of motors depend, shape (worlds, channels) or (channels,);
                None for no control.
            steps: Whether to include readings for which the solver takes a step, such as forces on obstacles under
                `ProjectiveDynamics` with a `contact_interval`.
            parameters: Tensors instead of the model's parameters, by name.

        Returns:
            The solver's dataclass with torch tensors as fields, each with the leading axis (worlds, ...).

        Raises:
            TypeError: The solver has no readings.
            ValueError: A control or a parameter has the wrong shape or an illegal value.
        """
        if not isinstance(self.solver, Senses):
            raise TypeError(f"{type(self.solver).__name__} measures nothing; read the fields of its states")
        steps = fitted(steps, bool, "sense: steps")
        readings = self._operations.readings if steps else self._operations.cheap_readings
        return readings.of(self._states.own(state, "sense: state"), control, parameters)

    def dynamics(self, state: Any, control: torch.Tensor | None = None, **parameters: torch.Tensor) -> Any:
        """Equations of motion of rigid bodies at a state: see `warpbots.solvers.articulated.Dynamics`.

        These are the mass matrix, the forces, the resulting accelerations, and the force and moment that each joint
        transmits. Differentiable by torch with respect to every argument.

        Args:
            state: State at which the equations are evaluated.
            control: Control signal, shape (worlds, channels) or (channels,); None for no control.
            parameters: Tensors instead of the model's parameters, by name.

        Returns:
            The solver's dataclass with torch tensors as fields, each with the leading axis (worlds, ...).

        Raises:
            TypeError: The solver has no equations of motion in joint coordinates.
            ValueError: A control or a parameter has the wrong shape or an illegal value.
        """
        if not isinstance(self.solver, Multibody):
            name = type(self.solver).__name__
            raise TypeError(f"{name} has no equations of motion in joint coordinates; Articulated has")
        return self._operations.dynamics.of(self._states.own(state, "dynamics: state"), control, parameters)

    def equilibrium(
        self,
        control: Any = None,
        state: Any = None,
        *,
        dt: float = 1.0,
        steps: int = 200,
        tolerance: float | None = None,
        **parameters: torch.Tensor,
    ) -> TensorState_co:
        """Static equilibrium under loads, actuators and contacts: the state to which long steps from rest converge.

        Differentiable by torch with respect to `control` and `parameters`, by the implicit function theorem, at the
        cost of a few backward steps. Every step starts with zero velocity. So statics, and the identification of
        parameters from static measurements, need no simulation of motion. If friction allows several equilibria, the
        result is the equilibrium into which bodies creep from `state`; gradients do not include its dependence on
        `state`. The equilibrium may be unstable, for example of a column beyond its buckling load or a body on its
        edge: steps that are long compared with the growth of the instability do not leave it. A warning then names the
        body that leaves it, and a `dt` in whose steps the body goes from a bent or tilted `state` to a stable
        equilibrium. See `warpbots.solvers.projective.equilibrium`.

        Args:
            control: Control signal in [-1, 1], shape (worlds, channels) or (channels,); None for no control.
            state: State in which the search begins; None for `state()`. Its velocities are ignored.
            dt: Length of a step [s]. A body that is held only by friction and contact may need shorter steps, and so
                does one that may buckle or tip over.
            steps: Largest number of steps.
            tolerance: Largest displacement of a node in the last step [mean edges]; None for the tolerance of the
                solver.
            parameters: Tensors instead of the model's parameters, by name.

        Raises:
            TypeError: The solver cannot compute equilibria.
            ValueError: A control or a parameter has the wrong shape or an illegal value, `state` is not finite, or
                `dt`, `steps` or `tolerance` is not positive.
            RuntimeError: A step does not converge, or bodies still move after `steps` steps.
        """
        if not isinstance(self.solver, Statics):
            other = "use ProjectiveDynamics, or " if "ProjectiveDynamics" in takers(self.scene) else ""
            raise TypeError(
                f"equilibrium: {type(self.solver).__name__} finds none; {other}give the material damping and simulate "
                f"until the motion is gone"
            )
        start = self.state() if state is None else self._states.finite(state, "equilibrium: state")
        dt, steps = fitted(dt, float, "equilibrium: dt"), fitted(steps, int, "equilibrium: steps")
        tolerance = fitted(tolerance, float | None, "equilibrium: tolerance")
        return self._operations.statics.of(control, start, dt, steps, tolerance, parameters)

    def report(self) -> object:
        """Report on the last step of the solver: iterations, residuals, contact forces; not differentiable.

        Returns:
            The report of the solver, with NumPy arrays: `warpbots.solvers.projective.StepReport` for
            `ProjectiveDynamics`.

        Raises:
            TypeError: The solver does not iterate in its steps, so that there is nothing to report.
            RuntimeError: The last computation was a backward pass, not a step.
        """
        if not isinstance(self.solver, Reports):
            raise TypeError(f"{type(self.solver).__name__} reports nothing on its steps")
        return self._operations.shares.report(self._time_step.length)

    def rollout(
        self,
        controller: Controller[TensorState_co] | torch.Tensor | None,
        steps: int,
        state: Any = None,
        *,
        observe: Callable[[TensorState_co], torch.Tensor] | None = None,
        time: float | torch.Tensor = 0.0,
        **parameters: torch.Tensor,
    ) -> Trajectory[TensorState_co]:
        """Simulate `steps` control intervals.

        Arguments that require no gradient are copied, and may be changed before the gradient is computed. Tensors that
        require a gradient must not be changed before: torch raises an error if they were changed in place, but does not
        notice writes by NumPy or through ``.data``.

        Args:
            controller: A callable (state, time) -> control, a table of controls of shape (steps, channels) or
                (worlds, steps, channels), or None for no control.
            steps: Number of control intervals.
            state: State at the start; None for `state()`.
            observe: A function of the state, called after each interval; the trajectory holds its values, which are
                differentiable.
            time: Age of the worlds at the start [s]: a number, or a tensor of shape (worlds,) if worlds were reset at
                different times. The controller gets this age plus the time since the start of the rollout, as a number
                or as a tensor, like `time`. A table of controls begins with its first row, whatever the age is.
            parameters: Tensors instead of the model's parameters, by name.

        Returns:
            The trajectory; its final state, controls and observations are differentiable.

        Raises:
            ValueError: `steps` is below 1, `time` is not a valid age, `state` is not finite, a control or parameter has
                the wrong shape or an illegal value, a table of a `PrescribedMotion` ends before the rollout does, or
                the solver step is over the stability bound of the parameters; if it is near this bound, a warning is
                given once.
            SimulationError: The motion diverged or left the grid, or no world can go on. If only some worlds cannot go
                on, these keep their last state, a `LostWorldWarning` is given, and ``lost`` of the trajectory marks
                them.
        """
        steps = fitted(steps, int, "rollout: steps")
        if steps < 1:
            raise ValueError(f"rollout: steps must be at least 1, got {steps}")
        begun = age(time, self.worlds, self._inputs.no_control.device, "rollout: time")
        observe = fitted(observe, Callable[[Any], Any] | None, "rollout: observe")
        state = self.state() if state is None else self._states.finite(state, "rollout: state")
        refuse_ended(self.scene, state, steps, self.dt, self.dt / self.substeps)
        return roll_out(
            self, self._operations, self.checkpoints, controller, steps, state, begun, observe, parameters
        )  # fmt: skip

    def bench(self, **options: Any) -> Any:
        """A live view of the simulation, with sliders, a mouse that pulls at bodies, curves and recordings.

        In a notebook it is shown as the last expression of a cell; ``sim.bench().serve()`` shows it in the browser.

        Args:
            options: Arguments of `warpbots.bench.Bench`, such as ``controller``, ``parameters`` and ``loss``.

        Returns:
            A `warpbots.bench.Bench`.
        """
        return type(self).bench_of(self, **options)

    def __reduce__(self) -> tuple:
        """Copies and pickles hold only the arguments; a copy is built anew from them, identical to the last bit."""
        options = {
            "worlds": self.worlds,
            "threads": self._wanted_threads,
            "device": self.model.device.alias,
            "checkpoints": self.checkpoints,
        }
        return _made, (type(self), (self.scene, self.solver, self.dt, self.substeps), options)

    def __repr__(self) -> str:
        return f"Simulation of {self.scene.name!r} by {type(self.solver).__name__}: {self.model.summary()}"

    def __str__(self) -> str:
        return simulation_table(self, self._cost).text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict:
        """A notebook shows a simulation as a table and a picture: see `warpbots.view`."""
        return type(self).mimebundle(self, simulation_table(self, self._cost))


def _made(cls: type, arguments: tuple, options: dict) -> Any:
    """A simulation from the result of `Simulation.__reduce__`."""
    return cls(*arguments, **options)
