"""A bellows with two chambers of air, from an STL file.

The inner surfaces of the file bound the chambers. Air goes into the rear one first, then into the front one.
The walls are one linear tetrahedron thick and bend several times too little; quadratic ones do not, but take longer.
"""

import torch
import trimesh

import warpbots as wb

Box = wb.shapes.Box
corners = [((0, 0, 0), (120, 40, 22)), ((4, 5, 11), (58, 35, 19)), ((62, 5, 11), (116, 35, 19))]
trimesh.util.concatenate([trimesh.creation.box(bounds=c) for c in corners]).export("bellows.stl")
shape = wb.shapes.load_mesh("bellows.stl", scale=0.001, inner="void")  # millimetres
halves = {
    "rear": Box((-0.01, -0.01, -0.01), (0.06, 0.05, 0.03)),
    "front": Box((0.06, -0.01, -0.01), (0.13, 0.05, 0.03)),
}
silicone = wb.Material(youngs_modulus=1e5, poissons_ratio=0.4, density=1000.0, damping=5e-3)
bellows = wb.SoftBody("bellows", shape, silicone, halves, color=(0.9, 0.65, 0.55))
air = [wb.actuators.Cavity(name, name, max_pressure=1.2e4) for name in halves]
scene = wb.Scene([bellows], air, [wb.floor(height=-0.001, friction=0.5)])
sim = wb.Simulation(scene, wb.ProjectiveDynamics(0.012, elements="tetrahedra", collisions=False), dt=0.01)
steps = 60
time = torch.linspace(0.0, 2.0, steps)
motion = sim.rollout(torch.stack([time.clamp(max=1.0), (time - 1.0).clamp(min=0.0)], dim=1), steps)
volume = 1e6 * sim.sense(motion.final, torch.ones(2)).volume[0]
print(f"{volume[0]:.1f} and {volume[1]:.1f} ml of air")
wb.view.film_strip(motion).save("chambers_from_stl.png")
