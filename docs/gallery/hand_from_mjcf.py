"""A hand from MJCF lifts a ball.

MuJoCo's parser reads the file; position actuators become servos. The fingers close, then the palm rises.
"""

from pathlib import Path

import torch

import warpbots as wb

finger = """<body euler="0 0 {a}"><body pos=".06 0 0"><joint name="knuckle{a}" axis="0 1 0" range="-60 60"/>
<geom type="capsule" fromto="0 0 0 .04 0 -.05" size=".01"/><body pos=".04 0 -.05"><joint name="tip{a}" axis="0 1 0"
range="-60 60"/><geom type="capsule" fromto="0 0 0 0 0 -.08" size=".01" friction="1.5"/></body></body></body>"""
motor = '<position joint="{j}{a}" kp="2" kv=".05" ctrlrange="0 .6"/>'
fingers = "".join(finger.format(a=a) for a in (0, 120, 240))
motors = "".join(motor.format(j=j, a=a) for a in (0, 120, 240) for j in ("knuckle", "tip"))
Path("hand.xml").write_text(f"""<mujoco><worldbody><body pos="0 0 .16"><joint name="lift" type="slide" axis="0 0 1"/>
<geom type="cylinder" size=".06 .01"/>{fingers}</body><body pos="0 0 .05"><freejoint/><geom size=".05" density="200"
friction="1.5" rgba=".95 .6 .25 1"/></body></worldbody><actuator>{motors}<position joint="lift" kp="500" kv="60"
ctrlrange="0 .1"/></actuator></mujoco>""")
sim = wb.Simulation(wb.robots.load("hand.xml", obstacles=[wb.floor()]), wb.Articulated("bdf1"), dt=2e-3)
time = torch.linspace(0.0, 1.2, steps := 600)
close, lift = (time / 0.4).clamp(max=1.0), 2.0 * ((time - 0.5) / 0.5).clamp(0.0, 1.0) - 1.0
motion = sim.rollout(torch.stack([2.0 * close - 1.0] * 6 + [lift], dim=1), steps)
wb.view.film_strip(motion).save("hand_from_mjcf.png")
