"""An octopus before and after learning.

All legs beat alike and repeat one table of signals, which starts as noise. The gradient through two beats finds
the signals with which the octopus swims upwards.
"""

import torch

import warpbots as wb

scene = wb.usd.read("usd_scenes/octopus.usda")
sim = wb.Simulation(scene, wb.ProjectiveDynamics(0.05, tolerance=1e-4, collisions=False), dt=0.025, substeps=1)
torch.manual_seed(1)
table = (0.5 * torch.randn(20, 8)).requires_grad_()  # a beat of half a second, for two muscles of four segments


def swim(beats):
    signals = torch.sigmoid(4.0 * table).repeat(beats, sim.channels // 8)
    return sim.rollout(signals, len(signals))


def upwards(run):
    return 100 * (sim.center_of_mass(run.final) - sim.center_of_mass(run.start))[0, 2]  # [cm]


before = swim(2)
history = wb.fit([table], lambda: -upwards(swim(2)), torch.optim.Adam, lr=0.1, iterations=6)
motion = swim(2)
print(f"{upwards(before):.1f} cm before, {upwards(motion):.1f} cm after")
wb.view.film_strip(motion).save("octopus_before_and_after.png")
