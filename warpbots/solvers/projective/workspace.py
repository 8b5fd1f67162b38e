"""Arrays that a step of projective dynamics fills anew, and what never changes: topology and factors."""

import dataclasses
import functools

import numpy as np
import warp as wp
from scipy.sparse import coo_matrix, csc_matrix, csr_matrix, diags

from warpbots.numerics import NODE, parallel, real, real_numpy, vector
from warpbots.solvers.adjoint_cache import AdjointCache
from warpbots.solvers.articulated.model import ArticulatedModel
from warpbots.solvers.projective.bones.binding import BoneScratch, handles_of
from warpbots.solvers.projective.bones.handles import HandleArrays
from warpbots.solvers.projective.contact.bone_surface import Shells
from warpbots.solvers.projective.contact.coulomb import MeetingArrays, ReachArrays, TouchArrays
from warpbots.solvers.projective.contact.free_rotation import TurningArrays, free_bodies
from warpbots.solvers.projective.contact.surface_samples import Spots
from warpbots.solvers.projective.contact.surface_search import PAIRS, Search, Surface
from warpbots.solvers.projective.elements.element import Kind, Place, pairs
from warpbots.solvers.projective.elements.kinds import KINDS
from warpbots.solvers.projective.elements.nodes import NodeArrays
from warpbots.solvers.projective.iterate.anderson import Iteration, iteration
from warpbots.solvers.projective.iterate.cholesky import Factor, factorise, split
from warpbots.solvers.projective.iterate.compliance import ComplianceArrays, compliance_arrays
from warpbots.solvers.projective.iterate.minres import Krylov, krylov
from warpbots.solvers.projective.mesh import Mesh
from warpbots.solvers.solver import State

__all__ = ["End", "Global", "Scratch", "Sunk"]

_PARTS = 256
"""In how many parts many threads look for what is largest, a power of two."""

_PART = 64
"""Contacts that one of many threads puts in order."""
_SKIN = 0.01
"""Compliance of a contact that shares its force with others, in that of a node."""


@dataclasses.dataclass(frozen=True)
class End:
    """Where a step ended, as its adjoint needs it.

    Attributes:
        z: Displacements and forces of contacts, shape (worlds * stride,).
        count: Number of pairs, shape (worlds,).
        kind: Their kinds, shape (worlds * capacity,).
        node: Their nodes, likewise.
        side: Their sides, likewise.
        normal: Their normals, likewise.
        weight: Their weights, likewise.
    """

    z: wp.array
    count: wp.array
    kind: wp.array
    node: wp.array
    side: wp.array
    normal: wp.array
    weight: wp.array

    def pairs(self, scratch: "Scratch") -> list[tuple[wp.array, wp.array]]:
        """What is kept of the pairs, each with the array in which a step has it."""
        search = scratch.search
        return [(getattr(self, name), getattr(search, name)) for name in PAIRS]


@dataclasses.dataclass(frozen=True)
class Sunk:
    """How deep obstacles are inside of faces, and of bars, whose second end is there twice.

    Attributes:
        corners: Nodes of the faces, on the host, shape (faces, 3).
        face: The same on the device, shape (faces,).
        depth: Depth where it is too much, else 0 [m], shape (worlds * faces,).
        solid: The solid that is so deep, where one is, likewise.
    """

    corners: np.ndarray
    face: wp.array
    depth: wp.array
    solid: wp.array


@dataclasses.dataclass(frozen=True)
class Global:
    """What belongs to the matrix of the global step of one time step.

    Attributes:
        factor: The factored matrix.
        stiff: Stiffness of every node alone [N/m], on the host, shape (n_points,); of a vertex of a shell the mean of
            these and what its bone has by its mass.
        iteration: That of a step and of its adjoint: displacements of nodes and joints, then forces of contacts.
        compliance: Columns of the inverse matrix for nodes that touch.
        turning: Bodies that turn freely.
        handles: Bones as handles of all nodes, or None.
    """

    factor: Factor
    stiff: np.ndarray
    iteration: Iteration
    compliance: ComplianceArrays
    turning: TurningArrays
    handles: "HandleArrays | None"


@dataclasses.dataclass(frozen=True)
class Scratch:
    """What a step needs besides the parameters of a model.

    Attributes:
        mesh: All soft matter of one world.
        shells: What of bones touches besides.
        fixed: Which nodes are fixed, shape (n_nodes,), bool.
        touching: Nodes and vertices of shells that may touch, shape (n,).
        spots: What of faces and bars touches thin solids besides.
        solids: Number of solids that they may touch.
        capacity: Contacts of pairs that there is room for in one world.
        skeleton: The bones, or None.
        motors: Channels of the actuators that drive joints.
        splitting: Whether the matrix of the global step is split, and its diagonal alone is solved with.
        worlds: Number of worlds.
        slots: Changes that the acceleration remembers.
        device: Device of the arrays.
    """

    mesh: Mesh
    shells: Shells
    fixed: np.ndarray
    touching: np.ndarray
    spots: Spots
    solids: int
    capacity: int
    skeleton: ArticulatedModel | None
    motors: list[int]
    splitting: bool
    worlds: int
    slots: int
    device: wp.Device

    @property
    def freedom(self) -> int:
        """Velocities of the joints of one world."""
        return self.skeleton.robot.freedom if self.skeleton else 0

    @property
    def count(self) -> int:
        """Nodes of one world."""
        return len(self.mesh.position)

    @property
    def points(self) -> int:
        """Nodes of one world, and vertices of shells, which come after them."""
        return self.count + len(self.shells)

    @property
    def contacts(self) -> int:
        """Contacts of one world, open ones too."""
        return self.touchable * self.solids + self.capacity

    @property
    def touchable(self) -> int:
        """Points that may touch a solid: nodes, vertices of shells and spots."""
        return len(self.touching) + len(self.spots)

    @property
    def stride(self) -> int:
        """Entries of an iterate of one world: its nodes and shells, the velocities of its joints, its contacts."""
        return self.points + self.freedom + self.contacts

    @functools.cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """Kinds of elements that there are."""
        return tuple(k for k in KINDS if len(self._table(k)))

    def _table(self, kind: Kind) -> np.ndarray:
        return getattr(self.mesh, kind.name)

    @functools.cached_property
    def _corners(self) -> np.ndarray:
        """Nodes of all corners, kind by kind."""
        return np.concatenate([self._table(k).reshape(-1) for k in self.kinds])

    @property
    def corners(self) -> int:
        """Corners of all elements of one world."""
        return len(self._corners)

    def _array(self, values: np.ndarray, dtype: type) -> wp.array:
        integer = getattr(dtype, "_wp_scalar_type_", dtype) in (int, wp.int32)
        values = values.astype(np.int32 if integer else real_numpy)
        return wp.array(values, dtype=dtype, device=self.device)

    def _zeros(self, count: int, dtype: type, gradient: bool = True) -> wp.array:
        return wp.zeros(self.worlds * count, dtype=dtype, device=self.device, requires_grad=gradient)

    @functools.cached_property
    def _elements(self) -> dict[str, dict[str, object]]:
        """Fields of the structs of all kinds but for the parameters."""
        fields, corner, pair = {}, 0, 0
        for kind in self.kinds:
            table = self._table(kind)
            place = Place()
            place.count, place.first, place.elements = len(table), self.mesh.of(kind.name).start, self.elements
            place.corner, place.corners, place.pair, place.pairs = corner, self.corners, pair, self.pairs
            place.nodes, place.stride = self.count, self.stride
            nominal = self._blocks[kind.name][:, 1:, 1:].trace(axis1=1, axis2=2)
            fields[kind.name] = {
                "place": place, "node": self._array(table, kind.node), "nominal": self._array(nominal, real),
                **{name: self._zeros(len(table), dtype) for name, dtype in kind.rested.items()},
                **{name: self._array(getattr(self.mesh, name), dtype) for name, dtype in kind.constant.items()},
            }  # fmt: skip
            corner, pair = corner + table.size, pair + table.size * table.shape[1]
        return fields

    @property
    def elements(self) -> int:
        """Elements of one world that have a material."""
        return len(self.mesh.youngs_modulus)

    def struct(self, kind: Kind) -> object:
        """Elements of a kind as its Warp struct without the parameters."""
        elements = kind.arrays()
        for name, value in self._elements[kind.name].items():
            setattr(elements, name, value)
        return elements

    @functools.cached_property
    def _blocks(self) -> dict[str, np.ndarray]:
        """What the elements add to the matrix of the global step [N/m]."""
        return {k.name: k.blocks(self.mesh) for k in self.kinds}

    @functools.cached_property
    def stiffness(self) -> csr_matrix:
        """Weights L of the elements in the matrix of the global step [N/m], shape (n_nodes, n_nodes)."""
        values = np.concatenate([b.reshape(-1) for b in self._blocks.values()])
        return coo_matrix((values, self._pairs), shape=(self.count, self.count)).tocsr()

    @functools.cached_property
    def _nodes(self) -> dict[str, object]:
        corners = self._corners
        held = np.full(self.count, -1)
        held[self.fixed] = np.arange(self.fixed.sum())
        start = np.searchsorted(np.sort(corners), np.arange(self.count + 1))
        return {
            "start": self._array(start, int), "corner": self._array(np.argsort(corners, kind="stable"), int),
            "held": self._array(held, int), "mass": self._zeros(self.count, real),
        }  # fmt: skip

    def nodes(self) -> NodeArrays:
        """Nodes as a Warp struct without the parameters."""
        nodes = NodeArrays()
        nodes.count, nodes.stride, nodes.corners = self.count, self.stride, self.corners
        nodes.fixed = int(self.fixed.sum())
        for name, array in self._nodes.items():
            setattr(nodes, name, array)
        return nodes

    @property
    def rested(self) -> list[wp.array]:
        """What follows from the parameters at rest, each with a gradient."""
        return [self._nodes["mass"], *(self._elements[k.name][name] for k in self.kinds for name in k.rested)]

    @functools.cached_property
    def corner_mass(self) -> wp.array:
        """Mass of every corner [kg], shape (worlds * corners,), with a gradient."""
        return self._zeros(self.corners, real)

    @functools.cached_property
    def force(self) -> wp.array:
        """Force at every corner [N], shape (worlds * corners,), with a gradient."""
        return self._zeros(self.corners, vector(3))

    @functools.cached_property
    def displacement(self) -> wp.array:
        """Displacement of every node in the step [m], shape (worlds * stride,), with a gradient."""
        return self._zeros(self.stride, NODE)

    @functools.cached_property
    def lacking(self) -> wp.array:
        """Imbalance of forces at every node [N], shape (worlds * stride,), with a gradient."""
        return self._zeros(self.stride, NODE)

    @functools.cached_property
    def seed(self) -> wp.array:
        """Gradient to the displacement, shape (worlds * stride,)."""
        return self._zeros(self.stride, NODE, gradient=False)

    @functools.cached_property
    def nowhere(self) -> wp.array:
        """No correction at all, shape (worlds * stride,)."""
        return self._zeros(self.stride, NODE, gradient=False)

    @functools.cached_property
    def krylov(self) -> Krylov:
        """The iteration that solves the adjoint without contact."""
        return krylov(self.worlds, self.count, self.stride, self.device)

    @functools.cached_property
    def scaling(self) -> wp.array:
        """By how much the matrix of the global step has to be scaled for the parameters of a world, shape (worlds,)."""
        return self._zeros(1, real, gradient=False)

    @functools.cached_property
    def ratios(self) -> wp.array:
        """What it is the largest of, found by many threads in parts, shape (worlds, parts); by one, it is that."""
        if not parallel(self.device):
            return self.scaling.reshape((self.worlds, 1))
        return wp.zeros((self.worlds, _PARTS), dtype=real, device=self.device)

    @functools.cached_property
    def flight(self) -> wp.array:
        """With what part of free flight the search of a step begins, shape (worlds,)."""
        return self._zeros(1, real, gradient=False)

    @functools.cached_property
    def everywhere(self) -> wp.array:
        """1 for every world, shape (worlds,)."""
        return wp.ones(self.worlds, dtype=int, device=self.device)

    @functools.cached_property
    def stepped(self) -> wp.array:
        """1 if the last thing that used these arrays was a step, 0 if it was an adjoint, shape (1,)."""
        return wp.zeros(1, dtype=int, device=self.device)

    @functools.cached_property
    def nominal_mass(self) -> wp.array:
        """Mass of the nodes in the matrix of the global step [kg], shape (n_nodes,)."""
        return self._array(self.mesh.volume * self.mesh.density, real)

    @functools.cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes of all pairs of corners, kind by kind."""
        rows, columns = zip(*(pairs(self._table(k)) for k in self.kinds), strict=True)
        return np.concatenate(rows), np.concatenate(columns)

    @functools.cached_property
    def _pattern(self) -> csr_matrix:
        """Which nodes share an element; the numbers of the entries, from 1."""
        ones = np.ones(len(self._pairs[0]))
        pattern = coo_matrix((ones, self._pairs), shape=(self.count, self.count)).tocsr()
        pattern.data = np.arange(1.0, pattern.nnz + 1.0)
        return pattern

    @property
    def pairs(self) -> int:
        """Pairs of nodes that share an element."""
        return self._pattern.nnz

    @functools.cached_property
    def row(self) -> wp.array:
        """First pair of every node, one more for the end, shape (n_nodes + 1,)."""
        return self._array(self._pattern.indptr, int)

    @functools.cached_property
    def neighbour(self) -> wp.array:
        """Second node of every pair, shape (pairs,)."""
        return self._array(self._pattern.indices, int)

    @functools.cached_property
    def pair(self) -> wp.array:
        """Pairs of the corners of every element, row by row, kind by kind."""
        return self._array(np.asarray(self._pattern[self._pairs]).reshape(-1) - 1.0, int)

    @functools.cached_property
    def column(self) -> wp.array:
        """Second derivative of the elastic energy [N/m]: three columns for each pair, shape (worlds * pairs * 3,)."""
        return self._zeros(3 * self.pairs, NODE, gradient=False)

    def end(self, state_out: State) -> End | None:
        """Where the step that ends in `state_out` puts what its adjoint will need; None if there will be none."""
        if not ((self.contacts or self.skeleton) and state_out.position.requires_grad):
            return None

        def make() -> End:
            pairs = [wp.zeros_like(getattr(self.search, name)) for name in PAIRS]
            return End(self._zeros(self.stride, NODE, gradient=False), *pairs)

        return self._kept.of(state_out, make)

    @functools.cached_property
    def _kept(self) -> AdjointCache:
        return AdjointCache()

    @functools.cached_property
    def surface(self) -> Surface:
        """Faces and edges of all bodies, and what searches them."""
        x = np.concatenate([self.mesh.position, self.shells.position])
        faces = [*(part.faces + part.nodes.start for part in self.mesh.meshes), self.shells.faces + self.count]
        return Surface.of(x, np.concatenate(faces), self.worlds, self.device)

    @functools.cached_property
    def sunk(self) -> Sunk:
        """Where obstacles are inside of faces and bars."""
        faces = [part.faces + part.nodes.start for part in self.mesh.meshes]
        bars = self.mesh.bars[:, [0, 1, 1]]
        corners = np.concatenate([*faces, bars, self.shells.faces + self.count])
        depth = self._zeros(len(corners), real, gradient=False)
        return Sunk(corners, self._array(corners, wp.vec3i), depth, self._zeros(len(corners), int, gradient=False))

    @functools.cached_property
    def search(self) -> Search:
        """What a search for pairs finds."""
        vertices = self.surface.vertex.size if self.capacity else 0
        return Search.of(self.worlds, self.capacity, vertices, self.device)

    @functools.cached_property
    def meeting(self) -> MeetingArrays:
        """Contacts at a point of the iteration."""
        meeting = MeetingArrays()
        meeting.parts = -(-self.contacts // _PART) if parallel(self.device) else 1
        sizes = {"pressed": 1, "count": 1, "part": meeting.parts}
        sizes |= dict.fromkeys(("by_node", "pull", "next"), 4 * self.contacts)
        sizes |= dict.fromkeys(("head", "tail"), len(self.touching))
        for name, variable in MeetingArrays.vars.items():
            if name != "parts":
                count = sizes.get(name, self.contacts)
                setattr(meeting, name, self._zeros(count, variable.type.dtype, gradient=False))
        meeting.any = wp.zeros(1, dtype=int, device=self.device)
        for corner in (meeting.head, meeting.tail):
            corner.fill_(-1)
        return meeting

    @functools.cached_property
    def reach(self) -> ReachArrays:
        """How contacts and joints move one another."""
        reach = ReachArrays()
        reach.freedom = self.freedom
        for name in ("reach", "reply"):
            setattr(reach, name, self._zeros(self.contacts * self.freedom, vector(3), gradient=False))
        reach.motion = self._zeros(self.freedom, real, gradient=False)
        return reach

    @functools.cached_property
    def bones(self) -> BoneScratch:
        """What a step needs for its bones."""
        bound = int((self.mesh.bone >= 0).sum()) + len(self.shells)
        return BoneScratch(self.skeleton, bound, self.motors)

    @functools.cached_property
    def start(self) -> tuple[wp.array, wp.array]:
        """Where points begin a step [m], with a gradient, and how fast [m/s], each of shape (worlds * points,)."""
        return self._zeros(self.points, vector(3)), self._zeros(self.points, vector(3), gradient=False)

    @functools.cached_property
    def _shell_mass(self) -> np.ndarray:
        """Mass of the bone of every vertex of a shell [kg]."""
        return self.skeleton.mass.numpy()[0][self.shells.bone] if len(self.shells) else np.zeros(0)

    def touch(self, dt: float) -> TouchArrays:
        """What may touch as a Warp struct, for steps of `dt` [s]."""
        if dt not in self._touch:
            touch, place = TouchArrays(), np.full(self.points, -1)
            place[self.touching] = np.arange(len(self.touching))
            touch.nodes, touch.stride, touch.contacts = self.points, self.stride, self.contacts
            touch.first, touch.solids = self.points + self.freedom, self.touchable * self.solids
            touch.skin = self._array(_SKIN / 4.0 / self.matrix(dt).stiff[self.touching], real)
            alone = np.array([[-1, -1, -1]]).repeat(len(self.touching), axis=0)
            nodes, weights = np.column_stack([self.touching, alone]), np.column_stack([alone[:, :1] + 2, alone + 1])
            spots = np.pad(self.spots.node, ((0, 0), (0, 1)), constant_values=-1)
            touch.point = self._array(np.concatenate([nodes, spots]), wp.vec4i)
            shares = np.concatenate([weights, np.pad(self.spots.weight, ((0, 0), (0, 1)))])
            touch.share = self._array(shares, vector(4))
            touch.node, touch.place = self._array(self.touching, int), self._array(place, int)
            row = np.append(self.matrix(dt).factor.row, np.full(len(self.shells), -1))
            touch.row = self._array(row[self.touching], int)
            at = np.where(self.spots.node >= 0, place[self.spots.node], -1)
            spot, corner = np.nonzero(at >= 0)
            order = np.argsort(at[spot, corner], kind="stable")
            touch.spot = self._array(np.searchsorted(at[spot, corner][order], np.arange(len(self.touching) + 1)), int)
            touch.corner = self._array((4 * spot + corner)[order], int)
            self._touch[dt] = touch
        return self._touch[dt]

    @functools.cached_property
    def _touch(self) -> dict[float, TouchArrays]:
        return {}

    @functools.cached_property
    def _matrices(self) -> dict[float, Global]:
        return {}

    def matrix(self, dt: float) -> Global:
        """The factored matrix for steps of `dt` [s], and the iterations that use it."""
        if dt not in self._matrices:
            mass = self.mesh.volume * self.mesh.density
            L = split(self.stiffness) if self.splitting else self.stiffness
            A = (L + diags(mass / dt**2)).tocsc()
            free = ~self.fixed & (self.mesh.bone < 0)
            factor = factorise(A, free, self.mesh.position, self.worlds, self.device)
            alone = factor.diagonal.mean()  # what of a bone has no flesh at it has no stiffness of its own
            stiff = np.where(factor.diagonal > 0.0, factor.diagonal, alone)
            stiff = np.append(stiff, alone + self._shell_mass / dt**2)
            nothing = np.zeros(self.freedom + self.contacts)  # joints and contacts move nodes in the same correction
            weight, unit = np.append(stiff, nothing), np.append(np.ones(self.points), nothing)
            it = iteration(self.worlds, self.slots, weight, unit, self.device)
            handles = None
            if self.skeleton:
                handles = handles_of(self.skeleton, self.mesh, self.shells, A, factor, self.stride)
            rows = len(factor.arrays.node)
            compliance = compliance_arrays(len(self.touching), rows, self.contacts, self.worlds, self.device)
            turning = self._turning(A)
            self._matrices[dt] = Global(factor, stiff, it, compliance, turning, handles)
        return self._matrices[dt]

    def _turning(self, A: csc_matrix) -> TurningArrays:
        """Bodies that turn freely, for a matrix of the global step; none where a fluid holds them as well."""
        solid = np.zeros(self.count, dtype=bool)
        solid[self.mesh.tets.reshape(-1)] = solid[self.mesh.triangles.reshape(-1)] = True
        body, count = free_bodies(self._pattern, solid, self.fixed | (self.mesh.bone >= 0) | self._wet)
        member = np.argsort(body, kind="stable")[(body < 0).sum() :]
        rows = A.tocsr()
        turning = TurningArrays()
        turning.count, turning.nodes, turning.stride = count, self.count, self.stride
        turning.body = self._array(np.append(body, np.full(len(self.shells), -1)), int)
        turning.member = self._array(member, int)
        turning.first = self._array(np.searchsorted(body[member], np.arange(count + 1)), int)
        turning.row, turning.column = self._array(rows.indptr, int), self._array(rows.indices, int)
        turning.value = self._array(rows.data, real)
        turning.arm = self._zeros(self.count, vector(3), gradient=False)
        for name, dtype in (("centre", wp.vec3d), ("turn", wp.vec3d), ("gain", wp.mat33d)):
            setattr(turning, name, self._zeros(count, dtype, gradient=False))
        return turning

    @property
    def _wet(self) -> np.ndarray:
        """Which nodes a fluid touches, shape (n_nodes,), bool."""
        wet = np.zeros(self.count, dtype=bool)
        wet[self.mesh.faces.reshape(-1)] = True
        return wet
