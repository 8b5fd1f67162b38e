"""Attachments of soft bodies: points of two bodies that stay together.

An attachment point is in an element of each body. With the weights w_k of the point for the corners of both elements,
positive for the first body and negative for the second,

    y = sum_k w_k x_k,   E = k/2 |y|^2.

The spring is linear, so that its contribution k w_k w_l to the matrix of the global step equals its second derivative:
however stiff it is, it does not slow the iteration.
"""

from collections.abc import Callable

import numpy as np
import warp as wp

from warpbots.numerics import real
from warpbots.scene import Attachment, Scene, SceneError
from warpbots.solvers.projective.elements.element import row
from warpbots.solvers.projective.elements.generator.energy import Energy, one
from warpbots.solvers.projective.elements.generator.family import Family, rows
from warpbots.solvers.projective.elements.generator.kinds import all_of, element_kind

__all__ = ["ATTACHMENTS", "attached"]

_CORNERS = 8
_line, _weights = rows(3, 1), rows(_CORNERS, 1)
_HARD = 100.0
"""Stiffness of an attachment, relative to an element of the stiffest matter of both bodies."""


@wp.func
def density(F: _line, k: real, s: real):
    """k/2 |y|^2."""
    return real(0.5) * k * wp.ddot(F, F)


@wp.func
def stress(F: _line, k: real, s: real):
    """k y."""
    return k * F


def _numbers_of(AttachmentArrays: type) -> wp.Function:
    @wp.func
    def numbers(points: AttachmentArrays, control: wp.array2d[real], w: int, e: int):
        """k [N/m], for a volume of 1; the second number is unused."""
        return points.attachment_stiffness[row(points.place, w, e)], real(0.0)

    return numbers


_CONSTANT = {"attachment_weight": _weights}
_FAMILY = Family("attachments", _CORNERS, 1, {"attachment_stiffness": real} | _CONSTANT, _numbers_of, columns=1)
_AttachmentArrays = _FAMILY.arrays


@wp.kernel(module=_FAMILY.module())
def rest_kernel(
    # out
    points_out: _AttachmentArrays,
):
    """Write the gradients G = w, and a volume of 1."""
    w, e = wp.tid()
    r = row(points_out.place, w, e)
    points_out.gradient[r] = points_out.attachment_weight[e]
    points_out.volume[r] = real(1.0)


def _rest(points: object, model: object, _control: wp.array) -> list[tuple]:
    return [(rest_kernel, (model.worlds, points.place.count), [points])]


def _blocks(mesh: object) -> np.ndarray:
    """k w w^T."""
    v = mesh.attachment_weight
    return mesh.attachment_stiffness[:, None, None] * v[:, :, None] * v[:, None, :]


ATTACHMENTS = element_kind(
    _FAMILY, one, _rest, all_of(Energy("bond", density, stress, one)), blocks=_blocks, constant=_CONSTANT,
)  # fmt: skip
"""Points at which soft bodies are attached to one another."""


def attached(
    scene: Scene, x: np.ndarray, bodies: dict[str, tuple], stiffness: Callable[[str, str], float], reach: float
) -> dict:
    """Fields of `Mesh` for attachments.

    Args:
        scene: The scene.
        x: Nodes at rest [m], shape (n_nodes, 3).
        bodies: Nodes of the tetrahedra, of the faces and of the bars of each soft body, by the name of the body.
        stiffness: Function of the names of two bodies: stiffness of an element of the stiffest material in either body
            [N/m].
        reach: Largest distance of matter from its attachment point [m].

    Raises:
        SceneError: A body has no matter within `reach` of its attachment point.
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
    """Nodes and weights of the point of a body that is nearest to `point`, each of shape (4,)."""
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
    """Nodes, weights and distance of the point of a surface that is nearest to `point`."""
    import trimesh

    there = trimesh.triangles.closest_point(x[faces], np.tile(point, (len(faces), 1)))
    distance = np.linalg.norm(there - point, axis=1)
    f = int(distance.argmin())
    weight = trimesh.triangles.points_to_barycentric(x[faces[[f]]], there[[f]])[0]
    return np.append(faces[f], faces[f, 0]), np.append(weight, 0.0), float(distance[f])


def _at_joint(point: np.ndarray, x: np.ndarray, bars: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Nodes, weights and distance of the joint of a truss that is nearest to `point`."""
    joints = np.unique(bars)
    distance = np.linalg.norm(x[joints] - point, axis=1)
    i = int(distance.argmin())
    return np.full(4, joints[i]), np.array([1.0, 0.0, 0.0, 0.0]), float(distance[i])
