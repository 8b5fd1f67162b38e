"""Obstacles between nodes: faces and bars rest on what is thin, and what is inside of a face all the same is reported."""

import numpy as np
import pytest
import torch

from warpbots.contact import signed_distance
from warpbots.scene import Box, Capsule, Constraint, HalfSpace, Material, Obstacle, Scene, SoftBody, Sphere
from warpbots.simulation import Simulation, SimulationError
from warpbots.solvers import ProjectiveDynamics

CELL = 0.1
MATERIAL = Material(1e6, 0.3, 1000.0, "corotated")


def body(z: float, **fields) -> SoftBody:
    """A slab of 40 cm, so that no node is over a thin obstacle near (0.04, 0.03)."""
    return SoftBody("slab", Box((-0.2, -0.2, z), (0.2, 0.2, z + 0.1)), MATERIAL, **fields)


def deepest(sim: Simulation, x: np.ndarray, shape: object) -> float:
    """How deep points on the surface, 400 to a face, are in a shape [m]."""
    (part,) = sim.model.matter.meshes
    v, w = np.random.default_rng(0).dirichlet((1, 1, 1), 400)[:, :2].T
    a, b, c = x[part.faces].swapaxes(0, 1)[:, :, None]
    points = a + v[:, None] * (b - a) + w[:, None] * (c - a)
    return float(-signed_distance(shape, points.reshape(-1, 3)).min())


@pytest.mark.parametrize(
    "shape",
    [Box((0.03, 0.02, -0.3), (0.05, 0.04, 0.0)), Capsule((0.04, -1.0, -0.01), (0.04, 1.0, -0.01), 0.01)],
    ids=["pillar", "rod"],
)
def test_a_slab_rests_on_what_is_thinner_than_its_cells(shape):
    """It falls from 1 cm and does not go down further; without surface samples it fell for good."""
    sim = Simulation(Scene((body(0.01),), obstacles=(Obstacle(shape, friction=0.5),)), ProjectiveDynamics(CELL), 0.005)
    state = sim.state()
    for _ in range(12):
        state = sim.step(state, torch.zeros(0))
        assert deepest(sim, state.position[0].cpu().double().numpy(), shape) < 0.006
    assert float(state.velocity[0, :, 2].mean()) > -0.2  # of 0.6 m/s that it would have by now
    assert float(sim.report().contacts[0]) > 0


def test_what_goes_through_a_face_all_the_same_is_reported():
    """With its name, depth, place and the cells that would do: a ball of 2 cm, and 20 cm in one step."""
    pearl = Obstacle(Sphere((0.04, 0.03, -0.07), 0.01), name="pearl")
    scene = Scene((body(0.01, velocity=(0, 0, -6.0)),), obstacles=(pearl,))
    sim = Simulation(scene, ProjectiveDynamics(CELL, max_halvings=0), 1 / 30)
    with pytest.raises(SimulationError, match=r"Obstacle 'pearl' is 0\.0\d+ m inside SoftBody 'slab' near .* cells of"):
        sim.step(sim.state(), torch.zeros(0))
    sim = Simulation(scene, ProjectiveDynamics(CELL), 1 / 30)  # shorter steps do not go through
    state = sim.step(sim.state(), torch.zeros(0))
    assert state.shorter_steps[0] >= 2
    assert deepest(sim, state.position[0].cpu().double().numpy(), pearl.shape) < 0.006


def test_wide_obstacles_are_touched_by_nodes_alone():
    """Half-spaces, tables and plates have no surface samples."""
    shapes = (HalfSpace((0, 0, 0), (0, 0, 1)), Box((-1, -1, -1), (1, 1, 0)), Box((-1, -1, -0.02), (1, 1, 0)))
    for shape in shapes:
        model = ProjectiveDynamics(CELL).build(Scene((body(0.01),), obstacles=(Obstacle(shape),)))
        assert len(model.topology.samples) == 0


@pytest.mark.verification
def test_gradients_through_spots_are_those_of_differences(rng):
    """Relative 1e-5 along a random direction of every input, with corners that are fixed and friction at a spot."""
    rod = Obstacle(Capsule((0.04, -1.0, -0.02), (0.06, 1.0, -0.02), 0.02), "friction", 0.3)
    slab = body(1e-3, regions={"held": HalfSpace((0.09, 0, 0), (-1, 0, 0))}, velocity=(0.3, 0.1, -1.0))
    scene = Scene((slab,), obstacles=(rod,), constraints=(Constraint("held"),))
    sim = Simulation(scene, ProjectiveDynamics(CELL, tolerance=1e-11), 0.005)
    inputs, rest = {n: sim.parameter(n) for n in sim.parameters()}, sim.state()
    inputs["position"], inputs["velocity"] = rest.position, rest.velocity
    by_x, by_v = (torch.as_tensor(rng.normal(size=rest.position.shape)) for _ in range(2))

    def loss(values: dict) -> torch.Tensor:
        state = sim.state(position=values["position"], velocity=values["velocity"])
        for _ in range(2):
            state = sim.step(state, torch.zeros(0), **{n: values[n] for n in sim.parameters()})
        assert sim.report().contacts[0] > 0
        return (by_x * state.position).sum() + 0.01 * (by_v * state.velocity).sum()

    leaves = {n: v.clone().requires_grad_() for n, v in inputs.items()}
    loss(leaves).backward()
    for name, value in inputs.items():
        direction = torch.as_tensor(rng.normal(size=value.shape))
        scale = float(value.abs().mean()) or 1.0
        slopes = []
        for step in (1e-4, 1e-5, 1e-6):
            with torch.no_grad():
                there, back = (loss(inputs | {name: value + s * step * scale * direction}) for s in (1.0, -1.0))
            slopes.append(float(there - back) / (2.0 * step * scale))
        slope = float((leaves[name].grad * direction).sum())
        assert min(abs(slope - s) for s in slopes) < 1e-5 * abs(slope) + 1e-9, (name, slope, slopes)
