"""Soft bodies made of particles have a smooth skin that moves with them, and none where they have parted."""

import numpy as np
import pytest
from view_cases import GREEN, RED

import warpbots as wb
from warpbots.scene import Box, Scene, SoftBody, Sphere, Truss
from warpbots.surfaces.carried_points import CarriedPoints
from warpbots.surfaces.skin import skins_of
from warpbots.view import Camera, draw
from warpbots.view.k3d_skin import bare_particles, skin_meshes
from warpbots.view.motion import Motion
from warpbots.view.rigid_bodies import poses_at_zero

H = 0.01


def block(*counts):
    """Particles on a lattice of spacing H, shape (n, dim)."""
    return H * (np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, len(counts)) + 0.5)


def turn(dim):
    """A rotation in 2D, or about an oblique axis in 3D."""
    from scipy.spatial.transform import Rotation

    return (
        Rotation.from_rotvec(np.array([0.9, -1.3, 0.4])).as_matrix()
        if dim == 3
        else np.array([[0.6, -0.8], [0.8, 0.6]])
    )


def cut_beam(dim):
    """A red beam along x made of particles, and where they are after its right half has moved away by `H`."""
    lower, upper = np.zeros(dim), H * np.array([16, 6, 5][:dim])
    scene = Scene((SoftBody("beam", Box(lower, upper), wb.Material(1e5), color=RED),), gravity=(0.0,) * dim)
    particles = wb.MPM(dx=2 * H).build(scene).matter
    x = particles.position.copy()
    x[:, 0] += np.where(x[:, 0] > 8 * H, 1.5 * H, 0.0)
    return scene, particles, x


@pytest.mark.parametrize("counts", [(8, 6), (7, 6, 5), (9, 9, 1)], ids=["2D", "3D", "a plate of one layer"])
def test_points_move_rigidly_with_a_rigid_body(counts):
    particles, R = block(*counts), turn(len(counts))
    points = np.random.default_rng(0).uniform(0.0, 1.0, (50, len(counts))) * H * counts
    found, torn = CarriedPoints(particles, points, H).at(particles @ R.T + 0.3)
    np.testing.assert_allclose(found, points @ R.T + 0.3, atol=1e-12)
    assert not torn.any()


@pytest.mark.parametrize("counts", [(8, 6), (7, 6, 5)])
def test_points_follow_a_large_stretch(counts):
    particles, dim = block(*counts), len(counts)
    F = turn(dim) @ np.diag([1.8, 0.7, 0.8][:dim])
    points = np.random.default_rng(0).uniform(0.0, 1.0, (50, dim)) * H * counts
    found, torn = CarriedPoints(particles, points, H).at(particles @ F.T)
    np.testing.assert_allclose(found, points @ F.T, atol=0.03 * H)
    assert not torn.any()


def test_bent_matter_has_not_parted():
    """A beam as thick as it is bent: its neutral radius is four times its thickness of five particles."""
    particles = block(60, 5)
    angle, radius = particles[:, 0] / (20 * H), 20 * H + particles[:, 1]
    x = np.stack([radius * np.sin(angle), radius * np.cos(angle)], axis=1)
    edge = np.stack([np.linspace(0.0, 60 * H, 100), np.zeros(100)], axis=1)
    found, torn = CarriedPoints(particles, edge, H).at(x)
    assert not torn.any()
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 20 * H, atol=0.05 * H)


@pytest.mark.parametrize("dim", [2, 3])
def test_a_skin_ends_where_matter_has_parted(dim):
    scene, particles, x = cut_beam(dim)
    (skin,) = skins_of(scene, particles)
    whole, intact, bare = skin.at(particles.position)
    assert intact.all()
    assert not bare.any()
    np.testing.assert_allclose(whole, skin.border, atol=1e-12)
    vertices, intact, bare = skin.at(x)
    away = np.abs(skin.border[skin.faces][:, :, 0] - 8 * H).max(axis=1)
    assert not intact[away < 0.9 * H].any()
    assert intact[away > 5 * H].all()
    edge = np.linalg.norm(np.diff(vertices[skin.faces], axis=1), axis=2)[intact]
    rest = np.linalg.norm(np.diff(skin.border[skin.faces], axis=1), axis=2)[intact]
    assert (edge < rest + 0.75 * H).all()  # none spans the gap
    inside = (np.abs(particles.position - np.ptp(particles.position, axis=0) / 2 - H / 2) < 2 * H)[:, 1:].all(axis=1)
    assert bare[inside & (np.abs(particles.position[:, 0] - 8 * H) < H)].all()
    assert not bare[np.abs(particles.position[:, 0] - 8 * H) > 7 * H].any()


@pytest.mark.parametrize("dim", [2, 3])
def test_a_box_has_the_area_that_a_box_has_in_the_picture(dim, axes, pixels):
    """In 3D the sum of its faces as they are seen. Balls for particles would reach out of it."""
    scene, particles, _ = cut_beam(dim)
    camera = Camera.around(scene, particles.position)
    ax = draw(scene, particles, ax=axes(), camera=camera)
    seen = pixels(ax.figure)
    red = (seen[..., 0] > 1.5 * seen[..., 1]).sum()
    width, height = ax.transData.transform(camera.window[1]) - ax.transData.transform(camera.window[0])
    share = red / (width * height)
    size = np.ptp(particles.position, axis=0) + H
    area = (
        size.prod() if dim == 2 else np.abs(camera.axes[2]) @ [size[1] * size[2], size[0] * size[2], size[0] * size[1]]
    )
    assert share == pytest.approx(area / np.prod(camera.window[1] - camera.window[0]), rel=0.02)


@pytest.mark.parametrize("dim", [2, 3])
def test_a_gap_is_seen(dim, axes, pixels):
    scene, particles, x = cut_beam(dim)
    x[:, 0] += np.where(x[:, 0] > 9 * H, 12 * H, 0.0)
    camera = Camera.around(scene, x)
    ax = draw(scene, particles, x, axes(), camera=camera)
    image = pixels(ax.figure)
    middle = np.array([[16 * H, 3 * H] if dim == 2 else [16 * H, 0.0, 2.5 * H]])
    column, row = np.floor(ax.transData.transform(camera.project(middle))).astype(int).T
    assert (image[row, column] > 0.9).all()


def test_the_player_shows_bare_particles_where_the_skin_has_ended():
    pytest.importorskip("k3d")
    scene, particles, x = cut_beam(3)
    skins, poses = skins_of(scene, particles), poses_at_zero(scene)
    frames = np.stack([particles.position, x]).astype(np.float32)
    motion = Motion(scene, particles, (), np.arange(2), np.arange(2.0), frames, poses[None], np.zeros((2, 0)), skins)
    bare = bare_particles(motion)
    assert not bare[0].any()
    np.testing.assert_array_equal(bare[1], skins[0].at(frames[1])[2])
    (mesh,) = skin_meshes(motion)
    assert len(mesh.indices["0"]) == len(skins[0].faces) > len(mesh.indices["1"])


def test_regions_and_bodies_keep_their_colours(axes, pixels):
    left = Box((-1, -1, -1), (8 * H, 1, 1))
    body = SoftBody("beam", Box((0, 0, 0), (0.16, 0.06, 0.05)), wb.Material(1e5), {"left": left}, color=GREEN)
    scene = Scene((body,), (wb.actuators.Muscle("pull", "left", (1, 0, 0), 1e3),))
    particles = wb.MPM(dx=2 * H).build(scene).matter
    camera = Camera.around(scene, particles.position)
    ax = draw(scene, particles, ax=axes(), control=np.ones(1), camera=camera)
    points = camera.project(np.array([[0.04, 0.0, 0.025], [0.12, 0.0, 0.025]]))
    column, row = np.floor(ax.transData.transform(points)).astype(int).T
    pulled, still = pixels(ax.figure)[row, column]
    assert pulled.argmax() == 0
    assert still.argmax() == 1


def test_bars_have_no_skin_and_balls_do():
    bars = SoftBody("bars", Truss([(0, 0, 0), (0.1, 0, 0)], [(0, 1)], radius=0.005), wb.Material(1e5))
    ball = SoftBody("ball", Sphere((0, 0, 0.2), 0.05), wb.Material(1e5))
    scene = Scene((bars, ball))
    lattice = wb.MassSpring(0.01).build(scene).matter.drawn
    assert [skin.body for skin in skins_of(scene, lattice)] == [1]


@pytest.mark.parametrize("breaking", [None, 0.5])
def test_a_lattice_tears_only_if_its_springs_can_break(breaking):
    """Large random distortions tear the skin of a body whose springs can break, and of no other."""
    body = SoftBody("block", Box((0.0, 0.0, 0.0), (0.1, 0.1, 0.1)), wb.Material(1e4, breaking_strain=breaking))
    lattice = wb.MassSpring(0.02).build(Scene([body])).matter
    (skin,) = skins_of(Scene([body]), lattice.drawn)
    x = lattice.position + np.random.default_rng(0).normal(0.0, 0.03, lattice.position.shape)
    _, intact, bare = skin.at(lattice.drawn_at(x))
    assert intact.all() == (not bare.any()) == (breaking is None)
