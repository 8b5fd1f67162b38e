"""A trunk with three cables reaches a ball.

The gradient of the distance of its tip from the goal, through a second of motion, says how far to wind each cable.
"""

import torch

import warpbots as wb

Box, side, goal = wb.shapes.Box, 0.02, torch.tensor([0.075, 0.045, 0.075])
silicone = wb.Material(youngs_modulus=8e4, poissons_ratio=0.4, density=1000.0, damping=5e-3)
parts = {"tip": Box((-1, -1, -1), (1, 1, 0.02)), "root": Box((-1, -1, 0.299), (1, 1, 1))}
trunk = wb.SoftBody("trunk", Box((-side, -side, 0.0), (side, side, 0.3)), silicone, parts, color=(0.45, 0.65, 0.9))
route = {"left": (-side, -side), "right": (side, -side), "back": (0.0, side)}
cables = [wb.actuators.Cable(name, [(*c, z / 100) for z in range(30, -1, -3)], 400.0) for name, c in route.items()]
ball = wb.RigidBody("ball", wb.shapes.Sphere(tuple((goal + 0.02).tolist()), 0.015), 500.0, color=(0.95, 0.55, 0.15))
hung = wb.Joint("hung", "fixed", None, "ball")
scene = wb.Scene([trunk, ball], cables, constraints=[wb.Constraint("root")], joints=[hung], contacts=())
sim = wb.Simulation(scene, wb.ProjectiveDynamics(0.02, elements="tetrahedra", collisions=False), dt=1 / 30)
pull, tries, steps = torch.full((3,), 0.1, requires_grad=True), [], 30


def loss():
    tries.append(sim.rollout(torch.linspace(0.0, 1.0, steps)[:, None] * pull, steps))
    return (sim.center_of_mass(tries[-1].final, "tip") - goal).square().sum()


history = wb.fit([pull], loss, lr=0.03, iterations=7)
print(f"{1000 * history.loss[-1] ** 0.5:.0f} mm off")
wb.view.film_strip(motion := tries[-1]).save("trunk_reaches_a_ball.png")
