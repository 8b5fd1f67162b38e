"""Tests of the robot; run them with ``python -m pytest``."""

import torch
from scene import LEGS, simulation


def test_the_robot_stands():
    """Without control the robot stays in place and above the floor."""
    sim = simulation()
    motion = sim.rollout(None, steps=40)
    travel = sim.center_of_mass(motion.final) - sim.center_of_mass(motion.start)
    assert abs(travel[0, 0]) < 1e-3
    assert motion.final.position[..., 1].min() > -0.01


def test_the_gradient_is_that_of_differences():
    """The gradient of the extent of the body with respect to a constant control of the first muscle is correct.

    The body is in free flight. The gradient agrees with the difference quotient.
    """
    sim = simulation()
    above = sim.state(position=sim.state().position + torch.tensor([0.0, 0.1]))

    def extent(u: torch.Tensor) -> torch.Tensor:
        control = torch.cat([u[None], torch.zeros(len(LEGS) - 1)]).expand(10, -1)
        return sim.rollout(control, steps=10, state=above).final.position[..., 1].var()

    u = torch.tensor(0.5, requires_grad=True)
    extent(u).backward()
    with torch.no_grad():
        difference = (extent(u + 0.1) - extent(u - 0.1)) / 0.2
    assert abs(u.grad / difference - 1.0) < 0.02
