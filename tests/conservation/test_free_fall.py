"""What falls freely does so exactly: symplectic Euler has a closed form, and nothing deforms.

A step rounds to eps of the largest speed, so n steps are off by at most n eps |v|: 5e-5 in float32, 1e-13 in float64
for the 200 steps here. A deformation gradient gains dt C, and C holds that rounding over a quarter of a cell.
"""

import numpy as np
import pytest
import torch
from cases import LATTICES, OWN, SOLVERS, SPACES, block, least, to_numpy

from warpbots.numerics import precision
from warpbots.simulation import Simulation

EPS = np.finfo(precision).eps
DT = 2.0**-10  # exact in either precision
DX = 1 / 16


def ringing(solver: str, sim: Simulation) -> float:
    """Speed with which springs and elements ring because positions, up to 2 m, are rounded, w = 2 / dt_max [m/s]."""
    return 10.0 * EPS * 2.0 * 2.0 / sim.max_time_step if solver in LATTICES | OWN else 0.0


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize(("solver", "dim"), SPACES)
def test_free_fall(solver, dim):
    """v_n = v_0 + n dt g,  x_n = x_0 + n dt v_0 + (n (n - 1)/2 + n s) dt^2 g,  F_n = I.

    With s = 1 for symplectic and implicit Euler and 1/2 for schemes of order 2 and more.
    """
    v_0, g, n = np.array([1.0, 0.5, 2.0])[-dim:], np.array([0.75, -1.5, -9.81])[-dim:], 200
    sim = Simulation(block(dim, gravity=tuple(g), velocity=tuple(v_0)), SOLVERS[solver](DX), DT, substeps=1)
    start = sim.state()
    end = sim.rollout(None, n, start).final
    tolerance = n * EPS * np.linalg.norm(v_0) + ringing(solver, sim)
    s = sum(sim.solver.scheme.p) if solver in LATTICES else 1.0
    position = to_numpy(start.position) + n * DT * v_0 + (n * (n - 1) / 2 + n * s) * DT**2 * g
    velocity = np.broadcast_to(v_0 + n * DT * g, position.shape)
    rounded = EPS / DT if solver.startswith("projective") else 0.0  # of positions up to 2 m, which Newton steps follow
    np.testing.assert_allclose(to_numpy(end.velocity), velocity, rtol=0, atol=tolerance + rounded)
    np.testing.assert_allclose(to_numpy(end.position), position, rtol=0, atol=tolerance)
    if hasattr(end, "deformation"):
        unstrained = np.broadcast_to(np.eye(dim), end.deformation.shape)
        np.testing.assert_allclose(to_numpy(end.deformation), unstrained, rtol=0, atol=tolerance * DT * 4 / DX)


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_world_falls_with_its_own_gravity(solver):
    """v_n = n dt g_w."""
    dim, n = least(solver), 20
    g = torch.tensor([[0.0, 0.0, -1.0], [0.0, 0.5, 2.0], [0.0, 0.0, 0.0]])[:, 3 - dim :]
    sim = Simulation(block(dim), SOLVERS[solver](DX), DT, substeps=2, worlds=3)
    velocity = sim.rollout(None, n, gravity=g).final.velocity
    expected = np.broadcast_to(n * DT * g[:, None].numpy(), velocity.shape)
    np.testing.assert_allclose(to_numpy(velocity), expected, rtol=0, atol=2 * n * EPS + ringing(solver, sim))
