# %% [markdown]
# # Lab 3. The material point method from scratch
#
# **Goals.** You can write the transfers of a material point method (MPM), say which quantity each of their terms conserves, and predict the longest stable step.
#
# **Time.** 90 minutes: 15 to read and to predict by hand, 60 for five questions, 15 for the open one. The simulations take less than a minute on one core.
#
# **Before.** Tutorial 04, *MPM*. No experience with Warp is needed.
#
# ![Particles give mass and momentum to the nodes of a grid; velocities change on the nodes; particles take them back](pictures/particles_and_grid.png)
#
# Write the name under which you hand this notebook in. The numbers of this lab follow from it.

# %%
student = ""

# %%
import math

import matplotlib.pyplot as plt
import numpy as np
import torch
import warp as wp

import warpbots as wb
from warpbots.exercises import check
from warpbots.labs import Numbers

wp.set_module_options({"enable_backward": False})  # no gradients in this lab: kernels compile faster
mine = Numbers(student, "material_point_method")

# %% [markdown]
# ## The method
#
# Matter is a set of particles. Particle $p$ has a mass $m$, a volume $V$ at rest, a position $x_p$, a velocity $v_p$, a velocity gradient $C_p$ and a deformation gradient $F_p$. A grid with cells of edge length $\Delta x$ helps particles to interact; it is empty at the start of every step. Node $(i, j)$ lies at $(i\,\Delta x, j\,\Delta x)$. Each step has three parts:
#
# 1. **Particles to grid.** Each particle adds to the nine nodes around it, with weights $w_{ip}$ and $d_{ip} = x_i - x_p$:
# $$m_i = \sum_p w_{ip}\, m,\qquad (mv)_i = \sum_p w_{ip}\big[m\,v_p + (m\,C_p - \Delta t\,V \tfrac{4}{\Delta x^2}\,\tau_p)\,d_{ip}\big].$$
# 2. **On the grid.** Velocity is momentum divided by mass; gravity and the floor change it.
# 3. **Grid to particles.** With the same weights,
# $$v_p = \sum_i w_{ip}\, v_i,\qquad C_p = \tfrac{4}{\Delta x^2} \sum_i w_{ip}\, v_i\, d_{ip}^T,\qquad x_p \leftarrow x_p + \Delta t\, v_p,\qquad F_p \leftarrow (I + \Delta t\, C_p)\, F_p.$$
#
# $\tau_p$ is the Kirchhoff stress [Pa], which the material gives for $F_p$. The weights are products of quadratic B-splines, one for each axis. They have the moments
#
# $$\sum_i w_{ip} = 1,\qquad \sum_i w_{ip}\, d_{ip} = 0,\qquad \sum_i w_{ip}\, d_{ip} d_{ip}^T = \tfrac{\Delta x^2}{4} I.$$
#
# All checks of this lab follow from these three moments. *Predict first:* what are $\sum_i (mv)_i$ and $\sum_i (mv)_i\, x_i^T$ of a single particle, after part 1?

# %% [markdown]
# ## Your block
#
# In the end, a block of your jelly, thrown with a spin, falls on a floor and slides. `new_block()` returns the arrays `x, v, C, F` of its particles, and `new_grid()` the arrays `mass, momentum, velocity` of a grid.

# %%
cell = 0.1 / int(mine.number("cells", 8.0, 12.0))  # [m]
floor = 5  # nodes up to this index lie in the floor
modulus = mine.number("modulus", 2e4, 6e4)  # [Pa]
density = mine.number("density", 0.8e3, 1.2e3)  # [kg/m^2], of a slice 1 m deep
ratio, gravity = 0.3, 9.81
friction = mine.number("friction", 0.2, 0.6)
mu, lam = modulus / (2 * (1 + ratio)), modulus * ratio / ((1 + ratio) * (1 - 2 * ratio))

low = (floor + 2) * cell
bottom = (low + 0.3, low)
cube = wb.shapes.Box(bottom, (bottom[0] + 0.1, bottom[1] + 0.1))
body = wb.SoftBody("block", cube, wb.Material(modulus, poissons_ratio=ratio, density=density))
surface = wb.floor((floor + 0.5) * cell, dim=2, friction=friction)
scene = wb.Scene([body], obstacles=[surface], gravity=(0.0, -gravity), domain=((0.0, 0.0), (1.0, 0.5)), name="jelly")
ours = wb.Simulation(scene, wb.MPM(dx=cell), dt=1e-2)
rest = ours.state().position[0].numpy()
off = rest - rest.mean(axis=0)
spin = mine.number("spin", 4.0, 8.0)  # [rad/s]
thrown = [mine.number("speed", 0.5, 1.0), -0.5] + spin * np.stack([-off[:, 1], off[:, 0]], axis=1)  # [m/s]
V = cell**2 / 4  # [m^2], four particles in a cell
m = density * V  # [kg]
shape = (math.ceil(1.2 / cell), math.ceil(0.6 / cell))


def new_block():
    "The particles at the start: x, v, C, F."
    n, unit = len(rest), np.tile(np.eye(2), (len(rest), 1, 1))
    return wp.array(rest, wp.vec2), wp.array(thrown, wp.vec2), wp.zeros(n, wp.mat22), wp.array(unit, wp.mat22)


def new_grid():
    "The arrays of the nodes: mass, momentum, velocity."
    return wp.zeros(shape, float), wp.zeros(shape, wp.vec2), wp.zeros(shape, wp.vec2)


safe = 0.4 * cell / math.sqrt((lam + 2 * mu) / density)  # a step for which explicit MPM is stable [s]
print(f"{len(rest)} particles, cells of {1e3 * cell:.1f} mm, E = {modulus:g} Pa; try steps of {1e3 * safe:.2f} ms")

# %% [markdown]
# ## Warp in five lines
#
# A *kernel* is a function that Warp compiles and runs once for each index `wp.tid()`. Its arguments have types: `float`, `wp.vec2`, `wp.mat22`, and arrays of these. Numbers do not change their type by themselves: write `2.0` instead of `2` among floats, `float(i)` for an integer `i` in a formula, and `dx * dx` for a square. `A @ d` is a product of a matrix and a vector, `wp.outer(a, b)` is $a\,b^T$, and `wp.identity(n=2, dtype=float)` is $I$. Loops are Python's: `for i in range(3):`. Each of your kernels has a `module` of its own: it is compiled alone, and an error in one does not stop the others. With `first` and `i`, `j` as in question 1, `wp.vec2(float(first[0] + i), float(first[1] + j)) * dx` is the position of a node [m]. Particles share nodes; `wp.atomic_add(array, i, j, value)` adds to an entry without losing what another particle adds at the same time.
#
# These functions are given. Positions are measured in cells here, `x / dx`.


# %%
@wp.func
def first_node(cell: wp.vec2):
    "Indices of the first of the 3 x 3 nodes around a position [cells]; the others follow in both directions."
    return wp.vec2i(int(wp.floor(cell[0] - 0.5)), int(wp.floor(cell[1] - 0.5)))


@wp.func
def outside(first: wp.vec2i, rows: int, columns: int):
    "Whether a grid of this many nodes lacks some of the 3 x 3 nodes."
    return first[0] < 0 or first[1] < 0 or first[0] > rows - 3 or first[1] > columns - 3


@wp.func
def spline(f: float):
    "Weights of three nodes along one axis, for a position that is f cells beyond the first of them."
    return wp.vec3(0.5 * (1.5 - f) * (1.5 - f), 0.75 - (f - 1.0) * (f - 1.0), 0.5 * (f - 0.5) * (f - 0.5))


@wp.kernel
def stress(F: wp.array[wp.mat22], mu: float, lam: float, tau: wp.array[wp.mat22]):
    "Kirchhoff stress of a neo-Hookean material [Pa]."
    p = wp.tid()
    I = wp.identity(n=2, dtype=float)
    tau[p] = mu * (F[p] @ wp.transpose(F[p]) - I) + lam * wp.log(wp.determinant(F[p])) * I


# %% [markdown]
# ## 1. Particles to grid
#
# **Question 1 (5 points).** Complete the kernel. It runs once for each particle $p$. `w_x[i] * w_y[j]` is the weight of the node `(first[0] + i, first[1] + j)`.


# %% answer="p2g"
@wp.kernel(module="p2g", enable_backward=False)
def p2g(
    x: wp.array[wp.vec2], v: wp.array[wp.vec2], C: wp.array[wp.mat22], tau: wp.array[wp.mat22],
    m: float, V: float, dx: float, dt: float,
    mass: wp.array2d[float], momentum: wp.array2d[wp.vec2],
):  # fmt: skip
    "Add the mass and the momentum of each particle to its nodes; mass and momentum are zero at the start."
    p = wp.tid()
    cell = x[p] / dx
    first = first_node(cell)
    if outside(first, mass.shape[0], mass.shape[1]):
        return
    w_x = spline(cell[0] - float(first[0]))
    w_y = spline(cell[1] - float(first[1]))
    ### BEGIN SOLUTION
    A = m * C[p] - (dt * V * 4.0 / (dx * dx)) * tau[p]
    for i in range(3):
        for j in range(3):
            d = wp.vec2(float(first[0] + i), float(first[1] + j)) * dx - x[p]
            w = w_x[i] * w_y[j]
            wp.atomic_add(mass, first[0] + i, first[1] + j, w * m)
            wp.atomic_add(momentum, first[0] + i, first[1] + j, w * (m * v[p] + A @ d))
    ### END SOLUTION
    ...


# %% check="p2g" points=5
def given(p2g, dx, seed, moves=0.0, turns=0.0, stressed=0.0):
    "Whether the moments of what 40 random particles give to the grid are right: those of mass, and those of momentum."
    drawn = np.random.default_rng(seed)
    x = drawn.uniform(3.0, 13.0, (40, 2)) * dx
    v, C = moves * drawn.normal(size=(40, 2)), turns * drawn.normal(size=(40, 2, 2))
    tau = stressed * drawn.normal(size=(40, 2, 2))
    tau += tau.transpose(0, 2, 1)
    m, V, dt = drawn.uniform(0.5, 1.5), dx**2 * drawn.uniform(0.2, 0.3), 0.01 * drawn.uniform(0.5, 1.5)
    mass, momentum = wp.zeros((17, 17), float), wp.zeros((17, 17), wp.vec2)
    particles = [wp.array(x, wp.vec2), wp.array(v, wp.vec2), wp.array(C, wp.mat22), wp.array(tau, wp.mat22)]
    wp.launch(p2g, len(x), [*particles, m, V, dx, dt, mass, momentum])
    at = dx * np.stack(np.meshgrid(np.arange(17), np.arange(17), indexing="ij"), axis=-1)
    M, P = mass.numpy().astype(float), momentum.numpy().astype(float)

    def near(found, expected, tolerance=2e-4):
        return np.abs(found - expected).max() <= tolerance * np.abs(expected).max() + 1e-4 * m

    spread = np.einsum("pa,pb->ab", x, x) + len(x) * dx**2 / 4 * np.eye(2)
    kept = near(M.sum(), m * len(x)) and near(np.einsum("ij,ija,ijb->ab", M, at, at), m * spread)
    total = near(P.sum(axis=(0, 1)), m * v.sum(axis=0))
    moment = m * np.einsum("pa,pb->ab", v, x) + (m * dx**2 / 4 * C - dt * V * tau).sum(axis=0)
    return kept, total and near(np.einsum("ija,ijb->ab", P, at), moment, 5e-3)


def scatters(p2g, dx, seed):
    "Check the terms one by one: mass, momentum, affine momentum, stress."
    check("Question 1, mass", lambda p2g: given(p2g, dx, seed)[0],
          "Add the weights of the nine nodes: is their sum 1? Does a node get a weight times the mass of the particle?")  # fmt: skip
    check("Question 1, momentum", lambda p2g: given(p2g, dx, seed, moves=1.0)[1],
          "Without C and stress, the sum of all (mv)_i must be the momentum of the particles.")  # fmt: skip
    check("Question 1, affine momentum", lambda p2g: given(p2g, dx, seed, turns=1.0 / dx)[1],
          "A particle with C but without v must give the sum of (mv)_i x_iᵀ = m C dx²/4. Where does d begin, where does "
          "it end? Is it in metres or in cells? Is it C d, or d C?")  # fmt: skip
    check("Question 1, stress", lambda p2g: given(p2g, dx, seed, stressed=100.0 / dx)[1],
          "Stress keeps the sum of (mv)_i, and changes the sum of (mv)_i x_iᵀ by -Δt V τ. Is the factor 4/Δx² there? "
          "The sign? Does matter that is stretched pull its nodes together?")  # fmt: skip


scatters(p2g, 1.0, mine.seed("particles"))
### BEGIN HIDDEN TESTS
scatters(p2g, mine.number("other cell", 0.2, 0.5), mine.seed("other particles"))
### END HIDDEN TESTS

# %% [markdown]
# ## 2. Grid to particles
#
# **Question 2 (4 points).** Complete the kernel that takes the new velocity and its gradient from the nodes, moves the particle, and deforms it. It changes `x`, `v`, `C` and `F` in place.


# %% answer="g2p"
@wp.kernel(module="g2p", enable_backward=False)
def g2p(
    velocity: wp.array2d[wp.vec2], dx: float, dt: float,
    x: wp.array[wp.vec2], v: wp.array[wp.vec2], C: wp.array[wp.mat22], F: wp.array[wp.mat22],
):  # fmt: skip
    "Take velocity and velocity gradient of each particle from its nodes, and move it by a step dt."
    p = wp.tid()
    cell = x[p] / dx
    first = first_node(cell)
    if outside(first, velocity.shape[0], velocity.shape[1]):
        return
    w_x = spline(cell[0] - float(first[0]))
    w_y = spline(cell[1] - float(first[1]))
    ### BEGIN SOLUTION
    new_v = wp.vec2()
    B = wp.mat22()
    for i in range(3):
        for j in range(3):
            d = wp.vec2(float(first[0] + i), float(first[1] + j)) * dx - x[p]
            h = w_x[i] * w_y[j] * velocity[first[0] + i, first[1] + j]
            new_v += h
            B += wp.outer(h, d)
    new_C = 4.0 / (dx * dx) * B
    v[p] = new_v
    C[p] = new_C
    x[p] = x[p] + dt * new_v
    F[p] = F[p] + dt * (new_C @ F[p])
    ### END SOLUTION
    ...


# %% check="g2p" points=4
def taken(g2p, dx, seed):
    "Largest relative errors of v, C, x, and F that particles take from nodes with a linear field of velocity."
    drawn = np.random.default_rng(seed)
    x, F = drawn.uniform(3.0, 13.0, (40, 2)) * dx, np.eye(2) + 0.3 * drawn.normal(size=(40, 2, 2))
    uniform, slope, dt = drawn.normal(size=2), drawn.normal(size=(2, 2)), 0.1
    at = dx * np.stack(np.meshgrid(np.arange(17), np.arange(17), indexing="ij"), axis=-1)
    field = wp.array(uniform + at @ slope.T, wp.vec2)
    state = [wp.array(x, wp.vec2), wp.zeros(40, wp.vec2), wp.zeros(40, wp.mat22), wp.array(F, wp.mat22)]
    wp.launch(g2p, len(x), [field, dx, dt, *state])
    v = uniform + x @ slope.T
    expected = [x + dt * v, v, np.broadcast_to(slope, F.shape), (np.eye(2) + dt * slope) @ F]
    return [abs(a.numpy() - e).max() < 1e-4 * abs(e).max() for a, e in zip(state, expected, strict=True)]


def gathers(g2p, dx, seed):
    "Check what a particle takes, one quantity after the other."
    check("Question 2, velocity", lambda g2p: taken(g2p, dx, seed)[1],
          "In a linear field of velocity, a particle must get the value of the field at its own position.")  # fmt: skip
    check("Question 2, velocity gradient", lambda g2p: taken(g2p, dx, seed)[2],
          "In the field v = a + B x, a particle must get C = B. Is the factor 4/Δx² there? Is it v dᵀ, or d vᵀ?")  # fmt: skip
    check("Question 2, position", lambda g2p: taken(g2p, dx, seed)[0],
          "Free motion: x grows by Δt times the new velocity. d has to use the position before the step.")  # fmt: skip
    check("Question 2, deformation", lambda g2p: taken(g2p, dx, seed)[3],
          "F becomes (I + Δt C) F with the new C. In which order are matrices multiplied?")  # fmt: skip


gathers(g2p, 1.0, mine.seed("taking particles"))
### BEGIN HIDDEN TESTS
gathers(g2p, mine.number("third cell", 0.2, 0.5), mine.seed("other taking particles"))
### END HIDDEN TESTS

# %% [markdown]
# ## 3. On the grid
#
# Nodes whose second index is at most `floor` lie in the floor. There, a velocity that goes into the floor changes. Its vertical component becomes zero. Its horizontal component loses at most `friction` times what the vertical one loses: it ends at zero, it does not turn around. A velocity that leaves the floor stays as it is.
#
# **Question 3 (3 points).** Complete the kernel. It runs once for each node, after all particles. Nodes without mass get the velocity zero.


# %% answer="move_grid"
@wp.kernel(module="move_grid", enable_backward=False)
def move_grid(
    mass: wp.array2d[float], momentum: wp.array2d[wp.vec2], gravity: float, friction: float, floor: int, dt: float,
    velocity: wp.array2d[wp.vec2],
):  # fmt: skip
    "Velocities of the nodes after gravity (downwards, along -y) and contact with the floor."
    i, j = wp.tid()
    ### BEGIN SOLUTION
    new = wp.vec2()
    if mass[i, j] > 0.0:
        new = momentum[i, j] / mass[i, j] - wp.vec2(0.0, dt * gravity)
        if j <= floor and new[1] < 0.0:
            slide = wp.max(wp.abs(new[0]) + friction * new[1], 0.0)
            new = wp.vec2(wp.sign(new[0]) * slide, 0.0)
    velocity[i, j] = new
    ### END SOLUTION
    ...


# %% check="move_grid" points=3
def on_nodes(move_grid, seed, floor):
    "Velocities of random nodes, as the kernel finds them, and as they have to be."
    drawn = np.random.default_rng(seed)
    m, v = drawn.uniform(0.5, 2.0, (9, 9)), drawn.normal(size=(9, 9, 2))
    m[drawn.uniform(size=(9, 9)) < 0.2] = 0.0
    g, mu, dt = drawn.uniform(5.0, 15.0), drawn.uniform(0.3, 0.6), 0.02
    found = wp.array(np.full((9, 9, 2), 7.0), wp.vec2)
    nodes = [wp.array(m, float), wp.array(m[..., None] * v, wp.vec2)]
    wp.launch(move_grid, (9, 9), [*nodes, g, mu, floor, dt, found])
    expected = (v - [0.0, dt * g]) * (m > 0.0)[..., None]
    free = expected.copy()
    hit = (expected[..., 1] < 0.0) & (np.arange(9) <= floor)
    lost = np.minimum(abs(free[..., 0]), -mu * free[..., 1])
    expected[hit, 0] -= (np.sign(free[..., 0]) * lost)[hit]
    expected[hit, 1] = 0.0
    return found.numpy(), expected


def moves(move_grid, seed):
    "Check nodes above the floor, and nodes in it."

    def right(move_grid, floor):
        found, expected = on_nodes(move_grid, seed, floor)
        return abs(found - expected).max() < 1e-5

    check("Question 3, in the air", lambda move_grid: right(move_grid, -1),
          "A node falls like a stone: dv = -g Δt. Is it the momentum or the velocity that you wrote? A node without "
          "mass must not divide by zero, and needs a velocity, too.")  # fmt: skip
    check("Question 3, on the floor", lambda move_grid: right(move_grid, 4),
          "Is the node of index `floor` in the floor? Friction slows down a motion in either direction, and never "
          "reverses it. Which velocities does it not touch?")  # fmt: skip


moves(move_grid, mine.seed("nodes"))
### BEGIN HIDDEN TESTS
moves(move_grid, mine.seed("other nodes"))
### END HIDDEN TESTS

# %% [markdown]
# ## 4. The whole method, held against another one
#
# **Question 4 (3 points).** Write the function that does some steps with your kernels. Launch a kernel by `wp.launch(kernel, number of indices, [arguments])`; for `move_grid` the number of indices is `shape`. The check compares your particles with those of warpbots.


# %% answer="simulate"
def simulate(steps, dt):
    "Positions [m] and velocities [m/s] of the particles of a new block after some steps of dt [s]: two NumPy arrays."
    ### BEGIN SOLUTION
    x, v, C, F = new_block()
    mass, momentum, velocity = new_grid()
    tau = wp.zeros(len(x), wp.mat22)
    for _ in range(steps):
        mass.zero_()
        momentum.zero_()
        wp.launch(stress, len(x), [F, mu, lam, tau])
        wp.launch(p2g, len(x), [x, v, C, tau, m, V, cell, dt, mass, momentum])
        wp.launch(move_grid, shape, [mass, momentum, gravity, friction, floor, dt, velocity])
        wp.launch(g2p, len(x), [velocity, cell, dt, x, v, C, F])
    return x.numpy(), v.numpy()
    ### END SOLUTION
    ...


# %% check="simulate" points=3
def by_warpbots(steps, dt):
    "Positions and velocities of the same block under the solver of warpbots."
    sim = wb.Simulation(scene, wb.MPM(dx=cell), dt=dt, substeps=1)
    start = sim.state(velocity=torch.tensor(thrown, dtype=torch.float32))
    final = sim.rollout(None, steps, start).final
    return final.position[0].numpy(), final.velocity[0].numpy()


def agrees(simulate, steps, tolerance):
    return all(
        abs(a - b).max() < tolerance * scale
        for a, b, scale in zip(simulate(steps, safe), by_warpbots(steps, safe), (0.1, 1.0), strict=True)
    )


check("Question 4, first step", lambda simulate: agrees(simulate, 1, 1e-5),
      "After one step only gravity has acted. Do all kernels get the arguments of their signatures?")  # fmt: skip
check("Question 4, in the air", lambda simulate: agrees(simulate, 20, 1e-4),
      "Which arrays have to be empty at the start of every step? Which stress belongs to which F?")  # fmt: skip
check("Question 4, on the floor", lambda simulate: agrees(simulate, 400, 1e-2),
      "Free flight is right. Which numbers reach the floor?")  # fmt: skip

# %% [markdown]
# Look at what you have built: the block at five times.

# %%
if callable(globals().get("simulate")) and simulate(1, safe) is not None:
    fig, ax = plt.subplots(figsize=(6.4, 2.4), layout="constrained")
    for k in range(5):
        x, _ = simulate(150 * k, safe)
        ax.plot(*x.T, ".", ms=2, label=f"{150e3 * k * safe:.0f} ms")
    ax.axhline((floor + 0.5) * cell, color="0.5", lw=1)
    ax.set(xlabel="x [m]", ylabel="y [m]", aspect="equal")
    legend = fig.legend(frameon=False, fontsize=8, loc="outside right upper", markerscale=4)

# %% [markdown]
# ## 5. How long may a step be?
#
# **Question 5 (3 points).** `safe` was short. What is the longest step [s] with which your block still flies and falls without exploding? The tolerance is 15 %. `explodes(dt)` says whether it explodes within 600 steps.
#
# *Predict first:* pressure waves have the speed $c = \sqrt{(\lambda + 2\mu)/\rho}$. How far may a wave come in one step?


# %%
def explodes(dt):
    "Whether the block has particles that are faster than 20 m/s after 600 steps of dt [s], or none at all."
    with np.errstate(all="ignore"):
        return not np.abs(simulate(600, dt)[1]).max() < 20.0


# %% answer="longest_step"
longest_step = ...  # [s]
### BEGIN SOLUTION
short, long = safe, 6 * safe
for _ in range(7):
    longest_step = math.sqrt(short * long)
    short, long = (short, longest_step) if explodes(longest_step) else (longest_step, long)
### END SOLUTION

# %% check="longest_step" points=3
hint = "Halve an interval whose ends are stable and not. Is your step in seconds?"
check("Question 5", lambda longest_step: agrees(simulate, 20, 1e-4) and not explodes(longest_step / 1.15)
      and explodes(1.15 * longest_step), hint)  # fmt: skip

# %% [markdown]
# ## 6. What C is good for
#
# Before 2015, particles had no $C$: its term in part 1 was missing. Without it a block that spins in the air, without gravity, behaves differently: look at its angular momentum and its energy.
#
# **Question 6 (4 points, read by a person).** What happens to angular momentum and energy in one step with $C$, without it, and with half of it? Derive it from the moments above. Does the cell size matter? At most ten sentences, and a formula for each case. Who has time shows it in a figure: pass zeros, or half of `C`, to `p2g` in a copy of your function.

# %% [markdown] open="affine" points=4
# *Your answer.*
