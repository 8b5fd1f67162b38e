"""Mean value coordinates against their definition, and what they reproduce anywhere."""

import numpy as np
import pytest
import torch
import trimesh

from warpbots.design import Cage, CageMap, box_cage, grid_cage, mass_properties, mean_value_weights, star_palm

BOX = box_cage((-1.0, -0.5, -0.7), (1.2, 0.6, 0.8))
GRID = grid_cage((-1.0, -0.5, -0.7), (1.2, 0.6, 0.8), (3, 2, 4))
STAR = trimesh.creation.icosphere(1)


def star() -> tuple[torch.Tensor, torch.Tensor]:
    """A concave cage: a sphere with dents."""
    vertices = STAR.vertices * (1.0 - 0.4 * (np.arange(len(STAR.vertices)) % 3 == 0))[:, None]
    return torch.as_tensor(vertices), torch.as_tensor(np.array(STAR.faces))


def cages() -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    return {
        "box": (torch.tensor(BOX.handles), torch.tensor(BOX.faces)),
        "grid": (torch.tensor(GRID.handles), torch.tensor(GRID.faces)),
        "star": star(),
    }


everywhere = pytest.mark.parametrize("name", ["box", "grid", "star"])


def places(vertices: torch.Tensor, faces: torch.Tensor, kind: str) -> torch.Tensor:
    """Points of one kind."""
    rng = np.random.default_rng(0)
    corner = vertices[faces]
    normal = torch.linalg.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    normal = normal / normal.norm(dim=-1, keepdim=True)
    inner = torch.as_tensor(rng.dirichlet((2, 2, 2), len(faces)))
    on = (inner[..., None] * corner).sum(1)
    edge = 0.3 * corner[:, 0] + 0.7 * corner[:, 1]
    return {
        "inside": torch.as_tensor(rng.uniform(-0.3, 0.3, (100, 3))),
        "outside": torch.as_tensor(rng.normal(size=(100, 3)) * 2.0 + 3.0),
        "far": torch.as_tensor(rng.normal(size=(20, 3)) * 3.0 + 20.0),
        "vertex": vertices,
        "edge": edge,
        "face": on,
        "near a face": torch.cat([on - d * normal for d in (1e-3, 1e-6, 1e-9, 1e-11, 1e-13)]),
        "near an edge": torch.cat([edge - d * normal for d in (1e-4, 1e-8, 1e-12)]),
        "near a vertex": torch.cat([vertices * (1.0 - d) for d in (1e-4, 1e-8, 1e-12)]),
        "in the plane of a face": torch.cat(
            [corner[:, 0] + s * (corner[:, 1] - corner[:, 2]) for s in (0.5, 1.0, 3.0)]
        ),
    }[kind]


KINDS = (
    "inside", "outside", "far", "vertex", "edge", "face", "near a face", "near an edge", "near a vertex",
    "in the plane of a face",
)  # fmt: skip


@everywhere
@pytest.mark.parametrize("kind", KINDS)
def test_they_add_up_to_one_and_reproduce_points(name, kind):
    """To 1e-12 wherever a point is; far away, the sum of large weights of both signs loses digits: 1e-8."""
    vertices, faces = cages()[name]
    points = places(vertices, faces, kind)
    w = mean_value_weights(points, vertices, faces)
    assert torch.isfinite(w).all()
    error = (w @ vertices - points).abs().max().item()
    print(f"{error:.1e}, sum {(w.sum(1) - 1.0).abs().max().item():.1e}")
    limit = 1e-8 if kind == "far" else 1e-12
    assert error < limit
    assert (w.sum(1) - 1.0).abs().max() < limit


def test_the_vertices_of_turned_cages(rng):
    """Where faces do not lie along the axes, volumes on a face are rounded, and not exactly zero."""
    for count in (4, 5, 6):
        cage = star_palm(count).cage
        turn = torch.linalg.qr(torch.as_tensor(rng.normal(size=(3, 3)))).Q
        turn = turn * torch.linalg.det(turn)
        for vertices in (torch.tensor(cage.handles), torch.tensor(cage.handles) @ turn + 0.1):
            w = mean_value_weights(vertices, vertices, torch.tensor(cage.faces))
            torch.testing.assert_close(w, torch.eye(len(vertices), dtype=w.dtype), rtol=0, atol=1e-14)


@everywhere
def test_they_are_those_of_the_definition(name):
    """w_i = integral over the unit sphere around x of hat function i over the distance, by rays: to 1e-3."""
    vertices, faces = cages()[name]
    points = places(vertices, faces, "inside")[:5]
    sphere = trimesh.creation.icosphere(6)
    rays = sphere.triangles_center / np.linalg.norm(sphere.triangles_center, axis=1)[:, None]
    corner, faces_of = vertices[faces].numpy(), faces.numpy()
    edge, other = corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]
    normal = np.cross(edge, other)
    square = (normal * normal).sum(1)
    for x, found in zip(points.numpy(), mean_value_weights(points, vertices, faces).numpy(), strict=True):
        w, a = np.zeros(len(vertices)), corner[:, 0] - x
        for d, area in zip(np.array_split(rays, 40), np.array_split(sphere.area_faces, 40), strict=True):
            with np.errstate(divide="ignore"):
                t = (normal * a).sum(1) / (d @ normal.T)  # distance along each ray to the plane of each face
            hit = np.where(np.isfinite(t), t, -1.0)[..., None] * d[:, None] - a
            second = (np.cross(hit, other) * normal).sum(-1) / square
            third = (np.cross(edge, hit) * normal).sum(-1) / square
            ray, face = np.nonzero((t > 0.0) & (second >= 0.0) & (third >= 0.0) & (second + third <= 1.0))
            weight = np.sign((d[ray] * normal[face]).sum(1)) * area[ray] / t[ray, face]
            second, third = second[ray, face], third[ray, face]
            for k, share in enumerate((1.0 - second - third, second, third)):
                np.add.at(w, faces_of[face, k], weight * share)
        np.testing.assert_allclose(found, w / w.sum(), atol=1e-3)


@everywhere
def test_gradient_with_respect_to_points(name, rng):
    """Against central differences."""
    vertices, faces = cages()[name]
    x = places(vertices, faces, "inside")[:10].clone().requires_grad_()
    k = torch.as_tensor(rng.normal(size=(10, len(vertices))))
    (slope,) = torch.autograd.grad((k * mean_value_weights(x, vertices, faces)).sum(), x)
    d, h = torch.as_tensor(rng.normal(size=x.shape)), 1e-5
    with torch.no_grad():
        up, down = ((k * mean_value_weights(x + s * h * d, vertices, faces)).sum(dim=1) for s in (1.0, -1.0))
    torch.testing.assert_close((slope * d).sum(dim=1), (up - down) / (2 * h), rtol=1e-7, atol=1e-8)


def test_a_box_has_corners_faces_and_positive_weights():
    assert BOX.handles.shape == (14, 3)
    np.testing.assert_array_equal(BOX.handles[0], (-1.0, -0.5, -0.7))
    np.testing.assert_allclose(BOX.handles[9], (1.2, 0.05, 0.05))
    w = BOX.weights(places(*cages()["box"], "inside"))
    assert (w > 0.0).all()


def test_a_grid_has_its_handles_on_the_faces_of_the_box():
    """6 n^2 + 2 of them, x fastest; every face of the cage is on one of the box, its normal outwards."""
    for n in (1, 4, 8):
        assert len(grid_cage((0, 0, 0), (1, 1, 1), (n, n, n)).handles) == 6 * n * n + 2
    np.testing.assert_allclose(GRID.handles[:5, 0], [-1.0, -1.0 + 2.2 / 3, 1.2 - 2.2 / 3, 1.2, -1.0], atol=1e-15)
    corner = GRID.handles[GRID.faces]
    assert len(corner) == 4 * (3 * 2 + 2 * 4 + 3 * 4)
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    lower, upper = np.array((-1.0, -0.5, -0.7)), np.array((1.2, 0.6, 0.8))
    for triangle, n in zip(corner, normal, strict=True):
        axis = int(np.abs(n).argmax())
        assert np.count_nonzero(np.abs(n) > 1e-12) == 1
        np.testing.assert_allclose(triangle[:, axis], (upper if n[axis] > 0 else lower)[axis], atol=1e-15)
    found = mass_properties(torch.tensor(GRID.handles), torch.tensor(GRID.faces))
    assert found.volume.item() == pytest.approx(2.2 * 1.1 * 1.5, rel=1e-14)
    assert (GRID.weights(places(*cages()["grid"], "inside")) > 0.0).all()


def test_a_handle_of_a_grid_moves_what_is_near(rng):
    """A point by the handle in the middle of a face follows it; one on the other side does not."""
    cage = grid_cage((0, 0, 0), (1, 1, 1), (8, 8, 8))
    at = int(np.linalg.norm(cage.handles - (1.0, 0.5, 0.5), axis=1).argmin())
    moved = torch.tensor(cage.handles)
    moved[at, 0] += 0.1
    points = torch.tensor([[0.999, 0.5, 0.5], [0.1, 0.5, 0.5]], dtype=torch.float64)
    shift = (CageMap(cage, moved)(points) - points)[:, 0]
    assert shift[0] > 0.09
    assert 0.0 < shift[1] < 0.001


def test_a_cage_moves_what_is_in_it(rng):
    """Affinely moved handles move points by the same map; one handle moves what is near to it most."""
    points = places(*cages()["box"], "inside")
    A, t = torch.as_tensor(np.eye(3) + 0.3 * rng.normal(size=(3, 3))), torch.as_tensor(rng.normal(size=3))
    handles = torch.tensor(BOX.handles)
    torch.testing.assert_close(CageMap(BOX, handles @ A.T + t)(points), points @ A.T + t, rtol=0, atol=1e-12)
    moved = handles.clone()
    moved[9, 0] += 0.1
    shift = (CageMap(BOX, moved)(points) - points)[:, 0]
    assert np.corrcoef(shift, points[:, 0])[0, 1] > 0.5
    assert (shift > 0.0).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Cage(BOX.handles, BOX.faces[1:]), "edge of handles .* has not one face on each side"),
        (lambda: Cage(BOX.handles, BOX.faces[:, ::-1]), "volume is -.* must be positive"),
        (lambda: Cage(BOX.handles * [1, 1, 0], BOX.faces), "volume is 0 m"),
        (lambda: Cage(BOX.handles, BOX.faces + 1), "name handles 0 to 13, got 1 to 14"),
        (lambda: Cage(BOX.handles[:, :2], BOX.faces), "must have shapes"),
        (lambda: Cage(np.full((14, 3), np.nan), BOX.faces), "finite"),
        (
            lambda: BOX.weights(torch.tensor([[0.0, 0.0, 0.0], [5.0, 0.0, 0.0]])),
            "1 of 2 points are outside of it.*, 1,",
        ),
        (lambda: CageMap(BOX, torch.zeros(3, 3)), r"handles must have shape \(14, 3\)"),
        (lambda: box_cage((0, 0, 0), (1, 0, 1)), "box_cage: lower must be below upper"),
        (lambda: grid_cage((0, 0, 0), (1, 0, 1), (2, 2, 2)), "grid_cage: lower must be below upper"),
        (
            lambda: grid_cage((0, 0, 0), (1, 1, 1), (2, 0, 2)),
            r"grid_cage: cells must be at least 1 along x, y and z, got \(2, 0, 2\)",
        ),
        (
            lambda: grid_cage((0, 0, 0), (1, 1, 1), (2, 2)),
            r"grid_cage: cells must be a list of 3 whole numbers, got \(2, 2\)",
        ),
        (
            lambda: grid_cage((0, 0, 0), (1, 1, 1), (2.5, 2, 2)),
            r"grid_cage: cells\[0\] must be a whole number, got 2.5",
        ),
    ],
)
def test_bad_input(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_points_on_the_cage_are_not_outside():
    vertices, faces = cages()["box"]
    for kind in ("face", "edge", "vertex"):
        BOX.weights(places(vertices, faces, kind))
