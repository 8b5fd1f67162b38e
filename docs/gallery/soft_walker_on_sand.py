"""A soft walker on sand.

Its legs lean backwards and lengthen together, which throws it forwards; the sand yields under its feet by the law of
Drucker and Prager. Walker and sand share one grid.
"""

import math

import torch

import warpbots as wb

Box, lean = wb.shapes.Box, math.radians(30)
c, s = math.cos(lean), math.sin(lean)
grains = wb.Material(2e5, 0.3, 1600.0, "hencky", plasticity=wb.materials.DruckerPrager(friction_angle=35.0))
sand = wb.SoftBody("sand", Box((0.0, 0.0), (1.2, 0.1)), grains, color=(0.85, 0.7, 0.45))
upright = Box((-0.03, -0.12), (0.03, 0.0))
legs = {f"leg {k}": wb.shapes.Posed(upright, (x, 0.225), ((c, s), (-s, c))) for k, x in enumerate((0.22, 0.34, 0.46))}
torso = Box((0.16, 0.2), (0.52, 0.27))
flesh = wb.Material(youngs_modulus=5e4, poissons_ratio=0.3, density=400.0)
walker = wb.SoftBody("walker", wb.shapes.Union((torso, *legs.values())), flesh, legs, color=(0.4, 0.6, 0.85))
muscles = [wb.actuators.Muscle(name, name, direction=(s, c), max_stress=1.5e4) for name in legs]
scene = wb.Scene([sand, walker], muscles, wb.walls((0.0, 0.0), (1.2, 0.75), "friction", 0.6))
sim = wb.Simulation(scene, wb.MPM(dx=1 / 60), dt=5e-3, substeps=None)
beat = torch.sin(2 * torch.pi * 4.0 * sim.dt * torch.arange(steps := 250))
motion = sim.rollout(beat[:, None].expand(steps, 3), steps)
moved = (motion.final.position - motion.start.position)[0, sim.region("leg 1"), 0].mean()
print(f"{100 * moved:.0f} cm forwards")
wb.view.film_strip(motion).save("soft_walker_on_sand.png")
