"""Hands from a grammar.

A dozen random topologies of one grammar: palms with one finger or two, with and without knuckles, of any number of
phalanges. Each is a scene, in which all motors have turned their hinges for some time.
"""

import dataclasses
import textwrap

import matplotlib.pyplot as plt
import torch

import warpbots as wb
from warpbots.design import hand_grammar, mounted

COLORS = [(0.35, 0.4, 0.5), (0.93, 0.6, 0.3), (0.35, 0.6, 0.87)]  # of the palm, and of links in turn
motions = []
figure, axes = plt.subplots(3, 4, figsize=(11, 7), layout="constrained")
for ax, hand in zip(axes.flat, hand_grammar().sample(12, largest=24, seed=2), strict=True):
    scene = mounted(hand.assembly(), torque=0.02, damping=0.01, gravity=(0.0, 0.0, 0.0))
    links = [dataclasses.replace(link, color=COLORS[k and 1 + k % 2]) for k, link in enumerate(scene.bodies)]
    scene = dataclasses.replace(scene, bodies=links)
    sim = wb.Simulation(scene, wb.Articulated(), dt=0.02)
    motion = sim.rollout(torch.ones(20, sim.channels), 20)
    motions.append(motion)
    *_, (_, origins, frames) = motion.poses()
    wb.view.draw(scene, ax=ax, poses=(origins, frames))
    ax.set_title(textwrap.fill(str(hand), 34), fontsize=7)
figure.savefig("hands_from_a_grammar.png", dpi=120)
