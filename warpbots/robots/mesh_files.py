"""Meshes of robot files: reads formats that MuJoCo does not read, and replaces meshes by convex hulls."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from warpbots.meshing.convex_hulls import convex_hull
from warpbots.read_limits import bounded_memory, refuse_claims
from warpbots.scene import SceneError

__all__ = ["READ", "replace_refused_meshes", "set_mesh_files"]

_BYTES = 100.0
"""Largest memory for reading a mesh, per byte of the mesh file [bytes]."""

_MUJOCO = (".stl", ".obj", ".msh")
READ = (*_MUJOCO, ".dae", ".gltf", ".glb", ".ply", ".off")
"""Endings of the mesh files that are read."""


def set_mesh_files(spec: Any, places: dict[str, Path]) -> None:
    """Set in `spec` the locations of meshes in formats that MuJoCo reads, and the convex hulls of all other meshes.

    Raises:
        SceneError: A mesh cannot be read.
    """
    spec.strippath = False
    for mesh in spec.meshes:
        place = places[mesh.file]
        if place.suffix.lower() in _MUJOCO:
            mesh.file = str(place)
        else:
            _replace(mesh, convex_hull(_vertices(place)), place)


def replace_refused_meshes(spec: Any, words: Any, folder: Path, urdf: bool, lines: list[str]) -> None:
    """Replace meshes that MuJoCo rejects by their convex hulls, except for meshes from which a mass is computed.

    Args:
        spec: An `mujoco.MjSpec`; it is changed.
        words: The module `mujoco`.
        folder: The folder to which paths of meshes are relative.
        urdf: Whether the file is URDF, in which meshes determine no mass.
        lines: Receives a line for every geom that is left out because its mesh has no convex hull either.

    Raises:
        SceneError: A mesh cannot be read.
    """
    by_geometry = spec.compiler.inertiafromgeom == words.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    weighing = {
        geom.meshname
        for body in spec.bodies[1:]
        for geom in body.geoms
        if by_geometry or not (urdf or body.explicitinertial)
    }
    for mesh in list(spec.meshes):
        place = folder / mesh.file
        if not mesh.file or mesh.name in weighing or not place.is_file() or _accepted(mesh, place, words):
            continue
        hull = convex_hull(_vertices(place))
        if hull is not None:
            _replace(mesh, hull, place)
            continue
        for body in spec.bodies:
            for geom in [g for g in body.geoms if g.meshname == mesh.name]:
                lines.append(f"geom {geom.name!r} of {body.name!r}: mesh {mesh.name!r} has no volume")
                spec.delete(geom)
        spec.delete(mesh)


def _accepted(mesh: Any, place: Path, words: Any) -> bool:
    """Whether MuJoCo accepts a model that contains only the mesh `mesh`, whose file is at `place`."""
    spec = words.MjSpec()
    alone = spec.add_mesh(name="m", file=str(place), scale=mesh.scale, inertia=mesh.inertia)
    alone.maxhullvert = mesh.maxhullvert
    spec.worldbody.add_body().add_geom(type=words.mjtGeom.mjGEOM_MESH, meshname="m")
    try:
        spec.compile()
    except ValueError:
        return False
    return True


def _replace(mesh: Any, hull: tuple[np.ndarray, np.ndarray] | None, place: Path) -> None:
    if hull is None:
        raise SceneError(f"mesh {place} has no convex hull with a volume; remove it, or give it a thickness")
    vertices, faces = hull
    middle = vertices.mean(axis=0)
    if np.ptp(vertices, axis=0).max() * 1e-6 < np.finfo(np.float32).eps * np.abs(middle).max():
        raise SceneError(
            f"mesh {place} lies {np.abs(middle).max():.3g} from its origin, so far that single "
            f"precision cannot resolve its vertices"
        )
    mesh.file, mesh.uservert, mesh.userface = "", vertices.ravel(), faces.ravel()


def _vertices(place: Path) -> np.ndarray:
    """Vertices of all surfaces of a file, in the units and axes of URDF.

    COLLADA is read as in ROS: its unit is used, its ``up_axis`` is ignored. glTF is in metres with y up; its vertices
    are rotated to z up.

    Raises:
        SceneError: The file cannot be read.
    """
    suffix = place.suffix.lower()
    refuse_claims(place)
    try:
        with warnings.catch_warnings(), bounded_memory(place, _BYTES):
            warnings.simplefilter("ignore")
            points = _collada(place) if suffix == ".dae" else _trimesh(place)
    except (ImportError, SceneError):
        raise
    except Exception as fault:  # parsers raise any exception for broken files
        raise SceneError(f"mesh {place} cannot be read: {' '.join(str(fault).split())[:200]}") from fault
    if not np.isfinite(points).all():
        raise SceneError(f"mesh {place} has vertices that are not finite; export it again")
    return points @ np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]) if suffix in (".gltf", ".glb") else points


def _trimesh(place: Path) -> np.ndarray:
    import trimesh

    scene = trimesh.load_scene(place)
    parts = [mesh.vertices[np.unique(mesh.faces)] for mesh in scene.dump() if isinstance(mesh, trimesh.Trimesh)]
    return np.concatenate(parts) if parts else np.zeros((0, 3))


def _collada(place: Path) -> np.ndarray:
    try:
        import collada
    except ImportError as fault:
        raise ImportError(
            f"{place} is COLLADA, which is read with pycollada; install it with: pip install 'warpbots[robots]'"
        ) from fault
    if b"<!ENTITY" in place.read_bytes():
        raise ValueError("it declares entities, which are not supported")
    file = collada.Collada(str(place), ignore=[collada.common.DaeUnsupportedError, collada.common.DaeBrokenRefError])
    if file.scene is None:
        return np.zeros((0, 3))
    surfaces = [part for geometry in file.scene.objects("geometry") for part in geometry.primitives()]
    parts = [part.vertex[np.unique(_indices(part))] for part in surfaces]
    return (file.assetInfo.unitmeter or 1.0) * np.concatenate(parts) if parts else np.zeros((0, 3))


def _indices(part: Any) -> np.ndarray:
    return np.asarray(part.vertex_index if part.vertex_index is not None else [], dtype=np.int64).reshape(-1)
