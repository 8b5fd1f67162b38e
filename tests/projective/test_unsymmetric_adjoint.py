"""Adjoints in a fluid, whose systems are not symmetric: a factor of the symmetric part solves what A does not."""

import dataclasses

import numpy as np
import pytest
import torch
import warp as wp
from soft_bodies import CELL, DT, beam, driven, sliding, swimming
from test_adjoint_solve import adjoint_solution, second_derivative

from warpbots.scene import floor
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective import second_derivative as second_derivative_module

pytestmark = [
    pytest.mark.verification,
    pytest.mark.skipif(wp.get_device().is_cuda, reason="the second derivative is factored on a CPU alone"),
]


def pressed(solver, share):
    """The model of a beam in two worlds, points u and right-hand sides g; the first world is pressed by a share."""
    model = solver.build(swimming(beam(youngs_modulus=1e6)), 2)
    rng = np.random.default_rng(0)
    shape = (2, model.topology.sizes.nodes, 3)
    u, g = 1e-4 * rng.normal(size=shape), rng.normal(size=shape)
    u[0, :, 0] -= share * model.matter.position[:, 0]
    return model, u, g


def assert_solves(model, w, g, a):
    """Compare the solution a in a world with a dense one."""
    free = ~model.topology.fixed
    expected = np.linalg.solve(second_derivative(model, w).toarray(), g[w, free].reshape(-1))
    assert np.abs(a[w, free].reshape(-1) - expected).max() < 1e-8 * np.abs(expected).max()


def test_a_factor_solves_what_a_short_memory_does_not():
    """A world that is pressed to half its length, where ten eigenvalues of H are negative, and one at rest.

    With A alone the first world takes 729 iterations, with the factor 29.
    """
    for how in ("iterative", "adaptive"):
        solver = ProjectiveDynamics(0.04, 1e-12, 300, collisions=False, linear_solver=how)
        model, u, g = pressed(solver, 0.5)
        a = adjoint_solution(model, solver, u, g)
        progress = model.matrices.of(DT).iteration.progress
        assert progress.converged.numpy().tolist() == [how == "adaptive", 1]
    assert progress.iterations.numpy().max() < 60
    assert model.workspace.coupled.sound.numpy().tolist() == [1, 1]
    for w, negative in ((0, True), (1, False)):
        H = second_derivative(model, w).toarray()
        assert abs(H - H.T).max() > 1e-4 * abs(H).max()
        assert (np.linalg.eigvalsh(H + H.T) < 0.0).any() == negative
        assert_solves(model, w, g, a)


def test_what_a_factor_does_not_solve_soon_is_left_to_the_matrix_of_the_step(monkeypatch):
    """As where the skew part is large beside the symmetric one: two worlds, of which one needs no factor."""
    monkeypatch.setattr(second_derivative_module, "_MOST_WITH_FACTOR", 5)
    solver = ProjectiveDynamics(0.04, 1e-12, 1000, collisions=False)
    model, u, g = pressed(solver, 0.4)
    a = adjoint_solution(model, solver, u, g)
    progress = model.matrices.of(DT).iteration.progress
    assert progress.converged.numpy().tolist() == [1, 1]
    assert progress.iterations.numpy().max() > 60
    for w in range(2):
        assert_solves(model, w, g, a)


def test_the_gradient_of_fibres_that_push_agrees_with_differences():
    """Three steps in which fibres push so hard that matter is not stable under shear."""
    sim = Simulation(swimming(driven("neo_hookean")), ProjectiveDynamics(CELL, tolerance=1e-12, collisions=False), DT)
    assert sim.model.matrices.linear_solver == "adaptive"

    def end(control: torch.Tensor) -> torch.Tensor:
        return sim.rollout(control, 3).final.position[..., 2].sum()

    control = torch.tensor([[-1.0, 0.3]], dtype=torch.float64).repeat(3, 1).requires_grad_()
    end(control).backward()
    assert sim.model.workspace.coupled.factored.numpy()[0] == 1
    along = torch.tensor([[0.3, -0.2], [0.1, 0.4], [0.2, 0.1]], dtype=torch.float64)
    size = 1e-5
    with torch.no_grad():
        ends = [float(end((control + sign * size * along).clamp(-1.0, 1.0))) for sign in (0.0, 1.0)]
    slope = float((control.grad * along).sum())
    assert slope == pytest.approx((ends[1] - ends[0]) / size, rel=1e-4)


def test_a_world_in_contact_keeps_the_matrix_of_the_step():
    """A cube that slides over a floor under water, and one above it."""
    for height, contact in ((0.0, True), (-0.05, False)):
        scene = swimming(sliding("corotated", (floor(height, friction=0.3),)))
        sim = Simulation(scene, ProjectiveDynamics(CELL), DT)
        start = sim.state()
        start = dataclasses.replace(start, velocity=start.velocity.clone().requires_grad_())
        sim.rollout(None, 1, start).final.position.sum().backward()
        assert torch.isfinite(start.velocity.grad).all()
        assert sim.model.workspace.coupled.factored.numpy()[0] == (not contact)
