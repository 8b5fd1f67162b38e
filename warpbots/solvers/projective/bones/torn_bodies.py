"""Refuses skeletons through soft bodies that touch but are not joined: the bodies would come apart at a joint."""

import itertools

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from warpbots.scene import Scene, SceneError

__all__ = ["refuse_torn", "skeletons_of"]

_FACE = 3
"""Number of coincident nodes from which two bodies have a common face."""


def refuse_torn(scene: Scene, position: np.ndarray, body: np.ndarray, bone: np.ndarray, slack: np.ndarray) -> None:
    """Raise if one skeleton is bound to two soft bodies that have a common face and no attachment.

    Args:
        scene: The scene.
        position: Nodes [m], shape (n, 3).
        body: Index of the body of each node in the scene, shape (n,).
        bone: Index in `Scene.rigid` of the bone that each node is bound to, -1 for none, shape (n,).
        slack: Distance up to which a node coincides with another one [m], shape (n,).

    Raises:
        SceneError: There are two such bodies; the message names the bodies and their bones.
    """
    skeleton = np.append(skeletons_of(scene), -1)[bone]
    joined = {frozenset((a.first, a.second)) for a in scene.attachments}
    for tree in range(skeleton.max(initial=-1) + 1):
        held = np.unique(body[skeleton == tree])
        for one, other in itertools.combinations(held, 2):
            names = [scene.bodies[k].name for k in (one, other)]
            distance, _ = cKDTree(position[body == one]).query(position[body == other])
            common = int((distance <= slack[body == other]).sum())
            if common >= _FACE and frozenset(names) not in joined:
                bones = [scene.rigid[k].name for k in np.unique(bone[skeleton == tree])]
                raise SceneError(
                    f"RigidBody {', '.join(map(repr, bones))}: one skeleton runs through SoftBody {names[0]!r} and "
                    f"{names[1]!r}, which touch at {common} nodes and would come apart there, since nothing joins "
                    f"them; make them one SoftBody with the Union of their shapes, connect them with an Attachment, or "
                    f"leave a gap"
                )


def skeletons_of(scene: Scene) -> np.ndarray:
    """Index of the skeleton of each rigid body, shape (n,); joints connect the bodies of a skeleton."""
    number = {b.name: k for k, b in enumerate(scene.rigid)}
    ends = np.array([(number[j.parent], number[j.child]) for j in scene.joints if j.parent is not None], dtype=int)
    row, column = ends.reshape(-1, 2).T
    graph = coo_array((np.ones(len(row)), (row, column)), shape=(len(number), len(number)))
    return connected_components(graph, directed=False)[1]
