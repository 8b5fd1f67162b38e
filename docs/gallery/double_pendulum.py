"""A double pendulum is chaotic.

Eight worlds start within a ten-thousandth of a radian of one another. After a few seconds they have diverged.
"""

import matplotlib.pyplot as plt
import torch

import warpbots as wb

rod = wb.shapes.Cylinder((0, 0, -0.5), (0, 0, 0), 0.02)
upper = wb.RigidBody("upper", rod, color=(0.25, 0.45, 0.7))
lower = wb.RigidBody("lower", rod, position=(0, 0, -0.5), color=(0.85, 0.5, 0.3))
shoulder = wb.Joint("shoulder", "revolute", None, "upper", axis=(0, 1, 0))
elbow = wb.Joint("elbow", "revolute", "upper", "lower", position=(0, 0, -0.5), axis=(0, 1, 0))
sim = wb.Simulation(wb.Scene([upper, lower], joints=[shoulder, elbow]), wb.Articulated(), 0.02, 10, worlds=8)
start = torch.tensor([2.5, 0.0], dtype=torch.float64) + 1e-4 * torch.linspace(0, 1, 8, dtype=torch.float64)[:, None]
motion = sim.rollout(None, steps=400, state=sim.state(q=start), observe=lambda s: s.q[:, 1])
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.plot(torch.arange(1, motion.steps + 1) * sim.dt, motion.observation.T.rad2deg(), lw=1)
ax.set(xlabel="time [s]", ylabel="elbow [degrees]")
figure.savefig("double_pendulum.png", dpi=150)
