# %% [markdown]
# # Lab 1. Springs and time
#
# **Goals.** You can say beforehand which time step an explicit method tolerates, how many steps an accuracy costs, and what a vibration tells about the body.
#
# **Time.** 90 minutes: 15 to read and to predict by hand, 60 for three questions, 15 for the open one. The simulations take less than a minute on one core.
#
# **Before.** Tutorial 02, *springs*.
#
# ![A lattice of masses joined by springs, and one cell of it](pictures/lattice.png)
#
# Write the name under which you hand this notebook in. The numbers of this lab follow from it, so that your neighbour's answers are not yours.

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
from warpbots.solvers.mass_spring import spectrum

mine = Numbers(student, "springs_and_time")

# %% [markdown]
# ## 1. The largest step
#
# A chain of masses $m_i$ lies on a line; the spring $k_i$ joins the masses $i$ and $i + 1$. Small displacements $u_i$ along the line obey $M \ddot u = -K u$, with the masses on the diagonal of $M$ and the stiffness matrix $K$. In each natural mode all masses swing with one angular frequency $\omega$ [rad/s]: $\ddot q = -\omega^2 q$ for its amplitude $q$. With steps of length $h$, the Verlet method turns this into
#
# $$q_{n+1} - 2 q_n + q_{n-1} = -(\omega h)^2 q_n .$$
#
# Try $q_n = z^n$: each step multiplies $q$ by one of two numbers $z$, which may be complex and depend on $\omega h$. If $h$ is too long for the fastest mode, one of them has a magnitude greater than 1, and the chain explodes.
#
# Here is your chain, and a function that simulates it with the Verlet method and says whether it stays near its place.

# %%
count = 6 + int(mine.number("masses", 0.0, 4.0))
own_mass = np.full(count, mine.number("mass", 0.1, 0.9))  # [kg]
own_mass[mine.seed("heavy") % count] *= 5.0
own_stiffness = np.full(count - 1, mine.number("stiffness", 100.0, 900.0))  # [N/m]
own_stiffness[mine.seed("stiff") % (count - 1)] *= mine.number("factor", 3.0, 9.0)


def stays(mass, stiffness, step):
    "Whether a chain with a random start of about 1 mm stays within 1 m for 4,000 steps of the Verlet method."

    def force(u):
        stretched = stiffness * np.diff(u)
        return np.append(stretched, 0.0) - np.append(0.0, stretched)

    u = 1e-3 * np.random.default_rng(0).normal(size=len(mass))
    u -= (mass * u).sum() / mass.sum()
    v = np.zeros_like(u)
    for _ in range(4000):
        v += step / 2 * force(u) / mass
        u += step * v
        v += step / 2 * force(u) / mass
        if not abs(u).max() < 1.0:
            return False
    return True


print(f"{count} masses [kg]:", own_mass)
print("springs [N/m]:", own_stiffness)

# %% [markdown]
# **Question 1 (4 points).** Write the function that returns the largest stable step [s] of a chain. It has to be right for every chain, not only for yours.
#
# *Predict first:* two masses of 1 kg on a spring of 100 N/m. What is the largest step? (Your function should agree.)


# %% answer="largest_step"
def largest_step(mass, stiffness):
    "The longest stable step [s] of a chain of masses [kg] on springs [N/m]."
    ### BEGIN SOLUTION
    K = np.diag(np.append(stiffness, 0.0) + np.append(0.0, stiffness))
    K -= np.diag(stiffness, 1) + np.diag(stiffness, -1)
    fastest = np.linalg.eigvals(K / mass[:, None]).real.max() ** 0.5
    return 2.0 / fastest
    ### END SOLUTION
    ...


# %% check="largest_step" points=4
def right_step(largest_step, mass, stiffness):
    step = float(largest_step(mass, stiffness))
    return step > 0.0 and stays(mass, stiffness, 0.99 * step) and not stays(mass, stiffness, 1.01 * step)


hint = "Which mode is the fastest, and what does one Verlet step do to x'' = -ω² x? Look at ωh."
check("Question 1", lambda largest_step: right_step(largest_step, own_mass, own_stiffness), hint)
### BEGIN HIDDEN TESTS
drawn = np.random.default_rng(mine.seed("other chains"))
others = [(drawn.uniform(0.05, 2.0, n), drawn.uniform(10.0, 2000.0, n - 1)) for n in (2, 5, 12)]
check(
    "Question 1",
    lambda largest_step: all(right_step(largest_step, m, k) for m, k in others),
    f"{hint} Try other chains.",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. The price of accuracy
#
# Two masses on one spring swing with the period $T = 2\pi\sqrt{\mu/k}$, $\mu = m_1 m_2 / (m_1 + m_2)$. A simulation with $n$ steps per period has an error. For your integrator, `error(n)` is the largest error within one period, in units of the amplitude. `euler` is the semi-implicit Euler method, which updates velocities first.

# %%
integrator = ("euler", "verlet", "rk4")[mine.seed("integrator") % 3]
target = mine.number("accuracy", 2.0, 6.0) * {"euler": 1e-2, "verlet": 1e-3, "rk4": 1e-4}[integrator]

bar = wb.shapes.Truss(joints=[(0.0, 0.0), (0.5, 0.0)], bars=[(0, 1)], radius=0.01)
pair = wb.Scene([wb.SoftBody("pair", bar, wb.Material(youngs_modulus=2e5, density=800.0))], gravity=(0.0, 0.0))
lattice = wb.Simulation(pair, wb.MassSpring(spacing=0.5), dt=1e-3).model.lattice
(k,), (m1, m2) = lattice.stiffness, lattice.mass
period = 2 * math.pi * math.sqrt(m1 * m2 / (m1 + m2) / k)


def error(n):
    "Largest error of the stretch within a period of n steps, relative to the amplitude."
    sim = wb.Simulation(pair, wb.MassSpring(0.5, integrator=integrator), dt=period / n, substeps=1)
    apart = sim.state(position=sim.state().position + torch.tensor([[0.0, 0.0], [0.05, 0.0]]))
    swing = sim.rollout(None, n, apart, observe=lambda s: s.position[:, 1, 0] - s.position[:, 0, 0] - 0.5)
    exact = 0.05 * torch.cos(2 * math.pi * torch.arange(1, n + 1) / n)
    return (swing.observation[0] - exact).abs().max().item() / 0.05


print(f"{integrator}: {error(8):.1e} with 8 steps per period; your target: {target:.1e}")

# %% [markdown]
# **Question 2 (3 points).** What is the smallest number of steps per period with which your integrator reaches your target? The error falls like $c / n^p$ once $n$ is large; the order $p$ is a whole number. Measure it with 16 and 32 steps and round it; errors below $10^{-6}$ are rounding. Then solve for $n$, call `error` with your $n$, and correct $n$ if need be. The check accepts an answer that is a few per cent off.

# %% answer="steps_per_period"
steps_per_period = ...
### BEGIN SOLUTION
order = {"euler": 1, "verlet": 2, "rk4": 4}[integrator]
steps_per_period = 16
for _ in range(3):  # the law c / n^p holds better, the closer n is to the answer
    steps_per_period = math.ceil(steps_per_period * (error(steps_per_period) / target) ** (1 / order))
### END SOLUTION


# %% check="steps_per_period" points=3
def smallest(n):
    return error(round(n)) <= 1.05 * target and error(round(0.93 * n) - 1) > target


hint = "Halve the step: by which factor does the error fall? Is your p a whole number? What is error(n) with your n?"
check("Question 2", lambda steps_per_period: smallest(steps_per_period), hint)

# %% [markdown]
# ## 3. The length of a beam from its tone
#
# A clamped beam of rubber, 0.1 m high, has been plucked, and a camera has filmed the height of its tip. How long is the beam? Beam theory gives the lowest frequency [Hz], with the length $L$, the height $h$ (`height`), Young's modulus $E$ (`modulus`), Poisson's ratio $\nu$ (`ratio`) and the density $\rho$ (`density`):
#
# $$f_1 = \frac{1.8751^2}{2\pi L^2}\sqrt{\frac{E' h^2}{12\rho}},\qquad E' = \frac{E}{1-\nu^2}.$$
#
# `film(length)` makes such a record: heights [m], one every 10 ms for 10 s, with the noise of a camera.

# %%
modulus = mine.number("modulus", 0.8e6, 2.0e6)  # [Pa]
height, density, ratio = 0.1, 1000.0, 0.25


def film(length, seed=0):
    "Heights of the tip of a beam of this length [m], every 10 ms for 10 s."
    root = wb.shapes.Box((-1e-6, -1.0), (1e-6, 1.0))
    rubber = wb.Material(modulus, poissons_ratio=ratio, density=density)
    beam = wb.SoftBody("beam", wb.shapes.Box((0.0, 0.0), (length, height)), rubber, regions={"root": root})
    scene = wb.Scene([beam], constraints=[wb.Constraint("root")], gravity=(0.0, 0.0))
    sim = wb.Simulation(scene, wb.MassSpring(height / 4, integrator="verlet"), dt=1e-2, substeps=None)
    rest = sim.state().position
    kick = torch.zeros_like(rest)
    kick[..., 1] = 0.1 * (rest[..., 0] / length) ** 2
    tip = rest[0, :, 0] > length - 1e-6
    ring = sim.rollout(None, 1000, sim.state(velocity=kick), observe=lambda s: s.position[:, tip, 1].mean(dim=1))
    noise = torch.randn(1000, generator=torch.Generator().manual_seed(seed))
    return (ring.observation[0] + 5e-4 * noise).numpy()


record = film(1.0, mine.seed("noise"))
_, ax = plt.subplots(figsize=(6.4, 2.2), layout="constrained")
ax.plot(0.01 * np.arange(1, 1001), 100 * record, lw=0.8)
labels = ax.set(xlabel="time [s]", ylabel="height of the tip [cm]", title="A beam of 1 m")

# %% [markdown]
# **Question 3 (5 points).** Write the function that finds the length [m] of a beam from its record. It will be tried on beams that you have not seen, between 0.7 and 1.3 m. The tolerance is 2.5 %. (Four cells across are a little stiffer in bending than a beam, so the formula gives a length that is 1 to 2 % short. You may correct this or leave it.) `spectrum(record, 0.01).peaks(1)[0]` is the strongest frequency of a record [Hz].


# %% answer="length_of"
def length_of(record):
    "The length [m] of the beam that was filmed."
    ### BEGIN SOLUTION
    f = spectrum(record - record.mean(), 0.01).peaks(1)[0]
    plane = modulus / (1 - ratio**2)
    return 1.8751 * ((plane * height**2 / 12 / density) ** 0.5 / (2 * math.pi * f)) ** 0.5
    ### END SOLUTION
    ...


# %% check="length_of" points=5
def finds(length_of, length, seed):
    return abs(float(length_of(film(length, seed))) / length - 1) < 0.025


hint = "Solve the formula for L. Is your frequency in Hz or in rad/s? Is E' the modulus itself?"
check("Question 3", lambda length_of: finds(length_of, 1.0, 1), hint)
### BEGIN HIDDEN TESTS
secret = [mine.number("first beam", 0.7, 1.0), mine.number("second beam", 1.0, 1.3)]
check(
    "Question 3", lambda length_of: all(finds(length_of, length, 2) for length in secret), f"{hint} Try other lengths."
)
### END HIDDEN TESTS

# %% [markdown]
# ## 4. Long simulations
#
# A planet, a molecule or a walker of springs is simulated for millions of steps. Compare `euler`, `verlet` and `rk4` over a thousand periods of 10 steps: what happens to the energy? (Add cells as you need. The section *Energy* of tutorial 02 shows how the energy is read.)
#
# **Question 4 (4 points, read by a person).** Which of the three would you take for ten minutes of a robot without damping, and which for a tenth of a second? Give a figure for each claim, in at most ten sentences.

# %% [markdown] open="which_integrator" points=4
# *Your answer.*
