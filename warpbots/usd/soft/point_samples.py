"""Writes the motion of soft bodies as time samples: meshes of surfaces, points of particles, curves of springs, cables.

If the nodes of a body are the points of a mesh in the file, the time samples move this mesh, and the default value of
its points remains the rest shape. Otherwise the surface of the body is a new mesh, and its rest shape is hidden.
Particles and tetrahedra that a surface covers have the purpose "guide", which viewers leave out.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from pxr import Sdf, Usd, UsdGeom, Vt

from warpbots.quantities import cable_routes
from warpbots.scene import Scene, SoftBody, bars_of, sheets_of
from warpbots.solvers.matter import Matter, Surface
from warpbots.trajectory import Trajectory
from warpbots.usd.geometry.body_colors import keep_color
from warpbots.usd.geometry.gprim_writer import width
from warpbots.usd.geometry.looks import ensure_look, roughness_of
from warpbots.usd.soft.moving_points import MovingCurves, MovingMesh, MovingPoints, SoftFrame
from warpbots.usd.soft.moving_surfaces import (
    DrawnSurface,
    MovingSurface,
    grain_surface,
    node_surface,
    skin_surfaces,
)
from warpbots.usd.soft.sampled_normals import CornerNormals
from warpbots.usd.soft.shown_values import ShownValues
from warpbots.usd.soft.torn_surfaces import UncoveredPoints
from warpbots.usd.stage.applied_schemas import MOTION_API, RESULT_API
from warpbots.usd.stage.attributes import apply, at_rest, schemas
from warpbots.usd.stage.inventory import Inventory
from warpbots.usd.stage.prim_editing import editable, free_path, to_scene_coordinates
from warpbots.usd.stage.prim_roles import geometry_of, is_ours
from warpbots.usd.stage.transforms import transform
from warpbots.usd.stage.units import StageUnits

__all__ = ["Content", "point_frames"]

_THIN = 0.08
"""Width of the drawn springs of a lattice divided by their length."""

_AGREE = 1e-5
"""Largest distance at which a node and a point of a prim count as the same, divided by the size of the body."""

_Moving = MovingPoints | MovingSurface | UncoveredPoints


class Content(NamedTuple):
    """What of the soft bodies a motion shows; see `warpbots.usd.write`.

    Attributes:
        surfaces: Whether bodies without a mesh of their own have one.
        particles: Whether bodies with such a mesh also have their particles or tetrahedra.
        velocities: Whether to write velocities.
        springs: Whether to write all springs, or only the bars of trusses.
        color: Quantity to show as colours, see `warpbots.quantities.point_values`; None for the colours of the bodies.
    """

    surfaces: bool = True
    particles: bool = True
    velocities: bool = False
    springs: bool = False
    color: str | None = None


class _Part(NamedTuple):
    """A soft body whose motion is written.

    Attributes:
        stage: The stage to write to.
        path: Path of the prim of the body. The prim itself may expire, if it is an instance.
        body: The body.
        color: The colour in which the body is drawn.
        matter: All soft matter at rest.
        members: Whether each point of matter belongs to the body, shape (n,), bool.
        frame: Units and axes of the stage.
    """

    stage: Usd.Stage
    path: Sdf.Path
    body: SoftBody
    color: tuple[float, float, float]
    matter: Matter
    members: np.ndarray
    frame: StageUnits

    @property
    def prim(self) -> Usd.Prim:
        """The prim of the body."""
        return self.stage.GetPrimAtPath(self.path)

    @property
    def roughness(self) -> float:
        """Roughness of the body."""
        return roughness_of(self.body.material)

    def result(self, name: str, kind: str) -> Usd.Prim:
        """A prim for results in scene coordinates, below the prim of the body if USD allows that, else beside it."""
        inside = not self.prim.IsA(UsdGeom.Gprim)
        parent = self.prim if inside else self.prim.GetParent()
        name = name if inside else f"{self.prim.GetName()}_{name.lower()}"
        path = parent.GetPath().AppendChild(name)
        there = self.stage.GetPrimAtPath(path)
        if there and RESULT_API not in there.GetPrimTypeInfo().GetAppliedAPISchemas():
            path = free_path(self.stage, parent.GetPath(), name)
        prim = self.stage.DefinePrim(path, kind)
        apply(prim, RESULT_API)
        to_scene_coordinates(prim, self.frame)
        UsdGeom.Gprim(prim).CreateDisplayColorAttr([self.color])
        UsdGeom.Imageable(prim).CreateVisibilityAttr(UsdGeom.Tokens.inherited)
        if is_ours(self.prim):
            ensure_look(self.prim, self.color, self.roughness)
        ensure_look(prim, self.color, self.roughness)
        return prim


def point_frames(
    found: Inventory,
    scene: Scene,
    trajectory: Trajectory[Any],
    frame: StageUnits,
    content: Content,
    values: ShownValues | None,
    states: Iterable[tuple[float, Any]],
) -> Iterator[tuple[float, Callable[[float], int]]]:
    """Prepare the prims of all soft bodies on the layer that is being edited, and yield the frames.

    Args:
        found: The prims of the stage.
        scene: The scene that reading the stage gives.
        trajectory: The motion.
        frame: Units and axes of the stage.
        content: What to write.
        values: Values to write for the points of matter, without their colours; None for no values.
        states: Times [s] and states of the frames.

    Yields:
        Time [s], and a function that writes the frame at a time code and returns the number of its bytes.

    Raises:
        ValueError: Positions have the wrong shape or are not finite.
    """
    matter = trajectory.matter
    stage = next(iter(found.bodies.values())).GetStage()
    body_of = np.asarray(matter.body)
    meshes = {mesh.body: mesh for mesh in matter.surfaces if len(mesh.faces)}
    skins = skin_surfaces(scene, matter, frame) if content.surfaces else {}
    moving: list[_Moving] = []
    for k, body in enumerate(scene.bodies):
        if isinstance(body, SoftBody):
            part = _Part(stage, found.bodies[body.name].GetPath(), body, scene.colors[k], matter, body_of == k, frame)
            if k in meshes:
                parts = _moving_mesh(part, meshes[k], content)
            else:
                surface = skins.get(k)
                if surface is None and content.surfaces and part.members.any() and not bars_of(body.shape):
                    surface = grain_surface(k, matter, frame)
                parts = _moving_points(part, surface, content)
            moving += parts
            if values is not None:
                for each in parts:
                    values.add(each, part.roughness)
    moving += [_cable(stage.GetPrimAtPath(path), route, frame) for path, route in _routes(found, scene, matter)]
    for time, now, at in _moments(matter.inelastic, states, content.velocities, values):
        yield time, functools.partial(_write_frame, moving, frame.dim, now, len(body_of), values, at)


def _routes(found: Inventory, scene: Scene, matter: Matter) -> list[tuple[Sdf.Path, np.ndarray]]:
    """Path of the prim of each cable, and the points of matter at its waypoints; an instance expires when it moves."""
    routes = cable_routes(scene, matter)
    return [(found.actuators[scene.actuators[c].name].GetPath(), route) for c, route in routes.items()]


def _cable(prim: Usd.Prim, route: np.ndarray, frame: StageUnits) -> MovingPoints:
    """The curve of a cable, which goes through points of matter; the default value of its points stays the route."""
    path, stage = prim.GetPath(), prim.GetStage()
    apply(editable(prim), MOTION_API)
    return MovingPoints(UsdGeom.PointBased(stage.GetPrimAtPath(path)), route, frame)


def _hide_rest(prim: Usd.Prim, but: Usd.Prim | None = None) -> None:
    """Hide all geometry of the body `prim` except `but`, including results of an earlier motion."""
    for rest in prim.GetChildren() if not prim.IsA(UsdGeom.Gprim) else [prim]:
        if rest.IsA(UsdGeom.Imageable):
            kept = but is not None and but.GetPath().HasPrefix(rest.GetPath())
            UsdGeom.Imageable(rest).CreateVisibilityAttr(UsdGeom.Tokens.inherited if kept else UsdGeom.Tokens.invisible)


def _moving_mesh(part: _Part, mesh: Surface, content: Content) -> list[_Moving]:
    """The prims that show a body whose nodes are points of matter: a mesh, and tetrahedra of the file."""
    nodes = np.arange(len(part.matter))[mesh.nodes]
    own = _own_mesh(part.prim, part.matter.position[nodes], part.frame)
    if own is not None and own.GetTypeName() == "TetMesh" and content.surfaces and not content.particles:
        own = None
    if own is None:
        editable(part.prim)
        _hide_rest(part.prim)
        return [_surface(part, node_surface(mesh, part.matter.position, part.frame))]
    path = own.GetPath()
    own = editable(own)
    _hide_rest(part.prim, but=own)
    own = part.stage.GetPrimAtPath(path)
    apply(own, MOTION_API)
    keep_color(own, "SoftBody.color", part.body.color)
    if own.GetTypeName() == "TetMesh":
        moving: list[_Moving] = [MovingPoints(UsdGeom.PointBased(own), nodes, part.frame)]
        if content.surfaces:
            UsdGeom.Imageable(own).CreatePurposeAttr(UsdGeom.Tokens.guide)
            moving.insert(0, _surface(part, node_surface(mesh, part.matter.position, part.frame)))
        return moving
    if is_ours(part.prim):
        ensure_look(part.prim, part.color, part.roughness)
    return [MovingMesh(UsdGeom.Mesh(own), nodes, part.frame, _normals(own))]


def _surface(part: _Part, surface: DrawnSurface) -> MovingSurface:
    mesh = UsdGeom.Mesh(part.result("Surface", "Mesh"))
    mesh.CreateDoubleSidedAttr(bool(sheets_of(part.body.shape)))
    return MovingSurface(mesh, surface)


def _normals(mesh: Usd.Prim) -> CornerNormals | None:
    """The normals of a mesh of flat polygons; None for a mesh that is subdivided."""
    if UsdGeom.Mesh(mesh).GetSubdivisionSchemeAttr().Get() != UsdGeom.Tokens.none:
        return None
    rest, counts, indices = (
        np.asarray(at_rest(mesh, name)) for name in ("points", "faceVertexCounts", "faceVertexIndices")
    )
    return CornerNormals(UsdGeom.Mesh(mesh), rest.astype(np.float64), counts, indices)


def _moving_points(part: _Part, surface: DrawnSurface | None, content: Content) -> list[_Moving]:
    """Prims to show in place of the rest shape of a body: its skin, its particles as points, and springs as curves."""
    editable(part.prim)
    _hide_rest(part.prim)
    follows, moving = np.flatnonzero(part.members), []
    if surface is not None:
        moving.append(_surface(part, surface))
        define = functools.partial(_particles, part)
        moving.append(UncoveredPoints(define, moving[0], follows, part.frame, content.particles))
    else:
        moving.append(MovingPoints(_particles(part, follows), follows, part.frame))
    truss, springs = bars_of(part.body.shape), part.matter.springs
    if len(springs) and (content.springs or truss):
        moving.append(_curves(part, truss, np.flatnonzero(part.members[springs[:, 0]])))
    return moving


def _particles(part: _Part, follows: np.ndarray) -> UsdGeom.Points:
    points = UsdGeom.Points(part.result("Particles", "Points"))
    points.CreateIdsAttr(Vt.Int64Array(range(len(follows))))
    wide = width(np.asarray(part.matter.volume)[follows], part.frame.dim)
    points.CreateWidthsAttr(Vt.FloatArray.FromNumpy(wide.astype(np.float32)))
    points.SetWidthsInterpolation(UsdGeom.Tokens.vertex)
    return points


def _curves(part: _Part, truss: Any, shown: np.ndarray) -> MovingCurves:
    """The springs whose indices are in `shown`."""
    ends, inelastic = part.matter.springs[shown], part.matter.inelastic
    curves = UsdGeom.BasisCurves(part.result("Springs", "BasisCurves"))
    curves.CreateTypeAttr(UsdGeom.Tokens.linear)
    curves.CreateCurveVertexCountsAttr(Vt.IntArray(len(ends), 2))
    length = np.linalg.norm(np.diff(part.matter.position[ends], axis=1)[:, 0], axis=1)
    wide = float(2.0 * np.median(truss.radius) if truss else _THIN * np.median(length))
    curves.CreateWidthsAttr([wide] * (len(shown) if inelastic else 1))
    curves.SetWidthsInterpolation(UsdGeom.Tokens.uniform if inelastic else UsdGeom.Tokens.constant)
    return MovingCurves(curves, ends.ravel(), part.frame, shown, wide)


def _own_mesh(prim: Usd.Prim, nodes: np.ndarray, frame: StageUnits) -> Usd.Prim | None:
    """The only mesh at or below `prim`, if its points are at the positions `nodes` [m], shape (n, 3); else None."""
    parts = [p for part in geometry_of(prim) for p in Usd.PrimRange(part, Usd.TraverseInstanceProxies())]
    meshes = [p for p in parts if p.GetTypeName() in ("Mesh", "TetMesh") and RESULT_API not in schemas(p)]
    if len(meshes) != 1:
        return None
    points = np.asarray(at_rest(meshes[0], "points"), dtype=np.float64).reshape(-1, 3)
    if points.shape != nodes.shape:
        return None
    slack = _AGREE * float(np.ptp(nodes, axis=0).max())
    return meshes[0] if np.allclose(transform(frame.matrix(meshes[0]), points), nodes, rtol=0.0, atol=slack) else None


def _moments(
    inelastic: bool, states: Iterable[tuple[float, Any]], velocities: bool, shown: ShownValues | None
) -> Iterator[tuple[float, SoftFrame, np.ndarray | None]]:
    """Yields time [s], frame, and the values that are shown as colours, shape (n,), or None.

    The frame after each is computed first, so that the last one is known.
    """
    pending: tuple[float, SoftFrame, np.ndarray | None] | None = None
    for time, state in states:
        if pending is not None:
            yield pending
        position, velocity = (a[0].cpu().numpy().astype(np.float64) for a in (state.position, state.velocity))
        broken = state.broken[0].cpu().numpy().copy() if inelastic else None
        now = SoftFrame(position, velocity if velocities else None, broken, False)
        pending = float(time), now, None if shown is None else shown.at(time, state)
    if pending is not None:
        yield pending[0], pending[1]._replace(last=True), pending[2]


def _write_frame(
    moving: list[_Moving], dim: int, now: SoftFrame, count: int, shown: ShownValues | None, values: np.ndarray | None,
    code: float,
) -> int:  # fmt: skip
    """Write one frame at time code `code`; returns the number of bytes."""
    position = now.position
    if position.shape != (count, dim):
        raise ValueError(f"positions of a frame must have shape ({count}, {dim}), got {position.shape}")
    if not np.isfinite(position).all():
        particle = int(np.argwhere(~np.isfinite(position))[0][0])
        raise ValueError(
            f"the position of particle {particle} at time code {code:g} is {position[particle].tolist()}; the "
            f"simulation has diverged, reduce its time step"
        )
    size = sum(each.write(code, now) for each in moving)
    return size if shown is None else size + shown.write(code, values)
