"""Identify a stiffness from a motion.

A beam sags under its weight. L-BFGS finds Young's modulus from the motion of its tip: guess, truth and result.
"""

import matplotlib.pyplot as plt
import torch

import warpbots as wb

box, end = wb.shapes.Box((0.0, 0.0, 0.0), (0.4, 0.05, 0.05)), wb.shapes.Box((-0.01, -1, -1), (0.01, 1, 1))
body = wb.SoftBody("beam", box, wb.Material(1e6), {"root": end}, color=(0.9, 0.65, 0.55))
scene = wb.Scene([body], constraints=[wb.Constraint("root")])
sim = wb.Simulation(scene, wb.ProjectiveDynamics(0.05, elements="quadratic_tetrahedra"), dt=0.02)
tip, ones = sim.state().position[0, :, 0] > 0.39, torch.ones_like(sim.parameter("youngs_modulus"))


def fall(E):
    return sim.rollout(None, steps=20, observe=lambda s: 100 * s.position[:, tip, 2].mean(1), youngs_modulus=E * ones)


truth, guess = fall(torch.tensor(4e6)), fall(torch.tensor(1e6))
log, goal = torch.tensor(1e6).log().requires_grad_(), truth.observation.detach()
wb.fit([log], lambda: (fall(log.exp()).observation - goal).square().mean(), torch.optim.LBFGS, iterations=3)
motion = fall(log.exp())
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for run, style in ((truth, "o"), (guess, "--"), (motion, "-")):
    ax.plot(run.observation[0].detach(), style)
ax.set(xlabel="step", ylabel="tip [cm]", title=f"found {log.exp().item():.4g} Pa")
figure.savefig("identify_stiffness.png", dpi=150)
