"""One scene under three solvers.

The same finger with the same muscle: only the solver changes. The picture shows the height of its tip.
"""

import matplotlib.pyplot as plt
import torch

import warpbots as wb

Box = wb.shapes.Box
regions = {
    "root": Box((0, 0, 0), (0.011, 1, 1)),
    "top": Box((0, 0, 0.02), (0.2, 0.04, 0.04)),
    "tip": Box((0.19, 0, 0), (0.2, 1, 1)),
}
rubber = wb.Material(youngs_modulus=2e5, poissons_ratio=0.25, density=1000.0)
finger = wb.SoftBody("finger", Box((0, 0, 0), (0.2, 0.04, 0.04)), rubber, regions, color=(0.9, 0.65, 0.55))
muscle = wb.actuators.Muscle("pull", "top", (1, 0, 0), max_stress=3.5e4)
scene = wb.Scene([finger], [muscle], constraints=[wb.Constraint("root")], gravity=(0, 0, 0))
(figure, ax), motions = plt.subplots(figsize=(7, 3), layout="constrained"), []
pull = torch.sin(torch.linspace(0.0, 6.0, (steps := 60))).square()[:, None]
for solver in (wb.MPM(), wb.MassSpring(), wb.ProjectiveDynamics()):
    sim = wb.Simulation(scene, solver, dt=0.01)
    tip = sim.region("tip")
    motions.append(motion := sim.rollout(pull, steps, observe=lambda s, tip=tip: s.position[:, tip, 2].mean(dim=1)))
    ax.plot(sim.dt * torch.arange(1, motion.steps + 1), 100 * motion.observation[0], label=type(solver).__name__)
ax.set(xlabel="time [s]", ylabel="height of the tip [cm]")
ax.legend(frameon=False)
figure.savefig("one_finger_three_solvers.png", dpi=150)
