"""Long steps in which a body slides around another one: the straight path to their end passes through it."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from warpbots.numerics import precision
from warpbots.scene import Box, HalfSpace, Material, Obstacle, Scene, SoftBody
from warpbots.simulation import Simulation, SimulationError
from warpbots.solvers import ProjectiveDynamics

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from degenerate_contacts import piercings, scene

H = 0.1
PAST = (
    [[-58.7, -45.0, -71.7], [29.6, -105.1, -91.9], [32.8, -58.1, -128.9], [47.0, -22.6, -82.7], [43.9, -69.7, -45.6]],
    [[67, -530, -824], [123, -435, -1579], [-138, -232, -1431], [46, -421, -1294], [307, -627, -1441]],
)
"""A spike beside a spike that is held, past which it turns: nodes [mm] and their velocities [mm/s]."""
SLIDING = (
    [
        [-46.87, -3.73, -16.1],
        [19.24, -16.28, 68.9],
        [54.8, -12.81, 20.67],
        [43.8, 46.07, 16.83],
        [8.21, 42.62, 65.0],
    ],
    [
        [-468.7, -37.3, -169.2],
        [392.9, 52.3, -358.3],
        [150.1, 89.5, -780.5],
        [42.5, 79.1, -769.7],
        [285.2, 42.1, -345.9],
    ],
)
"""A spike that turns and slides on a ridge that is held."""
OVER_AN_EDGE = (
    [[-8.6, 5.4, 0.0], [46.8, -73.4, 50.0], [79.2, -58.5, 1.8], [95.4, -7.3, 28.5], [63.0, -22.2, 76.8]],
    [[-63, 42, 0], [516, -299, -696], [165, -110, -1005], [372, -224, -838], [725, -413, -527]],
)
"""A spike that tips over the edge of an obstacle, with its tip on the top."""


def simulation(described: Scene, **options) -> Simulation:
    return Simulation(described, ProjectiveDynamics(0.05, **options), H)


def begun(sim: Simulation, moving: tuple, offset: float = 0.0):
    """State in which the five nodes of the upper body move as given, with an offset [m]."""
    state = sim.state()
    fields = {name: getattr(state, name).clone() for name in ("position", "velocity")}
    for name, values in zip(fields, moving, strict=True):
        fields[name][0, :5] = 1e-3 * torch.tensor(values, dtype=fields[name].dtype)
    fields["position"][0, :5, 0] += offset
    return sim.state(**{name: values.numpy() for name, values in fields.items()})


@pytest.mark.parametrize("offset", [-2e-5, 0.0, 2e-5])
def test_a_body_passes_around_another_one_in_one_step(offset):
    """At the end nothing is in contact, so the step is the step of bodies that never collide."""
    described = scene("spike on spike", "fixed")
    ends = []
    for collisions in (True, False):
        sim = simulation(described, collisions=collisions)
        end = sim.step(begun(sim, PAST, offset), torch.zeros(0))
        assert end.shorter_steps[0] == 0
        ends.append(end.position[0].double().cpu().numpy())
    assert np.abs(ends[0] - ends[1]).max() < 2e-6


@pytest.mark.parametrize("offset", [-2e-5, 0.0, 2e-5])
def test_a_body_passes_an_edge_of_an_obstacle_in_one_step(offset):
    """Its nodes stop before they enter the obstacle; at the end nothing is in contact, as without the obstacle."""
    described = scene("spike on cubes", "obstacle")
    ends = []
    for obstacles in (described.obstacles, ()):
        sim = simulation(dataclasses.replace(described, obstacles=obstacles))
        end = sim.step(begun(sim, OVER_AN_EDGE, offset), torch.zeros(0))
        assert end.shorter_steps[0] == 0
        ends.append(end.position[0].double().cpu().numpy())
    assert np.abs(ends[0] - ends[1]).max() < 2e-6


def test_a_step_begins_again_if_only_nodes_are_in_contact():
    """Too few iterations make the step of a cube on the ground fail twice; its second attempt has moved it."""
    cube = SoftBody("cube", Box((0, 0, 0), (0.1, 0.1, 0.1)), Material(1e5, 0.3, 1000.0), velocity=(0.0, 0.0, -1.0))
    ground = Obstacle(HalfSpace((0, 0, 0), (0, 0, 1)))
    sim = simulation(Scene((cube,), obstacles=(ground,)), max_iterations=4, max_halvings=0)
    with pytest.raises(SimulationError, match="did not converge"):
        sim.step(sim.state(), torch.zeros(0))
    attempt = sim.model.workspace.contact.attempt
    assert sim.model.matrices.islands.touching.numpy()[0] == 0
    assert 0 < attempt.left.numpy()[0] < 20
    assert np.abs(attempt.u.numpy()).max() > 1e-4


def test_a_body_slides_around_a_ridge_in_one_step():
    """It ends where incremental potential contact ends whose barriers begin at the same distance."""
    pytest.importorskip("ipctk")
    from incremental_potential import IncrementalPotential

    described = scene("spike on ridge", "fixed")
    sim = simulation(described)
    start = begun(sim, SLIDING)
    end = sim.step(start, torch.zeros(0))
    x = end.position[0].double().cpu().numpy()
    faces = np.concatenate([m.faces + m.nodes.start for m in sim.model.matter.meshes])
    assert end.shorter_steps[0] == 0
    assert piercings(x, faces).max(initial=0.0) < 1e-7
    reference = IncrementalPotential(described, H, lags=5, activation=0.002, least=0.008)
    reference.x, reference.v = (a[0].double().cpu().numpy() for a in (start.position, start.velocity))
    assert np.abs(x - reference.step()[0]).max() < 2e-4


@pytest.mark.skipif(precision != "float64", reason="central differences need float64")
@pytest.mark.parametrize(
    ("kind", "support", "moving"),
    [
        ("spike on spike", "fixed", PAST),
        ("spike on ridge", "fixed", SLIDING),
        ("spike on cubes", "obstacle", OVER_AN_EDGE),
    ],
)
def test_gradient_of_a_second_attempt(kind, support, moving):
    """Only the start and the end of the step enter its derivative."""
    sim = simulation(scene(kind, support))
    start, rng = begun(sim, moving), np.random.default_rng(0)
    weight, direction = (torch.tensor(rng.normal(size=start.position.shape)) for _ in range(2))
    direction[:, 5:] = 0.0

    def end(velocity: torch.Tensor) -> torch.Tensor:
        final = sim.step(dataclasses.replace(start, velocity=velocity), torch.zeros(0))
        assert final.shorter_steps[0] == 0
        return (weight * final.position).sum()

    velocity = start.velocity.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(end(velocity), velocity)
    ahead, behind = (end(start.velocity + step * direction) for step in (1e-5, -1e-5))
    assert (gradient * direction).sum().item() == pytest.approx((ahead - behind).item() / 2e-5, rel=1e-4)
