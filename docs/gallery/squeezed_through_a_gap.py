"""A soft ball falls between two pegs.

It is wider than the gap. The material point method follows large deformation without a mesh that could tangle.
"""

import warpbots as wb

Sphere = wb.shapes.Sphere
jelly = wb.Material(youngs_modulus=1.2e4, poissons_ratio=0.4, density=1000.0)
ball = wb.SoftBody("ball", Sphere((0.25, 0.45), 0.09), jelly, velocity=(0.0, -1.0), color=(0.35, 0.6, 0.85))
pegs = [wb.Obstacle(Sphere((x, 0.25), 0.06), "slip", name=name) for name, x in {"left": 0.13, "right": 0.37}.items()]
scene = wb.Scene([ball], obstacles=[*pegs, wb.floor(dim=2)], domain=((0.0, 0.0), (0.5, 0.6)))
sim = wb.Simulation(scene, wb.MPM(dx=0.01), dt=5e-3)
motion = sim.rollout(None, steps=120)
wb.view.film_strip(motion).save("squeezed_through_a_gap.png")
