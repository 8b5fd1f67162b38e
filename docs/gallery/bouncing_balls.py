"""Balls that bounce with their coefficient of restitution.

Four balls, four contact laws. A ball with coefficient e rebounds at e times the speed of its impact.
"""

import matplotlib.pyplot as plt
import torch

import warpbots as wb

coefficients, bodies, joints, laws = (0.2, 0.5, 0.8, 0.95), [], [], []
for k, e in enumerate(coefficients):
    skin = wb.Cloud([[0.0, 0.0, -0.05]], 1e-4)  # one contact point, of 1 cm2, at the bottom
    place = (0.15 * k, 0.0, 0.05)
    bodies.append(wb.RigidBody(f"ball {k}", wb.shapes.Sphere((0, 0, 0), 0.05), 500.0, position=place, points=skin))
    joints.append(wb.Joint(f"rail {k}", "prismatic", None, f"ball {k}", position=place, start=0.5))
    laws.append(wb.Contact(f"ball {k}", "floor", stiffness=1e8, damping=1e10, restitution=e))
scene = wb.Scene(bodies, obstacles=[wb.floor(friction=0.0)], joints=joints, contacts=laws)
sim = wb.Simulation(scene, wb.Articulated(), dt=0.01, substeps=20)
motion = sim.rollout(None, steps=150, observe=lambda state: state.q)
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
time = sim.dt * torch.arange(1, motion.steps + 1)
for e, height in zip(coefficients, motion.observation[0].T, strict=True):
    ax.plot(time, 100 * height, label=f"e = {e}")
ax.set(xlabel="time [s]", ylabel="height [cm]")
ax.legend(frameon=False)
figure.savefig("bouncing_balls.png", dpi=150)
