"""Two soft pads that meet with a loose cloth between them, in long steps: light, stiff bodies in contact."""

import numpy as np
import torch

from warpbots.scene import Box, Material, Scene, Sheet, SoftBody
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

GAP = 1e-3
"""Between the cloth and each pad at the start [m]."""


def pads(speed: float) -> Scene:
    """Pads that approach the cloth from both sides, with a `speed` of each [m/s], and slide along it."""
    half, bodies = np.array([0.008, 0.004, 0.008]), []
    for name, side in (("left", 1.0), ("right", -1.0)):
        center = np.array([0.0, side * (half[1] + GAP), side * 1e-4])
        shape, velocity = Box(tuple(center - half), tuple(center + half)), (0.0, -side * speed, -side * 0.012)
        rubber = Material(1e6, 0.3, 1000.0, "corotated")
        bodies.append(SoftBody(name, shape, rubber, friction=0.0, velocity=velocity))
    flat = Sheet.rectangle((-0.027, -0.026), (0.033, 0.034), 2e-3, (3, 3))
    vertices = np.column_stack([flat.vertices[:, 0], np.zeros(len(flat.vertices)), flat.vertices[:, 1]])
    felt = Sheet(vertices, flat.faces, 2e-3, 2e-4)
    bodies.append(SoftBody("cloth", felt, Material(5e4, 0.3, 300.0), friction=0.0))
    return Scene(bodies, gravity=(0.0, 0.0, 0.0))


def test_gradients_know_that_the_scene_may_move_as_a_whole(rng):
    """Moved or thrown as a whole, everything ends elsewhere by as much: sums of gradients over nodes are known.

    The adjoint moves both pads as a whole, a thousand times as far as their stiffness allows for a force as large as
    their inertia. In single precision it did not converge, because rounding of the stiffness moved them.
    """
    dt, speed = 0.01, 0.33
    sim = Simulation(pads(speed), ProjectiveDynamics(8e-3, 1e-5), dt, substeps=1)
    begin = sim.state()
    position, velocity = (getattr(begin, name).clone().requires_grad_() for name in ("position", "velocity"))
    end = sim.step(sim.state(position=position, velocity=velocity), torch.zeros(1, 0))
    weight = torch.as_tensor(rng.uniform(size=position.shape)).to(position)
    gradients = torch.autograd.grad((weight * end.position).sum(), (position, velocity))
    assert float((end.velocity - velocity).detach().abs().max()) > 0.3 * speed  # they have met
    total = weight.double().sum(dim=1)
    for gradient, factor in zip(gradients, (1.0, dt), strict=True):
        np.testing.assert_allclose(gradient.double().sum(dim=1) / factor, total, rtol=2e-4)
