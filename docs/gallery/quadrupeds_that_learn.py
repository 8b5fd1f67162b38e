"""Sixty-four quadrupeds learn to run.

Each begins with random phases of its eight muscles; one gradient step improves all. First gaits, then last.
"""

import torch

import warpbots as wb

Box, floor = wb.shapes.Box, wb.floor(friction=0.8)
rubber = wb.Material(youngs_modulus=1e5, poissons_ratio=0.25, density=1000.0, damping=2e-3)
colors, bodies, muscles = [(0.35, 0.6, 0.85), (0.9, 0.6, 0.3), (0.5, 0.75, 0.45), (0.8, 0.45, 0.55)], [], []
for k in range(64):
    x, y = 0.3 * (k // 8), 0.2 * (k % 8)
    corners = [(x + 0.12 * i + 0.03 * m, y + 0.09 * j) for i in (0, 1) for j in (0, 1) for m in (0, 1)]
    legs = {f"{k} {i}": Box((a, b, 0), (a + 0.03, b + 0.03, 0.06)) for i, (a, b) in enumerate(corners)}
    shape = wb.shapes.Union((Box((x, y, 0.06), (x + 0.18, y + 0.12, 0.09)), *legs.values()))
    bodies.append(wb.SoftBody(f"robot {k}", shape, rubber, legs, color=colors[k % 4]))
    muscles += [wb.actuators.Muscle(name, name, direction=(0, 0, 1), max_stress=3e4) for name in legs]
sim = wb.Simulation(wb.Scene(bodies, muscles, [floor]), wb.MassSpring(0.03, contact_stiffness=1e5), 0.01, None)
torch.manual_seed(0)
phase = (6.28 * torch.rand(512)).requires_grad_()
time = sim.dt * torch.arange(steps := 70)[:, None]
gait = lambda: torch.sin(6.28 * 3.0 * time + phase)
forwards = lambda run: (sim.center_of_mass(run.final) - sim.center_of_mass(run.start))[0, 0]
before = sim.rollout(gait().detach(), steps)
wb.fit([phase], lambda: -forwards(sim.rollout(gait(), steps)), torch.optim.Adam, lr=0.6, iterations=5)
motion = sim.rollout(gait(), steps)
print(f"{100 * forwards(before):.1f} cm before, {100 * forwards(motion):.1f} cm after, on average")
wb.view.film_strip(motion, 4).save("quadrupeds_that_learn.png")
