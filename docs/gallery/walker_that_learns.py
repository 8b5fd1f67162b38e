"""A walker learns its gait by gradient.

A perceptron observes clusters of the body and a clock, and drives four muscles. It learns in one or two minutes on
one core.
"""

import torch

import warpbots as wb

Box = wb.shapes.Box
legs = {f"muscle {k}": Box((x, 0.0), (x + 0.05, 0.1)) for k, x in enumerate((0.2, 0.25, 0.4, 0.45))}
shape = wb.shapes.Union((*legs.values(), Box((0.2, 0.1), (0.5, 0.2))))
body = wb.SoftBody("walker", shape, wb.Material(2e4, 0.3, 1000.0), regions=legs)
muscles = [wb.actuators.Muscle(name, name, direction=(0, 1), max_stress=2e3) for name in legs]
scene = wb.Scene([body], muscles, [wb.floor(dim=2, friction=0.5)], domain=((-0.4, 0.0), (1.5, 0.4)))
sim = wb.Simulation(scene, wb.MPM(dx=1 / 80), dt=5e-3, substeps=5)
policy = wb.controllers.MLP(sim, wb.observers.Clusters(7), clock=0.4, seed=1)


def loss():
    end = sim.rollout(policy, steps=400)
    return -sim.center_of_mass(end.final)[:, 0].mean() + 1e-6 * end.control.square().mean()


wb.fit(policy.parameters(), loss, torch.optim.Adam, lr=3e-2, iterations=25, max_norm=0.1)
motion = sim.rollout(policy, steps=400)
wb.view.film_strip(motion).save("walker_that_learns.png")
