"""Tetrahedral meshes of closed surfaces by fTetWild (Hu et al. 2020), with a cache.

fTetWild accepts any surface, including overlapping parts and holes, but returns a different mesh in every run, even
with one thread. Meshes are therefore kept in memory and in the user's cache on disk, so that a scene always has the
same mesh.
"""

import contextlib
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from collections import OrderedDict
from importlib import metadata
from pathlib import Path

import numpy as np

from warpbots.output_files import cache_folder, replacing, temporary_folder
from warpbots.scene import SceneError, TetMesh

__all__ = ["fill"]

_KEPT = 64
"""Number of meshes that are kept in memory."""

_PROGRAM = """
import numpy as np
from pytetwild import tetrahedralize

given = np.load("surface.npz")
vertices, tets = tetrahedralize(
    given["vertices"], given["faces"], edge_length_abs=float(given["edge"]), epsilon=float(given["envelope"]),
    num_threads=1, quiet=True,
)
np.savez("mesh.npz", vertices=vertices, tets=tets)
"""
"""The program that runs in a separate process and folder."""

_known: OrderedDict[str, TetMesh] = OrderedDict()


def fill(vertices: np.ndarray, faces: np.ndarray, cell_size: float, envelope: float) -> TetMesh:
    """Fill a closed surface with tetrahedra.

    Args:
        vertices: Vertex positions of the surface [m], shape (n, 3).
        faces: Vertex indices, counter-clockwise seen from outside, shape (m, 3).
        cell_size: Target edge length [m].
        envelope: Largest distance of the surface of the mesh from the given surface [m].

    Raises:
        ImportError: pytetwild is not installed.
        SceneError: The surface encloses nothing, or fTetWild fails.
    """
    key = _key(vertices, faces, cell_size, envelope)
    if key not in _known:
        folder = cache_folder("meshes")
        path = folder and folder / f"{key}.npz"
        mesh = _load(path)
        if mesh is None:
            made = _made(vertices, faces, cell_size, envelope)
            mesh = _load(path)  # another process may have written it meanwhile
            if mesh is None:
                mesh = made
                _save(path, mesh)
        _known[key] = mesh
    _known.move_to_end(key)
    while len(_known) > _KEPT:
        _known.popitem(last=False)
    return _known[key]


def _made(vertices: np.ndarray, faces: np.ndarray, cell_size: float, envelope: float) -> TetMesh:
    """A new mesh, made in a separate process.

    fTetWild leaves files in its working folder, and ends its process on failure.
    """
    if importlib.util.find_spec("pytetwild") is None:
        raise ImportError('meshing this shape needs pytetwild: pip install "warpbots[tet]"')
    size = float(np.linalg.norm(np.ptp(vertices, axis=0)))
    with temporary_folder(tempfile.gettempdir()) as folder:
        given, made = folder / "surface.npz", folder / "mesh.npz"
        np.savez(
            given, vertices=vertices.astype(np.float64), faces=faces.astype(np.int32),
            edge=min(cell_size, size), envelope=envelope / size,
        )  # fmt: skip
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        run = subprocess.run(
            [sys.executable, "-c", _PROGRAM], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if run.returncode:
            said = (run.stderr or run.stdout).strip().splitlines()[-1:] or ["no message"]
            raise SceneError(
                f"meshing: fTetWild failed on a surface of {len(faces)} faces and {size:.3g} m in cells of "
                f"{cell_size:g} m (exit status {run.returncode}: {said[0]}); use another cell_size, or repair the mesh"
            )
        with np.load(made) as arrays:
            points, tets = arrays["vertices"], arrays["tets"]
    if not len(tets):
        raise SceneError(
            f"meshing: nothing is left of a surface of {size:.3g} m in cells of {cell_size:g} m; use a smaller "
            f"cell_size, and check that its faces point outwards"
        )
    used, tets = np.unique(tets, return_inverse=True)
    return TetMesh.oriented(points[used], tets.reshape(-1, 4))  # fTetWild inverts all of them


def _key(vertices: np.ndarray, faces: np.ndarray, cell_size: float, envelope: float) -> str:
    try:
        version = metadata.version("pytetwild")
    except metadata.PackageNotFoundError:
        version = "none"
    parts = (vertices.astype(np.float64), faces.astype(np.int64), np.array([cell_size, envelope]))
    text = f"1 pytetwild {version} {[part.shape for part in parts]}"
    return hashlib.sha256(b"".join([text.encode(), *(part.tobytes() for part in parts)])).hexdigest()[:32]


def _load(path: Path | None) -> TetMesh | None:
    """The mesh in a file, or None if it cannot be read."""
    if path is None or not path.is_file():
        return None
    with contextlib.suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile), path.open("rb") as file:
        arrays = np.load(file)
        return TetMesh(arrays["vertices"], arrays["tets"])
    return None


def _save(path: Path | None, mesh: TetMesh) -> None:
    """Write a mesh to a file of the cache; do nothing if the cache is not writable."""
    if path is None:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as (temporary,):
            np.savez(temporary, vertices=mesh.vertices, tets=mesh.tets)
