"""A ball falls into a hammock.

Cloth and ball touch without penetration: contact and dry friction are solved at every pair of points that meet.
"""

import warpbots as wb

sheet = wb.shapes.Sheet.rectangle((-0.3, -0.15), (0.3, 0.15), thickness=0.002, cells=(16, 8), bending=1e-3)
level = wb.shapes.Posed(sheet, translation=(0.0, 0.0, 0.4), rotation=((1, 0, 0), (0, 1, 0), (0, 0, 1)))
ends = {"left": wb.shapes.HalfSpace((-0.299, 0, 0), (1, 0, 0)), "right": wb.shapes.HalfSpace((0.299, 0, 0), (-1, 0, 0))}
linen = wb.Material(youngs_modulus=2e5, poissons_ratio=0.3, density=250.0)
hammock = wb.SoftBody("hammock", level, linen, ends, color=(0.85, 0.35, 0.3))
rubber = wb.Material(youngs_modulus=1e5, poissons_ratio=0.4, density=500.0)
ball = wb.SoftBody("ball", wb.shapes.Sphere((0.05, 0.0, 0.55), 0.06), rubber, color=(0.35, 0.6, 0.85))
held = [wb.Constraint(name, name=name) for name in ends]
sim = wb.Simulation(wb.Scene([hammock, ball], constraints=held), wb.ProjectiveDynamics(cell_size=0.035), dt=5e-3)
motion = sim.rollout(None, steps=120)
wb.view.film_strip(motion).save("ball_in_a_hammock.png")
