"""A fish that swims.

Muscles along both sides contract in turn, in a wave from head to tail; the fluid drags on every face and pushes back.
A few linear tetrahedra across are too stiff in bending; quadratic ones are not, but take 30 times as long.
"""

import numpy as np
import torch
import trimesh

import warpbots as wb

ball = trimesh.creation.icosphere(subdivisions=4)
x, y, z = ball.vertices.T
tail = np.clip(-0.45 - x, 0.0, 0.55)  # from the fin to the trunk
outline = np.stack([0.2 + 0.2 * x, y * 0.025, z * (0.05 + 0.2 * tail)], axis=1)
parts = {
    f"{side} {k}": wb.shapes.Box((0.1 * k, min(y, 0.0), -0.2), (0.1 * k + 0.1, max(y, 0.0), 0.2))
    for k in (1, 2, 3) for side, y in (("left", 0.1), ("right", -0.1))
}  # fmt: skip
fish = wb.SoftBody("fish", wb.shapes.TriangleMesh(outline, ball.faces), wb.Material(1e5, 0.3, 1000.0), parts)
muscles = [wb.actuators.Muscle(name, name, direction=(1, 0, 0), max_stress=4e4) for name in parts]
scene = wb.Scene([fish], muscles, gravity=(0.0, 0.0, 0.0), fluid=wb.Fluid(density=1000.0, thrust=0.0))
sim = wb.Simulation(scene, wb.ProjectiveDynamics(0.02, elements="tetrahedra", collisions=False), dt=0.01)
lag = 1.2 * torch.tensor([0, 0, 1, 1, 2, 2]) + torch.pi * torch.tensor([0, 1, 0, 1, 0, 1])  # the head is ahead
motion = sim.rollout(torch.sin(2 * torch.pi * 2.0 * sim.dt * torch.arange(200)[:, None] + lag), 200)
print(f"{100 * (sim.center_of_mass(motion.final) - sim.center_of_mass(motion.start))[0, 0]:.1f} cm forwards")
wb.view.film_strip(motion).save("swimmer.png")
