"""A flag in the wind.

A sheet of triangles with bending stiffness, held at one edge. Every face feels the drag of the air that passes it.
"""

import warpbots as wb

sheet = wb.shapes.Sheet.rectangle((0.0, 0.0), (0.6, 0.4), thickness=0.002, cells=(18, 12), bending=1e-3)
upright = wb.shapes.Posed(sheet, translation=(0.0, 0.0, 1.0), rotation=((1, 0, 0), (0, 0, -1), (0, 1, 0)))
pole = wb.shapes.Box((-0.01, -1.0, 0.0), (0.01, 1.0, 2.0))
linen = wb.Material(youngs_modulus=2e5, poissons_ratio=0.3, density=150.0)
flag = wb.SoftBody("flag", upright, linen, {"pole": pole}, color=(0.85, 0.35, 0.3))
wind = wb.Fluid(density=1.2, velocity=(6.0, 1.5, 0.0))
scene = wb.Scene([flag], constraints=[wb.Constraint("pole")], fluid=wind)
sim = wb.Simulation(scene, wb.ProjectiveDynamics(cell_size=0.03, tolerance=3e-5, collisions=False), dt=5e-3)
motion = sim.rollout(None, steps=200)
wb.view.film_strip(motion).save("flag_in_the_wind.png")
