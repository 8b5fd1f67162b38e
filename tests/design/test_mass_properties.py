"""Mass properties of meshes against closed forms, and points that move with a surface."""

import numpy as np
import pytest
import torch
import trimesh

from warpbots.design import box_cage, mass_properties, surface_points


def tensors(mesh: trimesh.Trimesh) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(np.array(mesh.vertices)), torch.tensor(np.array(mesh.faces))


def test_a_box_that_is_moved_and_turned(rng):
    """m (b^2 + c^2) / 12 about each axis, wherever it is."""
    size = np.array([0.3, 0.2, 0.5])
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    R *= np.sign(np.linalg.det(R))
    place = np.array([10.0, -20.0, 5.0])
    mesh = trimesh.creation.box(size)
    vertices, faces = tensors(mesh)
    found = mass_properties(vertices @ torch.as_tensor(R.T) + torch.as_tensor(place), faces, 700.0)
    mass = 700.0 * size.prod()
    own = mass / 12.0 * np.diag((size**2).sum() - size**2)
    assert found.volume.item() == pytest.approx(size.prod(), rel=1e-12)
    assert found.mass.item() == pytest.approx(mass, rel=1e-12)
    np.testing.assert_allclose(found.center, place, rtol=1e-13)
    np.testing.assert_allclose(found.inertia, R @ own @ R.T, atol=1e-12 * np.abs(own).max())


def test_a_concave_mesh_is_that_of_trimesh():
    mesh = trimesh.creation.annulus(0.1, 0.3, 0.2)
    found = mass_properties(*tensors(mesh), 3.0)
    mesh.density = 3.0
    assert found.mass.item() == pytest.approx(mesh.mass, rel=1e-10)
    np.testing.assert_allclose(found.center, mesh.center_mass, atol=1e-12)
    np.testing.assert_allclose(found.inertia, mesh.moment_inertia, rtol=1e-9, atol=1e-9 * found.inertia.max())


def test_gradients_are_those_of_differences(rng):
    """Of every property, by the vertices."""
    vertices, faces = tensors(trimesh.creation.icosphere(1))
    weights = [torch.as_tensor(rng.normal(size=s)) for s in ((), (), (3,), (3, 3))]

    def loss(x: torch.Tensor) -> torch.Tensor:
        found = mass_properties(x, faces, 2.0)
        values = (found.volume, found.mass, found.center, found.inertia)
        return sum((w * v).sum() for w, v in zip(weights, values, strict=True))

    x = vertices.clone().requires_grad_()
    (slope,) = torch.autograd.grad(loss(x), x)
    d, h = torch.as_tensor(rng.normal(size=x.shape)), 1e-6
    difference = (loss(vertices + h * d) - loss(vertices - h * d)) / (2 * h)
    assert (slope * d).sum().item() == pytest.approx(difference.item(), rel=1e-8)


@pytest.mark.parametrize(
    "mesh", [trimesh.creation.box((0.3, 0.2, 0.5)), trimesh.creation.icosphere(3)], ids=["box", "ball"]
)
def test_points_share_the_surface_and_move_with_it(mesh):
    """Their areas add up to that of the mesh, and are about equal; stretched matter keeps them on its surface."""
    vertices, faces = tensors(mesh)
    points = surface_points(mesh.vertices, mesh.faces, 60)
    areas = points.areas(vertices)
    assert 40 <= len(areas) <= 60
    assert areas.sum().item() == pytest.approx(mesh.area, rel=1e-12)
    assert areas.max() < 5.0 * areas.min()
    stretched = vertices * torch.tensor([2.0, 1.0, 0.5])
    there = trimesh.Trimesh(stretched, faces, process=False)
    there_too = trimesh.triangles.closest_point(there.triangles[points.face], points.positions(stretched).numpy())
    np.testing.assert_allclose(there_too, points.positions(stretched), atol=1e-12)
    assert points.areas(stretched).sum().item() == pytest.approx(there.area, rel=1e-12)
    torch.testing.assert_close(points.positions(stretched), points.positions(vertices) * torch.tensor([2.0, 1.0, 0.5]))


def test_a_cage_has_the_volume_of_its_box():
    cage = box_cage((0, 0, 0), (1, 2, 3))
    assert mass_properties(torch.tensor(cage.handles), torch.tensor(cage.faces)).volume.item() == pytest.approx(6.0)


def test_no_points():
    mesh = trimesh.creation.box((1, 1, 1))
    with pytest.raises(ValueError, match="count must be at least 1, got 0"):
        surface_points(mesh.vertices, mesh.faces, 0)
