"""A hand presses clay.

Two fingers on a palm, driven by servos, push into a block, which keeps its new shape. The scene is read from USD.
"""

import torch

import warpbots as wb

scene = wb.usd.read("usd_scenes/clay.usda")
sim = wb.Simulation(scene, wb.Coupled(wb.MPM(dx=0.015)), dt=0.02, substeps=None)
time = torch.linspace(0.0, 1.0, steps := 40)
down = torch.sin(torch.pi * (time / 0.85).clamp(max=1.0))
pinch = ((time - 0.25) / 0.3).clamp(0.0, 1.0)
zero = torch.zeros_like(time)
motion = sim.rollout(torch.stack([zero, zero, -0.8 * down, 0.8 * pinch, 0.8 * pinch], dim=1), steps)
wb.view.film_strip(motion).save("clay_under_a_hand.png")
