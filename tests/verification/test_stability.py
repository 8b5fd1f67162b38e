"""The stability bound dt_crit = 1.3056 dx / c_p (1.0028 with one particle per cell and axis), c_p = sqrt(M / rho).

It comes from the exact linearisation about a lattice at rest, so that is what is tested: matter that fills a box of
slippery walls on grid nodes, by which it is mirrored into an endless lattice. Noise of 1e-9 m/s stays or explodes.

A free surface has nodes with little mass and is less stable: 0.7 to 0.9 of the bound, the less the higher nu. Half of
the bound, which `Simulation` warns above, is stable there too.
"""

import numpy as np
import pytest
import warp as wp

from warpbots.math import real
from warpbots.scene import Box, Material, Scene, SoftBody, walls
from warpbots.solvers import MPM

pytestmark = pytest.mark.verification

NOISE = 1e-9


def growth(dim: int, nu: float, per_axis: int, fraction: float, confined: bool, incompressibility: int = 0) -> float:
    """Largest speed after 400 steps at a fraction of the bound, over the initial noise; inf if it got too fast."""
    cells = {2: 10, 3: 6}[dim]
    material = Material(1e5, nu, 1000.0, incompressibility=incompressibility)
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


@pytest.mark.parametrize(("dim", "nu"), [(2, 0.3), (2, 0.49), (3, 0.49)])
def test_half_of_the_bound_is_safe_at_free_surfaces(dim, nu):
    assert growth(dim, nu, 2, 0.5, confined=False) < 1.0
