"""The matrix of the global step for steps of one length, with the arrays whose sizes or values depend on the matrix."""

import dataclasses
import functools

import numpy as np
import warp as wp
from scipy.sparse import coo_matrix, csc_matrix, csr_matrix, diags

from warpbots.numerics import real, vector
from warpbots.solvers.articulated.model import ArticulatedModel
from warpbots.solvers.projective.bones.binding import handles_of
from warpbots.solvers.projective.bones.handle_arrays import HandleArrays
from warpbots.solvers.projective.bones.torn_bodies import skeletons_of
from warpbots.solvers.projective.contact.contact_arrays import ContactTopology
from warpbots.solvers.projective.contact.free_rotation import RotationArrays, free_bodies
from warpbots.solvers.projective.elements.free_normals import NormalArrays, around
from warpbots.solvers.projective.guides import Guides
from warpbots.solvers.projective.islands import Islands, islands_of
from warpbots.solvers.projective.iterate.anderson_arrays import Iteration, iteration
from warpbots.solvers.projective.iterate.compliance import ComplianceArrays, compliance_arrays
from warpbots.solvers.projective.iterate.sparse_cholesky import Factor, factorise, split
from warpbots.solvers.projective.mesh import Mesh
from warpbots.solvers.projective.topology import MeshTopology, constant_array

__all__ = ["GlobalMatrices", "GlobalMatrix"]

_SKIN = 0.01
"""Compliance of a contact that shares its force with others, relative to the compliance of a node."""


_PRESSED = 1e-3
"""Largest compression of one contact by the weight of a body without flesh, for steps of any length [edges]."""


@dataclasses.dataclass(frozen=True)
class GlobalMatrix:
    """The matrix of the global step for steps of one length.

    Attributes:
        factor: The factored matrix.
        stiff: Diagonal entry of the matrix for every point [N/m], on the host, shape (n_points,); for a vertex of a
            bone surface, the mean over the nodes of its component, plus m / h^2 with the mass m of its bone; without
            flesh `_PRESSED` replaces the mean.
        iteration: The iteration of a step and of its adjoint.
        compliance: Columns of the inverse matrix for points in contact.
        rotation: Free rotations of unconstrained bodies.
        normals: Free normals of sheets.
        contact: Points that may be in contact, with the compliances of contacts; None without contact.
        handles: Bones as handles of all nodes; None without bones.
        guides: Nodes that are held to lines or planes; None without such nodes.
    """

    factor: Factor
    stiff: np.ndarray
    iteration: Iteration
    compliance: ComplianceArrays
    rotation: RotationArrays
    normals: NormalArrays
    contact: "ContactTopology | None"
    handles: "HandleArrays | None"
    guides: Guides | None


@dataclasses.dataclass(frozen=True)
class GlobalMatrices:
    """Matrices of the global step, each factored at the first step of its length.

    Attributes:
        topology: Which nodes share elements, and which points may be in contact.
        skeleton: The bones, or None.
        splitting: Whether a diagonal replaces the stiffness of the elements.
        slots: Number of changes that Anderson's acceleration remembers.
        linear_solver: How the symmetric systems of Newton steps and adjoints are solved, see `ProjectiveDynamics`.
    """

    topology: MeshTopology
    skeleton: ArticulatedModel | None
    splitting: bool
    slots: int
    linear_solver: str

    @functools.cached_property
    def _of(self) -> dict[float, GlobalMatrix]:
        return {}

    @functools.cached_property
    def stiffness(self) -> csr_matrix:
        """Stiffness L of the elements in the matrix of the global step [N/m], shape (n_nodes, n_nodes)."""
        return self._assembled(viscous=False)

    @functools.cached_property
    def resistance(self) -> csr_matrix:
        """Resistance C of the elements in the matrix of the global step [N s/m], shape (n_nodes, n_nodes)."""
        return self._assembled(viscous=True)

    def _assembled(self, viscous: bool) -> csr_matrix:
        """Sum of the blocks of all kinds that are `viscous`, or of all kinds that are not."""
        nodes, topology = self.topology.sizes.nodes, self.topology
        blocks = [topology.blocks[k.name] * (k.viscous == viscous) for k in topology.kinds]
        values = np.concatenate([b.reshape(-1) for b in blocks])
        return coo_matrix((values, topology.node_pairs), shape=(nodes, nodes)).tocsr()

    @functools.cached_property
    def islands(self) -> Islands:
        """The islands of all worlds: parts of a world that nothing couples in a step."""
        topology = self.topology
        sizes = topology.sizes
        others = topology.other_components
        return islands_of(topology.components, others, sizes.capacity, sizes.worlds, topology.device)

    def has(self, dt: float) -> bool:
        """Whether the matrix for steps of `dt` [s] already exists."""
        return dt in self._of

    def of(self, dt: float) -> GlobalMatrix:
        """The factored matrix for steps of `dt` [s]."""
        if dt not in self._of:
            self._of[dt] = self._make(dt)
        return self._of[dt]

    def _make(self, dt: float) -> GlobalMatrix:
        topology, mesh, sizes = self.topology, self.topology.mesh, self.topology.sizes
        L = self.stiffness
        if any(kind.viscous for kind in topology.kinds):
            L = L + self.resistance / dt
        L = split(L) if self.splitting else L
        A = (L + diags(mesh.volume * mesh.density / dt**2)).tocsc()
        free = ~topology.fixed & (mesh.bone < 0)
        factor = factorise(A, free, mesh.position, sizes.worlds, topology.device)
        stiff = self._stiff(factor, dt)
        nothing = np.zeros(sizes.freedom + sizes.contacts)  # joints and contacts move nodes in the same iteration
        weight, unit = np.append(stiff, nothing), np.append(np.ones(sizes.points), nothing)
        rows = len(factor.arrays.node)
        handles = None
        if self.skeleton:
            bodies = topology.rigid, mesh, topology.bone_surfaces
            handles = handles_of(self.skeleton, *bodies, topology.joint_blocks, A, factor, sizes)
        return GlobalMatrix(
            factor=factor,
            stiff=stiff,
            iteration=iteration(sizes.worlds, self.slots, weight, unit, self.islands, topology.device),
            compliance=compliance_arrays(sizes.candidates, rows, sizes.contacts, sizes.worlds, topology.device),
            rotation=_rotation(topology, A),
            normals=_normals(topology),
            contact=_contact(topology, stiff, factor.row) if sizes.contacts else None,
            handles=handles,
            guides=Guides(
                factor,
                topology.guided,
                topology.frame[list(topology.guided)],
                sizes.worlds,
                sizes.stride,
                topology.device,
            )
            if topology.guided
            else None,
        )

    def _stiff(self, factor: Factor, dt: float) -> np.ndarray:
        """`GlobalMatrix.stiff` [N/m], shape (n_points,)."""
        components, bone, nodes = self.topology.components, self.topology.bone_surfaces.bone, len(factor.diagonal)
        of_nodes = components.of[:nodes]
        diagonals = (factor.diagonal[of_nodes == c] for c in range(len(components)))
        means = np.array([d.mean() if len(d) else 0.0 for d in diagonals])  # 0 for rigid bodies without flesh
        mean, own = np.split(means[components.of], [nodes])
        mean = np.where(factor.diagonal > 0.0, factor.diagonal, mean)  # bound nodes without elements have none
        if not len(bone):
            return np.concatenate([mean, np.ones(self.topology.sizes.edge_ends)])
        mass = self._felt_mass()
        own = np.where(own > 0.0, own, mass * self._weight_per_edge())
        return np.concatenate([mean, own + mass / dt**2, np.ones(self.topology.sizes.edge_ends)])

    def _felt_mass(self) -> np.ndarray:
        """Mass that a contact at each vertex of a bone surface moves [kg], shape (n_vertices,).

        In flesh this is the mass of the bone. Without flesh it is the total mass of the bone and of all bodies fixed to
        it, and at least a thousandth of the mass of its component: robots from files have links of almost no mass.
        """
        bone, of_bone = self.topology.bone_surfaces.bone, self.topology.components.bones
        mass = self.skeleton.mass.numpy()[0]
        joints = [j for j in self.skeleton.scene.joints if not j.freedom]
        group = skeletons_of(dataclasses.replace(self.skeleton.scene, joints=joints, actuators=()))
        felt = np.maximum(np.bincount(group, mass)[group], np.bincount(of_bone, mass)[of_bone] / 1000.0)
        felt = np.where(felt > 0.0, felt, mass.max() or 1.0)  # the mass of a body that does not move has no effect
        return np.where(np.isin(of_bone, self.topology.components.of[: self.topology.sizes.nodes]), mass, felt)[bone]

    def _weight_per_edge(self) -> np.ndarray:
        """Stiffness per mass at which weight compresses a contact by `_PRESSED`, for each vertex of a bone [N/m/kg]."""
        edge = self.topology.components.edge[self.topology.sizes.nodes :]
        return _SKIN / 4.0 * np.linalg.norm(self.skeleton.scene.gravity) / (_PRESSED * edge)


def _rotation(topology: MeshTopology, A: csc_matrix) -> RotationArrays:
    """Free rotations for a matrix of the global step; none for bodies in a fluid, as the fluid resists rotation."""
    mesh, sizes, device = topology.mesh, topology.sizes, topology.device
    solid = np.zeros(sizes.nodes, dtype=bool)
    solid[mesh.solids.reshape(-1)] = solid[mesh.triangles.reshape(-1)] = True
    held = topology.fixed.copy()
    held[list(topology.guided)] = True
    body, count = free_bodies(topology.pattern, solid, held | (mesh.bone >= 0) | _wet(mesh))
    member = np.argsort(body, kind="stable")[(body < 0).sum() :]
    rows = A.tocsr()
    rotation = RotationArrays()
    rotation.count, rotation.nodes, rotation.stride = count, sizes.nodes, sizes.stride
    for name, values, dtype in (
        ("body", np.append(body, np.full(sizes.points - sizes.nodes, -1)), int),
        ("member", member, int),
        ("first", np.searchsorted(body[member], np.arange(count + 1)), int),
        ("row", rows.indptr, int),
        ("column", rows.indices, int),
        ("value", rows.data, real),
    ):
        setattr(rotation, name, constant_array(values, dtype, device))
    rotation.arm = wp.zeros(sizes.worlds * sizes.nodes, dtype=vector(3), device=device)
    for name, dtype in (("center", wp.vec3d), ("angle", wp.vec3d), ("gain", wp.mat33d)):
        setattr(rotation, name, wp.zeros(sizes.worlds * count, dtype=dtype, device=device))
    return rotation


def _normals(topology: MeshTopology) -> NormalArrays:
    """Free normals of nodes that are not held and whose elements all have `Kind.normal_bounds`; none with bones."""
    mesh, sizes, device = topology.mesh, topology.sizes, topology.device
    component = topology.components.of[: sizes.nodes]
    free = ~topology.fixed & ~np.isin(component, component[mesh.bone >= 0])
    free[list(topology.guided)] = False
    for kind in topology.kinds:
        if kind.normal_bounds is None:
            free[np.unique(getattr(mesh, kind.name))] = False
    member, first, face = around(mesh.triangles, free)
    number = np.full(sizes.points, -1)
    number[member] = np.arange(len(member))
    normals = NormalArrays()
    normals.count, normals.nodes, normals.stride = len(member), sizes.nodes, sizes.stride
    for name, values in (("number", number), ("member", member), ("first", first)):
        setattr(normals, name, constant_array(values, int, device))
    normals.face = constant_array(face, wp.vec2i, device)
    for name, dtype in (("normal", vector(3)), ("gain", real), ("lift", real)):
        setattr(normals, name, wp.zeros(sizes.worlds * len(member), dtype=dtype, device=device))
    return normals


def _wet(mesh: Mesh) -> np.ndarray:
    """Which nodes a fluid wets, shape (n_nodes,), bool."""
    wet = np.zeros(len(mesh.position), dtype=bool)
    wet[mesh.faces.reshape(-1)] = True
    return wet


def _contact(topology: MeshTopology, stiff: np.ndarray, row: np.ndarray) -> ContactTopology:
    """Points that may be in contact; `stiff` are stiffnesses of points [N/m], `row` are rows of nodes in the matrix."""
    sizes, candidates, samples = topology.sizes, topology.candidates, topology.samples
    contact, place = ContactTopology(), np.full(sizes.points, -1)
    place[candidates] = np.arange(len(candidates))
    alone = np.array([[-1, -1, -1]]).repeat(len(candidates), axis=0)
    nodes, weights = np.column_stack([candidates, alone]), np.column_stack([alone[:, :1] + 2, alone + 1])
    corners = np.pad(samples.node, ((0, 0), (0, 1)), constant_values=-1)
    shares = np.concatenate([weights, np.pad(samples.weight, ((0, 0), (0, 1)))])
    points = np.concatenate([nodes, corners])
    at = np.where(samples.node >= 0, place[samples.node], -1)
    sample, corner = np.nonzero(at >= 0)
    order = np.argsort(at[sample, corner], kind="stable")
    first = np.searchsorted(at[sample, corner][order], np.arange(len(candidates) + 1))
    contact.nodes, contact.stride, contact.contacts = sizes.points, sizes.stride, sizes.contacts
    contact.first, contact.solids = sizes.first_contact, sizes.solid_contacts
    for name, values, dtype in (
        ("skin", _SKIN / 4.0 / stiff[candidates], real),
        ("point", points, wp.vec4i),
        ("share", shares, vector(4)),
        ("standing", topology.standing[points.max(axis=1, initial=-1)], int),
        ("node", candidates, int),
        ("place", place, int),
        ("row", np.append(row, np.full(sizes.vertices, -1))[candidates], int),
        ("sample", first, int),
        ("corner", (4 * sample + corner)[order], int),
    ):
        setattr(contact, name, constant_array(values, dtype, topology.device))
    return contact
