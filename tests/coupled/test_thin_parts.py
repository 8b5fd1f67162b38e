"""Warnings about thin and narrow bodies beside matter: what is thin, what it is called, and what is thick as a whole."""

import sys
import warnings

import numpy as np
import pytest

import warpbots as wb
from warpbots.contact import width, width_within
from warpbots.solvers import thin_bodies

S = wb.shapes
Box, Capsule = S.Box, S.Capsule
JELLY = wb.SoftBody("jelly", Box((0, 0, 0), (0.06, 0.06, 0.04)), wb.Material(2e4, 0.3, 1000.0))
ROOM = {"domain": ((-0.04, -0.04, -0.04), (0.1, 0.1, 0.1))}
TILT = np.linalg.qr(np.array([[1.0, 0.3, 0.2], [0.2, 1.0, 0.4], [0.1, 0.5, 1.0]]))[0]
TILT = (TILT * np.sign(np.linalg.det(TILT))).tolist()
ROD = Box((-0.02, -0.003, -0.003), (0.02, 0.003, 0.003))
CUBE = Box((-0.02,) * 3, (0.02,) * 3)


def built(shape, matter=None) -> list[str]:
    """Warnings about a body of a shape above jelly in cells of 1 cm."""
    body = wb.RigidBody("tool", shape, position=(0.03, 0.03, 0.1))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        wb.Coupled(matter or wb.MPM(0.01)).build(wb.Scene([JELLY, body], **ROOM))
    return [text for w in heard if "'tool'" in (text := str(w.message))]


@pytest.mark.parametrize(
    ("shape", "thick"),
    [
        (S.Union([CUBE, Capsule((0, 0, 0), (0.05, 0, 0), 0.003)]), "0.006"),
        (S.Union([CUBE, S.Posed(ROD, (0.03, 0.03, 0.0), TILT)]), "0.006"),
        (Capsule((0, 0, 0), (0.03, 0.03, 0.0), 0.003), "0.006"),
        (S.Cylinder((0, 0, 0), (0.03, 0.03, 0.0), 0.003), "0.006"),
        (S.Posed(ROD, (0.0, 0.0, 0.0), TILT), "0.006"),
    ],
    ids=["rod on a cube", "tilted rod on a cube", "oblique capsule", "oblique cylinder", "tilted rod"],
)
def test_a_rod_is_called_a_rod_in_a_union_and_in_every_direction(shape, thick):
    (said,) = built(shape)
    assert f"{thick} m thick, less than a cell of 0.01 m: it sinks into matter like a wire" in said


def test_a_plate_is_called_a_plate_in_a_union():
    (said,) = built(S.Union([CUBE, Box((0.02, -0.03, 0.0), (0.06, 0.03, 0.004))]))
    assert "0.004 m thick, less than a cell of 0.01 m: matter on its two sides sticks together" in said


def test_slabs_that_touch_are_thick_together():
    """As rigid body, and as soft body, which bends as one piece; slabs apart and a lone slab are thin."""
    layers = [Box((-0.02, -0.02, z), (0.02, 0.02, z + 0.005)) for z in (0.0, 0.005, 0.01, 0.015)]
    assert not built(S.Union(layers))
    assert "0.005 m thick" in built(S.Union(layers[::2]))[0]
    assert [width_within(part, S.Union(layers)) for part in layers] == pytest.approx([0.02] * 4, rel=0.05)
    assert width_within(layers[0], S.Union(layers[::2])) == pytest.approx(width(layers[0]))
    beam = [Box((0, 0, z), (0.2, 0.04, z + 0.01)) for z in (0.0, 0.01, 0.02, 0.03)]
    material = wb.Material(2e4, 0.25, 1000.0)
    solver = wb.MassSpring(0.01)
    solver.build(wb.Scene([wb.SoftBody("beam", S.Union(beam), material)]))
    with pytest.warns(UserWarning, match=r"'beam': 2 cells of 0\.01 m fill its thickness of 0\.02 m"):
        solver.build(wb.Scene([wb.SoftBody("beam", S.Union(beam[:2]), material)]))


def test_other_parts_are_asked_about_only_where_a_part_alone_is_too_thin(monkeypatch):
    """Or the check takes most of the time in which 64 bodies are built; here are four layers of a thick beam."""
    asked = []
    monkeypatch.setattr(thin_bodies, "width_within", lambda *of: asked.append(of) or width_within(*of))
    layers = [Box((0, 0, z), (0.2, 0.04, z + 0.01)) for z in (0.0, 0.01, 0.02, 0.03)]
    scene = wb.Scene([wb.SoftBody("beam", S.Union(layers), wb.Material(2e4, 0.25, 1000.0))])
    for size, count in ((0.005, 0), (0.02, 4)):
        thin_bodies.warn_of_thin_bodies(scene, size, lambda across: "it bends" if across < 1.9 else None, "size", 2.0)
        assert len(asked) == count


@pytest.mark.parametrize("corner", [(0.3, 0.07), (0.3, 0.07, 0.011)])
def test_the_width_of_a_box_is_that_of_its_chords(corner):
    box = Box((0.0,) * len(corner), corner)
    assert width(box) == width.dispatch(object)(box) == pytest.approx(min(corner))


def net(length: float) -> wb.SoftBody:
    """Two crossed bars of a truss."""
    joints = [(0, 0, 0), (length, 0, 0), (0, length, 0), (-length, 0, 0), (0, -length, 0)]
    return wb.SoftBody("net", S.Truss(joints, [(0, k) for k in range(1, 5)], 2e-3), wb.Material(1e6, 0.25, 1000.0))


def test_a_body_that_fits_between_the_ends_of_bars_gets_a_warning():
    """Only masses touch: a ball of 6 cm fell through the middle of bars of 10 cm without a word."""
    ball = wb.RigidBody("ball", S.Sphere((0, 0, 0), 0.03), position=(0.05, 0.0, 0.04))
    with pytest.warns(UserWarning, match=r"RigidBody 'ball' is 0\.06 m across, less than the longest bar of a Truss, 0\.1 m: "
                      r"only the ends of bars touch bodies, .*; divide bars into pieces of at most 0\.06 m"):  # fmt: skip
        wb.Coupled(wb.MassSpring(0.02)).build(wb.Scene([net(0.1), ball]))
    wb.Coupled(wb.MassSpring(0.02)).build(wb.Scene([net(0.06), ball]))


@pytest.mark.parametrize("ratio", [1.3, 1.5])
def test_a_rod_passes_between_masses_up_to_the_diagonal_of_a_cell_and_gets_a_warning(ratio):
    """A vertical rod above the middle of a cell, that falls for 0.1 s: by 49 mm, or onto the masses."""
    s, rod = 0.02, Capsule((0, 0, 0), (0, 0, 0.06), 0.01 * ratio)
    bed = wb.SoftBody("bed", Box((-0.03, -0.03, -0.06), (0.03, 0.03, 0.0)), wb.Material(1e5, 0.25, 1000.0),
                      {"all": Box((-1, -1, -1), (1, 1, 1))})  # fmt: skip
    body = wb.RigidBody("rod", rod, position=(0.0, 0.0, 0.01 * ratio + 1e-4))
    scene = wb.Scene([bed, body], constraints=[wb.Constraint("all")], joints=[wb.Joint("z", "prismatic", None, "rod")])
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        sim = wb.Simulation(scene, wb.Coupled(wb.MassSpring(s)), 0.01, 20)
    assert any("'rod' is 0.026 m thick, less than 1.4 times the spacing of 0.02 m: it passes between masses; use "
               "MassSpring(spacing=...) of at most 0.018 m" in str(w.message) for w in heard) == (ratio < 1.4)  # fmt: skip
    sunk = -sim.rollout(None, 10).final.q.item()
    assert sunk == pytest.approx(0.049, abs=0.002) if ratio < 1.4 else sunk < 0.012


def test_parts_of_a_union_are_asked_only_about_points_within_their_bounds(monkeypatch):
    """Or a robot of 41 boxes takes two minutes to build; a post on a beam is as wide as the beam across."""
    module = sys.modules["warpbots.contact.width"]
    original, asked = module.signed_distance, []

    def watched(shape, points):
        lower, upper = shape.bounds
        asked.append(((points >= lower) & (points <= upper)).all() and not isinstance(shape, S.Union))
        return original(shape, points)

    monkeypatch.setattr(module, "signed_distance", watched)
    beam, post = Box((0, 0, 0), (0.4, 0.1, 0.1)), Box((0, 0, 0.1), (0.1, 0.1, 0.3))
    whole = S.Union((beam, post))
    assert module.width_within(beam, whole) == pytest.approx(0.1)
    assert module.width_within(post, whole) == pytest.approx(0.1)
    assert asked and all(asked)
