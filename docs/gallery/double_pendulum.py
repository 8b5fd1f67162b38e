"""A double pendulum is chaotic.

Eight worlds start within a ten-thousandth of a radian of one another. After a few seconds they have diverged.
"""

import torch

import warpbots as wb

end = (0, 0, -0.5)
rod = wb.shapes.Union((wb.shapes.Cylinder((0, 0, -0.413), (0, 0, 0), 0.025), wb.shapes.Sphere(end, 0.09)))
upper = wb.RigidBody("upper", rod, color=(0.25, 0.45, 0.7))
lower = wb.RigidBody("lower", rod, position=end, color=(0.85, 0.5, 0.3))
shoulder = wb.Joint("shoulder", "revolute", None, "upper", axis=(0, 1, 0))
elbow = wb.Joint("elbow", "revolute", "upper", "lower", position=end, axis=(0, 1, 0))
sim = wb.Simulation(wb.Scene([upper, lower], joints=[shoulder, elbow]), wb.Articulated(), 0.02, 10, worlds=8)
start = torch.tensor([2.5, 0.0], dtype=torch.float64) + 1e-4 * torch.linspace(0, 1, 8, dtype=torch.float64)[:, None]
motion = sim.rollout(None, steps=400, state=sim.state(q=start), observe=lambda s: s.q[:, 1])
spread = motion.observation.std(dim=0).rad2deg()
for steps in (motion.steps // 4, motion.steps):
    print(f"after {steps * sim.dt:.0f} s the elbows are {spread[steps - 1]:.2g} degrees apart")
wb.view.film_strip(motion, 8).save("double_pendulum.png")
