"""A cloth falls over a ball that moves.

A clamp in the middle of the ball goes round in a circle, as a table prescribes. Friction takes the cloth along.
"""

import numpy as np

import warpbots as wb

sheet = wb.shapes.Sheet.rectangle((-0.3, -0.3), (0.3, 0.3), thickness=0.002, cells=(16, 16), bending=1e-3)
level = wb.shapes.Posed(sheet, translation=(0.0, 0.0, 0.36), rotation=((1, 0, 0), (0, 1, 0), (0, 0, 1)))
linen = wb.Material(youngs_modulus=1e5, poissons_ratio=0.3, density=250.0)
cloth = wb.SoftBody("cloth", level, linen, friction=0.8, color=(0.85, 0.35, 0.3))
core = {"core": wb.shapes.Sphere((0.0, 0.0, 0.2), 0.07)}
rubber = wb.Material(youngs_modulus=2e5, poissons_ratio=0.3, density=500.0)
ball = wb.SoftBody("ball", wb.shapes.Sphere((0, 0, 0.2), 0.13), rubber, core, friction=0.8, color=(0.35, 0.6, 0.85))
way = wb.PrescribedMotion.sampled(
    lambda t: (0.15 * np.sin(5.0 * t) * min(t / 0.4, 1.0), 0.1 * (1.0 - np.cos(5.0 * t)), 0.0), 2.0, interval=0.05
)
clamp = wb.Constraint("core", name="clamp", motion=way)
scene = wb.Scene([cloth, ball], constraints=[clamp], obstacles=[wb.floor()])
sim = wb.Simulation(scene, wb.ProjectiveDynamics(cell_size=0.05), dt=0.01)
motion = sim.rollout(None, steps=150)
wb.view.film_strip(motion).save("cloth_over_a_moving_ball.png")
