"""Shows a motion as a k3d plot that looks like the pictures, and in a widget with a play button and a slider."""

import importlib.util
from typing import TYPE_CHECKING, Any

import numpy as np

from warpbots.scene.motion_checks import changes_place
from warpbots.surfaces.skin import loose
from warpbots.surfaces.triangles import creased
from warpbots.view.camera import Camera
from warpbots.view.drawables import particles_of
from warpbots.view.k3d_skin import bare_particles, by_frame, skin_meshes
from warpbots.view.mesh_bodies import creased_mesh, seen_twice
from warpbots.view.motion import Motion, evenly
from warpbots.view.moving_obstacles import at_start
from warpbots.view.palette import GROUND, GROUND_EDGE, INK, PAPER, QUIET, packed
from warpbots.view.picture import radii
from warpbots.view.raster import brightness
from warpbots.view.rigid_bodies import BodyPoses
from warpbots.view.ruler import ruler
from warpbots.view.upright_view import FIELD, UPRIGHT, in_view, perspective, upright
from warpbots.view.visible_particles import outward

if TYPE_CHECKING:
    import k3d
    from ipywidgets import Widget

    from warpbots.trajectory import Trajectory

__all__ = ["EXTRA", "missing_packages", "moments", "new_plot", "with_controls"]

EXTRA = 'pip install "warpbots[notebook]"'
"""Command that installs the `missing_packages`."""

_BYTES = 40e6  # largest size of all positions and poses that are sent to the browser
_FRAMES = 121  # largest number of frames that are sent to the browser
_HEIGHT = 420  # height of the view [pixels]
_FASTEST = 40  # shortest time between two frames [ms]


def missing_packages() -> list[str]:
    """Names of the packages that a widget needs and that are not installed."""
    return [name for name in ("k3d", "ipywidgets") if importlib.util.find_spec(name) is None]


def moments(trajectory: "Trajectory[Any]", every: int | None) -> np.ndarray:
    """The moments that a browser shows; each is given by the number of control intervals since the start.

    Args:
        trajectory: The motion.
        every: Number of control intervals between two states that are shown; the last state is always shown. None for
            at most 121 evenly spaced states and at most 40 MB.

    Raises:
        ValueError: `every` is below 1.
    """
    if every is None:
        matter, bodies = particles_of(trajectory.simulation), trajectory.scene.rigid
        room = int(_BYTES // (12 * len(matter.position) + 64 * len(bodies)))
        return evenly(trajectory.steps, max(2, min(_FRAMES, room)))
    if every < 1:
        raise ValueError(f"every must be at least 1, got {every}")
    return np.unique([*range(0, trajectory.steps + 1, every), trajectory.steps])


def new_plot(motion: Motion) -> "k3d.Plot":
    """A k3d plot of a motion, with skins and rigid bodies as meshes, and particles without a skin as points.

    The keys of all time series are the indices of frames, "0", "1", ... The plot also shows the obstacles, a ruler in
    metres, and the time. A 2D scene stands upright in the x-z plane.
    """
    import k3d

    camera, scene = motion.camera(), motion.scene
    plot = k3d.plot(
        height=_HEIGHT, background_color=_int(PAPER), grid_visible=False, menu_visibility=False, camera_auto_fit=False,
        grid_auto_fit=False, axes_helper=0.0, fps=1.0, camera_fov=FIELD, camera_up_axis="z", lighting=1.5,
    )  # fmt: skip
    frames = range(len(motion))
    bare = bare_particles(motion) & (loose(motion.particles) if scene.dim == 3 else True)
    alone = bare.any(axis=0)
    if alone.any():
        size = (2.0 * radii(motion.particles)[alone]).astype(np.float32)
        plot += k3d.points(
            {str(k): upright(motion.position[k][alone]) for k in frames},
            colors={str(k): packed(_shaded(motion, k, camera, alone)) for k in frames},
            point_sizes=by_frame([np.where(bare[k][alone], size, np.float32(0.0)) for k in frames]),
            shader="flat", name="particles",
        )  # fmt: skip
    for mesh in skin_meshes(motion):
        plot += mesh
    for mesh in motion.particles.surfaces if scene.dim == 3 else ():
        plot += _surface_of(motion, mesh)
    turn = UPRIGHT if scene.dim == 2 else np.eye(3)
    for body, solid in enumerate(motion.solids):
        if len(solid.faces):
            mesh = k3d.mesh(
                (solid.vertices @ turn.T).astype(np.float32), solid.faces.astype(np.uint32),
                (solid.normals @ turn.T).astype(np.float32),
                color=_int(solid.color), side="front", flat_shading=False, roughness=1.0, emissive=_int(solid.color),
                emissive_intensity=0.2, name=solid.name,
            )  # fmt: skip
            mesh.model_matrix = _matrices(motion.poses, body, flat=scene.dim == 2)  # the constructor takes a single one
            plot += mesh
    poses = motion.obstacles or BodyPoses(*(a[None] for a in at_start(scene)))
    for k, obstacle in enumerate(scene.obstacles):
        moves = changes_place(obstacle, scene.actuators)
        at = poses if moves else poses[:1]
        vertices, faces = in_view(obstacle.shape, camera, at.position[:, k], at.rotation[:, k], moves)
        if len(faces):
            origin, faces = creased(upright(vertices), faces)
            mesh = k3d.mesh(
                upright(vertices)[origin], faces.astype(np.uint32), color=_int(GROUND), side="front",
                flat_shading=False, roughness=1.0, emissive=_int(GROUND), emissive_intensity=0.12, name=obstacle.name,
            )  # fmt: skip
            if moves:
                mesh.model_matrix = _matrices(poses, k, flat=scene.dim == 2)
            plot += mesh
    plot += k3d.text2d(
        {str(k): f"{motion.time[k]:.2f} s" for k in frames}, (0.02, 0.03), color=_int(INK), size=1.0,
        label_box=False, is_html=True, name="time",
    )  # fmt: skip
    plot += _ruler(camera)
    plot.camera = perspective(camera)
    return plot


def with_controls(plot: "k3d.Plot", motion: Motion) -> "Widget":
    """A widget with the plot and, below it, a play button and a slider for the frames, all linked in the browser."""
    import ipywidgets

    last = len(motion) - 1
    interval = max(_FASTEST, round(1000.0 * float(motion.time[-1]) / max(1, last)))
    play = ipywidgets.Play(value=0, min=0, max=last, step=1, interval=interval, repeat=True, show_repeat=False)
    slider = ipywidgets.IntSlider(
        value=0, min=0, max=last, readout=False, layout=ipywidgets.Layout(flex="1 1 auto", width="auto")
    )
    ipywidgets.jslink((play, "value"), (slider, "value"))
    ipywidgets.jslink((slider, "value"), (plot, "time"))
    controls = ipywidgets.HBox([play, slider], layout=ipywidgets.Layout(width="100%", align_items="center"))
    return ipywidgets.VBox([plot, controls])


def _matrices(poses: BodyPoses, body: int, flat: bool = False) -> dict[str, np.ndarray]:
    """Poses of a rigid body or an obstacle at all moments, as a time series of matrices in the format of k3d.

    Args:
        poses: The poses at all moments.
        body: Index of the body or the obstacle.
        flat: Whether the scene is 2D and stands upright.
    """
    matrices = np.tile(np.eye(4, dtype=np.float32), (len(poses.position), 1, 1))
    turn = UPRIGHT if flat else np.eye(3)
    matrices[:, :3, :3] = turn @ poses.rotation[:, body] @ turn.T
    matrices[:, :3, 3] = poses.position[:, body] @ turn.T
    return {str(k): matrix for k, matrix in enumerate(matrices)}


def _int(color: tuple[float, float, float]) -> int:
    return int(packed(np.array([color]))[0])


def _surface_of(motion: Motion, mesh: object) -> "k3d.objects.Mesh":
    """A k3d mesh for `mesh`, the surface of a body whose vertices are moving nodes."""
    import k3d

    scene, frames = motion.scene, range(len(motion))
    nodes, faces = creased_mesh(motion.particles, mesh)
    colors = (motion.colors(k)[nodes] for k in frames)
    return k3d.mesh(
        {str(k): upright(motion.position[k][nodes]) for k in frames}, faces.astype(np.uint32),
        colors={str(k): packed(c) for k, c in zip(frames, colors, strict=True)},
        side="double" if seen_twice(scene, mesh) else "front", flat_shading=False, roughness=1.0,
        emissive=_int(scene.colors[mesh.body]), emissive_intensity=0.2, name=scene.bodies[mesh.body].name,
    )  # fmt: skip


def _shaded(motion: Motion, frame: int, camera: Camera, alone: np.ndarray) -> np.ndarray:
    """Colours of the particles `alone`.

    In 3D the colours are shaded as in a picture, because k3d does not shade points.
    """
    colors = motion.colors(frame)[alone]
    if motion.scene.dim == 2:
        return colors
    normal = outward(motion.position[frame][alone].astype(np.float64), radii(motion.particles)[alone])
    return colors * brightness(normal, camera)[:, None]


def _ruler(camera: Camera) -> "k3d.objects.Group":
    import k3d

    ticks, size = ruler(camera), float((camera.box[1] - camera.box[0]).max())
    at = np.array([upright(tick.at + 0.03 * size * tick.outward) for tick in ticks])
    marks = k3d.text(
        [tick.text for tick in ticks], at, color=_int(QUIET), size=0.8, reference_point="cc", on_top=True,
        label_box=False, is_html=True, name="ruler",
    )  # fmt: skip
    if len(camera.axes) == 2:
        return marks
    ends = np.array([end for tick in ticks for end in (tick.at, tick.far)])
    ends[:, 2] += 0.002 * size  # above the floor, not in it
    pairs = np.arange(len(ends), dtype=np.uint32).reshape(-1, 2)
    lines = k3d.lines(
        upright(ends), pairs, indices_type="segment", color=_int(GROUND_EDGE), shader="simple", opacity=0.6,
        name="floor grid",
    )  # fmt: skip
    return marks + lines
