"""Shapes from files: triangle meshes (STL, OBJ, PLY, ...) and silhouettes in images (PNG, ...)."""

from pathlib import Path

import numpy as np

from warpbots.scene import SceneError, Silhouette, TriangleMesh

__all__ = ["load_mesh", "load_silhouette"]


def load_mesh(path: str | Path, scale: float = 1.0) -> TriangleMesh:
    """A solid from a mesh file that trimesh can read.

    Args:
        path: STL, OBJ, PLY, OFF, GLB, ...
        scale: Metres per unit of the file: 0.001 for a file in millimetres.

    Raises:
        FileNotFoundError: There is no such file.
        SceneError: The file holds no mesh, or one that is not watertight.
    """
    import trimesh

    path = _existing(path)
    try:
        mesh = trimesh.load_mesh(path)
    except Exception as error:  # trimesh raises whatever its readers raise
        raise SceneError(f"{path} cannot be read as a triangle mesh: {error}") from error
    if not hasattr(mesh, "faces") or len(mesh.faces) == 0:
        raise SceneError(f"{path} holds no triangles; export it as a closed triangle mesh (STL, OBJ, PLY)")
    try:
        return TriangleMesh(np.asarray(mesh.vertices) * scale, mesh.faces)
    except SceneError as error:
        raise SceneError(f"{path}: {error}") from None


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
    from PIL import Image, UnidentifiedImageError

    path = _existing(path)
    try:
        with Image.open(path) as image:
            pixels = np.asarray(image.convert("RGBA"), dtype=np.float64) / 255.0
    except UnidentifiedImageError as error:
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
