"""Kinematics of single joints: poses from joint coordinates and back, as matrices of shape (4, 4) [m]."""

import numpy as np

from warpbots.scene import JOINTS, Joint
from warpbots.usd.stage.transforms import inverse, matrix_of, quaternion_matrix

__all__ = ["carried", "displacement", "misfit", "solve", "start_coordinates"]


def _rotation_about(axis: np.ndarray, angle: float) -> np.ndarray:
    """Rotation by an angle [rad] about a unit axis, shape (3, 3)."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K)


def displacement(kind: str, axis: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
    """Pose of the moving side of a joint in its frame at the given coordinates."""
    q = np.asarray(coordinates, dtype=np.float64)
    if kind == "revolute":
        return matrix_of(_rotation_about(axis, q[0]), np.zeros(3))
    if kind == "prismatic":
        return matrix_of(np.eye(3), q[0] * np.asarray(axis))
    if kind == "planar":
        return matrix_of(np.eye(3), [q[0], q[1], 0.0])
    if kind == "translational":
        return matrix_of(np.eye(3), q)
    if kind == "free_2d":
        return matrix_of(_rotation_about(np.array([0.0, 0.0, 1.0]), q[2]), [q[0], q[1], 0.0])
    if kind == "ball":
        return matrix_of(quaternion_matrix(*q), np.zeros(3))
    if kind == "free":
        return matrix_of(quaternion_matrix(*q[3:]), q[:3])
    return np.eye(4)


def solve(kind: str, axis: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Coordinates at which the displacement of a joint is closest to `target`."""
    R, p = target[:3, :3], target[:3, 3]
    if kind == "revolute":
        sine = 0.5 * np.dot(axis, [R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
        cosine = 0.5 * (np.trace(R) - axis @ R @ axis)
        return np.array([np.arctan2(sine, cosine)])
    if kind == "prismatic":
        return np.array([np.dot(axis, p)])
    if kind == "planar":
        return p[:2]
    if kind == "translational":
        return p
    if kind == "free_2d":
        return np.array([p[0], p[1], np.arctan2(R[1, 0] - R[0, 1], R[0, 0] + R[1, 1])])
    if kind in ("ball", "free"):
        from scipy.spatial.transform import Rotation

        turned = Rotation.from_matrix(R).as_quat(canonical=True)
        return turned if kind == "ball" else np.concatenate([p, turned])
    return np.zeros(0)


def misfit(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Distance [m] and angle [rad] between two poses."""
    cosine = 0.5 * (np.trace(a[:3, :3].T @ b[:3, :3]) - 1.0)
    sine = 0.5 * np.linalg.norm((a[:3, :3].T @ b[:3, :3]) - (b[:3, :3].T @ a[:3, :3])) / np.sqrt(2.0)
    return float(np.linalg.norm(a[:3, 3] - b[:3, 3])), float(np.arctan2(sine, cosine))


def carried(joint: Joint, rest: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
    """Pose at the given coordinates of what has the pose `rest` at zero, if the parent has not moved."""
    frame = matrix_of(joint.rotation, joint.position)
    return frame @ displacement(joint.kind, np.array(joint.axis), coordinates) @ inverse(frame) @ rest


def start_coordinates(joint: Joint) -> np.ndarray:
    """Coordinates q of a joint at time 0; quaternions (x, y, z, w)."""
    result = np.zeros(JOINTS[joint.kind][1])
    if joint.kind in ("ball", "free"):
        result[-1] = 1.0
    return result if joint.start is None else np.array(joint.start)
