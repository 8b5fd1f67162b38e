"""Collects the moments of a trajectory that are shown, while the trajectory is simulated again."""

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from warpbots.quantities import ColorMap, point_values
from warpbots.scene import Scene
from warpbots.scene.field_types import shown
from warpbots.scene.motion_checks import changes_place
from warpbots.surfaces.skin import Skin, skins_of
from warpbots.trajectory import obstacles_at
from warpbots.view.camera import Camera
from warpbots.view.drawables import particles_of, placed
from warpbots.view.moving_obstacles import swept
from warpbots.view.palette import body_colors
from warpbots.view.rigid_bodies import BodyPoses, RigidSurface, outline, solids_of

if TYPE_CHECKING:
    from warpbots.trajectory import Trajectory

__all__ = ["Motion", "collect", "evenly", "goals_of"]

_MOMENTS = 12  # at which the camera looks at the surfaces


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
        skins: Skins of the bodies that have a skin, see `warpbots.surfaces.skin.skins_of`.
        obstacles: Displacements of the obstacles from their places in the scene, see `Trajectory.obstacle_poses`; the
            first axis of the arrays is n_frames. None if no obstacle changes its place.
        goals: Points that are marked, such as the goal of a task [m], shape (n, dim); None for none.
        values: Values of the particles that are shown as colours, shape (n_frames, n_particles); None for none.
        known: Whether each particle has such a value, shape (n_particles,), bool.
        color_map: Colours of the values.
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
    obstacles: BodyPoses | None = None
    goals: np.ndarray | None = None
    values: np.ndarray | None = None
    known: np.ndarray | None = None
    color_map: ColorMap | None = None

    def __len__(self) -> int:
        return len(self.time)

    def colors(self, frame: int) -> np.ndarray:
        """Red, green and blue of the particles in [0, 1] at a moment, shape (n_particles, 3).

        These are the colours of the values, or else of the bodies, whose regions show their control signals.
        """
        if self.values is None:
            return body_colors(self.scene, self.particles, self.control[frame])
        colors = body_colors(self.scene, self.particles)
        colors[self.known] = self.color_map.colors(self.values[frame][self.known])
        return colors

    def camera(self) -> Camera:
        """A fixed view of the whole motion."""
        stride = max(1, self.position[0].size * len(self) // 3_000_000)
        points = self.position[:, ::stride].reshape(-1, self.scene.dim)
        points = np.concatenate([points, outline(self.scene, self.solids, self.poses)])
        if self.goals is not None:
            points = np.concatenate([points, self.goals])
        moved = self.obstacles
        shapes = None if moved is None else swept(self.scene.obstacles, moved.position, moved.rotation)
        return Camera.around(self.scene, points, obstacles=shapes).containing(self._surfaces())

    def _surfaces(self) -> np.ndarray:
        """Vertices of all skins at some moments [m], shape (n, dim): the particles of coarse matter are well inside."""
        vertices = [np.empty((0, self.scene.dim))]
        for skin in self.skins:
            for position in self.position[evenly(len(self) - 1, _MOMENTS)]:
                at, torn = skin.points.at(position[skin.members])
                vertices.append(at[~torn])
        return np.concatenate(vertices)

    def pick(self, frames: np.ndarray) -> "Motion":
        """A motion with only the frames whose indices are in `frames`."""
        fields = {f: getattr(self, f)[frames] for f in ("step", "time", "position", "poses", "control")}
        optional = {f: getattr(self, f) for f in ("obstacles", "values")}
        optional = {f: None if value is None else value[frames] for f, value in optional.items()}
        return dataclasses.replace(self, **fields, **optional)


def evenly(steps: int, frames: int) -> np.ndarray:
    """At most `frames` moments of a motion with `steps` control intervals, as evenly spaced as possible.

    A moment is given by the number of control intervals from the start to the moment, from 0 to `steps`.

    Raises:
        ValueError: `frames` is below 2.
    """
    if frames < 2:
        raise ValueError(f"frames must be at least 2, the start and the end, got {frames}")
    return np.unique(np.round(np.linspace(0, steps, frames)).astype(int))


def goals_of(scene: Scene, goal: Any) -> np.ndarray | None:
    """The points of `goal` [m], shape (n, dim), from one point or several; None if it is None.

    Raises:
        ValueError: `goal` has the wrong shape, or is not finite.
    """
    if goal is None:
        return None
    goals = np.asarray(goal, dtype=np.float64)
    if goals.ndim not in (1, 2) or goals.shape[-1] != scene.dim or not np.isfinite(goals).all():
        raise ValueError(f"goal must be finite, of shape ({scene.dim},) or (n, {scene.dim}), got {shown(goal)}")
    return goals.reshape(-1, scene.dim)


def collect(
    trajectory: "Trajectory[Any]", steps: Iterable[int], world: int = 0, goal: "np.ndarray | None" = None,
    color: str | None = None,
) -> Motion:  # fmt: skip
    """Simulate a trajectory again, and collect the moments that `steps` states.

    Args:
        trajectory: The motion.
        steps: Number of control intervals from the start to each moment, in ascending order, between 0 and
            `trajectory.steps`.
        world: Index of the world.
        goal: Points that are marked [m], shape (dim,) or (n, dim); None for none.
        color: Quantity that the colours show, see `warpbots.quantities.point_values`; None for the colours of the
            bodies.

    Raises:
        ValueError: There is no such world, `goal` has the wrong shape or is not finite, or `color` is not the name of a
            quantity.
    """
    goals = goals_of(trajectory.scene, goal)
    worlds = trajectory.control.shape[0]
    if not 0 <= world < worlds:
        raise ValueError(f"world must be in 0 to {worlds - 1}, got {world}")
    shown = None if color is None else point_values(trajectory, color, "view", world)
    step = np.array(list(steps), dtype=int)
    wanted, moments, obstacles, values = set(step.tolist()), [], [], []
    scene = trajectory.scene
    moves = any(changes_place(o, scene.actuators) for o in scene.obstacles)
    for i, (t, state) in enumerate(trajectory.states()):
        if i in wanted:
            x, poses = placed(trajectory.simulation, state, world, **trajectory.parameters)
            moments.append((t, x.astype(np.float32), poses.position, poses.rotation))
            if shown is not None:
                values.append(shown.at(t, state))
            if moves:
                obstacles.append(obstacles_at(trajectory.simulation, state, world, **trajectory.parameters))
        if i == step[-1]:
            break
    time, position, *poses = (np.stack(values) for values in zip(*moments, strict=True))
    control = trajectory.control[world].detach().cpu().numpy()
    matter = particles_of(trajectory.simulation)
    particles, colored = matter.drawn, {}
    if shown is not None:
        columns = np.stack([*values, shown.known.astype(float)], axis=-1)
        *drawn, known = matter.drawn_at(columns).T
        colored = {"values": np.array(drawn), "known": known > 0.5, "color_map": shown.spanning(values).color_map}
    return Motion(
        scene=scene,
        particles=particles,
        solids=solids_of(scene),
        step=step,
        time=time,
        position=position,
        poses=BodyPoses(*poses),
        control=control[np.maximum(step - 1, 0)],
        skins=skins_of(scene, particles),
        obstacles=BodyPoses(*map(np.stack, zip(*obstacles, strict=True))) if moves else None,
        goals=goals,
        **colored,
    )
