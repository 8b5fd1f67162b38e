"""Rubber, clay, sand and water dropped side by side.

Four blocks of the same size, with four laws on one grid: rubber bounces, clay keeps its new shape, sand comes to rest
as a heap, and water runs up against the heap and the wall.
"""

import warpbots as wb

yields = wb.materials.VonMises(yield_stress=4e3, hardening=1e4)
matter = {
    "rubber": wb.Material(1e5, 0.4, 1000.0),
    "clay": wb.Material(3e5, 0.35, 1500.0, law="hencky", plasticity=yields),
    "sand": wb.Material(2e5, 0.3, 1500.0, law="hencky", plasticity=wb.materials.DruckerPrager(friction_angle=33.0)),
    "water": wb.Material(1e5, 1 / 3, 1000.0, law="weakly_compressible", damping=1e-4),
}
left = {"rubber": 0.05, "clay": 0.3, "sand": 0.6, "water": 1.0}
colors = {"rubber": (0.85, 0.4, 0.35), "clay": (0.6, 0.45, 0.35), "sand": (0.9, 0.75, 0.4), "water": (0.3, 0.55, 0.85)}
blocks = [
    wb.SoftBody(name, wb.shapes.Box((x, 0.3), (x + 0.16, 0.46)), matter[name], color=colors[name])
    for name, x in left.items()
]
box = wb.walls((0.0, 0.0), (1.3, 0.8), condition="friction", friction=0.5)
sim = wb.Simulation(wb.Scene(blocks, obstacles=box), wb.MPM(dx=0.0075), dt=0.01, substeps=None)
motion = sim.rollout(None, steps=80)
wb.view.film_strip(motion).save("four_kinds_of_matter.png")
