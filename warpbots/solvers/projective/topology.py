"""Tables that never change: nodes of elements, sparsity patterns, and points that may be in contact."""

import dataclasses
import functools

import numpy as np
import warp as wp
from scipy.sparse import coo_matrix, csr_matrix

from warpbots.numerics import real, real_numpy, vector
from warpbots.scene import RigidBody
from warpbots.solvers.projective.bones.joint_blocks import JointBlocks, joint_blocks_of
from warpbots.solvers.projective.components import Components
from warpbots.solvers.projective.contact.bone_surface import BoneSurfaces
from warpbots.solvers.projective.contact.obstacle_edges import ObstacleEdges
from warpbots.solvers.projective.contact.pair_arrays import CLEARANCE
from warpbots.solvers.projective.contact.surface_samples import SurfaceSamples
from warpbots.solvers.projective.contact.surface_search import ContactSurfaces
from warpbots.solvers.projective.elements.element import Kind, Place, pairs
from warpbots.solvers.projective.elements.kinds import kinds_of
from warpbots.solvers.projective.iterate.elimination import Elimination, elimination_of
from warpbots.solvers.projective.mesh import Mesh

__all__ = ["ProjectiveSizes", "MeshTopology", "constant_array"]


def constant_array(values: np.ndarray, dtype: type, device: wp.Device) -> wp.array:
    """Array on a device of values from the host, in the precision of `dtype`."""
    integer = getattr(dtype, "_wp_scalar_type_", dtype) in (int, wp.int32)
    return wp.array(values.astype(np.int32 if integer else real_numpy), dtype=dtype, device=device)


@dataclasses.dataclass(frozen=True)
class ProjectiveSizes:
    """Sizes of one world.

    An iterate consists of the displacements of points (nodes, vertices of bone surfaces, and ends of edges of
    obstacles, whose motion is prescribed), the displacements of the joints, and the forces of contacts (with solids,
    then of pairs).

    Attributes:
        worlds: Number of worlds.
        nodes: Number of nodes.
        vertices: Number of vertices of bone surfaces.
        edge_ends: Number of ends of sharp edges of obstacles.
        freedom: Number of joint velocities.
        bodies: Number of soft bodies, bones with a surface, and obstacles.
        candidates: Number of points that may be in contact.
        samples: Number of surface samples that may be in contact with thin solids.
        solids: Number of solids of the obstacles.
        capacity: Number of pairs for which there is room, which grows as needed.
        most: Number of pairs above which a step fails, even if there is room.
    """

    worlds: int
    nodes: int
    vertices: int
    edge_ends: int
    freedom: int
    bodies: int
    candidates: int
    samples: int
    solids: int
    capacity: int
    most: int

    @property
    def points(self) -> int:
        """Number of nodes, vertices of bone surfaces, and ends of edges of obstacles."""
        return self.nodes + self.vertices + self.edge_ends

    @property
    def contact_points(self) -> int:
        """Number of points and surface samples that may be in contact with a solid."""
        return self.candidates + self.samples

    @property
    def solid_contacts(self) -> int:
        """Number of contacts with solids, including open contacts."""
        return self.contact_points * self.solids

    @property
    def contacts(self) -> int:
        """Number of all contacts, including open contacts."""
        return self.solid_contacts + self.capacity

    @property
    def first_contact(self) -> int:
        """Index of the first contact in an iterate."""
        return self.points + self.freedom

    @property
    def stride(self) -> int:
        """Number of entries of an iterate of one world."""
        return self.first_contact + self.contacts


@dataclasses.dataclass(frozen=True)
class MeshTopology:
    """Tables of one world that are the same in all steps.

    Attributes:
        rigid: Bones in their start poses.
        mesh: All soft bodies of one world.
        bone_surfaces: Surfaces of bones outside of their soft bodies.
        obstacle_edges: Sharp edges of obstacles.
        fixed: Which nodes are fixed, shape (n_nodes,), bool.
        anchored: Which fixed nodes have an anchor, shape (n_nodes,), bool; the other fixed nodes are held in place by
            lines and planes that leave no direction.
        guided: Normals of nodes that are held to lines or planes, by index of the node, each of shape (1 or 2, 3).
        frame: Index of the frame that moves the constraint of each node, -1 for none, shape (n_nodes,), int.
        candidates: Points that may be in contact, shape (n,).
        samples: Surface samples that may be in contact with thin solids.
        across: Second smallest widths of the solids that surface samples may detect [m], 0 for other solids, shape
            (n_solids,).
        angular: Whether a solid protrudes only at edges that detect contact themselves, shape (n_solids,), bool.
        standing: Which points are vertices of rigid bodies that cannot move, shape (points,), bool.
        components: Parts of a world that only contact couples.
        of_joints: Components of the coordinates and of the velocities of joints.
        sizes: Sizes of one world.
        device: Device of the arrays.
    """

    rigid: tuple[RigidBody, ...]
    mesh: Mesh
    bone_surfaces: BoneSurfaces
    obstacle_edges: ObstacleEdges
    fixed: np.ndarray
    anchored: np.ndarray
    guided: dict[int, np.ndarray]
    frame: np.ndarray
    candidates: np.ndarray
    samples: SurfaceSamples
    across: np.ndarray
    angular: np.ndarray
    standing: np.ndarray
    components: Components
    of_joints: tuple[np.ndarray, np.ndarray]
    sizes: ProjectiveSizes
    device: wp.Device

    def _array(self, values: np.ndarray, dtype: type) -> wp.array:
        return constant_array(values, dtype, self.device)

    @functools.cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """Kinds of the elements of the scene; one without elements in a scene without soft bodies."""
        kinds = kinds_of(self.mesh.solid)
        return tuple(k for k in kinds if len(self._table(k))) or kinds[:1]

    def _table(self, kind: Kind) -> np.ndarray:
        return getattr(self.mesh, kind.name)

    @functools.cached_property
    def _corners(self) -> np.ndarray:
        """Nodes of all corners, kind by kind."""
        return np.concatenate([self._table(k).reshape(-1) for k in self.kinds])

    @property
    def corners(self) -> int:
        """Number of corners of all elements of one world."""
        return len(self._corners)

    @functools.cached_property
    def blocks(self) -> dict[str, np.ndarray]:
        """Stiffness of elements in the matrix of the global step [N/m], by kind name, shape (n, corners, corners)."""
        return {k.name: k.blocks(self.mesh) for k in self.kinds}

    @functools.cached_property
    def elements(self) -> dict[str, dict[str, object]]:
        """Constant fields of the structs of all kinds, by name of the kind."""
        fields, corner, pair = {}, 0, 0
        for kind in self.kinds:
            table = self._table(kind)
            place = Place()
            place.count, place.first, place.elements = len(table), self.mesh.of(kind.name).start, self._materials
            place.corner, place.corners, place.pair, place.pairs = corner, self.corners, pair, len(self.node_pairs[0])
            place.nodes, place.stride = self.sizes.nodes, self.sizes.stride
            nominal = self.blocks[kind.name][:, 1:, 1:].trace(axis1=1, axis2=2)
            fields[kind.name] = {
                "place": place, "node": self._array(table, kind.node), "nominal": self._array(nominal, real),
                **{name: self._array(getattr(self.mesh, name), dtype) for name, dtype in kind.constant.items()},
            }  # fmt: skip
            corner, pair = corner + table.size, pair + table.size * table.shape[1]
        return fields

    @property
    def _materials(self) -> int:
        """Number of elements of one world that have a material."""
        return len(self.mesh.youngs_modulus)

    @functools.cached_property
    def nodes(self) -> dict[str, object]:
        """Constant fields of the struct of nodes."""
        corners, count = self._corners, self.sizes.nodes
        anchors = int(self.anchored.sum())
        held = np.where(self.fixed, anchors, -1)
        held[self.anchored] = np.arange(anchors)
        start, corner = _grouped(corners, count)
        return {
            "count": count, "stride": self.sizes.stride, "corners": self.corners, "anchors": anchors,
            "start": self._array(start, int), "corner": self._array(corner, int),
            "held": self._array(held, int),
        }  # fmt: skip

    @functools.cached_property
    def nominal_mass(self) -> wp.array:
        """Mass of the nodes in the matrix of the global step [kg], shape (n_nodes,)."""
        return self._array(self.mesh.volume * self.mesh.density, real)

    @functools.cached_property
    def node_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes of all pairs of corners, kind by kind, each of shape (n,)."""
        rows, columns = zip(*(pairs(self._table(k)) for k in self.kinds), strict=True)
        return np.concatenate(rows), np.concatenate(columns)

    @functools.cached_property
    def pattern(self) -> csr_matrix:
        """Which nodes share an element, shape (n_nodes, n_nodes); the values number the entries from 1."""
        ones, shape = np.ones(len(self.node_pairs[0])), (self.sizes.nodes, self.sizes.nodes)
        pattern = coo_matrix((ones, self.node_pairs), shape=shape).tocsr()
        pattern.data = np.arange(1.0, pattern.nnz + 1.0)
        return pattern

    @functools.cached_property
    def elimination(self) -> Elimination:
        """The order in which nodes that move are eliminated from a second derivative."""
        return elimination_of(self.pattern, self.fixed)

    @functools.cached_property
    def other_components(self) -> np.ndarray:
        """Components of the entries of an iterate after the moving points: ends of edges, joints, solid contacts."""
        _, velocities = self.of_joints
        ends = np.zeros(self.sizes.edge_ends, dtype=int)
        return np.concatenate([ends, velocities, np.repeat(self._of_contact_points, self.sizes.solids)])

    @functools.cached_property
    def joint_blocks(self) -> JointBlocks:
        """Which joints neither other joints nor soft matter connect."""
        return joint_blocks_of(self.of_joints[1], self.components)

    @functools.cached_property
    def state_components(self) -> tuple[wp.array, ...]:
        """Components of nodes, and of coordinates and velocities of joints."""
        of_nodes = self.components.of[: self.sizes.nodes]
        return tuple(self._array(of, int) for of in (of_nodes, *self.of_joints))

    @functools.cached_property
    def _of_contact_points(self) -> np.ndarray:
        """Component of each node, vertex or surface sample that may be in contact with a solid."""
        samples = self.samples.node
        corner = samples[np.arange(len(samples)), (samples >= 0).argmax(axis=1)] if len(samples) else samples[:, 0]
        return self.components.of[np.append(self.candidates, corner).astype(int)]

    @functools.cached_property
    def contact_edge(self) -> wp.array:
        """Mean edge of the component of each contact point [m], shape (contact_points,), double precision."""
        edge = self.components.length[self._of_contact_points]
        return wp.array(edge, dtype=wp.float64, device=self.device)

    @functools.cached_property
    def held_surface(self) -> tuple[wp.array, wp.array]:
        """Fixed nodes of surfaces and bars, shape (n,), int, and the clearance of their contacts [m], shape (n,)."""
        faces = [(part.faces + part.nodes.start).reshape(-1) for part in self.mesh.meshes]
        surface = np.unique(np.concatenate([*faces, self.mesh.bars.reshape(-1)])).astype(int)
        held = surface[self.fixed[surface]]
        return self._array(held, int), self._array(CLEARANCE * self.components.edge[held], real)

    @functools.cached_property
    def point_edge(self) -> np.ndarray:
        """Mean edge of the component of each point, or for which an obstacle edge is made [m], shape (n_points,)."""
        return np.append(self.components.edge, self.obstacle_edges.edge)

    @functools.cached_property
    def point_size(self) -> np.ndarray:
        """Index of the `point_edge` of each point among the distinct mean edges, shape (n_points,), int."""
        lengths, number = self.components.sizes
        return np.append(number[self.components.of], np.searchsorted(lengths, self.obstacle_edges.edge))

    @property
    def pairs(self) -> int:
        """Number of pairs of nodes that share an element."""
        return self.pattern.nnz

    @functools.cached_property
    def row(self) -> wp.array:
        """First pair of every node, and the end of the last node, shape (n_nodes + 1,)."""
        return self._array(self.pattern.indptr, int)

    @functools.cached_property
    def neighbor(self) -> wp.array:
        """Second node of every pair, shape (pairs,)."""
        return self._array(self.pattern.indices, int)

    @functools.cached_property
    def mirror(self) -> wp.array:
        """For each pair of nodes, the pair of the same nodes in the other order, shape (pairs,)."""
        return self._array(self.pattern.T.tocsr().sorted_indices().data.astype(int) - 1, int)

    @functools.cached_property
    def corner_pairs(self) -> tuple[wp.array, wp.array]:
        """Pairs of corners, grouped by pairs of nodes: start of each group, shape (pairs + 1,); corner pairs, (n,)."""
        row, column = self.node_pairs
        _, pair = np.unique(row * self.sizes.nodes + column, return_inverse=True)  # `pattern` is in the same order
        first, order = _grouped(pair, self.pairs)
        return self._array(first, int), self._array(order, int)

    @functools.cached_property
    def faces(self) -> np.ndarray:
        """Points at the corners of the faces of all bodies, shape (n_faces, 3)."""
        soft = [part.faces + part.nodes.start for part in self.mesh.meshes]
        return np.concatenate([*soft, self.bone_surfaces.faces + self.sizes.nodes])

    @functools.cached_property
    def position(self) -> np.ndarray:
        """Positions of points at rest [m], shape (n_points, 3)."""
        return np.concatenate([self.mesh.position, self.bone_surfaces.position, self.obstacle_edges.position])

    @functools.cached_property
    def surface(self) -> ContactSurfaces:
        """Vertices, faces and edges of all bodies, and edges of obstacles."""
        first, normals, bones = self.sizes.nodes + self.sizes.vertices, np.zeros(self.faces.shape), self.bone_surfaces
        normals[len(normals) - len(bones.faces) :] = bones.normals
        return ContactSurfaces.of(self.faces, normals, self.obstacle_edges.edges + first, self.device)

    @functools.cached_property
    def outer_faces(self) -> tuple[wp.array, wp.array]:
        """Faces of solids and bones, grouped by points: starts of groups, shape (n_points + 1,); faces, shape (n,)."""
        sheets = {tuple(sorted(t)) for t in self.mesh.triangles.tolist()}
        outer = np.array([k for k, f in enumerate(self.faces.tolist()) if tuple(sorted(f)) not in sheets], dtype=int)
        first, order = _grouped(self.faces[outer].reshape(-1), self.sizes.points)
        return self._array(first, int), self._array(outer[order // 3], int)

    @functools.cached_property
    def edge_ends(self) -> wp.array:
        """Positions of the ends of edges of obstacles [m], shape (edge_ends,)."""
        return self._array(self.obstacle_edges.position, vector(3))


def _grouped(key: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Entries grouped by keys below `count`: start of each group, shape (count + 1,), and the entries in this order."""
    return np.searchsorted(np.sort(key), np.arange(count + 1)), np.argsort(key, kind="stable")
