"""Measurements of soft bodies and their bones: energies, momenta, strain, stress, and the air in cavities."""

import dataclasses
from collections.abc import Callable

import warp as wp

from warpbots.numerics import clear_gradients, launch, launch_own_adjoint, matrix, real, record, vector
from warpbots.solvers.array_fields import Array, ArrayFields, Other
from warpbots.solvers.articulated import measurements as articulated
from warpbots.solvers.articulated.robot_arrays import RobotArrays
from warpbots.solvers.articulated.spatial import mat33 as bone_mat
from warpbots.solvers.articulated.spatial import scalar as bone_scalar
from warpbots.solvers.articulated.spatial import vec3 as bone_vec
from warpbots.solvers.projective.bones_step import sense_bones
from warpbots.solvers.projective.elements.cavities import CAVITIES, CavityArrays, pressure_launches
from warpbots.solvers.projective.elements.element import Kind, Point
from warpbots.solvers.projective.elements.nodes import NodeArrays
from warpbots.solvers.projective.forces import rest_launches
from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.states import ProjectiveState
from warpbots.solvers.projective.workspace import RUN
from warpbots.solvers.scene_support import refuse_states_without_gradient

__all__ = ["ProjectiveReadings", "SkeletalReadings", "readings", "sense"]

_vec, _mat = vector(3), matrix(3)
_terms = wp.types.vector(8, wp.float64)
_HALF = wp.constant(wp.float64(0.5))
_RUN = wp.constant(RUN)


_BONES = {n: n for n in ("position", "rotation", "velocity", "angular_velocity", "center")} | {
    "bone_kinetic_energy": "kinetic_energy",
    "bone_potential_energy": "potential_energy",
    "torque": "torque",
}
"""Fields of bones, and their names in the readings of articulated bodies."""


@dataclasses.dataclass(frozen=True, eq=False)
class ProjectiveReadings(ArrayFields[Array]):
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

    kinetic_energy: Array
    elastic_energy: Array
    potential_energy: Array
    momentum: Array
    angular_momentum: Array
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

    def zeros(dtype: type, *shape: int) -> wp.array:
        return wp.zeros((model.worlds, *shape), dtype=dtype, device=model.device, requires_grad=requires_grad)

    whole = [zeros(real), zeros(real), zeros(real), zeros(_vec), zeros(_vec)]
    parts = [zeros(_mat, solids), zeros(_mat, solids), zeros(real, cavities), zeros(real, cavities)]
    if model.skeleton is None:
        return ProjectiveReadings(*whole, *parts)
    bones = articulated.readings(model.skeleton, requires_grad)
    return SkeletalReadings(*whole, *parts, *(getattr(bones, name) for name in _BONES.values()))


@wp.kernel
def node_kernel(
    # model
    nodes: NodeArrays,
    # state
    x: wp.array[_vec],
    v: wp.array[_vec],
    # out
    terms_out: wp.array[_terms],
):
    """Write m/2 v^2, -m g . x, m v and x x m v of a node."""
    w, i = wp.tid()
    k = w * nodes.count + i
    m = wp.float64(nodes.mass[k])
    at = wp.vec3d(x[k])
    p = m * wp.vec3d(v[k])
    g = wp.vec3d(nodes.gravity[w])
    L = wp.cross(at, p)
    kinetic = _HALF * wp.dot(p, wp.vec3d(v[k]))
    terms_out[k] = _terms(kinetic, -m * wp.dot(g, at), p[0], p[1], p[2], L[0], L[1], L[2])


@wp.kernel
def bone_kernel(
    # model
    robot: RobotArrays,
    # state
    position: wp.array2d[bone_vec],
    rotation: wp.array2d[bone_mat],
    velocity: wp.array2d[bone_vec],
    angular_velocity: wp.array2d[bone_vec],
    center: wp.array2d[bone_vec],
    kinetic_energy: wp.array2d[bone_scalar],
    potential_energy: wp.array2d[bone_scalar],
    # out
    terms_out: wp.array2d[_terms],
):
    """Write the terms of `node_kernel` for a bone, with momentum p = m v_c and angular momentum c x p + R I R^T w."""
    w, b = wp.tid()
    k = w * robot.tree.bodies + b
    o = angular_velocity[w, b]
    c = center[w, b]
    p = robot.design.mass[k] * (velocity[w, b] + wp.cross(o, c - position[w, b]))
    R = rotation[w, b]
    I = bone_scalar(0.5) * (robot.design.inertia[k] + wp.transpose(robot.design.inertia[k]))
    L = wp.cross(c, p) + R @ (I @ (wp.transpose(R) @ o))
    terms_out[w, b] = _terms(
        kinetic_energy[w, b], potential_energy[w, b], p[0], p[1], p[2], L[0], L[1], L[2]
    )  # fmt: skip


@wp.kernel
def run_of_terms_kernel(
    # work
    count: int,
    terms: wp.array[_terms],
    # out
    sums_out: wp.array2d[_terms],
):
    """Write the sum of each run of terms."""
    w, r = wp.tid()
    total = _terms()
    for i in range(r * _RUN, wp.min((r + 1) * _RUN, count)):
        total += terms[w * count + i]
    sums_out[w, r] = total


@wp.kernel
def run_of_energies_kernel(
    # work
    count: int,
    energy: wp.array[real],
    # out
    sums_out: wp.array2d[wp.float64],
):
    """Write the sum of each run of energies."""
    w, r = wp.tid()
    total = wp.float64(0.0)
    for i in range(r * _RUN, wp.min((r + 1) * _RUN, count)):
        total += wp.float64(energy[w * count + i])
    sums_out[w, r] = total


@wp.func
def total_of(terms: wp.array2d[_terms], w: int):
    """Sum of all runs of a world."""
    total = _terms()
    for r in range(terms.shape[1]):
        total += terms[w, r]
    return total


@wp.func
def energy_of(energies: wp.array2d[wp.float64], w: int):
    """Sum of all runs of a world."""
    total = wp.float64(0.0)
    for r in range(energies.shape[1]):
        total += energies[w, r]
    return total


@wp.kernel
def total_kernel(
    # work
    terms: wp.array2d[_terms],
    bones: wp.array2d[_terms],
    energies: wp.array2d[wp.float64],
    # out
    kinetic_energy_out: wp.array[real],
    elastic_energy_out: wp.array[real],
    potential_energy_out: wp.array[real],
    momentum_out: wp.array[_vec],
    angular_momentum_out: wp.array[_vec],
):
    """Write the sums over all nodes, bones and elements."""
    w = wp.tid()
    t = total_of(terms, w) + total_of(bones, w)
    kinetic_energy_out[w] = real(t[0])
    elastic_energy_out[w] = real(energy_of(energies, w))
    potential_energy_out[w] = real(t[1])
    momentum_out[w] = _vec(real(t[2]), real(t[3]), real(t[4]))
    angular_momentum_out[w] = _vec(real(t[5]), real(t[6]), real(t[7]))


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
    whole, bones = readings_out.fields()[:9], readings_out.fields()[9:]
    if isinstance(readings_out, SkeletalReadings):
        named = {theirs: getattr(readings_out, own) for own, theirs in _BONES.items()}
        sense_bones(model, state, control, dataclasses.replace(model.workspace.bones.readings, **named))
    launches = _launches(model, state, control, readings_out)
    for kernel, dim, inputs in launches:
        launch(kernel, dim, inputs, [], model.device)

    def adjoint() -> None:
        refuse_states_without_gradient("ProjectiveDynamics", state=state.fields(), readings_out=whole)
        for kernel, dim, inputs in launches:  # others have used the arrays since
            launch(kernel, dim, inputs, [], model.device)
        workspace = model.workspace
        between = [workspace.corner_mass, workspace.energy, *workspace.rested, *workspace.evaluated, *workspace.sums]
        clear_gradients(between)
        for kernel, dim, inputs in reversed(launches):
            launch_own_adjoint(kernel, dim, inputs, model.device)

    record(adjoint, [*state.fields(), control, *model.parameter_arrays(), *bones], whole)


def _launches(model: ProjectiveModel, state: ProjectiveState, control: wp.array, to: ProjectiveReadings) -> list[tuple]:
    """Launches (kernel, dim, inputs) that measure a state, after its bones have been measured."""
    workspace, worlds = model.workspace, model.worlds
    x, v = state.position.flatten(), state.velocity.flatten()
    point = Point(workspace.everywhere, control, x, workspace.zero, real(0.0), state.time)  # no reading depends on h
    terms, bones, runs, energies = workspace.sums
    launches = rest_launches(model, point, step=False)
    for kind, elements in model.elements:
        launches += _of_elements(model, kind, elements, point, to)
    nodes, corners = model.topology.sizes.nodes, model.topology.corners
    launches.append((node_kernel, (worlds, nodes), [model.nodes, x, v, terms]))
    if isinstance(to, SkeletalReadings):
        inputs = [model.bones.robot_arrays, *to.fields()[9:-1], bones]
        launches.append((bone_kernel, to.position.shape, inputs))
    whole = [to.kinetic_energy, to.elastic_energy, to.potential_energy, to.momentum, to.angular_momentum]
    return [
        *launches,
        (run_of_terms_kernel, runs.shape, [nodes, terms, runs]),
        (run_of_energies_kernel, energies.shape, [corners, workspace.energy, energies]),
        (total_kernel, worlds, [runs, bones, energies, *whole]),
    ]


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
