"""Throw a ball at a spot, one bounce away.

The gradient passes through half a second of flight and the bounce. The loop shows several of the attempts at once.
"""

import torch

import warpbots as wb

silicone = wb.Material(youngs_modulus=5e4, poissons_ratio=0.4, density=1070.0)
ball = wb.SoftBody("ball", wb.shapes.Sphere(center=(0.25, 0.3), radius=0.05), silicone)
scene = wb.Scene([ball], obstacles=[wb.floor(dim=2)], domain=((0.0, 0.0), (1.0, 0.6)))
sim = wb.Simulation(scene, wb.MPM(dx=0.01), dt=5e-3, substeps=10)
throw = torch.zeros(2, requires_grad=True)
target = torch.tensor([0.70, 0.15])


def loss():
    tries.append(sim.rollout(None, steps=100, state=sim.state(velocity=throw)))
    return (sim.center_of_mass(tries[-1].final) - target).square().sum()


tries = []
history = wb.fit([throw], loss, lr=0.1, iterations=60)
print(f"{throw.tolist()} m/s: {100 * history.loss[history.best] ** 0.5:.1f} cm off")
motion = sim.rollout(None, steps=100, state=sim.state(velocity=throw))
wb.view.film_strip(motion).save("optimise_a_throw.png")
