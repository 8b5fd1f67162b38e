"""A pneumatic gripper carries a ball.

Four soft arms with cells of air hang from a drone. The cells expand, the arms bend inwards, and friction lifts a ball
of 1 kg, which the drone carries aside.
"""

import torch

import warpbots as wb

scene = wb.usd.read("usd_scenes/pneumatic_gripper.usda")
sim = wb.Simulation(scene, wb.ProjectiveDynamics(), dt=0.01, substeps=2)
time = torch.linspace(0.0, 1.0, steps := 70)
grip = (time / 0.2).clamp(max=1.0)[:, None].expand(steps, 4) * 0.6
up, aside = (((time - start) / 0.4).clamp(0.0, 1.0) for start in (0.2, 0.5))
smooth = lambda s: s * s * (3.0 - 2.0 * s)
fly = torch.stack([0.6 * smooth(aside), 0.0 * time, 0.6 * smooth(up)], dim=1)
motion = sim.rollout(torch.cat([grip, fly], dim=1), steps)
print(f"the ball is {100 * sim.center_of_mass(motion.final, 'load')[0, 2]:.0f} cm higher")
wb.view.film_strip(motion).save("gripper_carries_a_ball.png")
