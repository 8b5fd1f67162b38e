"""Measurements of matter and rigid bodies together."""

import functools

import warp as wp

from warpbots.contact.space_maps import space_maps
from warpbots.numerics import launch, launch_own_adjoint, real, record, vector
from warpbots.solvers.articulated import Articulated
from warpbots.solvers.articulated.measurements import ArticulatedReadings
from warpbots.solvers.coupled.body_step import BodyStep
from warpbots.solvers.coupled.compositions import composition_of
from warpbots.solvers.coupled.model import CoupledModel
from warpbots.solvers.coupled.readings import CoupledReadings
from warpbots.solvers.coupled.states import CoupledState
from warpbots.solvers.mass_spring import MassSpring
from warpbots.solvers.matter_readings import moment_type
from warpbots.solvers.mpm import MPM

__all__ = ["readings", "sense"]

_OF_BODIES = (
    "position", "rotation", "velocity", "angular_velocity", "center", "kinetic_energy", "potential_energy", "momentum",
    "angular_momentum", "torque",
)  # fmt: skip
"""Names, in the readings of articulated bodies, of the fields before `matter_force`."""


def readings(matter: MPM | MassSpring, model: CoupledModel, requires_grad: bool = False) -> CoupledReadings[wp.array]:
    """New arrays to which `sense` can write."""
    soft = matter.readings(model.soft, requires_grad)
    rigid = Articulated().readings(model.rigid, requires_grad)
    shape, vec = rigid.center.shape, rigid.center.dtype
    wrench = (wp.zeros(shape, dtype=vec, device=model.device, requires_grad=requires_grad) for _ in range(2))
    own = (getattr(rigid, name) for name in _OF_BODIES)
    found = composition_of(matter).readings(*soft.fields(), *own, *wrench, rigid.obstacle_force, rigid.obstacle_torque)
    model.workspace.readings.of(found, lambda: rigid)
    return found


@functools.cache
def add_bodies_kernel(dim: int) -> wp.Kernel:
    """Kernel over worlds, for matter in `dim` dimensions; differentiated by Warp."""
    vec, spin = vector(dim), moment_type(dim)
    _, from_space = space_maps(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.coupled.add_bodies_{dim}d"))
    def add_bodies(
        # work
        kinetic_energy: wp.array2d[wp.float64],
        potential_energy: wp.array2d[wp.float64],
        momentum: wp.array2d[wp.vec3d],
        angular_momentum: wp.array2d[wp.vec3d],
        # out
        kinetic_energy_out: wp.array[real],
        potential_energy_out: wp.array[real],
        momentum_out: wp.array[vec],
        angular_momentum_out: wp.array[spin],
    ):
        """Add energies and momenta of the rigid bodies to those of the matter."""
        w = wp.tid()
        T = wp.float64(0.0)
        U = wp.float64(0.0)
        p = wp.vec3d()
        L = wp.vec3d()
        for b in range(kinetic_energy.shape[1]):
            T += kinetic_energy[w, b]
            U += potential_energy[w, b]
            p += momentum[w, b]
            L += angular_momentum[w, b]
        wp.atomic_add(kinetic_energy_out, w, real(T))
        wp.atomic_add(potential_energy_out, w, real(U))
        wp.atomic_add(momentum_out, w, from_space(p))
        if wp.static(dim == 2):
            wp.atomic_add(angular_momentum_out, w, real(L[2]))
        else:
            wp.atomic_add(angular_momentum_out, w, from_space(L))

    return add_bodies


def sense(
    matter: MPM | MassSpring, bodies: Articulated, model: CoupledModel, state: CoupledState, control: wp.array,
    to: CoupledReadings,
) -> None:  # fmt: skip
    """Measure a state; see `Coupled.sense`."""
    work, rigid = model.workspace, model.workspace.readings[to]
    model.load(control)
    record(lambda: model.adj_load(control), [control, model.gravity], [work.matter_control, work.body_control])
    composition = composition_of(matter)
    step = BodyStep(
        model, bodies, model.bodies_state(state), work.body_control, work.measured_state,
        model.soft.contact_interval, model.exchanges.measured, to.matter_force, to.matter_torque,
    )  # fmt: skip
    composition.sense(matter, model.soft, state, work.matter_control, to, composition.exchange(step, state))
    bodies.sense(model.rigid, model.bodies_state(state), work.body_control, rigid)
    arrays = _sums(rigid, to)
    launch(add_bodies_kernel(model.dim), model.worlds, arrays, [], model.device)

    def adjoint() -> None:
        model.load(control)
        model.clear_load_gradients()
        launch_own_adjoint(add_bodies_kernel(model.dim), model.worlds, arrays, model.device)

    record(adjoint, [control], to.fields())


def _sums(rigid: ArticulatedReadings, to: CoupledReadings) -> list[wp.array]:
    names = ("kinetic_energy", "potential_energy", "momentum", "angular_momentum")
    return [*(getattr(rigid, n) for n in names), *(getattr(to, n) for n in names)]
