"""An arm from MJCF lifts a soft cube.

MuJoCo's parser reads the arm with its gripper; a cube of foam under MPM is added to its scene. Both feel the contact.
"""

import dataclasses
from pathlib import Path

import torch

import warpbots as wb

Path("arm.xml").write_text("""<mujoco><default><position kp="400" kv="30"/></default><worldbody><body pos="0 0 .14">
<joint name="turn" axis="0 0 1" damping=".1"/><joint name="lift" type="slide" axis="0 0 1"/><geom type="capsule"
fromto="-.02 0 .06 .2 0 .06" size=".02" rgba=".4 .5 .65 1" density="500"/><body pos=".2 0 0"><joint name="left"
type="slide" axis="0 -1 0"/><geom type="box" pos="0 .06 -.04" size=".03 .012 .09" friction="1" rgba=".3 .33 .4 1"
density="500"/></body><body pos=".2 0 0"><joint name="right" type="slide" axis="0 1 0"/><geom type="box"
pos="0 -.06 -.04" size=".03 .012 .09" friction="1" rgba=".3 .33 .4 1" density="500"/></body></body></worldbody>
<actuator><position joint="turn" kp="20" kv="2" ctrlrange="-1 1"/><position joint="lift" ctrlrange="-.1 .1"/>
<position joint="left" ctrlrange="-.03 .03"/><position joint="right" ctrlrange="-.03 .03"/></actuator></mujoco>""")
steps = 120
foam, box = wb.Material(3e4, 0.3, 200.0), wb.shapes.Box((0.165, -0.035, 0.0), (0.235, 0.035, 0.07))
cube = wb.SoftBody("cube", box, foam, friction=1.0, color=(0.95, 0.6, 0.25))
arm = wb.robots.load("arm.xml", obstacles=[wb.floor()])
scene = dataclasses.replace(arm, bodies=[*arm.bodies, cube], domain=((-0.1, -0.1, 0.0), (0.3, 0.3, 0.3)))
sim = wb.Simulation(scene, wb.Coupled(wb.MPM(dx=0.015), wb.Articulated()), dt=0.01, substeps=None)
ramp = lambda start: (torch.arange(steps) / 100 - start).div(0.25).clamp(0.0, 1.0)
motion = sim.rollout(torch.stack([ramp(0.8), ramp(0.45), ramp(0.1), ramp(0.1)], dim=1), steps)
wb.view.film_strip(motion).save("arm_from_mjcf.png")
