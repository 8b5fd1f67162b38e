"""The bodies of a simulation as arrays for a browser: their shapes, sent once, and their places at each moment."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from warpbots.bench.drives import tools_of
from warpbots.scene.motion_checks import changes_place
from warpbots.surfaces.clipped import box_corners
from warpbots.surfaces.ground_height import floor_height, ground_height
from warpbots.surfaces.skin import Skin, loose, skins_of
from warpbots.trajectory import obstacles_at
from warpbots.view.camera import Camera
from warpbots.view.drawables import particles_of, placed
from warpbots.view.film import figure_of, image_of
from warpbots.view.mesh_bodies import seen_twice
from warpbots.view.moving_obstacles import displaced
from warpbots.view.palette import GROUND, GROUND_EDGE, PAPER, body_colors
from warpbots.view.picture import SceneAxes, radii
from warpbots.view.raster import LIGHT
from warpbots.view.rigid_bodies import BodyPoses, outline, solids_of
from warpbots.view.ruler import tick_distance
from warpbots.view.upright_view import FIELD, UPRIGHT, filling, in_view, perspective, upright

if TYPE_CHECKING:
    from PIL.Image import Image

    from warpbots.simulation import Simulation

__all__ = ["Drawing", "DrawnMesh", "DrawnMoment"]

_PICTURE = 640  # width of a picture [pixels]
_WIDE = 4.0  # reach of the ground beyond the first view, relative to the size of this view


@dataclasses.dataclass(frozen=True, eq=False)
class DrawnMesh:
    """A triangle mesh of a body.

    Attributes:
        name: Name of the body or obstacle.
        faces: Vertex indices, shape (m, 3). Those of soft meshes count from the first of all vertices of a
            `DrawnMoment`, those of rigid meshes from the first of `vertices`.
        flat: Whether each face has one normal.
        double: Whether the mesh is visible from both sides.
        color: Red, green and blue in [0, 1]; None for soft meshes, whose vertices have colours at each moment.
        vertices: Vertices in the frame of a rigid body [m], shape (n, 3); None for soft meshes.
        normals: Unit normals at these vertices, shape (n, 3), unused if `flat`; None for soft meshes.
    """

    name: str
    faces: np.ndarray
    flat: bool
    double: bool
    color: tuple[float, float, float] | None = None
    vertices: np.ndarray | None = None
    normals: np.ndarray | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class DrawnMoment:
    """The places of all bodies at one moment, in a frame whose third axis points upwards.

    Attributes:
        vertices: Vertices of all soft meshes, and then all particles [m], shape (n, 3), float32.
        colors: Their colours, shape (n, 4), uint8. The last number is 0 for those that are not shown: vertices of torn
            faces, and particles below intact skin.
        position: Origins of the frames of all rigid bodies and then all obstacles [m], shape (k, 3), float32.
        rotation: Axes of these frames as columns, shape (k, 3, 3), float32.
    """

    vertices: np.ndarray
    colors: np.ndarray
    position: np.ndarray
    rotation: np.ndarray


class Drawing:
    """What a browser shows of one world of a simulation.

    Attributes:
        soft: Meshes of the soft bodies.
        rigid: Meshes of the rigid bodies, in the order of `Scene.rigid`, and of the obstacles; None for invisible ones.
        radius: Radii of the particles [m], shape (n_particles,).
        camera: The view of the start.
    """

    def __init__(self, simulation: "Simulation[Any]", state: Any, world: int = 0):
        """Prepare the parts that stay the same.

        Args:
            simulation: The simulation.
            state: A state, which the first view frames.
            world: Index of the world.
        """
        self._simulation, self._scene, self._world = simulation, simulation.scene, world
        self._flat = self._scene.dim == 2
        self._matter = particles_of(simulation).drawn
        self._skins = skins_of(self._scene, self._matter)
        self._surfaces = () if self._flat else self._matter.surfaces
        alone = np.ones(len(self._matter.position), dtype=bool) if self._flat else loose(self._matter)
        self._alone = np.flatnonzero(alone)
        self.radius = radii(self._matter)[self._alone]
        self._solids = solids_of(self._scene)
        position, poses = placed(simulation, state, world)
        obstacles = BodyPoses(*obstacles_at(simulation, state, world))
        points = [position, outline(self._scene, self._solids, poses), *self._corners_of_tools(obstacles)]
        self.camera = Camera.around(self._scene, np.concatenate(points))
        self.soft = self._soft_meshes()
        self.rigid = [
            DrawnMesh(s.name, s.faces, False, False, s.color, s.vertices, s.normals) if len(s.faces) else None
            for s in self._solids
        ] + self._obstacles(obstacles)

    @property
    def size(self) -> float:
        """Size of the first view [m]."""
        lower, upper = self.camera.window
        return float((upper - lower).max())

    def picture(self, state: Any, control: np.ndarray, time: float, **parameters: Any) -> "Image":
        """A picture of a state, as `warpbots.view.draw` draws it.

        Args:
            state: The state.
            control: Control signal, shape (channels,).
            time: Time to show [s].
            parameters: Tensors that replace parameters of the model, by name.
        """
        position, poses = placed(self._simulation, state, self._world, **parameters)
        camera = Camera.around(self._scene, np.concatenate([position, outline(self._scene, self._solids, poses)]))
        figure, places = figure_of(camera, _PICTURE)
        stage = SceneAxes(
            self._scene, self._matter, camera, figure.add_axes(places[0]), self._solids, skins=self._skins
        )
        obstacles = BodyPoses(*obstacles_at(self._simulation, state, self._world, **parameters))
        stage.show(position, control, poses=poses, time=time, obstacles=obstacles)
        return image_of(figure)

    @property
    def floor(self) -> float | None:
        """Height of the floor [m]; None without a floor."""
        return floor_height(self._scene)

    def _soft_meshes(self) -> list[DrawnMesh]:
        """Meshes of all skins and surfaces; their vertices follow one another in a `DrawnMoment`."""
        made, first, self._used = [], 0, []
        for skin in self._skins:
            name, faces = self._scene.bodies[skin.body].name, skin.faces
            if self._flat:
                faces = filling(skin, self._scene.bodies[skin.body].shape)
            made.append(DrawnMesh(name, first + faces, flat=self._flat, double=self._flat))
            first += len(skin.owner) + (len(skin.members) if self._flat else 0)
        for mesh in self._surfaces:
            used, faces = np.unique(mesh.faces, return_inverse=True)
            nodes = np.arange(len(self._matter.position))[mesh.nodes][used]
            name = self._scene.bodies[mesh.body].name
            made.append(DrawnMesh(name, first + faces.reshape(-1, 3), flat=True, double=seen_twice(self._scene, mesh)))
            self._used.append(nodes)
            first += len(nodes)
        return made

    def _corners_of_tools(self, poses: BodyPoses) -> list[np.ndarray]:
        """Corners of the boxes around all bounded obstacles that move [m], each of shape (2^dim, dim)."""
        found = []
        for k, obstacle in enumerate(self._scene.obstacles):
            bounds = displaced(obstacle.shape, poses.position[k], poses.rotation[k]).bounds
            if changes_place(obstacle, self._scene.actuators) and np.isfinite(bounds).all():
                found.append(box_corners(*bounds))
        return found

    def _obstacles(self, poses: BodyPoses) -> list[DrawnMesh | None]:
        lower, upper = self.camera.box
        wide = np.full(self._scene.dim, _WIDE * float((upper - lower).max()))
        wide[-1] = 0.0
        around = dataclasses.replace(self.camera, box=(lower - wide, upper + wide))
        made: list[DrawnMesh | None] = []
        for k, obstacle in enumerate(self._scene.obstacles):
            is_ground = ground_height(obstacle.shape, np.zeros((1, self._scene.dim - 1))) is not None
            view = around if is_ground else self.camera
            moves = changes_place(obstacle, self._scene.actuators)
            vertices, faces = in_view(obstacle.shape, view, poses.position[None, k], poses.rotation[None, k], moves)
            x = upright(vertices)
            mesh = DrawnMesh(obstacle.name, faces, True, False, GROUND, x, np.zeros_like(x)) if len(faces) else None
            made.append(mesh)
        return made

    def at(self, state: Any, control: np.ndarray, colors: np.ndarray | None = None, **parameters: Any) -> DrawnMoment:
        """The places of all bodies in a state.

        Args:
            state: The state.
            control: Control signal, shape (channels,); regions with an actuator show it by their colours.
            colors: Colours of the drawn particles instead: red, green and blue in [0, 1], shape (n, 3).
            parameters: Tensors that replace parameters of the model, by name.
        """
        position, poses = placed(self._simulation, state, self._world, **parameters)
        colors = body_colors(self._scene, self._matter, control) if colors is None else colors
        shown = np.ones(len(position), dtype=bool)
        parts = []
        for skin in self._skins:
            parts.append(self._skin(skin, position, shown, colors))
        parts += [(position[nodes], colors[nodes], np.ones(len(nodes), dtype=bool)) for nodes in self._used]
        parts.append((position[self._alone], colors[self._alone], shown[self._alone]))
        x, color, visible = (np.concatenate(values) for values in zip(*parts, strict=True))
        rgba = np.concatenate([np.clip(color, 0.0, 1.0), visible[:, None]], axis=1)
        obstacles = obstacles_at(self._simulation, state, self._world, **parameters)
        place = np.concatenate([poses.position, obstacles[0]]).astype(np.float32)
        turn = np.concatenate([poses.rotation, obstacles[1]]).astype(np.float32)
        if self._flat:
            place, turn = place @ UPRIGHT.T.astype(np.float32), (UPRIGHT @ turn @ UPRIGHT.T).astype(np.float32)
        return DrawnMoment(upright(x), np.round(255.0 * rgba).astype(np.uint8), place, turn)

    def _skin(
        self, skin: Skin, position: np.ndarray, shown: np.ndarray, colors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Vertices of a skin, their colours, and whether they are shown; marks in `shown` the particles that are."""
        vertices, intact, bare = skin.at(position)
        if not self._flat:
            shown[skin.members] = bare
            whole = np.ones(len(vertices), dtype=bool)
            whole[skin.faces[~intact]] = False
            return vertices, colors[skin.owner], whole
        whole = bool(intact.all())  # a torn outline has no inside
        shown[skin.members] = not whole
        owner = np.append(skin.owner, skin.members)
        return np.concatenate([vertices, position[skin.members]]), colors[owner], np.full(len(owner), whole)

    def header(self) -> dict[str, Any]:
        """What a browser needs to know about the arrays of `geometry` and of each `DrawnMoment`."""
        view, tools = perspective(self.camera), tools_of(self._scene)
        axes = self.camera.axes if len(self.camera.axes) == 3 else np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]])
        return {
            "name": self._scene.name,
            "dim": self._scene.dim,
            "paper": PAPER,
            "edge": GROUND_EDGE,
            "camera": {"eye": view[:3], "center": view[3:6], "up": view[6:], "field": FIELD},
            "light": (LIGHT @ axes).tolist(),
            "floor": self.floor,
            "soft": [
                {"name": m.name, "faces": len(m.faces), "flat": m.flat, "double": m.double} for m in self.soft
            ],
            "rigid": [
                None if m is None else {
                    "name": m.name, "faces": len(m.faces), "vertices": len(m.vertices), "color": m.color,
                    "flat": m.flat, "double": m.double, "held": k < len(self._solids) or k - len(self._solids) in tools,
                }
                for k, m in enumerate(self.rigid)
            ],
            "obstacles": len(self._scene.obstacles),
            "particles": len(self.radius),
            "grid": len(self._grid),
        }  # fmt: skip

    @property
    def _grid(self) -> np.ndarray:
        """End points of the lines on the floor, shape (n, 3)."""
        if self._flat or self.floor is None:
            return np.zeros((0, 3))
        lower, upper = self.camera.box
        wide = np.array([1.0, 1.0, 0.0]) * _WIDE * float((upper - lower).max())
        step, ends = tick_distance(self.camera), []
        for axis in range(2):
            across, low, high = 1 - axis, lower - wide, upper + wide
            for value in np.arange(np.ceil(low[axis] / step), high[axis] / step) * step:
                for end in (low[across], high[across]):
                    point = np.full(3, self.floor)
                    point[axis], point[across] = value, end
                    ends.append(point)
        return np.array(ends)

    def geometry(self) -> bytes:
        """All arrays that stay the same.

        In this order: radii of particles, float32; lines on the floor, float32; faces of the soft meshes, uint32; for
        each visible rigid mesh its vertices and normals, float32, and its faces, uint32.
        """
        arrays = [self.radius.astype(np.float32), self._grid.astype(np.float32)]
        arrays += [m.faces.astype(np.uint32) for m in self.soft]
        for mesh in filter(None, self.rigid):
            arrays += [mesh.vertices.astype(np.float32), mesh.normals.astype(np.float32), mesh.faces.astype(np.uint32)]
        return b"".join(array.tobytes() for array in arrays)
