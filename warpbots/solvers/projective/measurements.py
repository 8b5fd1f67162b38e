"""Measurements of soft bodies and their bones: energies, momenta, strain, stress, and the air in cavities."""

import dataclasses
from collections.abc import Callable

import warp as wp

from warpbots.numerics import clear_gradients, launch, launch_own_adjoint, matrix, real, record
from warpbots.solvers.array_fields import Array, Other
from warpbots.solvers.articulated import measurements as articulated
from warpbots.solvers.articulated.measurements import ArticulatedReadings
from warpbots.solvers.matter_readings import MatterReadings, matter_readings, motion_kernel, terms_type
from warpbots.solvers.projective.bones_step import sense_bones
from warpbots.solvers.projective.elements.cavities import CAVITIES, CavityArrays, pressure_launches
from warpbots.solvers.projective.elements.element import Kind, Point
from warpbots.solvers.projective.forces import rest_launches
from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.states import ProjectiveState
from warpbots.solvers.scene_support import refuse_states_without_gradient

__all__ = ["ProjectiveReadings", "SkeletalReadings", "readings", "sense"]

_mat, _terms = matrix(3), terms_type(3)

_BONES = {n: n for n in ("position", "rotation", "velocity", "angular_velocity", "center")} | {
    "bone_kinetic_energy": "kinetic_energy",
    "bone_potential_energy": "potential_energy",
    "torque": "torque",
}
"""Fields of bones, and their names in the readings of articulated bodies."""


@dataclasses.dataclass(frozen=True, eq=False)
class ProjectiveReadings(MatterReadings[Array]):
    """Measurements of a state in the axes of the world; energies and momenta are sums over all bodies, bones included.

    Contact forces are not a function of a state: they are unknowns of the step that led to the state, and a different
        step to the same state has different forces. `ProjectiveDynamics.report` has the forces of the last step.

    Attributes:
        kinetic_energy: Kinetic energy [J], shape (worlds,).
        elastic_energy: Elastic energy of matter, sheets, bars and attachments, and of fibres, pneumatic cells and
            cables at their present control; active stress and air have none [J], shape (worlds,).
        potential_energy: Potential energy in the field of gravity, 0 at the origin [J], shape (worlds,).
        momentum: Momentum [N s], shape (worlds,), vector.
        angular_momentum: Angular momentum about the origin [N m s], shape (worlds,), vector.
        strain: Green-Lagrange strain (F^T F - 1) / 2 of solid elements, averaged over each element, relative to the
            rest shape as changed by expansions [1], shape (worlds, n_solids), matrix.
        stress: Cauchy stress of solid elements, averaged over each element. It includes active stress, but not the
            stress of fibres and pneumatic cells, which are separate elements, nor the stress of damping, which belongs
            to a step [Pa], shape (worlds, n_solids), matrix.
        volume: Volumes of cavities, in the order of their channels [m^3], shape (worlds, n_cavities).
        pressure: Gauge pressures in cavities at their present control [Pa], shape (worlds, n_cavities).
    """

    strain: Array
    stress: Array
    volume: Array
    pressure: Array

    def mapped(self, make: Callable[[Array], Other]) -> "ProjectiveReadings[Other]":
        """A copy with `make` applied to each field."""
        return ProjectiveReadings(*map(make, self.fields()))


@dataclasses.dataclass(frozen=True, eq=False)
class SkeletalReadings(ProjectiveReadings[Array]):
    """Measurements of soft bodies and bones; bones are measured in double precision, as by `Articulated`.

    Attributes:
        position: Origins of the bones' frames [m], shape (worlds, n_bodies), vector.
        rotation: Rotation matrices, whose columns are the axes of the bones' frames [1], shape (worlds, n_bodies),
            matrix.
        velocity: Velocities of the origins of the bones' frames [m/s], shape (worlds, n_bodies), vector.
        angular_velocity: Angular velocities of the bones [rad/s], shape (worlds, n_bodies), vector.
        center: Centres of mass of the bones [m], shape (worlds, n_bodies), vector.
        bone_kinetic_energy: Kinetic energies of the bones, without rotors [J], shape (worlds, n_bodies).
        bone_potential_energy: Potential energies of the bones in the field of gravity [J], shape (worlds, n_bodies).
        torque: Torques or forces of the motors [N m or N], shape (worlds, channels).
    """

    position: Array
    rotation: Array
    velocity: Array
    angular_velocity: Array
    center: Array
    bone_kinetic_energy: Array
    bone_potential_energy: Array
    torque: Array

    def mapped(self, make: Callable[[Array], Other]) -> "SkeletalReadings[Other]":
        """A copy with `make` applied to each field."""
        return SkeletalReadings(*map(make, self.fields()))


def readings(model: ProjectiveModel, requires_grad: bool = False) -> ProjectiveReadings[wp.array]:
    """Fresh arrays for `sense`."""
    solids, cavities = len(model.matter.solids), len(model.matter.cavity_channel)

    def zeros(dtype: type, count: int) -> wp.array:
        return wp.zeros((model.worlds, count), dtype=dtype, device=model.device, requires_grad=requires_grad)

    whole = matter_readings(model.worlds, 3, model.device, requires_grad)
    parts = [zeros(_mat, solids), zeros(_mat, solids), zeros(real, cavities), zeros(real, cavities)]
    if model.skeleton is None:
        return ProjectiveReadings(*whole, *parts)
    bones = articulated.readings(model.skeleton, requires_grad)
    return SkeletalReadings(*whole, *parts, *(getattr(bones, name) for name in _BONES.values()))


@wp.kernel
def bone_kernel(
    # model
    nodes: int,
    # work
    kinetic_energy: wp.array2d[wp.float64],
    potential_energy: wp.array2d[wp.float64],
    momentum: wp.array2d[wp.vec3d],
    angular_momentum: wp.array2d[wp.vec3d],
    # out
    terms_out: wp.array2d[_terms],
):
    """Write the terms of each bone after those of all nodes."""
    w, b = wp.tid()
    p = momentum[w, b]
    L = angular_momentum[w, b]
    terms = _terms(kinetic_energy[w, b], potential_energy[w, b], p[0], p[1], p[2], L[0], L[1], L[2])
    terms_out[w, nodes + b] = terms


@wp.kernel
def cavity_kernel(
    # model
    cavities: CavityArrays,
    # out
    volume_out: wp.array2d[real],
    pressure_out: wp.array2d[real],
):
    """Copy V and p of each cavity to the readings."""
    w, c = wp.tid()
    k = w * cavities.cavity_runs.shape[0] + c
    volume_out[w, c] = real(cavities.volume[k])
    pressure_out[w, c] = cavities.pressure[k]


def sense(model: ProjectiveModel, state: ProjectiveState, control: wp.array, readings_out: ProjectiveReadings) -> None:
    """Measure a state; records the adjoint of the measurement on the active tape.

    Args:
        model: From `ProjectiveDynamics.build`.
        state: The state to measure.
        control: Control signals, shape (worlds, channels).
        readings_out: The readings to write.

    Raises:
        RuntimeError: A gradient is wanted but the arrays have no room for it.
    """
    whole, asked, workspace = readings_out.fields()[:9], readings_out.fields()[9:], model.workspace
    bones, inner = None, []
    if isinstance(readings_out, SkeletalReadings):
        named = {theirs: getattr(readings_out, own) for own, theirs in _BONES.items()}
        bones = dataclasses.replace(workspace.bones.readings, **named)
        inner = [bones.momentum, bones.angular_momentum]
        sense_bones(model, state, control, bones)
    launches = _launches(model, state, control, readings_out, bones)
    for kernel, dim, inputs in launches:
        launch(kernel, dim, inputs, [], model.device)
    workspace.matter.add_up(readings_out)

    def adjoint() -> None:
        refuse_states_without_gradient("ProjectiveDynamics", state=state.fields(), readings_out=whole)
        for kernel, dim, inputs in launches:  # others have used the arrays since
            launch(kernel, dim, inputs, [], model.device)
        clear_gradients([workspace.corner_mass, *workspace.rested, *workspace.evaluated, *inner])
        workspace.matter.adj_add_up(readings_out)
        for kernel, dim, inputs in reversed(launches):
            launch_own_adjoint(kernel, dim, inputs, model.device)

    record(adjoint, [*state.fields(), control, *model.parameter_arrays(), *asked], whole)


def _launches(
    model: ProjectiveModel, state: ProjectiveState, control: wp.array, to: ProjectiveReadings,
    bones: ArticulatedReadings | None,
) -> list[tuple]:  # fmt: skip
    """Launches (kernel, dim, inputs) that measure a state, after its bones have been measured."""
    workspace, worlds, x = model.workspace, model.worlds, state.position.flatten()
    point = Point(workspace.everywhere, control, x, workspace.zero, real(0.0), state.time)  # no reading depends on h
    launches = rest_launches(model, point, step=False)
    for kind, elements in model.elements:
        launches += _of_elements(model, kind, elements, point, to)
    nodes, terms = (worlds, model.topology.sizes.nodes), workspace.matter.motion
    mass = model.nodes.mass.reshape(nodes)
    launches.append((motion_kernel(3), nodes, [mass, model.nodes.gravity, state.position, state.velocity, terms]))
    if bones is not None:
        energies_and_momenta = [bones.kinetic_energy, bones.potential_energy, bones.momentum, bones.angular_momentum]
        launches.append((bone_kernel, bones.position.shape, [nodes[1], *energies_and_momenta, terms]))
    return launches


def _of_elements(
    model: ProjectiveModel, kind: Kind, elements: object, point: Point, to: ProjectiveReadings
) -> list[tuple]:
    """Launches that measure the elements of a kind."""
    if kind.measure is not None:
        return kind.measure(elements, model, point, [model.workspace.energy, to.strain, to.stress])
    if kind is CAVITIES:
        inputs = [elements, to.volume, to.pressure]
        return [*pressure_launches(elements, model.worlds, point), (cavity_kernel, to.volume.shape, inputs)]
    return kind.energy(elements, model, point) if kind.energy else []
