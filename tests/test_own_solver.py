"""The example of a solver in the documentation: small, and a solver for all the rest of the package.

The general tests run with it, as with all other solvers: see `cases.SOLVERS`.
"""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from cases import OWN, SOLVERS, block, busy, least
from pxr import Usd, UsdGeom

import warpbots as wb
from warpbots.solvers import Solver

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "own_solver.py"


@pytest.fixture(scope="module")
def trajectory() -> wb.Trajectory:
    """A block with a muscle that falls."""
    sim = wb.Simulation(busy(3, solver="own"), OWN["own"](1 / 8), 5e-3, None)
    return sim.rollout(torch.full((8, sim.channels), 0.5), 8)


def test_the_example_is_short():
    assert len(EXAMPLE.read_text().splitlines()) <= 120


@pytest.mark.parametrize("other", [{"law": "linear"}, {"incompressibility": 2}, {"damping": 0.1}], ids=str)
def test_the_example_refuses_matter_that_it_does_not_know(other):
    scene = block(3)
    body = dataclasses.replace(scene.bodies[0], material=dataclasses.replace(scene.bodies[0].material, **other))
    with pytest.raises(wb.SceneError, match="ExplicitFEM simulates one neo-Hookean body"):
        OWN["own"](1 / 8).build(dataclasses.replace(scene, bodies=[body]))


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_models_and_states_are_as_the_protocols_say(name):
    """All attributes that generic code uses of a model and a state exist."""
    solver = SOLVERS[name](1 / 8)
    assert isinstance(solver, Solver)
    model = solver.build(block(least(name)), worlds=2, device="cpu")
    assert (model.worlds, model.channels, model.robot) == (2, 0, None)
    assert model.summary()
    assert all(model.parameter(n).shape[0] == 2 for n in model.parameters())
    heavy = model.with_parameters({n: model.parameter(n) for n in model.parameters()})
    assert type(heavy) is type(model)
    state = solver.state(model)
    assert state.position.shape == state.velocity.shape == (2, len(model.matter))
    np.testing.assert_allclose(state.position.numpy()[1], model.matter.position, atol=1e-7)


def test_pictures_are_drawn(trajectory):
    image = np.asarray(wb.view.film_strip(trajectory, 2))
    assert (image < 128).any()
    assert trajectory._repr_mimebundle_()["image/png"]


def test_usd_is_written_and_has_the_states(trajectory, tmp_path):
    wb.usd.write(tmp_path / "run.usda", trajectory, fps=1000.0)
    stage = Usd.Stage.Open(str(tmp_path / "run.usda"))
    (points,) = [UsdGeom.Points(p) for p in stage.Traverse() if p.IsA(UsdGeom.Points)]
    for time, position, _ in trajectory.frames():
        np.testing.assert_allclose(points.GetPointsAttr().Get(1000.0 * time), position, atol=1e-6)


def test_a_stiffness_is_found(trajectory):
    """The modulus is found from a motion."""
    sim, target = trajectory.simulation, trajectory.final.position.detach()
    control = trajectory.control.detach()
    factor = torch.nn.Parameter(torch.tensor(0.8))
    E = sim.parameter("youngs_modulus")

    def loss() -> torch.Tensor:
        return (sim.rollout(control, 8, youngs_modulus=factor * E).final.position - target).square().sum() * 1e6

    wb.fit([factor], loss, lambda p: torch.optim.Adam(p, lr=0.02), iterations=40, progress=False)
    assert factor.item() == pytest.approx(1.0, abs=0.05)
