"""A block on an incline sticks or slides.

Five worlds of one simulation differ in their coefficient of friction alone. Gravity is tilted by atan(0.5). Blocks
that stick do not creep.
"""

import matplotlib.pyplot as plt
import torch

import warpbots as wb

block = wb.SoftBody("block", wb.shapes.Box((0, 0, 0), (0.2, 0.1, 0.1)), wb.Material(1e6, 0.3, 1000.0))
scene = wb.Scene([block], obstacles=[wb.floor()], gravity=(9.81 * 0.5 / 1.25**0.5, 0.0, -9.81 / 1.25**0.5))
coefficients = torch.tensor([[0.30], [0.40], [0.48], [0.52], [0.60]])
sim = wb.Simulation(scene, wb.ProjectiveDynamics(cell_size=0.05), dt=1 / 60, worlds=5)
way = sim.state().position[..., 0].mean()
motion = sim.rollout(None, steps=60, observe=lambda s: s.position[..., 0].mean(dim=1) - way, friction=coefficients)
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for mu, x in zip(coefficients[:, 0].tolist(), motion.observation, strict=True):
    ax.plot(torch.arange(1, motion.steps + 1) * sim.dt, 100 * x, label=f"friction {mu:.2f}")
ax.set(xlabel="time [s]", ylabel="way [cm]", title="incline of slope 0.5")
ax.legend(frameon=False)
figure.savefig("friction_on_an_incline.png", dpi=150)
