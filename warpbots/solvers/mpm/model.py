"""Model of the MPM solver (`MPMModel`), constant in a step, and its state (`MPMState`)."""

import dataclasses
import functools
from collections.abc import Callable, Mapping

import numpy as np
import warp as wp

from warpbots.actuation_laws import ActiveLaw
from warpbots.materials import FLUIDS
from warpbots.numerics import struct_of
from warpbots.numerics.parameters import Parameter, parameters_of, parametric, shared
from warpbots.renamed import FormerAttribute
from warpbots.scene import Scene
from warpbots.solvers.array_fields import Array, ArrayFields, Other
from warpbots.solvers.law_constants import HasLawConstants
from warpbots.solvers.law_groups import LawGroup
from warpbots.solvers.motion_parameters import MotionParameters, with_motions
from warpbots.solvers.moving_frames import FrameState, MovingFrames
from warpbots.solvers.mpm.arrays import constituent_arrays, constitution_arrays, motion_arrays, strength_arrays
from warpbots.solvers.mpm.grid import BackgroundGrid, GridContacts
from warpbots.solvers.mpm.grid_viscosity import added_viscosity
from warpbots.solvers.mpm.held_regions import HeldRegion
from warpbots.solvers.mpm.moving_solids import MovingObstacles
from warpbots.solvers.mpm.particles import STRENGTH, ParticleConstants, Particles
from warpbots.solvers.mpm.transfer import MatterKind
from warpbots.solvers.mpm.workspace import MPMWorkspace
from warpbots.solvers.parameters import FRICTION, GRAVITY, LOAD
from warpbots.solvers.records import with_friction, with_materials

__all__ = ["FlowGroup", "ParticleGroup", "MPMModel", "MPMState"]

FIBRES, BRANCHES = ("fibre_modulus", "fibre_direction"), ("branch_modulus", "relaxation_time")
"""Parameters of fibres and of Maxwell branches."""


@dataclasses.dataclass(frozen=True)
class ParticleGroup(LawGroup):
    """Consecutive particles with the same constitutive law.

    Attributes:
        rows: Indices of the particles in the arrays of all worlds, shape (worlds * count,), int.
    """

    rows: wp.array

    @property
    def range(self) -> wp.vec2i:
        """First particle and number of particles in each world."""
        return wp.vec2i(self.first, self.count)


@dataclasses.dataclass(frozen=True)
class FlowGroup:
    """Particles with the same kind of flow.

    Attributes:
        kind: Class of their plasticity, or the law of a fluid; None for elastic matter.
        rows: Indices of the particles in the arrays of all worlds, shape (worlds * count,), int.
    """

    kind: type | str | None
    rows: wp.array


@dataclasses.dataclass(frozen=True, eq=False)
class MPMState(ArrayFields[Array]):
    """State of the particles, with a velocity gradient and a deformation gradient for each, as APIC and MLS-MPM need.

    Attributes:
        position: Positions [m], shape (worlds, n_particles), vector.
        velocity: Velocities [m/s], shape (worlds, n_particles), vector.
        velocity_gradient: The affine field C of APIC, including the retained spin of fluids [1/s], shape (worlds,
            n_particles), matrix.
        deformation: Deformation gradients F; for plastic matter the elastic factor, for fluids J^(1/dim) I with J = det
            F [1], shape (worlds, n_particles), matrix.
        plastic: History of plastic matter, zero for all other matter: for `VonMises` the accumulated plastic strain;
            for `DruckerPrager` the gap that earlier steps left between grains, as the logarithm of a volume ratio; for
            `CamClay` the logarithm of the plastic volume ratio [1], shape (worlds, n_particles), or (worlds, 0) if all
            matter is elastic.
        branch_deformation: Elastic deformations of the springs of Maxwell branches [1], shape (worlds, n_particles,
            n_branches), matrix, with n_branches the largest number of branches of any material, or (worlds, 0, 0) if no
            material has branches.
        time: Time since the start [s], double precision, shape (worlds,), or (worlds, 0) if no obstacle and no
            constraint moves.
        travel: Coordinates of the drives of obstacles and constraints [m or rad], double precision, shape (worlds,
            n_drives).
        lost: 1 for a world that cannot go on; a simulation keeps the state that this world had before the control
            interval [1], shape (worlds,).
    """

    position: Array
    velocity: Array
    velocity_gradient: Array
    deformation: Array
    plastic: Array
    branch_deformation: Array
    time: Array
    travel: Array
    lost: Array

    def mapped(self, make: Callable[[Array], Other]) -> "MPMState[Other]":
        """A copy with `make` applied to each field."""
        return MPMState(*map(make, self.fields()))

    @functools.cached_property
    def motion(self) -> object:
        """Positions, velocities, velocity gradients and deformation gradients as a Warp struct."""
        return struct_of(motion_arrays(self.position.dtype._length_), self.fields()[:4])

    @functools.cached_property
    def motion_adj(self) -> object:
        """The gradients with respect to the arrays of `motion`, as a Warp struct."""
        return struct_of(motion_arrays(self.position.dtype._length_), [a.grad for a in self.fields()[:4]])


@parametric
class MPMModel(MotionParameters, HasLawConstants, ParticleConstants[wp.array]):
    """The scene as arrays; `dataclasses.replace` makes a changed copy.

    The constants of `VonMises` (`yield_stress`, `hardening`), `DruckerPrager` (`friction_angle`) and `CamClay`
    (`preconsolidation_pressure`, `stress_ratio`, `cohesion`, `hardening_coefficient`) have no effect on other matter.
    Entries beyond the number of fibre families or Maxwell branches of the particle's own material have no effect.

    Attributes:
        scene: The scene that was built.
        worlds: Number of independent copies.
        device: Device of all arrays.
        matter: All soft bodies of one world as particles at rest, on the host.
        groups: Groups of particles by law.
        flows: Groups of particles by kind of flow; empty if all particles are elastic.
        fluid: Indices, in the arrays of all worlds, of the fluid particles that no constraint holds, shape (n_fluid,),
            int; None if there are none.
        grid: The background grid of one world.
        law_constants: Constants of the laws by name, without effect on matter with another law [1, or the unit that
            the law declares], each of shape (worlds, n_particles).
        counts: Number of fibre families and number of branches of each particle of a world [1], shape (n_particles,),
            vec2i.
        dilates: 1 for each `CamClay` particle of a world, 0 for others, shape (n_particles,), int; None if there is no
            such particle. `MPMState.plastic` has the logarithm of the plastic volume ratio of these particles.
        geometry: The grid, as a Warp struct.
        contacts: Contacts of the grid nodes inside obstacles that do not move.
        frames: Frames of obstacles and constraints that move.
        moving: Obstacles that move.
        actuation: Stress actuators of particles, as a Warp struct.
        active_laws: Laws of the stress actuators; empty if there are none.
        cables: Cables, as a Warp struct.
        constraints: The constraints, with the particles that they hold.
        contact_interval: Time over which forces on obstacles are measured [s].
        workspace: Grids and other arrays that every step fills anew.
    """

    scene: Scene
    worlds: int
    device: wp.Device
    matter: Particles
    groups: tuple[ParticleGroup, ...]
    flows: tuple[FlowGroup, ...]
    fluid: wp.array | None
    grid: BackgroundGrid
    friction: wp.array = shared(FRICTION)
    gravity: wp.array = shared(GRAVITY)
    load: wp.array = shared(LOAD, "particle")
    law_constants: Mapping[str, wp.array]
    counts: wp.array
    dilates: wp.array | None
    geometry: object
    contacts: GridContacts
    frames: MovingFrames
    moving: MovingObstacles
    actuation: object
    active_laws: tuple[ActiveLaw, ...]
    cables: object
    constraints: tuple[HeldRegion, ...]
    contact_interval: float
    workspace: MPMWorkspace

    particles = FormerAttribute("matter")

    @property
    def dim(self) -> int:
        """2 or 3."""
        return self.scene.dim

    robot = None
    """There are no rigid bodies."""

    def summary(self) -> str:
        """Text with the number of particles, the size of the grid, and the viscosity that the grid adds to fluids."""
        nodes = " x ".join(map(str, self.grid.resolution))
        words = f"{len(self.matter)} particles, a grid of {nodes} nodes {self.grid.dx:g} m apart"
        if self.fluid is None:
            return words
        density = self.matter.density[self.of_fluid].max()
        return f"{words}, which adds a viscosity of about {density * self.added_viscosity:.2g} Pa s to fluids"

    @functools.cached_property
    def of_fluid(self) -> np.ndarray:
        """Whether each particle of a world belongs to a fluid, shape (n_particles,), bool."""
        return np.array([body.material.law in FLUIDS for body in self.scene.bodies])[self.matter.body]

    @property
    def added_viscosity(self) -> float:
        """Kinematic viscosity that the transfers add to fluids [m^2/s]."""
        return added_viscosity(self.grid.dx, self.contact_interval)

    @property
    def tables(self) -> dict[str, np.ndarray]:
        """Table of the particles, as elements with one vertex each, shape (n_particles, 1), int."""
        return {"particle": np.arange(len(self.matter))[:, None]}

    @property
    def measured_elements(self) -> dict[str, str]:
        """Kinds of elements to which the readings of stress and strain belong."""
        return {"stress": "particle", "strain": "particle"}

    def parameters(self) -> dict[str, Parameter]:
        """Parameters that can be differentiated: field name -> unit, range and meaning.

        Friction is left out if no obstacle has the condition ``"friction"``. Damping and the parameters of plasticity,
        fibres and branches are left out if no material has this property, and parameters of motion if nothing in the
        scene moves so. Constants of laws come last.
        """
        rough = any(o.condition == "friction" for o in self.scene.obstacles)
        absent = {"friction": not rough, "damping": not self.damped}
        absent |= {name: not self.flows_as(kind) for name, kind in STRENGTH.items()}
        absent |= {name: not self.parameter(name).size for name in FIBRES + BRANCHES}
        absent |= dict.fromkeys(self.frames.absent, True)
        own = {name: spec for name, spec in parameters_of(MPMModel).items() if not absent.get(name)}
        return own | self.law_parameters("particle")

    @functools.cached_property
    def damped(self) -> bool:
        """Whether any material of the scene has damping."""
        return any(m.damping for b in self.scene.soft for m in b.materials)

    def flows_as(self, kind: type) -> bool:
        """Whether any material of the scene has plasticity of the class `kind`."""
        return any(group.kind is kind for group in self.flows)

    @property
    def composite(self) -> bool:
        """Whether any material of the scene has fibres or branches."""
        return bool(self.fibre_modulus.size or self.branch_modulus.size)

    def kind(self, group: ParticleGroup) -> MatterKind:
        """Kind of matter of a group, which determines its kernels."""
        return MatterKind(group.law, group.incompressibility, self.dim, self.damped, self.composite, self.active_laws)

    @property
    def added_stress(self) -> wp.array | None:
        """Stress of the fibres and branches of each particle [Pa], shape (worlds * n_particles,); None without them."""
        return self.workspace.constituents.stress.flatten() if self.composite else None

    @property
    def added_stress_adj(self) -> wp.array | None:
        """Gradient with respect to `added_stress` [1/Pa times loss], shape (worlds * n_particles,), or None."""
        return self.workspace.constituents.stress.grad.flatten() if self.composite else None

    def frame_state(self, state: MPMState, control: wp.array) -> FrameState:
        """Inputs of the poses of the frames in a step from `state`."""
        return FrameState(self, state.time, state.travel, control)

    @property
    def loaded(self) -> bool:
        """Whether loads may act: the scene has loads, or the parameter `load` has been replaced."""
        return self.load is not self.workspace.no_load

    def recorded(self, values: Mapping[str, np.ndarray]) -> Scene:
        """The scene with gravity, friction, motions and materials from `values`.

        The materials of a body are changed only if their values are uniform in each region of the body.
        """
        scene = with_motions(with_friction(super().recorded(values), values), values)
        return with_materials(scene, self.matter.body, self.matter.regions, values)

    @functools.cached_property
    def material(self) -> object:
        """Constants of the particles as a Warp struct."""
        struct = struct_of(constitution_arrays(), self._constitution())
        if self.workspace.n_constants:
            struct.c = self.workspace.law_constants
        return struct

    @functools.cached_property
    def material_adj(self) -> object:
        """Gradients with respect to the arrays of `material` as a Warp struct; null for arrays without gradient."""
        struct = struct_of(constitution_arrays(), [None if a is None else a.grad for a in self._constitution()])
        if self.workspace.n_constants:
            struct.c = self.workspace.law_constants.grad
        return struct

    def _constitution(self) -> list[wp.array | None]:
        damping = self.damping if self.damped else None
        return [self.youngs_modulus, self.poissons_ratio, self.density, self.volume, damping, None]

    @functools.cached_property
    def strength(self) -> object:
        """Constants of plastic particles as a Warp struct."""
        return struct_of(strength_arrays(), self._strength())

    @functools.cached_property
    def strength_adj(self) -> object:
        """Gradients with respect to the arrays of `strength` as a Warp struct; null for arrays without gradient."""
        return struct_of(strength_arrays(), [None if a is None else a.grad for a in self._strength()])

    def _strength(self) -> list[wp.array | None]:
        return [self.parameter(name) if self.flows_as(kind) else None for name, kind in STRENGTH.items()]

    @functools.cached_property
    def constituents(self) -> object:
        """Constants of fibres and branches as a Warp struct."""
        return struct_of(constituent_arrays(self.dim), self._constituents())

    @functools.cached_property
    def constituents_adj(self) -> object:
        """Gradients with respect to the arrays of `constituents` as a Warp struct; null for arrays without gradient."""
        return struct_of(constituent_arrays(self.dim), [None if a is None else a.grad for a in self._constituents()])

    def _constituents(self) -> list[wp.array | None]:
        return [a if a.size else None for a in map(self.parameter, FIBRES + BRANCHES)]
