"""Reference elements: shape functions at points of quadrature, shares of mass, and linear tetrahedra in solids.

Positions in an element are x(xi) = sum_a N_a(xi) x_a, and integrals are sums over points of quadrature with weights.
"""

import dataclasses
import itertools

import numpy as np

__all__ = [
    "EDGES",
    "HEXAHEDRON",
    "LINE",
    "QUADRATIC_TETRAHEDRON",
    "SOLIDS",
    "TETRAHEDRON",
    "TRIANGLE",
    "ReferenceElement",
    "with_midsides",
]

EDGES = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]])
"""Corners at the ends of the edges of a tetrahedron, in the order of its midside nodes."""

_BARYCENTRIC = np.array([[-1.0, -1.0, -1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
"""Gradients of the barycentric coordinates of the unit tetrahedron."""


@dataclasses.dataclass(frozen=True, eq=False)
class ReferenceElement:
    """A shape of elements, described in m coordinates xi: 3 in solids, 2 in sheets, 1 along bars.

    Attributes:
        name: Field of `Mesh` with the nodes of its elements.
        title: Name of the elements in messages, in the plural.
        gradients: Gradients of the shape functions at the points of quadrature [1], shape (points, nodes, m).
        weights: Weights of the points of quadrature [1], shape (points,).
        shares: Share of each node in the mass of an element [1], shape (nodes,).
        tets: Nodes of the linear tetrahedra that fill a solid element, shape (n, 4), int.
    """

    name: str
    title: str
    gradients: np.ndarray
    weights: np.ndarray
    shares: np.ndarray
    tets: np.ndarray

    def jacobians(self, x: np.ndarray, node: np.ndarray) -> np.ndarray:
        """dx/dxi at the points of quadrature [m], shape (n, points, 3, m).

        Args:
            x: Positions of all nodes [m], shape (n_nodes, 3).
            node: Nodes of the elements, shape (n, nodes).
        """
        return np.einsum("eai,qaj->eqij", x[node] - x[node[:, :1]], self.gradients)

    def volumes(self, x: np.ndarray, node: np.ndarray) -> np.ndarray:
        """Volumes, areas or lengths of the quadrature points [m^m], shape (n, points); arguments as of `jacobians`."""
        return self.weights * np.linalg.det(_square(self.jacobians(x, node)))

    def products(self, x: np.ndarray, node: np.ndarray) -> np.ndarray:
        """Integrals of the products of gradients of shape functions [m^(m - 2)], shape (n, nodes, nodes)."""
        R = _square(self.jacobians(x, node))
        G = self.gradients @ np.linalg.inv(R)
        return np.einsum("eq,eqai,eqbi->eab", self.weights * np.linalg.det(R), G, G)


def _square(J: np.ndarray) -> np.ndarray:
    """Square Jacobians: unchanged for solids, for other elements in an orthonormal basis of the columns.

    No Jacobian is multiplied by its transpose before it is inverted: this would lose twice as many digits for slivers.
    """
    if J.shape[-1] == 3:
        return J
    R = np.linalg.qr(J, mode="r")
    return R * np.sign(np.diagonal(R, axis1=-2, axis2=-1))[..., None]


def _quadratic_tetrahedron() -> ReferenceElement:
    """N = (2 l_a - 1) l_a at corners and 4 l_a l_b between two corners, with barycentric coordinates l.

    Four points integrate polynomials of second degree, and with them the energy of straight elements under Hooke's law
    exactly. Masses are the diagonal of the consistent mass matrix, scaled to the mass of the element (Hinton, Rock &
    Zienkiewicz 1976), as its row sums are negative at corners.
    """
    near, far = (5.0 - np.sqrt(5.0)) / 20.0, (5.0 + 3.0 * np.sqrt(5.0)) / 20.0
    l = (near + (far - near) * np.eye(4))[:, :, None]
    a, b = EDGES.T
    corners = (4.0 * l - 1.0) * _BARYCENTRIC
    midsides = 4.0 * (l[:, a] * _BARYCENTRIC[b] + l[:, b] * _BARYCENTRIC[a])
    at_corners = [[0, 4, 5, 6], [1, 4, 8, 7], [2, 5, 7, 9], [3, 6, 9, 8]]
    about_a_diagonal = [[4, 9, 5, 6], [4, 9, 6, 8], [4, 9, 8, 7], [4, 9, 7, 5]]
    return ReferenceElement(
        name="quadratic_tets",
        title="quadratic tetrahedra",
        gradients=np.concatenate([corners, midsides], axis=1),
        weights=np.full(4, 1.0 / 24.0),
        shares=np.array([1.0 / 36.0] * 4 + [4.0 / 27.0] * 6),
        tets=np.array(at_corners + about_a_diagonal),
    )


def _hexahedron() -> ReferenceElement:
    """N = (1 + s_1 xi_1) (1 + s_2 xi_2) (1 + s_3 xi_3) / 8, with Gauss's 2 x 2 x 2 points.

    Nodes are in the order of (s_1, s_2, s_3), of which s_3 changes fastest.
    """
    s = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    f = (1.0 + s * s[:, None] / np.sqrt(3.0)) / 2.0  # (points, nodes, 3)
    along = [s[:, i] / 2.0 * f[:, :, (i + 1) % 3] * f[:, :, (i + 2) % 3] for i in range(3)]
    about_a_diagonal = [[0, 4, 6, 7], [0, 5, 4, 7], [0, 6, 2, 7], [0, 2, 3, 7], [0, 1, 5, 7], [0, 3, 1, 7]]
    return ReferenceElement(
        name="hexahedra",
        title="hexahedra",
        gradients=np.stack(along, axis=-1),
        weights=np.ones(8),
        shares=np.full(8, 1.0 / 8.0),
        tets=np.array(about_a_diagonal),
    )


TETRAHEDRON = ReferenceElement(
    name="tets",
    title="tetrahedra",
    gradients=_BARYCENTRIC[None],
    weights=np.array([1.0 / 6.0]),
    shares=np.full(4, 1.0 / 4.0),
    tets=np.array([[0, 1, 2, 3]]),
)
"""Linear: four nodes, one point."""

QUADRATIC_TETRAHEDRON = _quadratic_tetrahedron()
"""Ten nodes, four points."""

HEXAHEDRON = _hexahedron()
"""Trilinear: eight nodes, eight points."""

TRIANGLE = ReferenceElement(
    name="triangles",
    title="triangles",
    gradients=np.array([[[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]]]),
    weights=np.array([0.5]),
    shares=np.full(3, 1.0 / 3.0),
    tets=np.zeros((0, 4), dtype=int),
)
"""Linear: three nodes, one point."""

LINE = ReferenceElement(
    name="bars",
    title="bars",
    gradients=np.array([[[-1.0], [1.0]]]),
    weights=np.array([1.0]),
    shares=np.full(2, 0.5),
    tets=np.zeros((0, 4), dtype=int),
)
"""Linear: two nodes, one point."""

SOLIDS = {e.name: e for e in (TETRAHEDRON, QUADRATIC_TETRAHEDRON, HEXAHEDRON)}
"""All solid elements by name."""


def with_midsides(x: np.ndarray, tets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Linear tetrahedra as quadratic ones, with a node in the middle of every edge.

    Args:
        x: Positions of the corners [m], shape (n, 3).
        tets: Corners of the tetrahedra, shape (n_tets, 4), int.

    Returns:
        Positions of corners, then of midside nodes [m]; nodes of the tetrahedra, shape (n_tets, 10).
    """
    ends = np.sort(tets[:, EDGES], axis=-1).reshape(-1, 2)
    edges, number = np.unique(ends, axis=0, return_inverse=True)
    midsides = len(x) + number.reshape(len(tets), len(EDGES))
    return np.concatenate([x, x[edges].mean(axis=1)]), np.concatenate([tets, midsides], axis=1)
