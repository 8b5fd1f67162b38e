"""Blocks of joints: ranges of joint velocities that neither joints nor soft matter connect, on the host.

The system for the joints in a global step, and its inverse, have no entries outside of these blocks (`handles`). So the
cost of rigid bodies without flesh grows with their number, and not with its square or cube.
"""

import dataclasses

import numpy as np

from warpbots.solvers.projective.components import Components

__all__ = ["JointBlocks", "joint_blocks_of"]


@dataclasses.dataclass(frozen=True)
class JointBlocks:
    """Blocks of the joint velocities of one world.

    Attributes:
        first: First joint velocity of each block, and the end of the last, shape (blocks + 1,), int.
        of_point: Block that moves each node and vertex of a bone surface, -1 for none, shape (n,), int.
        of_bone: Block that moves each bone, -1 for a bone that does not move, shape (n_bones,), int.
    """

    first: np.ndarray
    of_point: np.ndarray
    of_bone: np.ndarray

    def __len__(self) -> int:
        return len(self.first) - 1

    @property
    def _size(self) -> np.ndarray:
        return np.diff(self.first)

    @property
    def of_joint(self) -> np.ndarray:
        """Block of each joint velocity, shape (freedom,), int."""
        return np.repeat(np.arange(len(self)), self._size)

    @property
    def entry(self) -> np.ndarray:
        """First entry of each block in a matrix of blocks, and the end of the last, shape (blocks + 1,), int."""
        return np.append(0, np.cumsum(self._size**2))

    @property
    def span(self) -> np.ndarray:
        """First velocity, and end, of the block of each bone; 0 for a bone that does not move, shape (n_bones, 2)."""
        ranges = np.append(np.stack([self.first[:-1], self.first[1:]], axis=1), [[0, 0]], axis=0)
        return ranges[self.of_bone]  # -1 is the last

    @property
    def slot(self) -> np.ndarray:
        """First derivative of the four handles of each bone, and the end of the last, shape (n_bones + 1,), int."""
        return np.append(0, np.cumsum(4 * np.diff(self.span, axis=1)))

    @property
    def widest(self) -> int:
        """Largest number of joint velocities that move the two sides of a contact."""
        return int(np.sort(self._size)[-2:].sum())


def joint_blocks_of(of_joint: np.ndarray, components: Components) -> JointBlocks:
    """Find the smallest blocks; a block has the joints of one component, or of several whose ranges overlap.

    Args:
        of_joint: Component of each joint velocity, shape (freedom,), int.
        components: Components of the scene.
    """
    last, number = np.zeros(len(components), dtype=int), np.arange(len(of_joint))
    last[of_joint] = number  # of several equal indices, NumPy assigns the last
    ends = np.flatnonzero(np.maximum.accumulate(last[of_joint]) == number) + 1
    first = np.append(0, ends)
    of_component = np.full(len(components), -1)
    of_component[of_joint] = np.searchsorted(ends, number, side="right")
    return JointBlocks(first, of_component[components.of], of_component[components.bones])
