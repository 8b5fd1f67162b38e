"""Five worlds in one batch.

A ball is thrown down in each; only Young's modulus differs. Soft balls flatten more and rebound later.
"""

import matplotlib.pyplot as plt
import torch

import warpbots as wb

silicone = wb.Material(youngs_modulus=2e4, poissons_ratio=0.3, density=1070.0, damping=2e-3)
ball = wb.SoftBody(
    "ball", wb.shapes.Sphere((0.15, 0.12), 0.07), silicone, velocity=(0.0, -1.5), color=(0.35, 0.6, 0.85)
)
scene = wb.Scene([ball], obstacles=[wb.floor(dim=2)], domain=((0.0, 0.0), (0.3, 0.3)))
sim = wb.Simulation(scene, wb.MPM(dx=0.01), dt=5e-3, substeps=64, worlds=5)
E = torch.tensor([1e4, 2e4, 4e4, 8e4, 16e4])[:, None].expand_as(sim.parameter("youngs_modulus"))
motion = sim.rollout(None, steps=100, youngs_modulus=E, observe=lambda s: s.position[..., 1].mean(dim=1))
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for height, modulus in zip(motion.observation, E[:, 0].tolist(), strict=True):
    ax.plot(sim.dt * torch.arange(1, motion.steps + 1), 100 * height, label=f"{modulus / 1e3:g} kPa")
ax.set(xlabel="time [s]", ylabel="centre [cm]")
ax.legend(frameon=False)
figure.savefig("worlds_of_stiffness.png", dpi=150)
