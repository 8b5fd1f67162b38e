"""Soft cubes that fall into a heap.

Six cubes of rubber, each turned by chance. They meet on the grid of their particles, without a law of contact.
"""

import numpy as np
from scipy.spatial.transform import Rotation

import warpbots as wb

cube = wb.shapes.Box((-0.05, -0.05, -0.05), (0.05, 0.05, 0.05))
rubber = wb.Material(youngs_modulus=4e4, poissons_ratio=0.35, density=1000.0, damping=2e-2)
turns = Rotation.random(6, random_state=33).as_matrix()
cubes = []
for k, turn in enumerate(turns):
    place = (0.03 * np.cos(2.4 * k), 0.03 * np.sin(2.4 * k), 0.1 + 0.13 * k)
    cubes.append(wb.SoftBody(f"cube {k}", wb.shapes.Posed(cube, place, turn), rubber))
room = ((-0.5, -0.5, 0.0), (0.5, 0.5, 0.9))
scene = wb.Scene(cubes, obstacles=[wb.floor(friction=0.9)], domain=room)
sim = wb.Simulation(scene, wb.MPM(dx=0.02), dt=0.01, substeps=None)
motion = sim.rollout(None, steps=100)
wb.view.film_strip(motion).save("heap_of_cubes.png")
