"""Trusses: bars between joints."""

import numpy as np

from warpbots.scene.record import SceneError, record
from warpbots.scene.shapes.field_checks import assign, finite_array

__all__ = ["Truss"]


@record
class Truss:
    """Straight round bars (strips in 2D) connected by frictionless pin joints.

    In a mass-spring solver each bar is one spring of stiffness E A / L between two masses, with Young's modulus E, the
    cross-section A and the length L. In a continuum solver the truss is the set of all points within `radius` of the
    axis of a bar, and its joints are rigid.

    Attributes:
        joints: Positions of the joints [m], shape (n_joints, dim).
        bars: Indices of the two joints of each bar, shape (n_bars, 2).
        radius: Radius of the bars, in 2D half the width of the strips [m]: a single number, or one number for each bar,
            shape (n_bars,).

    Raises:
        SceneError: A bar refers to a joint that does not exist, a bar joins a joint with itself, two bars join the same
            joints, two joints coincide, a joint has no bar, or a radius is not positive.
    """

    joints: np.ndarray
    bars: np.ndarray
    radius: float | np.ndarray

    def __post_init__(self):
        joints = finite_array(self.joints, "Truss.joints", 2)
        bars = finite_array(self.bars, "Truss.bars", 2, np.int64)
        n = len(joints)
        if joints.shape[1] not in (2, 3) or bars.shape[1] != 2:
            raise SceneError(
                f"Truss needs joints of shape (n, 2) or (n, 3) and bars of shape (m, 2), got {joints.shape} and "
                f"{bars.shape}"
            )
        if bars.min() < 0 or bars.max() >= n:
            raise SceneError(f"Truss.bars must join joints 0 to {n - 1}, got {bars.min()} to {bars.max()}")
        _refuse_doubles(joints, bars)
        radius = np.asarray(self.radius, dtype=np.float64)
        if radius.shape not in ((), (len(bars),)):
            raise SceneError(f"Truss.radius must be one number or {len(bars)}, one for each bar, got {radius.shape}")
        radius = finite_array(np.broadcast_to(radius, len(bars)), "Truss.radius", 1)
        if radius.min() <= 0.0:
            raise SceneError(f"Truss.radius must be positive [m], got {radius.min():g} for bar {int(radius.argmin())}")
        assign(self, joints=joints, bars=bars, radius=radius)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner [m], each of shape (dim,)."""
        ends, r = self.joints[self.bars], self.radius[:, None, None]
        return (ends - r).min(axis=(0, 1)), (ends + r).max(axis=(0, 1))

    @property
    def length(self) -> np.ndarray:
        """Length of each bar, between its two joints [m], shape (n_bars,)."""
        return np.linalg.norm(self.joints[self.bars[:, 1]] - self.joints[self.bars[:, 0]], axis=1)

    @property
    def section(self) -> np.ndarray:
        """Cross-section of each bar [m^(dim - 1)], shape (n_bars,)."""
        return 2.0 * self.radius if self.joints.shape[1] == 2 else np.pi * self.radius**2


def _refuse_doubles(joints: np.ndarray, bars: np.ndarray) -> None:
    """Raise an error if joints or bars coincide, or if a joint has no bar."""
    _, first, count = np.unique(joints, axis=0, return_index=True, return_counts=True)
    if (count > 1).any():
        a = int(first[count > 1][0])
        b = int(np.flatnonzero((joints == joints[a]).all(axis=1))[1])
        raise SceneError(f"Truss: the joints {a} and {b} are both at {joints[a].tolist()} m; make them one")
    if (bars[:, 0] == bars[:, 1]).any():
        bar = int(np.flatnonzero(bars[:, 0] == bars[:, 1])[0])
        raise SceneError(f"Truss: bar {bar} joins joint {bars[bar, 0]} with itself; it has no direction")
    pairs, first, count = np.unique(np.sort(bars, axis=1), axis=0, return_index=True, return_counts=True)
    if len(pairs) < len(bars):
        bar = int(first[count > 1][0])
        raise SceneError(f"Truss: two bars join the joints {bars[bar].tolist()}; make them one of a larger radius")
    loose = np.setdiff1d(np.arange(len(joints)), bars)
    if len(loose):
        raise SceneError(f"Truss: joint {loose[0]} at {joints[loose[0]].tolist()} m has no bar; remove it")
