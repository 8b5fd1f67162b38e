"""A beam whose stiffness is designed.

The gradient finds Young's moduli (yellow: stiff) with which its tip hangs 12 cm lower and its middle stays.
"""

import torch

import warpbots as wb

Box = wb.shapes.Box
rubber = wb.Material(youngs_modulus=6e5, poissons_ratio=0.3, density=1000.0, damping=0.02)
beam = wb.SoftBody("beam", Box((0, 0, 0), (0.4, 0.04, 0.06)), rubber, {"root": Box((-1, -1, -1), (1e-4, 1, 1))})
held = wb.Scene([beam], constraints=[wb.Constraint("root")])
sim, runs = wb.Simulation(held, wb.ProjectiveDynamics(cell_size=0.02), dt=0.04), []
x = sim.state().position[0, :, 0]
middle, tip = (x - 0.2).abs() < 1e-3, x > 0.399
segment = torch.as_tensor(sim.model.matter.position[sim.model.matter.tets].mean(axis=1)[:, 0] / 0.05).long()
log = torch.full((8,), 6e5).log().requires_grad_()


def loss():
    runs.append(sim.rollout(None, steps=16, youngs_modulus=log.clamp(10.5, 15.0).exp()[segment][None]))
    sag = [0.03 - runs[-1].final.position[0, part, 2].mean() for part in (tip, middle)]
    return (100 * sag[0] - 12).square() + (100 * sag[1]).square()


history = wb.fit([log], loss, torch.optim.Adam, lr=0.5, iterations=10)
before, motion = runs[0], runs[history.best]
wb.usd.write("beam.usda", motion, color="youngs_modulus")
wb.view.film_strip(motion).save("beam_of_designed_stiffness.png")
