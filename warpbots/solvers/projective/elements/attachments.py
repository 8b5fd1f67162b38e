"""Attachments of soft bodies: points of two of them that stay together.

With the weights w_k of a point among the corners of the element that it is in, positive for the first body and negative
for the second,

    y = sum_k w_k x_k,   f_k = -k w_k y.

The spring is linear, so that its part k w_k w_l of the matrix of the global step is its second derivative, and the
iteration does not mind how stiff it is.
"""

from collections.abc import Callable

import numpy as np
import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.scene import Attachment, Scene, SceneError
from warpbots.solvers.projective.elements.element import (
    Kind,
    Place,
    add_block,
    corner,
    energy_by,
    forces_by,
    raise_to,
    row,
    span,
    stiffness_by,
)

__all__ = [
    "ATTACHMENTS",
    "AttachmentArrays",
    "attached",
    "energy_kernel",
    "force_kernel",
    "scaling_kernel",
    "stiffness_kernel",
]

_CORNERS = 8
_vec = vector(3)
_nodes = wp.types.vector(_CORNERS, wp.int32)
_weights = wp.types.vector(_CORNERS, real)
_HARD = 100.0
"""Stiffness of an attachment, in that of an element of the stiffest matter of both bodies."""

wp.set_module_options({"max_unroll": 3})  # 8 x 8 x 3 copies of a block take three seconds to compile


@wp.struct
class AttachmentArrays:
    """Points of attachments; arrays that may differ between worlds hold all worlds in one row.

    place: Where they are among all elements.
    node: Nodes of the elements of both bodies, shape (count,).
    attachment_stiffness: Spring constant k [N/m], shape (worlds * count,).
    attachment_weight: Weights w_k [1], shape (count,).
    nominal: Stiffness in the matrix of the global step [N/m], shape (count,).
    """

    place: Place
    node: wp.array[_nodes]
    attachment_stiffness: wp.array[real]
    attachment_weight: wp.array[_weights]
    nominal: wp.array[real]


@wp.kernel(enable_backward=False)
def scaling_kernel(
    # model
    points: AttachmentArrays,
    # out
    scaling_out: wp.array2d[real],
):
    """The largest ratio of a stiffness to that in the matrix of the global step."""
    w, e = wp.tid()
    v = points.attachment_weight[e]
    squares = wp.dot(v, v) - v[0] * v[0]
    raise_to(scaling_out, w, e, points.attachment_stiffness[row(points.place, w, e)] * squares / points.nominal[e])


@wp.func
def apart(points: AttachmentArrays, x: wp.array[_vec], u: wp.array[NODE], w: int, e: int):
    """The vector y at x + u, by way of the first corner, as all weights together are 0."""
    k = points.node[e]
    y = _vec()
    for c in range(1, _CORNERS):
        y = y + points.attachment_weight[e][c] * span(points.place, x, u, w, k[0], k[c])
    return y


@wp.kernel(module=wp.get_module("warpbots.projective.attachments_energy"))
def energy_kernel(
    # model
    points: AttachmentArrays,
    # state
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    energy_out: wp.array[real],
):
    """k/2 |y|^2."""
    w, e = wp.tid()
    y = apart(points, x, u, w, e)
    k = points.attachment_stiffness[row(points.place, w, e)]
    energy_out[corner(points.place, w, _CORNERS * e)] = real(0.5) * k * wp.dot(y, y)


@wp.kernel
def force_kernel(
    # model
    points: AttachmentArrays,
    # state
    active: wp.array[int],
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    force_out: wp.array[_vec],
):
    """f_k = -k w_k y."""
    w, e = wp.tid()
    if active[w] == 0:
        return
    f = -points.attachment_stiffness[row(points.place, w, e)] * apart(points, x, u, w, e)
    for c in range(_CORNERS):
        force_out[corner(points.place, w, _CORNERS * e + c)] = points.attachment_weight[e][c] * f


@wp.kernel(enable_backward=False)
def stiffness_kernel(
    # model
    points: AttachmentArrays,
    # state
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    block_out: wp.array[NODE],
):
    """K += k w_k w_l."""
    w, e = wp.tid()
    k = points.attachment_stiffness[row(points.place, w, e)]
    for c in range(_CORNERS):
        for d in range(_CORNERS):
            for b in range(3):
                t = _vec()
                t[b] = k * points.attachment_weight[e][c] * points.attachment_weight[e][d]
                p = _CORNERS * (_CORNERS * e + c) + d
                add_block(points.place, w, p, b, t, block_out)


def _blocks(mesh: object) -> np.ndarray:
    """K w w^T."""
    v = mesh.attachment_weight
    return mesh.attachment_stiffness[:, None, None] * v[:, :, None] * v[:, None, :]


ATTACHMENTS = Kind(
    name="attachments",
    arrays=AttachmentArrays,
    node=_nodes,
    constant={"attachment_weight": _weights},
    blocks=_blocks,
    scaling=scaling_kernel,
    forces=forces_by(force_kernel),
    energy=energy_by(energy_kernel),
    stiffness=stiffness_by(stiffness_kernel),
)
"""Points at which soft bodies are attached to one another."""


def attached(
    scene: Scene, x: np.ndarray, bodies: dict[str, tuple], stiffness: Callable[[str, str], float], reach: float
) -> dict:
    """Fields of `Mesh` for attachments.

    Args:
        scene: The scene.
        x: Nodes at rest [m], shape (n_nodes, 3).
        bodies: Nodes of the tetrahedra, of the faces and of the bars of each soft body by its name.
        stiffness: Function of the names of two bodies: stiffness of an element of their stiffest matter [N/m].
        reach: How far matter may be from where it is attached [m].

    Raises:
        SceneError: There is no matter of a body where it is attached.
    """
    rows, weights, hard = [np.zeros((0, _CORNERS), dtype=int)], [np.zeros((0, _CORNERS))], [np.zeros(0)]
    for part in scene.attachments:
        for point in np.array(part.points):
            (first, v), (second, w) = (_nearest(part, b, point, x, bodies[b], reach) for b in (part.first, part.second))
            rows.append(np.concatenate([first, second])[None])
            weights.append(np.concatenate([v, -w])[None])
        hard.append(np.full(len(part.points), _HARD * stiffness(part.first, part.second)))
    return {
        "attachments": np.concatenate(rows),
        "attachment_weight": np.concatenate(weights),
        "attachment_stiffness": np.concatenate(hard),
    }


def _nearest(
    part: Attachment, name: str, point: np.ndarray, x: np.ndarray, tables: tuple, reach: float
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the matter of a body that is nearest to a point, each of shape (4,)."""
    tets, faces, bars = tables
    if len(tets):
        corners = x[tets]
        edges = np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2)
        share = np.linalg.solve(edges, (point - corners[:, 0])[:, :, None])[:, :, 0]
        share = np.concatenate([1.0 - share.sum(axis=1, keepdims=True), share], axis=1)
        e = int(share.min(axis=1).argmax())
        if share[e].min() >= -1e-9:
            return tets[e], share[e]
    node, weight, distance = _on_faces(point, x, faces) if len(faces) else _at_joint(point, x, bars)
    if distance > reach:
        raise SceneError(
            f"Attachment {part.name!r}: its point {point.tolist()} m is {distance:.4g} m away from SoftBody {name!r}; "
            f"move it onto the body (within {reach:.4g} m)"
        )
    return node, weight


def _on_faces(point: np.ndarray, x: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """The nearest point of a surface: nodes, weights and distance."""
    import trimesh

    there = trimesh.triangles.closest_point(x[faces], np.tile(point, (len(faces), 1)))
    distance = np.linalg.norm(there - point, axis=1)
    f = int(distance.argmin())
    weight = trimesh.triangles.points_to_barycentric(x[faces[[f]]], there[[f]])[0]
    return np.append(faces[f], faces[f, 0]), np.append(weight, 0.0), float(distance[f])


def _at_joint(point: np.ndarray, x: np.ndarray, bars: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """The nearest joint of a truss."""
    joints = np.unique(bars)
    distance = np.linalg.norm(x[joints] - point, axis=1)
    i = int(distance.argmin())
    return np.full(4, joints[i]), np.array([1.0, 0.0, 0.0, 0.0]), float(distance[i])
