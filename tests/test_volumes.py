"""Volume and position of the matter of a shape: volumes in closed form, and precision far from the origin."""

import math
import warnings

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import warpbots as wb
from warpbots.contact import volume
from warpbots.numerics import precision
from warpbots.scene import SceneError
from warpbots.scene.shapes import (
    Box,
    Capsule,
    Cylinder,
    DistanceGrid,
    HalfSpace,
    Points,
    Posed,
    Sheet,
    Silhouette,
    Sphere,
    TetMesh,
    TriangleMesh,
    Truss,
    Union,
)
from warpbots.solvers.projective import pieces

BALLS = Union((Sphere((0, 0, 0), 1.0), Sphere((1, 0, 0), 1.0)))
CROSS = Truss([(-1, 0), (1, 0), (0, -1), (0, 1)], [(0, 1), (2, 3)], 0.1)
X = np.stack(np.meshgrid(*[np.linspace(-1.2, 1.2, 49)] * 3, indexing="ij"), -1)


@pytest.mark.parametrize(
    ("shape", "exact"),
    [
        (Box((0, 0, 0), (1, 2, 3)), 6.0),
        (Sphere((0, 0), 2.0), 4.0 * math.pi),
        (Sphere((0, 0, 0), 2.0), 32.0 / 3.0 * math.pi),
        (Cylinder((0, 0), (3, 4), 0.5), 5.0),
        (Cylinder((0, 0, 0), (0, 3, 4), 0.5), 1.25 * math.pi),
        (Capsule((0, 0), (2, 0), 0.5), 2.0 + 0.25 * math.pi),
        (Capsule((0, 0, 0), (2, 0, 0), 0.5), 0.5 * math.pi + math.pi / 6.0),
        (Posed(Box((0, 0), (1, 2)), (5.0, 5.0), ((0.0, -1.0), (1.0, 0.0))), 2.0),
        (Silhouette([[0, 1], [1, 1]], (0.0, 0.0), 0.1), 0.03),
        (Points([(0.0, 0.0), (1.0, 1.0)], [0.2, 0.3]), 0.5),
        (Sheet.rectangle((0, 0), (1, 2), 1e-3, (2, 2)), 2e-3),
        (HalfSpace((0, 0), (0, 1)), math.inf),
        (Union((Box((0, 0), (1, 1)), Box((1, 0), (3, 1)), Box((0, 1), (1, 2)))), 4.0),
    ],
)
def test_closed_forms(shape, exact):
    """Parts of a union that only touch are exact, too."""
    assert volume(shape) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(
    ("shape", "exact"),
    [
        (BALLS, 8.0 / 3.0 * math.pi - 5.0 * math.pi / 12.0),  # less the lens of two caps of height 1/2
        (Union((Sphere((0, 0), 1.0), Sphere((0, 0), 1.0))), math.pi),
        (Union((Posed(BALLS, (9.0, 0, 0), np.eye(3)), BALLS)), 2.0 * (8.0 / 3.0 - 5.0 / 12.0) * math.pi),
        (CROSS, 2.0 * (2.0 * 0.2 + 0.01 * math.pi) - 0.04),
        (DistanceGrid(np.linalg.norm(X, axis=-1) - 1.0, (-1.2,) * 3, 0.05), 4.0 / 3.0 * math.pi),
    ],
)
def test_what_overlaps_counts_once(shape, exact):
    assert volume(shape) == pytest.approx(exact, rel=4e-3)


def tray():
    """30 x 20 x 5 cm, open at the top, with walls and a floor of 3 mm."""
    size, wall = np.array([0.3, 0.2, 0.05]), 3e-3
    square = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    outer, inner = square * size[:2], wall + square * (size[:2] - 2.0 * wall)
    rings = [(outer, 0.0), (outer, size[2]), (inner, size[2]), (inner, wall)]
    vertices = np.concatenate([np.column_stack([ring, np.full(4, z)]) for ring, z in rings])
    faces = [(0, 2, 1), (0, 3, 2), (12, 13, 14), (12, 14, 15)]
    for ring in range(3):
        for k in range(4):
            a, b = 4 * ring + k, 4 * ring + (k + 1) % 4
            faces += [(a, b, b + 4), (a, b + 4, a + 4)]
    return TriangleMesh(vertices, faces)


def simulation(shape, solver, **more):
    return wb.Simulation(wb.Scene([wb.SoftBody("thing", shape, wb.Material(1e5, 0.25), **more)]), solver, 1e-3, None)


def kilograms(sim):
    particles = sim.model.matter
    return float((particles.volume * particles.density).sum())


def test_a_tray_that_a_coarse_mesh_loses_is_refused():
    shape = tray()
    assert shape.volume == pytest.approx(0.3 * 0.2 * 0.05 - 0.294 * 0.194 * 0.047)
    with pytest.raises(SceneError, match=r"SoftBody 'thing': its shape holds 0.319\d kg \(0.000319\d m\^3\) and its tetrahedra .* % (less|more); it may differ by 10 %: use a smaller ProjectiveDynamics"):  # fmt: skip
        simulation(shape, wb.ProjectiveDynamics(0.0356, collisions=False))
    assert kilograms(simulation(shape, wb.MPM(0.01))) == pytest.approx(1000.0 * shape.volume, rel=1e-6)
    assert kilograms(simulation(shape, wb.MassSpring(0.003))) == pytest.approx(1000.0 * shape.volume, rel=1e-6)


def polyhedron(radius: float, count: int) -> TetMesh:
    """A number of points spread over a sphere about the origin, and tetrahedra from its centre to its faces."""
    z, turn = 1.0 - 2.0 * (np.arange(count) + 0.5) / count, np.pi * (1.0 + np.sqrt(5.0)) * np.arange(count)
    r = np.sqrt(1.0 - z * z)
    x = radius * np.stack([r * np.cos(turn), r * np.sin(turn), z], axis=1)
    faces = ConvexHull(x).simplices
    tets = np.concatenate([np.full((len(faces), 1), count), faces], axis=1)
    x = np.concatenate([x, np.zeros((1, 3))])
    inverted = np.linalg.det(x[tets[:, 1:]] - x[tets[:, :1]]) < 0.0
    tets[inverted] = tets[inverted][:, [0, 2, 1, 3]]
    return TetMesh(x, tets)


@pytest.mark.parametrize(
    ("shape", "solver", "what"),
    [
        (Sphere((0, 0, 0), 0.1), wb.MPM(0.05), "particles"),
        (Sphere((0, 0), 0.1), wb.MassSpring(0.05), "cells"),
        (Box((0, 0), (0.25, 0.25)), wb.MassSpring(0.05, "random"), "cells"),
        (Sphere((0, 0, 0), 0.1), wb.ProjectiveDynamics(0.2, collisions=False), "tetrahedra"),
    ],
)
def test_what_is_a_little_off_is_said_with_both_masses(shape, solver, what, monkeypatch):
    """For tetrahedra with a reproducible mesh, unlike those of fTetWild."""
    monkeypatch.setattr(pieces, "tetrahedra", lambda shape, cell_size: polyhedron(shape.radius, 200))
    with pytest.warns(UserWarning, match=rf"its shape holds [\d.]+ kg .* and its {what} [\d.]+ kg .* %.*use a smaller") as said:  # fmt: skip
        sim = simulation(shape, solver)
    (said,) = [w for w in said if "holds" in str(w.message)]
    assert said.filename == __file__
    off = kilograms(sim) / (1000.0 * volume(shape)) - 1.0
    assert 0.01 < abs(off) < 0.1
    assert f"{100 * abs(off):.2g} % {'less' if off < 0 else 'more'}" in str(said.message)


@pytest.mark.parametrize(
    ("shape", "solver"),
    [
        (Capsule((0, 0, 0), (1, 1, 1), 0.02), wb.MPM(0.1)),
        (Sphere((0, 0), 0.1), wb.MassSpring(0.15)),
        (Truss([(0, 0), (1, 0.7)], [(0, 1)], 0.02), wb.MPM(0.15)),
        (Silhouette(np.eye(7, dtype=bool), (0.0, 0.0), 0.1), wb.MPM(0.5)),
    ],
)
def test_what_is_a_tenth_off_is_refused(shape, solver):
    with pytest.raises(SceneError, match=r"its shape holds .* (less|more); it may differ by 10 %: use a smaller (MPM|MassSpring)"):  # fmt: skip
        simulation(shape, solver)


BAR = Box((0, 0, 0), (0.2, 0.1, 0.1))
CORNER = Union((BAR, Box((0.2, 0, 0), (0.4, 0.1, 0.2))))


@pytest.mark.parametrize(
    ("shape", "solver"),
    [
        (CORNER, wb.MPM(0.02)),
        (CORNER, wb.MassSpring(0.02)),
        (BAR, wb.ProjectiveDynamics(0.05, collisions=False)),
        (Sheet.rectangle((0, 0), (1, 1), 1e-3, (2, 2)), wb.ProjectiveDynamics(0.05, collisions=False)),
        (Truss([(0, 0), (1, 0), (1, 1)], [(0, 1), (1, 2)], 0.1), wb.MassSpring(0.1)),
    ],
)
def test_what_fits_is_not_mentioned(shape, solver):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulation(shape, solver)


SOLVERS = [wb.MPM(0.025), wb.MassSpring(0.05), wb.ProjectiveDynamics(0.05, collisions=False)]


def cube(far, axis=2):
    lower = far * np.eye(3)[axis]
    return Box(tuple(lower), tuple(lower + 0.1))


@pytest.mark.skipif(precision != "float32", reason="of single precision")
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("axis", [0, 2])
def test_single_precision_far_away_is_refused(solver, axis):
    """At 1e5 m positions are 7.8 mm apart: a body of 10 cm fell by nothing, or fell apart."""
    with pytest.raises(ValueError, match=r"matter is 100000 m from the origin, where positions in float32 are 0.0078 m apart: .*WARPBOTS_PRECISION=float64"):  # fmt: skip
        simulation(cube(1e5, axis), solver)
    with pytest.warns(UserWarning, match=r"matter is 1000\.(09|1) m from the origin, where positions in float32 are 6.1e-05 m") as said:  # fmt: skip
        simulation(cube(1e3, axis), solver)
    assert {w.filename for w in said} == {__file__}
    sim = simulation(cube(0.0), solver)
    with pytest.raises(ValueError, match=r"matter is 1e\+06 m from the origin"):
        sim.state(position=sim.state().position + 1e6)


@pytest.mark.skipif(precision != "float32", reason="of single precision")
def test_steps_too_short_for_single_precision_are_refused():
    """At 100 m nothing below 3.8 m/s moves in a step of 1 us, which is as fast as what fell for 0.4 s."""
    scene = wb.Scene([wb.SoftBody("thing", cube(100.0), wb.Material(1e5, 0.25))])
    with pytest.raises(ValueError, match=r"matter slower than 4 m/s stands still \(solver steps of 1e-06 s\)"):
        wb.Simulation(scene, wb.MPM(0.025), 1e-6, 1)


@pytest.mark.verification
@pytest.mark.parametrize("solver", SOLVERS)
def test_double_precision_falls_far_away_as_it_falls_here(solver):
    """It falls by g t (t + h) / 2 in steps of h by semi-implicit and implicit Euler."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        near, far = simulation(cube(0.0), solver), simulation(cube(1e5), solver)
    fallen = [(s.rollout(None, 5).final.position - s.state().position)[..., 2].mean().item() for s in (near, far)]
    h = near.dt / near.substeps
    assert fallen[0] == pytest.approx(-9.81 * 5e-3 * (5e-3 + h) / 2.0, rel=1e-6)
    assert fallen[1] == pytest.approx(fallen[0], rel=1e-6)


@pytest.mark.parametrize(
    "solver",
    [
        wb.MPM(0.02),
        wb.MassSpring(0.02),
        wb.ProjectiveDynamics(0.02, elements="tetrahedra"),
        wb.ProjectiveDynamics(0.02, elements="hexahedra"),
    ],
)
@pytest.mark.filterwarnings("ignore:SoftBody 'slab'. 2 cells of 0.02 m fill its thickness")
def test_a_region_of_another_density_that_cuts_through_cells_is_named(solver):
    """The upper part of a slab is ten times as dense: right if its face lies between cells, and named 8 mm above."""
    low, high = wb.Material(2e5, 0.25, 100.0), wb.Material(2e5, 0.25, 1000.0)

    def simulation(height):
        regions = {"top": Box((-1, -1, height), (1, 1, 1))}
        body = wb.SoftBody("slab", Box((0, 0, 0), (0.12, 0.04, 0.04)), low, regions, {"top": high})
        return wb.Simulation(wb.Scene([body]), solver, dt=0.01, substeps=None)

    matter = simulation(0.02).model.matter
    assert matter.density @ matter.volume == pytest.approx(0.12 * 0.04 * 0.02 * 1100.0, rel=1e-6)
    with pytest.warns(UserWarning, match=r"'slab': regions of other densities.* mean density .* instead of 3[67]\d"):
        matter = simulation(0.028).model.matter
    assert abs(matter.density @ matter.volume / (0.12 * 0.04**2) / 370.0 - 1.0) > 0.05
