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
from warpbots.solvers.array_fields import Array, ArrayFields, Other
from warpbots.solvers.mass_spring.model import MassSpringModel, MassSpringState
from warpbots.solvers.mass_spring.obstacle_contact import obstacle_force_kernel
from warpbots.solvers.mass_spring.shares import mass_kernel, spin_type, spring_kernel
from warpbots.solvers.mass_spring.state_forces import (
    adj_evaluate_forces,
    adj_rest_at,
    clear_stage_gradients,
    evaluate_forces,
    rest_at,
)
from warpbots.solvers.mass_spring.virial import stress_kernel, virial_kernel
from warpbots.solvers.matter_readings import add_up, adj_add_up
from warpbots.solvers.scene_support import refuse_states_without_gradient

__all__ = ["MassSpringMeasurement", "MassSpringReadings", "readings"]


@dataclasses.dataclass(frozen=True, eq=False)
class MassSpringReadings(ArrayFields[Array]):
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

    kinetic_energy: Array
    elastic_energy: Array
    potential_energy: Array
    momentum: Array
    angular_momentum: Array
    strain: Array
    tension: Array
    stress: Array
    contact_force: Array

    def mapped(self, make: Callable[[Array], Other]) -> "MassSpringReadings[Other]":
        """Make a copy whose fields are the results of `make` for each field."""
        return MassSpringReadings(*map(make, self.fields()))


def readings(model: MassSpringModel, requires_grad: bool = False) -> MassSpringReadings:
    """New arrays to which `MassSpringMeasurement` writes."""
    dim, worlds, springs = model.dim, model.worlds, (model.worlds, len(model.lattice.ends))

    def zeros(shape: int | tuple, dtype: type = real) -> wp.array:
        return wp.zeros(shape, dtype=dtype, device=model.device, requires_grad=requires_grad)

    return MassSpringReadings(
        zeros(worlds), zeros(worlds), zeros(worlds), zeros(worlds, vector(dim)), zeros(worlds, spin_type(dim)),
        zeros(springs), zeros(springs), zeros((worlds, len(model.lattice)), matrix(dim)),
        zeros((worlds, len(model.scene.obstacles)), vector(dim)),
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
        for terms, total in self._sums():
            add_up(terms, total)
        return force

    def _adjoint(self) -> None:
        """Adjoint of `run`: add to the gradients of the state, the control and the model.

        The method starts from the gradients of the readings.
        """
        model, state, to = self.model, self.state, self.readings_out
        refuse_states_without_gradient("MassSpring", state=state.fields(), readings_out=to.fields())
        force, force_adj = self._measure(), clear_stage_gradients(model)
        clear_gradients([model.workspace.reading.virial, model.workspace.reading.deformation])
        for terms, total in self._sums():
            adj_add_up(terms, total)
        if force is not None:
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
                [to.strain, to.tension, work.elastic],
            ),
            (
                mass_kernel(model.dim), self._masses, [model.mass, model.gravity, *motion],
                [work.kinetic, work.potential, work.momentum, work.spin],
            ),
            (
                virial_kernel(model.dim), self._masses, [near.rows, near.slope, state.position, to.tension],
                [work.virial, work.deformation],
            ),
            (
                stress_kernel(model.dim), self._masses, [near.missing, near.volume, work.virial, work.deformation],
                [to.stress],
            ),
        ]  # fmt: skip

    def _sums(self) -> list[tuple[wp.array, wp.array]]:
        """Pairs of arrays: an array of contributions, and the array to which the sum of each row is written."""
        work, to = self.model.workspace.reading, self.readings_out
        sums = [
            (work.kinetic, to.kinetic_energy), (work.elastic, to.elastic_energy), (work.potential, to.potential_energy),
            (work.momentum, to.momentum), (work.spin, to.angular_momentum),
        ]  # fmt: skip
        if self.model.scene.obstacles:
            rows = work.contact.shape[0] * work.contact.shape[1]
            sums.append((work.contact.reshape((rows, work.contact.shape[2])), to.contact_force.flatten()))
        return sums

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
