"""A design that is kept.

Young's modulus varies along a bar; the scene with it is written as USD and read again, and the same motion follows.
"""

import torch

import warpbots as wb

Box = wb.shapes.Box
bar = Box((0, 0, 0), (0.4, 0.06, 0.06))
rubber = wb.Material(youngs_modulus=1e5, poissons_ratio=0.3, density=1000.0, damping=0.01)
beam = wb.SoftBody("beam", bar, rubber, {"root": wb.shapes.HalfSpace((1e-4, 0, 0), (1, 0, 0))})
scene = wb.Scene([beam], constraints=[wb.Constraint("root")])
sim = wb.Simulation(scene, wb.ProjectiveDynamics(cell_size=0.015), dt=0.01)
mesh = sim.model.matter
middle = torch.as_tensor(mesh.position[mesh.tets].mean(axis=1)[:, 0])
graded = 1e5 * torch.exp(2.0 * torch.cos(20.0 * middle))[None].float()
wb.usd.write("beam.usda", sim.scene_with(youngs_modulus=graded))
again = wb.Simulation(wb.usd.read("beam.usda"), sim.solver, sim.dt)
motion = again.rollout(None, steps=40)
assert torch.equal(motion.final.position, sim.rollout(None, steps=40, youngs_modulus=graded).final.position)
wb.usd.write("motion.usda", motion, color="youngs_modulus")  # colours for usdview, Omniverse and Blender
wb.view.film_strip(motion).save("design_kept_in_usd.png")
