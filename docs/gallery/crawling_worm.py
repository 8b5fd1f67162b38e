"""A worm that crawls by a travelling wave.

Matter actively swells and shrinks, in a wave that starts at the tail. Friction moves the worm.
"""

import warpbots as wb

box = wb.shapes.Box((0.0, 0.0), (0.4, 0.08))
worm = wb.SoftBody("worm", box, wb.Material(1e5, 0.25, 1000.0, damping=2e-3), {"all": box}, color=(0.85, 0.4, 0.5))
wave = wb.actuators.Oscillation("wave", "all", amplitude=0.4, frequency=2.0, wave=(32.0, 0.0))
scene = wb.Scene([worm], [wave], [wb.floor(dim=2, friction=0.6)])
sim = wb.Simulation(scene, wb.MassSpring(spacing=0.01, contact_stiffness=1e7), dt=0.01, substeps=None)
motion = sim.rollout(None, steps=150)
start, end = (sim.center_of_mass(state)[0, 0].item() for state in (motion.start, motion.final))
print(f"{100 * (end - start):.1f} cm in {motion.steps * sim.dt:g} s")
wb.view.film_strip(motion).save("crawling_worm.png")
