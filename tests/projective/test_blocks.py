"""Solves by blocks of a dissection and sums by many threads: what a GPU does instead of what one thread does."""

import numpy as np
import pytest
import torch
import warp as wp
from scipy.sparse import block_diag, csc_matrix, diags
from scipy.sparse.linalg import spsolve
from soft_bodies import beam, cloth, mixed, sliding, truss

from warpbots.numerics import NODE, launch_lanes, real, real_numpy
from warpbots.scene import floor
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective import contact_workspace, workspace
from warpbots.solvers.projective.components import Components
from warpbots.solvers.projective.islands import islands_of
from warpbots.solvers.projective.iterate import anderson_arrays, nested_dissection, sparse_cholesky
from warpbots.solvers.projective.iterate.anderson import accelerate, begin
from warpbots.solvers.projective.iterate.anderson_arrays import iteration
from warpbots.solvers.projective.iterate.block_cholesky import down_kernel, up_kernel
from warpbots.solvers.projective.iterate.error_estimate import criterion
from warpbots.solvers.projective.iterate.krylov_arrays import krylov
from warpbots.solvers.projective.iterate.minres import product_kernel
from warpbots.solvers.projective.iterate.nested_dissection import blocks_of
from warpbots.solvers.projective.iterate.sparse_cholesky import factorise, solve

EPS = float(np.finfo(real_numpy).eps)
CHOOSE = (sparse_cholesky, anderson_arrays, contact_workspace, workspace)


@pytest.fixture
def many_threads(monkeypatch):
    """Work as a GPU has it, on whatever device there is, with levels of blocks for meshes of any size."""
    for module in CHOOSE:
        monkeypatch.setattr(module, "parallel", lambda device: True)
    monkeypatch.setattr(nested_dissection, "_LAUNCH", 1000)


def grid(*sides: int) -> tuple[csc_matrix, np.ndarray]:
    """Springs along the edges of a lattice, and a mass at each node: 0.1, so that it is not far from singular."""
    position = np.stack(np.meshgrid(*(np.arange(s) for s in sides), indexing="ij"), -1).reshape(-1, len(sides))
    distance = np.abs(position[:, None] - position).sum(-1)
    edges = (distance == 1).astype(float)
    place = np.pad(position, ((0, 0), (0, 3 - len(sides)))).astype(float)
    return csc_matrix(diags(edges.sum(1) + 0.1) - edges), place


def apart(*parts: tuple[csc_matrix, np.ndarray], by: float = 0.0) -> tuple[csc_matrix, np.ndarray]:
    """Bodies that share no node, in one place or so far apart along x."""
    places = [x + (i * by, 0.0, 0.0) for i, (_, x) in enumerate(parts)]
    return csc_matrix(block_diag([A for A, _ in parts])), np.concatenate(places)


def bunch(n: int) -> tuple[csc_matrix, np.ndarray]:
    """Nodes of which each is tied to all others, as waypoints of a cable are, at one place."""
    return csc_matrix(np.eye(n) * (n + 0.1) - 1.0), np.zeros((n, 3))


SYSTEMS = {
    "one element": lambda: bunch(4),
    "a line": lambda: grid(300),
    "a sheet": lambda: grid(17, 19),
    "a solid": lambda: grid(8, 9, 10),
    "bodies, one of a single node": lambda: apart(grid(9, 9, 9), grid(1), grid(200)),
    "bodies side by side": lambda: apart(*[grid(7, 7, 7)] * 4, by=50.0),
    "a cable": lambda: apart(bunch(150), grid(6, 6, 6)),
}


def made(system: str, rng: np.random.Generator) -> tuple:
    """A matrix, which nodes are free, places, its factor for two worlds, scales and right-hand sides."""
    A, position = SYSTEMS[system]()
    n = len(position)
    whole = system in ("one element", "bodies side by side")  # the second with a cut that is empty
    free = np.ones(n, dtype=bool) if whole else rng.random(n) < 0.95
    device = wp.get_device()
    made = factorise(A, free, position, 2, device)
    b = np.zeros((2, n + 5, 4), dtype=real_numpy)  # contacts come after the nodes
    b[..., :3] = rng.normal(size=(2, n + 5, 3))
    arrays = wp.array([1.0, 2.5], dtype=real, device=device), wp.array(b.reshape(-1, 4), dtype=NODE, device=device)
    return A, free, made, *arrays, b


def solved(made: sparse_cholesky.Factor, scaling: wp.array, active: list[int], b: wp.array) -> np.ndarray:
    x = wp.full(b.size, NODE(real(7.0)), dtype=NODE, device=b.device)
    solve(made, scaling, wp.array(active, dtype=int, device=b.device), b, x, b.device)
    return x.numpy().reshape(2, -1, 4)


@pytest.mark.parametrize("launch", [1000, 1_000_000])
@pytest.mark.parametrize("system", SYSTEMS)
def test_blocks_solve_what_scipy_solves(system, launch, many_threads, monkeypatch, rng):
    """Three right-hand sides in two worlds; nothing is written at nodes that are not free, nor after them.

    Where launches cost much, all that is left is a product with the inverse.
    """
    monkeypatch.setattr(nested_dissection, "_LAUNCH", launch)
    A, free, made_, scaling, b, values = made(system, rng)
    x = solved(made_, scaling, [1, 1], b)
    n = len(free)
    assert (len(made_.blocks.levels) == 2) == (n < (1000 if launch > 1000 else 64))
    assert (x[:, n:] == 7.0).all()
    assert (x[:, :n][:, ~free] == 7.0).all()
    for w, scale in enumerate((1.0, 2.5)):
        expected = spsolve(A[free][:, free], values[w, :n][free][:, :3].astype(float)) / scale
        error = np.abs(x[w, :n][free][:, :3] - expected).max()
        assert error < 50.0 * EPS * np.abs(expected).max()


def test_worlds_that_are_done_are_left_alone(many_threads, rng):
    """Bitwise, and the other one has what it has alone."""
    *_, made_, scaling, b, _ = made("a solid", rng)
    both, one = solved(made_, scaling, [1, 1], b), solved(made_, scaling, [0, 1], b)
    assert (one[0] == 7.0).all()
    assert np.array_equal(one[1], both[1])


def test_a_diagonal_has_no_blocks(many_threads):
    """Global steps that are split are divisions."""
    A = csc_matrix(np.diag([1.0, 2.0, 3.0]))
    assert factorise(A, np.ones(3, dtype=bool), np.zeros((3, 3)), 1, wp.get_device()).blocks is None


def test_rows_of_a_level_do_not_wait_for_each_other(many_threads, rng):
    """One launch for each row of a level, last row first, writes the same bits as one for all."""
    *_, made_, scaling, b, _ = made("a solid", rng)
    expected = solved(made_, scaling, [1, 1], b)
    blocks, active = made_.blocks, wp.ones(2, dtype=int, device=b.device)
    x = wp.full(b.size, NODE(real(7.0)), dtype=NODE, device=b.device)
    blocks.reduced.zero_()
    spans = [range(*ends) for ends in zip(blocks.levels[:-1], blocks.levels[1:], strict=True)]
    assert len(spans) > 1
    for row in (row for span in spans[1:] for row in reversed(span)):
        launch_lanes(down_kernel, (2, 1), 64, [blocks.arrays, row, active, b], [blocks.reduced], b.device)
    for row in (row for span in reversed(spans) for row in rng.permutation(span)):
        inputs = [blocks.arrays, int(row), scaling, active, b, blocks.reduced]
        launch_lanes(up_kernel, (2, 1), 64, inputs, [x], b.device)
    assert np.array_equal(x.numpy().reshape(2, -1, 4), expected)


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_a_cut_parts_shares_no_element(system):
    """Every node is in one block, and a block touches its own, those below it and those beyond it alone."""
    A, position = SYSTEMS[system]()
    A = A.tocsr()
    seen = []

    def look(block) -> np.ndarray:
        parts = [look(below) for below in block.below]
        inside = np.concatenate([block.nodes, *parts])
        assert set(A[inside].indices) <= set(inside) | set(block.beyond)
        assert not set(inside) & set(block.beyond)
        seen.extend(block.nodes)
        return inside

    look(blocks_of(A, position, 1))
    assert sorted(seen) == [*range(len(position))]


def test_what_is_not_positive_definite_is_refused(many_threads):
    A = csc_matrix(np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(ValueError, match="not positive definite"):
        factorise(A, np.ones(2, dtype=bool), np.zeros((2, 3)), 1, wp.get_device())


SCENES = {
    "beam": beam, "cloth": cloth, "truss": truss, "mixed": mixed,
    "sliding": lambda: sliding("corotated", (floor(0.0, friction=0.3),)),
}  # fmt: skip


@pytest.mark.verification
@pytest.mark.parametrize("scene", SCENES)
def test_a_step_and_its_gradient_are_those_of_one_thread(scene, monkeypatch):
    """The same end and gradient to rounding in each of two worlds, for as many iterations.

    One more or fewer is allowed: a residual that ends next to the tolerance falls on either side of it by the order
    in which a processor adds.
    """

    def run() -> tuple:
        sim = Simulation(SCENES[scene](), ProjectiveDynamics(0.04, tolerance=1e-11), 5e-3, worlds=2)
        load, density = sim.parameter("load"), sim.parameter("density")
        load[1, :, 0] += 0.01
        density[1] *= 1.5  # the matrix is scaled
        load.requires_grad_()
        given, control = {"load": load, "density": density}, torch.zeros(sim.channels)
        end = sim.step(sim.step(sim.state(), control, **given), control, **given)
        return sim.report().iterations, end.position.detach(), torch.autograd.grad(end.position.square().sum(), load)[0]

    expected = run()
    for module in CHOOSE:
        monkeypatch.setattr(module, "parallel", lambda device: True)
    found = run()
    assert np.abs(found[0].astype(int) - expected[0]).max() <= 1
    torch.testing.assert_close(found[1], expected[1], rtol=0.0, atol=1e-11)
    torch.testing.assert_close(found[2], expected[2], rtol=0.0, atol=1e-8 * expected[2].abs().max().item())


def fixed_point(count: int, device: wp.Device) -> np.ndarray:
    """Where three accelerated steps towards a point lead, of which a share of every entry is left by each.

    Besides the norm of the last correction by the root of the number of entries, and its largest entry.
    """
    rng = np.random.default_rng(1)
    share, target = rng.uniform(0.2, 0.9, (count, 1)), rng.normal(size=(count, 4))
    target[:, 3] = 0.0
    it = iteration(
        1, 3, np.ones(count), np.ones(count), islands_of(Components.one(count), np.zeros(0), 0, 1, device), device
    )
    begin(it, wp.ones(1, dtype=int, device=device))
    for _ in range(3):
        it.history.f.assign(((target - it.history.z.numpy()) * share).astype(real_numpy))
        accelerate(it, criterion(0.0, 10))
    norm, size = it.progress.norm.numpy() / np.sqrt(count), it.progress.size.numpy()
    return np.concatenate([it.history.z.numpy().reshape(-1), norm, size])


def test_sums_of_many_threads_are_those_of_one(many_threads, monkeypatch):
    """5,000 entries in several parts, for the acceleration and for products."""
    device, n = wp.get_device(), 5000
    a, b = (wp.array(np.random.default_rng(s).normal(size=(n, 4)), dtype=NODE, device=device) for s in (1, 2))
    expected = np.einsum("ij,ij", *(array.numpy()[:, :3].astype(float) for array in (a, b)))
    arrays = krylov(1, 1, n, n, device)
    assert arrays.chunks > 1
    arrays.arrays.active.fill_(1)
    islands = islands_of(Components.one(n), np.zeros(0), 0, 1, device)
    launch_lanes(product_kernel, (1, arrays.chunks), 256, [n, islands, a, b], [arrays.arrays], device)
    assert arrays.arrays.sum.numpy().sum() == pytest.approx(expected, rel=1e2 * EPS)
    many = fixed_point(n, device)
    monkeypatch.setattr(anderson_arrays, "parallel", lambda device: False)
    np.testing.assert_allclose(many, fixed_point(n, device), rtol=0.0, atol=1e3 * EPS)


def test_lanes_share_a_row(many_threads, monkeypatch, rng):
    """64 threads for a row and 256 for a sum, which Warp's CPU runs in turn, give what one gives, to rounding."""
    *_, made_, scaling, b, _ = made("a sheet", rng)
    x, z = solved(made_, scaling, [1, 1], b), fixed_point(5000, b.device)
    monkeypatch.setattr(wp.config, "enable_cpu_blocks", True)
    shared = solved(made_, scaling, [1, 1], b)
    assert not np.array_equal(shared, x)
    np.testing.assert_allclose(shared, x, rtol=0.0, atol=50.0 * EPS * np.abs(x[x != 7.0]).max())
    np.testing.assert_allclose(fixed_point(5000, b.device), z, rtol=0.0, atol=1e3 * EPS)
