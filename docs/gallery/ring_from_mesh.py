"""A rubber ring from a mesh file.

Any closed mesh that trimesh can read becomes a body: here a torus in millimetres, written as STL and read back.
"""

import trimesh

import warpbots as wb

trimesh.creation.torus(major_radius=80.0, minor_radius=30.0).export("ring.stl")
ring = wb.shapes.load_mesh("ring.stl", scale=0.001)  # millimetres
upright = wb.shapes.Posed(ring, translation=(0.0, 0.0, 0.25), rotation=((1, 0, 0), (0, 0, -1), (0, 1, 0)))
rubber = wb.Material(youngs_modulus=3e4, poissons_ratio=0.4, density=1000.0)
scene = wb.Scene(
    [wb.SoftBody("ring", upright, rubber, velocity=(0.8, 0.0, 0.0), color=(0.85, 0.5, 0.3))],
    obstacles=[wb.floor(friction=0.8)],
    domain=((-0.3, -0.15, 0.0), (0.9, 0.15, 0.5)),
)
sim = wb.Simulation(scene, wb.MPM(dx=0.015), dt=0.01, substeps=None)
motion = sim.rollout(None, steps=70)
wb.view.film_strip(motion).save("ring_from_mesh.png")
