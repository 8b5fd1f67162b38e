# %% [markdown]
# # Lab 4. Gradients and their traps
#
# **Goals.** You can test a gradient, find the line in which a gradient is lost, and say what a gradient costs in memory.
#
# **Time.** 90 minutes: 15 to read and to predict by hand, 60 for three questions, 15 for the open one. The simulations take less than a minute on one core.
#
# **Before.** Tutorial 07, *gradients*.
#
# ![States of a motion in a row, some of them kept; the gradient goes back from the loss](pictures/gradient_chain.png)
#
# Write the name under which you hand this notebook in. The numbers of this lab follow from it.

# %%
student = ""

# %%
import os

os.environ["WARPBOTS_PRECISION"] = "float64"  # before the import: differences need digits

import matplotlib.pyplot as plt
import torch

import warpbots as wb
from warpbots.exercises import check
from warpbots.labs import Numbers

torch.set_default_dtype(torch.float64)
mine = Numbers(student, "gradients_and_traps")

# %% [markdown]
# A bar of rubber is thrown and spins. `thrown(velocity, spin)` is its state at the start; the motion takes `steps` control intervals.

# %%
rubber = wb.Material(youngs_modulus=mine.number("modulus", 2e4, 6e4), poissons_ratio=0.25, density=1000.0)
bar = wb.SoftBody("bar", wb.shapes.Box((-0.1, -0.02), (0.1, 0.02)), rubber, color=(0.9, 0.65, 0.55))
sim = wb.Simulation(wb.Scene([bar], name="throw"), wb.MassSpring(0.01), dt=0.01)
steps = 30
rest = sim.state().position
arm = torch.stack([-rest[..., 1], rest[..., 0]], dim=-1)  # velocity per angular velocity


def thrown(velocity, spin):
    "The state at the start: a velocity, shape (2,) [m/s], and a spin [rad/s]."
    return sim.state(velocity=velocity + spin * arm)


up = torch.tensor([1.0, mine.number("rise", 2.0, 4.0)])
wb.view.film_strip(sim.rollout(None, steps, thrown(up, 12.0)), 4)

# %% [markdown]
# ## 1. A test of a gradient
#
# If $g$ is the gradient of $f$ at $x$, the remainder $r(\epsilon) = |f(x + \epsilon d) - f(x) - \epsilon\, g\cdot d|$ falls like $\epsilon^2$ for every direction $d$. If $g$ is even slightly wrong, for small $\epsilon$ it falls only like $\epsilon$. The exponent, the *order*, is the slope of $\log r$ over $\log\epsilon$.
#
# **Question 1 (4 points).** Write the function that returns the order. Choose two or more sizes $\epsilon$ so that neither rounding nor terms of third order matter; the entries of `x` and `direction` are about 1, and numbers have 16 digits. It will be tried with right gradients and with gradients that are 10 % wrong or more. $f$ returns a number, a tensor without dimensions; `x`, `direction` and `gradient` may have any shape, the same for all three, and $g\cdot d$ is a sum over all entries.


# %% answer="taylor_order"
def taylor_order(f, gradient, x, direction):
    "Order at which the remainder of f falls, 2 for the right gradient at x; gradient, x and direction have the same shape."
    ### BEGIN SOLUTION
    sizes = [1e-3, 1e-4]
    with torch.no_grad():
        r = [abs(f(x + e * direction) - f(x) - e * (gradient * direction).sum()) for e in sizes]
    return torch.log10(r[0] / r[1]).item()
    ### END SOLUTION
    ...


# %% check="taylor_order" points=4
def distance(start):
    "Distance of two opposite corners of the bar at the end [m], for velocities at the start."
    x = sim.rollout(None, steps, sim.state(velocity=start)).final.position[0]
    return (x[0] - x[-1]).norm()


at = (sim.state().velocity + 12.0 * arm).requires_grad_()
(right,) = torch.autograd.grad(distance(at), at)
random = torch.Generator().manual_seed(mine.seed("direction") % 2**31)
way = torch.randn(at.shape, generator=random)


def tells(taylor_order, f, gradient, x, direction, wrong_by):
    orders = [float(taylor_order(f, g, x.detach(), direction)) for g in (gradient, (1 + wrong_by) * gradient)]
    return abs(orders[0] - 2) < 0.15 and orders[1] < 1.6


hint = "Rounding makes a remainder below 1e-16 of f useless. What remains of f once its linear part is subtracted?"
check("Question 1", lambda taylor_order: tells(taylor_order, distance, right, at, way, 0.5), hint)


### BEGIN HIDDEN TESTS
def curved(x):
    return (x.square().sum() * torch.tensor(3.0)).sin() + x.prod()


point = torch.tensor([0.3, -0.2, 0.5], requires_grad=True)
(slope,) = torch.autograd.grad(curved(point), point)
ahead = torch.tensor([1.0, 0.5, -0.7])
check(
    "Question 1",
    lambda taylor_order: tells(taylor_order, curved, slope, point, ahead, 1e-1),
    f"{hint} Try other functions.",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. A gradient that is lost without a word
#
# A throw is a velocity and a spin. This loss wants the bar to come to a goal, unstretched, with little effort. Its value is right; its gradient is finite, plausible, and wrong. In which components, and by how much? Compare it with finite differences.

# %%
goal = torch.tensor([mine.number("goal x", 0.3, 0.9), mine.number("goal y", 0.2, 0.8)])


def wrong_loss(throw):
    "The loss of a throw, shape (3,): velocity [m/s] and spin [rad/s]; value right, gradient wrong."
    velocity, spin = throw[:2], throw[2]
    motion = sim.rollout(None, steps, thrown(velocity, spin))
    centre = sim.center_of_mass(motion.final)[0]
    x = motion.final.position[0]
    span = float((x[0] - x[-1]).norm())  # distance of two opposite corners [m], 0.204 at rest
    speed = torch.tensor([v.item() for v in velocity]).norm()
    return (centre - goal).square().sum() + 10.0 * (span - 0.204) ** 2 + 0.01 * speed**2 + 0.05 * span * centre[0]


own_throw = torch.tensor([*up.tolist(), 12.0])


# %% [markdown]
# **Question 2 (4 points).** Write `loss`, with the same values and the right gradient.


# %% answer="loss"
def loss(throw):
    "The loss of a throw, shape (3,): velocity [m/s] and spin [rad/s]."
    ### BEGIN SOLUTION
    velocity, spin = throw[:2], throw[2]
    motion = sim.rollout(None, steps, thrown(velocity, spin))
    centre = sim.center_of_mass(motion.final)[0]
    x = motion.final.position[0]
    span = (x[0] - x[-1]).norm()
    speed = velocity.norm()
    return (centre - goal).square().sum() + 10.0 * (span - 0.204) ** 2 + 0.01 * speed**2 + 0.05 * span * centre[0]
    ### END SOLUTION
    ...


# %% check="loss" points=4
def same_value(loss):
    return abs(loss(own_throw) - wrong_loss(own_throw)).item() < 1e-12


def right_gradient(loss, at):
    leaf = at.clone().requires_grad_()
    (found,) = torch.autograd.grad(loss(leaf), leaf)
    with torch.no_grad():
        ends = [[wrong_loss(at + s * 1e-5 * e).item() for s in (1, -1)] for e in torch.eye(3)]
    expected = torch.tensor([(a - b) / 2e-5 for a, b in ends])
    return torch.allclose(found, expected, rtol=1e-4, atol=1e-8)  # each component: the spin changes little


hint = "Which lines leave the graph: float(), .item(), torch.tensor(), .numpy(), .detach()? Compare each component."
check("Question 2", lambda loss: same_value(loss) and right_gradient(loss, own_throw), hint)
### BEGIN HIDDEN TESTS
elsewhere = torch.tensor(
    [
        mine.number(f"other {what}", *ends)
        for what, ends in {"x": (-2.0, -1.0), "y": (1.0, 2.0), "spin": (6.0, 18.0)}.items()
    ]
)
check("Question 2", lambda loss: right_gradient(loss, elsewhere), f"{hint} Try another throw.")
### END HIDDEN TESTS

# %% [markdown]
# ## 3. Memory
#
# The backward pass needs the states of the forward pass. `Checkpoints.every(k)` keeps every $k$-th of them, and computes the others again, $k$ at a time. `memory(k)` is the number of bytes of the states that are in memory at once.

# %%
length = 10 * round(20 * 45 ** mine.number("length", 0.0, 1.0))  # 200 to 9000


def memory(k):
    "Bytes for the states of a rollout whose every k-th state is kept."
    kept = -(-length // k) + 1
    state = 2 * 8 * rest[0].numel()  # positions and velocities, 8 bytes for a number
    return state * (kept + k)


ks = torch.arange(2, 200)
_, ax = plt.subplots(figsize=(6.4, 2.2), layout="constrained")
ax.plot(ks, [memory(int(k)) / 1e3 for k in ks], lw=1)
labels = ax.set(xlabel="k", ylabel="memory [kB]", title=f"{length} steps")

# %% [markdown]
# **Question 3 (3 points).** With which $k$ is the memory smallest? (A $k$ that needs at most 1 % more also counts.) *Derive it first, then look at the figure.* And `times`: count all steps that are computed, forwards and again for the way back, and divide by the number of steps of the motion. (The steps of the adjoint are not counted.) The tolerance is 10 %.

# %% answer="checkpoints"
k = ...
times = ...
### BEGIN SOLUTION
k = round(length**0.5)
times = 2.0
### END SOLUTION


# %% check="checkpoints" points=3
def least(k):
    return memory(int(k)) <= 1.01 * min(memory(i) for i in range(1, length + 1))


def computed(k):
    "Steps that are computed, per step of the motion: all of them forwards, and each piece again before its way back."
    return (length + sum(min(k, length - first) for first in range(0, length, k))) / length


hint = "Minimise n / k + k. Each piece between two kept states is computed again, once."
check("Question 3", lambda k, times: least(k) and abs(times / computed(int(k)) - 1) < 0.1, hint)

# %% [markdown]
# ## 4. When do you trust it?
#
# **Question 4 (4 points, read by a person).** A loss through ten bounces of a die has an exact gradient that leads nowhere (tutorial 07). Show it for your bar, with a floor (`wb.floor(dim=2)`): up to which horizon does the gradient still help, and how do you tell without knowing the answer? At most ten sentences, and one figure.

# %% [markdown] open="trust" points=4
# *Your answer.*
