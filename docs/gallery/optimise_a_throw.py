"""Throw a ball at a spot, one bounce away.

The gradient passes through half a second of flight and the bounce.
"""

import torch

import warpbots as wb

silicone = wb.Material(youngs_modulus=5e4, poissons_ratio=0.4, density=1070.0)
ball = wb.SoftBody("ball", wb.shapes.Sphere(center=(0.25, 0.3), radius=0.05), silicone)
scene = wb.Scene([ball], obstacles=[wb.floor(dim=2)], domain=((0.0, 0.0), (1.0, 0.6)))
sim = wb.Simulation(scene, wb.MPM(dx=0.01), dt=5e-3, substeps=10)
throw = torch.zeros(2, requires_grad=True)
target = torch.tensor([0.70, 0.15])


def fly():
    return sim.rollout(None, steps=100, state=sim.state(velocity=throw))


history = wb.fit([throw], lambda: (sim.center_of_mass(fly().final) - target).square().sum(), lr=0.1, iterations=60)
print(f"{throw.tolist()} m/s: {100 * history.loss[history.best] ** 0.5:.1f} cm off")
motion = fly()
camera = wb.view.Camera.around(scene, torch.cat([s.position[0] for _, s in motion.states()]).detach().numpy())
ax = None
for _, state in motion.states(every=20):  # all in one picture
    ax = wb.view.draw(scene, motion.matter, state.position[0].detach().numpy(), ax, camera=camera)
ax.figure.savefig("optimise_a_throw.png", dpi=150)
