"""A finger of silicone with a chamber of air.

The pressure acts on the walls of the chamber, which lies above the middle, so that the finger curls downwards.
"""

import torch

import warpbots as wb

Box = wb.shapes.Box
length, side, cell = 0.18, 0.03, 0.0075
solid = wb.meshing.tetrahedra(Box((0, 0, 0), (length, side, side)), cell)
x, y, z = solid.vertices[solid.tets].mean(axis=1).T
void = (x > cell) & (x < length - cell) & (abs(y - side / 2) < cell) & (z > 2 * cell) & (z < side - cell)
hollow = wb.shapes.TetMesh(solid.vertices, solid.tets[~void])
regions = {
    "root": wb.shapes.HalfSpace((1e-4, 0, 0), (1, 0, 0)),
    "chamber": Box((0.005, 0.005, 0.01), (0.175, 0.025, 0.025)),
}
silicone = wb.Material(youngs_modulus=2e5, poissons_ratio=0.4, density=1070.0, damping=5e-3)
finger = wb.SoftBody("finger", hollow, silicone, regions, color=(0.9, 0.65, 0.55))
air = wb.actuators.Cavity("air", "chamber", max_pressure=4.2e4)
scene = wb.Scene([finger], [air], constraints=[wb.Constraint("root")], gravity=(0.0, 0.0, 0.0))
bends = wb.ProjectiveDynamics(elements="quadratic_tetrahedra", collisions=False)  # walls are one element thick
sim = wb.Simulation(scene, bends, dt=0.04)
steps = 20
motion = sim.rollout(torch.linspace(0.0, 1.0, steps)[:, None], steps)
print(f"{1e6 * sim.sense(motion.final, torch.ones(1)).volume.item():.1f} ml of air")
wb.view.film_strip(motion).save("pneumatic_finger.png")
