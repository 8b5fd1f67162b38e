"""Poses of rigid bodies and what joints do to them, as matrices of shape (4, 4) in scene coordinates [m]."""

import numpy as np

from warpbots.scene import Joint

__all__ = [
    "carried", "displacement", "inverse", "matrix_of", "misfit", "pose_of", "quaternion_matrix", "solve", "turn",
]  # fmt: skip


def matrix_of(rotation: object, position: object) -> np.ndarray:
    """The matrix that rotates and then moves."""
    result = np.eye(4)
    result[:3, :3], result[:3, 3] = rotation, position
    return result


def inverse(pose: np.ndarray) -> np.ndarray:
    """Inverse of a rotation with a translation."""
    R = pose[:3, :3]
    return matrix_of(R.T, -R.T @ pose[:3, 3])


def quaternion_matrix(x: float, y: float, z: float, w: float) -> np.ndarray:
    """Rotation matrix of a quaternion, which need not have length 1; the identity for the zero quaternion."""
    n = x * x + y * y + z * z + w * w
    if n == 0.0:
        return np.eye(3)
    s = 2.0 / n
    return np.array(
        [
            [1.0 - s * (y * y + z * z), s * (x * y - z * w), s * (x * z + y * w)],
            [s * (x * y + z * w), 1.0 - s * (x * x + z * z), s * (y * z - x * w)],
            [s * (x * z - y * w), s * (y * z + x * w), 1.0 - s * (x * x + y * y)],
        ]
    )


def turn(axis: np.ndarray, angle: float) -> np.ndarray:
    """Rotation by an angle [rad] about a unit axis, shape (3, 3)."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K)


def pose_of(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pose of the frame of a prim and what is left of its transform: scale, mirror and shear.

    Args:
        matrix: Local coordinates of the prim to scene coordinates [m], shape (4, 4).

    Returns:
        A rotation with a translation, and the transform from local coordinates to that frame, both of shape (4, 4).
        What mirrors does so along all three axes, as UsdPhysics has it.
    """
    linear = matrix[:3, :3]
    lengths = np.linalg.norm(linear, axis=0)
    sign = -1.0 if np.linalg.det(linear) < 0.0 else 1.0
    square = lengths.min() > 0.0 and np.allclose((linear / lengths).T @ (linear / lengths), np.eye(3), atol=1e-6)
    if square:
        R, rest = sign * linear / lengths, np.diag(sign * lengths)
    else:
        U, S, V = np.linalg.svd(sign * linear)
        R, rest = U @ V, sign * (V.T * S) @ V
    scale = np.eye(4)
    scale[:3, :3] = np.where(np.abs(rest - np.rint(rest)) < 1e-12, np.rint(rest), rest)
    return matrix_of(np.where(np.abs(R - np.rint(R)) < 1e-12, np.rint(R), R), matrix[:3, 3]), scale


def displacement(kind: str, axis: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
    """Pose of the moving side of a joint in its frame at some coordinates."""
    q = np.asarray(coordinates, dtype=np.float64)
    if kind == "revolute":
        return matrix_of(turn(axis, q[0]), np.zeros(3))
    if kind == "prismatic":
        return matrix_of(np.eye(3), q[0] * np.asarray(axis))
    if kind == "planar":
        return matrix_of(np.eye(3), [q[0], q[1], 0.0])
    if kind == "translational":
        return matrix_of(np.eye(3), q)
    if kind == "free_2d":
        return matrix_of(turn(np.array([0.0, 0.0, 1.0]), q[2]), [q[0], q[1], 0.0])
    if kind == "ball":
        return matrix_of(quaternion_matrix(*q), np.zeros(3))
    if kind == "free":
        return matrix_of(quaternion_matrix(*q[3:]), q[:3])
    return np.eye(4)


def solve(kind: str, axis: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Coordinates at which a joint comes as near to the displacement `target` as it can."""
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
    """Where a joint at some coordinates puts what was at the pose `rest` at zero, if its parent has not moved."""
    frame = matrix_of(joint.rotation, joint.position)
    return frame @ displacement(joint.kind, np.array(joint.axis), coordinates) @ inverse(frame) @ rest
