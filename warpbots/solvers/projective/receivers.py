"""Tables of the receivers of wrenches: obstacles, constraints and rigid bodies."""

import numpy as np
import warp as wp

from warpbots.numerics import vector
from warpbots.scene import Scene
from warpbots.solvers.projective.topology import MeshTopology, constant_array
from warpbots.solvers.projective.wrenches import EDGE, FREE, Receivers

__all__ = ["receivers_of"]


def receivers_of(scene: Scene, topology: MeshTopology) -> Receivers:
    """The receivers of wrenches in `scene`, with fresh arrays for their wrenches."""
    sizes, mesh, device, receivers = topology.sizes, topology.mesh, topology.device, Receivers()
    obstacles, constraints = len(scene.obstacles), len(scene.constraints)
    of_node = np.full(sizes.nodes, int(FREE))
    for k, constraint in reversed(list(enumerate(scene.constraints))):  # the first one takes the force of a node
        of_node[mesh.regions[constraint.region]] = obstacles + k
    of_vertex = obstacles + constraints + topology.bone_surfaces.bone
    of_point = np.concatenate([of_node, of_vertex, np.full(sizes.edge_ends, int(EDGE))])
    held, guided = np.flatnonzero(of_node >= 0), np.full(sizes.points, -1)
    guided[list(topology.guided)] = np.arange(len(topology.guided))
    receivers.obstacles, receivers.constraints = obstacles, constraints
    receivers.count = obstacles + constraints + len(topology.rigid)
    receivers.points, receivers.stride = sizes.points, sizes.stride
    for name, values in (("of_point", of_point), ("held", held), ("guided", guided)):
        setattr(receivers, name, constant_array(values, int, device))
    receivers.held_force = wp.zeros(sizes.worlds * len(held), dtype=vector(3), device=device)
    for name in ("force", "torque", "force_adj", "torque_adj"):
        setattr(receivers, name, wp.zeros((sizes.worlds, receivers.count), dtype=wp.vec3d, device=device))
    return receivers
