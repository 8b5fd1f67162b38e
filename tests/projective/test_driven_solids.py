"""Fibres and pneumatic cells in solids of all elements: against scikit-fem, closed forms and each other."""

import dataclasses

import numpy as np
import pytest
import torch
from cases import lame
from soft_bodies import at_rest, driven, forces_at, nearest
from test_adjoint_solve import second_derivative

import warpbots as wb
from warpbots.numerics import real_numpy
from warpbots.scene import Box, Constraint, Fibre, HalfSpace, Material, PneumaticCell, Scene, SoftBody
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective.elements.reference_elements import EDGES
from warpbots.solvers.projective.global_step import GlobalStep
from warpbots.solvers.projective.second_derivative import SecondDerivative

ELEMENTS = ("tetrahedra", "quadratic_tetrahedra", "hexahedra")
DOUBLE = real_numpy is np.float64
STILL = 1e6
"""Length of a step in which inertia does not count [s]."""
K = 3e4
LITTLE = 4e-3
"""A control signal for small strain."""
ACTUATORS = {"fibre": Fibre("fibre", "top", (1, 0.2, 0.1), K, 0.3), "cell": PneumaticCell("cell", "top", K, 0.5)}

everywhere = pytest.mark.parametrize("elements", ELEMENTS)
both = pytest.mark.parametrize("actuator", ACTUATORS)


def driven_box(elements: str, actuator: str, cells: tuple[int, int, int] = (2, 2, 2), whole: bool = False, **parts):
    """A box of cells of 4 cm that nothing holds, whose upper half, or all of which, is driven."""
    upper = tuple(0.04 * n for n in cells)
    regions = {"top": HalfSpace((0, 0, -1.0 if whole else upper[2] / 2), (0, 0, -1))}
    body = SoftBody("box", Box((0, 0, 0), upper), Material(1e5, 0.3, 1000.0, "linear"), regions)
    scene = dataclasses.replace(Scene((body,), (ACTUATORS[actuator],), gravity=(0, 0, 0)), **parts)
    solver = ProjectiveDynamics(0.04, elements=elements, collisions=False, tolerance=1e-13 if DOUBLE else None)
    return Simulation(scene, solver, STILL)


def parameter(actuator: str) -> str:
    return f"{actuator}_stiffness"


def pull(sim: Simulation, actuator: str, x: np.ndarray, u: float, **parameters: np.ndarray) -> np.ndarray:
    """Forces of the actuator alone [N], shape (n_nodes, 3)."""
    none = {parameter(actuator): np.zeros(sim.parameter(parameter(actuator)).shape[1])}
    return forces_at(sim, x, u, **parameters) - forces_at(sim, x, u, **(parameters | none))


def energy_and_stress(actuator: str, F: np.ndarray, u: float, k: np.ndarray | float = K):
    """Energy density [J/m^3] and its derivative [Pa] at F, shape (n, 3, 3), written anew."""
    if actuator == "fibre":
        m = np.array([1, 0.2, 0.1]) / np.linalg.norm([1, 0.2, 0.1])
        y, L = F @ m, 1.0 - 0.3 * u
        l = np.linalg.norm(y, axis=1)
        return k / 2 * (l - L) ** 2, (k * (l - L) / l)[:, None, None] * y[:, :, None] * m
    gap = F - nearest(F, np.full(len(F), 1.0 + 0.5 * u))
    return k / 2 * (gap**2).sum((1, 2)), np.broadcast_to(k, len(F))[:, None, None] * gap


def warped(sim: Simulation, rng: np.random.Generator) -> np.ndarray:
    """Positions at rest of an irregular mesh with straight edges [m], whose skin is that of the box."""
    mesh = sim.model.matter
    X, size = mesh.position.copy(), mesh.position.max(axis=0)
    inside = ((X > 1e-6) & (size - 1e-6 > X)).all(axis=1)
    corner = np.zeros(len(X), dtype=bool)
    corner[mesh.solids[:, : 8 if mesh.solid.name == "hexahedra" else 4]] = True
    X[inside & corner] += 0.006 * rng.uniform(-1, 1, ((inside & corner).sum(), 3))
    if mesh.solid.name == "quadratic_tets":
        for k, (a, b) in enumerate(EDGES):
            X[mesh.solids[:, 4 + k]] = (X[mesh.solids[:, a]] + X[mesh.solids[:, b]]) / 2
    return X


@both
@everywhere
def test_patch_test(elements, actuator, rng):
    """In uniform strain no node inside is pulled, and sum f X^T = -V P, on irregular meshes of all elements."""
    sim = driven_box(elements, actuator, whole=True)
    X = warped(sim, rng)
    size = X.max(axis=0)
    inside = ((X > 1e-6) & (size - 1e-6 > X)).all(axis=1)
    assert inside.any() and (np.abs(X - sim.model.matter.position).max() > 1e-3)
    A = np.eye(3) + 0.2 * rng.uniform(-1, 1, (3, 3))
    f = pull(sim, actuator, X @ A.T, 0.7, rest_position=X)
    _, P = energy_and_stress(actuator, A[None], 0.7)
    tight = 1e-12 if DOUBLE else 2e-5
    assert np.abs(f[inside]).max() < tight * np.abs(f).max()
    np.testing.assert_allclose(f.T @ X, -size.prod() * P[0], atol=tight * size.prod() * np.abs(P).max())
    assert np.abs(f.sum(axis=0)).max() < tight * np.abs(f).sum()


@both
@everywhere
def test_energy_is_that_of_another_code(elements, actuator, rng):
    """Of random displacements, with a stiffness for each element, integrated by scikit-fem."""
    fem = pytest.importorskip("skfem")
    sim = driven_box(elements, actuator)
    mesh, name = sim.model.matter, parameter(actuator)
    if elements == "hexahedra":
        cell = mesh.hexahedra[:, [7, 6, 5, 3, 4, 2, 1, 0]]  # scikit-fem begins at the largest corner
        solid, element, order = fem.MeshHex(mesh.position.T, cell.T), fem.ElementHex1(), 3
    else:
        corners = mesh.solids[:, :4]
        solid = fem.MeshTet(mesh.position[: corners.max() + 1].T, corners.T)
        linear = elements == "tetrahedra"
        element, order = (fem.ElementTetP1(), 1) if linear else (fem.ElementTetP2(), 2)
    basis = fem.Basis(solid, fem.ElementVector(element), intorder=order)
    at = basis.doflocs[:, ::3].T
    order = np.linalg.norm(at[:, None] - mesh.position, axis=2).argmin(axis=1)
    u = 3e-3 * rng.uniform(-1, 1, mesh.position.shape)
    F = np.moveaxis(np.asarray(basis.interpolate(u[order].reshape(-1)).grad), (0, 1), (2, 3)) + np.eye(3)
    top = mesh.position[mesh.solids].mean(axis=1)[:, 2] > 0.04
    k = K * rng.uniform(0.5, 1.5, top.sum())
    density, _ = energy_and_stress(actuator, F[top].reshape(-1, 3, 3), -0.6, np.repeat(k, F.shape[1]))
    expected = (density.reshape(top.sum(), -1) * basis.dx[top]).sum()
    state = sim.state(position=torch.as_tensor(mesh.position + u))
    control = torch.tensor([-0.6], dtype=torch.float64)
    with_, without = (
        float(sim.sense(state, control, **{name: torch.as_tensor(s)}).elastic_energy) for s in (k, 0.0 * k)
    )
    assert with_ - without == pytest.approx(expected, rel=1e-11 if DOUBLE else 1e-4)


@pytest.mark.verification
@both
@everywhere
def test_forces_and_blocks_are_derivatives(elements, actuator, rng):
    """Forces of the energy, and the second derivative of the forces, by differences, to 1e-8; it is symmetric."""
    sim = driven_box(elements, actuator, (2, 1, 2))
    mesh = sim.model.matter
    x = mesh.position + 3e-3 * rng.uniform(-1, 1, mesh.position.shape)
    d = rng.normal(size=x.shape)

    def energy(x: np.ndarray) -> float:
        state = sim.state(position=torch.as_tensor(x))
        return float(sim.sense(state, torch.tensor([0.8], dtype=torch.float64)).elastic_energy)

    def slope(f, e: float = 1e-5):
        there, back, far, far_back = (f(x + s * e * d) for s in (1, -1, 2, -2))
        return (8.0 * (there - back) - (far - far_back)) / (12.0 * e)

    assert -(forces_at(sim, x, 0.8) * d).sum() == pytest.approx(slope(energy), rel=1e-8)
    model, point = at_rest(sim, x, 0.8)
    SecondDerivative(model, GlobalStep(model, model.matrices.of(1.0), point.x), point).evaluate()
    H = second_derivative(model, 0, 1e9)
    pushed = -slope(lambda x: forces_at(sim, x, 0.8)).reshape(-1)
    np.testing.assert_allclose(H @ d.reshape(-1), pushed, atol=1e-8 * np.abs(pushed).max())
    assert abs(H - H.T).max() < 1e-12 * abs(H).max()


@pytest.mark.verification
@both
@everywhere
def test_the_matrix_of_the_global_step_is_never_below_the_second_derivative(elements, actuator, rng):
    """Of actuators that are a thousand times as stiff as matter, at small and at large stretch."""
    sim = driven_box(elements, actuator, (2, 1, 2), whole=True)
    mesh = sim.model.matter
    k = np.full(sim.parameter(parameter(actuator)).shape[1], 1e8)
    for size in (1e-3, 1e-2):
        x = mesh.position + size * rng.uniform(-1, 1, mesh.position.shape)
        model, point = at_rest(sim, x, 0.8, **{parameter(actuator): k})
        SecondDerivative(model, GlobalStep(model, model.matrices.of(1.0), point.x), point).evaluate()
        H = second_derivative(model, 0, 1e9).toarray()
        kind = next(kind for kind in model.topology.kinds if kind.name in ("fibres", "pneumatic"))
        A = np.zeros((len(mesh), len(mesh)))
        table = getattr(mesh, kind.name)
        for block, node in zip(kind.blocks(mesh) * (1e8 / K), table, strict=True):
            A[np.ix_(node, node)] += block
        above = np.kron(A, np.eye(3)) - H
        assert np.linalg.eigvalsh(above).min() > -0.02 * np.abs(H).max()  # matter is a thousandth


def bending(elements: str, actuator: str, nu: float, cells: int) -> float:
    """How far the middle of the tip of a bar rises whose upper half is driven a little, over its length [1], in small strain."""
    size = 0.08 / cells
    regions = {"root": HalfSpace((1e-6, 0, 0), (1, 0, 0)), "top": HalfSpace((0, 0, 0.04), (0, 0, -1))}
    body = SoftBody("bar", Box((0, 0, 0), (0.48, 0.08, 0.08)), Material(1e5, nu, 1000.0, "corotated"), regions)
    along = dataclasses.replace(ACTUATORS["fibre"], direction=(1, 0, 0))
    drive = along if actuator == "fibre" else ACTUATORS[actuator]
    scene = Scene((body,), (drive,), gravity=(0, 0, 0), constraints=(Constraint("root"),))
    sim = Simulation(scene, ProjectiveDynamics(size, elements=elements, collisions=False), STILL)
    end = sim.rollout(torch.full((4, 1), LITTLE), 4).final
    rest = sim.model.matter.position
    middle = np.linalg.norm(rest - (0.48, 0.04, 0.04), axis=1).argmin()
    return float(end.position[0, middle, 2] - rest[middle, 2]) / 0.48


def bending_of_another_code(actuator: str, nu: float) -> float:
    """The same by quadratic hexahedra of scikit-fem: the energies of actuators to second order about rest.

    Fibres: k/2 (m . e m + (1 - L))^2. Cells, with F - R = (tr e - (a - 1)) / 3: k/6 (tr e - (a - 1))^2.
    """
    fem = pytest.importorskip("skfem")
    from skfem.helpers import ddot, eye, sym_grad, trace

    along, across = 0.48 * np.linspace(0, 1, 13) ** 2, np.linspace(0, 0.08, 3)  # finer where it is held
    mesh = fem.MeshHex.init_tensor(along, across, across)
    basis = fem.Basis(mesh, fem.ElementVector(fem.ElementHex2()), intorder=4)
    mu, lam = lame(1e5, nu)

    def measure(e):
        return e[0, 0] if actuator == "fibre" else trace(e)

    k, strain = (K, -0.3 * LITTLE) if actuator == "fibre" else (K / 3, 0.5 * LITTLE)

    @fem.BilinearForm
    def stiffness(u, v, w):
        e, d = sym_grad(u), sym_grad(v)
        return ddot(2 * mu * e + eye(lam * trace(e), 3), d) + (w.x[2] > 0.04) * k * measure(e) * measure(d)

    load = fem.LinearForm(lambda v, w: (w.x[2] > 0.04) * k * strain * measure(sym_grad(v))).assemble(basis)
    held = basis.get_dofs(lambda x: np.isclose(x[0], 0.0))
    u = fem.solve(*fem.condense(stiffness.assemble(basis), load, D=held))
    return float((basis.probes(np.array([[0.48], [0.04], [0.04]])) @ u)[-1]) / 0.48


@pytest.mark.parametrize(
    ("elements", "nu", "least", "most"),
    [
        ("quadratic_tetrahedra", 0.45, -0.04, 0.04),
        ("quadratic_tetrahedra", 0.49, -0.04, 0.04),
        ("tetrahedra", 0.49, -0.45, -0.25),
        ("hexahedra", 0.0, -0.13, -0.08),
    ],
)
@both
def test_a_bar_bends_that_is_driven_on_one_side(actuator, elements, nu, least, most):
    """With two cells over its height, relative to quadratic hexahedra of scikit-fem, which are within 1 % of finer ones."""
    assert least < bending(elements, actuator, nu, 2) / bending_of_another_code(actuator, nu) - 1.0 < most


def test_stiffness_is_kept_in_a_scene_and_its_file(tmp_path, rng):
    """One for each element of either kind of driver; from the file, with these elements, it moves to the same bits."""
    for elements in ELEMENTS[1:]:
        sim = Simulation(driven(), ProjectiveDynamics(0.04, elements=elements, collisions=False), 5e-3)
        values = {
            n: sim.parameter(n) * torch.as_tensor(rng.uniform(0.5, 1.5, sim.parameter(n).shape))
            for n in ("fibre_stiffness", "cell_stiffness")
        }
        wb.usd.write(tmp_path / "designed.usdc", sim.scene_with(**values))
        same = Simulation(wb.usd.read(tmp_path / "designed.usdc"), sim.solver, sim.dt)
        control = torch.tensor([[0.5, -0.3]] * 2)
        before, after = sim.rollout(control, 2, **values).final, same.rollout(control, 2).final
        assert torch.equal(before.position, after.position)
        assert (before.position - sim.rollout(control, 2).final.position).abs().max() > 1e-6
