"""A hand that is grown by a grammar.

Each stage adds a finger or a phalanx: one more production of the rules makes one more robot, with its shape, its joints
and its motors, and it bends at once.
"""

import dataclasses

import torch

import warpbots as wb
from warpbots.design import hand_grammar, knuckle, mounted, star_palm

COLORS = [(0.35, 0.4, 0.5), (0.93, 0.6, 0.3), (0.35, 0.6, 0.87)]  # of the palm, and of links in turn
parts = {"star": star_palm(4), "root": knuckle()}
motions = []
for fingers, phalanges in ((1, 1), (1, 2), (2, 2), (3, 2), (4, 2), (4, 3)):
    rules = {
        "hand": ["star(" + ", ".join(f"finger-{k}: finger" for k in range(fingers)) + ")"],
        "finger": ["root" + " joint phalanx" * phalanges + " tip"],
    }
    (hand,) = hand_grammar(rules, parts).topologies(largest=40)
    scene = mounted(hand.assembly(), torque=0.02, damping=0.01, gravity=(0.0, 0.0, 0.0))
    links = [dataclasses.replace(link, color=COLORS[k and 1 + k % 2]) for k, link in enumerate(scene.bodies)]
    scene = dataclasses.replace(scene, bodies=links)
    sim = wb.Simulation(scene, wb.Articulated(), dt=0.02)
    bend = torch.tensor([0.0 if "knuckle" in joint.name else 1.0 for joint in scene.joints[1:]])
    motions.append(motion := sim.rollout(bend.expand(20, -1), 20))
print(hand)
wb.view.film_strip(motion).save("hand_that_grows.png")
