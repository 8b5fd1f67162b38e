# %% [markdown]
# # Lab 5. Identification from a noisy film
#
# **Goals.** You can find the properties of a soft body from a film with an honest interval, test whether intervals are honest, and recognise what an experiment cannot tell.
#
# **Time.** 90 minutes: 15 to read and to predict by hand, 60 for four questions, 15 for the open one. The simulations take two minutes on one core.
#
# **Before.** Tutorial 08, *identification*.
#
# ![A beam with markers that a camera sees with errors; beside it, regions of stiffness and density that agree with a film](pictures/film_and_intervals.png)
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

mine = Numbers(student, "identification")

# %% [markdown]
# ## The film
#
# A beam of rubber, 20 cm long and 3 cm high, is clamped at its left end, held straight, and let go. It swings, and air slows it down: each mass $m$ feels the force $-c\,m\,v$. A camera films four markers, 50 times a second for 0.6 s. Each coordinate has an error; all errors are independent and have the same standard deviation, `noise`.
#
# `film(modulus, c)` predicts what the camera would see without errors: a tensor of 30 frames and 8 coordinates [m]. The arguments are Young's modulus [Pa] and the damping [1/s], numbers or tensors; in section 3 also the density [kg/m²], and the force [N] that pulls the tip downwards. `camera(modulus, c, seed)` adds the errors.

# %%
length, height, cell = 0.2, 0.03, 0.01
regions = {
    "root": wb.shapes.HalfSpace((1e-6, 0), (1, 0)),
    "tip": wb.shapes.HalfSpace((length - 1e-6, 0), (-1, 0)),
}
rubber = wb.Material(4e5, poissons_ratio=0.25, density=1000.0)
beam = wb.SoftBody("beam", wb.shapes.Box((0, 0), (length, height)), rubber, regions)
scene = wb.Scene([beam], constraints=[wb.Constraint("root")], loads=[wb.Load("tip", (0, -1.0))])
places = torch.tensor([[x, height] for x in (0.05, 0.1, 0.15, 0.2)])


def filming(cell):
    "The function that films a beam of cells of this size [m]."
    sim = wb.Simulation(scene, wb.MassSpring(cell, drag=1.0), dt=0.02)
    at = torch.cdist(places, sim.state().position[0]).argmin(dim=1)

    def film(modulus, c, density=1000.0, force=0.0):
        "Coordinates of the markers in 30 frames [m], shape (30, 8)."
        given = {
            "youngs_modulus": modulus * torch.ones_like(sim.parameter("youngs_modulus")),
            "drag": c * density / 1000.0 * sim.parameter("drag"),
            "mass": density / 1000.0 * sim.parameter("mass"),
            "load": force * sim.parameter("load"),
        }
        return sim.rollout(None, 30, observe=lambda s: s.position[:, at].flatten(1), **given).observation[0]

    return film


film = filming(cell)
noise = 1e-3 * mine.number("noise", 0.5, 1.5)  # [m]


def camera(modulus, c, seed, density=1000.0, force=0.0):
    "A film with errors, shape (30, 8) [m]."
    with torch.no_grad():
        exact = film(modulus, c, density, force)
    return exact + noise * torch.randn(exact.shape, generator=torch.Generator().manual_seed(seed % 2**31))


record = camera(mine.number("modulus", 2e5, 3.5e5), mine.number("damping", 1.0, 3.0), mine.seed("film"))
time = 0.02 * np.arange(1, 31)
fig, ax = plt.subplots(figsize=(6.4, 2.2), layout="constrained")
for k, name in ((3, "marker in the middle"), (7, "marker at the tip")):
    ax.plot(time, 1e3 * record[:, k], ".", ms=4, label=name)
ax.set(xlabel="time [s]", ylabel="height [mm]", title=f"your film: errors of {1e3 * noise:.2f} mm")
legend = fig.legend(frameon=False, fontsize=8, loc="outside right upper")

# %% [markdown]
# ## 1. A value and its interval
#
# **Question 1 (4 points).** Write the function that finds Young's modulus and damping from a film, with their 95 % intervals. `wb.least_squares(residual, [first, second], noise=..., progress=False)` does the work: `residual` is a function without arguments that returns prediction minus film; an unknown is `wb.Unknown(tensor, lower, upper, scale=...)` of a tensor with `requires_grad_()`, and its scale is a typical change: the two unknowns need different ones. The result has `value`, an array in the order of the unknowns, and `interval()`, their 95 % intervals as rows.
#
# The function will be tried on films that you have not seen, with moduli from 200 to 350 kPa and damping from 1 to 3 /s. *Predict first:* is the stiffness or the damping known better, in per cent?


# %% answer="fit"
def fit(record):
    "Values (modulus [Pa], damping [1/s]), and their 95 % intervals, of shape (2, 2): a row of two ends for each."
    ### BEGIN SOLUTION
    modulus = torch.tensor(2.7e5, requires_grad=True)
    c = torch.tensor(2.0, requires_grad=True)
    unknowns = {
        "modulus": wb.Unknown(modulus, 1e5, 5e5, scale=2e4),
        "damping": wb.Unknown(c, 0.0, 10.0, scale=0.2),
    }
    found = wb.least_squares(lambda: film(modulus, c) - record, unknowns, noise=noise, progress=False)
    return found.value, found.interval()
    ### END SOLUTION
    ...


# %% check="fit" points=4
def deviations(modulus, c):
    "Standard deviations that noise of this size causes: from the derivatives of the film, by differences."
    with torch.no_grad():
        columns = [
            (film(modulus + dm, c + dc) - film(modulus - dm, c - dc)).flatten().double() / (2 * (dm + dc))
            for dm, dc in ((0.01 * modulus, 0.0), (0.0, 0.1 * c))
        ]
    J = torch.stack(columns, dim=1)
    return noise * torch.linalg.inv(J.T @ J).diagonal().sqrt().numpy()


def honest(fit, modulus, c, seed):
    "Whether values are near the truth, and intervals as wide as the noise makes them."
    values, intervals = (np.asarray(part, dtype=float) for part in fit(camera(modulus, c, seed)))
    expected = deviations(modulus, c)
    near = abs(values - [modulus, c]) < 4.5 * expected
    width = (intervals[:, 1] - intervals[:, 0]) / (2 * 1.96 * expected)
    centred = abs(intervals.mean(axis=1) - values) < expected
    return bool(near.all() and (abs(width - 1) < 0.13).all() and centred.all())


hint = (
    "Has each unknown a scale? Does least_squares know the noise? Is the interval one of 95 %, and in Pa? "
    "Does each unknown have a row?"
)
check("Question 1", lambda fit: honest(fit, 2.5e5, 2.0, 1), hint)
### BEGIN HIDDEN TESTS
unseen = [(mine.number(f"modulus {k}", 2e5, 3.5e5), mine.number(f"damping {k}", 1.0, 3.0)) for k in range(2)]
check("Question 1", lambda fit: all(honest(fit, *two, 2) for two in unseen), f"{hint} Try other films.")
### END HIDDEN TESTS

# %% [markdown]
# ## 2. Are the intervals honest?
#
# An interval of 95 % promises something about repetitions: of many films of the same beam, 95 % give an interval that contains the truth. The share that does is the *coverage*.
#
# **Question 2 (4 points).** Write the function that measures the coverage of *any* such `fit`. And: your neighbours assume the wrong noise, the real one times your factor. Which share of their "95 %" intervals contains the truth? Answer in `wrong_coverage`, between 0 and 1; the tolerance is 0.02. Compute it from the normal distribution, or count: a share of a hundred films is uncertain by 0.1, so use some thousand random numbers instead.

# %%
factor = mine.number("factor", 0.2, 0.8)
print(f"the neighbours take the noise for {factor} of what it is")


# %% answer="coverage"
def coverage(fit, records, truth):
    "Share of the records whose interval contains the truth, for each unknown: an array of shape (2,), in [0, 1]."
    ### BEGIN SOLUTION
    inside = []
    for record in records:
        _, intervals = fit(record)
        inside.append((intervals[:, 0] <= truth) & (truth <= intervals[:, 1]))
    return np.mean(inside, axis=0)
    ### END SOLUTION
    ...


wrong_coverage = ...
### BEGIN SOLUTION
# an interval of 1.96 factor deviations around a normal number
wrong_coverage = float(torch.erf(torch.tensor(1.96 * factor / 2**0.5)))
### END SOLUTION


# %% check="coverage" points=4
def means(size, assumed):
    "A fit to a table of 25 rows: the means of both columns, if the noise is assumed to be this large."

    def fit(table):
        value = table.mean(axis=0)
        return value, value[:, None] + 1.96 * assumed * size[:, None] / 5 * np.array([-1.0, 1.0])

    return fit


drawn = np.random.default_rng(mine.seed("tables"))
truth, size = np.array([3.0, -1.0]), np.array([0.5, 2.0])
tables = truth + size * drawn.normal(size=(8000, 25, 2))


def counts(coverage, assumed, number):
    "Whether a coverage is counted right."
    shares = coverage(means(size, assumed), tables[:number], truth)
    expected = np.mean(abs(tables[:number].mean(axis=1) - truth) <= 1.96 * assumed * size / 5, axis=0)
    return np.shape(shares) == (2,) and np.allclose(shares, expected, atol=1e-9)


hint = "Count the records whose lower end is below, and whose upper end is above the truth, for each unknown by itself."
check("Question 2, coverage", lambda coverage: counts(coverage, 1.0, 200) and counts(coverage, 0.5, 300), hint)
spread = abs(tables.mean(axis=1) - truth) / (size / 5)
hint = "By how many standard deviations may the value be off? How often is a normal number farther off? A share, not per cent."
check(
    "Question 2, wrong noise", lambda wrong_coverage: abs(wrong_coverage - (spread < 1.96 * factor).mean()) < 0.02, hint
)

# %% [markdown]
# Now your own `fit`, with 12 films of one beam. How many do you expect? How far from it may chance lead?

# %%
if callable(fit) and callable(coverage) and fit(record) is not None:
    films = [camera(2.5e5, 2.0, 100 + k) for k in range(12)]
    shares = coverage(fit, films, np.array([2.5e5, 2.0]))
    if shares is not None:
        print(f"{12 * shares[0]:.0f} of 12 intervals contain the modulus, {12 * shares[1]:.0f} contain the damping")

# %% [markdown]
# ## 3. Twins
#
# Now the density is not known either.
#
# **Question 3 (3 points).** Write the function that returns the modulus [Pa] and the damping $c$ [1/s] with which a beam of *another density* gives exactly the same film, without a force at the tip. The films have to agree within 0.01 mm.
#
# *Think first:* write Newton's law for one mass. Which terms grow with the density?


# %% answer="twin"
def twin(modulus, c, density, other_density):
    "Modulus [Pa] and damping [1/s] of a beam of other_density whose film is that of the first beam [kg/m^2]."
    ### BEGIN SOLUTION
    return modulus * other_density / density, c
    ### END SOLUTION
    ...


# %% check="twin" points=3
def same_film(twin, modulus, c, density, other):
    with torch.no_grad():
        apart = film(modulus, c, density) - film(*twin(modulus, c, density, other), other)
    return apart.abs().max().item() < 1e-5


other_density = 100.0 * round(mine.number("density", 7.0, 9.0))
hint = "Weight, inertia and this damping grow with the mass. What has to grow with them? Here c is a damping per mass."
check("Question 3", lambda twin: same_film(twin, 2.5e5, 2.0, 1000.0, other_density), hint)
### BEGIN HIDDEN TESTS
check("Question 3", lambda twin: same_film(twin, 2e5, mine.number("other c", 1.0, 3.0), 800.0, 1300.0), hint)
### END HIDDEN TESTS

# %% [markdown]
# ## 4. Another experiment
#
# No method tells twins apart; a force that does not grow with the density does. Pull the tip by a known force while the beam is filmed. The damping is known now, $c = 2$ /s, and the modulus is near 250 kPa, the density near 1000 kg/m²; both are to be found from one film, together.
#
# **Question 4 (4 points).** Which force [N] makes the 95 % interval of the modulus as wide as your goal, in ± per cent? The tolerance of the width is 7 %. The covariance is $\sigma^2 (J^T J)^{-1}$, with $\sigma$ = `noise`; `jacobian(force)` is $J$, with the derivatives of all 240 coordinates of the film by modulus and by density as columns [m], each for a change of 100 %. The force is between 1 and 50 N.

# %%
percent = mine.number("percent", 1.0, 3.0) * round(noise / 1e-3, 2)
print(f"the interval of the modulus is to be ± {percent:.2f} %")


def jacobian(force):
    "Derivatives of the film by modulus and density, relative to both: differences of 1 %; shape (240, 2) [m]."
    with torch.no_grad():
        columns = [
            (film(2.5e5 * (1 + m), 2.0, 1000 * (1 + r), force) - film(2.5e5 * (1 - m), 2.0, 1000 * (1 - r), force))
            / 0.02
            for m, r in ((0.01, 0.0), (0.0, 0.01))
        ]
    return torch.stack([column.flatten().double() for column in columns], dim=1)


# %% answer="force"
force = ...  # [N]
### BEGIN SOLUTION


def half_width(force):
    "Half the width of the interval of the modulus [%]."
    J = jacobian(force)
    return 196 * noise * torch.linalg.inv(J.T @ J)[0, 0].sqrt().item()


force = 3.0
for _ in range(4):  # the width is nearly proportional to 1 / force
    force *= half_width(force) / percent
### END SOLUTION


# %% check="force" points=4
def by_fit(force):
    "Half the width of the interval of the modulus [%], from a fit to a film."
    both = torch.tensor([2.6e5, 1040.0], requires_grad=True)
    low, high, typical = (torch.tensor(pair) for pair in ([1e5, 500.0], [5e5, 2000.0], [2.5e4, 100.0]))
    seen = camera(2.5e5, 2.0, 5, 1000.0, force)
    unknown = wb.Unknown(both, low, high, scale=typical)
    found = wb.least_squares(lambda: film(both[0], 2.0, both[1], force) - seen, unknown, noise=noise, progress=False)
    return 196 * found.deviation[0] / 2.5e5


hint = "The larger the force, the better are the twins told apart. Do you invert the whole matrix of both unknowns? Is the width ± 1.96 deviations, in per cent of the modulus?"
check("Question 4", lambda force: force > 0.1 and abs(by_fit(float(force)) / percent - 1) < 0.07, hint)

# %% [markdown]
# ## 5. When the model is wrong
#
# Intervals are about noise. A model has errors, too: here three cells across the height, which are stiffer in bending than rubber is.
#
# **Question 5 (4 points, read by a person).** `filming(cell / 4)` makes the function that films a beam with cells of a quarter of the size. Add errors to such a film, and identify it with the coarse model. How far is the estimate off, in units of its interval? Does the sum of squares tell you (`least_squares` has `reduced_chi_square`)? How would you notice it with a real beam, whose modulus nobody knows? At most ten sentences, and one figure.

# %% [markdown] open="model_error" points=4
# *Your answer.*
