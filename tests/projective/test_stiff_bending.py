"""What is said of slender parts with few cells across: how stiff they are in bending, against finite elements."""

import dataclasses
import re
import warnings

import numpy as np
import pytest
import skfem
from scipy.sparse.linalg import spsolve
from skfem.models.elasticity import lame_parameters, linear_elasticity

import warpbots as wb
from warpbots.meshing.elements_across import elements_across
from warpbots.solvers.mass_spring import natural_modes
from warpbots.solvers.projective.stiff_bending import stiff_part

pytestmark = pytest.mark.projective

Box = wb.shapes.Box


def mesh_of(counts, size) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and tetrahedra of a bar whose cells are counted along each axis."""
    cells = wb.meshing.tetrahedra(Box((0, 0, 0), counts), 1.0)
    return np.array(cells.vertices) * size / np.array(counts), np.array(cells.tets)


def compliance(vertices: np.ndarray, tets: np.ndarray, element, nu: float) -> float:
    """Work of a force across the free end of a cantilever, whose other end is at x = 0, by scikit-fem."""
    mesh = skfem.MeshTet(vertices.T.copy(), tets.T.copy())
    basis = skfem.Basis(mesh, skfem.ElementVector(element), intorder=4)
    end = mesh.facets_satisfying(lambda x: np.isclose(x[0], vertices[:, 0].max()))
    pull = skfem.LinearForm(lambda v, w: v[2]).assemble(
        skfem.FacetBasis(mesh, skfem.ElementVector(element), facets=end)
    )
    K = linear_elasticity(*lame_parameters(1.0, nu)).assemble(basis)
    free = np.setdiff1d(np.arange(len(pull)), basis.get_dofs(lambda x: np.isclose(x[0], 0.0)).all())
    return float(pull[free] @ spsolve(K[free][:, free].tocsc(), pull[free]))


BARS = [
    ((8, 1, 1), (8.0, 1.0, 1.0)),
    ((10, 2, 2), (5.0, 1.0, 1.0)),
    ((8, 2, 2), (8.0, 1.0, 1.0)),
    ((4, 2, 2), (8.0, 1.0, 1.0)),
    ((6, 3, 1), (6.0, 3.0, 1.0)),
    ((15, 3, 3), (5.0, 1.0, 1.0)),
]
"""Cells along each axis and size [m] of bars: cubes, and cells that are long."""


@pytest.mark.parametrize("nu", [0.0, 0.3, 0.45, 0.49])
@pytest.mark.parametrize(("counts", "size"), BARS)
def test_the_figure_is_the_excess_of_bending_stiffness(counts, size, nu):
    """Within 30 % for any Poisson's ratio, 40 % for long cells, where linear elements are 1.3 to 7 times as stiff."""
    vertices, tets = mesh_of(counts, size)
    part = stiff_part(vertices, tets, np.zeros(len(vertices), dtype=bool))
    fine = compliance(*mesh_of((12, 2, 2), size), skfem.ElementTetP2(), nu)
    excess = fine / compliance(vertices, tets, skfem.ElementTetP1(), nu) - 1.0
    assert 0.2 < excess < 7.0
    assert part.excess == pytest.approx(excess, rel=0.4 if size[0] > counts[0] else 0.3)
    assert part.thickness == pytest.approx(1.0, rel=1e-9)
    assert part.layers == counts[2]


def hollow_box(walls: int, cell: float = 0.01) -> tuple[np.ndarray, np.ndarray]:
    """A cube of ten cells with a void in the middle, whose walls are so many cells thick."""
    cube = wb.meshing.tetrahedra(Box((0, 0, 0), (0.1, 0.1, 0.1)), cell)
    off = np.abs(cube.vertices[cube.tets].mean(axis=1) - 0.05).max(axis=1)
    return cube.vertices, cube.tets[off > 0.05 - walls * cell]


@pytest.mark.parametrize("walls", [1, 2, 5])
def test_walls_of_a_void_are_parts(walls):
    """A cube is not slender, its walls are: one or two cells across them, and none where the void is gone."""
    vertices, tets = hollow_box(walls)
    part = stiff_part(vertices, tets, np.zeros(len(vertices), dtype=bool))
    if walls == 5:
        assert part is None
        return
    assert part.layers == walls
    assert part.thickness == pytest.approx(0.01 * walls, rel=1e-6)
    assert part.excess == pytest.approx(2.5 / walls**2, rel=0.1)


def test_the_way_through_a_mesh_is_its_thickness(rng):
    """Of a block without order, turned: faces see the opposite side, whose way back is as long."""
    mesh = wb.meshing.tetrahedra(wb.shapes.Sphere((0, 0, 0), 0.1), 0.03)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    across = elements_across(np.array(mesh.vertices) @ turn.T, np.array(mesh.tets), 100)
    assert (across.end >= 0).all()
    assert np.median(across.thickness) == pytest.approx(0.2, rel=0.05)
    assert across.thickness.max() <= 0.21
    vertices, tets = mesh_of((6, 6, 1), (6.0, 6.0, 0.5))
    plate = elements_across(vertices, tets)
    flat = np.ptp(vertices[plate.faces][..., 2], axis=1) == 0.0
    assert flat.sum() == 2 * 6 * 6 * 2
    np.testing.assert_allclose(plate.thickness[flat], 0.5, rtol=1e-12)


def beam(dim: int, height: float, nu: float = 0.3, **parts) -> wb.Scene:
    """A bar of 0.8 m that is held at one end."""
    size = (0.8, *(height,) * (dim - 1))
    body = wb.SoftBody(
        "beam",
        Box((0,) * dim, size),
        wb.Material(1e5, nu, 1000.0),
        {"root": Box((-1,) * dim, (1e-6, *(1,) * (dim - 1)))},
    )
    return wb.Scene(
        [dataclasses.replace(body, **parts)],
        constraints=[wb.Constraint("root")],
        gravity=(0.0,) * dim,
        domain=((-0.5,) * dim, (1.5,) * dim),
    )


def said_of(scene: wb.Scene, solver) -> list[str]:
    """Warnings of bending when a simulation is built, each of which names the line that builds it."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        wb.Simulation(scene, solver, dt=0.01, substeps=1 if isinstance(solver, wb.ProjectiveDynamics) else None)
    assert {w.filename for w in found if "bending" in str(w.message)} <= {__file__}
    return [str(w.message) for w in found if "bending" in str(w.message)]


SAID = {
    "tetrahedra": (
        beam(3, 0.1),
        wb.ProjectiveDynamics(0.05),
        "64 % too stiff in bending.*2 across.*quadratic_tetrahedra.*0.02 m",
    ),
    "springs": (beam(3, 0.1, 0.25), wb.MassSpring(0.05), "2 cells.*30 % too stiff.*0.033 m"),
    "springs in the plane": (beam(2, 0.1), wb.MassSpring(0.1), "1 cells.*120 % too stiff.*0.033 m"),
    "particles": (beam(2, 0.04), wb.MPM(dx=0.08), "0.5 cells.*half of its stiffness.*0.04 m"),
}


@pytest.mark.parametrize("solver", SAID)
def test_a_slender_body_with_few_cells_across_is_warned_of_once(solver):
    scene, coarse, words = SAID[solver]
    (message,) = said_of(scene, coarse)
    assert message.startswith("SoftBody 'beam'")
    assert re.search(words, message), message


FINE = {
    "four tetrahedra": (beam(3, 0.1), wb.ProjectiveDynamics(0.025)),
    "quadratic ones": (beam(3, 0.1), wb.ProjectiveDynamics(0.05, elements="quadratic_tetrahedra")),
    "linear ones by name": (beam(3, 0.1), wb.ProjectiveDynamics(0.05, elements="tetrahedra")),
    "a block": (beam(3, 0.5), wb.ProjectiveDynamics(0.25)),
    "three cells of springs": (beam(3, 0.1, 0.25), wb.MassSpring(0.1 / 3)),
    "a cell of particles": (beam(2, 0.08), wb.MPM(dx=0.08)),
    "a fluid": (beam(2, 0.04, material=wb.Material(1e5, 0.3, 1000.0, "weakly_compressible")), wb.MPM(dx=0.08)),
}


@pytest.mark.parametrize("case", FINE)
def test_nothing_is_said_of_others(case):
    assert said_of(*FINE[case]) == []


@pytest.mark.parametrize("across", [1, 2, 3])
def test_the_figure_of_springs_is_the_excess_of_bending_stiffness(across):
    """1.2 / n^2, from the lowest frequency of a bar, whose square is its stiffness, and that of a fine lattice."""
    low = [
        float(natural_modes(wb.Simulation(beam(2, 0.1, 1 / 3), wb.MassSpring(0.1 / n), 0.01, None).model, 1)[0][0])
        for n in (across, 12)
    ]
    assert (low[0] / low[1]) ** 2 - 1.0 == pytest.approx(1.2 / across**2, rel=0.15)
