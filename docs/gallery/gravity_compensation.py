"""An arm that holds itself up.

The torques that hold an arm against gravity are the bias forces of its equations of motion; without them it falls.
"""

import matplotlib.pyplot as plt
import torch

import warpbots as wb

rods = [wb.shapes.Cylinder((0, 0, 0), (0.4, 0, 0), 0.03), wb.shapes.Cylinder((0, 0, 0), (0.3, 0, 0), 0.025)]
upper = wb.RigidBody("upper", rods[0], color=(0.25, 0.45, 0.7))
lower = wb.RigidBody("lower", rods[1], position=(0.4, 0, 0), color=(0.85, 0.5, 0.3))
shoulder = wb.Joint("shoulder", "revolute", None, "upper", axis=(0, 1, 0))
elbow = wb.Joint("elbow", "revolute", "upper", "lower", position=(0.4, 0, 0), axis=(0, 1, 0))
motors = [wb.actuators.Torque(*names, max_torque=20.0) for names in (("lift", "shoulder"), ("bend", "elbow"))]
sim = wb.Simulation(wb.Scene([upper, lower], motors, joints=[shoulder, elbow]), wb.Articulated(), dt=0.01)
start = sim.state(q=torch.tensor([[-0.6, 0.9]]))
motions = []
(figure, ax), motions = plt.subplots(figsize=(7, 3), layout="constrained"), []
for held in (1.0, 0.9, 0.0):
    motion = sim.rollout(
        lambda s, t, held=held: held * sim.dynamics(s).bias / 20.0, 60, start, observe=lambda s: s.q[:, 0]
    )
    motions.append(motion)
    time = sim.dt * torch.arange(1, motion.steps + 1)
    ax.plot(time, motion.observation[0].rad2deg(), label=f"{held:.0%} of the bias")
ax.set(xlabel="time [s]", ylabel="shoulder [degrees]")
ax.legend(frameon=False)
figure.savefig("gravity_compensation.png", dpi=150)
