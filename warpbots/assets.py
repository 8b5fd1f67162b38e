"""Shapes from files: meshes (STL, OBJ, PLY, ...; MSH, VTK, VTU, ...) and silhouettes in images (PNG, ...)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from warpbots.scene import SceneError, Sheet, Silhouette, TetMesh, TriangleMesh
from warpbots.scene.kinds import checked

__all__ = ["load_mesh", "load_sheet", "load_silhouette", "load_tetrahedra"]


@checked
def load_mesh(path: str | Path, scale: float = 1.0) -> TriangleMesh:
    """A solid from a mesh file that trimesh can read.

    Args:
        path: STL, OBJ, PLY, OFF, GLB, ...
        scale: Metres per unit of the file: 0.001 for a file in millimetres.

    Raises:
        FileNotFoundError: There is no such file.
        SceneError: The file holds no mesh, or one that is not watertight.
    """
    path = _existing(path)
    vertices, faces = _triangles(path, "a closed triangle mesh")
    return _said_of(path, TriangleMesh, vertices * scale, faces)


@checked
def load_sheet(path: str | Path, thickness: float, scale: float = 1.0, bending: float | None = None) -> Sheet:
    """Cloth from a mesh file that trimesh can read.

    Args:
        path: STL, OBJ, PLY, OFF, GLB, ...: its triangles are the middle of the sheet.
        thickness: Thickness of the sheet [m].
        scale: Metres per unit of the file: 0.001 for a file in millimetres.
        bending: Flexural rigidity [N m]; None for that of a plate of its material.

    Raises:
        FileNotFoundError: There is no such file.
        SceneError: The file holds no triangles, or they are no sheet.
    """
    path = _existing(path)
    vertices, faces = _triangles(path, "a triangle mesh")
    _, first, inverse = np.unique(vertices, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)  # vertices that files repeat along seams are one, in the order of the file
    used, faces = np.unique(np.argsort(order)[inverse.reshape(-1)][faces], return_inverse=True)
    vertices = vertices[first[order]][used]
    return _said_of(path, Sheet, vertices * scale, faces.reshape(-1, 3), thickness, bending)


@checked
def load_tetrahedra(path: str | Path, scale: float = 1.0) -> TetMesh:
    """A solid as tetrahedra from a file that meshio can read; inverted ones are turned.

    Args:
        path: MSH, VTK, VTU, INP, XDMF, ...; what it has besides tetrahedra is passed over.
        scale: Metres per unit of the file: 0.001 for a file in millimetres.

    Raises:
        FileNotFoundError: There is no such file.
        ImportError: meshio is not installed.
        SceneError: The file holds no tetrahedra, or they make no solid.
    """
    path = _existing(path)
    try:
        import meshio
    except ImportError:
        raise ImportError('load_tetrahedra needs meshio: pip install "warpbots[tet]"') from None
    try:
        mesh = meshio.read(path)
    except (Exception, SystemExit) as error:  # meshio raises whatever its readers raise, or ends the process
        raise SceneError(f"{path} cannot be read as a mesh: {error}") from error
    tets = [block.data for block in mesh.cells if block.type == "tetra"]
    if not tets:
        found = ", ".join(f"{len(block.data)} of type {block.type}" for block in mesh.cells) or "no cells"
        raise SceneError(f"{path} holds no tetrahedra of four nodes but {found}; export it as linear tetrahedra")
    used, tets = np.unique(np.concatenate(tets), return_inverse=True)
    return _said_of(path, TetMesh.oriented, mesh.points[used] * scale, tets.reshape(-1, 4))


@checked
def load_silhouette(
    path: str | Path, height: float, lower: tuple[float, float] = (0.0, 0.0), threshold: float = 0.5
) -> Silhouette:
    """A 2D shape from an image: its opaque pixels where it has transparency, else its dark ones.

    Args:
        path: An image that Pillow can read.
        height: Height of the silhouette [m].
        lower: Where its lower left corner lies [m].
        threshold: Opacity above which (or lightness below which) a pixel is inside, in (0, 1).

    Raises:
        FileNotFoundError: There is no such file.
        SceneError: The file is no image, or has no silhouette.
    """
    from PIL import Image

    path = _existing(path)
    try:
        with Image.open(path) as image:
            pixels = np.asarray(image.convert("RGBA"), dtype=np.float64) / 255.0
    except Exception as error:  # Pillow raises whatever its readers raise
        raise SceneError(f"{path} is not an image that Pillow can read; use a PNG") from error
    alpha, lightness = pixels[..., 3], pixels[..., :3].mean(axis=-1)
    mask = alpha > threshold if alpha.min() < threshold else lightness < threshold
    if not mask.any() or mask.all():
        raise SceneError(
            f"{path} has no silhouette: {'every' if mask.all() else 'no'} pixel is inside at threshold {threshold:g}; "
            f"it needs an opaque or dark shape on a transparent or light ground"
        )
    rows, columns = np.nonzero(mask)
    mask = mask[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    return Silhouette(mask, lower, height / mask.shape[0])


def _existing(path: str | Path) -> Path:
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; paths are relative to {Path.cwd().name}/")
    return path


def _triangles(path: Path, wanted: str) -> tuple[np.ndarray, np.ndarray]:
    """Vertices, shape (n, 3), and faces, shape (m, 3), of a file that trimesh can read."""
    import trimesh

    try:
        mesh = trimesh.load_mesh(path)
    except Exception as error:  # trimesh raises whatever its readers raise
        raise SceneError(f"{path} cannot be read as a triangle mesh: {error}") from error
    if not hasattr(mesh, "faces") or len(mesh.faces) == 0:
        raise SceneError(f"{path} holds no triangles; export it as {wanted} (STL, OBJ, PLY)")
    return np.asarray(mesh.vertices), np.asarray(mesh.faces)


def _said_of(path: Path, make: Callable[..., Any], *values: Any) -> Any:
    """What `make` returns; its error names the file."""
    try:
        return make(*values)
    except SceneError as error:
        raise SceneError(f"{path}: {error}") from None
