"""Obstacles and pairs of surfaces of a model as Warp structs, and the laws of their contacts."""

import functools

import numpy as np
import warp as wp

from warpbots.contact.solid import Solids
from warpbots.contact.solid_forms import widths
from warpbots.numerics import real
from warpbots.scene import Scene, unnamed_pairs
from warpbots.scene.motion_checks import moves
from warpbots.solvers.moving_frames import MovingFrames
from warpbots.solvers.projective.contact.bone_surface import body_of, never_in_contact
from warpbots.solvers.projective.contact.contact_laws import laws_of_pairs
from warpbots.solvers.projective.contact.node_contact import APART, ObstacleArrays
from warpbots.solvers.projective.contact.pair_arrays import CLEARANCE, MARGIN, PairArrays
from warpbots.solvers.projective.contact.surface_search import PAIRS
from warpbots.solvers.projective.mesh import Mesh
from warpbots.solvers.projective.topology import MeshTopology, constant_array
from warpbots.solvers.projective.workspace import ProjectiveWorkspace
from warpbots.solvers.scene_parts import immovable

__all__ = ["HasContacts"]


class HasContacts:
    """The contacts of a model, whose fields these are: see `ProjectiveModel`."""

    scene: Scene
    device: wp.Device
    mesh: Mesh
    friction: wp.array
    body_friction: wp.array
    contact_friction: wp.array
    solids: Solids
    obstacle: wp.array
    frames: MovingFrames
    condition: wp.array
    extra: wp.array
    topology: MeshTopology
    workspace: ProjectiveWorkspace

    @functools.cached_property
    def obstacles(self) -> ObstacleArrays:
        """Obstacles as a Warp struct."""
        obstacles = ObstacleArrays()
        obstacles.solids, obstacles.solid, obstacles.obstacle = self.topology.sizes.solids, self.solids, self.obstacle
        obstacles.obstacles, obstacles.condition, obstacles.extra = (
            len(self.scene.obstacles),
            self.condition,
            self.extra,
        )
        obstacles.frame, obstacles.friction = self.frames.of_solid, self.friction.flatten()
        topology = self.topology
        obstacles.thinnest = constant_array(widths(self.solids)[:, 0], real, self.device)
        obstacles.across = wp.array(topology.across, dtype=wp.float64, device=self.device)
        obstacles.angular = constant_array(topology.angular, int, self.device)
        obstacles.edge = topology.contact_edge
        of_point, soft = body_of(self.scene, self.mesh, topology.bone_surfaces), len(self.scene.soft)
        movers = soft + len(topology.bone_surfaces.bones)
        obstacles.laws, obstacles.law_friction = len(self.scene.laws), self.contact_friction.flatten()
        laws = self._laws[:movers, movers:].copy()
        laws[soft:][self._unnamed_obstacles] = APART
        obstacles.body = constant_array(of_point, int, self.device)
        obstacles.law = constant_array(laws.reshape(-1), int, self.device)
        return obstacles

    @functools.cached_property
    def _laws(self) -> np.ndarray:
        """Index of the contact law of every pair of bodies and obstacles, shape (n, n), int."""
        return laws_of_pairs(self.scene, self.topology.bone_surfaces.bones)

    @functools.cached_property
    def _unnamed_obstacles(self) -> np.ndarray:
        """Which bones with a surface touch which obstacles not, for want of a law, shape (bones, obstacles), bool."""
        return unnamed_pairs(self.scene)[self.topology.bone_surfaces.bones, len(self.scene.rigid) :]

    @functools.cached_property
    def sharp(self) -> bool:
        """Whether an obstacle can be inside a face whose corners are outside of it."""
        return bool((widths(self.solids) > 0.0).any())

    @functools.cached_property
    def pairs(self) -> PairArrays:
        """Surfaces that may be in contact, as a Warp struct."""
        pairs, surfaces, sizes = PairArrays(), self.topology.bone_surfaces, self.topology.sizes
        pairs.nodes, pairs.stride, pairs.capacity = sizes.points, sizes.stride, sizes.capacity
        edge = self.topology.point_edge
        pairs.clearance, pairs.margin = (constant_array(k * edge, real, self.device) for k in (CLEARANCE, MARGIN))
        pairs.size = constant_array(self.topology.point_size, int, self.device)
        attached = never_in_contact(self.scene, self.mesh, surfaces)
        pairs.soft, pairs.movers, obstacles = len(self.scene.soft), len(attached), len(self.scene.obstacles)
        pairs.bodies = sizes.bodies
        still = np.array([not moves(o, self.scene.actuators) for o in self.scene.obstacles], dtype=bool)
        standing = np.append(np.zeros(len(self.scene.soft), dtype=bool), immovable(self.scene)[surfaces.bones])
        both = np.outer(standing, still)
        both[pairs.soft :] |= self._unnamed_obstacles
        attached = np.block([[attached, both], [both.T, np.ones((obstacles, obstacles), dtype=bool)]])
        numbers = body_of(self.scene, self.mesh, surfaces)
        numbers = np.append(numbers, pairs.movers + self.topology.obstacle_edges.obstacle)
        pairs.body, pairs.attached = (
            wp.array(a.reshape(-1).astype(np.int32), dtype=int, device=self.device) for a in (numbers, attached)
        )
        pairs.friction, pairs.obstacle_friction = self.body_friction.flatten(), self.friction.flatten()
        pairs.condition, pairs.extra = self.condition, self.extra
        pairs.laws, pairs.law_friction = len(self.scene.laws), self.contact_friction.flatten()
        pairs.law = constant_array(self._laws.reshape(-1), int, self.device)
        pairs.solid = constant_array(np.searchsorted(self.obstacle.numpy(), np.arange(obstacles)), int, self.device)
        for name in ("vertex", "face", "edge", "flat", "level"):
            setattr(pairs, name, getattr(self.topology.surface, name))
        pairs.around, pairs.outer = self.topology.outer_faces
        components = self.topology.components
        component = np.append(components.of, np.full(sizes.edge_ends, -1))
        pairs.component = constant_array(component, int, self.device)
        for name in PAIRS:
            setattr(pairs, name, getattr(self.workspace.contact.search, name))
        return pairs
