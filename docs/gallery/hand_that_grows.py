"""A hand that is grown by a grammar.

Each stage adds a finger or a phalanx: one more production of the rules makes one more robot, with its shape, its joints
and its motors, and it bends at once.
"""

import torch

import warpbots as wb
from warpbots.design import hand_grammar, knuckle, mounted, star_palm

parts = {"star": star_palm(4), "root": knuckle()}
motions = []
for fingers, phalanges in ((1, 1), (1, 2), (2, 2), (3, 2), (4, 2), (4, 3)):
    rules = {
        "hand": ["star(" + ", ".join(f"finger-{k}: finger" for k in range(fingers)) + ")"],
        "finger": ["root" + " joint phalanx" * phalanges + " tip"],
    }
    (hand,) = hand_grammar(rules, parts).topologies(largest=40)
    scene = mounted(hand.assembly(), torque=0.02, damping=0.01, gravity=(0.0, 0.0, 0.0))
    sim = wb.Simulation(scene, wb.Articulated(), dt=0.02)
    bend = torch.tensor([0.0 if "knuckle" in joint.name else 1.0 for joint in scene.joints[1:]])
    motions.append(sim.rollout(bend.expand(20, -1), 20))
motion = motions[-1]
print(hand)
wb.view.film_strip(motion).save("hand_that_grows.png")
