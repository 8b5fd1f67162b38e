"""Transforms as matrices of shape (4, 4), whose columns are the axes and the origin: p' = M p."""

import numpy as np

from warpbots.scene import SceneError

__all__ = [
    "inverse", "matrix_of", "pose_of", "quaternion_matrix", "rigid", "rotation", "snap", "tidy", "transform",
]  # fmt: skip


def snap(matrix: np.ndarray) -> np.ndarray:
    """`matrix` with entries within 1e-12 of an integer rounded to it.

    Rotations by right angles and products of a matrix with its inverse leave rounding errors. Their removal
    keeps shapes that are aligned with the axes aligned to the last bit.
    """
    whole = np.rint(matrix)
    return np.where(np.abs(matrix - whole) < 1e-12, whole, matrix)


def tidy(point: np.ndarray) -> np.ndarray:
    """`point` rounded to 15 digits, so that a corner computed from centre and width is at 0.1 again, not next to it."""
    largest = float(np.abs(point).max())
    return point if largest == 0.0 else np.round(point, 14 - int(np.floor(np.log10(largest))))


def rotation(matrix: np.ndarray) -> np.ndarray:
    """Orthogonal part, shape (3, 3), of the transform `matrix`, which may scale but must not shear."""
    linear = matrix[:3, :3]
    return snap(linear / np.linalg.norm(linear, axis=0))


def rigid(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Rotation (3, 3), translation (3,) and scale of the similarity `matrix`.

    Raises:
        SceneError: The transform mirrors, shears, or scales the axes differently.
    """
    linear = matrix[:3, :3]
    scale = float(np.cbrt(np.linalg.det(linear)))
    if abs(scale - 1.0) < 1e-9:
        scale = 1.0  # the rounding of its determinant would spoil an exact rotation
    if scale <= 0.0 or not np.allclose(linear @ linear.T, scale**2 * np.eye(3), atol=1e-6 * scale**2):
        raise SceneError(
            f"its transform must consist of rotation, translation and uniform scale, got {linear.tolist()}"
        )
    return linear / scale, matrix[:3, 3], scale


def transform(matrix: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points of shape (n, 3) transformed by `matrix`; unchanged to the last bit if `matrix` is the identity."""
    if np.array_equal(matrix, np.eye(4)):
        return points
    return points @ matrix[:3, :3].T + matrix[:3, 3]


def matrix_of(rotation: object, position: object) -> np.ndarray:
    """The matrix of a rotation followed by a translation, shape (4, 4)."""
    result = np.eye(4)
    result[:3, :3], result[:3, 3] = rotation, position
    return result


def inverse(pose: np.ndarray) -> np.ndarray:
    """Inverse of the rigid transform `pose`, shape (4, 4)."""
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


def pose_of(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pose of the frame of a prim, and the remaining part of its transform: scale, mirroring and shear.

    Args:
        matrix: Transform from local coordinates of the prim to scene coordinates [m], shape (4, 4).

    Returns:
        The pose (a rotation and a translation), and the transform from local coordinates to the frame with this pose,
        both of shape (4, 4). A mirroring transform mirrors along all three axes, as in UsdPhysics.
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
