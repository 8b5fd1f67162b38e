"""A cube that falls on an edge.

Soft rubber on a grid of 2 cm, in three dimensions. Its lower edge meets the floor first; the cube turns, bounces and
comes to rest on a face.
"""

import math

import warpbots as wb

c, s = math.cos(0.6), math.sin(0.6)
cube = wb.shapes.Box((-0.1, -0.1, -0.1), (0.1, 0.1, 0.1))
tilted = wb.shapes.Posed(cube, translation=(0.0, 0.0, 0.35), rotation=((c, 0, s), (0, 1, 0), (-s, 0, c)))
rubber = wb.Material(youngs_modulus=5e4, poissons_ratio=0.35, density=1000.0)
scene = wb.Scene(
    [wb.SoftBody("cube", tilted, rubber)],
    obstacles=[wb.floor(friction=0.6)],
    domain=((-0.5, -0.4, 0.0), (0.5, 0.4, 0.7)),
)
sim = wb.Simulation(scene, wb.MPM(dx=0.02), dt=0.01, substeps=None)
motion = sim.rollout(None, steps=80)
wb.view.film_strip(motion).save("bouncing_cube.png")
