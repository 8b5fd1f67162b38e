"""Lattices: what springs hang where, how stiff they are, and what they weigh."""

import re

import numpy as np
import pytest
from cases import DIMENSIONS
from scipy.sparse.linalg import spsolve
from scipy.spatial import cKDTree

from warpbots.numerics import precision
from warpbots.scene import Box, Constraint, Material, Scene, SceneError, SoftBody, Sphere
from warpbots.simulation import Simulation
from warpbots.solvers import MassSpring
from warpbots.solvers.mass_spring import stiffness_matrix
from warpbots.solvers.mass_spring.lattice import POISSONS_RATIO, Lattice, assemble, voxel_cells
from warpbots.solvers.mass_spring.lattice.scattered import MINIMUM, best_candidates

E, RHO = 1e5, 1000.0


def lattice(shape, solver: MassSpring) -> Lattice:
    """The lattice of one body of `shape`."""
    return solver.build(Scene([SoftBody("body", shape, Material(E, POISSONS_RATIO, RHO))])).lattice


def constants(made: Lattice, volume: float) -> np.ndarray:
    """C_ijkl = sum k l^2 n n n n / V [Pa]: the stiffness under an affine strain."""
    d = made.position[made.ends[:, 1]] - made.position[made.ends[:, 0]]
    return np.einsum("s,si,sj,sk,sl->ijkl", made.stiffness / made.rest_length**2, d, d, d, d) / volume


@pytest.mark.parametrize(
    "size", [(1.0, 1.0, 1.0), (1.0, 0.8, 1.3), (1.0, 0.32, 1.0), (1.0, 0.33, 0.33), (0.16, 0.27, 1)]
)
@pytest.mark.parametrize("dim", DIMENSIONS)
def test_a_voxel_lattice_is_isotropic(dim, size):
    """lambda = mu = 2/5 E to rounding, surfaces included, for cubes and for boxes that the body's size enforces.

    All springs push and pull, those of flat and of long boxes, too.
    """
    made = lattice(Box((0.0,) * dim, size[:dim]), MassSpring(0.23))
    C, one = constants(made, np.prod(size[:dim])), np.eye(dim)
    solid = sum(np.einsum(f"{a},{b}->ijkl", one, one) for a, b in (("ij", "kl"), ("ik", "jl"), ("il", "jk")))
    np.testing.assert_allclose(C, 0.4 * E * solid, rtol=0, atol=1e-9 * E)
    assert (made.stiffness > 0.0).all()


@pytest.mark.parametrize("size", [(0.2, 0.2, 0.05), (0.3, 0.055, 0.055), (0.2, 0.05)])
def test_too_flat_boxes_are_refused(size):
    """With a spacing that would do."""
    box = Box((0.0,) * len(size), size)
    with pytest.raises(
        SceneError, match=r"'body': cells of .* have edges in a ratio of .* use MassSpring\(spacing="
    ) as e:
        lattice(box, MassSpring(0.1))
    enough = float(re.search(r"spacing=([\d.e-]+)\)", str(e.value))[1])
    assert 0.5 * min(size) < enough < 0.1
    assert (lattice(box, MassSpring(enough)).stiffness > 0.0).all()


def test_neighbours_of_a_voxel_lattice():
    """26 in 3D and 8 in 2D, each diagonal once; as many as distances up to that of a box's corners."""
    for dim, neighbours in ((2, 8), (3, 26)):
        made = lattice(Box((0.0,) * dim, (1.0,) * dim), MassSpring(0.25))
        degree = np.bincount(made.ends.ravel())
        assert degree.max() == neighbours
        pairs = cKDTree(made.position).query_pairs(0.25 * np.sqrt(dim) + 1e-9, output_type="ndarray")
        assert len(made.ends) == len(pairs)
        assert len(np.unique(made.ends, axis=0)) == len(made.ends)
        assert (made.ends[:, 0] < made.ends[:, 1]).all()


@pytest.mark.parametrize("kind", ["voxel", "random"])
@pytest.mark.parametrize("dim", DIMENSIONS)
def test_mass_is_that_of_the_body(kind, dim):
    """Exactly for boxes of voxels, to 2 % for a random lattice whose edges are rounded."""
    made = lattice(Box((0.0,) * dim, (1.0, 0.5, 0.5)[:dim]), MassSpring(0.06, kind))
    expected = RHO * np.prod((1.0, 0.5, 0.5)[:dim])
    assert made.mass.sum() == pytest.approx(expected, rel=1e-12 if kind == "voxel" else 0.02)
    ball = lattice(Sphere((0.0,) * dim, 0.5), MassSpring(0.05, kind))
    assert ball.mass.sum() == pytest.approx(RHO * {2: np.pi / 4, 3: np.pi / 6}[dim], rel=0.04)


def stretched(dim: int, kind: str, spacing: float) -> tuple[float, float]:
    """Young's modulus of a bar under a small tension, per that of its material, and its Poisson's ratio."""
    size = np.array([1.0, *(0.4,) * (dim - 1)])
    left = Box((-1e-3, *(-1.0,) * (dim - 1)), (1e-3, *(1.0,) * (dim - 1)))
    right = Box((1.0 - 1e-3, *(-1.0,) * (dim - 1)), (1.0 + 1e-3, *(1.0,) * (dim - 1)))
    body = SoftBody("bar", Box((0.0,) * dim, size), Material(E, POISSONS_RATIO, RHO), {"left": left, "right": right})
    model = MassSpring(spacing, kind, seed=1).build(Scene([body]))
    made, n = model.lattice, len(model.lattice)
    K = stiffness_matrix(model)
    u = np.zeros((n, dim))
    u[:, 0] = 1e-3 * made.position[:, 0]
    held = np.zeros((n, dim), dtype=bool)
    held[made.regions["left"] | made.regions["right"], 0] = True
    at = np.linalg.norm(made.position - [0.5, *(0.2,) * (dim - 1)], axis=1)
    held[at.argmin(), 1:] = True
    if dim == 3:
        held[np.linalg.norm(made.position - [0.5, 0.4, 0.2], axis=1).argmin(), 2] = True
    free = ~held.reshape(-1)
    x = u.reshape(-1)
    x[free] = spsolve(K[free][:, free].tocsc(), -(K[free][:, held.reshape(-1)] @ x[held.reshape(-1)]))
    force = (K @ x).reshape(n, dim)[made.regions["right"], 0].sum()
    middle = np.abs(made.position[:, 0] - 0.5) < 0.25
    slope = np.polyfit(made.position[middle, 1], u[middle, 1], 1)[0]
    return force / np.prod(size[1:]) / 1e-3 / E, -slope / 1e-3


@pytest.mark.parametrize("spacing", [0.1, 0.07, 0.05])
@pytest.mark.parametrize("kind", ["voxel", "random"])
@pytest.mark.parametrize("dim", DIMENSIONS)
def test_stretch(dim, kind, spacing):
    """E and nu = 1/4, in plane strain E / (1 - nu^2) and nu / (1 - nu): voxels to rounding, random lattices to 10, 6 and
    5 % with 4, 6 and 8 spacings across.
    """
    E_bar, nu = stretched(dim, kind, spacing)
    E_solid, nu_solid = {2: (16.0 / 15.0, 1.0 / 3.0), 3: (1.0, 0.25)}[dim]
    print(f"{dim}D {kind} {spacing}: E {E_bar / E_solid:.4f}, nu {nu:.4f}")
    rounding = 1e-9 if precision == "float64" else 1e-6
    allowed = rounding if kind == "voxel" else {0.1: 0.1, 0.07: 0.06, 0.05: 0.05}[spacing]
    assert E_bar / E_solid == pytest.approx(1.0, abs=allowed)
    if kind == "voxel" or spacing < 0.1:
        assert nu == pytest.approx(nu_solid, abs=rounding if kind == "voxel" else 0.03)


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_best_candidates(dim):
    """One point per spacing^d, none closer than the stated minimum, no hole wider than 1.6 spacings, all inside.

    Neighbours are as far apart as stated, and half a spacing where points were moved onto the surface.
    """
    spacing = {2: 0.03, 3: 0.08}[dim]
    point = best_candidates(Box((0.0,) * dim, (1.0,) * dim), spacing, seed=3)
    nearest = cKDTree(point).query(point, k=2)[0][:, 1]
    assert nearest.min() >= MINIMUM * spacing
    assert nearest.mean() == pytest.approx({2: 0.82, 3: 0.86}[dim] * spacing, rel=0.02)
    moved = lattice(Box((0.0,) * dim, (1.0,) * dim), MassSpring(spacing, "random", seed=3)).position
    assert cKDTree(moved).query(moved, k=2)[0][:, 1].min() > 0.5 * spacing
    assert len(point) == pytest.approx(spacing**-dim, rel=0.02)
    probe = np.random.default_rng(0).uniform(0.1, 0.9, (20000, dim))
    assert cKDTree(point).query(probe)[0].max() < 1.3 * spacing
    assert ((point > 0.0) & (point < 1.0)).all()
    again = best_candidates(Box((0.0,) * dim, (1.0,) * dim), spacing, seed=3)
    np.testing.assert_array_equal(point, again)


def test_directions_of_a_random_lattice_are_alike():
    """The mean of n n is I / 3 to 0.03."""
    made = lattice(Box((0.0,) * 3, (1.0,) * 3), MassSpring(0.08, "random"))
    d = (made.position[made.ends[:, 1]] - made.position[made.ends[:, 0]]) / made.rest_length[:, None]
    np.testing.assert_allclose(np.einsum("si,sj->ij", d, d) / len(d), np.eye(3) / 3, atol=0.03)


def test_materials_of_regions_meet_in_their_springs():
    """A spring between a soft and a stiff cell is as stiff as both together."""
    soft, stiff = Material(1e4, 0.25, 1000.0), Material(1e6, 0.25, 2000.0)
    right = Box((0.5, 0.0), (1.0, 1.0))
    body = SoftBody("two", Box((0.0, 0.0), (1.0, 1.0)), soft, {"right": right}, {"right": stiff})
    made = assemble(Scene([body]), [voxel_cells(body.shape, 0.25, body.name)])
    upright = np.isclose(made.position[made.ends[:, 0], 0], made.position[made.ends[:, 1], 0])
    x = made.position[made.ends[:, 0], 0]
    edge = np.isclose(made.rest_length, 0.25)
    k = {at: made.stiffness[upright & edge & np.isclose(x, at)].max() for at in (0.25, 0.5, 0.75)}
    assert k[0.5] == pytest.approx((k[0.25] + k[0.75]) / 2)
    assert made.mass.sum() == pytest.approx(1500.0)


def test_the_centre_of_mass_is_that_of_the_body():
    """Corner masses are an eighth of inner ones: the mean of the positions of half a bar would be elsewhere."""
    bar = SoftBody(
        "bar",
        Box((0.0, 0.0), (0.3, 0.1)),
        Material(E, POISSONS_RATIO, RHO),
        regions={"head": Box((-0.1, -0.1), (0.1, 0.2))},
    )
    sim = Simulation(Scene([bar], gravity=(0.0, 0.0)), MassSpring(0.1), 1e-3)
    assert sim.center_of_mass(sim.state())[0].tolist() == pytest.approx([0.15, 0.05])
    mass, x = sim.model.lattice.mass, sim.model.lattice.position
    chosen = sim.model.lattice.regions["head"]
    assert sim.center_of_mass(sim.state(), "head")[0].tolist() == pytest.approx(
        mass[chosen] @ x[chosen] / mass[chosen].sum()
    )
    with pytest.raises(KeyError, match="there is no region 'tail'"):
        sim.center_of_mass(sim.state(), "tail")


def test_constraints_and_regions_hold_the_masses_on_their_border():
    """A region as thin as a sheet still holds the masses in it."""
    root = Box((-1e-9, 0.0), (1e-9, 1.0))
    body = SoftBody("beam", Box((0.0, 0.0), (1.0, 0.25)), Material(1e5, 0.25), {"root": root})
    model = MassSpring(0.125).build(Scene([body], constraints=[Constraint("root")]))
    np.testing.assert_array_equal(model.lattice.regions["root"], model.lattice.position[:, 0] == 0.0)
