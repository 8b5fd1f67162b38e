"""Measurements of a lattice: energies, momenta, strains, tensions, stresses, contact forces."""

import dataclasses
from collections.abc import Callable

import warp as wp

from warpbots.contact.solid import Solids
from warpbots.numerics import (
    Launch,
    clear_gradients,
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
from warpbots.solvers.mass_spring.model import MassSpringModel, MassSpringState
from warpbots.solvers.mass_spring.obstacle_contact import obstacle_force_kernel
from warpbots.solvers.mass_spring.spring_measures import spring_kernel
from warpbots.solvers.mass_spring.state_forces import (
    adj_evaluate_forces,
    adj_rest_at,
    clear_stage_gradients,
    evaluate_forces,
    rest_at,
)
from warpbots.solvers.mass_spring.virial import stress_kernel, virial_kernel
from warpbots.solvers.matter_readings import MatterReadings, add_up, adj_add_up, matter_readings, motion_kernel
from warpbots.solvers.scene_support import refuse_states_without_gradient

__all__ = ["MassSpringMeasurement", "MassSpringReadings", "readings"]


@dataclasses.dataclass(frozen=True, eq=False)
class MassSpringReadings(MatterReadings[Array]):
    """Measurements of a state.

    The contact force on an obstacle is the mean force during a step of length `ReadingWorkspace.contact_interval` that
    starts from this state. If matter rests or slides on an obstacle, the length of the interval has no effect. In an
    impact, the force includes only the impulse within the interval.

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
    """

    strain: Array
    tension: Array
    stress: Array
    contact_force: Array

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
    )  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class MassSpringMeasurement:
    """Measurement of a state, with its adjoint.

    Attributes:
        model: The model.
        state: State to measure.
        control: Control signals in [-1, 1], shape (worlds, channels).
        readings_out: Readings to which the measurement is written.
        contact_damping: Damping of contact with obstacles, as in `MassSpring` [s/m].
    """

    model: MassSpringModel
    state: MassSpringState
    control: wp.array
    readings_out: MassSpringReadings
    contact_damping: float

    def run(self) -> None:
        """Measure the state, and record the adjoint on the active tape."""
        self._measure()
        reads = [*self.state.fields(), self.control, *self.model.parameter_arrays()]
        record(self._adjoint, reads, self.readings_out.fields())

    def _measure(self) -> wp.array | None:
        """Fill the readings.

        Returns:
            The forces on the masses without contact with obstacles, or None if the scene has no obstacles.
        """
        model, force = self.model, None
        rest_at(model, self.state, self.control)
        launch_all(self._parts(), model.device)
        if model.scene.obstacles:
            force = evaluate_forces(model, self.state, self.control)
            inputs, outputs = self._contact_inputs(force, model.friction, 1), [model.workspace.reading.contact]
            launch(self._force_kernel(), self._masses, inputs, outputs, model.device)
            add_up(*self._contact_sums())
        model.workspace.reading.matter.add_up(self.readings_out)
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
            adj_add_up(*self._contact_sums())
            self._adj_contact(force, force_adj)
        for kernel, shape, inputs, outputs in reversed(self._parts()):
            launch_own_adjoint(kernel, shape, [*inputs, *outputs], model.device)
        adj_rest_at(model, state, self.control)

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

    def _contact_sums(self) -> tuple[wp.array, wp.array]:
        """Contact forces of the masses, a row for each obstacle of each world, and the sums of the rows."""
        worlds, obstacles, masses = self.model.workspace.reading.contact.shape
        rows = self.model.workspace.reading.contact.reshape((worlds * obstacles, masses))
        return rows, self.readings_out.contact_force.flatten()

    def _force_kernel(self) -> wp.Kernel:
        return obstacle_force_kernel(self.model.dim, len(self.model.scene.obstacles))

    def _contact_inputs(self, force: wp.array, friction: wp.array, copies: int) -> list:
        model, state = self.model, self.state
        surface = [model.mass, model.contact, real(self.contact_damping), *model.surfaces, friction, copies]
        interval = real(model.workspace.reading.contact_interval)
        return [*surface, interval, state.position, state.velocity, force.reshape(self._masses)]

    def _adj_contact(self, force: wp.array, force_adj: wp.array) -> None:
        """Propagate the gradients of the contact forces to the state, the control, the model and the rest lengths."""
        model, state = self.model, self.state
        copies, contact = model.workspace.copies.wanted(model.friction), model.workspace.reading.contact
        launch_adjoint(
            self._force_kernel(), self._masses,
            self._contact_inputs(force, copies.values("friction", model.friction), copies.count), [contact],
            [
                model.mass.grad, None, None, Solids(), None, None,
                copies.gradient("friction", model.friction), None, None, state.position.grad, state.velocity.grad,
                force_adj.reshape(self._masses),
            ],
            [contact.grad], model.device,
        )  # fmt: skip
        copies.collect("friction", model.friction)
        adj_evaluate_forces(model, state, self.control, force, force_adj)
