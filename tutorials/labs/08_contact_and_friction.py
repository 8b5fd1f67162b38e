# %% [markdown]
# # Lab 8. Contact and friction
#
# **Goals.** You can measure a coefficient of friction, predict where a body stops, and say when a body slips on a shaking plate.
#
# **Time.** 90 minutes: 15 to read and to predict by hand, 60 for three questions, 15 for the open one. The simulations take about a minute on one core.
#
# **Before.** Tutorial 05, *projective dynamics*.
#
# ![The friction cone: a contact sticks if its force is inside, and slides if it is on the edge](pictures/contact_cone.png)
#
# Coulomb's law: as long as a contact sticks, the tangential force $f_t$ stays within the cone $|f_t| \le \mu f_n$; as soon as it slides, $|f_t| = \mu f_n$, against the motion. In the drawing the force of the floor on the block is called $\lambda$.
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

mine = Numbers(student, "contact_and_friction")
g = 9.81  # [m/s^2]

# %% [markdown]
# ## 1. A slope that measures
#
# A block of hard rubber lies on a table that can be tilted. `slid(tilt)` returns how far [m] the block has slid 0.25 s after the table was tilted by this angle [rad]; `table(mu)` makes such a function for a table of any friction. Your task is to find the friction of your table.

# %%
cube = wb.shapes.Box((0.0, 0.0, 0.0), (0.1, 0.1, 0.05))
block = wb.SoftBody("block", cube, wb.Material(1e6, poissons_ratio=0.3, density=1000.0))
scene = wb.Scene([block], obstacles=[wb.floor(friction=0.5)])


def run(steps, step, mu, tilt=0.0, speed=0.0):
    "A block on a floor that is tilted about y, so that it slides towards x; it starts with a speed along x [m/s]."
    sim = wb.Simulation(scene, wb.ProjectiveDynamics(cell_size=0.05), dt=step)
    gravity = torch.tensor([[g * math.sin(tilt), 0.0, -g * math.cos(tilt)]])
    start = torch.zeros_like(sim.state().position)
    start[..., 0] = speed
    friction = torch.tensor([[float(mu)]])
    motion = sim.rollout(
        None, steps, sim.state(velocity=start), gravity=gravity, friction=friction,
        observe=lambda s: torch.stack([s.position[..., 0].mean(dim=1), s.velocity[..., 0].mean(dim=1)], dim=-1),
    )  # fmt: skip
    return motion.observation[0].numpy() - [sim.state().position[..., 0].mean().item(), 0.0]


def table(mu):
    "A table of this friction: a function of the tilt [rad] that returns how far a block slides in 0.25 s [m]."
    return lambda tilt: run(100, 1 / 400, mu, tilt)[-1, 0]


slid = table(mine.number("table", 0.3, 0.8))
tilts = np.radians([5.0, 15.0, 25.0, 35.0, 45.0])
_, ax = plt.subplots(figsize=(6.4, 2.2), layout="constrained")
ax.plot(np.degrees(tilts), [100 * slid(tilt) for tilt in tilts], "o-", ms=3, lw=1)
labels = ax.set(xlabel="tilt [degrees]", ylabel="distance in 0.25 s [cm]")

# %% [markdown]
# **Question 1 (4 points).** Write the function that finds the friction of a table from at most six trials of `slid`. It will be tried on other tables, with frictions between 0.3 and 0.8. The tolerance is 0.015.
#
# *Predict first:* at which tilt does a block begin to slide, if $\mu = 0.5$? How far does it slide in 0.25 s at 45 degrees?


# %% answer="friction_of"
def friction_of(slid):
    "The coefficient of friction of a table."
    ### BEGIN SOLUTION
    tilt, duration = math.radians(45.0), 0.25
    acceleration = 2 * slid(tilt) / duration**2
    return math.tan(tilt) - acceleration / (g * math.cos(tilt))
    ### END SOLUTION
    ...


# %% check="friction_of" points=4
def finds(friction_of, mu):
    trials, slid = [], table(mu)

    def counted(tilt):
        trials.append(tilt)
        return slid(tilt)

    return abs(float(friction_of(counted)) - mu) < 0.015 and 0 < len(trials) <= 6


hint = "A block that slides has a constant acceleration. Is the tilt in radians? Is your start at rest?"
check("Question 1", lambda friction_of: finds(friction_of, mine.number("table", 0.3, 0.8)), hint)
### BEGIN HIDDEN TESTS
frictions = [mine.number("second table", 0.3, 0.5), mine.number("third table", 0.5, 0.8)]
check("Question 1", lambda friction_of: all(finds(friction_of, mu) for mu in frictions), f"{hint} Try other tables.")
### END HIDDEN TESTS

# %% [markdown]
# ## 2. Where does it stop?
#
# Your block is pushed *up* a slope, with a speed and a tilt of your own. It stops and stays there, because the slope is too flat for it to slide back.

# %%
speed = mine.number("speed", 1.0, 2.0)  # [m/s]
friction = mine.number("friction", 0.4, 0.7)
incline = mine.number("tilt", 5.0, 15.0)  # [degrees]
print(f"{speed} m/s up a slope of {incline} degrees, friction {friction}")

# %% [markdown]
# **Question 2 (3 points).** How far [m] does it slide? The tolerance is 3 %.

# %% answer="way"
way = ...  # [m]
### BEGIN SOLUTION
tilt = math.radians(incline)
way = speed**2 / (2 * g * (math.sin(tilt) + friction * math.cos(tilt)))
### END SOLUTION


# %% check="way" points=3
def comes():
    return run(300, 1 / 600, friction, tilt=-math.radians(incline), speed=speed)[:, 0].max()


hint = "Balance of energy: the kinetic energy pays for the height and for the work of friction."
check("Question 2", lambda way: abs(way / comes() - 1) < 0.03, hint)

# %% [markdown]
# ## 3. A shaking plate
#
# A plate moves to and fro, $x = a \sin 2\pi f t$, with your amplitude; a block lies on it. If the plate shakes slowly, the block moves with it. Above some frequency it slips.
#
# `slips(f)` simulates this for three periods and returns the largest distance [m] of the block from its place on the plate.

# %%
amplitude = mine.number("amplitude", 0.01, 0.04)  # [m]
plate_friction = mine.number("plate", 0.3, 0.8)
print(f"amplitude {amplitude} m, friction {plate_friction}")


def slips(frequency):
    "Largest distance of a block from its place on the plate in three periods [m]."
    duration = 3.0 / frequency
    shake = wb.PrescribedMotion.sampled(
        lambda t: (amplitude * math.sin(2 * math.pi * frequency * t), 0.0, 0.0), duration, duration / 120
    )
    plate = wb.Obstacle(wb.shapes.HalfSpace((0, 0, 0), (0, 0, 1)), name="plate", motion=shake, friction=plate_friction)
    sim = wb.Simulation(wb.Scene([block], obstacles=[plate]), wb.ProjectiveDynamics(cell_size=0.05), dt=duration / 120)
    # it starts with the velocity of the plate
    start = torch.zeros_like(sim.state().position)
    start[..., 0] = 2 * math.pi * frequency * amplitude
    motion = sim.rollout(
        None, 119, sim.state(velocity=start), observe=lambda s: s.position[..., 0].mean(dim=1) - sim.state().position[..., 0].mean()
    )  # fmt: skip
    t = duration / 120 * np.arange(1, 120)
    return float(abs(motion.observation[0].numpy() - amplitude * np.sin(2 * math.pi * frequency * t)).max())


# %% [markdown]
# **Question 3 (4 points).** At which frequency [Hz] does the block begin to slip? The tolerance is 3 %.

# %% answer="frequency"
frequency = ...  # [Hz]
### BEGIN SOLUTION
frequency = math.sqrt(plate_friction * g / amplitude) / (2 * math.pi)
### END SOLUTION


# %% check="frequency" points=4
def begins(frequency):
    return slips(0.97 * frequency) < 1e-3 * amplitude < slips(1.03 * frequency)


hint = "Which force does the block need to follow the plate where its acceleration is largest? Hz or rad/s?"
check("Question 3", lambda frequency: begins(float(frequency)), hint)

# %% [markdown]
# ## 4. To and fro, or away?
#
# A worm of two blocks on a spring that lengthens and shortens does not get anywhere on a plane with uniform friction. With friction that depends on the direction, or with blocks that press down in turn, it does.
#
# **Question 4 (4 points, read by a person).** Why does the first worm stay in place? Name two ways to make it crawl, estimate the distance per period of each, and say which one you would build, in at most ten sentences and a sketch.

# %% [markdown] open="crawl" points=4
# *Your answer.*
