"""Masses that are held, on lines and in planes: order of accuracy and gradients."""

import numpy as np
import pytest
import torch
from cases import assert_gradients, to_numpy
from scipy.integrate import solve_ivp

from warpbots.scene import Box, Constraint, Expansion, Material, Scene, SoftBody, floor
from warpbots.simulation import Simulation
from warpbots.solvers import MassSpring

ORDER = {"euler": 1, "verlet": 2, "rk4": 4}


def railway(dim: int = 3, **parts) -> Scene:
    """A bar of four cells along x: its ends fixed and in a plane, its middle on a line."""
    far = (1.0,) * (dim - 1)
    near = tuple(-v for v in far)
    regions = {n: Box((x - 1e-6, *near), (x + 1e-6, *far)) for n, x in (("root", 0.0), ("rail", 0.2), ("sheet", 0.4))}
    regions["bulk"] = Box((0.2, *near), (0.4, *far))
    body = SoftBody("bar", Box((0.0,) * dim, (0.4, *(0.1,) * (dim - 1))), Material(1e4, 0.25, 1000.0), regions)
    constraints = [
        Constraint("root", name="root"),
        Constraint("rail", "line", (1.0, 0.5, 0.3)[:dim], name="rail"),
        Constraint("sheet", "plane", (0.2, 1.0, 0.4)[:dim], name="sheet"),
    ]
    return Scene([body], constraints=constraints, **{"gravity": (0.0,) * dim} | parts)


def projections(sim: Simulation) -> np.ndarray:
    """What each mass of `railway` may do, as a matrix, shape (n, dim, dim)."""
    made, dim = sim.model.lattice, sim.scene.dim
    n, m = (np.array(c.direction) for c in sim.scene.constraints[1:])
    P = np.tile(np.eye(dim), (len(made), 1, 1))
    P[made.regions["root"]] = 0.0
    P[made.regions["rail"]] = np.outer(n, n)
    P[made.regions["sheet"]] = np.eye(dim) - np.outer(m, m)
    return P


@pytest.mark.verification
@pytest.mark.parametrize("integrator", ORDER)
def test_order_of_accuracy(integrator, rng):
    """1, 2 and 4 against DOP853 with forces and velocities restricted by matrices."""
    time, error = 0.2, []
    for steps in (100, 200, 400):
        sim = Simulation(railway(gravity=(1.0, 2.0, -3.0)), MassSpring(0.1, integrator=integrator), time / steps)
        made, P = sim.model.lattice, projections(sim)
        velocity = np.einsum("nij,nj->ni", P, np.random.default_rng(0).normal(size=made.position.shape))
        (i, j), shape = made.ends.T, made.position.shape

        def rate(t, y, made=made, i=i, j=j, P=P, shape=shape):
            x, v = y.reshape(2, *shape)
            d = x[j] - x[i]
            length = np.linalg.norm(d, axis=1)
            f = (made.stiffness * (1.0 - made.rest_length / length))[:, None] * d
            a = np.tile([1.0, 2.0, -3.0], (len(x), 1)) * made.mass[:, None]
            np.add.at(a, i, f)
            np.add.at(a, j, -f)
            return np.stack([v, np.einsum("nij,nj->ni", P, a / made.mass[:, None])]).ravel()

        y = np.stack([made.position, velocity]).ravel()
        exact = solve_ivp(rate, (0.0, time), y, "DOP853", rtol=1e-12, atol=1e-13).y[:, -1].reshape(2, *shape)[0]
        end = sim.rollout(None, steps, sim.state(velocity=torch.as_tensor(velocity))).final
        error.append(np.abs(to_numpy(end.position)[0] - exact).max())
    order = np.log2(np.array(error[:-1]) / error[1:])
    print(integrator, error, order)
    assert order == pytest.approx(ORDER[integrator], abs=0.15)


@pytest.mark.parametrize("integrator", ORDER)
def test_nothing_leaves_its_rail(integrator):
    """Whatever pushes, contact included: the way of every mass is one that its constraint allows, to the last digits."""
    solver = MassSpring(0.1, integrator=integrator)
    sim = Simulation(railway(gravity=(3.0, 1.0, -9.81), obstacles=[floor(height=0.001)]), solver, 1e-3)
    velocity = torch.as_tensor(np.random.default_rng(0).normal(size=sim.model.lattice.position.shape))
    end = sim.rollout(None, 100, sim.state(velocity=velocity)).final
    P = projections(sim)
    for way in (to_numpy(end.position)[0] - sim.model.lattice.position, to_numpy(end.velocity)[0]):
        assert np.abs(way).max() > 0.01
        np.testing.assert_allclose(way, np.einsum("nij,nj->ni", P, way), atol=2e-6)


@pytest.mark.verification
@pytest.mark.parametrize("integrator", ["euler", "rk4"])
@pytest.mark.parametrize("dim", [2, 3])
def test_gradients(integrator, dim, rng):
    """To everything, with contact: differences in float64 to 1e-6."""
    parts = {"obstacles": [floor(height=0.01, dim=dim, friction=0.1)], "actuators": [Expansion("a", "bulk", 0.1)]}
    scene = railway(dim, gravity=(3.0, 1.0, -9.81)[-dim:], **parts)
    sim = Simulation(scene, MassSpring(0.05, integrator=integrator), 4e-3, substeps=2, worlds=2)
    assert_gradients(sim, rng)
