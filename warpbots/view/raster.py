"""A small software renderer: shaded balls and triangles in one depth buffer.

Matplotlib has no depth buffer: it would draw a robot behind a step on top of the step, and a 3D scatter plot of 20,000
particles looks flat. This renderer shades a ball with the surface normal of the body to which the ball belongs, which
makes matter look solid. It does not draw the interior of bodies, so that the computing time depends only on the surface
of the bodies and the size of the picture.
"""

import dataclasses

import numpy as np

from warpbots.surfaces.clipped import box_corners
from warpbots.surfaces.triangles import creased
from warpbots.view.camera import Camera
from warpbots.view.covered_pixels import covered
from warpbots.view.rigid_bodies import Facets
from warpbots.view.shadow import Shadow
from warpbots.view.visible_particles import outward, visible

__all__ = ["LIGHT", "Canvas", "brightness"]

LIGHT = np.array([-0.42, 0.62, 0.66]) / np.linalg.norm([-0.42, 0.62, 0.66])
"""Direction of the light: to the right, upwards, towards the viewer."""

_SMOOTH = 2  # pixels drawn for every pixel of the picture, along each axis
_AMBIENT, _DIFFUSE = 0.50, 0.58  # brightness of surfaces that face away from the light, and its range
_BULGE = 0.28  # weight of the ball's own normal in the shaded normal
_DEPTHS = 2**31 - 1
_BITS = 32


@dataclasses.dataclass
class Canvas:
    """A depth buffer, which holds for each pixel the depth and the index of the nearest face drawn so far.

    The buffer has more pixels than the picture; each pixel of the picture is an average over pixels of the buffer.

    Attributes:
        camera: The view, which must be 3D.
        width: Width of the picture [pixels].
        height: Height of the picture [pixels].
        near: Smallest and largest depth that can be drawn [m].
        still: Faces drawn so far.
        nearest: Depth and index of the nearest face at each pixel, packed into one number, shape (rows * columns,),
            int64.
    """

    camera: Camera
    width: int
    height: int
    near: tuple[float, float]
    still: Facets = dataclasses.field(default_factory=Facets.none)
    nearest: np.ndarray | None = None

    def __post_init__(self):
        if self.nearest is None:
            self.nearest = np.full(self.width * self.height * _SMOOTH**2, -1, dtype=np.int64)

    @classmethod
    def blank(cls, camera: Camera, width: int, height: int) -> "Canvas":
        """An empty canvas of `width` times `height` square pixels, with the aspect ratio of the camera."""
        depth = camera.depth(box_corners(*camera.box))
        reach = float(depth.max() - depth.min())
        return cls(camera, width, height, (float(depth.min()) - reach, float(depth.max()) + reach))

    @property
    def columns(self) -> int:
        """Number of pixels in a row of the buffer."""
        return self.width * _SMOOTH

    @property
    def rows(self) -> int:
        """Number of rows of the buffer; the first row is the top row."""
        return self.height * _SMOOTH

    def pixels(self, x: np.ndarray) -> np.ndarray:
        """Column and row in the buffer, as fractional numbers, shape (n, 2), of points `x` [m], shape (n, 3)."""
        lower, upper = self.camera.window
        scale = np.array([self.columns, self.rows]) / (upper - lower)
        p = (self.camera.project(x) - lower) * scale
        return np.stack([p[:, 0], self.rows - p[:, 1]], axis=1)

    def add_triangles(self, vertices: np.ndarray, faces: np.ndarray, color: tuple[float, float, float]) -> None:
        """Draw the faces of a mesh that face the viewer; the mesh is smooth except at creases.

        Args:
            vertices: Vertex positions [m], shape (n, 3).
            faces: Vertex indices, counter-clockwise seen from outside, shape (m, 3).
            color: Red, green and blue in [0, 1].
        """
        origin, faces = creased(vertices, faces)
        added = Facets.smooth(vertices[origin], faces, np.broadcast_to(np.array(color), (len(origin), 3)))
        self._cover(self.nearest, added, first=len(self.still.corner))
        self.still = Facets.joined([self.still, added])

    def _facing(self, corner: np.ndarray) -> np.ndarray:
        """Whether each triangle faces the viewer, shape (m,), bool.

        Args:
            corner: Corners of the triangles [m], shape (m, 3, 3).
        """
        normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
        return normal @ self.camera.axes[2] > 1e-9 * np.linalg.norm(normal, axis=1)

    def _covered(self, corner: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pixels covered by triangles, the depth at each pixel, and the index of the triangle, each of shape (n,).

        Args:
            corner: Corners of the triangles [m], shape (m, 3, 3).
        """
        x = corner.reshape(-1, 3)
        p, d = self.pixels(x).reshape(-1, 3, 2), self.camera.depth(x).reshape(-1, 3)
        return covered(p, d, self.columns, self.rows)

    def _pack(self, depth: np.ndarray, index: np.ndarray) -> np.ndarray:
        far, near = self.near
        level = np.clip((depth - far) / (near - far), 0.0, 1.0) * _DEPTHS
        return (level.astype(np.int64) << _BITS) | index

    def picture(
        self,
        position: np.ndarray,
        radius: np.ndarray,
        color: np.ndarray,
        floor: float | None = None,
        moving: Facets | None = None,
    ) -> np.ndarray:
        """Render balls and moving triangles together with the triangles of the canvas; the canvas is not changed.

        Args:
            position: Centres [m], shape (n, 3).
            radius: Radii [m], shape (n,).
            color: Red, green and blue in [0, 1], shape (n, 3).
            floor: Height of a floor [m] that receives a shadow but is not drawn itself; None if there is no floor.
            moving: Faces of the moving bodies; None if there are none.

        Returns:
            The picture with a transparent background, shape (height, width, 4), uint8, first row on top.
        """
        moving = moving or Facets.none()
        shown = visible(position, radius)
        x, r = position[shown], radius[shown]
        stays, faces = len(self.still.corner), Facets.joined([self.still, moving])
        balls = len(faces.corner)  # numbers in this order: faces that stay, faces that move, balls
        nearest = self.nearest.copy()
        self._cover(nearest, moving, first=stays)
        self._splat(nearest, x, r, first=balls)
        pixel = np.nonzero(nearest >= 0)[0]
        index = nearest[pixel] & (2**_BITS - 1)
        point = self._unproject(pixel, self._depth(nearest[pixel]))
        n, rgb, is_ball = *np.zeros((2, len(pixel), 3)), index >= balls
        places = np.stack([pixel % self.columns, pixel // self.columns], axis=1)[~is_ball] + 0.5
        corner = self.pixels(faces.corner.reshape(-1, 3)).reshape(-1, 3, 2)
        n[~is_ball], rgb[~is_ball] = faces.at(index[~is_ball], places, corner)
        ball = index[is_ball] - balls
        bulge = (point[is_ball] - x[ball]) / r[ball, None]
        n[is_ball] = (1.0 - _BULGE) * outward(position, radius)[shown][ball] + _BULGE * bulge
        rgb[is_ball] = color[shown][ball]
        n /= np.maximum(np.linalg.norm(n, axis=1, keepdims=True), 1e-12)
        rgb *= brightness(n, self.camera)[:, None]
        shadow, still = Shadow(self.camera, position, radius, moving.corner), index < stays
        rgb[still] *= 1.0 - (shadow.at(point[still]) * np.maximum(n[still, 2], 0.0))[:, None]
        image = self._reduced(pixel, np.clip(rgb, 0.0, 1.0))
        if floor is not None:
            dark = (1.0 - image[..., 3]) * shadow.at(self._floor(floor)).reshape(self.height, self.width)
            image[..., :3] *= (image[..., 3] / np.maximum(image[..., 3] + dark, 1e-9))[..., None]
            image[..., 3] += dark
        return np.round(255.0 * image).astype(np.uint8)

    def _cover(self, nearest: np.ndarray, added: Facets, first: int) -> None:
        """Draw faces into `nearest`; the first face gets the index `first`."""
        shown = np.flatnonzero(self._facing(added.corner))
        pixel, depth, face = self._covered(added.corner[shown])
        np.maximum.at(nearest, pixel, self._pack(depth, first + shown[face]))

    def _splat(self, nearest: np.ndarray, x: np.ndarray, radius: np.ndarray, first: int) -> None:
        """Draw balls at `x` into `nearest`; the first ball gets the index `first`."""
        center, depth = self.pixels(x), self.camera.depth(x)
        scale = self.columns / float((self.camera.window[1] - self.camera.window[0])[0])
        base = np.floor(center).astype(np.int64)
        index = first + np.arange(len(x))
        reach = int(np.ceil(float(radius.max(initial=0.0)) * scale))
        for dy in range(-reach, reach + 1):
            for dx in range(-reach, reach + 1):
                if max(abs(dx) - 0.5, 0.0) ** 2 + max(abs(dy) - 0.5, 0.0) ** 2 > (reach + 0.5) ** 2:
                    continue
                column, row = base[:, 0] + dx, base[:, 1] + dy
                away = (column + 0.5 - center[:, 0]) ** 2 + (row + 0.5 - center[:, 1]) ** 2
                rise = radius**2 - away / scale**2
                ok = (rise >= 0.0) & (column >= 0) & (column < self.columns) & (row >= 0) & (row < self.rows)
                keys = self._pack(depth[ok] + np.sqrt(rise[ok]), index[ok])
                np.maximum.at(nearest, (row * self.columns + column)[ok], keys)

    def _depth(self, key: np.ndarray) -> np.ndarray:
        return self.near[0] + (key >> _BITS) * ((self.near[1] - self.near[0]) / _DEPTHS)

    def _plane(self, column: np.ndarray, row: np.ndarray, columns: int, rows: int) -> np.ndarray:
        """Points at the centres of pixels, on the plane through the origin that is parallel to the picture [m].

        Args:
            column: Columns of the pixels, shape (n,).
            row: Rows of the pixels, shape (n,).
            columns: Number of columns of the raster.
            rows: Number of rows of the raster.

        Returns:
            Shape (n, 3).
        """
        (left, bottom), (right, top) = self.camera.window
        u = left + (column + 0.5) * ((right - left) / columns)
        v = top - (row + 0.5) * ((top - bottom) / rows)
        return u[:, None] * self.camera.axes[0] + v[:, None] * self.camera.axes[1]

    def _unproject(self, pixel: np.ndarray, depth: np.ndarray) -> np.ndarray:
        plane = self._plane(pixel % self.columns, pixel // self.columns, self.columns, self.rows)
        return plane + depth[:, None] * self.camera.axes[2]

    def _floor(self, height: float) -> np.ndarray:
        """Points of a floor [m] under the pixels of the picture, shape (height * width, 3)."""
        pixel = np.arange(self.width * self.height)
        plane = self._plane(pixel % self.width, pixel // self.width, self.width, self.height)
        toward = self.camera.axes[2]
        return plane + ((height - plane[:, 2]) / toward[2])[:, None] * toward

    def _reduced(self, pixel: np.ndarray, rgb: np.ndarray) -> np.ndarray:
        """Colours of the buffer, averaged to the size of the picture, with opacity, shape (height, width, 4).

        Args:
            pixel: Indices of the pixels of the buffer that are covered by a face, shape (n,).
            rgb: Colours of these pixels, shape (n, 3).
        """
        full = np.zeros((self.rows * self.columns, 4), dtype=np.float32)
        full[pixel, :3], full[pixel, 3] = rgb, 1.0
        full = full.reshape(self.rows, self.columns, 4)
        parts = [full[i::_SMOOTH, j::_SMOOTH] for i in range(_SMOOTH) for j in range(_SMOOTH)]
        image = sum(parts) / len(parts)
        image[..., :3] /= np.maximum(image[..., 3:], 1e-9)
        return image


def brightness(normal: np.ndarray, camera: Camera) -> np.ndarray:
    """Brightness of surfaces under a light at the upper left, behind the viewer.

    Args:
        normal: Unit normals, shape (n, 3).
        camera: A 3D view; the light moves with the view.

    Returns:
        Factors for colours, close to 1, shape (n,).
    """
    return _AMBIENT + _DIFFUSE * (0.5 + 0.5 * normal @ (LIGHT @ camera.axes))
