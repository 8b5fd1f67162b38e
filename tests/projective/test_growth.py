"""Actuators that change lengths at rest."""

import numpy as np
import pytest
import torch
from soft_bodies import forces_at, rolled, simulation, stirred

from warpbots.scene import Box, Constraint, Expansion, HalfSpace, Material, Scene, SoftBody
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

LAWS = ("corotated", "neo_hookean", "st_venant_kirchhoff", "hencky")
EVERYWHERE = HalfSpace((1.0, 0.0, 0.0), (1.0, 0.0, 0.0))
ENDS = {"left": HalfSpace((1e-6, 0, 0), (1, 0, 0)), "right": HalfSpace((0.16 - 1e-6, 0, 0), (-1, 0, 0))}


def block(law: str, actuators: tuple, held: tuple = ()) -> Scene:
    """A block without gravity."""
    regions = {"all": EVERYWHERE, **ENDS}
    body = SoftBody("block", Box((0, 0, 0), (0.16, 0.08, 0.08)), Material(1e5, 0.3, 1000.0, law), regions=regions)
    return Scene((body,), actuators, gravity=(0, 0, 0), constraints=tuple(Constraint(name, name=name) for name in held))


def settled(scene: Scene, control: list[float], dt: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Nodes at rest, and where they come to rest under a control signal."""
    sim = Simulation(scene, ProjectiveDynamics(0.04, collisions=False), dt, substeps=1)
    final = sim.rollout(torch.tensor([control] * 30), 30).final
    return sim.model.matter.position, final.position[0].double().numpy()


@pytest.mark.parametrize("law", LAWS)
def test_a_free_block_takes_its_new_lengths_without_stress(law):
    """Expansions in all directions and in one multiply lengths by 1 + u e, each on its own."""
    actuators = (Expansion("all", "all", 0.2), Expansion("along", "all", 0.3, (1.0, 0.0, 0.0)))
    X, x = settled(block(law, actuators), [0.5, -0.5])
    grown = (X - X.mean(axis=0)) * [1.0 + 0.1 - 0.15, 1.1, 1.1]
    np.testing.assert_allclose(x - x.mean(axis=0), grown, atol=2e-6)


def test_a_bar_that_grows_between_walls_bulges():
    """Held ends, no lateral hold: from the side a strain e gives the lateral strain nu e at the middle, for small e."""
    X, x = settled(block("corotated", (Expansion("along", "all", 0.02, (1.0, 0.0, 0.0)),), ("left", "right")), [1.0])
    middle = np.abs(X[:, 0] - 0.08) < 1e-6
    wide = np.ptp(x[middle, 1]) / 0.08 - 1.0
    assert 0.8 * 0.3 * 0.02 < wide < 1.3 * 0.3 * 0.02
    np.testing.assert_allclose(x[middle, 0], 0.08, atol=2e-6)


@pytest.mark.verification
@pytest.mark.parametrize("law", LAWS)
def test_matter_that_has_grown_is_as_stiff_as_before(law, rng):
    """All lengths are 1.1 times as large, areas 1.21 times: so are forces at the same deformation."""
    sim = simulation(block(law, (Expansion("all", "all", 0.2),)))
    X = sim.model.matter.position
    x = X @ (np.eye(3) + 0.1 * rng.normal(size=(3, 3))) + 1e-3 * rng.normal(size=X.shape)
    before = forces_at(sim, x)
    np.testing.assert_allclose(forces_at(sim, 1.1 * x, 0.5), 1.21 * before, atol=1e-9 * np.abs(before).max())


@pytest.mark.verification
def test_gradients_of_growth_are_those_of_differences(rng):
    """By control, stiffness and shape at rest; relative 1e-6."""
    actuators = (Expansion("all", "all", 0.2), Expansion("along", "all", 0.3, (1.0, 0.2, 0.0)))
    sim = simulation(block("neo_hookean", actuators, ("left",)))
    inputs = stirred(sim, rng, 3)
    weight = torch.as_tensor(rng.normal(size=sim.state().position.shape))

    def loss(values: dict) -> torch.Tensor:
        return (weight * rolled(sim, values).position).sum()

    leaves = {n: v.clone().requires_grad_() for n, v in inputs.items()}
    loss(leaves).backward()
    for name in ("control", "youngs_modulus", "poissons_ratio", "rest_position", "density", "velocity"):
        direction = torch.as_tensor(rng.normal(size=inputs[name].shape))
        scale, slopes = float(inputs[name].abs().mean()), []
        for step in (1e-3, 1e-4):
            with torch.no_grad():
                there, back, far, far_back = (
                    float(loss(inputs | {name: inputs[name] + s * step * scale * direction}))
                    for s in (1.0, -1.0, 2.0, -2.0)
                )
            slopes.append((8.0 * (there - back) - (far - far_back)) / (12.0 * step * scale))
        slope = float((leaves[name].grad * direction).sum())
        assert min(abs(slope - s) for s in slopes) <= 1e-6 * abs(slope), (name, slope, slopes)
