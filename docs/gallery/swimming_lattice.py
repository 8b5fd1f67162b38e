"""A wave of growth runs along a strip.

Its upper and lower halves lengthen in turn, and the strip bends into a travelling wave.
"""

import warpbots as wb

Box = wb.shapes.Box
halves = {"upper": Box((0.0, 0.02), (0.6, 0.04)), "lower": Box((0.0, 0.0), (0.6, 0.02))}
rubber = wb.Material(youngs_modulus=1e5, poissons_ratio=0.25, density=1000.0, damping=2e-3)
strip = wb.SoftBody("strip", Box((0.0, 0.0), (0.6, 0.04)), rubber, halves, color=(0.45, 0.7, 0.45))
waves = [
    wb.actuators.Oscillation(n, n, 0.1, 2.0, phase, wave=(15.0, 0.0))
    for n, phase in {"upper": 0.0, "lower": 3.14}.items()
]
scene = wb.Scene([strip], waves, gravity=(0.0, 0.0))
sim = wb.Simulation(scene, wb.MassSpring(spacing=0.01), dt=5e-3)
motion = sim.rollout(None, steps=200)
wb.view.film_strip(motion).save("swimming_lattice.png")
