"""The factor of a second derivative, and what it spares: iterations of stiff cells in soft surroundings."""

import dataclasses

import numpy as np
import pytest
import torch
import warp as wp
from cases import to_numpy
from scipy.sparse import bsr_matrix
from scipy.sparse.linalg import spsolve
from skeletons import arm
from soft_bodies import DT, beam, cloth, guided, sliding, swimming
from test_adjoint_solve import adjoint_solution, iterations, second_derivative
from test_solid_elements import DOUBLE, bar, judged

from warpbots.numerics import NODE, real, real_numpy
from warpbots.scene import Box, Constraint, HalfSpace, Load, Material, Scene, SceneError, SoftBody, floor
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics, scene_support
from warpbots.solvers.projective import build
from warpbots.solvers.projective.iterate.coupled_cholesky import coupled_arrays, factorise, solve
from warpbots.solvers.projective.iterate.elimination import elimination_of

EPS = float(np.finfo(real_numpy).eps)
COUNTS = (8, 4, 4)
HOW = ("direct", "adaptive")


def matrix(nodes: int, worlds: int, rng: np.random.Generator, shift: float = 3.0):
    """A random pattern, blocks of a symmetric matrix of every world, and which nodes are fixed."""
    near = rng.random((nodes, nodes)) < 3.0 / nodes
    I, J = np.nonzero(near | near.T | np.eye(nodes, dtype=bool))
    pattern = bsr_matrix((np.ones((len(I), 1, 1)), J, np.searchsorted(I, np.arange(nodes + 1)))).tocsr()
    pattern.data = np.arange(1.0, pattern.nnz + 1.0)
    dense = rng.normal(size=(worlds, nodes, 3, nodes, 3))
    dense = (
        0.5 * (dense + dense.transpose(0, 3, 4, 1, 2)) * (near | near.T | np.eye(nodes, dtype=bool))[:, None, :, None]
    )
    dense += (
        shift * np.eye(3 * nodes).reshape(nodes, 3, nodes, 3) * (1.0 + np.abs(dense).sum(axis=(3, 4), keepdims=True))
    )
    return pattern, dense, dense[:, I, :, J, :].transpose(1, 0, 2, 3), rng.random(nodes) < 0.1


def factored(pattern, blocks, fixed, guided, mass, h):
    """The factor in all worlds of a matrix with these blocks and masses."""
    device, worlds = wp.get_device(), len(blocks)
    factor = coupled_arrays(elimination_of(pattern, fixed), guided, 1, worlds, device)
    columns = np.zeros((worlds, pattern.nnz, 3, 4), dtype=real_numpy)
    columns[..., :3] = np.swapaxes(blocks, 2, 3)
    column = wp.array(columns.reshape(-1, 4), dtype=NODE, device=device)
    active = wp.ones(worlds, dtype=int, device=device)
    factorise(factor, wp.array(mass.reshape(-1), dtype=real, device=device), real(h), column, active, device)
    return factor, active


def solved(factor, active, b):
    """Solutions, 7 where nothing is written."""
    x = wp.full(b.shape[0] * b.shape[1], NODE(real(7.0)), dtype=NODE, device=active.device)
    right = np.zeros((*b.shape[:2], 4), dtype=real_numpy)
    right[..., :3] = b
    solve(factor, active, wp.array(right.reshape(-1, 4), dtype=NODE, device=active.device), x, active.device)
    return x.numpy().reshape(*b.shape[:2], 4)[..., :3]


@pytest.mark.parametrize("lanes", [False, True])
def test_a_factor_solves_what_numpy_solves(lanes, monkeypatch, rng):
    """In two worlds, with masses, fixed nodes and nodes on lines and planes; a third is indefinite and left alone.

    By one thread for each world, and by 32.
    """
    monkeypatch.setattr(wp.config, "enable_cpu_blocks", lanes)
    n, h = 61, 0.1
    pattern, dense, blocks, fixed = matrix(n, 3, rng)
    node, axis = np.flatnonzero(~fixed)[7], np.linalg.qr(rng.normal(size=(3, 3)))[0]
    guides = {int(node): axis[:1], int(np.flatnonzero(~fixed)[20]): axis[1:]}
    blocks[2] *= -1.0
    mass = rng.uniform(0.5, 1.5, (3, n))
    factor, active = factored(pattern, blocks, fixed, guides, mass, h)
    assert factor.sound.numpy().tolist() == [1, 1, 0]
    b = rng.normal(size=(3, n + 5, 3))
    for i, normals in guides.items():
        b[:, i] -= b[:, i] @ normals.T @ normals
    x = solved(factor, active, b)
    assert (x[2] == 7.0).all()
    assert (x[:2, n:] == 7.0).all()
    assert (x[:2, :n][:, fixed] == 7.0).all()
    move = np.eye(3 * n).reshape(n, 3, 3 * n)
    for i, normals in guides.items():
        move[i] = (np.eye(3) - normals.T @ normals) @ move[i]
    basis = np.linalg.svd(move[~fixed].reshape(-1, 3 * n).T, full_matrices=False)
    basis = basis[0][:, basis[1] > 0.5]
    assert basis.shape[1] == 3 * (~fixed).sum() - 3
    for w in range(2):
        H = dense[w].reshape(3 * n, 3 * n) + np.diag(np.repeat(mass[w], 3) / h**2)
        expected = (basis @ np.linalg.solve(basis.T @ H @ basis, basis.T @ b[w, :n].reshape(-1))).reshape(n, 3)
        assert np.abs(x[w, :n][~fixed] - expected[~fixed]).max() < 50.0 * EPS * np.abs(expected).max()


@pytest.mark.verification
@pytest.mark.parametrize("how", HOW)
def test_worlds_are_solved_apart(how, rng):
    """A bar, a hundred times softer, and pressed to half its length, where its second derivative is indefinite."""
    solver = ProjectiveDynamics(0.04, tolerance=1e-12, collisions=False, linear_solver=how)
    model = solver.build(beam(youngs_modulus=1e6), 3)
    stiff = model.youngs_modulus.numpy() * np.array([[1.0], [0.01], [1.0]])
    model = dataclasses.replace(model, youngs_modulus=wp.array(stiff, dtype=real, device=model.device))
    shape = (3, model.topology.sizes.nodes, 3)
    u, g = 1e-4 * rng.normal(size=shape), rng.normal(size=shape)
    u[2, :, 0] -= 0.5 * model.matter.position[:, 0]
    a = adjoint_solution(model, solver, u, g)
    count, converged, found = iterations(model)
    assert converged.tolist() == found.tolist() == [1, 1, 1]
    patience = model.workspace.coupled.patience if how == "adaptive" else 0
    assert (count[:2] <= patience + 2).all()
    assert count[2] > patience + 10
    assert model.workspace.coupled.sound.numpy().tolist() == [1, 1, 0]
    free = ~model.topology.fixed
    for w in range(3):
        expected = spsolve(second_derivative(model, w), g[w, free].reshape(-1))
        assert np.abs(a[w, free].reshape(-1) - expected).max() < 1e-8 * np.abs(expected).max()


@pytest.mark.verification
def test_a_factor_is_made_where_iterations_are_not_enough(rng):
    """Of a bar and one a hundred times softer, in one batch, the second alone needs more than 25."""
    solver = ProjectiveDynamics(0.04, tolerance=1e-9, collisions=False, linear_solver="adaptive")
    model = solver.build(beam(), 2)
    stiff = model.youngs_modulus.numpy() * np.array([[1.0], [0.01]])
    model = dataclasses.replace(model, youngs_modulus=wp.array(stiff, dtype=real, device=model.device))
    shape = (2, model.topology.sizes.nodes, 3)
    u, g = 1e-4 * rng.normal(size=shape), rng.normal(size=shape)
    model.workspace.coupled.patience = 25
    a = adjoint_solution(model, solver, u, g)
    count, converged, found = iterations(model)
    assert converged.tolist() == found.tolist() == [1, 1]
    assert model.workspace.coupled.sound.numpy().tolist() == [0, 1]
    assert 5 < count[0] <= 25
    assert count[1] in (26, 27)
    free = ~model.topology.fixed
    for w in range(2):
        expected = spsolve(second_derivative(model, w), g[w, free].reshape(-1))
        assert np.abs(a[w, free].reshape(-1) - expected).max() < 1e-6 * np.abs(expected).max()


def optimised(how: str, decades: float, nu: float, worlds: int = 1, counts: tuple[int, ...] = COUNTS):
    """A cantilever of hexahedra with a modulus for each cell over decades [Pa], and these."""
    sim = bar("hexahedra", counts, nu=nu)
    solver = dataclasses.replace(sim.solver, linear_solver=how)
    sim = Simulation(sim.scene, solver, sim.dt, worlds=worlds)
    cell = (sim.model.matter.position[sim.model.matter.solids].mean(axis=1) / 0.04).astype(int)
    share = np.random.default_rng(0).uniform(size=(worlds, *counts))
    E = 1e5 * 10.0 ** (-decades * np.stack([s[tuple(cell.T)] for s in share]))
    return sim, torch.as_tensor(E.astype(real_numpy))


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("nu", [0.3, 0.49])
@pytest.mark.parametrize("how", HOW)
def test_moduli_over_decades_cost_no_iterations(how, nu):
    """At most twice those of uniform matter, in a step and its adjoint; the compliance is that of scikit-fem.

    As is its gradient: compliance is homogeneous of degree -1 in the moduli, so that E . dc/dE = -c.
    """
    taken = []
    for decades in (0.0, 3.0):
        sim, E = optimised(how, decades, nu)
        E.requires_grad_()
        load = sim.parameter("load")
        end = sim.step(sim.state(), torch.zeros(0), youngs_modulus=E)
        forward, whole = int(sim.model.workspace.krylov.arrays.iterations.numpy()[0]), int(sim.report().iterations[0])
        compliance = (load * (end.position - sim.state().position)).sum()
        compliance.backward()
        backward = int(sim.model.workspace.krylov.arrays.iterations.numpy()[0])
        taken.append((forward, whole, backward))
        K, _ = judged(sim, to_numpy(E)[0], nu)
        free, f = np.repeat(~sim.model.topology.fixed, 3), to_numpy(load)[0].reshape(-1)
        expected = f[free] @ spsolve(K[free][:, free].tocsc(), f[free])
        assert float(compliance.detach()) == pytest.approx(expected, rel=1e-6 if DOUBLE else 5e-3)
        assert float((E.detach() * E.grad).sum()) == pytest.approx(-expected, rel=1e-6 if DOUBLE else 2e-2)
    for uniform, spread in zip(*taken, strict=True):
        assert 0 < spread <= 2 * uniform


@pytest.mark.verification(float32=True)
def test_minimal_residuals_that_end_without_a_solution_bound_the_error():
    """Corrections of stiff cells are small: because of them a step passed for found at a tenth of its displacement.

    In single precision, where the first correction is rounding, it was found at none.
    """
    ends = []
    for how in ("iterative", "direct"):
        sim, E = optimised(how, 3.0, 0.49, counts=(16, 4, 4))
        with torch.no_grad():
            end = sim.step(sim.state(), torch.zeros(0), youngs_modulus=E)
        ends.append(to_numpy(end.position - sim.state().position))
        if DOUBLE:
            assert int(sim.model.workspace.krylov.arrays.iterations.numpy()[0]) == {"iterative": 500, "direct": 1}[how]
    assert np.abs(ends[0] - ends[1]).max() < (1e-3 if DOUBLE else 1e-2) * np.abs(ends[1]).max()


@pytest.mark.verification
def test_a_replayed_step_factors_when_it_has_to():
    """Uniform matter, for which the step is recorded, does not need a factor; the next design does."""
    ends = []
    for how in HOW:
        sim, E = optimised(how, 3.0, 0.3)
        sim.model.workspace.coupled.patience = 60
        sim.step(sim.state(), torch.zeros(0), youngs_modulus=torch.full_like(E, 1e5))
        assert sim.model.workspace.coupled.sound.numpy()[0] == (how == "direct")
        ends.append(sim.step(sim.state(), torch.zeros(0), youngs_modulus=E).position)
        assert sim.model.workspace.coupled.sound.numpy()[0] == 1
    assert torch.equal(*ends)


@pytest.mark.verification
def test_a_batch_of_designs_is_that_of_each_alone():
    """To the last bit, in steps and gradients: each world has a factor of its own."""
    sim, E = optimised("direct", 3.0, 0.3, worlds=3)
    load = sim.parameter("load")

    def run(sim: Simulation, E: torch.Tensor, load: torch.Tensor):
        E = E.clone().requires_grad_()
        end = sim.step(sim.state(), torch.zeros(0), youngs_modulus=E, load=load)
        return end.position.detach(), torch.autograd.grad((end.position * load).sum(), E)[0]

    both = run(sim, E, load)
    alone, _ = optimised("direct", 3.0, 0.3)
    for w in range(3):
        for all_of_them, one in zip(both, run(alone, E[w : w + 1], load[w : w + 1]), strict=True):
            assert torch.equal(all_of_them[w], one[0])


@pytest.mark.verification
@pytest.mark.parametrize(
    "scene",
    [
        beam,
        cloth,
        lambda: guided(beam(), HalfSpace((0.159, 0, 0.04), (-1, 0, 1))),
        lambda: sliding("linear", (floor(),)),
    ],
)
def test_motions_are_those_of_the_iterative_solver(scene):
    """A bar with a muscle and a chamber, cloth, nodes on lines and planes, and a cube in contact, to 1e-9."""
    ends = []
    for how in ("iterative", *HOW):
        solver = ProjectiveDynamics(0.04, tolerance=1e-12, collisions=False, linear_solver=how)
        sim = Simulation(scene(), solver, DT)
        ends.append(to_numpy(sim.rollout(torch.full((5, sim.channels), 0.5), 5).final.position))
    for end in ends[1:]:
        np.testing.assert_allclose(end, ends[0], rtol=0.0, atol=1e-9)


def test_newton_steps_begin_early_where_they_are_exact():
    """A bar of slenderness 8 in long steps, whose tip sinks by a quarter of its length, and ends at the same place.

    Under 0.3 N its first step is divided or not by rounding alone; under all of five loads nearby it is not divided.
    """
    body = SoftBody(
        "bar", Box((0, 0, 0), (0.32, 0.04, 0.04)), Material(1e5, 0.45, 1000.0, "neo_hookean"),
        {"root": HalfSpace((1e-6, 0, 0), (1, 0, 0)), "tip": HalfSpace((0.32 - 1e-6, 0, 0), (-1, 0, 0))},
    )  # fmt: skip
    scene = Scene((body,), gravity=(0, 0, 0), constraints=(Constraint("root"),), loads=(Load("tip", (0, 0, -0.301)),))
    ends = []
    for how in ("iterative", "direct"):
        sim = Simulation(scene, ProjectiveDynamics(0.02, collisions=False, linear_solver=how), 0.3)
        state, taken, solves = sim.state(), [], []
        with torch.no_grad():
            for _ in range(20):
                state = sim.step(state, torch.zeros(0))
                taken.append(int(sim.report().iterations[0]))
                solves.append(int(sim.model.workspace.krylov.arrays.iterations.numpy()[0]))
        ends.append(to_numpy(state.position)[0])
        assert (sum(taken[2:8]) > 120) == (how == "iterative")
        assert (sum(taken[2:8]) <= 60) == (how == "direct")
        assert (max(solves) <= 3) == (how == "direct")
    assert ends[1][-1, 2] < 0.04 - 0.08
    assert np.abs(ends[1] - ends[0]).max() < 1e-5


def test_what_is_not_symmetric_has_no_factor(monkeypatch):
    """Refused where a factor is demanded; the adaptive solver, which is the default, goes without with bones."""
    with pytest.raises(SceneError, match=r"the fluid makes.*linear_solver='direct'.*use linear_solver='adaptive'"):
        ProjectiveDynamics(0.04, linear_solver="direct").build(swimming(beam()))
    with pytest.raises(SceneError, match=r"the bones 'upper'.*linear_solver='direct'"):
        ProjectiveDynamics(0.02, linear_solver="direct").build(arm("revolute"))

    def chosen(scene: Scene, **options) -> str:
        return ProjectiveDynamics(0.02, **options).build(scene).matrices.linear_solver

    assert chosen(arm("revolute")) == chosen(beam(), splitting=True) == "iterative"
    assert chosen(beam()) == chosen(swimming(beam())) == ("iterative" if wp.get_device().is_cuda else "adaptive")
    monkeypatch.setattr(build, "_FACTORED_NODES", 1)
    assert chosen(beam()) == "iterative"
    monkeypatch.undo()
    monkeypatch.setattr(build, "_FACTORS", 1.0)
    assert chosen(beam()) == "iterative"


def test_a_solver_that_is_unknown_is_refused():
    with pytest.raises(ValueError, match="linear_solver must be one of 'iterative', 'direct', 'adaptive', got 'lu'"):
        ProjectiveDynamics(0.04, linear_solver="lu")


def test_factors_that_do_not_fit_are_refused(monkeypatch):
    """Too many numbers for the indices, or too many bytes."""
    solver = ProjectiveDynamics(0.04, linear_solver="direct")
    monkeypatch.setattr(build, "_NUMBERS", 1000)
    with pytest.raises(SceneError, match=r"linear_solver='direct' keeps \d+ vectors in each of 2 worlds"):
        solver.build(beam(), 2)
    monkeypatch.undo()
    needed = solver.build(beam()).topology.elimination.memory
    assert needed == 12 * np.dtype(real_numpy).itemsize * solver.build(beam()).topology.elimination.row.size
    monkeypatch.setattr(build, "refuse_copies", lambda solver, worlds, size: sizes.append(size))
    sizes: list[float] = []
    solver.build(beam())
    ProjectiveDynamics(0.04).build(beam())
    assert sizes[1:2] == [needed]
    assert len(sizes) == 3
    assert scene_support.refuse_copies is not build.refuse_copies
