"""Measurements of matter: energies, momenta, strains, stresses, forces and torques on obstacles and constraints."""

import dataclasses
from collections.abc import Callable

import warp as wp

from warpbots.actuation_laws import ActivationArrays
from warpbots.numerics import launch, launch_adjoint, matrix, record, vector
from warpbots.solvers.array_fields import Array, Other
from warpbots.solvers.matter_readings import MatterReadings, matter_readings, moment_type
from warpbots.solvers.mpm.arrays import grid_geometry
from warpbots.solvers.mpm.constituents import adj_load_constituents, clear_load_gradients, load_constituents
from warpbots.solvers.mpm.explicit_step import NodeImpulses
from warpbots.solvers.mpm.model import MPMModel, MPMState
from warpbots.solvers.mpm.particle_measures import particle_motion_kernel, stress_kernel
from warpbots.solvers.mpm.supports import Wrenches, adj_support, support
from warpbots.solvers.scene_support import refuse_states_without_gradient

__all__ = ["MPMReadings", "readings", "sense"]


@dataclasses.dataclass(frozen=True, eq=False)
class MPMReadings(MatterReadings[Array]):
    """Measurements of a state.

    A particle carries the affine velocity field v + C (x - x_p), which a step transfers to the grid. Therefore C
    contributes to the energy and the angular momentum of the particle: the second moment of a quadratic spline is m
    dx^2/4 along each axis. A step exactly conserves the angular momentum that includes this contribution.

    The force on an obstacle is the momentum that the nodes in the obstacle take from matter in a step of length
    `MPMModel.contact_interval`, divided by this length, which is 0.4 of the stability bound of the scene as it was
    built. Obstacles act on a node one after the other, as in the step. The force on a constraint is the momentum that
    held nodes, and then held particles, lose to the constraint in this step, per time. For matter that rests or slides
    the force does not depend on the interval; during an impact the force is the mean over the interval. With steps of
    exactly this length, forces and momentum are balanced up to rounding.

    Attributes:
        kinetic_energy: Kinetic energy, sum of m/2 (|v|^2 + dx^2/4 C : C) [J], shape (worlds,).
        elastic_energy: Elastic energy of the materials, without actuators [J], shape (worlds,).
        potential_energy: Potential energy in the field of gravity, zero at the origin [J], shape (worlds,).
        momentum: Momentum [kg m/s], shape (worlds,), vector.
        angular_momentum: Angular momentum about the origin [kg m^2/s], shape (worlds,): a number in 2D, a vector in 3D.
        strain: Green-Lagrange strain (F^T F - I)/2 of each particle; the elastic strain for plastic matter [1], shape
            (worlds, n_particles), matrix.
        stress: Cauchy stress of each particle, including fibres, branches, actuators and damping [Pa], shape (worlds,
            n_particles), matrix.
        contact_force: Force of matter on each obstacle [N], shape (worlds, n_obstacles), vector.
        contact_torque: Torque of these forces about the origin [N m], shape (worlds, n_obstacles): a number in 2D, a
            vector in 3D.
        constraint_force: Force of matter on each constraint [N], shape (worlds, n_constraints), vector.
        constraint_torque: Torque of these forces about the origin [N m], shape (worlds, n_constraints): a number in 2D,
            a vector in 3D.
    """

    strain: Array
    stress: Array
    contact_force: Array
    contact_torque: Array
    constraint_force: Array
    constraint_torque: Array

    def mapped(self, make: Callable[[Array], Other]) -> "MPMReadings[Other]":
        """A copy with `make` applied to each field."""
        return MPMReadings(*map(make, self.fields()))


def readings(model: MPMModel, requires_grad: bool = False) -> MPMReadings[wp.array]:
    """New arrays to which `sense` can write."""
    dim, worlds, particles = model.dim, model.worlds, len(model.matter)

    def zeros(count: int, dtype: type) -> wp.array:
        return wp.zeros((worlds, count), dtype=dtype, device=model.device, requires_grad=requires_grad)

    return MPMReadings(
        *matter_readings(worlds, dim, model.device, requires_grad),
        zeros(particles, matrix(dim)),
        zeros(particles, matrix(dim)),
        zeros(len(model.scene.obstacles), vector(dim)),
        zeros(len(model.scene.obstacles), moment_type(dim)),
        zeros(len(model.constraints), vector(dim)),
        zeros(len(model.constraints), moment_type(dim)),
    )


def sense(
    model: MPMModel, state: MPMState, control: wp.array, readings_out: MPMReadings,
    impulses: NodeImpulses | None = None,
) -> None:  # fmt: skip
    """Measure a state; see `MPM.sense`. `impulses` act on the nodes before obstacles do, if there are any."""
    load_constituents(model, state)
    for kernel, size, inputs, outputs in _launches(model, state, control, readings_out):
        launch(kernel, size, inputs, outputs, model.device)
    model.workspace.measures.add_up(readings_out)
    if model.scene.obstacles or model.constraints or impulses is not None:
        support(model, state, control, *_wrenches(readings_out), impulses)
    reads = [*state.fields(), control, *model.parameter_arrays()]
    record(lambda: _sense_adjoint(model, state, control, readings_out, impulses), reads, readings_out.fields())


def _launches(model: MPMModel, state: MPMState, control: wp.array, to: MPMReadings) -> list:
    """Kernel launches that measure each particle, as tuples (kernel, size, inputs, outputs)."""
    work = model.workspace.measures
    inputs = [model.material, model.geometry, model.gravity, state.motion]
    launches = [(particle_motion_kernel(model.dim), (model.worlds, len(model.matter)), inputs, [work.motion])]
    for group in model.groups:
        inputs = [
            model.material, model.actuation, model.geometry, group.rows, state.motion, *_added(model), model.dilates,
            state.plastic.flatten(), control,
        ]  # fmt: skip
        outputs = [work.elastic.flatten(), to.strain.flatten(), to.stress.flatten()]
        launches.append((stress_kernel(model.kind(group)), len(group.rows), inputs, outputs))
    return launches


def _wrenches(to: MPMReadings) -> tuple[Wrenches, Wrenches]:
    return (to.contact_force, to.contact_torque), (to.constraint_force, to.constraint_torque)


def _added(model: MPMModel) -> list[wp.array | None]:
    """Stress, and energy per volume, that fibres and branches add to each particle; both are None if there are none."""
    work = model.workspace.constituents if model.composite else None
    return [work.stress.flatten(), work.energy.flatten()] if work else [None, None]


def _sense_adjoint(
    model: MPMModel, state: MPMState, control: wp.array, to: MPMReadings, impulses: NodeImpulses | None
) -> None:
    refuse_states_without_gradient("MPM", state=state.fields(), readings_out=to.fields())
    if model.scene.obstacles or model.constraints or impulses is not None:
        adj_support(model, state, control, *_wrenches(to), impulses)
    model.workspace.measures.adj_add_up(to)
    load_constituents(model, state)
    clear_load_gradients(model)
    none, undriven = grid_geometry(model.dim)(), ActivationArrays()
    gradients = [[model.material_adj, none, model.gravity.grad, state.motion_adj]]
    added = [None if a is None else a.grad for a in _added(model)]
    of_group = [
        model.material_adj, undriven, none, None, state.motion_adj, *added, None, state.plastic.grad.flatten(),
        control.grad,
    ]  # fmt: skip
    gradients += [of_group] * len(model.groups)
    for (kernel, size, inputs, outputs), adj_inputs in zip(
        _launches(model, state, control, to), gradients, strict=True
    ):
        launch_adjoint(kernel, size, inputs, outputs, adj_inputs, [a.grad for a in outputs], model.device)
    adj_load_constituents(model, state)
