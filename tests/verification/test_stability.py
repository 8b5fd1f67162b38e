"""The stability bound dt_crit = C dx / c_p, c_p = sqrt(M / rho), and sqrt(beta^2 + dt_crit^2) - beta with damping beta.

C comes from the exact linearisation about a lattice at rest, so that is what is tested: by plane waves through an
endless lattice, anywhere on the grid, and by matter that fills a box of slippery walls on grid nodes, by which it is
mirrored into an endless lattice, whose noise of 1e-9 m/s stays or explodes.

A free surface has nodes with little mass and is less stable: 0.7 to 0.9 of the bound, the less the higher nu. Half of
the bound, which `Simulation` warns above, is stable there too.
"""

import numpy as np
import pytest
import warp as wp

from warpbots.numerics import real
from warpbots.scene import Box, Material, Points, Scene, SoftBody, walls
from warpbots.solvers import MPM

pytestmark = pytest.mark.verification

NOISE = 1e-9


def growth(
    dim: int,
    nu: float,
    per_axis: int,
    fraction: float,
    confined: bool,
    incompressibility: int = 0,
    damping: float = 0.0,
) -> float:
    """Largest speed after 400 steps at a fraction of the bound, over the initial noise; inf if it got too fast."""
    cells = {2: 10, 3: 6}[dim]
    material = Material(1e5, nu, 1000.0, incompressibility=incompressibility, damping=damping)
    shift = 0.0 if confined else 0.3 / cells  # a free surface that cuts through the cells
    body = SoftBody("block", Box((shift,) * dim, (1.0 + shift,) * dim), material)
    obstacles = walls((0.0,) * dim, (1.0,) * dim, "slip") if confined else ()
    scene = Scene((body,), (), obstacles, gravity=(0.0,) * dim, domain=((-0.5,) * dim, (1.5,) * dim))
    solver = MPM(1.0 / cells, per_axis**dim)
    model = solver.build(scene)
    dt = fraction * solver.max_time_step(model)
    state, other = solver.state(model), solver.state(model)
    shape = (*state.velocity.shape, dim)
    state.velocity.assign(NOISE * np.random.default_rng(0).uniform(-1, 1, size=shape))
    control = wp.zeros((1, 0), dtype=real)
    for i in range(400):
        solver.step(model, state, control, other, dt)
        state, other = other, state
        if i % 50 == 49:
            fastest = np.abs(state.velocity.numpy()).max()
            if not fastest < 1e3 * NOISE:
                return np.inf
    return fastest / NOISE


def largest(courant: float, per_axis: int, offset: float, damping: float = 0.0) -> float:
    """Spectral radius of a step of MLS-MPM in 1D, in units of dx and c_p, over plane waves exp(i theta x / dx).

    Each particle has a velocity, its gradient c and a strain e; per_axis of them in a cell, the first `offset` of their
    spacing from a node. p_i = sum w (m (v + c d) - 4 dt V (e + beta c) d), m_i = sum w m; v' = sum w v_i,
    c' = 4 sum w d v_i, e' = e + dt c', with d = x_i - x.
    """
    x = (np.arange(per_axis) + offset) / per_axis
    nodes = np.arange(-2, 4)
    d = nodes[:, None] - x
    w = np.where(abs(d) < 0.5, 0.75 - d**2, np.where(abs(d) < 1.5, 0.5 * (1.5 - abs(d)) ** 2, 0.0))
    found = 0.0
    for theta in np.linspace(0.0, np.pi, 41)[1:]:
        phase = np.exp(1j * theta * nodes)
        near, far = phase.conj() @ w / per_axis, phase.conj() @ (w * d) / per_axis
        given = np.concatenate([near, (1.0 - 4.0 * courant * damping) * far, -4.0 * courant * far])
        v, c = np.outer(phase @ w, given), np.outer(4.0 * phase @ (w * d), given)
        e = courant * c + np.eye(per_axis, 3 * per_axis, 2 * per_axis)
        found = max(found, abs(np.linalg.eigvals(np.vstack([v, c, e]))).max())
    return found


@pytest.mark.parametrize(("per_axis", "constant"), [(1, 1.0), (2, 1.2747), (3, 1.2882), (4, 1.2902), (6, 1.2908)])
def test_constants_are_those_of_plane_waves(per_axis, constant):
    """Wherever the lattice is on the grid waves do not grow at C, and at one place they do just above it; the solver
    takes the smallest C of lattices as fine as this one.
    """
    places = np.linspace(0.0, 1.0, 8, endpoint=False)
    assert max(largest(0.9999 * constant, per_axis, o) for o in places) < 1.0 + 1e-9
    assert max(largest(1.0005 * constant, per_axis, o) for o in places) > 1.0 + 1e-5
    body = SoftBody("block", Box((0.0, 0.0), (1.0, 1.0)), Material(1e5, 0.0, 1000.0))
    solver = MPM(0.1, per_axis**2)
    bound = solver.max_time_step(solver.build(Scene((body,), gravity=(0.0, 0.0), domain=((-1, -1), (2, 2)))))
    assert bound == pytest.approx(min(constant, 1.2747) * 0.1 / np.sqrt(1e5 / 1000.0), rel=1e-4)


@pytest.mark.parametrize("damping", [0.05, 0.5, 5.0])
def test_damping_lowers_the_constant(damping):
    """To sqrt(beta^2 + C^2) - beta, in units of dx / c_p."""
    places = np.linspace(0.0, 1.0, 8, endpoint=False)
    constant = np.hypot(damping, 1.2747) - damping
    assert max(largest(0.9999 * constant, 2, o, damping) for o in places) < 1.0 + 1e-9
    assert max(largest(1.001 * constant, 2, o, damping) for o in places) > 1.0 + 1e-5
    beta = damping * 0.1 / np.sqrt(1e5 / 1000.0)
    body = SoftBody("block", Box((0.0, 0.0), (1.0, 1.0)), Material(1e5, 0.0, 1000.0, damping=beta))
    solver = MPM(0.1)
    bound = solver.max_time_step(solver.build(Scene((body,), gravity=(0.0, 0.0), domain=((-1, -1), (2, 2)))))
    assert bound == pytest.approx(constant * 0.1 / np.sqrt(1e5 / 1000.0), rel=1e-4)


def test_particles_that_are_on_no_lattice_have_the_bound_of_one_per_cell():
    """They may be as far apart as that: C = 1."""
    x = np.random.default_rng(0).uniform(size=(400, 2))
    body = SoftBody("cloud", Points(x, np.full(400, 1 / 400)), Material(1e5, 0.0, 1000.0))
    solver = MPM(0.1)
    bound = solver.max_time_step(solver.build(Scene((body,), gravity=(0.0, 0.0), domain=((-1, -1), (2, 2)))))
    assert bound == pytest.approx(0.1 / np.sqrt(1e5 / 1000.0), rel=1e-4)


@pytest.mark.parametrize(
    ("dim", "nu", "per_axis"), [(2, 0.0, 2), (2, 0.3, 2), (2, 0.45, 2), (2, 0.3, 1), (3, 0.3, 2), (3, 0.45, 1)]
)
def test_the_bound_is_sharp_inside_of_matter(dim, nu, per_axis):
    """Stable at 0.98 of the bound, unstable at 1.06 (a small box has not every wave, and not the fastest one)."""
    assert growth(dim, nu, per_axis, 0.98, confined=True) < 1.0
    assert growth(dim, nu, per_axis, 1.06, confined=True) == np.inf


def test_incompressibility_counts():
    """With exponent 2 matter at rest is stiffer by 2 K, and the bound knows."""
    assert growth(2, 0.3, 2, 0.98, confined=True, incompressibility=2) < 1.0
    assert growth(2, 0.3, 2, 1.06, confined=True, incompressibility=2) == np.inf


@pytest.mark.parametrize(("damping", "unstable"), [(1e-3, 1.06), (0.02, 1.13)])
def test_damping_counts(damping, unstable):
    """Where damping dominates the bound falls with the square of the fastest frequency, which a small box lacks."""
    assert growth(2, 0.3, 2, 0.98, confined=True, incompressibility=2, damping=damping) < 1.0
    assert growth(2, 0.3, 2, unstable, confined=True, incompressibility=2, damping=damping) == np.inf


@pytest.mark.parametrize(("dim", "nu"), [(2, 0.3), (2, 0.49), (3, 0.49)])
def test_half_of_the_bound_is_safe_at_free_surfaces(dim, nu):
    assert growth(dim, nu, 2, 0.5, confined=False) < 1.0
