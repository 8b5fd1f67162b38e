"""Kinematics of single joints: converts joint coordinates to poses and back; poses are matrices [m], shape (4, 4)."""

import functools
from collections.abc import Callable

import numpy as np

from warpbots.scene import JOINTS, ElementaryJoint, Joint
from warpbots.usd.stage.transforms import inverse, matrix_of, quaternion_matrix

__all__ = ["carried", "closest", "displacement", "misfit", "solve", "start_coordinates"]


def _rotation_about(axis: np.ndarray, angle: float) -> np.ndarray:
    """Rotation by an angle [rad] about a unit axis, shape (3, 3)."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K)


def displacement(kind: str, axis: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
    """Pose of the moving frame of a joint in its fixed frame at the given coordinates."""
    q, pose, first = np.asarray(coordinates, dtype=np.float64), np.eye(4), 0
    for part in JOINTS[kind].chain:
        own, direction = q[first : first + part.coordinates], part.direction(axis)
        first += part.coordinates
        if part.type == "prismatic":
            pose = pose @ matrix_of(np.eye(3), own[0] * direction)
        else:
            R = _rotation_about(direction, own[0]) if part.type == "revolute" else quaternion_matrix(*own)
            pose = pose @ matrix_of(R, np.zeros(3))
    return pose


def solve(kind: str, axis: np.ndarray, target: np.ndarray, guess: np.ndarray | None = None) -> np.ndarray:
    """Coordinates at which the displacement of a joint is closest to `target`.

    Kinds with orthogonal translations before one rotation have a closed-form solution; all other kinds are solved by
    least squares, from the coordinates `guess`, or from zero if `guess` is None.
    """
    chain = JOINTS[kind].chain
    turns = [part for part in chain if part.type != "prismatic"]
    directions = np.array([part.direction(axis) for part in chain if part.type == "prismatic"]).reshape(-1, 3)
    if len(turns) > 1 or turns != list(chain[len(directions) :]) or np.any(np.triu(directions @ directions.T, 1)):
        begin = JOINTS[kind].zero if guess is None else guess
        q = closest(functools.partial(displacement, kind, axis), target, begin)
        if JOINTS[kind].ball:
            q[-4:] /= np.linalg.norm(q[-4:])
        return q
    q = directions @ target[:3, 3]
    return np.concatenate([q, *(_rotation_coordinates(part, axis, target[:3, :3]) for part in turns)])


def _rotation_coordinates(part: ElementaryJoint, axis: np.ndarray, R: np.ndarray) -> np.ndarray:
    """The angle about an axis, or the quaternion, whose rotation is closest to the rotation matrix `R`."""
    if part.type == "ball":
        from scipy.spatial.transform import Rotation

        return Rotation.from_matrix(R).as_quat(canonical=True)
    n = part.direction(axis)
    sine = 0.5 * np.dot(n, [R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    cosine = 0.5 * (np.trace(R) - n @ R @ n)
    return np.array([np.arctan2(sine, cosine)])


def closest(pose: Callable[[np.ndarray], np.ndarray], target: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Coordinates at which `pose` is closest to `target`, by least squares of the entries, searched from `start`.

    Args:
        pose: Function from coordinates, shape (n,), to a pose, shape (4, 4).
        target: A pose, shape (4, 4).
        start: Coordinates at which the search begins, shape (n,).
    """
    from scipy.optimize import least_squares

    def error(q: np.ndarray) -> np.ndarray:
        return (pose(q) - target)[:3].ravel()

    return least_squares(error, start, xtol=1e-15, ftol=1e-15, gtol=1e-15).x


def misfit(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Distance [m] and angle [rad] between two poses."""
    cosine = 0.5 * (np.trace(a[:3, :3].T @ b[:3, :3]) - 1.0)
    sine = 0.5 * np.linalg.norm((a[:3, :3].T @ b[:3, :3]) - (b[:3, :3].T @ a[:3, :3])) / np.sqrt(2.0)
    return float(np.linalg.norm(a[:3, 3] - b[:3, 3])), float(np.arctan2(sine, cosine))


def carried(joint: Joint, rest: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
    """Pose of the child of `joint` at the given coordinates.

    The parent does not move; `rest` is the pose of the child at zero coordinates.
    """
    frame = matrix_of(joint.rotation, joint.position)
    return frame @ displacement(joint.kind, np.array(joint.axis), coordinates) @ inverse(frame) @ rest


def start_coordinates(joint: Joint) -> np.ndarray:
    """Coordinates q of a joint at time 0; quaternions (x, y, z, w)."""
    return JOINTS[joint.kind].zero if joint.start is None else np.array(joint.start)
