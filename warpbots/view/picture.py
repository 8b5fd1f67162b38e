"""Pictures of a scene at one moment."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from warpbots.contact import signed_distance
from warpbots.quantities import cable_routes
from warpbots.scene import Scene, Shape, dimension
from warpbots.scene.field_types import checked
from warpbots.scene.motion_checks import changes_place
from warpbots.surfaces.clipped import surface
from warpbots.surfaces.ground_height import floor_height, is_floor
from warpbots.surfaces.skin import Skin, loose, skins_of
from warpbots.view.camera import Camera
from warpbots.view.drawables import NO_PARTICLES
from warpbots.view.figure_layout import axes_layout, refuse_no_axes, width_for
from warpbots.view.flat_matter import FlatMatter
from warpbots.view.floor_and_axes import draw_floor, draw_goals, draw_section, flat_axes
from warpbots.view.mesh_bodies import node_facets, node_meshes, skin_facets
from warpbots.view.motion import goals_of
from warpbots.view.moving_obstacles import at_start, displaced, room_of, swept
from warpbots.view.palette import GROUND, INK, QUIET, body_colors
from warpbots.view.raster import Canvas
from warpbots.view.rigid_bodies import BodyPoses, Facets, RigidSurface, facets, outline, poses_at_zero, solids_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SceneAxes", "draw", "radii"]

_RIGID = 3.2  # rigid bodies of a 2D scene are in front of soft ones
_COVER = {2: 1.28, 3: 1.22}  # balls are drawn larger than their volume, so that there are no gaps between them


@checked
def draw(
    scene: Scene,
    particles: object | None = None,
    position: np.ndarray | None = None,
    ax: "Axes | None" = None,
    *,
    poses: tuple[np.ndarray, np.ndarray] | None = None,
    control: np.ndarray | None = None,
    value: np.ndarray | None = None,
    label: str | None = None,
    time: float | None = None,
    camera: Camera | None = None,
    cut: Shape | None = None,
    obstacles: tuple[np.ndarray, np.ndarray] | None = None,
    goal: np.ndarray | Sequence[Any] | None = None,
) -> "Axes":
    """Draw a scene at one moment, in 2D or (in an orthographic view) in 3D.

    A soft body is drawn with a smooth skin: the surface (in 2D the border) of its shape, which moves with the
    particles. Where matter is torn, the particles themselves are drawn; in 2D at most 30,000 particles, chosen at
    random and enlarged. A `cut` shows the section through the matter: its skin or its mesh ends exactly at the cut.

    Args:
        scene: Bodies, obstacles and actuators.
        particles: All soft matter at rest, as in `Trajectory.matter` or the model of a solver; None for no matter.
        position: Positions of the particles [m], shape (n_particles, dim); None for the positions at rest.
        ax: Axes to draw on; None for a new figure.
        poses: Poses of the rigid bodies, as in `Trajectory.poses`: origins of the body frames [m], shape (n_bodies, 3),
            and matrices with the axes of these frames as columns, shape (n_bodies, 3, 3); None for all joints at zero.
        control: Control signal in [-1, 1], shape (channels,); regions with an actuator are red if they contract and
            blue if they expand. None for the colours of the bodies.
        value: A number for each particle, shape (n_particles,), which determines the colour of the particle. None for
            the colours of the bodies.
        label: Name and unit of `value`, for a colour bar.
        time: Time to show in the corner [s].
        camera: The view; None for a view that contains all points of `position`.
        cut: A shape, only in 3D. Soft matter that is inside this shape at rest is not drawn, so that bones become
            visible. None to draw all matter.
        obstacles: Displacements of the obstacles from their places in the scene, as in `Trajectory.obstacle_poses`:
            positions [m], shape (n_obstacles, 3), and rotations, shape (n_obstacles, 3, 3); None for those at time 0.
        goal: Points that are the goal of a task [m], shape (dim,) or (n, dim), which are marked; None for no marks.

    Returns:
        The axes.

    Raises:
        ValueError: `position`, `poses`, `control`, `value`, `obstacles` or `goal` has the wrong shape or is not
            finite, `label` is given without `value`, or `cut` is not a shape or is given in 2D.
    """
    if label is not None and value is None:
        raise ValueError(
            f"draw: label is the name of value, which is missing, got {label!r}; give value, or leave it out"
        )
    particles, solids = NO_PARTICLES if particles is None else particles, solids_of(scene)
    poses = poses_at_zero(scene) if poses is None else BodyPoses(*poses)
    position = particles.position if position is None else _checked(position, particles.position.shape, "position")
    if value is not None:
        value = particles.drawn_at(_checked(value, (len(particles.position),), "value")[:, None])[:, 0]
    particles, position = particles.drawn, particles.drawn_at(position)
    poses = _checked_poses(poses, len(solids), "poses")
    goals = goals_of(scene, goal)
    standing = BodyPoses(*(at_start(scene) if obstacles is None else obstacles))
    standing = _checked_poses(standing, len(scene.obstacles), "obstacles")
    if camera is None:
        shapes = swept(scene.obstacles, standing.position[None], standing.rotation[None])
        points = np.concatenate([position, outline(scene, solids, poses), *([] if goals is None else [goals])])
        camera = Camera.around(scene, points, obstacles=shapes)
    if ax is None:
        import matplotlib.pyplot as plt

        size, rectangles = axes_layout(camera, width_for(camera, 6.4))
        ax = plt.figure(figsize=size).add_axes(rectangles[0])
    refuse_no_axes(ax, "draw")
    stage = SceneAxes(scene, particles, camera, ax, solids, cut, goals=goals)
    stage.show(position, control, value, poses=poses, label=label, time=time, obstacles=standing)
    return ax


def _checked(array: np.ndarray, shape: tuple[int, ...], what: str) -> np.ndarray:
    """A NumPy array or torch tensor as a float64 array; raises if its shape is wrong or a number is not finite."""
    array = np.asarray(array.detach().cpu() if isinstance(array, torch.Tensor) else array, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"draw: {what} must have shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        bad = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"draw: {what} must be finite, got {array[bad]} at index {bad}")
    return array


def _checked_poses(poses: BodyPoses, count: int, what: str) -> BodyPoses:
    return BodyPoses(
        _checked(poses.position, (count, 3), f"{what}[0]"),
        _checked(poses.rotation, (count, 3, 3), f"{what}[1]"),
    )


def radii(particles: object) -> np.ndarray:
    """Radii of the balls (discs in 2D) that represent particles [m], shape (n_particles,).

    Together the balls cover the matter without gaps.
    """
    dim = particles.position.shape[1]
    volume = np.asarray(particles.volume)
    return _COVER[dim] * (np.sqrt(volume / np.pi) if dim == 2 else np.cbrt(3.0 * volume / (4.0 * np.pi)))


class SceneAxes:
    """Axes on which a scene is shown, one moment after another; fixed parts are drawn only once.

    Attributes:
        scene: The scene that is shown.
        particles: All soft matter at rest.
        camera: The view.
        ax: The matplotlib axes.
        solids: Surfaces of all rigid bodies.
    """

    def __init__(
        self,
        scene: Scene,
        particles: object,
        camera: Camera,
        ax: "Axes",
        solids: tuple[RigidSurface, ...] = (),
        cut: Shape | None = None,
        skins: tuple[Skin, ...] | None = None,
        goals: np.ndarray | None = None,
        named: bool = True,
    ):
        """Prepare the parts that do not move.

        Args:
            scene: The scene that is shown.
            particles: All soft matter at rest.
            camera: The view.
            ax: Axes to draw on.
            solids: Surfaces of all rigid bodies.
            cut: A shape; soft matter that is inside this shape at rest is not drawn, and the section is closed. None to
                draw all matter.
            skins: Result of `skins_of` for this `cut`; None if it must be computed.
            goals: Points that are marked [m], shape (n, dim); None for none.
            named: Whether the first of these marks is named.

        Raises:
            ValueError: There is a `cut` in 2D.
        """
        if cut is not None and not dimension(cut) == scene.dim == 3:
            raise ValueError(
                f"a cut opens bodies in 3D; this scene is {scene.dim}D and the cut, a {type(cut).__name__}, is "
                f"{dimension(cut)}D"
            )
        self.scene, self.particles, self.camera, self.ax, self.solids = (
            scene,
            particles,
            camera,
            ax,
            solids,
        )
        self._moving = []
        self._radius, self._loose = radii(particles), loose(particles, cut)
        self._outside = np.ones(len(particles.position), dtype=bool)
        self._meshes = node_meshes(scene, particles, cut) if scene.dim == 3 else []
        if cut is not None:
            self._outside = signed_distance(cut, particles.position) > 0.0
        self._skins = skins_of(scene, particles, cut) if skins is None else skins
        self._routes = cable_routes(scene, particles)
        self._floor = _floor_in_view(scene, camera)
        self._canvas: Canvas | None = None
        self._moves = [changes_place(o, scene.actuators) for o in scene.obstacles]
        (left, bottom), (right, top) = camera.window
        ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
        if scene.dim == 2:
            flat_axes(ax)
            self._flat = FlatMatter(ax, scene, particles, self._radius, self._skins)
            for obstacle, moves in zip(scene.obstacles, self._moves, strict=True):
                if not moves:
                    draw_section(ax, obstacle.shape, camera)
        else:
            draw_floor(ax, camera, solid=self._floor is not None)
        if goals is not None:
            draw_goals(ax, camera, goals, named)

    def show(
        self,
        position: np.ndarray,
        control: np.ndarray | None = None,
        value: np.ndarray | None = None,
        *,
        poses: BodyPoses | None = None,
        label: str | None = None,
        time: float | None = None,
        obstacles: BodyPoses | None = None,
        colors: np.ndarray | None = None,
    ) -> None:
        """Show another moment in place of the previous moment.

        The arguments are as for `draw`; `colors` are the colours of the particles that show values: red, green and blue
        in [0, 1], shape (n_particles, 3).
        """
        position = _checked(position, self.particles.position.shape, "position")
        poses = poses_at_zero(self.scene) if poses is None else poses
        if control is not None:
            control = _checked(control, (len(self.scene.actuators),), "control")
        while self._moving:
            self._moving.pop().remove()
        shows_values = colors is not None or value is not None
        colors = body_colors(self.scene, self.particles, control) if colors is None else colors
        if value is not None:
            colors = self._mapped(_checked(value, (len(position),), "value"), label)
        shapes = self._moved(BodyPoses(*at_start(self.scene)) if obstacles is None else obstacles)
        if self.scene.dim == 2:
            self._moving += [artist for shape in shapes for artist in draw_section(self.ax, shape, self.camera)]
            self._moving += self._flat.show(position, colors, shows_values)
            self._moving += self._sections(poses)
        else:
            self._moving += self._rendered(position, colors, poses, shapes)
        self._moving += self._cables(position, control)
        if time is not None:
            self._moving.append(
                self.ax.text(
                    0.015, 0.97, f"{time:.2f} s", transform=self.ax.transAxes, va="top", color=INK, fontsize=9, zorder=5
                )
            )

    def _mapped(self, value: np.ndarray, label: str | None) -> np.ndarray:
        from matplotlib.cm import ScalarMappable

        scale = ScalarMappable(cmap="viridis")
        scale.set_clim(value.min(), value.max())
        if label is not None:
            bar = self.ax.figure.colorbar(scale, ax=self.ax, shrink=0.7, pad=0.03, aspect=24)
            bar.outline.set_visible(False)
            bar.set_label(label, color=QUIET, fontsize=8)
            bar.ax.tick_params(color=QUIET, labelcolor=QUIET, labelsize=8, width=0.7, length=3)
            self._moving.append(bar)
        return scale.to_rgba(value)[:, :3]

    def _moved(self, obstacles: BodyPoses) -> list[Shape]:
        """Shapes of the obstacles that change their places, in their current poses."""
        every = zip(self.scene.obstacles, obstacles.position, obstacles.rotation, self._moves, strict=True)
        return [displaced(obstacle.shape, p, R) for obstacle, p, R, moves in every if moves]

    def _sections(self, poses: BodyPoses) -> list:
        """Draw the rigid bodies of a 2D scene; returns the matplotlib artists."""
        made = []
        for solid, p, R in zip(self.solids, poses.position, poses.rotation, strict=True):
            if solid.shape is not None:
                shape = displaced(solid.shape, p, R)
                made += draw_section(self.ax, shape, self.camera, solid.color, INK, _RIGID)
        return made

    def _rendered(self, position: np.ndarray, colors: np.ndarray, poses: BodyPoses, obstacles: list[Shape]) -> list:
        """Draw a rendered image of matter, rigid bodies and obstacles of a 3D scene; returns the matplotlib artists."""
        if self._canvas is None:
            self._canvas = self._new_canvas()
        moving = [facets(self.solids, poses), node_facets(self._meshes, position, colors)]
        seen = self._loose.copy()
        for skin in self._skins:
            vertices, intact, bare = skin.at(position)
            seen[skin.members] = bare & self._outside[skin.members]
            moving.append(skin_facets(skin, vertices, intact, colors))
        balls = (a[seen] for a in (position, self._radius, colors))
        canvas = self._canvas
        if obstacles:
            canvas = dataclasses.replace(canvas, nearest=canvas.nearest.copy())
            for shape in obstacles:
                canvas.add_triangles(*surface(shape, *room_of(shape, self.camera.box)), GROUND)
        image = canvas.picture(*balls, self._floor, Facets.joined(moving))
        (left, bottom), (right, top) = self.camera.window
        return [self.ax.imshow(image, extent=(left, right, bottom, top), interpolation="antialiased", zorder=2)]

    def _new_canvas(self) -> Canvas:
        """A canvas on which the obstacles are drawn that stay in their places, as large as the axes at present."""
        if self.ax.figure.get_layout_engine() is not None:
            self.ax.figure.draw_without_rendering()
        self.ax.apply_aspect()
        size = np.abs(np.diff(self.ax.transData.transform(self.camera.window), axis=0)[0])
        canvas = Canvas.blank(self.camera, *(int(s) for s in np.clip(np.round(size), 1, 4000)))
        for obstacle, moves in zip(self.scene.obstacles, self._moves, strict=True):
            if not moves and not is_floor(obstacle.shape):
                canvas.add_triangles(*surface(obstacle.shape, *self.camera.box), GROUND)
        return canvas

    def _cables(self, position: np.ndarray, control: np.ndarray | None) -> list:
        made = []
        for channel, route in self._routes.items():
            path = self.camera.project(position[route])
            pull = 0.0 if control is None else max(0.0, float(control[channel]))
            made += self.ax.plot(*path.T, color=INK, lw=1.0 + 1.2 * pull, alpha=0.85, solid_capstyle="round", zorder=4)
        return made


def _floor_in_view(scene: Scene, camera: Camera) -> float | None:
    """Height of the floor [m] if the floor coincides with the lower face of the camera's box, else None."""
    height = floor_height(scene)
    return height if height is not None and abs(height - camera.box[0][-1]) < 1e-9 else None
