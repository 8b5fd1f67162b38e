"""A truss that yields.

A loaded girder of bars that deform plastically beyond a strain of 1 %: it sags, and stays bent.
"""

import warpbots as wb

cells = 6
joints = [(0.2 * i, 0.2 * j) for i in range(cells + 1) for j in (0, 1)]
bars = [(2 * i, 2 * i + 1) for i in range(cells + 1)]
for i in range(cells):
    bars += [(2 * i, 2 * i + 2), (2 * i + 1, 2 * i + 3), (2 * i, 2 * i + 3), (2 * i + 1, 2 * i + 2)]
ends = wb.shapes.Box((-0.01, -0.01), (0.01, 0.21))
tip = wb.shapes.Box((1.19, -0.01), (1.21, 0.21))
metal = wb.Material(youngs_modulus=1e8, density=2000.0, damping=1e-3, yield_strain=0.01)
girder = wb.SoftBody("girder", wb.shapes.Truss(joints, bars, radius=0.005), metal, {"root": ends, "tip": tip})
scene = wb.Scene(
    [girder], constraints=[wb.Constraint("root")], loads=[wb.Load("tip", (0.0, -1.2e3))], gravity=(0.0, 0.0)
)
sim = wb.Simulation(scene, wb.MassSpring(spacing=0.2, drag=2.0), dt=2e-3, substeps=None)
motion = sim.rollout(None, steps=300)
wb.view.film_strip(motion).save("yielding_truss.png")
