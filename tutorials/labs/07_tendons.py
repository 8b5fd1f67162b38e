# %% [markdown]
# # Lab 7. Tendons
#
# **Goals.** You can predict the shape of a soft finger from the tension of its tendon, say how far a motor has to wind the tendon in, and tell an effect of the ends from a fault of the theory.
#
# **Time.** 90 minutes: 15 to read and to predict by hand, 60 for four questions, 15 for the open one. The simulations take 10 s on one core.
#
# **Before.** Tutorials 03, *solvers*, and 05, *projective dynamics*.
#
# ![A tendon along a finger, straight, and pulled in so that the finger bends](pictures/cable_path.png)
#
# Write the name under which you hand this notebook in. The numbers of this lab follow from it.

# %%
student = ""

# %%
import math

import matplotlib.pyplot as plt
import numpy as np
import torch

import warpbots as wb
from warpbots.exercises import check
from warpbots.labs import Numbers

mine = Numbers(student, "tendons")

# %% [markdown]
# ## 1. The shape of a bent finger
#
# A wall holds the left end of a finger, which lies along $x$. A tendon runs through 13 guides at the distance $r$ above the axis, and pulls its right end. (The drawing shows five of the guides, and everything upside down: there the tendon runs below the axis, and the finger bends downwards. Its $R$ and $u$ are not needed.) The same moment bends every section, so the axis becomes an arc of a circle: its *curvature* $\kappa$ [1/m], the turn per length, is the same everywhere. The section at the distance $s$ from the wall has turned by the angle $\kappa s$.
#
# **Question 1 (3 points).** The axis keeps its length $\ell$. Write the function that returns the coordinates of its tip: $x$ along the straight finger, $z$ across it, positive upwards. The root is at (0, 0), and a positive curvature bends upwards. The function will be tried with curvatures of both signs, and with zero.
#
# *Predict first:* is the tip of a half circle at $x = 0$?


# %% answer="tip"
def tip(curvature, length):
    "Coordinates x and z [m] of the tip of an axis with a curvature [1/m] and a length [m]."
    ### BEGIN SOLUTION
    if curvature == 0:
        return length, 0.0
    angle = curvature * length
    return math.sin(angle) / curvature, (1 - math.cos(angle)) / curvature
    ### END SOLUTION
    ...


# %% check="tip" points=3
def arrives(tip, curvature, length):
    "Whether the tip is at the end of many short pieces, each in the direction of its angle."
    middles = (np.arange(4000) + 0.5) * length / 4000
    pieces = np.stack([np.cos(curvature * middles), np.sin(curvature * middles)]) * length / 4000
    return np.allclose(tip(curvature, length), pieces.sum(axis=1), rtol=0, atol=1e-5 * length)


turn = mine.number("turn", 4.0, 9.0)
hint = "Add up pieces of the axis, each in the direction of its angle. Are angles in radians? What is left if κ is 0?"
check("Question 1", lambda tip: arrives(tip, turn, 0.15), hint)
### BEGIN HIDDEN TESTS
check("Question 1", lambda tip: all(arrives(tip, k, 0.2) for k in (-turn, 0.0, 2 * turn)), hint)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. The curvature from the tension
#
# Now the finger itself, of silicone. `pulled` winds a length of its tendon in and returns what is measured in the equilibrium: the tension, by how much each of the 12 pieces of the tendon between guides has shortened, and the angles of the 13 sections at the guides. There is no gravity.

# %%
length = mine.number("length", 0.12, 0.15)  # [m]
width = mine.number("width", 0.024, 0.030)  # [m]
height, offset = 0.02, 0.005  # of the finger; of its tendon from the axis, r [m]
modulus = mine.number("modulus", 1.5e5, 3.0e5)  # [Pa]
print(f"length {length:g} m, width {width:g} m, height {height:g} m, offset {offset:g} m, modulus {modulus:g} Pa")


def finger(length, width, height, modulus, plate=False, stiffness=50.0, cells=2):
    "A finger with a tendon of a stiffness [N/m] at height / 4 above its axis; with a rigid plate on its end, or without."
    grid = wb.meshing.tetrahedra(wb.shapes.Box((0, 0, 0), (6, 1, 1)), 1 / cells)
    shape = wb.shapes.TetMesh(grid.vertices * [length / 6, width, height], grid.tets)
    silicone = wb.Material(modulus, poissons_ratio=0.4, density=1070.0)
    root = wb.shapes.HalfSpace((1e-5, 0, 0), (1, 0, 0))
    bodies = [wb.SoftBody("finger", shape, silicone, {"root": root}, color=(0.9, 0.65, 0.55))]
    if plate:  # it holds the nodes on the end
        end = wb.shapes.Box((length - 1e-5, 0, 0), (length + 0.002, width, height))
        bodies.append(wb.RigidBody("plate", end, density=1200.0, color=(0.4, 0.4, 0.45)))
    guides = [(length * i / 12, width / 2, 0.75 * height) for i in range(13)]
    tendon = wb.actuators.Cable("tendon", guides, stiffness)
    scene = wb.Scene(bodies, [tendon], constraints=[wb.Constraint("root")], gravity=(0.0, 0.0, 0.0))
    solver = wb.ProjectiveDynamics(length / 6 / cells, elements="quadratic_tetrahedra", collisions=False)
    return wb.Simulation(scene, solver, dt=0.2)


def pulled(sim, winding):
    "Tension [N], shortening of the 12 pieces of the tendon [m], angles of the 13 sections [rad] of a finger."
    (tendon,) = sim.scene.actuators
    guides = torch.tensor(tendon.waypoints)
    rest, x = sim.state().position[0], sim.equilibrium([winding / guides[-1, 0].item()]).position[0]
    nodes = torch.cdist(guides, rest).argmin(dim=1)
    before, after = (p[nodes].diff(dim=0).norm(dim=1) for p in (rest, x))
    tension = tendon.stiffness * (winding - (before - after).sum().item())
    top, bottom = rest[:, 2] > rest[:, 2].max() - 1e-5, rest[:, 2] < 1e-5
    sections = [(rest[:, 0] - guide[0]).abs() < 1e-5 for guide in guides]
    up = torch.stack([x[section & top].mean(dim=0) - x[section & bottom].mean(dim=0) for section in sections])
    return tension, (before - after).numpy(), torch.atan2(-up[:, 0], up[:, 2]).numpy()


plain = finger(length, width, height, modulus)
wb.view.film_strip(plain.rollout(torch.linspace(0.0, 0.4, 6)[:, None], 6), 2)

# %% [markdown]
# **Question 2 (3 points).** Which curvature [1/m] does a tension give? Write the function for a finger with a rectangular section, from the moment of the tension about the axis. It is compared with the *middle half* of fingers, and will be tried with other sizes. The tolerance is 5 %.


# %% answer="curvature"
def curvature(tension, modulus, width, height, offset):
    "Curvature [1/m] of a finger from the tension of its tendon [N]; modulus in Pa, lengths in m."
    ### BEGIN SOLUTION
    second_moment = width * height**3 / 12
    return tension * offset / (modulus * second_moment)
    ### END SOLUTION
    ...


# %% check="curvature" points=3
def bends(curvature, sim, modulus, length, width, height):
    tension, _, angles = pulled(sim, 0.1 * length)
    measured = (angles[9] - angles[3]) / (length / 2)
    return abs(curvature(tension, modulus, width, height, height / 4) / measured - 1) < 0.05


hint = "Moment = E I κ. About which axis does the section turn, and which of its two sides enters I as a cube?"
check("Question 2", lambda curvature: bends(curvature, plain, modulus, length, width, height), hint)
### BEGIN HIDDEN TESTS
other = (2e5, 0.14, 0.018, 0.026)
taller = finger(other[1], *other[2:], other[0])
check(
    "Question 2", lambda curvature: bends(curvature, taller, *other), f"{hint} Try a finger that is taller than wide."
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. A set-up that can be believed
#
# Two things shorten the tendon. The finger bends towards it: where two sections turn by $\Delta\theta$ relative to each other, the piece between them shortens by $r\,\Delta\theta$. And the tension $T$ compresses the finger: a piece of the length $\ell$ shortens by $T\ell/(EA)$, with the area $A$ of the section. Here both are about as large. `ratios` compares each piece with the sum, and the figure shows a mesh with two cells across the height, and one with four.


# %%
def ratios(sim, modulus, length, width, height):
    "Shortening of the 12 pieces of the tendon, divided by the expected one."
    tension, shortening, angles = pulled(sim, 0.1 * length)
    compression = tension / (modulus * width * height) * length / 12
    return shortening / (height / 4 * np.diff(angles) + compression)


_, ax = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
for cells in (2, 4):
    found = ratios(finger(length, width, height, modulus, cells=cells), modulus, length, width, height)
    ax.plot(np.arange(12) + 0.5, found, "o-", ms=3, lw=1, label=f"{cells} cells: {found.mean():.2f} on average")
ax.axhline(1.0, color="0.6", lw=0.8)
labels = ax.set(xlabel="guide, from root to tip", ylabel="measured / expected", xticks=range(13))
legend = ax.legend(frameon=False)

# %% [markdown]
# On average the theory is off, and a *finer* mesh makes it worse. Something is wrong, either with the theory or with the experiment.
#
# **Question 3 (3 points).** Find a set-up in which theory and simulation agree within 6 % for *every* piece that is measured, in fingers of other sizes too: does the end have a `plate` (True or False), and from which guide `first` to which guide `last` (0 to 12) are the pieces measured? At least six pieces have to be measured. There are several right answers.
#
# *Think first:* a force that acts at a point of an elastic body pushes it in. How far, if the point becomes smaller and smaller?

# %% answer="setup"
plate = ...
first = ...
last = ...
### BEGIN SOLUTION
plate, first, last = True, 1, 11
### END SOLUTION


# %% check="setup" points=3
def agrees(plate, first, last, modulus, length, width, height):
    found = ratios(finger(length, width, height, modulus, bool(plate)), modulus, length, width, height)
    return 0 <= first <= last - 6 <= 6 and np.abs(found[first:last] - 1).max() < 0.06


hint = "Which pieces are off? What holds finger or tendon there, and how far does its force reach into the finger?"
check("Question 3", lambda plate, first, last: agrees(plate, first, last, modulus, length, width, height), hint)
### BEGIN HIDDEN TESTS
check("Question 3", lambda plate, first, last: agrees(plate, first, last, 2e5, 0.10, 0.024, 0.02), hint)
### END HIDDEN TESTS

# %% [markdown]
# ## 4. What the motor has to do
#
# Now the finger has a plate, and a tendon that a motor winds in. The tendon is stiff, but not rigid. The tip section is to turn by your goal.

# %%
goal = mine.number("goal", 8.0, 20.0)  # [degrees]
stiffness = 100 * mine.number("stiffness", 10.0, 30.0)  # of the whole tendon [N/m]
print(f"goal {goal:g} degrees, tendon {stiffness:g} N/m")

# %% [markdown]
# **Question 4 (4 points).** Which length [m] of the tendon does the motor wind in? The tolerance is 4 % of the angle.

# %% answer="winding"
winding = ...  # [m]
### BEGIN SOLUTION
angle = math.radians(goal)
tension = modulus * width * height**3 / 12 * angle / length / offset
winding = offset * angle + tension * length / (modulus * width * height) + tension / stiffness
### END SOLUTION


# %% check="winding" points=4
def turned(winding):
    "Angle by which the tip section turns [degrees]."
    _, _, angles = pulled(finger(length, width, height, modulus, True, stiffness), winding)
    return math.degrees(angles[-1])


hint = "Work backwards: angle, curvature, tension. Then add up: which three things lengthen or shorten? Are angles in radians, and the length in m?"
check("Question 4", lambda winding: 0 < winding < length and abs(turned(float(winding)) / goal - 1) < 0.04, hint)

# %% [markdown]
# ## 5. A finger that carries something
#
# **Question 5 (4 points, read by a person).** A weight hangs at the tip of the bent finger. Is its curvature still the same everywhere? Sketch the moment along the finger, say where it bends most, and how the offset $r(s)$ of the tendon should vary so that the loaded finger is an arc again. Then try it: add a `wb.Load`, or gravity, to the scene of `finger`. At most ten sentences, and one figure.

# %% [markdown] open="load" points=4
# *Your answer.*
