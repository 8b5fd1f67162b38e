"""A parameter of the shape: particles whose positions and volumes are functions of it."""

import pytest
import torch
from cases import CONTINUA

from warpbots.scene import Box, HalfSpace, Material, Muscle, Obstacle, Scene, SoftBody
from warpbots.simulation import Simulation

DX, LENGTH, HEIGHT = 1 / 16, 0.5, 0.125
INTERVALS = 20


def arm(solver: str) -> Simulation:
    """An arm from a wall at x = 0, with a muscle along its lower half; in 2D."""
    lower_half = Box((0.0, 0.25), (LENGTH, 0.25 + HEIGHT / 2))
    body = SoftBody(
        "arm", Box((0.0, 0.25), (LENGTH, 0.25 + HEIGHT)), Material(1e5, 0.3, 1000.0), regions={"below": lower_half}
    )
    wall = Obstacle(HalfSpace((0.0, 0.0), (1.0, 0.0)), "sticky", name="wall")
    muscle = Muscle("muscle", "below", (1.0, 0.0), 2e4)
    scene = Scene((body,), (muscle,), (wall,), gravity=(0.0, -9.81), domain=((-0.1, 0.0), (1.0, 0.75)))
    return Simulation(scene, CONTINUA[solver](DX), dt=8e-3, substeps=4)


@pytest.mark.parametrize("solver", CONTINUA)
def test_an_arm_grows_until_it_reaches(solver):
    """Its tip, curled by the muscle, is 0.1 m short of a target; 100 steps of Adam on the length bring it to 1 mm."""
    sim = arm(solver)
    rest, volume = sim.state().position, sim.parameter("volume")
    tip = rest[0, :, 0] > LENGTH - DX / 2

    def reach(stretch: torch.Tensor) -> torch.Tensor:
        """Where the tip of an arm of `stretch` times the length is after the motion [m]."""
        position = torch.stack([stretch * rest[..., 0], rest[..., 1]], dim=-1)
        state = sim.state(position=position)
        trajectory = sim.rollout(torch.ones(INTERVALS, 1), INTERVALS, state, volume=stretch * volume)
        return trajectory.final.position[0, tip, 0].mean()

    stretch = torch.tensor(1.0, requires_grad=True)
    start = reach(stretch)
    assert abs(float(start.detach()) - LENGTH) > 0.01  # it does not just stay where it was
    target = start.detach() + 0.1

    (slope,) = torch.autograd.grad(start, stretch)
    with torch.no_grad():
        difference = (reach(stretch + 1e-2) - reach(stretch - 1e-2)) / 2e-2
    assert float(slope) == pytest.approx(float(difference), rel=0.02)

    optimizer = torch.optim.Adam([stretch], lr=0.02)
    for _ in range(100):
        error = reach(stretch) - target
        if abs(float(error.detach())) < 2e-4:
            break
        optimizer.zero_grad()
        error.square().backward()
        optimizer.step()
    assert abs(float(error.detach())) < 1e-3
    assert 1.1 < float(stretch.detach()) < 1.5
