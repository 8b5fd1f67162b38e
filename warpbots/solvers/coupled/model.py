"""Model of matter and rigid bodies that exchange impulses (`CoupledModel`), constant in a step."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Self

import numpy as np
import warp as wp

from warpbots.contact.solid import Solids
from warpbots.contact.space_maps import space_maps
from warpbots.numerics import clear_gradients, launch, launch_own_adjoint, real, vector
from warpbots.numerics.parameters import NOT_NEGATIVE, Parameter, parameter, parameters_of, parametric
from warpbots.scene import RigidBody, Scene, SoftBody
from warpbots.solvers.adjoint_cache import AdjointCache
from warpbots.solvers.array_model import ArrayModel
from warpbots.solvers.articulated.exchange_step import ExchangeWorkspace
from warpbots.solvers.articulated.model import ArticulatedModel, ArticulatedState
from warpbots.solvers.articulated.robot import ArticulatedRobot
from warpbots.solvers.articulated.spatial import scalar, vec3
from warpbots.solvers.coupled.body_solids import SolidBoxes
from warpbots.solvers.coupled.bound_points import BoundPoints
from warpbots.solvers.coupled.exchange_arrays import GridArrays, MassArrays
from warpbots.solvers.coupled.scene_parts import merged
from warpbots.solvers.coupled.states import CoupledState
from warpbots.solvers.mass_spring.model import MassSpringModel
from warpbots.solvers.matter import Matter
from warpbots.solvers.mpm.model import MPMModel
from warpbots.solvers.places import Places
from warpbots.solvers.records import with_body_friction
from warpbots.solvers.rest_strains import RestStrains

__all__ = ["CoupledModel", "CoupledWorkspace", "MatterPoints", "with_motions_of"]


@functools.cache
def select_kernel(target: type) -> wp.Kernel:
    """Kernel over (worlds, channels of one solver): copies its control signals and changes their type."""

    @wp.kernel(module=wp.get_module(f"warpbots.coupled.select_{target.__name__}"))
    def select(
        # model
        channel: wp.array[int],
        # state
        control: wp.array2d[real],
        # out
        own_out: wp.array2d[target],
    ):
        """Control signal of each channel: u'_k = u_c with the channel c of the scene."""
        w, k = wp.tid()
        own_out[w, k] = target(control[w, channel[k]])

    return select


@functools.cache
def widen_kernel(dim: int) -> wp.Kernel:
    """Kernel over worlds, for matter in `dim` dimensions; differentiated by Warp."""
    vec = vector(dim)
    in_space, _ = space_maps(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.coupled.widen_{dim}d"))
    def widen(
        # model
        gravity: wp.array[vec],
        # out
        gravity_out: wp.array[vec3],
    ):
        """Gravity in 3D and in double precision."""
        w = wp.tid()
        gravity_out[w] = in_space(gravity[w])

    return widen


@dataclasses.dataclass(frozen=True, eq=False)
class CoupledWorkspace:
    """Arrays that every step fills anew.

    Attributes:
        matter_channel: Channel in the scene of each channel of the matter, shape (n_matter_channels,), int.
        body_channel: Channel in the scene of each channel of the rigid bodies, shape (n_body_channels,), int.
        matter_control: Control signals of the matter, shape (worlds, n_matter_channels).
        body_control: Control signals of the rigid bodies, double precision, shape (worlds, n_body_channels).
        axes: Axes of the solid of each body, as columns [1], shape (worlds * n_bodies,), matrix.
        origin: Origin of the solid of each body [m], shape (worlds * n_bodies,), vector.
        lower: Lower corners of boxes along the axes of the scene, in each world one around each body and one around all
            of them [m], shape (worlds * (n_bodies + 1),), vector.
        upper: Upper corners of these boxes, of the same shape.
        soft_body: Index of the soft body of each point of matter, shape (worlds * n_points,), int.
        body: Rigid body that each point of matter touches, -1 for none, shape (worlds * n_points,), int.
        counts: Number of points that touch each body in each part of the matter, shape (worlds * n_bodies * n_parts,),
            int. The parts are listed in parallel.
        next: Index of the next point of each body in each part while the points are listed, of the same shape, int.
        no_samples: Gradient with respect to samples of shapes, which is not used, shape (0, 0).
        unused_lost: Field `lost` of states of the rigid bodies; it is not used, because a state has one such field for
            both solvers [1], shape (worlds,).
        bodies_time: Field `time` of states of the rigid bodies at the end of a step [s], shape (worlds,); only NaN
            counts, where obstacles have met at a rigid body.
        unused_travel: Field `travel` of these states [m or rad], shape (worlds, n_drives); it is not used either.
        stopped: For each world that cannot go on after a step, the point of matter whose position becomes NaN, else
            -1, shape (worlds,), int.
        measured_state: State of the rigid bodies at the end of the step in which forces are measured. Its gradient is
            always zero.
        matter: Arrays for the exchange of the solver of the matter.
        starts: For each state, its part that belongs to the rigid bodies.
        ends: For each state at the end of a step, the part that the step of the rigid bodies writes.
        readings: For each object of readings, its part that belongs to the rigid bodies.
    """

    matter_channel: wp.array
    body_channel: wp.array
    matter_control: wp.array
    body_control: wp.array
    axes: wp.array
    origin: wp.array
    lower: wp.array
    upper: wp.array
    soft_body: wp.array
    body: wp.array
    counts: wp.array
    next: wp.array
    no_samples: wp.array
    unused_lost: wp.array
    bodies_time: wp.array
    unused_travel: wp.array
    stopped: wp.array
    measured_state: ArticulatedState
    matter: GridArrays | MassArrays
    starts: AdjointCache = dataclasses.field(default_factory=AdjointCache)
    ends: AdjointCache = dataclasses.field(default_factory=AdjointCache)
    readings: AdjointCache = dataclasses.field(default_factory=AdjointCache)


_MOTION = ("motion_position", "motion_rotation", "drive_speed", "surface_velocity")
_OF_BOTH = {"gravity", *_MOTION}
"""Parameters that mean the same in the models of the matter and of the rigid bodies."""


def with_motions_of(soft: MPMModel | MassSpringModel, rigid: ArticulatedModel) -> ArticulatedModel:
    """`rigid` with the parameters of motion of `soft`, in which those of obstacles come before those of constraints."""
    if not rigid.frames:
        return rigid
    return dataclasses.replace(
        rigid, **{name: _columns(soft.parameter(name), rigid.parameter(name).shape[1]) for name in _MOTION}
    )


def _columns(array: wp.array, count: int) -> wp.array:
    """The first entries of each world in an array, as a view; a Warp slice cannot be empty."""
    if count:
        return array[:, :count]
    shape = (array.shape[0], 0, *array.shape[2:])
    return wp.zeros(shape, dtype=array.dtype, device=array.device, requires_grad=True)


@dataclasses.dataclass(frozen=True)
class MatterPoints:
    """The points of matter that can touch rigid bodies, in words and numbers.

    Attributes:
        name: What a point is called.
        cell: What the distance between points is called.
        size: This distance, or the size of a cell [m].
        option: The option of the solver that sets this size, in words.
        narrowest: Thickness that a rod needs so that it meets points wherever it is [size].
        rod: What happens to a rod that is thinner.
        plate: What happens at a plate that is thinner than this size.
        lower: Lower corner of the box that holds all matter [m], shape (dim,).
        upper: Upper corner of this box [m], shape (dim,).
        longest_bar: Length of the longest bar of which only the ends are points [m]; 0 without such bars.
    """

    name: str
    cell: str
    size: float
    option: str
    narrowest: float
    rod: str
    plate: str
    lower: np.ndarray = dataclasses.field(default_factory=lambda: np.full(3, -np.inf))
    upper: np.ndarray = dataclasses.field(default_factory=lambda: np.full(3, np.inf))
    longest_bar: float = 0.0


def _indices(scene: Scene, kind: type) -> np.ndarray:
    """Indices in the scene of its bodies of a kind, shape (n,), int."""
    return np.array([i for i, body in enumerate(scene.bodies) if isinstance(body, kind)], dtype=int)


@parametric
class CoupledModel(ArrayModel):
    """Models of the matter and of the rigid bodies of a scene, and their contacts.

    Attributes:
        scene: The scene that was built.
        worlds: Number of independent copies.
        device: Device of all arrays.
        soft: Model of the matter.
        rigid: Model of the rigid bodies. Its gravity is a copy of the gravity of the matter in double precision.
        solids: Shapes of the rigid bodies, as a Warp struct.
        boxes: Boxes around these shapes, as a Warp struct.
        points: The points of the matter, in words and numbers.
        bound: The points of the matter that are bound to rigid bodies.
        exchanges: Arrays for the points of matter that touch rigid bodies.
        workspace: Arrays that every step fills anew.
    """

    scene: Scene
    worlds: int
    device: wp.Device
    soft: MPMModel | MassSpringModel
    rigid: ArticulatedModel
    body_friction: wp.array = parameter(
        "1", NOT_NEGATIVE, "surface", "Coulomb coefficient of bodies", axes="n_bodies",
        meaning="Coulomb coefficient of soft bodies, then of rigid bodies",
    )  # fmt: skip
    solids: Solids
    boxes: SolidBoxes
    points: MatterPoints
    bound: BoundPoints
    exchanges: ExchangeWorkspace
    workspace: CoupledWorkspace

    @property
    def dim(self) -> int:
        """Number of dimensions of the matter, 2 or 3."""
        return self.scene.dim

    @functools.cached_property
    def matter(self) -> Matter:
        """Soft bodies at rest."""
        return self.soft.matter.with_bodies(_indices(self.scene, SoftBody))

    @property
    def robot(self) -> ArticulatedRobot:
        """Rigid bodies and their joints."""
        return self.rigid.robot

    @property
    def gravity(self) -> wp.array:
        """Gravitational acceleration [m/s^2], shape (worlds,), vector."""
        return self.soft.gravity

    @property
    def tables(self) -> dict[str, np.ndarray]:
        """Tables of the elements of the matter, with the points that are their vertices, shape (n, n_vertices), int."""
        return self.soft.tables

    @property
    def measured_elements(self) -> Mapping[str, str]:
        """Kinds of elements to which the readings of stress and strain belong."""
        return self.soft.measured_elements

    def summary(self) -> str:
        """Numbers of points of matter and of rigid bodies, in words."""
        bound = f"; {len(self.bound)} masses bound to rigid bodies" if len(self.bound) else ""
        return f"{self.soft.summary()}; {self.rigid.summary()}{bound}"

    @functools.cached_property
    def _of_rigid(self) -> dict[str, str]:
        """Name in the model of the rigid bodies of each of its parameters, by the name in this model.

        The matter has the first right to a name: the masses of the bodies beside masses of a lattice are ``body_mass``.
        """
        taken = self.soft.parameters().keys() - _OF_BOTH
        return {f"body_{n}" if n in taken else n: n for n in self.rigid.parameters()}

    def parameters(self) -> dict[str, Parameter]:
        """Parameters of the rigid bodies, then of the matter; a parameter of both, such as gravity, comes once."""
        rigid = self.rigid.parameters()
        of_rigid = {name: rigid[own] for name, own in self._of_rigid.items()}
        return of_rigid | self.soft.parameters() | parameters_of(CoupledModel)

    @property
    def rest_strains(self) -> RestStrains | None:
        """Strains of the elements of the matter at rest by actuators; None if no actuator of its solver has any."""
        return getattr(self.soft, "rest_strains", None)

    def places(self, per: str) -> Places | None:
        """Rest positions of the elements of a kind; None for a kind without places."""
        for model, kind in ((self.soft, SoftBody), (self.rigid, RigidBody)):
            found = model.places(per)
            if found is not None:
                index = np.append(_indices(self.scene, kind), -1)  # -1, for none, stays
                return dataclasses.replace(found, body=index[found.body])
        return None

    def parameter(self, name: str) -> wp.array:
        """The array of a parameter, shape (worlds, ...)."""
        if name in parameters_of(CoupledModel):
            return getattr(self, name)
        if name in self.soft.parameters() or name not in self._of_rigid:  # it may have no elements in either
            return self.soft.parameter(name)
        return self.rigid.parameter(self._of_rigid[name])

    def with_parameters(self, arrays: dict[str, wp.array]) -> Self:
        """A copy in which `arrays`, by name of the parameter, replace the arrays of these parameters."""
        own = {n: a for n, a in arrays.items() if n in parameters_of(CoupledModel)}
        soft = {n: a for n, a in arrays.items() if n not in own and n in self.soft.parameters()}
        rigid = {self._of_rigid[n]: a for n, a in arrays.items() if n not in own and n not in soft}
        matter = self.soft.with_parameters(soft)
        return dataclasses.replace(
            self, soft=matter, rigid=with_motions_of(matter, self.rigid.with_parameters(rigid)), **own
        )

    def recorded(self, values: Mapping[str, np.ndarray]) -> Scene:
        """The scene with the values that its records can hold."""
        soft = {n: v for n, v in values.items() if n in self.soft.parameters()}
        rigid = {self._of_rigid[n]: v for n, v in values.items() if n in self._of_rigid and n not in soft}
        scene = merged(self.scene, self.soft.recorded(soft), self.rigid.recorded(rigid))
        return with_body_friction(scene, range(len(scene.rigid)), values)

    def bodies_state(self, state: CoupledState) -> ArticulatedState:
        """The part of a state that belongs to the rigid bodies."""
        return self.workspace.starts.of(state, lambda: self._bodies_state(state, state.time, state.travel))

    def bodies_end(self, state_out: CoupledState) -> ArticulatedState:
        """The part of the state at the end of a step that the step of the rigid bodies writes.

        The time and the coordinates of drives, which the step of the matter writes, go to arrays of the workspace.
        """
        work = self.workspace
        return work.ends.of(state_out, lambda: self._bodies_state(state_out, work.bodies_time, work.unused_travel))

    def _bodies_state(self, state: CoupledState, time: wp.array, travel: wp.array) -> ArticulatedState:
        lost, frames = self.workspace.unused_lost, self.rigid.frames
        if not frames:
            return self.rigid.still_state(state.q, state.qd, lost)
        return ArticulatedState(state.q, state.qd, time, _columns(travel, frames.drives), state.last_step, lost)

    def load(self, control: wp.array) -> None:
        """Copy the control signals and the gravity to the arrays of both solvers."""
        for kernel, inputs, outputs in self._copies(control):
            launch(kernel, outputs[0].shape, inputs, outputs, self.device)

    def clear_load_gradients(self) -> None:
        """Set the gradients of the arrays that `load` writes to zero."""
        clear_gradients([self.workspace.matter_control, self.workspace.body_control, self.rigid.gravity])

    def adj_load(self, control: wp.array) -> None:
        """Adjoint of `load`."""
        for kernel, inputs, outputs in self._copies(control):
            launch_own_adjoint(kernel, outputs[0].shape, [*inputs, *outputs], self.device)

    def _copies(self, control: wp.array) -> list[tuple[wp.Kernel, list, list]]:
        work = self.workspace
        return [
            (select_kernel(real), [work.matter_channel, control], [work.matter_control]),
            (select_kernel(scalar), [work.body_channel, control], [work.body_control]),
            (widen_kernel(self.dim), [self.gravity], [self.rigid.gravity]),
        ]
