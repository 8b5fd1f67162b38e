"""The linear system of the adjoint, and the factored matrix, against SciPy's solution of the same."""

import dataclasses

import numpy as np
import pytest
import warp as wp
from scipy.sparse import bsr_matrix, csc_matrix, diags
from scipy.sparse.linalg import spsolve
from soft_bodies import DT, beam, sliding

from warpbots.numerics import NODE, real, real_numpy
from warpbots.scene import floor
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective.bones_step import Skeleton
from warpbots.solvers.projective.contact_points import ContactPoints
from warpbots.solvers.projective.contact_step import ContactStep
from warpbots.solvers.projective.elements.element import Point
from warpbots.solvers.projective.forces import evaluate_rest
from warpbots.solvers.projective.global_step import GlobalStep
from warpbots.solvers.projective.iterate.sparse_cholesky import _panels, factorise, solve
from warpbots.solvers.projective.step_adjoint import solve_adjoint

pytestmark = pytest.mark.verification


def second_derivative(model, w: int, dt: float = DT) -> csc_matrix:
    """H of one world with its free nodes, from the blocks that were assembled."""
    columns = model.workspace.column.numpy()[:, :3].reshape(model.worlds, model.topology.pairs, 3, 3)[w]
    shape = (3 * model.topology.sizes.nodes, 3 * model.topology.sizes.nodes)
    blocks = (np.swapaxes(columns, 1, 2), model.topology.neighbor.numpy(), model.topology.row.numpy())
    mass = np.repeat(model.nodes.mass.numpy().reshape(model.worlds, -1)[w], 3)
    free = np.repeat(~model.topology.fixed, 3)
    return (bsr_matrix(blocks, shape=shape).tocsr() + diags(mass / dt**2))[free][:, free].tocsc()


def adjoint_solution(model, solver, u: np.ndarray, g: np.ndarray):
    """a of H a = g at displacements u, each of shape (worlds, n_nodes, 3), by the solver."""
    state = solver.state(model, requires_grad=True)
    wide = np.zeros((2, model.worlds, model.topology.sizes.stride, 4), dtype=real_numpy)
    wide[0, :, : model.topology.sizes.nodes, :3], wide[1, :, : model.topology.sizes.nodes, :3] = u, g
    model.workspace.displacement.assign(wide[0].reshape(-1, 4))
    model.workspace.seed.assign(wide[1].reshape(-1, 4))
    control = wp.zeros((model.worlds, model.channels), dtype=real, device=model.device)
    start, u = state.position.flatten(), model.workspace.displacement
    point = Point(model.workspace.everywhere, control, start, u, real(DT), state.time)
    evaluate_rest(model, point)
    points = ContactPoints(model, state, DT)
    skeleton = Skeleton(model, state, points, control, DT)
    contact = ContactStep(model, skeleton, points, DT)
    matrix = model.matrices.of(DT)
    step = GlobalStep(model, matrix, point.x)
    solve_adjoint(model, matrix, step, point, skeleton, contact, solver.tolerance, solver.max_iterations)
    return matrix.iteration.history.z.numpy().reshape(model.worlds, -1, 4)[:, : model.topology.sizes.nodes, :3]


def iterations(model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of every world: steps of minimal residuals, whether they converged, and whether the adjoint was solved."""
    arrays, progress = model.workspace.krylov.arrays, model.matrices.of(DT).iteration.progress
    return arrays.iterations.numpy(), arrays.converged.numpy(), progress.converged.numpy()


@pytest.mark.parametrize("law", ["corotated", "neo_hookean"])
def test_minimal_residuals_solve_every_world(law, rng):
    """Two worlds of different stiffness, to 1e-9; none needs the general iteration, and each stops when it is there."""
    solver = ProjectiveDynamics(0.04, tolerance=1e-12, collisions=False, linear_solver="iterative")
    model = solver.build(beam(law), 2)
    stiff = model.youngs_modulus.numpy() * np.array([[1.0], [0.01]])
    model = dataclasses.replace(model, youngs_modulus=wp.array(stiff, dtype=real, device=model.device))
    shape = (2, model.topology.sizes.nodes, 3)
    u, g = 1e-3 * rng.normal(size=shape), rng.normal(size=shape)
    a = adjoint_solution(model, solver, u, g)
    count, converged, solved = iterations(model)
    assert converged.tolist() == solved.tolist() == [1, 1]
    assert 5 < count[0] < count[1] < 100  # the matrix was factored for the stiffness of the first
    free = ~model.topology.fixed
    assert np.abs(a[:, ~free]).max() == 0.0
    for w in range(2):
        H = second_derivative(model, w)
        assert abs(H - H.T).max() < 1e-10 * abs(H).max()
        expected = spsolve(H, g[w, free].reshape(-1))
        assert np.abs(a[w, free].reshape(-1) - expected).max() < 1e-9 * np.abs(expected).max()


def test_an_indefinite_matrix_is_no_obstacle(rng):
    """One world is pressed to half its length, where dozens of eigenvalues of H are negative; to 1e-8."""
    solver = ProjectiveDynamics(0.04, tolerance=1e-12, collisions=False)
    model = solver.build(beam(youngs_modulus=1e6), 2)
    shape = (2, model.topology.sizes.nodes, 3)
    u, g = 1e-4 * rng.normal(size=shape), rng.normal(size=shape)
    u[0, :, 0] -= 0.5 * model.matter.position[:, 0]
    a = adjoint_solution(model, solver, u, g)
    _, converged, solved = iterations(model)
    assert converged.tolist() == solved.tolist() == [1, 1]
    free = ~model.topology.fixed
    for w, negative in ((0, True), (1, False)):
        H = second_derivative(model, w).toarray()
        assert ((np.linalg.eigvalsh(H) < 0.0).sum() > 10) == negative
        expected = np.linalg.solve(H, g[w, free].reshape(-1))
        assert np.abs(a[w, free].reshape(-1) - expected).max() < 1e-8 * np.abs(expected).max()


@pytest.mark.parametrize("in_contact", [False, True])
def test_only_a_world_with_contact_needs_the_general_iteration(in_contact):
    """A cube on the floor or above it."""
    solver = ProjectiveDynamics(0.04, tolerance=1e-10)
    model = solver.build(sliding("corotated", (floor(0.0 if in_contact else -0.05, friction=0.3),)))
    state, end = (solver.state(model, requires_grad=True) for _ in range(2))
    control = wp.zeros((1, model.channels), dtype=real, device=model.device)
    with wp.Tape() as tape:
        solver.step(model, state, control, end, DT)
    end.position.grad.fill_(1.0)
    tape.backward()
    count, converged, solved = iterations(model)
    assert (count[0] == 0) == in_contact
    assert converged[0] == (not in_contact)
    assert solved[0] == 1


@pytest.mark.parametrize("density", [0.02, 0.5])
def test_panels_of_the_factor_solve_what_scipy_solves(density, rng):
    """Sparse and nearly dense matrices, with columns that are alone and such that go four at a time."""
    n = 83
    noise = rng.normal(size=(n, n)) * (rng.random((n, n)) < density)
    A = csc_matrix(noise @ noise.T + np.diag(1.0 + rng.random(n)))
    free = rng.random(n) < 0.9
    device = wp.get_device("cpu")
    factor = factorise(A, free, np.zeros((n, 3)), 2, device)
    widths = np.diff(factor.arrays.panel.numpy())
    assert set(widths) == {1, 4}
    assert widths.sum() == free.sum()
    b = np.zeros((2, n, 4), dtype=real_numpy)
    b[..., :3] = rng.normal(size=(2, n, 3))
    x = wp.zeros(2 * n, dtype=NODE, device=device)
    scaling, active = wp.array([1.0, 2.0], dtype=real, device=device), wp.ones(2, dtype=int, device=device)
    solve(factor, scaling, active, wp.array(b.reshape(-1, 4), dtype=NODE, device=device), x, device)
    x = x.numpy().reshape(2, n, 4)[..., :3]
    assert np.abs(x[:, ~free]).max() == 0.0
    for w in range(2):
        expected = spsolve(A[free][:, free], b[w, free, :3]) / (1.0 + w)
        np.testing.assert_allclose(x[w, free], expected, rtol=0.0, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("rows", "panels"),
    [([[1, 2, 3, 5], [2, 3, 5], [3, 5], [5]], [0, 4, 5, 6]), ([[1, 2, 4, 5], [2, 4, 5], [4, 5], [5]], [*range(7)])],
)
def test_a_panel_is_dense_above_its_common_rows(rows, panels):
    """Four columns with the same rows below, but in the second case one without the next on its diagonal."""
    columns = [*rows, [5], []]
    start, row = np.cumsum([0, *map(len, columns)]), np.concatenate(columns).astype(int)
    L = csc_matrix((np.ones(len(row)), row, start), shape=(6, 6))
    assert _panels(L).tolist() == panels
