"""A finger pulled by a cable.

The cable runs through the upper half of a bar of silicone and is wound in and out; the wall holds the left end.
"""

import torch

import warpbots as wb

wall = wb.Obstacle(wb.shapes.HalfSpace((0.0, 0.0), (1.0, 0.0)), "sticky", name="wall")
bar = wb.shapes.Box((0.0, 0.2), (0.3, 0.25))
silicone = wb.Material(youngs_modulus=1e5, poissons_ratio=0.4, density=1000.0)
route = [(x / 100, 0.24) for x in range(2, 30, 3)]
finger = wb.Scene(
    [wb.SoftBody("finger", bar, silicone, color=(0.9, 0.65, 0.55))],
    actuators=[wb.actuators.Cable("tendon", route, stiffness=2e4)],
    obstacles=[wall],
    gravity=(0.0, 0.0),
    domain=((0.0, 0.0), (0.4, 0.5)),
)
sim = wb.Simulation(finger, wb.MPM(dx=0.0125), dt=5e-3, substeps=None)
steps = 120
pull = 0.25 * torch.sin(torch.linspace(0.0, torch.pi, steps)).square()[:, None]
motion = sim.rollout(pull, steps)
wb.view.film_strip(motion).save("cable_finger.png")
