"""Arrays that a step of projective dynamics fills anew."""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
import warp as wp

from warpbots.numerics import NODE, parallel, real, vector
from warpbots.solvers.adjoint_cache import AdjointCache
from warpbots.solvers.articulated.model import ArticulatedModel
from warpbots.solvers.matter_readings import MatterTerms, matter_terms
from warpbots.solvers.projective.bones.binding import BoneWorkspace
from warpbots.solvers.projective.contact.surface_search import PAIRS, SurfaceSearch
from warpbots.solvers.projective.contact_workspace import ContactWorkspace
from warpbots.solvers.projective.elements.element import Kind
from warpbots.solvers.projective.elements.gas_stiffness import GasArrays
from warpbots.solvers.projective.elements.nodes import NodeArrays
from warpbots.solvers.projective.iterate.coupled_cholesky import CoupledArrays, coupled_arrays
from warpbots.solvers.projective.iterate.krylov_arrays import Krylov, krylov
from warpbots.solvers.projective.lost_gradients import GradientLoss, gradient_loss
from warpbots.solvers.projective.shorter_steps_workspace import ShorterStepsWorkspace
from warpbots.solvers.projective.topology import MeshTopology, constant_array
from warpbots.solvers.solver import State

__all__ = ["ProjectiveWorkspace", "StepEnd"]

_PARTS = 256
"""Number of parts of a maximum on a device with many threads, a power of two."""


@dataclasses.dataclass(frozen=True)
class StepEnd:
    """The end of a step, as its adjoint needs it.

    Attributes:
        z: Displacements, and forces of contacts, shape (worlds * stride,).
        count: Number of pairs, shape (worlds,).
        kind: Kind of each pair, shape (worlds * capacity,).
        node: Nodes of each pair, shape (worlds * capacity,).
        side: Sign of the normal of each pair, as in `PairArrays`, shape (worlds * capacity,).
        normal: Normal of each pair, shape (worlds * capacity,).
        weight: Weights of each pair, shape (worlds * capacity,).
        redundant: 1 for redundant pairs, shape (worlds * capacity,).
        changes: Number of changes of each contact between sticking and sliding, as in `ContactArrays`, shape (worlds *
            contacts,); empty without static friction.
    """

    z: wp.array
    count: wp.array
    kind: wp.array
    node: wp.array
    side: wp.array
    normal: wp.array
    weight: wp.array
    redundant: wp.array
    changes: wp.array

    def arrays(self) -> list[wp.array]:
        """All arrays."""
        return [self.z, *(getattr(self, name) for name in PAIRS), self.changes]

    def pairs(self, search: SurfaceSearch) -> list[tuple[wp.array, wp.array]]:
        """The arrays of the pairs, each with the array of `search` of which it is a copy."""
        return [(getattr(self, name), getattr(search, name)) for name in PAIRS]


@dataclasses.dataclass(frozen=True)
class ProjectiveWorkspace:
    """Arrays that a step fills anew.

    Attributes:
        topology: The tables from which the sizes follow.
        skeleton: The bones, or None.
        motors: Channels of the actuators that drive joints.
        signals: Number of signals that control strains at rest, 0 without oscillations.
        constants: Largest number of constants of a law besides E and nu.
        static_friction: Whether an obstacle has a coefficient of static friction above its sliding one.
    """

    topology: MeshTopology
    skeleton: ArticulatedModel | None
    motors: list[int]
    signals: int
    constants: int
    static_friction: bool

    def _zeros(self, count: int, dtype: type, gradient: bool = False) -> wp.array:
        worlds, device = self.topology.sizes.worlds, self.topology.device
        return wp.zeros(worlds * count, dtype=dtype, device=device, requires_grad=gradient)

    def _iterate(self, gradient: bool = False) -> wp.array:
        return self._zeros(self.topology.sizes.stride, NODE, gradient)

    @functools.cached_property
    def _at_rest(self) -> dict[str, dict[str, wp.array]]:
        """Fields of the structs of all kinds that follow from the parameters at rest, each with a gradient."""
        elements = self.topology.elements
        return {
            k.name: {
                n: self._zeros(k.points * elements[k.name]["place"].count, t, gradient=True)
                for n, t in k.rested.items()
            }
            for k in self.topology.kinds
        }

    @functools.cached_property
    def _evaluated(self) -> dict[str, dict[str, wp.array]]:
        """Fields of the structs of all kinds that are written when forces are evaluated, each with a gradient."""
        mesh = self.topology.mesh
        return {
            k.name: {n: self._zeros(len(getattr(mesh, of)), t, gradient=True) for n, (t, of) in k.evaluated.items()}
            for k in self.topology.kinds
        }

    @functools.cached_property
    def _mass(self) -> wp.array:
        """Mass of every node [kg], shape (worlds * n_nodes,), with a gradient."""
        return self._zeros(self.topology.sizes.nodes, real, gradient=True)

    @functools.cached_property
    def signal(self) -> wp.array:
        """Signals that control strains at rest in scenes with oscillations, with a gradient, shape (worlds, n)."""
        shape = (self.topology.sizes.worlds, self.signals)
        return wp.zeros(shape, dtype=real, device=self.topology.device, requires_grad=True)

    @functools.cached_property
    def law_constants(self) -> wp.array | None:
        """Constants of the laws of solids, with a gradient, shape (worlds * n_solids, constants); None without any."""
        shape = (self.topology.sizes.worlds * len(self.topology.mesh.solids), self.constants)
        return wp.zeros(shape, dtype=real, device=self.topology.device, requires_grad=True) if self.constants else None

    @property
    def rested(self) -> list[wp.array]:
        """Arrays that follow from the parameters at rest, each with a gradient."""
        packed = [] if self.law_constants is None else [self.law_constants]
        fields = (array for fields in self._at_rest.values() for array in fields.values())
        return [self.signal, self._mass, *packed, *fields]

    @property
    def evaluated(self) -> list[wp.array]:
        """Intermediate arrays in the evaluation of forces at a point, each with a gradient."""
        return [self.force, *(array for fields in self._evaluated.values() for array in fields.values())]

    def struct(self, kind: Kind) -> object:
        """Elements of a kind as its Warp struct without the parameters."""
        elements = kind.arrays()
        for name, value in (
            self.topology.elements[kind.name] | self._at_rest[kind.name] | self._evaluated[kind.name]
        ).items():
            setattr(elements, name, value)
        return elements

    def nodes(self) -> NodeArrays:
        """Nodes as a Warp struct without the parameters."""
        nodes = NodeArrays()
        for name, value in (self.topology.nodes | {"mass": self._mass}).items():
            setattr(nodes, name, value)
        return nodes

    @functools.cached_property
    def anchor(self) -> wp.array:
        """Places of fixed nodes at the end of a step [m], shape (worlds * anchors,), with a gradient."""
        return self._zeros(self.topology.nodes["anchors"], vector(3), gradient=True)

    @functools.cached_property
    def corner_mass(self) -> wp.array:
        """Mass of every corner [kg], shape (worlds * corners,), with a gradient."""
        return self._zeros(self.topology.corners, real, gradient=True)

    @functools.cached_property
    def force(self) -> wp.array:
        """Force at every corner [N], shape (worlds * corners,), with a gradient."""
        return self._zeros(self.topology.corners, vector(3), gradient=True)

    @functools.cached_property
    def energy(self) -> wp.array:
        """Energy of every element, in the entry of its first corner [J], shape (worlds * corners,), with a gradient."""
        return self._zeros(self.topology.corners, real, gradient=True)

    @functools.cached_property
    def normal_bound(self) -> wp.array:
        """Bound on the second derivative along the normal of every corner [N/m], shape (worlds * corners,)."""
        return self._zeros(self.topology.corners, real)

    @functools.cached_property
    def matter(self) -> MatterTerms:
        """Energies and momenta of nodes, and then of bones, with `energy`."""
        sizes, bones = self.topology.sizes, self.skeleton.tree.bodies if self.skeleton else 0
        energy = self.energy.reshape((sizes.worlds, self.topology.corners))
        return matter_terms(sizes.worlds, sizes.nodes + bones, energy, 3)

    @functools.cached_property
    def displacement(self) -> wp.array:
        """Displacement of every node in the step [m], shape (worlds * stride,), with a gradient."""
        return self._iterate(gradient=True)

    @functools.cached_property
    def residual(self) -> wp.array:
        """Residual force at every node [N], shape (worlds * stride,), with a gradient."""
        return self._iterate(gradient=True)

    @functools.cached_property
    def seed(self) -> wp.array:
        """Gradient with respect to `displacement` at the end of a step, shape (worlds * stride,)."""
        return self._iterate()

    @functools.cached_property
    def held(self) -> tuple[wp.array, wp.array, wp.array]:
        """Adjoint displacements of held nodes; these before projection; a copy of `seed`; shape (worlds * stride,)."""
        return self._iterate(), self._iterate(), self._iterate()

    @functools.cached_property
    def zero(self) -> wp.array:
        """Zero displacements, shape (worlds * stride,)."""
        return self._iterate()

    @functools.cached_property
    def krylov(self) -> Krylov:
        """The MINRES iteration, which solves adjoints and Newton steps without contact."""
        sizes = self.topology.sizes
        return krylov(sizes.worlds, len(self.topology.components), sizes.nodes, sizes.stride, self.topology.device)

    @functools.cached_property
    def forcing(self) -> wp.array:
        """Relative residuals at which the MINRES iterations of islands end, shape (worlds * components,)."""
        sizes, device = self.topology.sizes, self.topology.device
        return wp.zeros(sizes.worlds * len(self.topology.components), dtype=wp.float64, device=device)

    @functools.cached_property
    def coupled(self) -> CoupledArrays:
        """A factor of the second derivative."""
        topology = self.topology
        sizes, components = topology.sizes, len(topology.components)
        return coupled_arrays(topology.elimination, topology.guided, components, sizes.worlds, topology.device)

    @functools.cached_property
    def symmetric_part(self) -> wp.array:
        """The symmetric part of the stiffness K, three columns for each pair of nodes [N/m]."""
        return wp.zeros_like(self.column)

    @functools.cached_property
    def scaling(self) -> wp.array:
        """Factor that scales the matrix of the global step for the parameters of a world [1], shape (worlds,)."""
        return self._zeros(1, real)

    @functools.cached_property
    def ratios(self) -> wp.array:
        """Partial maxima of stiffness over nominal stiffness [1], shape (worlds, parts); `scaling` if parts is 1."""
        if not parallel(self.topology.device):
            return self.scaling.reshape((self.topology.sizes.worlds, 1))
        return wp.zeros((self.topology.sizes.worlds, _PARTS), dtype=real, device=self.topology.device)

    @functools.cached_property
    def flight(self) -> wp.array:
        """Fraction of free flight with which the iteration of a component begins [1], shape (worlds * components,)."""
        return self._zeros(len(self.topology.components), real)

    @functools.cached_property
    def everywhere(self) -> wp.array:
        """1 for every world, shape (worlds,)."""
        return wp.ones(self.topology.sizes.worlds, dtype=int, device=self.topology.device)

    @functools.cached_property
    def loss(self) -> GradientLoss:
        """Why adjoints of steps had no result."""
        return gradient_loss(self.topology.sizes.worlds, self.topology.device)

    @functools.cached_property
    def stepped(self) -> wp.array:
        """1 if the last use of these arrays was a step, 0 if it was an adjoint, `report.KEPT`, shape (1,)."""
        return wp.zeros(1, dtype=int, device=self.topology.device)

    @functools.cached_property
    def reports(self) -> dict[float, object]:
        """The report that is kept (`report.keep_report`) by the length of its step [s]."""
        return {}

    @functools.cached_property
    def block(self) -> wp.array:
        """Second derivatives of the energies of elements [N/m]: three columns for each pair of corners, row by row."""
        return self._zeros(3 * len(self.topology.node_pairs[0]), NODE)

    @functools.cached_property
    def column(self) -> wp.array:
        """Second derivative of the elastic energy [N/m]: three columns per node pair, shape (worlds * pairs * 3,)."""
        return self._zeros(3 * self.topology.pairs, NODE)

    @functools.cached_property
    def start(self) -> tuple[wp.array, wp.array]:
        """Positions [m], with a gradient, and velocities [m/s] of points before a step, shape (worlds * n_points,)."""
        points = self.topology.sizes.points
        return self._zeros(points, vector(3), gradient=True), self._zeros(points, vector(3))

    @functools.cached_property
    def gas(self) -> GasArrays:
        """Arrays of the gas in cavities."""
        mesh, gas = self.topology.mesh, GasArrays()
        cavity = np.flatnonzero(mesh.cavity_gas_ratio)
        gas.cavity = constant_array(cavity, int, self.topology.device)
        gas.gradient, gas.moved = (self._zeros(len(cavity) * self.topology.sizes.stride, NODE) for _ in range(2))
        gas.slope, gas.inverse = (self._zeros(len(cavity) ** 2, wp.float64) for _ in range(2))
        gas.share, gas.weight = (self._zeros(len(cavity), wp.float64) for _ in range(2))
        return gas

    @functools.cached_property
    def contact(self) -> ContactWorkspace:
        """Arrays of contacts."""
        return ContactWorkspace(self.topology)

    @functools.cached_property
    def bones(self) -> BoneWorkspace:
        """Arrays of bones."""
        bound = int((self.topology.mesh.bone >= 0).sum()) + self.topology.sizes.vertices
        return BoneWorkspace(self.skeleton, self.topology.joint_blocks, bound, self.motors)

    @functools.cached_property
    def shorter(self) -> ShorterStepsWorkspace:
        """Arrays of shorter steps."""
        return ShorterStepsWorkspace(self.topology)

    @functools.cached_property
    def closed(self) -> wp.array:
        """A node at which obstacles have met at the end of the last step, else the number of nodes, shape (worlds,)."""
        return self._zeros(1, int)

    @functools.cached_property
    def buried(self) -> wp.array:
        """A held node inside an obstacle at the end of the last step, else the number of nodes, shape (worlds,)."""
        return self._zeros(1, int)

    @functools.cached_property
    def _kept(self) -> AdjointCache:
        return AdjointCache()

    @functools.cached_property
    def _sensed(self) -> AdjointCache:
        return AdjointCache()

    def sensed(self, readings: object, make: Callable[[], State]) -> State:
        """The state, from `make`, at the end of the step that the readings of wrenches take."""
        return self._sensed.of(readings, make)

    def end(self, state_out: State) -> StepEnd | None:
        """Storage for the end of the step to `state_out`, for its adjoint; None if no adjoint needs it."""
        if not ((self.topology.sizes.contacts or self.skeleton) and state_out.position.requires_grad):
            return None

        def make() -> StepEnd:
            pairs = [wp.zeros_like(getattr(self.contact.search, name)) for name in PAIRS]
            changes = self._zeros(self.topology.sizes.contacts if self.static_friction else 0, int)
            return StepEnd(self._iterate(), *pairs, changes)

        return self._kept.of(state_out, make)
