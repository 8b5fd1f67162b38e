# %% [markdown]
# # Lab 6. Air
#
# **Goals.** You can find the pressure for a bend, scale a soft actuator to another material without a new simulation, and account for the energy of its air.
#
# **Time.** 90 minutes: 15 to read and to predict by hand, 60 for three questions, 15 for the open one. The simulations take two minutes on one core.
#
# **Before.** Tutorials 03, *solvers*, and 05, *projective dynamics*.
#
# ![A chamber in a soft wall; pressure acts along the normals of the wall](pictures/chamber.png)
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

mine = Numbers(student, "air")

# %% [markdown]
# ## A finger with a chamber
#
# A bar of silicone, 12 cm long, has a long hole above its middle, which is filled with air. A wall holds its left end. Air at a pressure stretches the upper side more than the lower one, and the finger bends downwards. Pressure is a *follower load*: it acts along the normals of the walls, however they have moved and turned.
#
# There is no gravity here, and steps are long: the solver goes from one equilibrium to the next.

# %%
length, side, cell = 0.12, 0.03, 0.0075
solid = wb.meshing.tetrahedra(wb.shapes.Box((0, 0, 0), (length, side, side)), cell)
x, y, z = solid.vertices[solid.tets].mean(axis=1).T
hole = (x > cell) & (x < length - cell) & (abs(y - side / 2) < cell) & (z > 2 * cell) & (z < side - cell)
regions = {
    "root": wb.shapes.HalfSpace((1e-4, 0, 0), (1, 0, 0)),
    "chamber": wb.shapes.Box((0.005, 0.005, 0.005), (0.115, 0.025, 0.025)),
}
full = 4e5  # pressure at a control of 1 [Pa]
modulus = mine.number("modulus", 1.5e5, 3.0e5)  # [Pa]
silicone = wb.Material(modulus, poissons_ratio=0.4, density=1070.0, damping=5e-3)
used, tets = np.unique(solid.tets[~hole], return_inverse=True)  # a larger hole leaves vertices without a tetrahedron
shape = wb.shapes.TetMesh(solid.vertices[used], tets.reshape(-1, 4))
finger = wb.SoftBody("finger", shape, silicone, regions, color=(0.9, 0.65, 0.55))
air = wb.actuators.Cavity("air", "chamber", max_pressure=full)
scene = wb.Scene([finger], [air], constraints=[wb.Constraint("root")], gravity=(0.0, 0.0, 0.0))
sim = wb.Simulation(scene, wb.ProjectiveDynamics(elements="quadratic_tetrahedra", collisions=False), dt=0.2)
rest = sim.state().position[0]
end = rest[:, 0] > length - 1e-6
top, bottom = (end & (abs(rest[:, 2] - height) < 1e-6) for height in (side, 0.0))


def inflated(pressures, stiffer=1.0):
    "The motion under a sequence of pressures [Pa], one every 0.2 s, of a finger that is stiffer by a factor."
    control = torch.as_tensor(np.asarray(pressures) / full, dtype=torch.float32)[:, None]
    E = stiffer * sim.parameter("youngs_modulus")
    return sim.rollout(control, len(control), youngs_modulus=E)


def bend(pressure, stiffer=1.0):
    "Angle by which the end of the finger has turned downwards at a pressure [Pa], in degrees."
    final = inflated([pressure] * 6, stiffer).final.position[0]
    up = final[top].mean(dim=0) - final[bottom].mean(dim=0)
    return math.degrees(math.atan2(up[0], up[2]))


wb.view.film_strip(inflated(np.linspace(0.0, 0.2 * modulus, 6)), 4)

# %% [markdown]
# ## 1. A pressure for an angle

# %%
goal = mine.number("goal", 5.0, 14.0)
print(f"modulus {modulus:g} Pa, the finger is to bend by {goal} degrees")
tried = modulus * np.array([0.05, 0.1, 0.15, 0.2])
_, ax = plt.subplots(figsize=(6.4, 2.2), layout="constrained")
ax.plot(tried / 1e3, [bend(p) for p in tried], "o-", ms=3, lw=1)
labels = ax.set(xlabel="pressure [kPa]", ylabel="bend [degrees]")

# %% [markdown]
# **Question 1 (3 points).** Which pressure [Pa] bends the finger to your goal? The tolerance is 0.2 degrees.
#
# *Predict first:* will the curve become steeper or flatter with the pressure, and why?

# %% answer="pressure"
pressure = ...  # [Pa]
### BEGIN SOLUTION
low, high = 0.05 * modulus, 0.21 * modulus
for _ in range(9):
    pressure = (low + high) / 2
    low, high = (pressure, high) if bend(pressure) < goal else (low, pressure)
### END SOLUTION

# %% check="pressure" points=3
hint = "Halve an interval whose ends bend too little and too much. Is your pressure in Pa?"
check("Question 1", lambda pressure: abs(bend(pressure) - goal) < 0.2, hint)

# %% [markdown]
# ## 2. Another silicone
#
# **Question 2 (3 points).** The finger is cast again, from a silicone that is stiffer by your factor. Which pressure [Pa] bends it to the same goal? Answer without a simulation: in equilibrium, which combination of pressure and modulus does the shape depend on? The tolerance is 0.2 degrees.

# %%
factor = mine.number("factor", 1.5, 4.0)
print(f"stiffer by a factor of {factor}")

# %% answer="second_pressure"
second_pressure = ...  # [Pa]
### BEGIN SOLUTION
second_pressure = factor * pressure
### END SOLUTION

# %% check="second_pressure" points=3
hint = "Write the equilibrium with stresses in units of E. What remains of p?"
check("Question 2", lambda second_pressure: abs(bend(second_pressure, factor) - goal) < 0.2, hint)

# %% [markdown]
# ## 3. The work of the air
#
# Blowing air into the chamber takes the work $\int (p - p_0)\,dV$. If this is done slowly, all of it becomes elastic energy. Here is the record of an inflation: pressures above that of the atmosphere [Pa], volumes [m³], and the elastic energy [J].

# %%
pressures = np.linspace(0.0, 0.2 * modulus, 25)
record = inflated(pressures)
states = [
    sim.sense(state, torch.tensor([p / full], dtype=torch.float32))
    for (_, state), p in zip(record.states(), [0.0, *pressures], strict=True)
]
volumes = np.array([float(s.volume) for s in states][1:])
energies = np.array([float(s.elastic_energy) for s in states][1:])
_, ax = plt.subplots(figsize=(6.4, 2.2), layout="constrained")
ax.plot(1e6 * volumes, pressures / 1e3, "o-", ms=3, lw=1)
labels = ax.set(xlabel="volume [ml]", ylabel="pressure [kPa]")

# %% [markdown]
# **Question 3 (4 points).** Write the function that returns the work [J] from pressures and volumes. It will be tried on other records. It has to agree with the elastic energy within 4 %, and with $\int p\,dV$ of known curves within 0.1 %.


# %% answer="work"
def work(pressures, volumes):
    "The work [J] of the air, from its pressures above that of the atmosphere [Pa] and its volumes [m^3]."
    ### BEGIN SOLUTION
    return ((pressures[1:] + pressures[:-1]) / 2 * np.diff(volumes)).sum()
    ### END SOLUTION
    ...


# %% check="work" points=4
hint = "A sum over pieces of the curve: which pressure acts along a piece? Are volumes in m³?"
check("Question 3", lambda work: abs(work(pressures, volumes) / (energies[-1] - energies[0]) - 1) < 0.04, hint)
### BEGIN HIDDEN TESTS
line = np.sort(np.random.default_rng(mine.seed("curve")).uniform(1e-5, 3e-5, 200))
known = 2e9 * (line[-1] ** 2 - line[0] ** 2) / 2
check("Question 3", lambda work: abs(work(2e9 * line, line) / known - 1) < 1e-3, hint)
### END HIDDEN TESTS

# %% [markdown]
# ## 4. Faster, or stronger?
#
# **Question 4 (4 points, read by a person).** The wall above the chamber is as thick as the hole is high, the wall below is twice as thick. You may make the hole higher, so that one of the two walls is half as thick. Which one would you choose for more bend per pressure, and which one for more force at the tip per bend? Argue with moments about the neutral line. Then try the lower wall (change `hole`; use pressures up to a tenth of the modulus, also in the film strip, because the larger chamber bursts at twice as much), and explain the difference, if there is one. At most ten sentences, and one figure.

# %% [markdown] open="walls" points=4
# *Your answer.*
