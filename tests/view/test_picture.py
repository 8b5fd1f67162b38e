"""Pictures show matter where it is, in its colours, and what is in front of it in front."""

import numpy as np
import pytest
from matplotlib import colormaps
from view_cases import GREEN, RED

from warpbots.scene import Box, DruckerPrager, Obstacle, Scene, SoftBody, Sphere
from warpbots.scene import Material as M
from warpbots.simulation import Simulation
from warpbots.solvers import MPM
from warpbots.surfaces.clipped import box_corners
from warpbots.surfaces.skin import skins_of
from warpbots.view import Camera, draw, flat_matter, picture
from warpbots.view.deformation import DeformationGradients
from warpbots.view.palette import CONTRACT, EXPAND, GROUND, INK, body_colors
from warpbots.view.ruler import ruler


def at(image, ax, points):
    """Colours of a picture under points of the axes, shape (n, 3)."""
    column, row = np.floor(ax.transData.transform(points)).astype(int).T
    return image[row, column]


def test_particles_are_where_they_are_in_2d(flat, axes, pixels):
    ax = draw(flat.scene, flat.matter, flat.final.position[0], axes())
    image = pixels(ax.figure)
    x = flat.final.position[0].cpu().numpy()
    expected = np.array([RED, GREEN])[flat.matter.body]
    assert np.abs(at(image, ax, x) - expected).max() < 0.02
    corner = ax.get_xlim()[0] + 0.02, ax.get_ylim()[1] - 0.02
    assert (at(image, ax, np.array([corner])) == 1.0).all()


def test_a_strip_that_has_torn_is_an_area_except_at_the_tear(axes, pixels):
    from matplotlib.collections import EllipseCollection, TriMesh

    strip = SoftBody("strip", Box((0.0, 0.0), (0.4, 0.1)), M(1e4), color=RED)
    scene = Scene([strip], domain=((-0.2, -0.1), (0.8, 0.2)))
    matter = Simulation(scene, MPM(1 / 80), dt=0.01).model.matter
    x = matter.position + np.where(matter.position[:, :1] > 0.2, [0.1, 0.0], 0.0)
    ax = draw(scene, matter, x, ax=axes())
    image, gap = pixels(ax.figure), np.stack([np.linspace(0.22, 0.28, 9), np.linspace(0.02, 0.08, 9)], axis=1)
    assert np.abs(at(image, ax, x) - RED).max() < 0.02
    assert (at(image, ax, gap) == 1.0).all()
    discs = [c.get_offsets() for c in ax.collections if isinstance(c, EllipseCollection)][-1]
    outside = (np.minimum(matter.position, [0.4, 0.1] - matter.position) < 0.01).any(axis=1)
    below_skin = outside & (np.abs(matter.position[:, 0] - 0.2) > 0.05)  # deeper matter may show through the tear
    assert not (x[below_skin, None] == discs).all(axis=2).any()
    assert any(isinstance(c, TriMesh) for c in ax.collections)


def test_obstacles_are_filled_in_2d(flat, axes, pixels):
    ax = draw(flat.scene, flat.matter, ax=axes())
    inside = np.array([[0.25, -0.01], [0.75, 0.02], [0.75, 0.035]])
    outside = np.array([[0.5, 0.01], [0.75, 0.045], [0.70, 0.015]])
    image = pixels(ax.figure)
    assert np.abs(at(image, ax, inside) - GROUND).max() < 0.02
    assert (at(image, ax, outside) == 1.0).all()


def test_camera_sees_all_of_a_motion(trajectory):
    x = np.stack([x for _, x, _ in trajectory.frames()])
    camera = Camera.around(trajectory.scene, x)
    seen = camera.project(x.reshape(-1, trajectory.scene.dim))
    assert (seen > camera.window[0]).all()
    assert (seen < camera.window[1]).all()
    assert camera.box[0][-1] <= 0.0  # the floor is in view


def test_camera_of_a_single_point_has_a_window():
    ball = SoftBody("b", Sphere((0.0, 0.0, 0.0), 0.1), M(1e4))
    camera = Camera.around(Scene((ball,)), np.zeros((1, 3)))
    assert (camera.window[1] > camera.window[0]).all()


def test_3d_axes_are_orthonormal_and_z_is_up():
    ball = SoftBody("b", Sphere((0.0, 0.0, 0.0), 0.1), M(1e4))
    camera = Camera.around(Scene((ball,)), np.eye(3), azimuth=30.0, elevation=50.0)
    np.testing.assert_allclose(camera.axes @ camera.axes.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(camera.axes) > 0.0
    assert camera.axes[0][2] == 0.0
    assert camera.axes[1][2] > 0.0
    # the viewer stands at azimuth 30 and elevation 50 degrees
    np.testing.assert_allclose(camera.axes[2][2], np.sin(np.radians(50.0)))
    np.testing.assert_allclose(np.arctan2(camera.axes[2][1], camera.axes[2][0]), np.radians(30.0))


@pytest.mark.parametrize("azimuth", [-62.0, 40.0, 130.0, 220.0])
def test_numbers_stand_on_the_near_edges_of_the_floor(solid, azimuth):
    camera = Camera.around(solid.scene, solid.matter.position, azimuth=azimuth)
    ticks = ruler(camera)
    assert len(ticks) > 3
    for tick in ticks:
        if tick.at[2] > camera.box[0][2]:
            continue
        axis = int(np.argmin(np.abs(tick.outward[:2])))
        assert float(tick.text.split()[0]) == pytest.approx(tick.at[axis])
        assert tick.at[axis] == tick.far[axis]
        assert camera.depth(tick.at) > camera.depth(tick.far)
    heights = [tick for tick in ticks if tick.at[2] > camera.box[0][2]]
    assert heights
    for tick in heights:  # on the edge farthest to the left
        assert float(tick.text.split()[0]) == pytest.approx(tick.at[2])
        assert camera.project(tick.at)[0] == pytest.approx(camera.project(box_corners(*camera.box))[:, 0].min())
    assert [t.text.split(maxsplit=1)[1] for t in ticks if " " in t.text] == ["m  (x)", "m  (y)", "m  (z)"]


def test_bodies_are_in_their_colours_in_3d(solid, axes, pixels):
    ax = draw(solid.scene, solid.matter, ax=axes())
    image, camera = pixels(ax.figure), Camera.around(solid.scene, solid.matter.position)
    for body, color in enumerate((RED, GREEN)):
        x = solid.matter.position[solid.matter.body == body]
        shown = at(image, ax, camera.project(x.mean(axis=0)[None]))[0]
        assert np.argmax(shown) == np.argmax(color)
        assert shown.max() > 2.0 * np.sort(shown)[1]


def test_a_driven_region_is_red_when_it_contracts_and_blue_when_it_expands(flat, solid):
    cases = ((flat, "left", [1.0], CONTRACT), (flat, "left", [-1.0], EXPAND))
    cases += ((solid, "chamber", [1.0, 0.0], EXPAND), (solid, "chamber", [-1.0, 0.0], CONTRACT))
    for trajectory, region, control, expected in cases:
        inside = trajectory.matter.regions[region]
        colors = body_colors(trajectory.scene, trajectory.matter, np.array(control))
        np.testing.assert_allclose(colors[inside], np.broadcast_to(expected, (inside.sum(), 3)))
        plain = body_colors(trajectory.scene, trajectory.matter)
        np.testing.assert_array_equal(colors[~inside], plain[~inside])


def test_weak_signals_tint_less_than_strong_ones(flat):
    inside = flat.matter.regions["left"]
    red = [body_colors(flat.scene, flat.matter, np.array([u]))[inside][0] for u in (0.0, 0.3, 1.0)]
    far = [np.linalg.norm(c - CONTRACT) for c in red]
    assert far[0] > far[1] > far[2]


def test_cables_follow_their_particles(solid, axes):
    x = solid.final.position[0].cpu().numpy()
    ax = draw(solid.scene, solid.matter, x, axes(), control=np.array([0.0, 1.0]))
    camera = Camera.around(solid.scene, x)
    ends = [np.linalg.norm(solid.matter.position - w, axis=1).argmin() for w in solid.scene.actuators[1].waypoints]
    np.testing.assert_allclose(ax.lines[0].get_xydata(), camera.project(x[ends]), atol=1e-12)


def test_values_are_drawn_by_colour_with_a_bar(flat, axes, pixels):
    value = flat.matter.position[:, 0]
    ax = draw(flat.scene, flat.matter, ax=axes(), value=value, label="x [m]")
    image = pixels(ax.figure)
    bar = ax.figure.axes[1]
    assert bar.get_ylabel() == "x [m]"
    np.testing.assert_allclose(bar.get_ylim(), (value.min(), value.max()))
    ends = flat.matter.position[[value.argmin(), value.argmax()]]
    low, high = at(image, ax, ends)
    assert np.abs(low - (0.267, 0.005, 0.329)).max() < 0.05  # the ends of viridis
    assert np.abs(high - (0.993, 0.906, 0.144)).max() < 0.05


def test_values_inside_a_flat_body_are_interpolated_and_its_border_is_neutral(flat, axes, pixels):
    """A linear field has the colours of the map between the particles too, and no shade of the body is beside it."""
    x = flat.matter.position
    bar = flat.matter.body == 0
    value = np.where(bar, x[:, 0], x[bar, 0].min())
    ax = draw(flat.scene, flat.matter, ax=axes(), value=value)
    image, lower, upper = pixels(ax.figure), x[bar].min(axis=0), x[bar].max(axis=0)
    points = np.random.default_rng(0).uniform(lower, upper, (300, 2))
    seen, share = at(image, ax, points), (points[:, 0] - value.min()) / np.ptp(value)
    assert np.abs(seen - colormaps["viridis"](share)[:, :3]).max() < 0.03
    for body in (RED, GREEN):
        assert np.abs(image - flat_matter.OUTLINE * np.array(body)).max(axis=2).min() > 0.05
    assert np.abs(image - INK).max(axis=2).min() < 0.15


def test_showing_another_moment_leaves_nothing_of_the_last_one(trajectory, axes, pixels):
    camera = Camera.around(trajectory.scene, np.stack([x for _, x, _ in trajectory.frames()]))
    start, end = trajectory.start.position[0], trajectory.final.position[0]
    stages = [picture.SceneAxes(trajectory.scene, trajectory.matter, camera, axes()) for _ in range(2)]
    stages[0].show(start, time=0.0)
    for stage in stages:
        stage.show(end, time=0.1)
    np.testing.assert_array_equal(*(pixels(stage.ax.figure) for stage in stages))
    assert not np.array_equal(pixels(stages[0].ax.figure), (stages[0].show(start), pixels(stages[0].ax.figure))[1])


@pytest.mark.parametrize("F", [np.eye(2), np.array([[1.6, 0.4], [0.0, 0.8]]), np.array([[0.0, -1.0], [1.5, 0.0]])])
def test_discs_deform_with_the_matter(flat, F):
    X = flat.matter.position
    long, short, angle = DeformationGradients(flat.matter, np.zeros(len(flat.matter), dtype=bool)).of(X @ F.T)
    U, s, _ = np.linalg.svd(F)
    np.testing.assert_allclose(long, s[0], rtol=0.06)  # the regularisation is felt at the rim
    np.testing.assert_allclose(short, s[1], rtol=0.06)
    if s[0] > 1.01 * s[1]:
        along = np.abs(np.stack([np.cos(np.radians(angle)), np.sin(np.radians(angle))], axis=1) @ U[:, 0])
        assert along.min() > 0.99


def test_a_row_of_particles_is_not_deformed_across():
    bar = SoftBody("bar", Box((0.0, 0.0), (0.3, 0.01)), M(1e4))
    particles = MPM(dx=0.02).build(Scene((bar,))).matter
    assert len(np.unique(particles.position[:, 1])) == 1
    long, short, _ = DeformationGradients(particles, np.zeros(len(particles), dtype=bool)).of(
        particles.position * [1.5, 1.0]
    )
    np.testing.assert_allclose(long, 1.5, rtol=0.06)
    np.testing.assert_allclose(short, 1.0, rtol=1e-9)


SAND = M(1e4, 0.3, law="hencky", plasticity=DruckerPrager(30.0))
WATER = M(1e4, 1 / 3, law="weakly_compressible")


@pytest.mark.parametrize("dim", [2, 3])
def test_sand_and_fluids_have_no_skin(dim):
    corner, materials = np.zeros(dim), (SAND, WATER, M(1e4, law="hencky"))
    bodies = [SoftBody(f"{k}", Box(corner + 0.2 * k, corner + 0.2 * k + 0.1), m) for k, m in enumerate(materials)]
    scene = Scene(tuple(bodies))
    assert [skin.body for skin in skins_of(scene, MPM(dx=0.025).build(scene).matter)] == [2]


@pytest.mark.parametrize("matter", [SAND, WATER], ids=["sand", "fluid"])
def test_grains_that_move_apart_are_discs_without_a_line_around_them(matter, axes, pixels):
    scene = Scene((SoftBody("grains", Box((0.0, 0.0), (0.1, 0.1)), matter, color=RED),))
    particles = MPM(dx=0.05).build(scene).matter
    x = particles.position * [2.5, 1.0]
    ax = draw(scene, particles, x, axes())
    image = pixels(ax.figure)
    assert np.abs(at(image, ax, x) - RED).max() < 0.02
    assert (at(image, ax, (x[:1] + x[particles.position[:, 0] > x[0, 0] + 1e-3][:1]) / 2.0) == 1.0).all()
    drawn = (image < 1.0).any(axis=2) & (np.abs(image - 0.62 * np.array(RED)).max(axis=2) < 0.02)
    assert not drawn.any()


@pytest.mark.parametrize("matter", [SAND, WATER], ids=["sand", "fluid"])
def test_many_grains_are_thinned_out_and_still_cover_the_body(matter, axes, pixels, monkeypatch):
    scene = Scene((SoftBody("grains", Box((0.0, 0.0), (0.2, 0.1)), matter, color=RED),))
    particles = MPM(dx=0.02).build(scene).matter

    def red(image):
        return (np.abs(image - RED).max(axis=2) < 0.3).mean()

    every = red(pixels(draw(scene, particles, ax=axes()).figure))
    monkeypatch.setattr(flat_matter, "_MOST", len(particles) // 2)
    ax = draw(scene, particles, ax=axes())
    drawn = [c for c in ax.collections if len(c.get_offsets()) > 1]
    assert sum(len(c.get_offsets()) for c in drawn) == len(particles) // 2
    assert red(pixels(ax.figure)) == pytest.approx(every, rel=0.15)


def test_matter_that_has_torn_is_drawn_undeformed(flat, rng):
    long, short, _ = DeformationGradients(flat.matter, np.zeros(len(flat.matter), dtype=bool)).of(
        rng.uniform(0.0, 100.0, flat.matter.position.shape)
    )
    assert (long == 1.0).mean() > 0.95
    assert (short[long == 1.0] == 1.0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"position": np.zeros((3, 2))}, r"draw: position must have shape \(\d+, 2\), got \(3, 2\)"),
        ({"control": np.zeros(2)}, r"draw: control must have shape \(1,\), got \(2,\)"),
        ({"value": np.zeros(2)}, r"draw: value must have shape \(\d+,\), got \(2,\)"),
    ],
)
def test_wrong_shapes_are_refused(flat, axes, arguments, message):
    with pytest.raises(ValueError, match=message):
        draw(flat.scene, flat.matter, ax=axes(), **arguments)


def test_positions_that_are_not_finite_are_refused(flat):
    x = flat.matter.position.copy()
    x[7, 1] = np.nan
    with pytest.raises(ValueError, match=r"position must be finite, got nan at index \(7, 1\)"):
        draw(flat.scene, flat.matter, x)


def test_a_new_figure_has_the_shape_of_the_view(flat):
    import matplotlib.pyplot as plt

    with plt.rc_context({"backend": "agg"}):
        ax = draw(flat.scene, flat.matter)
        camera = Camera.around(flat.scene, flat.matter.position)
        width, height = ax.get_window_extent().size
        plt.close(ax.figure)
        place = ax.get_position()
    assert width / height == pytest.approx(camera.aspect, rel=0.01)
    assert place.x0 < 0.1 < 0.97 < place.x1  # nothing is left empty but room for the ticks
    assert place.y0 < 0.2 < 0.95 < place.y1


def test_a_step_hides_what_is_behind_it(axes, pixels):
    ball = SoftBody("ball", Sphere((0.0, 0.0, 0.05), 0.05), M(1e4), color=RED)
    particles = MPM(dx=0.02).build(Scene((ball,))).matter
    share = {}
    for y in (-0.065, 0.065):  # the viewer looks along +y
        wall = Obstacle(Box((-0.1, y - 0.01, 0.0), (0.1, y + 0.01, 0.1)), name="wall")
        scene = Scene((ball,), (), (wall,))
        camera = Camera.around(scene, particles.position, azimuth=-90.0, elevation=5.0)
        image = pixels(draw(scene, particles, ax=axes(), camera=camera).figure)
        share[y] = ((image[..., 0] > 2.0 * image[..., 1]) & (image[..., 0] > 0.3)).mean()
    assert share[0.065] > 0.02
    assert share[-0.065] < 0.05 * share[0.065]
