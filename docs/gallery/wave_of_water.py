"""A wave of water carries a soft ball.

A column of water collapses, runs up the opposite wall and lifts a ball of foam. Water and foam share one grid.
"""

import warpbots as wb

water = wb.Material(1e5, 1 / 3, 1000.0, law="weakly_compressible", damping=1e-4)
foam = wb.Material(youngs_modulus=1e5, poissons_ratio=0.2, density=300.0)
column = wb.SoftBody("water", wb.shapes.Box((0.0, 0.0), (0.3, 0.4)), water, color=(0.3, 0.55, 0.85))
ball = wb.SoftBody("ball", wb.shapes.Sphere((0.5, 0.08), 0.06), foam, color=(0.95, 0.6, 0.25))
basin = wb.walls((0.0, 0.0), (0.9, 0.6), condition="slip")
sim = wb.Simulation(wb.Scene([column, ball], obstacles=basin), wb.MPM(dx=0.015), dt=0.01, substeps=None)
motion = sim.rollout(None, steps=130)
wb.view.film_strip(motion).save("wave_of_water.png")
