"""The threads of a world on a GPU, run on a CPU, against the one thread that a CPU has."""

import numpy as np
import pytest
import torch
import warp as wp
from mechanisms import random_tree
from test_articulated_gradients import Loss, scuffle

from warpbots.simulation import Simulation
from warpbots.solvers import Articulated
from warpbots.solvers.articulated.thread_team import WARP, lanes_of

SCENES = {
    "contact": lambda rng: (scuffle("box"), Articulated(), 0.004),
    "samples": lambda rng: (scuffle("mesh"), Articulated(), 0.004),
    "tree": lambda rng: (random_tree(rng, 12), Articulated("sdirk2"), 0.01),
}


@pytest.mark.parametrize("name", SCENES)
def test_threads_together_do_what_one_does(name, as_gpu):
    """States, readings, equations of motion and all gradients differ by rounding: factorisations add in another order.

    The scenes have balls, limits, motors of which two drive one joint, and a first step of two stages.
    """

    def run() -> dict[str, torch.Tensor]:
        scene, solver, dt = SCENES[name](np.random.default_rng(1))
        sim = Simulation(scene, solver, dt, worlds=2, device="cpu")
        loss = Loss(sim, np.random.default_rng(2), 3)
        final = loss.final(loss.inputs)
        leaf = final.q.clone().requires_grad_()
        state = sim.state(q=leaf, qd=final.qd)
        read, moves = sim.sense(state), sim.dynamics(state)
        felt = read.contact_force.sum() + read.center.square().sum() + moves.acceleration.sum()
        (pulled,) = torch.autograd.grad(felt, [leaf])
        found = (
            vars(final)
            | vars(read)
            | vars(moves)
            | {"pulled": pulled}
            | {f"d_{n}": g for n, g in loss.gradient().items()}
        )
        return {field: value.detach() for field, value in found.items()}

    alone = run()
    as_gpu()
    assert lanes_of(wp.get_device("cpu")) == WARP
    for field, value in run().items():
        scale = float(alone[field].abs().max()) if alone[field].numel() else 0.0
        assert (value - alone[field]).abs().max().item() <= 1e-11 * scale if scale else not value.any(), field


def test_a_world_that_fails_leaves_the_others_alone(as_gpu):
    """Balls that turn many times in a step have no solution near by: that world is not a number, the others are right."""

    def run() -> tuple[np.ndarray, np.ndarray]:
        solver = Articulated(max_iterations=12)
        model = solver.build(random_tree(np.random.default_rng(1), 6), worlds=3, device="cpu")
        before, after = solver.state(model), solver.state(model)
        velocity = np.random.default_rng(2).normal(size=before.qd.shape)
        before.qd.assign(velocity * np.array([[1.0], [1e4], [1.0]]))
        solver.step(model, before, wp.zeros((3, model.channels), dtype=wp.float64, device="cpu"), after, 0.01)
        return after.q.numpy(), model.workspace.report.found.numpy()

    alone, _ = run()
    as_gpu()
    assert lanes_of(wp.get_device("cpu")) == WARP
    position, found = run()
    assert found.tolist() == [1, 0, 1]
    assert np.isnan(position[1]).all()
    np.testing.assert_allclose(position[[0, 2]], alone[[0, 2]], rtol=0.0, atol=1e-12)
