# %% [markdown]
# # Lab 6. Air
#
# **Goals.** You can find the pressure for a bend, scale a soft actuator to another material without a new simulation, account for the energy of its air, and choose a syringe for it.
#
# **Time.** 90 minutes: 15 to read and to predict by hand, 50 for four questions, 25 for the open one. The simulations take about a minute on one core.
#
# **Before.** Tutorials 03, *solvers*, and 05, *projective dynamics*.
#
# ![A section through a PneuNet, at rest and under pressure: the gaps open, and the row of chambers curls towards its base](pictures/pneunet.png)
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
# ## A PneuNet
#
# A *PneuNet* is a row of chambers of silicone with gaps between them, on a base that is stiffer. A channel through the walls joins the chambers. Under pressure the walls bulge, the gaps open, and the row curls towards its base. Here the gaps open faster than the walls bulge, so that walls do not touch each other. Pressure is a *follower load*: it acts along the normals of the walls, however they have moved and turned.
#
# The mesh is a grid of cells, each with a name along each axis. The lists below are the plan: cells in the chambers, in the channel and in the gaps are left out. Walls are one cell thick, of quadratic elements; linear ones would be far too stiff. With cells half as large inside the chambers, the actuator bends by 8 % more: all answers are about the mesh below.
#
# There is no gravity here, and steps are long: the solver goes from one equilibrium to the next.

# %%
base = mine.number("base", 3.0, 6.0)  # modulus of the base, per modulus of the walls
modulus = mine.number("modulus", 1.5e5, 3.0e5)  # [Pa]
print(f"modulus {modulus:g} Pa, and {base:g} times as much in the base")

along = ["root", *["chamber", "wall", "gap", "wall"] * 3, "chamber", "end"]
across = ["side", "inside", "inside", "side"]
upwards = ["base", "channel", "roof", "upper", "top"]
size = dict.fromkeys(("wall", "gap", "end", "side", "channel", "roof", "top"), 0.002)  # [m]
size |= {"root": 0.004, "chamber": 0.006, "inside": 0.004, "base": 0.003, "upper": 0.006}
x_of, y_of, z_of = (np.cumsum([0.0, *(size[name] for name in names)]) for names in (along, across, upwards))


def mesh(gaps=True):
    "The tetrahedra of the PneuNet, or of the same body with its gaps filled with silicone."
    grid = wb.meshing.tetrahedra(wb.shapes.Box((0, 0, 0), (len(along), len(across), len(upwards))), 1.0)
    cells = grid.vertices[grid.tets].mean(axis=1).astype(int).T
    x, y, z = (np.array(names)[cell] for names, cell in zip((along, across, upwards), cells, strict=True))
    chamber = (x == "chamber") & np.isin(z, ["channel", "roof", "upper"])
    channel = ~np.isin(x, ["root", "end"]) & (z == "channel")
    outside = gaps & (x == "gap") & np.isin(z, ["upper", "top"])
    used, tets = np.unique(grid.tets[~((y == "inside") & (chamber | channel) | outside)], return_inverse=True)
    places = zip(grid.vertices[used].T, (x_of, y_of, z_of), strict=True)
    vertices = [np.interp(place, np.arange(len(lines)), lines) for place, lines in places]
    return wb.shapes.TetMesh(np.stack(vertices, axis=-1), tets.reshape(-1, 4))


def actuator(base, gaps=True, **air):
    "A simulation of the PneuNet; air: its largest pressure [Pa], or its largest amount of air per amount at rest."
    regions = {
        "root": wb.shapes.HalfSpace((1e-5, 0, 0), (1, 0, 0)),
        "base": wb.shapes.Box((0, 0, 0), (x_of[-1], y_of[-1], size["base"])),
        "inside": wb.shapes.Box((0.003, 0.001, 0.002), (x_of[-1] - 0.001, y_of[-1] - 0.001, z_of[-1] - 0.001)),
    }
    walls, stiff = (wb.Material(E, poissons_ratio=0.4, density=1070.0) for E in (modulus, base * modulus))
    body = wb.SoftBody("pneunet", mesh(gaps), walls, regions, {"base": stiff}, color=(0.9, 0.65, 0.55))
    cavity = wb.actuators.Cavity("air", "inside", **air)
    scene = wb.Scene([body], [cavity], constraints=[wb.Constraint("root")], gravity=(0.0, 0.0, 0.0))
    solver = wb.ProjectiveDynamics(elements="quadratic_tetrahedra", collisions=False, tolerance=1e-4)
    return wb.Simulation(scene, solver, dt=2.0)


full = 0.3 * modulus  # pressure at a control of 1 [Pa]
sim = actuator(base, max_pressure=full)


def angle(state):
    "Angle by which the end of the actuator has turned downwards, in degrees."
    rest, now = sim.state().position[0], state.position[0]
    end = rest[:, 0] > x_of[-1] - 1e-6
    top, bottom = (end & ((rest[:, 2] - height).abs() < 1e-6) for height in (z_of[-1], 0.0))
    up = now[top].mean(dim=0) - now[bottom].mean(dim=0)
    return math.degrees(math.atan2(up[0], up[2]))


def inflated(pressures, stiffer=1.0):
    "The states under a sequence of pressures [Pa], one every 2 s, of an actuator that is stiffer by a factor."
    highest = 0.07 * stiffer * modulus  # the actuator bends by about 40 degrees
    if not 0.0 <= min(pressures) <= max(pressures) <= highest:
        raise ValueError(f"pressures must be from 0 to {highest:.0f} Pa, the last one is {pressures[-1]:g} Pa")
    E = stiffer * sim.parameter("youngs_modulus")
    states = [sim.state()]
    for p in pressures:
        states.append(sim.step(states[-1], torch.tensor([[p / full]], dtype=torch.float32), youngs_modulus=E))
    return states[1:]


slowly = np.linspace(0.0, 1.0, 5)[1:] ** 2  # first steps are small: the solver follows small rotations faster


def bend(pressure, stiffer=1.0):
    "The angle at a pressure [Pa], in degrees."
    return angle(inflated(pressure * slowly, stiffer)[-1])


def longer(state, height):
    "By how much a line along the middle of the body, at a height at rest [m], has become longer, in per cent."
    rest = sim.state().position[0]
    on = ((rest[:, 2] - height).abs() < 1e-6) & ((rest[:, 1] - y_of[-1] / 2).abs() < 1e-6)
    line = on.nonzero()[:, 0][rest[on, 0].argsort()]
    before, now = (x[line].diff(dim=0).norm(dim=1).sum().item() for x in (rest, state.position[0]))
    return 100 * (now / before - 1)


# %% [markdown]
# Here is the section through its middle at rest and after a slow inflation, and the record of the inflation: `pressures` [Pa], counted from the pressure of the atmosphere, `angles` [degrees], `volumes` of the air [m³], and elastic `energies` [J].

# %%
pressures = 0.055 * modulus * np.linspace(0.0, 1.0, 7) ** 2
states = [sim.state(), *inflated(pressures[1:])]
readings = [sim.sense(state, [[p / full]]) for state, p in zip(states, pressures, strict=True)]
angles = np.array([angle(state) for state in states])
volumes = np.array([float(reading.volume) for reading in readings])
energies = np.array([float(reading.elastic_energy) for reading in readings])
shape = sim.scene.bodies[0].shape
faces = np.concatenate([np.delete(shape.tets, corner, axis=1) for corner in range(4)])
cut = faces[(abs(shape.vertices[faces, 1] - y_of[-1] / 2) < 1e-6).all(axis=1)]
stiff = shape.vertices[cut, 2].max(axis=1) < size["base"] + 1e-6
_, axes = plt.subplots(1, 2, figsize=(8, 2.6), layout="constrained", sharex=True, sharey=True)
for ax, state in zip(axes, (states[0], states[-1]), strict=True):
    mm_x, _, mm_z = 1e3 * state.position[0, : len(shape.vertices)].T.numpy()
    ax.tripcolor(mm_x, mm_z, cut, facecolors=1.0 + stiff, cmap="Blues", vmin=0, vmax=4, edgecolors="k", lw=0.3)
    ax.set(aspect="equal", xlabel="x [mm]", ylabel="z [mm]")
print("pressure [Pa]   angle [degrees]   volume [ml]")
for row in zip(pressures, angles, 1e6 * volumes, strict=True):
    print("{:13.0f}   {:15.2f}   {:11.3f}".format(*row))
_, (left, right) = plt.subplots(1, 2, figsize=(8, 2.4), layout="constrained")
left.plot(pressures / 1e3, angles, "o-", ms=3, lw=1)
left.set(xlabel="pressure [kPa]", ylabel="angle [degrees]")
right.plot(1e6 * volumes, pressures / 1e3, "o-", ms=3, lw=1)
labels = right.set(xlabel="volume [ml]", ylabel="pressure [kPa]")

# %% [markdown]
# ## 1. A pressure for an angle

# %%
goal = mine.number("goal", 13.0, 25.0)
print(f"the actuator is to bend by {goal} degrees")

# %% [markdown]
# **Question 1 (2 points).** Which pressure [Pa] bends the actuator to your goal? The tolerance is 0.3 degrees.

# %% answer="pressure"
pressure = ...  # [Pa]
### BEGIN SOLUTION
pressure = np.interp(goal, angles, pressures)
### END SOLUTION

# %% check="pressure" points=2
hint = "Interpolate in the record, then try `bend`. Is your pressure in Pa?"
check("Question 1", lambda pressure: abs(bend(pressure) - goal) < 0.3, hint)

# %% [markdown]
# ## 2. Another silicone
#
# **Question 2 (3 points).** The actuator is cast again from stiffer silicones: the moduli of its walls and its base are multiplied by your factor. Which pressure [Pa] bends it by the same angle? Answer without a simulation: in equilibrium, on which combination of pressure and modulus does the shape depend? The tolerance is 0.3 degrees.

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
check("Question 2", lambda second_pressure: abs(bend(second_pressure, factor) - goal) < 0.3, hint)

# %% [markdown]
# ## 3. The work of the air
#
# Blowing air into the chambers takes the work $\int (p - p_0)\,dV$, with the pressure of the atmosphere $p_0$; `pressures` are already $p - p_0$. If this is done slowly, all of the work becomes elastic energy.
#
# **Question 3 (3 points).** Write the function that returns the work [J] from pressures and volumes. It will be tried on other records, which need not begin at a pressure of zero. In some of them the volume falls, and the work is negative. It has to agree with the elastic energy of the record within 2 %, and with the exact work of known curves within 0.1 %.


# %% answer="work"
def work(pressures, volumes):
    "The work [J] of the air, from its pressures above that of the atmosphere [Pa] and its volumes [m^3]."
    ### BEGIN SOLUTION
    return ((pressures[1:] + pressures[:-1]) / 2 * np.diff(volumes)).sum()
    ### END SOLUTION
    ...


# %% check="work" points=3
hint = "A sum over pieces of the curve: which pressure acts along a piece? Are volumes in m³?"
check("Question 3", lambda work: abs(work(pressures, volumes) / (energies[-1] - energies[0]) - 1) < 0.02, hint)
### BEGIN HIDDEN TESTS
line = np.sort(np.random.default_rng(mine.seed("curve")).uniform(1e-5, 3e-5, 200))
curve, known = 5e13 * line**2, 5e13 * (line[-1] ** 3 - line[0] ** 3) / 3
check("Question 3", lambda work: abs(work(curve, line) / known - 1) < 1e-3, hint)
check("Question 3", lambda work: abs(work(curve[::-1].copy(), line[::-1].copy()) / -known - 1) < 1e-3, hint)
### END HIDDEN TESTS

# %% [markdown]
# ## 4. A syringe
#
# There is no pump: a tube joins the actuator to a syringe, which is full of air at the pressure of the atmosphere, $p_0 = 101325$ Pa. The tube is thin, and everything stays at one temperature. You press the plunger down to its end: all the air is then in the actuator.
#
# **Question 4 (4 points).** Which volume [m³] of the syringe bends the actuator to your goal? The check puts this amount of air into the actuator, and lets it find its pressure. The tolerance is 0.3 degrees.
#
# *Predict first:* is it the volume by which the chambers grow, more, or less?

# %% answer="syringe"
syringe = ...  # [m^3]
### BEGIN SOLUTION
atmosphere = 101325.0
volume = np.interp(pressure, pressures, volumes)
syringe = (atmosphere + pressure) * volume / atmosphere - volumes[0]
### END SOLUTION

# %% check="syringe" points=4
sealed = actuator(base, max_gas_ratio=3.0)


def bend_by(syringe):
    "The angle after the air of a syringe [m^3] has been pressed into the actuator, in degrees."
    largest = 0.7 * volumes[0]
    if not 0.0 <= syringe <= largest:
        raise ValueError(f"the volume must be from 0 to {largest:.3g} m^3, it is {syringe:.3g} m^3")
    amounts = 1.0 + syringe / volumes[0] * slowly  # per amount at rest
    control = torch.as_tensor(np.log(amounts) / np.log(3.0), dtype=torch.float32)[:, None]
    return angle(sealed.rollout(control, len(control)).final)


hint = "The amount of air does not change. Where is all of the air before? Which pressure belongs in p V?"
check("Question 4", lambda syringe: abs(bend_by(syringe) - goal) < 0.3, hint)

# %% [markdown]
# ## 5. What is the base for?
#
# **Question 5 (4 points, read by a person).** "A stiffer base makes an actuator bend more." Test this sentence at a pressure of a twentieth of the modulus, with your base and with one as soft as the walls, for the PneuNet and for the same body without gaps: `sim = actuator(1.0, gaps=False, max_pressure=full)` replaces the actuator of `inflated` and `bend`. The checks above then use it, too; `sim = actuator(base, max_pressure=full)` puts yours back. Measure with `longer` both sides of the base, too, at the heights 0 and `size["base"]`. Explain your four angles: where does the neutral line lie, which moment does the pressure have about this line, and what does the base prevent? At most ten sentences, and one figure.

# %% [markdown] open="base" points=4
# *Your answer.*
