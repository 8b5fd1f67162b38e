"""Measurements of a lattice: energies, momenta, strains, tensions, stresses, forces on supports."""

import dataclasses
import functools
from collections.abc import Callable

import warp as wp

from warpbots.contact.moving_frames import MovingPoses
from warpbots.contact.solid import Solids
from warpbots.numerics import (
    NODE,
    Launch,
    clear_gradients,
    copy,
    launch,
    launch_adjoint,
    launch_all,
    launch_own_adjoint,
    matrix,
    real,
    record,
    vector,
)
from warpbots.solvers.array_fields import Array, Other
from warpbots.solvers.mass_spring.actuation import add_kernel
from warpbots.solvers.mass_spring.constraint_forces import constraint_force_kernel
from warpbots.solvers.mass_spring.impulses import MassImpulses, StepShares
from warpbots.solvers.mass_spring.model import MassSpringModel, MassSpringState
from warpbots.solvers.mass_spring.obstacle_contact import obstacle_force_kernel
from warpbots.solvers.mass_spring.spring_measures import spring_kernel
from warpbots.solvers.mass_spring.stage_forces import project_forces
from warpbots.solvers.mass_spring.state_forces import (
    adj_evaluate_forces,
    adj_rest_at,
    clear_stage_gradients,
    evaluate_forces,
    rest_at,
)
from warpbots.solvers.mass_spring.virial import stress_kernel, virial_kernel
from warpbots.solvers.matter_readings import (
    MatterReadings,
    add_up,
    adj_add_up,
    matter_readings,
    moment_kernel,
    moment_type,
    motion_kernel,
)
from warpbots.solvers.moving_frames import FrameState
from warpbots.solvers.scene_support import refuse_states_without_gradient

__all__ = ["MassSpringMeasurement", "MassSpringReadings", "readings"]


@dataclasses.dataclass(frozen=True, eq=False)
class MassSpringReadings(MatterReadings[Array]):
    """Measurements of a state.

    The force on an obstacle or a constraint is the mean force during a step of length
    `ReadingWorkspace.contact_interval` that starts from this state. If matter rests or slides on an obstacle, the
    length of the interval has no effect. In an impact, the force includes only the impulse within the interval.

    Attributes:
        kinetic_energy: Kinetic energy of the masses [J], shape (worlds,).
        elastic_energy: Elastic energy stored in the springs; yielding and breaking dissipate part of this energy [J],
            shape (worlds,).
        potential_energy: Potential energy of the masses in the field of gravity, 0 at the origin [J], shape (worlds,).
        momentum: Total momentum of the masses [kg m/s], shape (worlds,), vector.
        angular_momentum: Total angular momentum of the masses about the origin [kg m^2/s], shape (worlds,): a number in
            2D, a vector in 3D.
        strain: Elongation of each spring divided by its rest length [1], shape (worlds, n_springs). The rest length
            includes actuators and plastic strains.
        tension: Force of each spring, including damping, negative in compression [N], shape (worlds, n_springs).
        stress: Cauchy stress at each mass, computed from the tensions (`virial`) [Pa], shape (worlds, n_masses),
            matrix. The shear stress is inaccurate at the edges of a body, where springs are on one side only.
        contact_force: Force of all matter on each obstacle [N], shape (worlds, n_obstacles), vector.
        contact_torque: Torque of these forces about the origin [N m], shape (worlds, n_obstacles): a number in 2D, a
            vector in 3D.
        constraint_force: Force of all matter on each constraint [N], shape (worlds, n_constraints), vector.
        constraint_torque: Torque of these forces about the origin [N m], shape (worlds, n_constraints): a number in 2D,
            a vector in 3D.
    """

    strain: Array
    tension: Array
    stress: Array
    contact_force: Array
    contact_torque: Array
    constraint_force: Array
    constraint_torque: Array

    def mapped(self, make: Callable[[Array], Other]) -> "MassSpringReadings[Other]":
        """Make a copy whose fields are the results of `make` for each field."""
        return MassSpringReadings(*map(make, self.fields()))


def readings(model: MassSpringModel, requires_grad: bool = False) -> MassSpringReadings:
    """New arrays to which `MassSpringMeasurement` writes."""
    dim, springs = model.dim, len(model.lattice.ends)

    def zeros(count: int, dtype: type = real) -> wp.array:
        shape = (model.worlds, count)
        return wp.zeros(shape, dtype=dtype, device=model.device, requires_grad=requires_grad)

    return MassSpringReadings(
        *matter_readings(model.worlds, dim, model.device, requires_grad), zeros(springs), zeros(springs),
        zeros(len(model.lattice), matrix(dim)), zeros(len(model.scene.obstacles), vector(dim)),
        zeros(len(model.scene.obstacles), moment_type(dim)), zeros(len(model.scene.constraints), vector(dim)),
        zeros(len(model.scene.constraints), moment_type(dim)),
    )  # fmt: skip


_AT_ONCE = StepShares(0.0, 0.0)
"""Impulses act at the positions of the state, which do not change."""


@functools.cache
def free_velocity_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, masses): velocity v + h f / m at the end of the time h."""
    vec = vector(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.springs.free_velocity_{dim}d"))
    def free_velocity(
        # model
        mass: wp.array2d[real],
        # step
        h: real,
        # state
        v: wp.array2d[vec],
        # work
        force: wp.array2d[NODE],
        # out
        velocity_out: wp.array2d[vec],
    ):
        """V = v + h f / m, without impulses and obstacles."""
        w, i = wp.tid()
        f = vec()
        for c in range(wp.static(dim)):
            f[c] = force[w, i][c]
        velocity_out[w, i] = v[w, i] + h / mass[w, i] * f

    return free_velocity


@dataclasses.dataclass(frozen=True, eq=False)
class MassSpringMeasurement:
    """Measurement of a state, with its adjoint.

    Attributes:
        model: The model.
        state: State to measure.
        control: Control signals in [-1, 1], shape (worlds, channels).
        readings_out: Readings to which the measurement is written.
        contact_damping: Damping of contact with obstacles, as in `MassSpring` [s/m].
        impulses: Impulses from outside, which act before obstacles do; None if there are none.
    """

    model: MassSpringModel
    state: MassSpringState
    control: wp.array
    readings_out: MassSpringReadings
    contact_damping: float
    impulses: MassImpulses | None = None

    def run(self) -> None:
        """Measure the state, and record the adjoint on the active tape."""
        self._measure()
        reads = [*self.state.fields(), self.control, *self.model.parameter_arrays()]
        record(self._adjoint, reads, self.readings_out.fields())

    def _measure(self) -> wp.array | None:
        """Fill the readings.

        Returns:
            The forces on the masses before contact and constraints; None without obstacles and constraints.
        """
        model, force, work = self.model, None, self.model.workspace.reading
        rest_at(model, self.state, self.control)
        launch_all(self._parts(), model.device)
        if model.scene.obstacles or model.scene.constraints or self.impulses is not None:
            force = evaluate_forces(model, self.state, self.control)
            copy(work.projected.flatten(), force)
            project_forces(model, work.projected.flatten())
            if self.impulses is not None:
                launch_all([self._free()], model.device)
                copy(work.started, self.state.velocity)
                self.impulses.apply(_AT_ONCE, work.free.flatten(), [None, work.started.flatten()])
            model.frames.place(self._frame_state, work.contact_interval, 0.0)
            inputs, outputs = self._contact_inputs(model.friction, 1), [work.contact, work.velocity]
            launch(self._force_kernel(), self._masses, inputs, outputs, model.device)
            launch(self._hold_kernel(), self._masses, self._hold_inputs(force), [work.held], model.device)
            launch_all(self._moments(), model.device)
            for rows, total in self._support_sums():
                add_up(rows, total)
        work.matter.add_up(self.readings_out)
        return force

    def _adjoint(self) -> None:
        """Adjoint of `run`: add to the gradients of the state, the control and the model.

        The method starts from the gradients of the readings.
        """
        model, state, to = self.model, self.state, self.readings_out
        refuse_states_without_gradient("MassSpring", state=state.fields(), readings_out=to.fields())
        force, force_adj = self._measure(), clear_stage_gradients(model)
        clear_gradients([model.workspace.reading.virial, model.workspace.reading.deformation])
        model.workspace.reading.matter.adj_add_up(to)
        if force is not None:
            for rows, total in self._support_sums():
                adj_add_up(rows, total)
            for kernel, shape, inputs, outputs in self._moments():
                launch_own_adjoint(kernel, shape, [*inputs, *outputs], model.device)
            self._adj_supports(force, force_adj)
        for kernel, shape, inputs, outputs in reversed(self._parts()):
            launch_own_adjoint(kernel, shape, [*inputs, *outputs], model.device)
        adj_rest_at(model, state, self.control)

    @property
    def _frame_state(self) -> FrameState:
        return self.model.frame_state(self.state, self.control)

    @property
    def _masses(self) -> tuple[int, int]:
        return self.state.position.shape

    def _parts(self) -> list[Launch]:
        """List the kernel launches that measure each spring and each mass, in the order in which they run."""
        model, state, to, work = self.model, self.state, self.readings_out, self.model.workspace.reading
        motion, (stiffness, damping), near = [state.position, state.velocity], model.constants, work.neighbours
        return [
            (
                spring_kernel(model.dim, model.damped, model.inelastic), to.tension.shape,
                [model.fracture.ends, stiffness, model.length, damping, *motion, state.broken],
                [to.strain, to.tension, work.matter.elastic],
            ),
            (motion_kernel(model.dim), self._masses, [model.mass, model.gravity, *motion], [work.matter.motion]),
            (
                virial_kernel(model.dim), self._masses, [near.rows, near.slope, state.position, to.tension],
                [work.virial, work.deformation],
            ),
            (
                stress_kernel(model.dim), self._masses, [near.missing, near.volume, work.virial, work.deformation],
                [to.stress],
            ),
        ]  # fmt: skip

    def _free(self) -> Launch:
        """Kernel launch that computes the velocities without impulses and obstacles."""
        model, work = self.model, self.model.workspace.reading
        inputs = [model.mass, real(model.contact_interval), self.state.velocity, work.projected]
        return free_velocity_kernel(model.dim), self._masses, inputs, [work.free]

    @property
    def _start(self) -> wp.array:
        """Velocities at the start, plus the changes by impulses."""
        return self.state.velocity if self.impulses is None else self.model.workspace.reading.started

    def _moments(self) -> list[Launch]:
        """Kernel launches that compute the torques of the forces on obstacles and constraints."""
        work, kernel = self.model.workspace.reading, moment_kernel(self.model.dim)
        pairs = (work.contact, work.contact_moment), (work.held, work.held_moment)
        return [(kernel, f.shape, [self.state.position, f], [moment]) for f, moment in pairs if f.size]

    def _support_sums(self) -> list[tuple[wp.array, wp.array]]:
        """Forces and torques of the masses, a row for each obstacle or constraint of each world, and sums of rows."""
        work, to = self.model.workspace.reading, self.readings_out
        pairs = [(work.contact, to.contact_force), (work.contact_moment, to.contact_torque)]
        pairs += [(work.held, to.constraint_force), (work.held_moment, to.constraint_torque)]
        return [(terms.reshape((-1, terms.shape[2])), total.flatten()) for terms, total in pairs if terms.size]

    def _force_kernel(self) -> wp.Kernel:
        return obstacle_force_kernel(self.model.dim, len(self.model.scene.obstacles))

    def _hold_kernel(self) -> wp.Kernel:
        return constraint_force_kernel(self.model.dim)

    def _contact_inputs(self, friction: wp.array, copies: int) -> list:
        model, state, work = self.model, self.state, self.model.workspace.reading
        surface = [model.mass, model.contact, real(self.contact_damping), *model.surfaces, friction, copies]
        return [*surface, real(work.contact_interval), state.position, self._start, work.projected]

    def _hold_inputs(self, force: wp.array) -> list:
        model, work = self.model, self.model.workspace.reading
        constants = [model.constraint, model.carried, model.freedom, model.direction, model.mass]
        values = [force.reshape(self._masses), work.projected, work.velocity]
        return [*constants, real(work.contact_interval), self.state.position, model.frames.frames, *values]

    def _adj_supports(self, force: wp.array, force_adj: wp.array) -> None:
        """Propagate the gradients of forces on obstacles and constraints to the state, the control and the model."""
        model, state, work = self.model, self.state, self.model.workspace.reading
        copies, whole_adj = model.workspace.copies.wanted(model.friction), force_adj.reshape(self._masses)
        model.frames.clear_gradients()
        clear_gradients([work.projected, work.velocity])
        if self.impulses is not None:
            clear_gradients([work.started, work.free])
        launch_adjoint(
            self._hold_kernel(), self._masses, self._hold_inputs(force), [work.held],
            [
                *[None] * 4, model.mass.grad, None, state.position.grad, MovingPoses(), whole_adj,
                work.projected.grad, work.velocity.grad,
            ],
            [work.held.grad], model.device,
        )  # fmt: skip
        launch_adjoint(
            self._force_kernel(), self._masses,
            self._contact_inputs(copies.values("friction", model.friction), copies.count),
            [work.contact, work.velocity],
            [
                model.mass.grad, None, None, Solids(), MovingPoses(), None, None,
                copies.gradient("friction", model.friction), None, None, state.position.grad, self._start.grad,
                work.projected.grad,
            ],
            [work.contact.grad, work.velocity.grad], model.device,
        )  # fmt: skip
        copies.collect("friction", model.friction)
        model.frames.adj_place(self._frame_state, work.contact_interval, 0.0)
        if self.impulses is not None:
            self._adj_impulses()
        project_forces(model, work.projected.grad.flatten())
        launch(add_kernel(NODE), self._masses, [work.projected.grad], [whole_adj], model.device)
        adj_evaluate_forces(model, state, self.control, force, force_adj)

    def _adj_impulses(self) -> None:
        """Propagate the gradients of the velocities after impulses to the state, the masses and the forces."""
        model, state, work = self.model, self.state, self.model.workspace.reading
        mass_adj = None if model.mass.grad is None else model.mass.grad.flatten()
        ended_adj = [None, work.started.grad.flatten()]
        self.impulses.adjoint(_AT_ONCE, ended_adj, work.free.grad.flatten(), mass_adj)
        launch(add_kernel(vector(model.dim)), self._masses, [work.started.grad], [state.velocity.grad], model.device)
        kernel, shape, inputs, outputs = self._free()
        launch_own_adjoint(kernel, shape, [*inputs, *outputs], model.device)
