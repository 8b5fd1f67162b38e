# %% [markdown]
# # Lab 9. Co-design
#
# **Goals.** You can optimise a body together with its control, compare the result fairly with control alone, and find out whether it holds on a finer grid.
#
# **Time.** 90 minutes: 15 to read and to predict by hand, 60 for four questions, 15 for the open one. The simulations take 20 s on one core.
#
# **Before.** Tutorials 07, *gradients*, and 09, *co-design*.
#
# ![Body and control go into one simulation; the gradient of the loss goes back to both](pictures/codesign.png)
#
# Write the name under which you hand this notebook in. The numbers of this lab follow from it.

# %%
student = ""

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch

import warpbots as wb
from warpbots.exercises import check
from warpbots.labs import Numbers

mine = Numbers(student, "codesign")

# %% [markdown]
# ## 1. An arm that swings
#
# A soft arm lies on a table without friction and is clamped at its left end. Two muscles run along it, which pull against each other: a signal of 1 bends it upwards, -1 downwards. They are weak. The arm has little more than a second (`duration` in the code) to bring its tip as high as possible *at the end*. The signal is a table of numbers between -1 and 1, one (of `knots`) for each 0.1 s.
#
# The next cell warns that the spacing is too coarse. The warning is justified. Go on nevertheless, as one does in a hurry; question 4 comes back to it.

# %%
modulus = mine.number("modulus", 0.9e5, 1.4e5, digits=3)  # [Pa]
duration = mine.number("duration", 1.2, 1.5)  # [s]
length, width, parts, knots = 0.24, 0.04, 6, round(10 * duration)
print(f"modulus {modulus:g} Pa, {duration} s, {knots} numbers")


def arm(spacing, substeps):
    "A simulation of the arm on a lattice of a spacing [m], with steps of 0.02 s in a number of substeps."
    Box, HalfSpace = wb.shapes.Box, wb.shapes.HalfSpace
    edges = np.linspace(0, length, parts + 1)
    regions = {f"part {k}": Box((edges[k], -width / 2), (edges[k + 1], width / 2)) for k in range(parts)}
    regions |= {
        "upper": Box((0, 0), (length, width / 2)),
        "lower": Box((0, -width / 2), (length, 0)),
        "root": HalfSpace((1e-6, 0), (1, 0)),
        "tip": HalfSpace((length - 1e-6, 0), (-1, 0)),
    }
    silicone = wb.Material(modulus, poissons_ratio=0.25, density=1000.0, damping=3e-4)
    body = wb.SoftBody("arm", Box((0, -width / 2), (length, width / 2)), silicone, regions, color=(0.9, 0.65, 0.55))
    muscles = [wb.actuators.Muscle(name, name, (1, 0), max_stress=1e3) for name in ("upper", "lower")]
    scene = wb.Scene([body], muscles, constraints=[wb.Constraint("root")], gravity=(0, 0), name="arm")
    return wb.Simulation(scene, wb.MassSpring(spacing), 0.02, substeps)


def swing(sim, signal, factors):
    "The motion of the arm; `factors`, shape (6,), multiply the modulus of its parts, from root to tip."
    steps, tip = round(duration / sim.dt), sim.region("tip")
    control = signal.repeat_interleave(steps // knots)[:, None] * torch.tensor([1.0, -1.0])
    stiffness = {f"part {k}": modulus * factors[k] for k in range(parts)}
    return sim.rollout(
        control, steps, observe=lambda s: s.position[:, tip, 1].mean(dim=1),
        youngs_modulus=sim.per_region(stiffness, "youngs_modulus"),
    )  # fmt: skip


def height(sim, signal, factors):
    "Height of the tip at the end [m]."
    return swing(sim, signal, factors).observation[0, -1]


coarse = arm(spacing=0.02, substeps=28)
uniform = torch.ones(parts)
times = coarse.dt * np.arange(1, round(duration / coarse.dt) + 1)
steady = swing(coarse, torch.ones(knots), uniform)
_, ax = plt.subplots(figsize=(6.4, 2.2), layout="constrained")
ax.plot(times, 100 * steady.observation[0], lw=1)
ax.grid(color="0.9")
labels = ax.set(xlabel="time [s]", ylabel="tip [cm]", title="a steady pull, signal 1", xticks=times[4::5])

# %% [markdown]
# **Question 1 (3 points).** Without an optimiser: which signal brings the tip at least 2.4 times as high at the end as a steady pull at its highest? Read the period of the arm from the figure.
#
# *Predict first:* when does one push a swing, and in which direction is the last push?

# %% answer="by_hand"
by_hand = ...  # numbers between -1 and 1, as many as `knots`
### BEGIN SOLUTION
y = steady.observation[0].numpy()
crossings = times[1:][np.diff(np.sign(y - y.mean())) != 0]
period = 2 * np.diff(crossings).mean()
middles = duration * (np.arange(knots) + 0.5) / knots
by_hand = np.sign(np.sin(2 * np.pi * (duration - middles) / period))
### END SOLUTION


# %% check="by_hand" points=3
def table(signal):
    "A signal as a tensor, if it is one."
    signal = torch.as_tensor(signal, dtype=torch.float32).detach()
    if signal.shape != (knots,) or signal.abs().max() > 1 + 1e-6:
        raise ValueError(f"a signal has {knots} numbers between -1 and 1")
    return signal


def swings(by_hand):
    return height(coarse, table(by_hand), uniform) > 2.4 * steady.observation.max()


hint = (
    "Push for half a period one way, and for half a period the other. Count backwards from the end. Where a half period "
    "ends within an interval of 0.1 s: which sign does the larger part need?"
)
check("Question 1", lambda by_hand: swings(by_hand), hint)

# %% [markdown]
# ## 2. A body with a constraint
#
# Any body could be stiffer or softer, so a comparison needs a budget: the mean of the six stiffness factors is 1, and none is below 0.8. An optimiser with free numbers $z$ obeys it if the factors are a function of $z$ that *cannot* break it.
#
# **Question 2 (3 points).** Write this function. Every body within the budget has to be the image of some $z$, except for those with a factor of exactly 0.8, and all derivatives have to exist.
#
# *Predict first:* where will the arm become soft, at the root or at the tip?


# %% answer="factors"
def factors(z):
    "Stiffness factors with mean 1 and none below 0.8, a tensor of shape (6,), for any tensor z of shape (6,)."
    ### BEGIN SOLUTION
    return 0.8 + 0.2 * parts * torch.softmax(z, dim=0)
    ### END SOLUTION
    ...


# %% check="factors" points=3
def within(e):
    "Whether a body is within the budget."
    return abs(e.mean() - 1).item() < 1e-5 and e.min().item() > 0.8 - 1e-5


def obeys(factors, scale):
    random = torch.Generator().manual_seed(mine.seed("z") % 2**31)
    tried = [scale * torch.randn(parts, generator=random) for _ in range(20)]
    return all(within(factors(z)) for z in tried)


def reaches(factors, wanted):
    "Whether some z gives the wanted body, and whether the gradient leads to it."
    z = torch.zeros(parts, requires_grad=True)
    search = torch.optim.LBFGS([z], max_iter=200, line_search_fn="strong_wolfe")

    def off():
        search.zero_grad()
        loss = (factors(z) - wanted).square().sum()
        loss.backward()
        return loss

    search.step(off)
    return off().item() < 1e-4


hint = "First share out a sum of 1 with softmax. How much of the stiffness is free to be shared, how much is bound?"
body = torch.tensor([1.5, 0.85, 0.95, 0.85, 0.95, 0.9])
check("Question 2", lambda factors: obeys(factors, 1.0) and reaches(factors, body), hint)
### BEGIN HIDDEN TESTS
check("Question 2", lambda factors: obeys(factors, 30.0) and reaches(factors, body.flip(0)), f"{hint} Try a large z.")
### END HIDDEN TESTS

# %% [markdown]
# ## 3. Control alone, and both
#
# **Question 3 (4 points).** Optimise the signal alone for the uniform arm, `alone`, and then signal and body together, `both = (signal, stiffness)`, with the six factors as `stiffness`. Use the same start, method and number of iterations, at most 25. Control alone has to be converged, for otherwise the comparison is not fair: to first order, no change of its signal within the bounds may gain 3 % of the height. And `both` has to bring the tip at least 3 % higher.
#
# `wb.minimize(loss, unknowns, method, iterations=...)` minimises a function `loss()` over `unknowns`, tensors by name with `requires_grad=True`, and gives these tensors their best values. It takes a few seconds; `wb.Unknown(signal, -1.0, 1.0)` has bounds, and `wb.methods.Torch(torch.optim.Adam, lr=0.12)` is a method.

# %% answer="designs"
alone = ...  # a signal
both = ...  # (a signal, 6 factors)


### BEGIN SOLUTION
def search(with_body):
    signal, z = torch.zeros(knots, requires_grad=True), torch.zeros(parts, requires_grad=with_body)
    unknowns = {"signal": wb.Unknown(signal, -1.0, 1.0)} | ({"body": wb.Unknown(z)} if with_body else {})

    def loss():
        return -height(coarse, signal, factors(z))

    wb.minimize(loss, unknowns, wb.methods.Torch(torch.optim.Adam, lr=0.12), iterations=20)
    return signal.detach(), factors(z).detach()


alone, both = search(False)[0], search(True)
### END SOLUTION


# %% check="designs" points=4
def left_over(signal):
    "What bounded changes of a signal could still gain, to first order, as a share of the height."
    leaf = table(signal).clone().requires_grad_()
    reached = height(coarse, leaf, uniform)
    (slope,) = torch.autograd.grad(reached, leaf)
    return ((slope.abs() - slope * leaf).sum() / reached).item()


def is_better(alone, both):
    signal, e = table(both[0]), torch.as_tensor(both[1], dtype=torch.float32).detach()
    higher = height(coarse, signal, e) / height(coarse, table(alone), uniform)
    return within(e) and left_over(alone) < 0.03 and higher > 1.03


hint = "Does the loss become smaller when the tip rises? Is control alone at its bounds, and the mean of the factors 1?"
check("Question 3", lambda alone, both: is_better(alone, both), hint)

# %% [markdown]
# What came out: the signals, and the bodies.

# %%
left, right = plt.subplots(1, 2, figsize=(6.4, 2.4), layout="constrained")[1]
for name, signal, e in (("control alone", alone, uniform), ("both", *both)):
    motion = swing(coarse, table(signal), torch.as_tensor(e))
    left.plot(times, 100 * motion.observation[0], lw=1, label=f"{name}: {100 * motion.observation[0, -1]:.1f} cm")
    right.step(np.arange(parts + 1), [*e, e[-1]], where="post", lw=1)
left.set(xlabel="time [s]", ylabel="tip [cm]")
left.legend(frameon=False, fontsize=8)
labels = right.set(xlabel="part, from root to tip", ylabel="stiffness factor", ylim=(0, None))

# %% [markdown]
# ## 4. An honest check
#
# The optimiser saw one time step and one grid, and may have used their faults. Simulate both results again: with half the step, `arm(0.02, 56)`, and then on a lattice of half the spacing, which needs shorter steps, too, `arm(0.01, 104)`. Nothing is optimised anew.
#
# **Question 4 (3 points).** How high [m] does the tip come on the finer *lattice*, with control alone, and with both? The tolerance is 1 %.
#
# *Predict first:* a lattice that is too coarse is too stiff when it bends. What does this do to the period, and so to your signal?

# %% answer="heights"
fine_alone = ...  # [m]
fine_both = ...  # [m]
### BEGIN SOLUTION
finer = arm(0.01, 104)
fine_alone = height(finer, alone, uniform).item()
fine_both = height(finer, *both).item()
### END SOLUTION


# %% check="heights" points=3
def again(fine_alone, fine_both):
    found = arm(0.01, 104)
    signal, e = table(both[0]), torch.as_tensor(both[1], dtype=torch.float32)
    expected = height(found, table(alone), uniform).item(), height(found, signal, e).item()
    return min(expected) > 0 and np.allclose([float(fine_alone), float(fine_both)], expected, rtol=0.01, atol=0)


hint = "The same signals and factors in another simulation. Is the height in m?"
check("Question 4", lambda fine_alone, fine_both: again(fine_alone, fine_both), hint)

# %% [markdown]
# ## 5. What would you build?
#
# **Question 5 (4 points, read by a person).** How large is the gain of `both` over control alone with half the step, and on the finer lattice? It can shrink, vanish or grow: why does yours? Was your guess about the body right? (The arm has a deadline: what does stiffness do to its period, and what to its reach?) Would you optimise again on the finer lattice, add duration or modulus to the unknowns, or ask for a result that is good for several lattices at once? At most ten sentences, and one figure.

# %% [markdown] open="build" points=4
# *Your answer.*
