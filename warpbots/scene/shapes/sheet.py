"""Cloth and shells."""

import functools

import numpy as np

from warpbots.scene.field_types import Pair, checked
from warpbots.scene.memory_limit import refuse_excess
from warpbots.scene.record import SceneError, record
from warpbots.scene.shapes.field_checks import assign, finite_array, positive, refuse_bad_indices, refuse_unused

__all__ = ["Sheet"]

_SLENDER = 1e-9
"""Area of a triangle over the square of its longest edge below which it counts as degenerate."""

_RECTANGLE = 1e3
"""Peak memory per cell of a rectangle [bytes]."""


@record
class Sheet:
    """A thin sheet of matter in 3D, such as cloth or a shell.

    The sheet consists of all points within half its thickness of its middle surface, which may be open or closed.

    Attributes:
        vertices: Vertex positions of the middle surface [m], shape (n_vertices, 3).
        faces: Vertex indices of the triangles of the middle surface, consistently oriented, shape (n_faces, 3).
        thickness: Thickness of the sheet [m].
        bending: Flexural rigidity [N m]. None for the rigidity E t^3 / (12 (1 - nu^2)) of a plate of thickness t with
            the material of the body.

    Raises:
        SceneError: An index, a vertex or a number is invalid, a triangle has no area, an edge belongs to more than two
            faces, or neighbouring faces differ in orientation.
    """

    vertices: np.ndarray
    faces: np.ndarray
    thickness: float
    bending: float | None = None

    def __post_init__(self):
        vertices = finite_array(self.vertices, "Sheet.vertices", 2)
        faces = finite_array(self.faces, "Sheet.faces", 2, np.int64)
        if vertices.shape[1] != 3 or faces.shape[1] != 3:
            raise SceneError(f"Sheet needs (n, 3) vertices and faces, got {vertices.shape} and {faces.shape}")
        refuse_bad_indices(faces, len(vertices), "Sheet", "faces")
        _refuse_slender(vertices, faces)
        _refuse_edges(faces)
        refuse_unused(vertices, faces, "Sheet", "face")
        if self.bending is not None and self.bending < 0.0:
            raise SceneError(
                f"Sheet.bending must be a flexural rigidity >= 0 [N m], or None for that of a plate, got "
                f"{self.bending:g}"
            )
        positive(self.thickness, "Sheet.thickness")
        assign(self, vertices=vertices, faces=faces)

    @classmethod
    @checked
    def rectangle(
        cls,
        lower: Pair[float],
        upper: Pair[float],
        thickness: float,
        cells: Pair[int],
        height: float = 0.0,
        bending: float | None = None,
    ) -> "Sheet":
        """Make a rectangular sheet in the plane z = `height`; use `Posed` to rotate it.

        The triangles are oriented counter-clockwise seen from above.

        Args:
            lower: Corner with the smallest x and y [m].
            upper: Corner with the largest x and y [m].
            thickness: Thickness of the sheet [m].
            cells: Number of rectangles along x and along y. The diagonals of neighbouring rectangles alternate, so that
                the halves of the sheet are mirror images if the numbers are even.
            height: Coordinate z of the middle surface [m].
            bending: Flexural rigidity [N m], as in the class.

        Raises:
            SceneError: `lower` is not below `upper`, or a number of cells is below 1.
        """
        if not all(a < b for a, b in zip(lower, upper, strict=True)):
            raise SceneError(f"Sheet.rectangle: both coordinates of lower {lower} must be below upper {upper} [m]")
        if min(cells) < 1:
            raise SceneError(f"Sheet.rectangle: cells must be two whole numbers >= 1, got {cells}")
        nx, ny = cells
        refuse_excess(nx * ny, _RECTANGLE, "Sheet.rectangle: cells", "use fewer")
        x, y = (np.linspace(a, b, n + 1) for a, b, n in zip(lower, upper, (nx, ny), strict=True))
        vertices = np.stack(np.broadcast_arrays(x[:, None], y, float(height)), axis=-1).reshape(-1, 3)
        index = np.arange((nx + 1) * (ny + 1)).reshape(nx + 1, ny + 1)
        a, b, c, d = index[:-1, :-1], index[1:, :-1], index[1:, 1:], index[:-1, 1:]
        odd = (np.add.outer(np.arange(nx), np.arange(ny)) % 2).astype(bool)
        first = np.where(odd[..., None], np.stack([a, b, d], -1), np.stack([a, b, c], -1))
        second = np.where(odd[..., None], np.stack([b, c, d], -1), np.stack([a, c, d], -1))
        return cls(vertices, np.stack([first, second], axis=2).reshape(-1, 3), thickness, bending)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of a box around the sheet, including its thickness [m], each of shape (3,)."""
        return self.vertices.min(0) - 0.5 * self.thickness, self.vertices.max(0) + 0.5 * self.thickness

    @functools.cached_property
    def areas(self) -> np.ndarray:
        """Area of each triangle [m^2], shape (n_faces,)."""
        return _areas(self.vertices, self.faces)

    @property
    def area(self) -> float:
        """Area of the whole sheet [m^2]."""
        return float(self.areas.sum())


def _areas(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)


def _refuse_slender(vertices: np.ndarray, faces: np.ndarray) -> None:
    """Raise an error if triangles have no area."""
    corners = vertices[faces]
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=-1).max(axis=1)
    flat = np.flatnonzero(_areas(vertices, faces) <= _SLENDER * longest**2)
    if len(flat):
        face = int(flat[0])
        raise SceneError(
            f"Sheet: {len(flat)} of {len(faces)} triangles have no area; the first is {face} with the vertices "
            f"{faces[face].tolist()} at {corners[face].round(6).tolist()} m; remove them"
        )


def _refuse_edges(faces: np.ndarray) -> None:
    """Raise an error if an edge has more than two faces, or two faces that traverse the edge in the same direction."""
    directed = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    edges, inverse, count = np.unique(np.sort(directed, axis=1), axis=0, return_inverse=True, return_counts=True)
    many = np.flatnonzero(count > 2)
    if len(many):
        raise SceneError(
            f"Sheet: {len(many)} edges belong to more than two faces; the first is {edges[many[0]].tolist()} with "
            f"{count[many[0]]} faces; make it several sheets, or remove faces"
        )
    turn = np.bincount(inverse.reshape(-1), weights=np.where(directed[:, 0] < directed[:, 1], 1.0, -1.0))
    same = np.flatnonzero((count == 2) & (turn != 0.0))
    if len(same):
        a, b = (np.flatnonzero(inverse.reshape(-1) == same[0]) % len(faces)).tolist()
        raise SceneError(
            f"Sheet: {len(same)} pairs of neighbours have opposite orientations; the first are the faces "
            f"{a} and {b} at the edge {edges[same[0]].tolist()}; swap two vertices of one of them, so that all normals "
            f"point to one side"
        )
