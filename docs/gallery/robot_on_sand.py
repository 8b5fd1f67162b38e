"""A rover climbs a slope of sand.

Sand is MPM, the rover is articulated bodies: `wb.Coupled` exchanges their impulses in every step. Instead of the sand,
gravity is tilted by 15 degrees.
"""

import math

import torch

import warpbots as wb

grains = wb.Material(2e5, 0.3, 1600.0, "hencky", plasticity=wb.materials.DruckerPrager(friction_angle=35.0))
sand = wb.SoftBody("sand", wb.shapes.Box((0, 0, 0), (0.4, 0.14, 0.06)), grains, friction=0.5, color=(0.85, 0.7, 0.45))
body = wb.shapes.Box((-0.07, -0.03, 0), (0.07, 0.03, 0.03))
hull = wb.RigidBody("hull", body, 1500.0, position=(0.13, 0.07, 0.1), color=(0.4, 0.5, 0.65))
roller = {"shape": wb.shapes.Cylinder((0, -0.05, 0), (0, 0.05, 0), 0.03), "density": 800.0, "friction": 0.5}
axles = {"rear": {"position": (0.08, 0.07, 0.092)}, "front": {"position": (0.18, 0.07, 0.092)}}
rollers = [wb.RigidBody(name, **roller, **at, color=(0.3, 0.33, 0.4)) for name, at in axles.items()]
joints = [wb.Joint(name, "revolute", "hull", name, axis=(0, 1, 0), **at) for name, at in axles.items()]
drives = [wb.actuators.Torque(f"drive {name}", name, max_torque=0.06) for name in axles]
box = wb.walls((0, 0, 0), (0.4, 0.14, 0.24), "friction", 0.5)
tilt, room = math.radians(15), ((0, 0, 0), (0.4, 0.14, 0.24))
gravity = (-9.81 * math.sin(tilt), 0, -9.81 * math.cos(tilt))
scene = wb.Scene([sand, hull, *rollers], drives, box, joints=joints, domain=room, gravity=gravity)
sim = wb.Simulation(scene, wb.Coupled(wb.MPM(dx=0.02), wb.Articulated()), dt=5e-3, substeps=None)
throttle = (torch.arange(steps := 90) / 20).clamp(max=1.0)[:, None].expand(steps, 2)
motion = sim.rollout(throttle, steps)
print(f"it climbs {100 * float(sim.sense(motion.final).center[0, 0, 0] - hull.position[0]):.0f} cm")
wb.view.film_strip(motion).save("robot_on_sand.png")
