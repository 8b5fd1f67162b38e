"""Reads shapes from files: surface meshes (STL, OBJ, ...), tetrahedra (MSH, VTK, ...) and silhouettes (PNG, ...)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from warpbots.file_warnings import warn_of_file
from warpbots.input_files import readable, size_doubts
from warpbots.meshing.shells import turned
from warpbots.read_limits import bounded_memory, refuse_claims
from warpbots.scene import SceneError, Sheet, Silhouette, TetMesh, TriangleMesh
from warpbots.scene.field_types import checked

__all__ = ["load_mesh", "load_sheet", "load_silhouette", "load_tetrahedra"]

_BYTES = 25.0
"""Largest memory for one byte of a file while it is read [bytes]: 22 for an OBJ."""

_UNPACKED = 60
"""Largest number of unpacked bytes per byte of a packed format."""

_PIXELS = 4e7
"""Largest number of pixels of an image with a silhouette."""

_CLOSE = "; close it in a mesh editor, or read it as cloth with load_sheet"

_UPRIGHT = {
    "X_UP": np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]]),
    "Y_UP": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]),
    "Z_UP": np.eye(3),
}
"""Rotations to z up, by COLLADA's name of the up axis."""


@checked
def load_mesh(path: str | Path, scale: float | None = None, inner: str | None = None) -> TriangleMesh:
    """A solid from a mesh file that trimesh can read, z up.

    glTF (metres, y up) and COLLADA (unit and up axis in the file) are converted. Other formats do not define an up axis
    and are not rotated. All bodies of a file become one solid, with the placements of the file; inconsistent
    orientations of faces are corrected for each closed surface. A closed surface that lies inside another one bounds a
    void, such as an air chamber, if its faces are oriented inwards; if they are oriented outwards, `inner` decides. A
    solid larger than ten metres or smaller than a millimetre causes a warning.

    Args:
        path: STL, OBJ, PLY, OFF, GLB, DAE, ...; other files to which it refers must lie in its folder.
        scale: Metres per unit of the file, 0.001 for millimetres; None for the unit that the file states, or for metres
            if it states none.
        inner: Content of a closed surface that lies inside another one and is oriented outwards: ``"solid"``, such as a
            screw in a housing, or ``"void"``. None for ``"solid"`` with a warning.

    Raises:
        FileNotFoundError: There is no such file.
        ImportError: A package that trimesh needs for such files is not installed.
        ValueError: `inner` is neither ``"solid"``, ``"void"`` nor None, or `scale` is not positive.
        SceneError: The file has no mesh, its mesh is not watertight, or the file is a Git LFS pointer or does not fit
            into memory.
    """
    if inner not in (None, "solid", "void"):
        raise ValueError(f"load_mesh: inner must be 'solid', 'void' or None, got {inner!r}")
    _refuse_scale("load_mesh", scale)
    path = readable(path, _BYTES)
    vertices, faces = _triangles(path, "a closed triangle mesh", scale)
    faces, alike = turned(vertices, faces, inner or "solid")
    notes = []
    if alike and inner is None:
        found = f"are {alike} closed surfaces that face" if alike > 1 else "is a closed surface that faces"
        notes.append(
            ("", f"inside another one {found} outwards; taken as solid. For a void use load_mesh(..., "
                 f"inner='void'), otherwise inner='solid'")
        )  # fmt: skip
    mesh = _said_of(path, TriangleMesh, vertices, faces, remedy=_CLOSE)
    _warn(path, notes, mesh.bounds)
    return mesh


@checked
def load_sheet(path: str | Path, thickness: float, scale: float | None = None, bending: float | None = None) -> Sheet:
    """A sheet of cloth from a mesh file that trimesh can read; z is up, as for `load_mesh`.

    Args:
        path: STL, OBJ, PLY, OFF, GLB, ...: its triangles are the middle surface of the sheet.
        thickness: Thickness of the sheet [m].
        scale: Metres per unit of the file, 0.001 for millimetres; None for the unit that the file states, or for metres
            if it states none.
        bending: Flexural rigidity [N m]; None for the rigidity of a plate of the material of the body.

    Raises:
        FileNotFoundError: There is no such file.
        ImportError: A package that trimesh needs for such files is not installed.
        ValueError: `scale` is not positive.
        SceneError: The file has no triangles, or its triangles are not a valid sheet.
    """
    _refuse_scale("load_sheet", scale)
    path = readable(path, _BYTES)
    vertices, faces = _triangles(path, "a triangle mesh", scale)
    _, first, inverse = np.unique(vertices, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)  # vertices repeated along seams are merged, in the order of the file
    used, faces = np.unique(np.argsort(order)[inverse.reshape(-1)][faces], return_inverse=True)
    vertices = vertices[first[order]][used]
    sheet = _said_of(path, Sheet, vertices, faces.reshape(-1, 3), thickness, bending)
    _warn(path, [], vertices)
    return sheet


@checked
def load_tetrahedra(path: str | Path, scale: float = 1.0) -> TetMesh:
    """A solid of tetrahedra from a file that meshio can read; inverted tetrahedra are reoriented.

    Args:
        path: MSH, VTK, VTU, INP, XDMF, ...; cells other than tetrahedra are ignored. Quadratic tetrahedra are reduced
            to their corners, so that edges become straight; `ProjectiveDynamics(elements="quadratic_tetrahedra")` adds
            nodes at the middles of the straight edges.
        scale: Metres per unit of the file: 0.001 for a file in millimetres.

    Raises:
        FileNotFoundError: There is no such file.
        ImportError: meshio is not installed.
        ValueError: `scale` is not positive.
        SceneError: The file has no tetrahedra, the tetrahedra are not a solid, or a midside node is farther than half
            an edge length from the middle of its edge.
    """
    _refuse_scale("load_tetrahedra", scale)
    path = readable(path, _BYTES)
    try:
        import meshio
    except ImportError:
        raise ImportError('load_tetrahedra needs meshio: pip install "warpbots[tet]"') from None
    refuse_claims(path)
    try:
        with bounded_memory(path, _BYTES):
            mesh = meshio.read(path)
    except (Exception, SystemExit) as error:  # meshio raises whatever its readers raise, or ends the process
        reason = "its content is not of the format of its ending" if isinstance(error, SystemExit) else error
        raise SceneError(f"{path} cannot be read as a mesh: {reason}") from error
    tets = [block.data[:, :4] for block in mesh.cells if block.type in ("tetra", "tetra10")]
    if not tets:
        found = ", ".join(f"{len(block.data)} of type {block.type}" for block in mesh.cells) or "no cells"
        raise SceneError(f"{path} has no tetrahedra but {found}; export it as linear or quadratic tetrahedra")
    notes = []
    for block in mesh.cells:
        if block.type == "tetra10":
            notes += _bent_edges(path, mesh.points, block.data)
    used, tets = np.unique(np.concatenate(tets), return_inverse=True)
    solid = _said_of(path, TetMesh.oriented, mesh.points[used] * scale, tets.reshape(-1, 4))
    _warn(path, notes, solid.vertices)
    return solid


def _refuse_scale(who: str, scale: float | None) -> None:
    """Raise if a scale would mirror what is read, or leave no extent."""
    if scale is not None and not scale > 0.0:
        raise ValueError(f"{who}: scale must be positive [metres per unit of the file], got {scale:g}")


def _bent_edges(path: Path, x: np.ndarray, tets: np.ndarray) -> list[tuple[str, str]]:
    """A note for a warning if midside nodes are not at the midpoints of their edges; else an empty list.

    Args:
        path: The file.
        x: Nodes of the mesh in the file, shape (n, 3).
        tets: Nodes of quadratic tetrahedra in the order of VTK, shape (n_tets, 10).

    Raises:
        SceneError: A midside node is farther than half an edge length from the midpoint of its edge.
    """
    a, b, middle = x[tets[:, [0, 1, 2, 0, 1, 2]]], x[tets[:, [1, 2, 0, 3, 3, 3]]], x[tets[:, 4:]]
    off = np.linalg.norm(middle - (a + b) / 2.0, axis=2) / np.linalg.norm(b - a, axis=2)
    e, k = np.unravel_index(int(off.argmax()), off.shape)
    what = (
        f"node {tets[e, 4 + k]} of the quadratic tetrahedron {e} is {off[e, k]:.3g} lengths of its edge off the"
        f" middle of that edge"
    )
    if off[e, k] > 0.5:
        raise SceneError(
            f"{path}: {what}, and at most 0.5 are allowed; mesh the solid again, or export linear tetrahedra"
        )
    if off[e, k] <= 1e-3:
        return []
    return [("", f"{what}; edges become straight, as load_tetrahedra takes corners only")]


@checked
def load_silhouette(
    path: str | Path, height: float, lower: tuple[float, float] = (0.0, 0.0), threshold: float = 0.5
) -> Silhouette:
    """A 2D shape from an image: the opaque pixels if the image has transparency, else the dark pixels.

    Args:
        path: An image that Pillow can read.
        height: Height of the silhouette [m].
        lower: Lower left corner of the silhouette [m].
        threshold: Opacity above which (or lightness below which) a pixel is inside, in (0, 1).

    Raises:
        FileNotFoundError: There is no such file.
        SceneError: The file is not an image, or has no silhouette.
    """
    from PIL import Image

    path = readable(path)
    try:
        with Image.open(path) as image:
            if image.width * image.height > _PIXELS:
                raise SceneError(
                    f"{path}: its {image.width} x {image.height} pixels are more than {_PIXELS:.0e}; make it smaller, "
                    f"an outline needs a few hundred"
                )
            pixels = np.asarray(image.convert("RGBA"))
    except SceneError:
        raise
    except Exception as error:  # Pillow raises whatever its readers raise
        raise SceneError(f"{path} is not an image that Pillow can read; use a PNG") from error
    alpha = pixels[..., 3] / 255.0
    mask = alpha > threshold if alpha.min() < threshold else pixels[..., :3].mean(axis=-1) / 255.0 < threshold
    if not mask.any() or mask.all():
        raise SceneError(
            f"{path} has no silhouette: {'every' if mask.all() else 'no'} pixel is inside at threshold {threshold:g}; "
            f"it needs an opaque or dark shape on a transparent or light ground"
        )
    rows, columns = np.nonzero(mask)
    mask = mask[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    return Silhouette(mask, lower, height / mask.shape[0])


def _triangles(path: Path, wanted: str, scale: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Vertices [m], z up, shape (n, 3), and faces, shape (m, 3), of a file that trimesh can read."""
    import trimesh

    refuse_claims(path)
    try:
        with bounded_memory(path, _BYTES * _UNPACKED):
            scene = trimesh.load_scene(path, process=False)
            mesh = scene.to_mesh()
        unit, rotation = _frame(path, scene)
    except ImportError as error:
        raise ImportError(f"{path}: trimesh needs a package for such files that is not installed: {error}") from error
    except Exception as error:  # trimesh raises whatever its readers raise
        reason = f"it refers to {error}, which does not exist" if isinstance(error, FileNotFoundError) else str(error)
        raise SceneError(
            f"{path} cannot be read as a triangle mesh: {reason}; export it again (STL, OBJ, PLY)"
        ) from error
    if len(mesh.faces) == 0:
        raise SceneError(f"{path} has no triangles; export it as {wanted} (STL, OBJ, PLY)")
    _refuse_corners(path, np.asarray(mesh.vertices), np.asarray(mesh.faces))
    mesh = trimesh.Trimesh(mesh.vertices, mesh.faces)
    return np.asarray(mesh.vertices) @ rotation.T * (unit if scale is None else scale), np.asarray(mesh.faces)


def _refuse_corners(path: Path, vertices: np.ndarray, faces: np.ndarray) -> None:
    """Raise if a triangle has the index of a vertex that does not exist, or a vertex that is not finite.

    Raises:
        SceneError: A triangle has such a vertex.
    """
    if vertices.shape[1:] != (3,) or faces.shape[1:] != (3,):
        raise SceneError(f"{path}: its vertices and faces have shapes {vertices.shape} and {faces.shape}, not (n, 3)")
    lost = ((faces < 0) | (faces >= len(vertices))).any(axis=1)
    if lost.any():
        raise SceneError(f"{path}: {lost.sum()} of its {len(lost)} triangles have corners that do not exist")
    wild = ~np.isfinite(vertices[faces]).all(axis=(1, 2))
    if wild.any():
        raise SceneError(f"{path}: {wild.sum()} of its {len(wild)} triangles have corners that are not finite")


def _frame(path: Path, scene: Any) -> tuple[float, np.ndarray]:
    """Metres per unit of a file, and the rotation to z up, as the format or the content of the file states them."""
    from xml.etree import ElementTree

    from trimesh.units import unit_conversion

    if path.suffix.lower() in (".gltf", ".glb"):
        return 1.0, _UPRIGHT["Y_UP"]
    if path.suffix.lower() != ".dae":
        return unit_conversion(scene.units, "meters") if scene.units else 1.0, _UPRIGHT["Z_UP"]
    asset = ElementTree.parse(path).getroot().find("{*}asset")
    unit, up = (None, None) if asset is None else (asset.find("{*}unit"), asset.findtext("{*}up_axis"))
    return 1.0 if unit is None else float(unit.get("meter", 1.0)), _UPRIGHT[(up or "Y_UP").strip()]


def _said_of(path: Path, make: Callable[..., Any], *values: Any, remedy: str = "") -> Any:
    """The result of `make(*values)`.

    If `make` raises an error, it is raised again with the name of the file and the remedy.
    """
    try:
        return make(*values)
    except SceneError as error:
        raise SceneError(f"{path}: {error}{remedy}") from None


def _warn(path: Path, notes: list[tuple[str, str]], points: np.ndarray) -> None:
    """Issue one warning about a file, with the given notes and, if its size is unlikely, a note about the size.

    Args:
        path: The file.
        notes: Notes on the shape.
        points: Points that span the whole shape [m], shape (n, dim).
    """
    scale = "scale, such as scale=1e-3 for a file in millimetres"
    warn_of_file(path, [*notes, *size_doubts("it", float(np.ptp(points, axis=0).max()), scale)])
