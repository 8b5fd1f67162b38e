"""Meshes: where URDF means them to be, those that MuJoCo does not read, and convex hulls."""

import warnings
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from warpbots.input_files import readable, refuse_outside
from warpbots.robots.mujoco_versions import delete
from warpbots.scene import SceneError, TriangleMesh

__all__ = ["convex_hull", "give", "locate", "needed_hulls"]

_MUJOCO = (".stl", ".obj", ".msh")
_FOREIGN = (".dae", ".gltf", ".glb", ".ply", ".off")


def locate(robot: Element, path: Path, root: Path, meshdir: str | None) -> dict[str, Path]:
    """Where the meshes of URDF are; in the file they have names of their own now.

    Args:
        robot: The element ``<robot>``; it is changed.
        path: The file.
        root: The folder outside of which no file is read.
        meshdir: A folder beside that of the file in which meshes lie without the folders that the file says.

    Raises:
        SceneError: A mesh is not there, lies outside of `root`, or is of a kind that is not read.
    """
    known: dict[tuple[Path, str], str] = {}
    for link in robot.findall("link"):
        for mesh in link.iter("mesh"):
            said = mesh.get("filename", "")
            place = _place(said, path, root, meshdir)
            if place is None:
                raise SceneError(
                    f"{path}: link {link.get('name')!r}: there is no mesh {said!r}; put it where the file says, or say "
                    f"where meshes lie with compiler={{'meshdir': ...}}"
                )
            if place.suffix.lower() not in (*_MUJOCO, *_FOREIGN):
                raise SceneError(
                    f"{path}: link {link.get('name')!r}: meshes are read from {', '.join((*_MUJOCO, *_FOREIGN))}, got "
                    f"{said!r}; convert it to one of these"
                )
            key, name, count = (place, mesh.get("scale", "")), f"{place.stem}.stl", 1
            while key not in known and name in known.values():
                count += 1
                name = f"{place.stem} {count}.stl"
            mesh.set("filename", known.setdefault(key, name))
    return {name: place for (place, _), name in known.items()}


def _place(said: str, path: Path, root: Path, meshdir: str | None) -> Path | None:
    """The file that URDF at `path` names: beside it, in `meshdir`, or, in a package, in or above its folder.

    Packages are looked for no farther up than below the home folder.
    """
    scheme, _, inside = said.rpartition("://")
    package = scheme in ("package", "model")
    inside = inside.lstrip("/") if package else inside
    own = path.resolve().parent
    beside = [own / inside] if meshdir is None else [own / meshdir / Path(inside).name, own / inside]
    for place in beside:
        if place.is_file():
            refuse_outside(place, path, root)
            return readable(place)
    _, _, rest = inside.partition("/")
    for folder in (own, *own.parents) if package else ():
        if Path.home().resolve().is_relative_to(folder) and not folder.is_relative_to(root):
            return None
        for place in (folder / part for part in (inside, rest) if part):
            if place.is_file():
                refuse_outside(place, path, folder)
                return readable(place)
    return None


def give(spec: Any, places: dict[str, Path]) -> None:
    """Tell MuJoCo where meshes are, and the hulls of those that it does not read.

    Raises:
        SceneError: One cannot be read.
    """
    spec.strippath = False
    for mesh in spec.meshes:
        place = places[mesh.file]
        if place.suffix.lower() in _MUJOCO:
            mesh.file = str(place)
        else:
            _replace(mesh, convex_hull(_vertices(place)), place)


def needed_hulls(spec: Any, words: Any, folder: Path, urdf: bool, lines: list[str]) -> None:
    """Put convex hulls in the place of meshes that MuJoCo refuses, where a file says no mass by them.

    Args:
        spec: An `mujoco.MjSpec`; it is changed.
        words: The module `mujoco`.
        folder: Where meshes lie whose paths are relative.
        urdf: Whether the file is URDF, in which no mass follows from a mesh.
        lines: Takes a line for every mesh that has no hull either, and is left out.

    Raises:
        SceneError: One cannot be read.
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
        if not mesh.file or mesh.name in weighing or not place.is_file() or _taken(mesh, place, words):
            continue
        hull = convex_hull(_vertices(place))
        if hull is not None:
            _replace(mesh, hull, place)
            continue
        for body in spec.bodies:
            for geom in [g for g in body.geoms if g.meshname == mesh.name]:
                lines.append(f"geom {geom.name!r} of {body.name!r}: mesh {mesh.name!r} has no volume")
                delete(spec, geom)
        delete(spec, mesh)


def _taken(mesh: Any, place: Path, words: Any) -> bool:
    """Whether MuJoCo takes a mesh alone."""
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
        raise SceneError(f"mesh {place} has no convex hull with a volume; take it out, or give it a thickness")
    vertices, faces = hull
    middle = vertices.mean(axis=0)
    if np.ptp(vertices, axis=0).max() * 1e-6 < np.finfo(np.float32).eps * np.abs(middle).max():
        raise SceneError(
            f"mesh {place} lies {np.abs(middle).max():.3g} from its origin, farther than its corners are told apart"
        )
    mesh.file, mesh.uservert, mesh.userface = "", vertices.ravel(), faces.ravel()


def _vertices(place: Path) -> np.ndarray:
    """Corners of all surfaces of a file, in the units and axes in which URDF means them.

    COLLADA is read as by ROS: its unit counts, its ``up_axis`` does not. glTF has metres and y upwards, which is turned
    to z.

    Raises:
        SceneError: It cannot be read.
    """
    suffix = place.suffix.lower()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            points = _collada(place) if suffix == ".dae" else _trimesh(place)
    except ImportError:
        raise
    except Exception as fault:  # whatever the parsers of broken files raise
        raise SceneError(f"mesh {place} cannot be read: {' '.join(str(fault).split())[:200]}") from fault
    if not np.isfinite(points).all():
        raise SceneError(f"mesh {place} has corners that are no numbers; write it again")
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
            f"{place} is COLLADA, which is read by pycollada; get it with: pip install 'warpbots[robots]'"
        ) from fault
    if b"<!ENTITY" in place.read_bytes():
        raise ValueError("it declares entities, and these are not read")
    file = collada.Collada(str(place), ignore=[collada.common.DaeUnsupportedError, collada.common.DaeBrokenRefError])
    if file.scene is None:
        return np.zeros((0, 3))
    surfaces = [part for geometry in file.scene.objects("geometry") for part in geometry.primitives()]
    parts = [part.vertex[np.unique(_indices(part))] for part in surfaces]
    return (file.assetInfo.unitmeter or 1.0) * np.concatenate(parts) if parts else np.zeros((0, 3))


def _indices(part: Any) -> np.ndarray:
    return np.asarray(part.vertex_index if part.vertex_index is not None else [], dtype=np.int64).reshape(-1)


def convex_hull(points: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Convex hull of points: its corners and its faces, counter-clockwise seen from outside; None if it is flat.

    Qhull's facets are divided into triangles, and where the corners of one lie all but on a line, its normal says
    nothing of which side is outside. Then the faces follow from those beside them; and where Qhull has joined so many
    that a surface does not close, its points are moved by rounding, as its option QJ does.
    """
    import trimesh
    from scipy.spatial import ConvexHull, QhullError

    try:
        plain = trimesh.convex.convex_hull(points)
        hull = np.asarray(plain.vertices), np.asarray(plain.faces)
        if _closed(*hull):
            return hull
        for options in ("QbB Pp Qt", "QbB Pp QJ"):
            found = ConvexHull(points, qhull_options=options)
            hull = _compact(points, _turned(found))
            if _closed(*hull):
                return hull
    except (QhullError, ValueError):
        pass
    return None


def _closed(vertices: np.ndarray, faces: np.ndarray) -> bool:
    try:
        return TriangleMesh(vertices, faces).volume > 0.0
    except SceneError:
        return False


def _turned(hull: Any) -> np.ndarray:
    """Triangles of a hull of Qhull, each turned as those beside it, and the largest by its normal."""
    faces = hull.simplices.copy()
    a, b, c = (hull.points[faces[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    first = int(np.linalg.norm(normals, axis=1).argmax())
    if normals[first] @ hull.equations[first, :3] < 0.0:
        faces[first] = faces[first, ::-1]
    seen, stack = {first}, [first]
    while stack:
        one = stack.pop()
        edges = {(faces[one, k], faces[one, k - 2]) for k in range(3)}
        for other in hull.neighbors[one]:
            if other not in seen:
                if any((faces[other, k], faces[other, k - 2]) in edges for k in range(3)):
                    faces[other] = faces[other, ::-1]
                seen.add(other)
                stack.append(other)
    return faces


def _compact(points: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    used, inverse = np.unique(faces, return_inverse=True)
    return points[used], inverse.reshape(faces.shape)
