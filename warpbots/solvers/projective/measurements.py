"""Measurements of soft bodies and their bones: energies, momenta, strain, stress, air in cavities, and wrenches."""

import dataclasses
from collections.abc import Callable
from typing import Any, Never

import warp as wp

from warpbots.numerics import clear_gradients, launch, launch_own_adjoint, matrix, real, record, vector
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
from warpbots.solvers.projective.wrench_step import WrenchStep
from warpbots.solvers.scene_support import refuse_states_without_gradient

__all__ = [
    "ProjectiveReadings",
    "SkeletalReadings",
    "SkeletalSupportReadings",
    "SupportReadings",
    "readings",
    "sense",
]

_mat, _terms = matrix(3), terms_type(3)

_BONES = {n: n for n in ("position", "rotation", "velocity", "angular_velocity", "center")} | {
    "bone_kinetic_energy": "kinetic_energy",
    "bone_potential_energy": "potential_energy",
    "torque": "torque",
}
"""Fields of bones, and their names in the readings of articulated bodies."""


class _ReadingOfAStep:
    """Stands for a reading that needs a `contact_interval`, where the solver has none: access says so."""

    def __init__(self, name: str):
        self._name = name

    def __get__(self, instance: object, owner: type) -> Never:
        raise AttributeError(
            f"{owner.__name__} has no {self._name!r}: it is an unknown of a step under ProjectiveDynamics; give "
            f"ProjectiveDynamics a contact_interval, the length of the step to measure [s], or use Simulation.report, "
            f"for the forces of the last step"
        )


@dataclasses.dataclass(frozen=True, eq=False)
class ProjectiveReadings(MatterReadings[Array]):
    """Measurements of a state in the axes of the world; energies and momenta are sums over all bodies, bones included.

    Forces of contacts and constraints are unknowns of a step, so that they are readings only if the solver has a
    `contact_interval` (`SupportReadings`). `ProjectiveDynamics.report` has the forces of the last step.

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
        torque: Torques or forces of the motors [N m or N], shape (worlds, n_motors).
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


@dataclasses.dataclass(frozen=True, eq=False)
class SupportReadings(ProjectiveReadings[Array]):
    """Measurements of soft bodies, with the forces of a step that starts from the state.

    The step has the length `ProjectiveDynamics.contact_interval` and the control of the measurement. If it is also the
    step of the simulation, these forces are those of the next step, and momentum and forces are balanced up to the
    tolerance of the step; of matter at rest or in steady sliding they do not depend on the length. A step that fails is
    not halved: its world has NaN. In lost worlds the forces are 0. A table of poses that ends within the step stays at
    its end.

    Attributes:
        contact_force: Force of all bodies on each obstacle [N], shape (worlds, n_obstacles), vector.
        contact_torque: Torque of these forces about the origin, at the end of the step [N m], shape (worlds,
            n_obstacles), vector.
        constraint_force: Force of all bodies on each constraint [N], shape (worlds, n_constraints), vector. A node in
            several constraints counts for the first.
        constraint_torque: Torque of these forces about the origin, at the end of the step [N m], shape (worlds,
            n_constraints), vector.
    """

    contact_force: Array
    contact_torque: Array
    constraint_force: Array
    constraint_torque: Array

    def mapped(self, make: Callable[[Array], Other]) -> "SupportReadings[Other]":
        """A copy with `make` applied to each field."""
        return SupportReadings(*map(make, self.fields()))


@dataclasses.dataclass(frozen=True, eq=False)
class SkeletalSupportReadings(SupportReadings[Array], SkeletalReadings[Array]):
    """Measurements of soft and rigid bodies, with the forces of a step that starts from the state.

    Attributes:
        body_contact_force: Force of all contacts on the surface of each rigid body outside of its soft body [N], shape
            (worlds, n_bodies), vector.
        body_contact_torque: Torque of these forces about the origin, at the end of the step [N m], shape (worlds,
            n_bodies), vector.
    """

    body_contact_force: Array
    body_contact_torque: Array

    def mapped(self, make: Callable[[Array], Other]) -> "SkeletalSupportReadings[Other]":
        """A copy with `make` applied to each field."""
        return SkeletalSupportReadings(*map(make, self.fields()))


for _kind, _steps in ((ProjectiveReadings, SupportReadings), (SkeletalReadings, SkeletalSupportReadings)):
    for _name in _steps.__annotations__:  # not in the bodies of the classes, where they would be defaults of fields
        setattr(_kind, _name, _ReadingOfAStep(_name))


def readings(model: ProjectiveModel, supports: bool, requires_grad: bool = False) -> ProjectiveReadings[wp.array]:
    """Fresh arrays for `sense`.

    Args:
        model: From `ProjectiveDynamics.build`.
        supports: Whether to measure forces on obstacles, constraints and rigid bodies.
        requires_grad: Whether the arrays have gradients.
    """
    solids, cavities = len(model.mesh.solids), len(model.mesh.cavity_channel)

    def zeros(dtype: type, count: int) -> wp.array:
        return wp.zeros((model.worlds, count), dtype=dtype, device=model.device, requires_grad=requires_grad)

    fields = matter_readings(model.worlds, 3, model.device, requires_grad)
    fields += [zeros(_mat, solids), zeros(_mat, solids), zeros(real, cavities), zeros(real, cavities)]
    if model.skeleton is not None:
        bones = articulated.readings(model.skeleton, requires_grad)
        fields += [getattr(bones, name) for name in _BONES.values()]
    if supports:
        receivers = len(model.scene.obstacles), len(model.scene.constraints), len(model.scene.rigid)
        counts = receivers if model.skeleton else receivers[:2]
        fields += [zeros(vector(3), count) for count in counts for _ in range(2)]
    return _KINDS[supports, model.skeleton is not None](*fields)


_KINDS = {
    (False, False): ProjectiveReadings,
    (False, True): SkeletalReadings,
    (True, False): SupportReadings,
    (True, True): SkeletalSupportReadings,
}
"""Types of readings by whether there are forces on supports, and whether there are bones."""


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


def sense(
    model: ProjectiveModel, state: ProjectiveState, control: wp.array, readings_out: ProjectiveReadings, solver: Any
) -> None:
    """Measure a state; records the adjoint of the measurement on the active tape.

    Args:
        model: From `ProjectiveDynamics.build`.
        state: The state to measure.
        control: Control signals, shape (worlds, channels).
        readings_out: The readings to write.
        solver: The `ProjectiveDynamics`, whose step gives the forces on obstacles, constraints and rigid bodies.

    Raises:
        RuntimeError: A gradient is wanted but the arrays have no room for it.
    """
    _sense_matter(model, state, control, readings_out)
    if isinstance(readings_out, SupportReadings):
        _sense_supports(model, state, control, readings_out, solver)


def _sense_supports(
    model: ProjectiveModel, state: ProjectiveState, control: wp.array, readings_out: SupportReadings, solver: Any
) -> None:
    obstacles = len(model.scene.obstacles)
    readers = [
        (0, readings_out.contact_force, readings_out.contact_torque),
        (obstacles, readings_out.constraint_force, readings_out.constraint_torque),
    ]
    if isinstance(readings_out, SkeletalSupportReadings):
        first = obstacles + len(model.scene.constraints)
        readers.append((first, readings_out.body_contact_force, readings_out.body_contact_torque))
    readers = [reader for reader in readers if reader[1].size]
    if readers:
        step = WrenchStep(model, state, control, readings_out, readers, solver)
        step.run()
        reads = [*state.fields(), control, *model.parameter_arrays()]
        record(step.adjoint, reads, [array for _, *own in readers for array in own])


def _sense_matter(
    model: ProjectiveModel, state: ProjectiveState, control: wp.array, readings_out: ProjectiveReadings
) -> None:
    whole, workspace = readings_out.fields()[:9], model.workspace
    bones, inner, asked = None, [], []
    if isinstance(readings_out, SkeletalReadings):
        named = {theirs: getattr(readings_out, own) for own, theirs in _BONES.items()}
        asked = list(named.values())
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
