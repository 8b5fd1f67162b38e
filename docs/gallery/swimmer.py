"""A fish that swims.

Muscles along both sides contract in turn, in a wave from head to tail; the fluid drags on every face and pushes back.
Two linear tetrahedra across are 64 % too stiff in bending; quadratic ones are not, but take 15 times as long.
"""

import torch

import warpbots as wb

Box = wb.shapes.Box
parts = {
    f"{side} {k}": Box((0.1 * k, min(y, 0.0), -0.04), (0.1 * k + 0.1, max(y, 0.0), 0.04))
    for k in (1, 2, 3)
    for side, y in (("left", 0.02), ("right", -0.02))
}
flesh = wb.Material(youngs_modulus=1e5, poissons_ratio=0.3, density=1000.0)
fish = wb.SoftBody("fish", Box((0.0, -0.02, -0.04), (0.4, 0.02, 0.04)), flesh, parts, color=(0.4, 0.6, 0.75))
muscles = [wb.actuators.Muscle(name, name, direction=(1, 0, 0), max_stress=4e4) for name in parts]
scene = wb.Scene([fish], muscles, gravity=(0.0, 0.0, 0.0), fluid=wb.Fluid(density=1000.0, thrust=0.0))
sim = wb.Simulation(scene, wb.ProjectiveDynamics(0.02, elements="tetrahedra", collisions=False), dt=0.01)
steps = 200
lag = 1.2 * torch.tensor([0, 0, 1, 1, 2, 2])  # the head, at large x, is ahead of the tail
phase = lag + torch.pi * torch.tensor([0, 1, 0, 1, 0, 1])
beat = torch.sin(2 * torch.pi * 2.0 * sim.dt * torch.arange(steps)[:, None] + phase)
motion = sim.rollout(beat, steps)
print(f"{100 * (sim.center_of_mass(motion.final) - sim.center_of_mass(motion.start))[0, 0]:.1f} cm forwards")
wb.view.film_strip(motion).save("swimmer.png")
