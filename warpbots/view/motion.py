"""Collects the moments of a trajectory that are shown, while the trajectory is simulated again."""

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from warpbots.scene import Scene
from warpbots.view.camera import Camera
from warpbots.view.drawables import particles_of, placed
from warpbots.view.rigid_bodies import BodyPoses, RigidSurface, outline, solids_of
from warpbots.view.skin import Skin, skins_of

if TYPE_CHECKING:
    from warpbots.trajectory import Trajectory

__all__ = ["Motion", "collect", "evenly"]


@dataclasses.dataclass(frozen=True)
class Motion:
    """Some moments (frames) of the motion of one world.

    Attributes:
        scene: The scene that moves.
        particles: All soft matter at rest, in the form that is drawn.
        solids: Surfaces of all rigid bodies.
        step: Number of control intervals from the start to each moment, shape (n_frames,).
        time: Time of each moment [s], shape (n_frames,).
        position: Positions of the particles [m], shape (n_frames, n_particles, dim), float32.
        poses: Poses of the rigid bodies; the first axis of the arrays is n_frames.
        control: Control signal of the control interval that ends at each moment, shape (n_frames, channels); for the
            moment at the start, the signal of the first interval.
        skins: Skins of the bodies that have a skin, see `warpbots.view.skin.skins_of`.
    """

    scene: Scene
    particles: object
    solids: tuple[RigidSurface, ...]
    step: np.ndarray
    time: np.ndarray
    position: np.ndarray
    poses: BodyPoses
    control: np.ndarray
    skins: tuple[Skin, ...] = ()

    def __len__(self) -> int:
        return len(self.time)

    def camera(self) -> Camera:
        """A fixed view of the whole motion."""
        stride = max(1, self.position[0].size * len(self) // 3_000_000)
        points = self.position[:, ::stride].reshape(-1, self.scene.dim)
        return Camera.around(self.scene, np.concatenate([points, outline(self.scene, self.solids, self.poses)]))

    def pick(self, frames: np.ndarray) -> "Motion":
        """A motion with only the frames whose indices are in `frames`."""
        fields = {f: getattr(self, f)[frames] for f in ("step", "time", "position", "poses", "control")}
        return dataclasses.replace(self, **fields)


def evenly(steps: int, frames: int) -> np.ndarray:
    """At most `frames` moments of a motion with `steps` control intervals, as evenly spaced as possible.

    A moment is given by the number of control intervals from the start to the moment, from 0 to `steps`.

    Raises:
        ValueError: `frames` is below 2.
    """
    if frames < 2:
        raise ValueError(f"frames must be at least 2, the start and the end, got {frames}")
    return np.unique(np.round(np.linspace(0, steps, frames)).astype(int))


def collect(trajectory: "Trajectory[Any]", steps: Iterable[int], world: int = 0) -> Motion:
    """Simulate a trajectory again, and collect the moments that `steps` states.

    Args:
        trajectory: The motion.
        steps: Number of control intervals from the start to each moment, in ascending order, between 0 and
            `trajectory.steps`.
        world: Index of the world.

    Raises:
        ValueError: There is no such world.
    """
    worlds = trajectory.control.shape[0]
    if not 0 <= world < worlds:
        raise ValueError(f"world must be in 0 to {worlds - 1}, got {world}")
    step = np.array(list(steps), dtype=int)
    wanted, moments = set(step.tolist()), []
    for i, (t, state) in enumerate(trajectory.states()):
        if i in wanted:
            x, poses = placed(trajectory.simulation, state, world, **trajectory.parameters)
            moments.append((t, x.astype(np.float32), poses.position, poses.rotation))
        if i == step[-1]:
            break
    time, position, *poses = (np.stack(values) for values in zip(*moments, strict=True))
    control = trajectory.control[world].detach().cpu().numpy()
    particles = particles_of(trajectory.simulation).drawn
    return Motion(
        scene=trajectory.scene,
        particles=particles,
        solids=solids_of(trajectory.scene),
        step=step,
        time=time,
        position=position,
        poses=BodyPoses(*poses),
        control=control[np.maximum(step - 1, 0)],
        skins=skins_of(trajectory.scene, particles),
    )
