"""Surfaces that move: the mesh of each soft body in a motion, with normals and colours.

The surface of a body follows the nodes of a solver that has meshed the body, or is the skin of its particles, as in
pictures. A body of a 2D scene is a plate. The particles of fluids and grains are small octahedra: programs such as
Blender draw points without their material.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from pxr import Usd, UsdGeom, Vt

from warpbots.quantities import PointValues
from warpbots.scene import Scene
from warpbots.solvers.matter import Matter, Surface
from warpbots.surfaces.carried_points import CarriedPoints
from warpbots.surfaces.plates import plate
from warpbots.surfaces.skin import Skin, skins_of
from warpbots.surfaces.triangles import creased, vertex_normals
from warpbots.usd.geometry.gprim_writer import width
from warpbots.usd.soft.moving_points import SoftFrame
from warpbots.usd.soft.sampled_normals import SampledNormals
from warpbots.usd.stage.units import StageUnits
from warpbots.usd.stage.value_colors import write_values

__all__ = ["DrawnSurface", "MovingSurface", "grain_surface", "node_surface", "skin_surfaces"]

_THIN = 0.1
"""Half of the thickness of the plate of a 2D body divided by the longest edge of the body."""

_NUDGE = 1e-3
"""Distance by which particles move for the velocities of vertices, divided by the distance between particles."""


_TIPS = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], dtype=np.float64)
_SIDES = np.array([[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]])
"""Corners and faces of an octahedron."""

_BALL = {2: (1.0 / np.pi) ** 0.5, 3: (3.0 / (4.0 * np.pi)) ** (1.0 / 3.0)}
"""Radius of a disc or a ball divided by the edge of a square or a cube of the same size."""


class Moment(NamedTuple):
    """A surface at one moment.

    Attributes:
        vertices: Lifted scene coordinates [m], shape (n, 3).
        intact: Whether each face is intact, shape (m,), bool; None if matter does not tear.
        bare: Whether each point of matter of the body must be drawn because no intact face covers it, shape (k,), bool;
            None if the surface is intact.
    """

    vertices: np.ndarray
    intact: np.ndarray | None = None
    bare: np.ndarray | None = None


@dataclasses.dataclass(frozen=True)
class DrawnSurface:
    """How the surface of a soft body follows the points of matter.

    Attributes:
        body: Index of the body in the scene.
        faces: Vertex indices of each face, counter-clockwise seen from outside, shape (m, 3). A vertex on a crease
            occurs once for each side of the crease.
        at: Function of the positions of all points of matter [m], shape (n, dim), that returns the surface.
        carry: Function from values of all points of matter, shape (n,), to values of the vertices.
        step: Distance by which points of matter may move for a difference quotient [m].
        normals: Unit normals of the vertices if they never change, shape (n, 3); None if they follow from the faces.
    """

    body: int
    faces: np.ndarray
    at: Callable[[np.ndarray], Moment]
    carry: Callable[[np.ndarray], np.ndarray]
    step: float
    normals: np.ndarray | None = None


def node_surface(mesh: Surface, position: np.ndarray, frame: StageUnits) -> DrawnSurface:
    """The surface of a body whose vertices are points of matter.

    Args:
        mesh: The surface at rest.
        position: Rest positions of all points of matter [m], shape (n, dim).
        frame: Units and axes of the stage.
    """
    nodes = np.arange(len(position))[mesh.nodes]
    origin, faces = creased(frame.lift(position[nodes]), mesh.faces)
    follows = nodes[origin]
    size = float(np.ptp(position[nodes], axis=0).max(initial=0.0))
    return DrawnSurface(
        mesh.body, faces, lambda x: Moment(frame.lift(x[follows])), lambda values: values[follows], size
    )


def grain_surface(body: int, matter: Matter, frame: StageUnits) -> DrawnSurface:
    """Particles as octahedra with the normals of balls, for bodies without a skin such as fluids and sand.

    Args:
        body: Index of the body in the scene.
        matter: All soft matter at rest.
        frame: Units and axes of the stage.
    """
    members = np.flatnonzero(np.asarray(matter.body) == body)
    spacing = width(np.asarray(matter.volume)[members], frame.dim)
    offset = (_BALL[frame.dim] * spacing[:, None, None] * _TIPS).reshape(-1, 3)
    faces = (len(_TIPS) * np.arange(len(members))[:, None, None] + _SIDES).reshape(-1, 3)
    follows = np.repeat(members, len(_TIPS))
    return DrawnSurface(
        body, faces, lambda x: Moment(frame.lift(x[follows]) + offset), lambda values: values[follows],
        float(spacing.min(initial=1.0)), np.tile(_TIPS, (len(members), 1)),
    )  # fmt: skip


def skin_surfaces(scene: Scene, matter: Matter, frame: StageUnits) -> dict[int, DrawnSurface]:
    """The skins of all bodies of `scene` that have a skin, by the index of the body."""
    surface = _plate if scene.dim == 2 else _skin
    found = (surface(scene, skin, matter, frame) for skin in skins_of(scene, matter.drawn))
    return {s.body: s for s in found if len(s.faces)}


def _skin(scene: Scene, skin: Skin, matter: Matter, frame: StageUnits) -> DrawnSurface:
    drawn = _drawn_points(skin, matter)

    def at(x: np.ndarray) -> Moment:
        vertices, intact, bare = skin.at(matter.drawn_at(x))
        return Moment(vertices) if intact.all() else Moment(vertices, intact, bare[drawn])

    return DrawnSurface(skin.body, skin.faces, at, _nearest(skin.owner, matter), _NUDGE * skin.spacing)


def _plate(scene: Scene, skin: Skin, matter: Matter, frame: StageUnits) -> DrawnSurface:
    from scipy.spatial import cKDTree

    flat, side, faces = plate(scene.bodies[skin.body].shape, skin.spacing)
    if not len(faces):
        return DrawnSurface(skin.body, faces, lambda x: Moment(frame.lift(flat)), lambda values: values[:0], 1.0)
    depth = _THIN * float(np.ptp(flat, axis=0).max())
    carried = CarriedPoints(skin.rest, flat, skin.spacing)
    rest = np.tile(frame.lift(flat), (2, 1))
    rest[:, 1] = depth * side
    origin, faces = creased(rest, faces)
    along, behind, drawn = origin % len(flat), depth * side[origin], _drawn_points(skin, matter)

    def at(x: np.ndarray) -> Moment:
        points, torn = carried.at(matter.drawn_at(x)[skin.members])
        vertices = frame.lift(points)[along]
        vertices[:, 1] = behind
        if not (skin.tears and torn.any()):
            return Moment(vertices)
        return Moment(vertices, ~torn[along][faces].any(axis=1), skin.at(matter.drawn_at(x))[2][drawn])

    owner = skin.members[cKDTree(skin.rest).query(flat)[1]][along]
    return DrawnSurface(skin.body, faces, at, _nearest(owner, matter), _NUDGE * skin.spacing)


def _drawn_points(skin: Skin, matter: Matter) -> np.ndarray:
    """Index of the drawn particle of a skin that is nearest to each point of matter of its body, shape (k,)."""
    from scipy.spatial import cKDTree

    return cKDTree(skin.rest).query(matter.position[matter.body == skin.body])[1]


def _nearest(owner: np.ndarray, matter: Matter) -> Callable[[np.ndarray], np.ndarray]:
    return lambda values: matter.drawn_at(np.asarray(values, dtype=float)[:, None])[owner, 0]


class MovingSurface:
    """A mesh of a stage that shows a `DrawnSurface`, frame by frame."""

    def __init__(self, mesh: UsdGeom.Mesh, surface: DrawnSurface):
        """Author the topology.

        Args:
            mesh: The mesh, in lifted scene coordinates.
            surface: The surface.
        """
        self._mesh, self._surface = mesh, surface
        self._start: float | None = None  # time code of the first frame
        self._shown = np.ones(len(surface.faces), dtype=bool)
        self._tears = False  # whether the topology has time samples
        self.bare: np.ndarray | None = None
        """Whether each particle of the body must be drawn in the last frame that was written, see `Moment`."""
        self._topology(surface.faces)
        mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
        mesh.SetNormalsInterpolation(UsdGeom.Tokens.vertex)
        self._normals = SampledNormals(mesh)
        if surface.normals is not None:
            mesh.CreateNormalsAttr(Vt.Vec3fArray.FromNumpy(surface.normals.astype(np.float32)))

    @property
    def prim(self) -> Usd.Prim:
        """The prim of the mesh."""
        return self._mesh.GetPrim()

    def write(self, code: float, now: SoftFrame) -> int:
        """Write the frame `now` at a time code; returns the number of bytes."""
        mesh, moment = self._mesh, self._surface.at(now.position)
        values = np.ascontiguousarray(moment.vertices, dtype=np.float32)
        extent = Vt.Vec3fArray.FromNumpy(np.stack([values.min(0), values.max(0)]))
        points = Vt.Vec3fArray.FromNumpy(values)
        self.bare = moment.bare
        if self._start is None:
            self._start = code
            # defaults, which validators ask for beside the samples
            mesh.GetPointsAttr().Set(points)
            mesh.GetExtentAttr().Set(extent)
        mesh.GetPointsAttr().Set(points, code)
        mesh.GetExtentAttr().Set(extent, code)
        size = values.nbytes + self._write_tears(code, moment.intact)
        if self._surface.normals is None:
            size += self._normals.write(code, vertex_normals(moment.vertices, self._surface.faces), now.last)
        if now.velocity is not None:
            rates = np.ascontiguousarray(self._rates(moment.vertices, now), dtype=np.float32)
            mesh.GetVelocitiesAttr().Set(Vt.Vec3fArray.FromNumpy(rates), code)
            size += rates.nbytes
        return size

    def write_values(self, shown: PointValues, values: np.ndarray, code: float | None = None) -> int:
        """Write `values` of all points of matter, shape (n,), as a primvar; returns the number of bytes."""
        if self._surface.carry(shown.known).min(initial=1.0) < 1.0:
            return 0
        return write_values(self.prim, shown.name, self._surface.carry(values), code)

    def _topology(self, faces: np.ndarray, code: float | None = None) -> int:
        time = Usd.TimeCode.Default() if code is None else code
        self._mesh.CreateFaceVertexCountsAttr().Set(Vt.IntArray(len(faces), 3), time)
        self._mesh.CreateFaceVertexIndicesAttr().Set(Vt.IntArray.FromNumpy(faces.ravel().astype(np.int32)), time)
        return 4 * faces.size

    def _write_tears(self, code: float, intact: np.ndarray | None) -> int:
        """Leave out torn faces from this frame on, if they are others than before; returns the number of bytes."""
        faces = self._surface.faces
        intact = np.ones(len(faces), dtype=bool) if intact is None else intact
        if (intact == self._shown).all():
            return 0
        size = 0
        if not self._tears and code != self._start:  # the first sample counts for all times before it, too
            size = self._topology(faces, self._start)
        self._shown, self._tears = intact, True
        return size + self._topology(faces[intact], code)

    def _rates(self, vertices: np.ndarray, now: SoftFrame) -> np.ndarray:
        """Velocities of the vertices [m/s], by a difference over a step in which particles hardly move."""
        fastest = float(np.linalg.norm(now.velocity, axis=1).max(initial=0.0))
        if fastest == 0.0:
            return np.zeros_like(vertices)
        h = self._surface.step / fastest
        return (self._surface.at(now.position + h * now.velocity).vertices - vertices) / h
