"""Pictures that are cut open: within the cut there is no soft matter, and what is behind it is seen."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from view_cases import GREEN, RED, flat_scene

import warpbots as wb
from warpbots.scene import Box, HalfSpace, Material, Scene, SoftBody, Sphere
from warpbots.view import draw, film_strip

HALF = HalfSpace((0.0, 0.0, 0.0), (0.0, 1.0, 0.0))
"""What is in front of the middle of the arm."""
ALL = Box((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))


def arm(solver) -> wb.Simulation:
    """A red bar of flesh; under projective dynamics with a green bone inside, that nobody sees."""
    flesh = SoftBody("flesh", Box((0.0, -0.03, -0.03), (0.2, 0.03, 0.03)), Material(5e4, 0.3, 1000.0), color=RED)
    bone = wb.RigidBody("bone", Box((0.04, -0.012, -0.012), (0.16, 0.012, 0.012)), color=GREEN)
    bodies = (flesh, bone) if isinstance(solver, wb.ProjectiveDynamics) else (flesh,)
    return wb.Simulation(Scene(bodies, gravity=(0.0, 0.0, 0.0)), solver, dt=0.005, substeps=None)


def shares(image: np.ndarray) -> tuple[float, float]:
    """Parts of a picture that are red and green."""
    r, g, b = np.moveaxis(np.asarray(image)[..., :3].astype(float), -1, 0)
    return float(((r > 2.0 * g) & (r > 2.0 * b)).mean()), float(((g > 2.0 * r) & (g > 2.0 * b)).mean())


def drawn(sim: wb.Simulation, cut=None) -> tuple[float, float]:
    ax = draw(sim.scene, sim.model.matter, cut=cut)
    ax.figure.canvas.draw()
    found = shares(ax.figure.canvas.buffer_rgba())
    plt.close(ax.figure)
    return found


def test_a_cut_shows_the_bone_and_takes_flesh_away():
    sim = arm(wb.ProjectiveDynamics(0.02))
    (red, green), (left, bone), (nothing, alone) = (drawn(sim, cut) for cut in (None, HALF, ALL))
    assert red > 0.05
    assert green == 0.0
    assert 0.1 * red < left < 0.9 * red
    assert bone > 0.005
    assert nothing == 0.0
    assert alone > bone


def test_a_cut_beside_the_body_changes_nothing():
    sim = arm(wb.ProjectiveDynamics(0.02))
    assert drawn(sim, Sphere((0.0, 0.0, 5.0), 0.1)) == drawn(sim)


def test_a_film_strip_is_cut_in_all_its_pictures():
    motion = arm(wb.ProjectiveDynamics(0.02)).rollout(None, 2)
    whole, opened = (np.asarray(film_strip(motion, 2, cut=cut)) for cut in (None, HALF))
    assert whole.shape == opened.shape
    for half in np.array_split(np.arange(whole.shape[1]), 2):
        assert shares(whole[:, half])[1] == 0.0
        assert shares(opened[:, half])[1] > 0.005
        assert shares(opened[:, half])[0] < shares(whole[:, half])[0]


def test_particles_are_cut_away_too():
    sim = arm(wb.MPM(dx=0.01))
    assert drawn(sim)[0] > 0.05
    assert drawn(sim, ALL) == (0.0, 0.0)


@pytest.mark.parametrize("cut", [Box((0.0, 0.0), (1.0, 1.0)), ALL])
def test_a_cut_is_refused_in_a_plane(cut):
    with pytest.raises(ValueError, match=r"a cut opens bodies in 3D; this scene is 2D and the cut, a Box, is [23]D"):
        draw(flat_scene(), wb.MPM(dx=0.02).build(flat_scene()).matter, cut=cut)


def test_a_cut_of_a_solid_has_to_be_one():
    sim = arm(wb.ProjectiveDynamics(0.02))
    with pytest.raises(ValueError, match="this scene is 3D and the cut, a Box, is 2D"):
        film_strip(sim.rollout(None, 1), 2, cut=Box((0.0, 0.0), (1.0, 1.0)))
    with pytest.raises(ValueError, match="draw: cut must be a Box, Sphere, .*, HalfSpace, .* or None, got 'left half'"):
        draw(sim.scene, sim.model.matter, cut="left half")
