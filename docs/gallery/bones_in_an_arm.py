"""An arm with bones.

A rigid body inside a soft one is a bone. A motor at the elbow bends the arm, and its flesh follows.
"""

import torch

import warpbots as wb

Box, half = wb.shapes.Box, 0.015
flesh = wb.Material(youngs_modulus=1e5, poissons_ratio=0.3, density=1000.0, law="corotated")
arm = wb.SoftBody("arm", Box((0, -0.03, -0.03), (0.3, 0.03, 0.03)), flesh, color=(0.9, 0.7, 0.6))
upper = wb.RigidBody("upper", Box((0, -half, -half), (0.135, half, half)), 1800.0, color=(0.93, 0.9, 0.8))
lower = wb.RigidBody("lower", Box((0.165, -half, -half), (0.285, half, half)), 1800.0, color=(0.93, 0.9, 0.8))
shoulder = wb.Joint("shoulder", "fixed", None, "upper")
elbow = wb.Joint("elbow", "revolute", "upper", "lower", position=(0.15, 0, 0), axis=(0, -1, 0))
scene = wb.Scene([arm, upper, lower], [wb.actuators.Torque("biceps", "elbow", 3.0)], joints=[shoulder, elbow])
sim = wb.Simulation(scene, wb.ProjectiveDynamics(cell_size=0.015), dt=1 / 30)
steps = 30
motion = sim.rollout(torch.linspace(0.0, 1.0, steps)[:, None], steps)
front = wb.shapes.HalfSpace((0, 0, 0), (0, 1, 0))  # matter here is left out of the picture
wb.view.film_strip(motion, 4, cut=front).save("bones_in_an_arm.png")
