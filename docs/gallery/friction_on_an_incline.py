"""Blocks on an incline stick or slide.

The lanes of a ramp of slope 0.5 differ in their coefficient of friction alone. Blocks that stick do not creep.
"""

import torch

import warpbots as wb

coefficients = [0.60, 0.52, 0.48, 0.40, 0.30]
tilt = ((0.8**0.5, 0, 0.2**0.5), (0, 1, 0), (-(0.2**0.5), 0, 0.8**0.5))


def inclined(lower, upper):
    return wb.shapes.Posed(wb.shapes.Box(lower, upper), (0, 0, 0.7), tilt)


blocks, lanes = [], []
for k, friction in enumerate(coefficients):
    y = 0.2 * k
    cube = inclined((0.02, y - 0.06, 1e-4), (0.14, y + 0.06, 0.12))
    blocks.append(wb.SoftBody(f"block {k}", cube, wb.Material(1e6, 0.3, 1000.0)))
    lane = inclined((-0.06, y - 0.09, -0.1), (1.2, y + 0.09, 0.0))
    lanes.append(wb.Obstacle(lane, name=f"lane {k}", friction=friction))
sim = wb.Simulation(wb.Scene(blocks, obstacles=lanes), wb.ProjectiveDynamics(cell_size=0.06), dt=1 / 60)
motion = sim.rollout(None, steps=60)
moved = motion.final.position[0, :, 0] - motion.start.position[0, :, 0]
for k, friction in enumerate(coefficients):
    print(f"friction {friction:.2f}: {100 / 0.8**0.5 * moved[torch.as_tensor(motion.matter.body == k)].mean():.1f} cm")
wb.view.film_strip(motion).save("friction_on_an_incline.png")
