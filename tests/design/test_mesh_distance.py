"""Distances to concave meshes against those to all triangles, and how well samples of them are interpolated."""

import numpy as np
import pytest
import torch
import trimesh
import warp as wp
from concave_meshes import angle, cup, inside, round_cup

from warpbots.contact.mesh_distance import nearest_on_mesh
from warpbots.contact.solid import Solids, shape_distance
from warpbots.contact.solid_forms import grid_of, solids_of
from warpbots.design import mesh_distance
from warpbots.scene.shapes import TriangleMesh


def by_all_triangles(vertices: np.ndarray, faces: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Distances of points to the nearest of all triangles [m], by planes and edges, without a sign."""
    a, b, c = vertices[faces].transpose(1, 0, 2)
    n = np.cross(b - a, c - a)
    n /= np.linalg.norm(n, axis=1)[:, None]
    found = []
    for p in x:
        height = ((p - a) * n).sum(1)
        foot = p - height[:, None] * n
        over = np.min([(np.cross(v - u, foot - u) * n).sum(1) for u, v in ((a, b), (b, c), (c, a))], axis=0) >= 0.0
        least = np.abs(height)[over].min(initial=np.inf)
        for u, v in ((a, b), (b, c), (c, a)):
            t = (((p - u) * (v - u)).sum(1) / ((v - u) ** 2).sum(1)).clip(0.0, 1.0)
            least = min(least, np.linalg.norm(u + t[:, None] * (v - u) - p, axis=1).min())
        found.append(least)
    return np.array(found)


MESHES = {"angle": angle, "cup": cup}
meshes = pytest.mark.parametrize("name", MESHES)


def places(name: str, rng: np.random.Generator) -> np.ndarray:
    """Points all around a mesh, and close to its faces, edges and vertices [m]."""
    vertices, faces = MESHES[name]()
    lower, upper = vertices.min(0), vertices.max(0)
    corner = vertices[faces[rng.integers(len(faces), size=100)]]
    on = {"vertex": corner[:, 0], "edge": 0.3 * corner[:, 0] + 0.7 * corner[:, 1], "face": corner.mean(axis=1)}
    near = [p + d * rng.normal(size=p.shape) for p in on.values() for d in (1e-3, 1e-5, 1e-8, 1e-11)]
    around = rng.uniform(lower - 0.01, upper + 0.01, (600, 3))
    return np.concatenate([around, 20.0 * around[:50], *near])


@meshes
def test_distance_is_that_to_the_nearest_of_all_triangles(name, rng):
    """In double precision, with the sign of inside: also a nanometre beside an edge, or in a concave corner."""
    vertices, faces = MESHES[name]()
    x = places(name, rng)
    found = nearest_on_mesh(vertices, faces, x)
    exact = by_all_triangles(vertices, faces, x)
    error = np.abs(np.abs(found.distance) - exact)
    print(f"{error.max():.1e} m")
    assert (error <= 1e-16 + 1e-14 * np.abs(x).max(axis=1)).all()
    clear = exact > 1e-14  # nearer, rounding decides on which side a point is
    assert (found.distance < 0.0)[clear].tolist() == inside(name, x)[clear].tolist()
    assert (found.distance < 0.0).sum() > 100
    foot = (found.barycentric[..., None] * vertices[faces[found.face]]).sum(1)
    assert found.barycentric.min() >= 0.0
    np.testing.assert_allclose(np.linalg.norm(x - foot, axis=1), exact, rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(found.normal, axis=1), 1.0, rtol=1e-12)
    far = exact > 1e-7
    ways = (x - foot)[far] / found.distance[far, None]
    np.testing.assert_allclose(found.normal[far], ways, atol=1e-7)


@meshes
def test_points_on_the_surface(name, rng):
    """Their distance is zero, and its gradient is the normal of a face that they are on."""
    vertices, faces = MESHES[name]()
    corner = vertices[faces]
    n = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    n /= np.linalg.norm(n, axis=1)[:, None]
    x = torch.tensor(np.concatenate([vertices, corner.mean(axis=1), corner[:, :2].mean(axis=1)]), requires_grad=True)
    d = mesh_distance(x, torch.tensor(vertices), torch.tensor(faces))
    assert d.abs().max() < 1e-17
    (slope,) = torch.autograd.grad(d.sum(), x)
    middles = slope[len(vertices) : len(vertices) + len(faces)]
    np.testing.assert_allclose(middles, n, atol=1e-12)
    assert (np.abs(slope[:, None].numpy() - n).max(-1).min(1) < 1e-12).all()


@meshes
def test_derivatives_of_a_distance(name, rng):
    """By vertices and points, against central differences, at points with one nearest point."""
    vertices, faces = (torch.tensor(a) for a in MESHES[name]())
    x = torch.as_tensor(places(name, rng)[:600])
    weight = torch.as_tensor(rng.normal(size=len(x)))
    ways = [torch.as_tensor(rng.normal(size=tuple(a.shape))) for a in (x, vertices)]

    def ahead(s: float) -> torch.Tensor:
        return mesh_distance(x + s * ways[0], vertices + s * ways[1], faces)

    h = 1e-8
    leaves = [a.clone().requires_grad_() for a in (x, vertices)]
    d = mesh_distance(*leaves, faces)
    quotient = (ahead(h) - ahead(-h)) / (2 * h)
    bend = (ahead(h) + ahead(-h) - 2 * ahead(0.0)).abs() / h
    one = bend < 1e-3  # where the nearest point does not jump
    assert one.float().mean() > 0.99
    slopes = torch.autograd.grad((weight * d)[one].sum(), leaves, create_graph=True)
    slope = sum((s * w).sum() for s, w in zip(slopes, ways, strict=True))
    assert slope.item() == pytest.approx((weight * quotient)[one].sum().item(), rel=1e-6)
    with pytest.raises(NotImplementedError, match="mesh_distance has first derivatives only"):
        torch.autograd.grad((slopes[1] ** 2).sum(), leaves[1])


@wp.kernel(enable_backward=False)
def measure_kernel(
    solids: Solids, x: wp.array[wp.vec3d], distance_out: wp.array[wp.float64], slope_out: wp.array[wp.vec3d]
):
    """Distance and slope of the first solid."""
    i = wp.tid()
    d, n, _C = shape_distance(solids, 0, 0, x[i] - solids.position[0], 0)
    distance_out[i] = d
    slope_out[i] = n


def measured(solids: Solids, x: np.ndarray) -> list[np.ndarray]:
    """Distance and slope of the first solid [m] and [1]."""
    out = [wp.zeros(len(x), dtype=t, device="cpu") for t in (wp.float64, wp.vec3d)]
    wp.launch(measure_kernel, len(x), [solids, wp.array(x, dtype=wp.vec3d, device="cpu")], out, device="cpu")
    return [a.numpy() for a in out]


def errors(mesh: tuple[np.ndarray, np.ndarray], samples: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Errors of the distance [m] and of the normal [deg] of a sampled mesh."""
    solids = solids_of([(-1, TriangleMesh(*mesh))], samples, 0.0, wp.get_device("cpu"))
    d, n = measured(solids, x)
    exact = nearest_on_mesh(*mesh, x)
    cosine = (n * exact.normal).sum(1) / np.linalg.norm(n, axis=1)
    return np.abs(d - exact.distance), np.degrees(np.arccos(cosine.clip(-1.0, 1.0)))


def contact_zone(mesh: tuple[np.ndarray, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Points at depths of up to a millimetre in a mesh."""
    surface = trimesh.sample.sample_surface(trimesh.Trimesh(*mesh, process=False), 4000, seed=0)[0]
    x = np.array(surface) + rng.uniform(-1e-3, 1e-3, surface.shape) / np.sqrt(3.0)
    return x[nearest_on_mesh(*mesh, x).distance < 0.0]


def orders(counts: list[int], found: list[float]) -> np.ndarray:
    """Orders of convergence with the spacing of samples."""
    return -np.diff(np.log(found)) / np.diff(np.log(np.array(counts) - 1.0))


def test_samples_of_a_rounded_cup_converge(rng):
    """The distance with the third order; the normal until the angle between faces, three degrees, is seen."""
    mesh = round_cup()
    x = contact_zone(mesh, rng)
    counts = [16, 24, 36]
    found = np.array([[e.max() for e in errors(mesh, n, x)] for n in counts])
    print(found, orders(counts, found[:, 0]))
    assert (orders(counts, found[:, 0]) > 2.5).all()
    assert found[2, 0] < 5e-5
    assert (found[:, 1] < [13.0, 8.0, 6.5]).all()


def test_orders_of_distance_and_normal(rng):
    """Three and two, for a solid without faces: a ball, in the samples of a box around it."""
    radius = 0.02
    around = trimesh.creation.box([2.0 * radius] * 3)
    n = rng.normal(size=(1000, 3))
    n /= np.linalg.norm(n, axis=1)[:, None]
    depth = rng.uniform(-1e-3, 0.0, 1000)
    counts, found = [16, 24, 36], []
    for count in counts:
        solids = solids_of([(-1, TriangleMesh(around.vertices, around.faces))], count, 0.0, wp.get_device("cpu"))
        grid = grid_of(solids, 0)
        exact = np.linalg.norm(grid.positions, axis=1) - radius
        solids.sample = wp.array(grid.coefficients(exact).reshape(1, -1), dtype=wp.float64, device="cpu")
        d, slope = measured(solids, (radius + depth)[:, None] * n)
        found.append((np.abs(d - depth).max(), np.linalg.norm(slope - n, axis=1).max()))
    by_distance, by_normal = (orders(counts, errors) for errors in zip(*found, strict=True))
    print(found, by_distance, by_normal)
    assert (by_distance > 2.7).all()
    assert (by_normal > 1.7).all()


@meshes
def test_samples_beside_edges(name, rng):
    """Edges are rounded over about a sample; two samples away from them a tenth of one is left."""
    mesh = MESHES[name]()
    x = contact_zone(mesh, rng)
    spacing = np.ptp(mesh[0], axis=0).max() / 47
    solid = trimesh.Trimesh(*mesh, process=False)
    ends = solid.vertices[solid.face_adjacency_edges[solid.face_adjacency_angles > 0.5]]
    along = ends[:, 1] - ends[:, 0]
    t = (((x[:, None] - ends[:, 0]) * along).sum(-1) / (along**2).sum(-1)).clip(0.0, 1.0)
    away = np.linalg.norm(ends[:, 0] + t[..., None] * along - x[:, None], axis=-1).min(1) > 2.0 * spacing
    d, n = errors(mesh, 48, x)
    print(d.max() / spacing, d[away].max() / spacing, n[away].max(), away.mean())
    assert away.mean() > 0.3
    assert d.max() < 0.25 * spacing
    assert d[away].max() < 0.1 * spacing
    assert n[away].max() < 12.0
