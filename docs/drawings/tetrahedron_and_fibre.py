"""A bar of tetrahedra, and one of them before and after a deformation, with its fibre and its nodal forces."""

import numpy as np
from canvas import Camera, Drawing

from warpbots.meshing.boxes import box_tets
from warpbots.shapes import Box

FACES = np.array([(0, 1, 2), (0, 3, 1), (1, 3, 2), (0, 2, 3)])
EDGES = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def surface(tets: np.ndarray) -> np.ndarray:
    """Faces that belong to one tetrahedron alone, of shape (faces, 3)."""
    faces = tets[:, FACES].reshape(-1, 3)
    _, first, count = np.unique(np.sort(faces, 1), axis=0, return_index=True, return_counts=True)
    return faces[np.sort(first[count == 1])]


def forces(x: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Forces of a neo-Hookean element on its four nodes (Poisson's ratio 0.3), up to a factor."""
    inverse = np.linalg.inv(F).T
    stress = (F - inverse) + 1.5 * np.log(np.linalg.det(F)) * inverse
    edges = (x[1:] - x[0]).T
    f = -abs(np.linalg.det(edges)) / 6 * stress @ np.linalg.inv(edges).T
    return np.vstack([-f.sum(1), f.T])


def tetrahedron(d: Drawing, camera: Camera, x: np.ndarray, colour: str, fill: str) -> None:
    """A tetrahedron whose hidden edge is dashed."""
    p = camera(x)
    order = sorted(range(4), key=lambda k: camera.depth(x[FACES[k]]).mean())
    for k in order[2:]:
        d.line(p[FACES[k]], colour, 2, fill=fill, closed=True)
    seen = {frozenset(pair) for k in order[2:] for pair in zip(FACES[k], np.roll(FACES[k], 1), strict=True)}
    for pair in EDGES:
        if frozenset(pair) not in seen:
            d.line(p[list(pair)], colour, 2, dash="5 5")


def draw() -> Drawing:
    """The bar above, the tetrahedron at rest and deformed below."""
    d = Drawing(
        "A tetrahedron with its fibre",
        "Above: a bar filled with tetrahedra, one of which is marked. Below: this tetrahedron at rest with the "
        "direction a of a fibre, and deformed by F, where the fibre has become F a. Its stress acts as four forces on "
        "its nodes, whose sum is zero.",
        490,
    )
    mesh = box_tets(Box((0, 0, 0), (5, 1, 1)), 1.0)
    vertices, tets = np.asarray(mesh.vertices), np.asarray(mesh.tets)
    camera = Camera((118, 150), 92, -62, 20)
    faces = surface(tets)
    normals = np.cross(vertices[faces[:, 1]] - vertices[faces[:, 0]], vertices[faces[:, 2]] - vertices[faces[:, 0]])
    outward = np.einsum("ij,ij->i", normals, vertices[faces].mean(1) - (2.5, 0.5, 0.5)) > 0
    front = np.where(outward, 1, -1) * (normals @ camera.toward) > 1e-9
    for face in faces[front]:
        d.line(camera(vertices[face]), "grey", 1.2, fill="wash", closed=True)
    centres = vertices[tets].mean(1)
    chosen = int(np.argmin(np.linalg.norm(centres - (2.7, 0.0, 0.6), axis=1)))
    tetrahedron(d, camera, vertices[tets[chosen]], "blue", "sky")
    x = np.array([(0, 0, 0), (1.25, 0.1, 0), (0.45, 1.1, 0.1), (0.5, 0.35, 1.15)])
    F = np.array([(1.45, 0.15, 0.1), (0.0, 0.84, 0.0), (0.1, 0.0, 0.82)])
    fibre = np.array([(0.22, 0.3, 0.22), (0.87, 0.3, 0.22)])
    for origin, G, arrow in (((84, 404), np.eye(3), False), ((392, 404), F, True)):
        view = Camera(origin, 128, -66, 16)
        y = x @ G.T
        tetrahedron(d, view, y, "blue", "sky")
        d.arrow(*view(fibre @ G.T), "orange", 5)
        for node, force in zip(y, forces(x, G), strict=True):
            if arrow:
                d.arrow(view(node), view(node + 3.0 * force), "purple", 3)
            d.circle(view(node), 6, "ink")
    d.arrow((266, 372), (352, 372), "ink", 3)
    d.text((309, 358), "*F*")
    d.text((176, 472), "at rest: fibre *a*")
    d.text((500, 472), "deformed: fibre *F a*, forces on nodes")
    return d
