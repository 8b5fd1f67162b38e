"""Answers that are wrong, by lab and question: a wrong idea, the right one in a wrong unit, and one that is nearly right.

A pair is the part of the solution that is replaced, and its replacement.
"""

WRONG = {
    "01_springs_and_time": {
        "largest_step": "def largest_step(mass, stiffness):\n    return 2.0 * (mass.min() / stiffness.max()) ** 0.5",
        "steps_per_period": "steps_per_period = 10",
        "length_of": "def length_of(record):\n    return 1.0",
    },
    "02_lattices": {
        "moduli": ("2 * diagonal", "diagonal"),
        "beam_edge": "beam_edge = 12 * mass_per_area * (2 * math.pi * tone * (40 * cell) ** 2 / 1.8751**2 / (4 * cell)) ** 2",
        "strain": "strain = 2 * math.radians(goal) * strip_height / strip_length",
        "angle": "angle = math.degrees(math.asin(1 / wanted))",
    },
    "03_material_point_method": {
        "p2g": ("A = m * C[p] - ", "A = m * C[p] + "),
        "g2p": ("4.0 / (dx * dx) * B", "B"),
        "move_grid": ("momentum[i, j] / mass[i, j]", "momentum[i, j]"),
        "simulate": ("        mass.zero_()\n", ""),
        "longest_step": "longest_step = cell / math.sqrt(modulus / density) / 10",
    },
    "04_gradients_and_traps": {
        "taylor_order": "def taylor_order(f, gradient, x, direction):\n    return 2.0",
        "loss": "loss = wrong_loss",
        "checkpoints": "k = length // 2\ntimes = 2.0",
    },
    "05_identification": {
        "fit": ("found.interval()", "found.value[:, None] + found.deviation[:, None] * np.array([-1.0, 1.0])"),
        "coverage": ("torch.tensor(1.96 * factor / 2**0.5)", "torch.tensor(1.96 / 2**0.5)"),
        "twin": ("density, c", "density, c * other_density / density"),
        "force": "force = 1.0",
    },
    "06_air": {
        "pressure": "pressure = 0.001 * goal * modulus",
        "second_pressure": "second_pressure = math.sqrt(factor) * np.interp(goal, angles, pressures)",
        "work": "def work(pressures, volumes):\n    return pressures[-1] * (volumes[-1] - volumes[0])",
        "syringe": "syringe = np.interp(goal, angles, volumes) - volumes[0]",
    },
    "07_tendons": {
        "tip": "def tip(curvature, length):\n    return length, curvature * length**2 / 2",
        "curvature": "def curvature(tension, modulus, width, height, offset):\n"
        "    return tension * offset / (modulus * height * width**3 / 12)",
        "setup": "plate, first, last = True, 0, 12",
        "winding": "winding = offset * math.radians(goal)",
    },
    "08_contact_and_friction": {
        "friction_of": "def friction_of(slid):\n    return slid(0.7) / 0.25",
        "way": "way = speed**2 / (2 * g * friction)",
        "frequency": "frequency = math.sqrt(g / amplitude) / (2 * math.pi)",
    },
    "09_codesign": {
        "by_hand": "by_hand = np.ones(knots)",
        "factors": "def factors(z):\n    return z.clamp(0.8, 2.0)",
        "designs": "alone = torch.linspace(-1.0, 1.0, knots)\nboth = (torch.ones(knots), uniform)",
        "heights": "fine_alone, fine_both = 0.5, 0.5",
    },
    "10_learning": {
        "to_go": "def to_go(rewards):\n    return rewards.cumsum(dim=0)",
        "policy_loss": "def policy_loss(mean, action, spread, advantage):\n"
        "    return ((action - mean).square() * advantage).mean()",
        "return_loss": "def return_loss(policy, seed):\n    return rewards_alone(policy, seed)",
        "price": "reward_samples, gradient_samples, dearer = 1000, 1000, 1.0",
    },
}

UNITS = {
    "01_springs_and_time": {
        "largest_step": ("return 2.0 / fastest", "return 2.0e3 / fastest"),  # ms
        "length_of": ("(2 * math.pi * f)", "f"),  # Hz for rad/s
    },
    "02_lattices": {
        "moduli": ("return edge", "return 1e-3 * edge"),  # N/mm
        "beam_edge": ("2 * math.pi * tone", "tone"),  # rad/s for Hz
        "strain": ("strain *= goal", "strain *= 100 * goal"),  # per cent
        "angle": ("math.degrees(theta", "(theta"),
    },
    "03_material_point_method": {
        "p2g": ("* dx - x[p]", "- x[p] / dx"),  # cells
        "g2p": ("* dx - x[p]", "- x[p] / dx"),
        "move_grid": ("dt * gravity", "100.0 * dt * gravity"),  # cm
        "simulate": ("gravity, friction", "100.0 * gravity, friction"),
        "longest_step": ("short, long = safe, 6 * safe", "short, long = 1e3 * safe, 6e3 * safe"),  # ms
    },
    "04_gradients_and_traps": {
        "taylor_order": ("log10", "log"),
        "loss": ("(span - 0.204)", "(100 * span - 20.4)"),  # cm
    },
    "05_identification": {
        "fit": ("return found.value, found", "return 1e-3 * found.value, 1e-3 * found"),  # kPa
        "coverage": ("np.mean(inside", "100 * np.mean(inside"),  # per cent
        "twin": ("return modulus", "return 1e-3 * modulus"),
        "force": ("force = 3.0", "percent *= 1e-2\nforce = 3.0"),
    },
    "06_air": {
        "pressure": ("np.interp", "1e-3 * np.interp"),  # kPa
        "second_pressure": ("factor * pressure", "1e-3 * factor * np.interp(goal, angles, pressures)"),
        "work": ("np.diff(volumes)", "1e6 * np.diff(volumes)"),  # ml
        "syringe": ("(atmosphere + pressure)", "1e6 * (atmosphere + pressure)"),  # ml
    },
    "07_tendons": {
        "tip": ("angle = curvature * length", "angle = math.degrees(curvature * length)"),
        "curvature": ("tension * offset", "tension * 1e3 * offset"),  # mm
        "winding": ("math.radians(goal)", "goal"),
    },
    "08_contact_and_friction": {
        "friction_of": ("math.radians(45.0), 0.25", "math.radians(45.0), 250.0"),  # ms
        "way": ("math.radians(incline)", "incline"),
        "frequency": (" / (2 * math.pi)", ""),  # rad/s
    },
    "09_codesign": {
        "by_hand": ("2 * np.pi * (duration", "360 * (duration"),  # degrees
        "designs": ("factors(z).detach()", "modulus * factors(z).detach()"),  # Pa
        "heights": ("uniform).item()", "uniform).item() * 100"),  # cm
    },
    "10_learning": {
        "price": ("samples for samples", "samples / 160 for samples"),  # rounds
    },
}
"""Answers without a unit are left out."""

CLOSE = {
    "01_springs_and_time": {
        "largest_step": ("return 2.0", "return -2.0"),  # a Verlet step is the same in both directions of time
        "steps_per_period": "steps_per_period = 8 * error(8) / target",  # the wrong order, or too few steps to see it
        "length_of": (" / (1 - ratio**2)", ""),  # E for E'
    },
    "02_lattices": {
        "moduli": (", diagonal / (", ", -diagonal / ("),
        "beam_edge": ("half = beam_diagonal - needed / 2", "half = beam_diagonal + needed / 2"),
        "strain": ("strain *= goal / bent(strain)", "strain *= -goal / bent(strain)"),
        "angle": ("angle = math", "angle = -math"),
    },
    "04_gradients_and_traps": {
        "taylor_order": ("- e * (gradient", "+ e * (gradient"),
        "loss": ("(x[0] - x[-1]).norm()", "(x[0] - x[-1]).norm().detach()"),  # half of the repair
        "checkpoints": ("times = 2.0", "times = 3.0"),  # the adjoint counted as well
    },
    "05_identification": {
        "fit": ("found.interval()", "found.interval(0.9)"),  # of 90 %
        "coverage": (
            "np.mean(inside, axis=0)",
            "np.mean(np.all(inside, axis=1)) * np.ones(2)",
        ),  # both unknowns at once
        "twin": ("other_density / density", "density / other_density"),
        "force": ("return 196 *", "return 392 *"),  # the whole width
    },
}
"""Answers with one slip: a sign, a factor, half of a repair."""
