"""Time samples of the normals of meshes that move."""

import numpy as np
from pxr import Usd, UsdGeom, Vt

from warpbots.surfaces.triangles import creased, vertex_normals

__all__ = ["CornerNormals", "SampledNormals"]

_LONGEST = 5
"""Number of frames from one sample of normals to the next, between which USD interpolates. Normals at every frame would
double the size of a file."""

_TURN = 0.03
"""Largest change of normals from one sample to the next, as the mean of 1 - cos of the angles."""


class SampledNormals:
    """Writes normals at some of the frames: where they have turned, and after a few frames at the latest."""

    def __init__(self, mesh: UsdGeom.Mesh):
        """Begin without a frame.

        Args:
            mesh: The mesh.
        """
        self._attribute = mesh.CreateNormalsAttr()
        self._written: np.ndarray | None = None
        self._age = 0
        self._before: tuple[float, np.ndarray] | None = None

    def write(self, code: float, normals: np.ndarray, last: bool) -> int:
        """Author the default value at the first frame, and samples.

        Args:
            code: Time code of the frame.
            normals: Unit normals, or vectors of length 0 where faces have no area, shape (n, 3).
            last: Whether this is the last frame.

        Returns:
            The number of bytes.
        """
        normals = normals.astype(np.float32)
        normals[~normals.any(axis=1)] = (0.0, 0.0, 1.0)
        before, self._before = self._before, (code, normals)
        size = 0
        if self._written is None:
            self._set(normals)  # validators ask for a default value beside the samples
        else:
            self._age += 1
            turned = 1.0 - float(np.einsum("ni,ni->n", normals, self._written).mean()) > _TURN
            if not (last or turned or self._age >= _LONGEST):
                return 0
            if turned and self._age > 1:  # so that the turn is not spread over the frames before
                size += self._set(before[1], before[0])
        self._written, self._age = normals, 0
        return size + self._set(normals, code)

    def _set(self, normals: np.ndarray, code: float | None = None) -> int:
        time = Usd.TimeCode.Default() if code is None else code
        self._attribute.Set(Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(normals)), time)
        return normals.nbytes


class CornerNormals:
    """Normals of a mesh of polygons whose points are given: smooth, except at edges that are creases at rest."""

    def __init__(self, mesh: UsdGeom.Mesh, rest: np.ndarray, counts: np.ndarray, indices: np.ndarray):
        """Prepare the prim.

        Args:
            mesh: The mesh.
            rest: Points at rest, shape (n, 3).
            counts: Number of corners of each face, shape (m,).
            indices: Point of each corner, shape (counts.sum(),).
        """
        first = np.cumsum(counts) - counts
        face = np.repeat(np.arange(len(counts)), np.maximum(counts - 2, 0))
        fan = np.arange(len(face)) - np.repeat(np.cumsum(counts - 2) - (counts - 2), np.maximum(counts - 2, 0))
        corners = np.stack([first[face], first[face] + fan + 1, first[face] + fan + 2], axis=1)
        self._origin, self._faces = creased(rest, indices[corners])
        self._smooth = np.array_equal(self._origin, np.arange(len(rest)))
        self._corner = np.zeros(len(indices), dtype=int)
        self._corner[corners] = self._faces
        api = UsdGeom.PrimvarsAPI(mesh)
        if api.GetPrimvar(UsdGeom.Tokens.normals).HasAuthoredValue():  # it would take precedence
            api.BlockPrimvar(UsdGeom.Tokens.normals)
        mesh.SetNormalsInterpolation(UsdGeom.Tokens.vertex if self._smooth else UsdGeom.Tokens.faceVarying)
        self._samples = SampledNormals(mesh)

    def write(self, code: float, points: np.ndarray, last: bool) -> int:
        """Write the normals for `points`, shape (n, 3), at a time code; returns the number of bytes."""
        normals = vertex_normals(points[self._origin], self._faces)
        return self._samples.write(code, normals if self._smooth else normals[self._corner], last)
