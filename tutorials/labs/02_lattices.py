# %% [markdown]
# # Lab 2. Lattices
#
# **Goals.** You can compute the stiffness of a lattice from its springs, predict how a lattice vibrates and bends, and design one that becomes wider when it is pulled.
#
# **Time.** 90 minutes: 15 to read and to predict by hand, 60 for four questions, 15 for the open one. The simulations take less than a minute on one core.
#
# **Before.** Tutorial 02, *springs*.
#
# ![Two frames of bars are pulled sideways: honeycomb becomes thinner, the re-entrant frame becomes higher](pictures/honeycombs.png)
#
# Write the name under which you hand this notebook in. The numbers of this lab follow from it.

# %%
student = ""

# %%
import itertools
import math
import os

os.environ["WARPBOTS_PRECISION"] = "float64"  # before the import: small displacements need digits

import matplotlib.pyplot as plt
import numpy as np
import torch

import warpbots as wb
from warpbots.exercises import check
from warpbots.labs import Numbers
from warpbots.solvers.mass_spring import equilibrium, natural_modes

torch.set_default_dtype(torch.float64)
mine = Numbers(student, "lattices")

# %% [markdown]
# ## 1. From springs to a modulus
#
# A square lattice has masses at the distance $a$ (`cell` in the code). Springs of stiffness $k$ [N/m] join neighbours along x and y, springs of stiffness $d$ join them along both diagonals. On the boundary the springs along the edge are half as stiff: each belongs to one cell only. Seen from afar, this is an elastic sheet. In the plane, without a thickness, its Young's modulus is the force divided by the width and by the strain, in N/m.
#
# `square(columns, rows, k, d)` makes such a lattice: positions, pairs of masses, stiffnesses. `pulled(positions, pairs, stiffness, force)` holds the left side, pulls the right side by a force [N], and returns the displacements in equilibrium.

# %%
cell = 0.01  # [m]


def square(columns, rows, edge, diagonal):
    "Positions of the masses [m], pairs of masses, and the stiffness of the spring between each pair [N/m]."
    n, springs = columns + 1, {}
    for x, y in itertools.product(range(columns), range(rows)):
        p, q, r, s = (x + i + (y + j) * n for j in (0, 1) for i in (0, 1))
        for pair in ((p, q), (r, s), (p, r), (q, s)):
            springs[pair] = springs.get(pair, 0.0) + edge / 2
        springs[p, s] = springs[q, r] = diagonal
    grid = np.stack(np.meshgrid(np.arange(n), np.arange(rows + 1)), axis=-1).reshape(-1, 2)
    return cell * grid, np.array(list(springs)), np.array(list(springs.values()))


def simulated(positions, pairs, stiffness, regions, parameters=None, total_mass=1.0, **scene):
    "A simulation of the lattice, with further parameters; the total mass is in kg."
    length = np.linalg.norm(np.subtract(*positions[pairs.T]), axis=1)
    thick = np.maximum(stiffness * length / 2e3, 5e-3 * cell)  # bars of 1 kPa, none of them too thin to be drawn
    body = wb.SoftBody("lattice", wb.shapes.Truss(positions, pairs, thick), wb.Material(1e3), regions=regions)
    lattice = wb.Scene([body], gravity=(0, 0), **scene)
    plain = wb.Simulation(lattice, wb.MassSpring(spacing=cell), dt=0.01)
    given = {tuple(sorted(pair)): k for pair, k in zip(pairs.tolist(), stiffness, strict=True)}
    k = [given[tuple(sorted(pair))] for pair in plain.model.lattice.ends.tolist()]
    mass = plain.parameter("mass")
    own = {"stiffness": torch.tensor([k]), "mass": mass * total_mass / mass.sum(), **(parameters or {})}
    return wb.Simulation(plain.scene_with(**own), wb.MassSpring(spacing=cell), dt=0.01)


def pulled(positions, pairs, stiffness, force):
    "Displacements [m] when a force [N] pulls the right side along x; the left side can only move along y."
    left, (right, high) = positions[:, 0].min(), positions.max(axis=0)
    near = 1e-3 * cell
    first = positions[positions[:, 0] < left + near, 1].min()  # the lowest mass on the left is held
    regions = {
        "corner": wb.shapes.Box((left - near, first - near), (left + near, first + near)),
        "left": wb.shapes.Box((left - near, first + near), (left + near, high + near)),
        "right": wb.shapes.HalfSpace((right - near, 0), (-1, 0)),
    }
    held = [wb.Constraint("corner", name="corner"), wb.Constraint("left", "line", (0, 1), name="side")]
    # each mass on the right gets a share of the force, like the stiffness along x of the springs that it holds
    apart = np.subtract(*positions[pairs.T])
    along = stiffness * apart[:, 0] ** 2 / (apart**2).sum(axis=1)
    share = np.bincount(pairs.ravel(), np.repeat(along, 2)) * (positions[:, 0] > right - near)
    load = torch.tensor(force * share / share.sum())[None, :, None] * torch.tensor([1.0, 0.0])
    loads = [wb.Load("right", (force, 0))]
    model = simulated(positions, pairs, stiffness, regions, {"load": load}, constraints=held, loads=loads).model
    return equilibrium(model, parts=1) - positions


def strains(positions, displacements):
    "Mean strains along x and y, from the displacements that grow linearly with the positions."
    columns = np.column_stack([positions, np.ones(len(positions))])
    slope = np.linalg.lstsq(columns, displacements, rcond=None)[0]
    return slope[0, 0], slope[1, 1]


own = mine.number("edge", 100.0, 500.0), mine.number("diagonal", 100.0, 500.0)
print(f"your lattice: k = {own[0]:g} N/m, d = {own[1]:g} N/m")

# %% [markdown]
# **Question 1 (4 points).** Write the function that returns Young's modulus [N/m] and Poisson's ratio of the lattice. It has to be right for every $k$ and $d$. The tolerance is 1 %.
#
# *A way:* write the energy of one cell for the strains $\varepsilon_x$, $\varepsilon_y$. A spring along a diagonal has the strain $(\varepsilon_x + \varepsilon_y) / 2$. Divide by the area, and let the stress along y be zero.


# %% answer="moduli"
def moduli(edge, diagonal):
    "Young's modulus [N/m] and Poisson's ratio of a square lattice with these springs [N/m]."
    ### BEGIN SOLUTION
    # the energy per area is (k (ex² + ey²) + d (ex + ey)²) / 2
    return edge * (edge + 2 * diagonal) / (edge + diagonal), diagonal / (edge + diagonal)
    ### END SOLUTION
    ...


# %% check="moduli" points=4
def measured(edge, diagonal):
    "Modulus [N/m] and Poisson's ratio of a sheet of 8 by 6 cells that is pulled."
    sheet = square(8, 6, edge, diagonal)
    force = 1e-5 * edge * 6 * cell  # small strains, for which the lattice is linear
    along, across = strains(sheet[0], pulled(*sheet, force))
    return force / (6 * cell * along), -across / along


def right_moduli(moduli, edge, diagonal):
    return np.allclose(moduli(edge, diagonal), measured(edge, diagonal), rtol=0.01, atol=0.0)


hint = "How many edges and how many diagonals belong to a cell? By how much does a diagonal of length √2 a lengthen?"
check("Question 1", lambda moduli: right_moduli(moduli, *own), hint)
### BEGIN HIDDEN TESTS
others = [(mine.number("soft edge", 20.0, 80.0), 300.0), (300.0, mine.number("soft diagonal", 20.0, 80.0))]
check("Question 1", lambda moduli: all(right_moduli(moduli, *two) for two in others), f"{hint} Try other springs.")
### END HIDDEN TESTS

# %% [markdown]
# ## 2. A beam of springs
#
# A beam is 40 cells long and 4 cells high, and clamped at its left end. Its sheet has the mass per area $\rho$ = 5 kg/m² (`mass_per_area` in the code). Beam theory gives the lowest frequency [Hz] for a sheet of modulus $E$ [N/m], height $h$ and length $L$:
#
# $$f_1 = \frac{1.8751^2}{2\pi L^2}\sqrt{\frac{E h^2}{12\rho}}.$$

# %%
mass_per_area = 5.0  # [kg/m^2]
beam_diagonal = mine.number("beam diagonal", 100.0, 900.0)  # [N/m]
tone = round(mine.number("tone", 0.021, 0.035) * beam_diagonal**0.5, 2)  # [Hz]
print(f"diagonals of {beam_diagonal:g} N/m; the beam is to vibrate at {tone} Hz")

# %% [markdown]
# **Question 2 (3 points).** Your beam has the diagonals $d$ printed above. Which stiffness of the edges $k$ [N/m] gives it your tone as its lowest frequency? The tolerance of the frequency is 5 %. (Four cells are a little stiffer in bending than a beam: the frequency is 3 % above the formula. You may correct this or leave it.)

# %% answer="beam_edge"
beam_edge = ...  # [N/m]
### BEGIN SOLUTION
needed = 12 * mass_per_area * (2 * math.pi * tone * (40 * cell) ** 2 / 1.8751**2 / (4 * cell)) ** 2
# k (k + 2 d) / (k + d) = needed
half = beam_diagonal - needed / 2
beam_edge = -half + math.sqrt(half**2 + needed * beam_diagonal)
### END SOLUTION


# %% check="beam_edge" points=3
def frequency(edge, diagonal):
    "Lowest frequency of the clamped beam [Hz]."
    root = {"root": wb.shapes.HalfSpace((1e-3 * cell, 0), (1, 0))}
    held = [wb.Constraint("root")]
    total = mass_per_area * 40 * cell * 4 * cell
    model = simulated(*square(40, 4, edge, diagonal), root, total_mass=total, constraints=held).model
    return natural_modes(model, 1)[0][0]


hint = "Solve the formula for E, then your modulus for k. Is f in Hz? Are all lengths in metres?"
check("Question 2", lambda beam_edge: abs(frequency(beam_edge, beam_diagonal) / tone - 1) < 0.05, hint)

# %% [markdown]
# ## 3. Muscles are rest lengths
#
# A spring is a muscle if its rest length changes. In a strip, let the rest lengths of the uppermost layer grow by the factor $1 + \varepsilon$ along the strip. The layer cannot lengthen alone, and the strip bends. With a layer of thickness $t$ in a strip of height $h$ of the same material, the balance of moments gives the curvature [1/m]
#
# $$\kappa = \frac{12}{h^3}\int \varepsilon\, y\, dy,$$
#
# where $y$ is the height above the middle, and the integral runs over the layer. `bent(strain)` simulates this and returns the angle [degrees] by which the end of your strip has turned.

# %%
layer = 1 + mine.seed("layer") % 2  # cells
goal = mine.number("goal", 10.0, 30.0)  # [degrees]
strip_length, strip_height = 20 * cell, 4 * cell
top = wb.shapes.Box((-1.0, (4 - layer) * cell), (1.0, 1.0))
regions = {"root": wb.shapes.HalfSpace((1e-3 * cell, 0), (1, 0)), "layer": top}
silicone = wb.Material(1e5, poissons_ratio=0.25, density=1000.0)
strip = wb.SoftBody("strip", wb.shapes.Box((0, 0), (strip_length, strip_height)), silicone, regions=regions)
muscle = wb.actuators.Expansion("layer", "layer", max_strain=0.5, direction=(1, 0))
scene = wb.Scene([strip], [muscle], constraints=[wb.Constraint("root")], gravity=(0, 0))
sim = wb.Simulation(scene, wb.MassSpring(spacing=cell, drag=10.0), dt=0.02)


def swelling(strain):
    "The motion of the strip while the rest lengths of the layer grow by a factor 1 + strain and stay so."
    return sim.rollout(torch.full((100, 1), strain / 0.5), 100)


def bent(strain):
    "Angle by which the end of the strip turns downwards [degrees] at a strain, 0.05 for 5 %."
    rest, final = sim.state().position[0], swelling(strain).final.position[0]
    end = rest[:, 0] > strip_length - 1e-3 * cell
    low, high = rest[end, 1].argmin(), rest[end, 1].argmax()
    up = final[end][high] - final[end][low]
    return math.degrees(math.atan2(up[0], up[1]))


print(f"the muscle is {layer} of 4 cells thick; the end is to turn by {goal:g} degrees")
wb.view.film_strip(swelling(0.05), 4)

# %% [markdown]
# **Question 3 (3 points).** Which strain $\varepsilon$ (0.05 for 5 %) turns the end of your strip by your goal? The tolerance of the angle is 5 %, and the formula alone is farther off: correct it by one simulation. *Predict first:* which of two muscles bends the strip more, one that fills the upper half, or one that is a quarter thick?

# %% answer="strain"
strain = ...  # [1]
### BEGIN SOLUTION
t = layer * cell
curvature_per_strain = 6 * t * (strip_height - t) / strip_height**3
strain = math.radians(goal) / (curvature_per_strain * strip_length)
strain *= goal / bent(strain)  # the cells are a little stiffer than a beam
### END SOLUTION

# %% check="strain" points=3
hint = (
    "The angle is curvature times length, in radians. Correct the formula by one simulation. Is your strain 5, or 0.05?"
)
check("Question 3", lambda strain: 0 < strain < 0.5 and abs(bent(strain) / goal - 1) < 0.05, hint)

# %% [markdown]
# ## 4. Wider when pulled
#
# Poisson's ratio of the square lattice is positive. The frames in the drawing have long bars: vertical ones of length $r\,a$, and inclined ones of length $a$ and angle $\theta$ against the horizontal; θ is negative in the re-entrant frame. Let bars be rigid, and joints turn freely. A half cell then has the width $a\cos\theta$ and the height $a\,(r + \sin\theta)$. If the frame is pulled along x, only θ changes, and both follow from it.
#
# `frame(angle, ratio)` makes such a frame, of stiff bars and of soft springs that keep its joints from folding.


# %%
def frame(angle, ratio, columns=6, rows=5):
    "Positions [m], pairs and stiffnesses [N/m] of a frame; angle [degrees] of the inclined bars, length ratio of the others."
    c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    joints, long = {}, set()

    def bar(*ends):
        keys = [tuple(round(1e6 * z) for z in end) for end in ends]
        long.add(tuple(sorted(joints.setdefault(key, len(joints)) for key in keys)))

    for i, j in itertools.product(range(columns), range(rows)):
        x, y, up = 2 * c * i, 2 * (ratio + s) * j, ratio + 2 * s
        low, high = (x + c, y + s), (x + c, y + s + ratio)
        for side in (x, x + 2 * c):
            bar((side, y), low)
            bar(high, (side, y + up))
            if j + 1 < rows:
                bar((side, y + up), (side, y + 2 * (ratio + s)))
        bar(low, high)
    near = {k: sorted({*itertools.chain(*(pair for pair in long if k in pair))} - {k}) for k in range(len(joints))}
    soft = {pair for around in near.values() for pair in itertools.combinations(around, 2)} - long
    stiffness = np.array([1000.0] * len(long) + [0.1] * len(soft))
    return cell * 1e-6 * np.array(list(joints)), np.array([*long, *soft]), stiffness


def widening(angle, ratio):
    "Poisson's ratio of a frame, as measured in a simulation."
    along, across = strains(frame(angle, ratio)[0], pulled(*frame(angle, ratio), 1e-8))
    return -across / along


ratio = mine.number("ratio", 1.5, 1.8)
wanted = -mine.number("auxetic", 1.0, 1.8)
print(f"bars of length ratio {ratio}; Poisson's ratio is to be {wanted}")
_, axes = plt.subplots(1, 2, figsize=(6.4, 2.6), layout="constrained")
for ax, angle in zip(axes, (25.0, -25.0), strict=True):
    x, pairs, stiffness = frame(angle, ratio)
    u = pulled(x, pairs, stiffness, 1e-8)
    for at, colour in ((x, "0.75"), (x + 0.08 * np.ptp(x[:, 0]) / np.ptp(u[:, 0]) * u, "tab:blue")):
        for i, j in pairs[stiffness > 1.0]:
            ax.plot(*at[[i, j]].T, color=colour, lw=1)
    ax.set(aspect="equal", xticks=[], yticks=[], frame_on=False)
    ax.set_title(f"θ = {angle:g}°: Poisson's ratio {widening(angle, ratio):.2f}", fontsize=9)

# %% [markdown]
# **Question 4 (4 points).** Which angle θ [degrees] gives the frame with your ratio of lengths your Poisson's ratio? The tolerance of Poisson's ratio is 10 %: the frame in the simulation has edges, where bars turn more than inside.

# %% answer="angle"
angle = ...  # [degrees]
### BEGIN SOLUTION
# strains for a small change of the angle: -tan θ along x, and cos θ / (r + sin θ) along y
theta = np.linspace(-math.radians(45), -math.radians(5), 4001)
poisson = np.cos(theta) ** 2 / (np.sin(theta) * (ratio + np.sin(theta)))
angle = math.degrees(theta[np.argmin(abs(poisson - wanted))])
### END SOLUTION

# %% check="angle" points=4
hint = "Differentiate width and height by θ; Poisson's ratio is minus the strain along y by the strain along x."
check("Question 4", lambda angle: abs(widening(angle, ratio) / wanted - 1) < 0.1, f"{hint} Degrees or radians?")

# %% [markdown]
# ## 5. A lattice that walks, or one that grips
#
# **Question 5 (4 points, read by a person).** Choose one. *Either:* the strip of section 3 gets two feet and lies on a floor; its layer lengthens and shortens in turn. Why does it walk only if the feet differ, and how would you make them differ? *Or:* a sheet is a honeycomb on its left half and re-entrant on its right half. What shape does it take when it is pulled, and what could it be used for in a soft robot? At most ten sentences, and a sketch with forces or displacements. Who has time tries it: the strip with `wb.floor(dim=2)` and `wb.actuators.Oscillation`, the sheet with two calls of `pulled`.

# %% [markdown] open="walk_or_grip" points=4
# *Your answer.*
