"""Arrays of contacts that a step fills anew."""

import dataclasses
import functools

import numpy as np
import warp as wp

from warpbots.numerics import parallel, real
from warpbots.solvers.projective.contact.body_boxes import FAR, BodyBoxes
from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, JointCoupling
from warpbots.solvers.projective.contact.few_contacts import FEW, ForceSystem
from warpbots.solvers.projective.contact.second_attempt import SecondAttempt
from warpbots.solvers.projective.contact.sticking_elimination import JOINTS, STICKING, StickingArrays
from warpbots.solvers.projective.contact.surface_search import BoxTree, SurfaceSearch
from warpbots.solvers.projective.topology import MeshTopology, constant_array

__all__ = ["ContactWorkspace", "EmbeddedObstacles"]

_PART = 64
"""Number of contacts that one thread lists, on devices with many threads."""


@dataclasses.dataclass(frozen=True)
class EmbeddedObstacles:
    """Depths of obstacles inside faces and bars; a bar is a face whose last two corners are the same node.

    Attributes:
        corners: Points at the corners of the faces, on the host, shape (faces, 3).
        face: `corners` on the device, shape (faces,).
        depth: Depth of an obstacle inside a face if it is above the limit, else 0 [m], shape (worlds * faces,).
        solid: Index of the deepest solid of a face whose depth is above 0, shape (worlds * faces,).
    """

    corners: np.ndarray
    face: wp.array
    depth: wp.array
    solid: wp.array


@dataclasses.dataclass(frozen=True)
class ContactWorkspace:
    """Arrays of contacts that a step fills anew.

    Attributes:
        topology: The tables that define which points may be in contact.
    """

    topology: MeshTopology

    def _zeros(self, count: int, dtype: type) -> wp.array:
        return wp.zeros(self.topology.sizes.worlds * count, dtype=dtype, device=self.topology.device)

    @functools.cached_property
    def contacts(self) -> ContactArrays:
        """Contacts at a point of the iteration."""
        sizes, device = self.topology.sizes, self.topology.device
        contacts = ContactArrays()
        contacts.parts = -(-sizes.contacts // _PART) if parallel(device) else 1
        counts = {"pressed": 1, "count": 1, "part": contacts.parts}
        counts |= dict.fromkeys(("by_node", "pull", "next"), 4 * sizes.contacts)
        counts |= dict.fromkeys(("head", "tail"), sizes.candidates)
        for name, variable in ContactArrays.vars.items():
            if name != "parts":
                setattr(contacts, name, self._zeros(counts.get(name, sizes.contacts), variable.type.dtype))
        contacts.any = wp.zeros(1, dtype=int, device=device)
        for corner in (contacts.head, contacts.tail):
            corner.fill_(-1)
        return contacts

    @functools.cached_property
    def coupling(self) -> JointCoupling:
        """Coupling of contacts with joints."""
        sizes, coupling = self.topology.sizes, JointCoupling()
        coupling.freedom, coupling.width = sizes.freedom, self.topology.joint_blocks.widest
        contacts = sizes.contacts if sizes.freedom else 0
        counts = {"matrix": sizes.freedom**2} | dict.fromkeys(("span", "change", "push", "slope"), contacts)
        counts |= dict.fromkeys(("jacobian", "response"), contacts * coupling.width)
        for name, variable in JointCoupling.vars.items():
            if name not in ("freedom", "width"):
                setattr(coupling, name, self._zeros(counts.get(name, sizes.freedom), variable.type.dtype))
        return coupling

    @functools.cached_property
    def forces(self) -> ForceSystem:
        """Equations for the forces of a few contacts; without room on devices with many threads, which only sweep."""
        system = ForceSystem()
        system.side = 0 if parallel(self.topology.device) else min(self.topology.sizes.contacts, FEW)
        size = 3 * system.side
        system.response, system.matrix, system.change = (
            self._zeros(n, wp.float64) for n in (size * size, size * (size + 1), size)
        )
        system.entry, system.q = self._zeros(system.side, int), self._zeros(system.side, wp.vec3d)
        system.solved = self._zeros(1, int)
        return system

    @functools.cached_property
    def sticking(self) -> StickingArrays:
        """Contacts that stick, which are eliminated; without room where contacts are never solved for together."""
        sizes, few, sticking = self.topology.sizes, self.forces.side, StickingArrays()
        sticking.side = n = min(sizes.contacts, STICKING) if few else 0
        sticking.joints = j = min(sizes.freedom + 3 * len(self.topology.components), JOINTS) if few else 0
        width = few + 3 * j + 7  # rows are padded to a multiple of eight
        counts = {"given": n * n, "factor": n * n, "solution": n * width, "right": 4 * n, "reply": 3 * (n + few) * j}
        counts |= {"row": width, "way": 3 * few * j, "joint": j * (2 * j + 3 * few), "y": 2 * j}
        for name, variable in StickingArrays.vars.items():
            if name not in ("side", "joints", "kept", "ready"):  # memory that is never written to costs nothing
                count = sizes.worlds * counts.get(name, n)
                setattr(sticking, name, wp.empty(count, dtype=variable.type.dtype, device=self.topology.device))
        sticking.kept, sticking.ready = self._zeros(1, int), self._zeros(1, int)
        sticking.kept.fill_(-1)
        return sticking

    @functools.cached_property
    def search(self) -> SurfaceSearch:
        """Pairs that are contacts in this step, and the state of collision detection."""
        sizes = self.topology.sizes
        vertices = self.topology.surface.vertex.size if sizes.capacity else 0
        return SurfaceSearch.of(
            sizes.worlds, len(self.topology.components), sizes.capacity, vertices, self.topology.device
        )

    @functools.cached_property
    def attempt(self) -> SecondAttempt:
        """Second attempts of steps."""
        sizes, components, attempt = self.topology.sizes, len(self.topology.components), SecondAttempt()
        counts = dict.fromkeys(("begun", "left", "free"), components)
        counts |= {"u": sizes.stride, "x": sizes.points, "way": sizes.stride}
        for name, count in counts.items():
            setattr(attempt, name, self._zeros(count, SecondAttempt.vars[name].type.dtype))
        attempt.any = wp.zeros(1, dtype=int, device=self.topology.device)
        return attempt

    @functools.cached_property
    def trees(self) -> tuple[BoxTree, BoxTree]:
        """Box trees around the paths of faces, and around the paths of edges."""
        topology, worlds, surface = self.topology, self.topology.sizes.worlds, self.topology.surface
        tables = (topology.faces, surface.edge.numpy())
        return tuple(BoxTree.of(topology.position, table, worlds, topology.device) for table in tables)

    @functools.cached_property
    def boxes(self) -> BodyBoxes:
        """Boxes around the paths of bodies, which a search fills anew; soft bodies alone may touch everywhere."""
        boxes, sizes = BodyBoxes(), self.topology.sizes
        for name in BodyBoxes.vars:
            corner = wp.vec3(FAR if name.endswith("upper") else -FAR)
            array = wp.full(sizes.worlds * sizes.bodies, corner, dtype=wp.vec3, device=self.topology.device)
            setattr(boxes, name, array)
        return boxes

    @functools.cached_property
    def embedded(self) -> EmbeddedObstacles:
        """Obstacles inside faces and bars."""
        topology, mesh = self.topology, self.topology.mesh
        soft = [part.faces + part.nodes.start for part in mesh.meshes]
        bones = topology.bone_surfaces.faces + topology.sizes.nodes
        corners = np.concatenate([*soft, mesh.bars[:, [0, 1, 1]], bones])
        face = constant_array(corners, wp.vec3i, topology.device)
        return EmbeddedObstacles(corners, face, self._zeros(len(corners), real), self._zeros(len(corners), int))
