"""A scene as arrays for a browser: the shapes of the bodies, sent once, and their places at each moment."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from warpbots.quantities import cable_routes
from warpbots.scene import Scene
from warpbots.scene.motion_checks import changes_place
from warpbots.solvers.matter import Matter
from warpbots.surfaces.ground_height import floor_height, ground_height
from warpbots.surfaces.skin import Skin, loose
from warpbots.surfaces.triangles import creased, vertex_normals
from warpbots.view.camera import Camera
from warpbots.view.flat_matter import outline_color
from warpbots.view.mesh_bodies import creased_mesh, seen_twice
from warpbots.view.palette import GROUND, GROUND_EDGE, INK, PAPER
from warpbots.view.picture import radii
from warpbots.view.raster import LIGHT
from warpbots.view.rigid_bodies import BodyPoses, RigidSurface
from warpbots.view.ruler import tick_distance, upright_edge
from warpbots.view.shadow import DARKNESS
from warpbots.view.upright_view import FIELD, UPRIGHT, filling, in_view, perspective, smallest_aspect, upright

__all__ = ["BrowserScene", "DrawnLine", "DrawnMesh", "DrawnMoment"]

_OUTLINE_WIDTH, _CABLE_WIDTH = 1.6, 2.4  # of lines [pixels]
_ABOVE = 0.001  # height of lines above the floor, so that they are seen, relative to the size of the view


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


class DrawnLine(NamedTuple):
    """A line through consecutive vertices of a `DrawnMoment`, which is drawn in front of everything.

    Attributes:
        first: Index of the first vertex; the line is shown if this vertex is.
        count: Number of vertices.
        closed: Whether the line leads back to its first vertex.
        color: Red, green and blue in [0, 1].
        width: Width [pixels].
    """

    first: int
    count: int
    closed: bool
    color: tuple[float, ...]
    width: float


@dataclasses.dataclass(frozen=True, eq=False)
class DrawnMoment:
    """The places of all bodies at one moment, in a frame whose third axis points upwards.

    Attributes:
        vertices: Vertices of all soft meshes, waypoints of all cables, and then all particles [m], shape (n, 3),
            float32.
        colors: Their colours, shape (n, 4), uint8. The last number is 0 for those that are not shown: vertices of torn
            faces, and particles below intact skin.
        position: Origins of the frames of all rigid bodies and then all obstacles [m], shape (k, 3), float32.
        rotation: Axes of these frames as columns, shape (k, 3, 3), float32.
    """

    vertices: np.ndarray
    colors: np.ndarray
    position: np.ndarray
    rotation: np.ndarray


class BrowserScene:
    """What a browser shows of a scene.

    Attributes:
        scene: The scene.
        soft: Meshes of the soft bodies.
        rigid: Meshes of the rigid bodies, in the order of `Scene.rigid`, and of the obstacles; None for invisible ones.
        radius: Radii of the particles [m], shape (n_particles,).
        lines: Outlines of flat bodies, and cables.
        camera: The first view in the browser.
    """

    def __init__(
        self,
        scene: Scene,
        matter: Matter,
        skins: tuple[Skin, ...],
        solids: tuple[RigidSurface, ...],
        camera: Camera,
        obstacles: BodyPoses,
        reach: float = 0.0,
        shows_values: bool = False,
    ):
        """Prepare the parts that stay the same.

        Args:
            scene: The scene.
            matter: All soft matter at rest, in the form that is drawn.
            skins: Skins of the bodies that have a skin.
            solids: Surfaces of all rigid bodies.
            camera: The first view in the browser.
            obstacles: Displacements of the obstacles from their places at some moments, all of which must be in view;
                the first axis of the arrays is the moment.
            reach: How far the ground reaches beyond the box of the camera, relative to the longest edge of this box.
            shows_values: Whether the colours of soft bodies show values.
        """
        self.scene, self.camera = scene, camera
        self._flat, self._matter, self._skins, self._reach = scene.dim == 2, matter, skins, reach
        self._surfaces = () if self._flat else matter.surfaces
        alone = np.ones(len(matter.position), dtype=bool) if self._flat else loose(matter)
        self._alone = np.flatnonzero(alone)
        self.radius = radii(matter)[self._alone]
        self._routes = cable_routes(scene, matter)
        self.soft, self._used = self._soft_meshes()
        self.lines = self._lines(shows_values)
        turn = UPRIGHT if self._flat else np.eye(3)
        self.rigid = [
            DrawnMesh(s.name, s.faces, False, False, s.color, s.vertices @ turn.T, s.normals @ turn.T)
            if len(s.faces)
            else None
            for s in solids
        ] + self._obstacles(obstacles)

    @property
    def size(self) -> float:
        """Size of the first view [m]."""
        lower, upper = self.camera.window
        return float((upper - lower).max())

    @property
    def floor(self) -> float | None:
        """Height of the floor [m]; None without a floor in view."""
        height, (lower, upper) = floor_height(self.scene), self.camera.box
        return height if height is not None and lower[-1] - 1e-9 <= height <= upper[-1] else None

    @property
    def ground(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of the box in which ground is drawn [m], each of shape (dim,)."""
        lower, upper = self.camera.box
        wide = np.full(self.scene.dim, self._reach * float((upper - lower).max()))
        wide[-1] = 0.0
        return lower - wide, upper + wide

    def _soft_meshes(self) -> tuple[list[DrawnMesh], list[np.ndarray]]:
        """Meshes of all skins and surfaces, whose vertices follow one another in a `DrawnMoment`.

        Returns:
            The meshes, and the indices of the nodes of each surface.
        """
        made, nodes, first = [], [], 0
        for skin in self._skins:
            name, faces = self.scene.bodies[skin.body].name, skin.faces
            if self._flat:
                faces = filling(skin, self.scene.bodies[skin.body].shape)
            made.append(DrawnMesh(name, first + faces, flat=self._flat, double=self._flat))
            first += len(skin.owner) + (len(skin.members) if self._flat else 0)
        for mesh in self._surfaces:
            used, faces = creased_mesh(self._matter, mesh)
            nodes.append(used)
            name = self.scene.bodies[mesh.body].name
            made.append(DrawnMesh(name, first + faces, flat=False, double=seen_twice(self.scene, mesh)))
            first += len(used)
        return made, nodes

    def _lines(self, shows_values: bool) -> list[DrawnLine]:
        """Outlines of flat bodies, whose vertices come first in their meshes, and cables, after all soft meshes."""
        made, first = [], 0
        for skin in self._skins if self._flat else ():
            color = outline_color(self.scene, skin.body, shows_values)
            ends = np.flatnonzero(skin.faces[:, 1] < skin.faces[:, 0])
            starts = np.append(0, ends[:-1] + 1)
            for a, b in zip(starts, ends, strict=True):
                made.append(DrawnLine(first + int(skin.faces[a, 0]), int(b - a + 1), True, color, _OUTLINE_WIDTH))
            first += len(skin.owner) + len(skin.members)
        if not self._flat:
            first = sum(len(skin.owner) for skin in self._skins) + sum(map(len, self._used))
        for route in self._routes.values():
            made.append(DrawnLine(first, len(route), False, INK, _CABLE_WIDTH))
            first += len(route)
        return made

    def _obstacles(self, poses: BodyPoses) -> list[DrawnMesh | None]:
        around = dataclasses.replace(self.camera, box=self.ground)
        made: list[DrawnMesh | None] = []
        for k, obstacle in enumerate(self.scene.obstacles):
            is_ground = ground_height(obstacle.shape, np.zeros((1, self.scene.dim - 1))) is not None
            view = around if is_ground else self.camera
            moves = changes_place(obstacle, self.scene.actuators)
            at = poses if moves else poses[:1]
            vertices, faces = in_view(obstacle.shape, view, at.position[:, k], at.rotation[:, k], moves)
            origin, faces = creased(upright(vertices), faces)
            x = upright(vertices)[origin]
            normals = vertex_normals(x, faces)
            made.append(DrawnMesh(obstacle.name, faces, False, False, GROUND, x, normals) if len(faces) else None)
        return made

    def moment(self, position: np.ndarray, colors: np.ndarray, poses: BodyPoses, obstacles: BodyPoses) -> DrawnMoment:
        """The places of all bodies at one moment.

        Args:
            position: Positions of the drawn particles [m], shape (n_particles, dim).
            colors: Their colours: red, green and blue in [0, 1], shape (n_particles, 3).
            poses: Poses of the rigid bodies.
            obstacles: Displacements of the obstacles from their places.
        """
        shown = np.ones(len(position), dtype=bool)
        parts = [self._skin(skin, position, shown, colors) for skin in self._skins]
        parts += [(position[nodes], colors[nodes], np.ones(len(nodes), dtype=bool)) for nodes in self._used]
        parts += [(position[k], colors[k], np.ones(len(k), dtype=bool)) for k in self._routes.values()]
        parts.append((position[self._alone], colors[self._alone], shown[self._alone]))
        x, color, visible = (np.concatenate(values) for values in zip(*parts, strict=True))
        rgba = np.concatenate([np.clip(color, 0.0, 1.0), visible[:, None]], axis=1)
        place = np.concatenate([poses.position, obstacles.position]).astype(np.float32)
        turn = np.concatenate([poses.rotation, obstacles.rotation]).astype(np.float32)
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
        view = perspective(self.camera)
        axes = self.camera.axes if len(self.camera.axes) == 3 else np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]])
        lower, upper = self.ground
        return {
            "name": self.scene.name,
            "dim": self.scene.dim,
            "paper": PAPER,
            "edge": GROUND_EDGE,
            "camera": {
                "eye": view[:3], "center": view[3:6], "up": view[6:], "field": FIELD,
                "aspect": smallest_aspect(self.camera),
            },
            "light": (LIGHT @ axes).tolist(),
            "floor": self.floor,
            "ground": [*lower[:2].tolist(), *upper[:2].tolist()],
            "shade": {"cell": self._shadow_cell(), "darkness": DARKNESS},
            "soft": [
                {"name": m.name, "faces": len(m.faces), "flat": m.flat, "double": m.double} for m in self.soft
            ],
            "rigid": [
                None if m is None else {
                    "name": m.name, "faces": len(m.faces), "vertices": len(m.vertices), "color": m.color,
                    "flat": m.flat, "double": m.double,
                }
                for m in self.rigid
            ],
            "lines": [line._asdict() for line in self.lines],
            "obstacles": len(self.scene.obstacles),
            "particles": len(self.radius),
            "grid": len(self._grid),
        }  # fmt: skip

    def _shadow_cell(self) -> float:
        """Edge of a cell of the grid on which a browser computes the shadow [m], as `Shadow` does for pictures."""
        lower, upper = self.camera.box
        return max(2.0 * float(self.radius.max(initial=0.0)), float((upper - lower)[:2].max()) / 160.0)

    @property
    def _grid(self) -> np.ndarray:
        """End points of lines on the floor, or on the lower face of the box in view, and of rulers, shape (n, 3)."""
        if self._flat:
            return np.zeros((0, 3))
        (low, high), step, ends = self.ground, tick_distance(self.camera), []
        height = low[2] if self.floor is None else self.floor
        for axis in range(2):
            across = 1 - axis
            inner = np.arange(np.ceil(low[axis] / step), high[axis] / step) * step
            for value in [low[axis], *inner, high[axis]]:
                for end in (low[across], high[across]):
                    point = np.full(3, height + _ABOVE * self.size)
                    point[axis], point[across] = value, end
                    ends.append(point)
        if not self._reach:
            ends += upright_edge(self.camera)
        return np.array(ends)

    def keep(self, particles: np.ndarray) -> None:
        """Keep only some of the particles, such as those that are shown at least once.

        Args:
            particles: Whether each particle of `radius` is kept, shape (n_particles,), bool.
        """
        self._alone, self.radius = self._alone[particles], self.radius[particles]

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
