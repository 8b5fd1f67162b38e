"""Converts between MuJoCo's quaternions (w, x, y, z) and rotation matrices."""

import numpy as np

__all__ = ["matrices", "matrix", "quaternion"]


def matrix(quaternion: np.ndarray) -> np.ndarray:
    """Rotation matrix of a quaternion of MuJoCo (w, x, y, z)."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_quat(np.roll(quaternion, -1)).as_matrix()


def matrices(quaternions: np.ndarray) -> np.ndarray:
    """Rotation matrices, shape (n, 3, 3), of quaternions (w, x, y, z), shape (n, 4)."""
    return np.array([matrix(q) for q in quaternions]).reshape(-1, 3, 3)


def quaternion(rotation: np.ndarray) -> np.ndarray:
    """Quaternion of MuJoCo (w, x, y, z) of a rotation matrix."""
    from scipy.spatial.transform import Rotation

    return np.roll(Rotation.from_matrix(rotation).as_quat(), 1)
