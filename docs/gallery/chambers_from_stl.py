"""A caterpillar with three chambers of air, from an STL file.

The inner surfaces of the file bound the chambers, and a wave of pressure swells one after another.
The walls are one linear tetrahedron thick and bend several times too little; quadratic ones do not, but take longer.
"""

import numpy as np
import torch
import trimesh

import warpbots as wb

x = np.linspace(0.0, 120.0, 49)  # millimetres
radius = np.maximum(20.0 * np.abs(np.sin(np.pi * x / 40.0)) ** 0.5, 11.0) * (x % 120.0 > 0.0)
skin = trimesh.creation.revolve(np.stack([radius, x], axis=1), sections=32)
skin.apply_transform(trimesh.transformations.rotation_matrix(np.pi / 2, (0, 1, 0)))  # along x
rooms = [trimesh.creation.icosphere(3, 14.0).apply_translation((c, 0, 0)) for c in (20, 60, 100)]
trimesh.util.concatenate([skin, *rooms]).export("caterpillar.stl")
shape = wb.shapes.load_mesh("caterpillar.stl", scale=0.001, inner="void")
parts = {f"{k}": wb.shapes.Box((0.04 * k, -0.03, -0.03), (0.04 * k + 0.04, 0.03, 0.03)) for k in range(3)}
silicone = wb.Material(youngs_modulus=1e5, poissons_ratio=0.4, density=1000.0, damping=5e-3)
caterpillar = wb.SoftBody("caterpillar", shape, silicone, parts, color=(0.55, 0.8, 0.35))
air = [wb.actuators.Cavity(name, name, max_pressure=1e4) for name in parts]
scene = wb.Scene([caterpillar], air, [wb.floor(height=-0.0205, friction=0.5)])
sim = wb.Simulation(scene, wb.ProjectiveDynamics(0.012, elements="tetrahedra", collisions=False), dt=0.01)
phase = np.pi * (torch.arange(steps := 120)[:, None] / 60.0 - 0.35 * torch.arange(3))
motion = sim.rollout(torch.sin(phase).clamp(min=0.0), steps, observe=lambda s: sim.sense(s, torch.zeros(3)).volume)
print(f"{1e6 * motion.observation.min():.1f} to {1e6 * motion.observation.max():.1f} ml of air in a chamber")
wb.view.film_strip(motion).save("chambers_from_stl.png")
