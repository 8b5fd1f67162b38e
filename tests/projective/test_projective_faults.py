"""What projective dynamics refuses, each with a sentence that says what to do."""

import pytest
import torch
from soft_bodies import cloth

from warpbots.scene import (
    Box,
    Expansion,
    HalfSpace,
    Material,
    Obstacle,
    Scene,
    SceneError,
    SoftBody,
    Sphere,
    floor,
)
from warpbots.simulation import Simulation, SimulationError
from warpbots.solvers import ProjectiveDynamics

MATTER = Material(1e5, 0.3, 1000.0)
BLOCK = SoftBody("block", Box((0, 0, 0), (0.16, 0.08, 0.08)), MATTER, regions={"all": HalfSpace((1, 0, 0), (1, 0, 0))})


def scene(body: SoftBody = BLOCK, **parts) -> Scene:
    return Scene((body,), **parts)


REFUSED = {
    "sunk": (lambda: scene(obstacles=(floor(0.01),)), "'floor': 15 nodes of SoftBody 'block' start inside it"),
    "swallowed": (
        lambda: scene(obstacles=(Obstacle(Sphere((0.1, 0.05, 0.045), 0.01), name="pearl"),)),
        r"'pearl': it starts inside SoftBody 'block', up to 0.0[34]\d* m below its surface",
    ),
    "flat": (
        lambda: Scene((SoftBody("disc", Box((0, 0), (1, 1)), MATTER),)),
        "this scene is 2D: use MPM or MassSpring",
    ),
    "vanishes": (
        lambda: scene(actuators=(Expansion("one", "all", 0.6), Expansion("two", "all", 0.5))),
        "'one', 'two': together they strain matter by up to 1.1",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_scene_that_cannot_be_simulated_is_refused(case):
    make, words = REFUSED[case]
    with pytest.raises(SceneError, match=words):
        ProjectiveDynamics(0.04).build(make())


def test_obstacles_beside_and_below_are_welcome():
    beside = Obstacle(Sphere((0.08, 0.04, -0.05), 0.05), name="ball")
    ProjectiveDynamics(0.04).build(scene(obstacles=(floor(), beside)))
    ProjectiveDynamics(0.04).build(cloth((floor(-0.05),)))


def test_a_step_that_does_not_converge_says_so():
    sim = Simulation(
        scene(obstacles=(floor(),)), ProjectiveDynamics(0.04, max_iterations=2, max_halvings=0), 0.01, substeps=1
    )
    with pytest.raises(SimulationError, match=r"did not converge in world 0: after 2 iterations .*use a shorter step"):
        sim.rollout(torch.zeros(5, 0), 5)


def test_an_adjoint_that_does_not_converge_says_so():
    """A body at rest takes one iteration; the gradient of what looks at single nodes takes many."""
    solver = ProjectiveDynamics(0.04, max_iterations=2, max_halvings=0, linear_solver="iterative")
    sim = Simulation(scene(gravity=(0.0, 0.0, 0.0)), solver, 0.01)
    start = sim.state().velocity.requires_grad_()
    end = sim.step(sim.state(velocity=start), torch.zeros(0)).position
    with pytest.raises(
        FloatingPointError,
        match="gradient with respect to velocity is nan.*adjoint of a step of 0.01 s in world 0 did not converge in 2",
    ):
        (end * torch.rand_like(end)).sum().backward()
