"""Answers to the exercises of the tutorials, by notebook, in their order: code for the answer's cell."""

ANSWERS = {
    "00_first_drop": [
        ("factor = 10**-0.5", "factor = 0.1"),
        ("speed = 9.81 * 0.3 / 2", "speed = 9.81 * 0.3"),
        (
            'gravity = sim.parameter("gravity").requires_grad_()\nsim.rollout(None, steps=20, gravity=gravity).final.position[..., 1].mean().backward()\nslope = gravity.grad[0, 1].item()',
            "slope = 0.1",
        ),
    ],
    "01_usd": [
        ("number = 3e6", "number = 3e5"),
        (
            'layer = TWIN.replace(\'def "Twin" (references = </Lab/Ball>)\', \'over "Ball"\').replace("(15, 45, 0)", "(0, 35.66, 0)")',
            'layer = TWIN.replace(\'def "Twin" (references = </Lab/Ball>)\', \'over "Ball"\').replace("(15, 45, 0)", "(0, 30.66, 0)")',
        ),
        ("modulus = 5e4 * 1.62 / 9.81", "modulus = 5e4 * (1.62 / 9.81) ** 0.5"),
        ("width = max(np.ptp(triangles(surface, code)[0][..., 0]) for code in range(43))", "width = 10.0"),
    ],
    "02_springs": [
        ("five_hertz = (2 * math.pi * 5) ** 2 * m1 * m2 / (m1 + m2)", "five_hertz = k / 2"),
        ("mode = 2", "mode = 0"),
        ("rise = 2.0", "rise = 2**1.5"),
        ("force = 4e3 * 0.05 / 2", "force = 4e3 * 0.05"),
    ],
    "03_solvers": [
        (
            "sheared = force * length / (5 / 6 * shear * side**2)\nfactor = (8 * (sag - sheared) + 2 * sheared) / sag",
            "factor = 2.0",
        ),
        ('softer = ratio["projective"] * E', "softer = E"),
        ("more_steps = 2", "more_steps = 4"),
        ("leverage = tendon(0.02)[2] / by_formula", "leverage = 2.0"),
    ],
    "04_mpm": [
        ("growth = 4", "growth = 2"),
        (
            'E = sim.parameter("youngs_modulus").requires_grad_()\nsim.rollout(None, 20, youngs_modulus=E).final.position[..., 1].mean().backward()\nslope = E.grad.sum().item()',
            "slope = 0.0",
        ),
        ("tallest = 2e3 / 3**0.5 / 9810", "tallest = 1e3 / 9810 / 2"),
    ],
    "05_projective_dynamics": [
        ("percent = 100 / 120", "percent = 3 / 16"),
        ("step = -math.log(0.9) / (math.pi * omega)", "step = 1 / 480"),
        (
            "sag_of_arm = sim.rollout(None, 60).final.q[0, 0].rad2deg()\nhold = (-sag_of_arm / rise).item()",
            "hold = 0.0",
        ),
        ("gauge = 101325", "gauge = 2 * 101325"),
    ],
    "06_articulated": [
        (
            "long_period = 2 * math.pi * math.sqrt(2 * 2.0 / (3 * 9.81))",
            "long_period = 2 * math.pi * math.sqrt(2.0 / 9.81)",
        ),
        (
            "mass_of_rod = 1000.0 * math.pi * radius**2 * length\ndamping = 2 * math.log(2) * mass_of_rod * length**2 / 3 / 5.0",
            "damping = 0.01",
        ),
        (
            "mass = density * width**2 * own\njoint = torch.cat([torch.zeros(1), own.cumsum(0)[:2]])\nmiddle = joint + own / 2\nhold = torch.stack([(mass[k:] * 9.81 * (middle[k:] - joint[k])).sum() for k in range(3)]) / 0.02",
            "hold = torch.zeros(3)",
        ),
    ],
    "07_gradients": [
        ("by_g = 1.0 * (1.0 + h) / 2", "by_g = 0.5"),
        ("falls_by = 100", "falls_by = 10"),
        (
            "guess = torch.tensor([0.7], requires_grad=True)\nfor _ in range(3):\n    there = slide(guess, single)\n    (rate,) = torch.autograd.grad(there.sum(), guess)\n    guess = (guess + (0.3 - there) / rate).detach().requires_grad_()\ntilt = guess.item()",
            "tilt = 0.3",
        ),
    ],
    "08_identification": [
        ("from_sag = 196 * noise / sag", "from_sag = 100 * noise / sag"),
        ("shrink = 2", "shrink = 4"),
        ("force = 2.0", "force = 1.0"),
    ],
    "09_codesign": [
        ("firm = [1.4, 1.25, 1.15, 0.95, 0.75, 0.5]", "firm = [0.5, 0.75, 0.95, 1.15, 1.25, 1.4]"),
        ("dearer = (10 / 8) ** 2", "dearer = 10 / 8"),
        (
            'softest = wb.Simulation(wb.usd.read(path), solver, dt, substeps).parameter("youngs_modulus").min().item()',
            "softest = E",
        ),
    ],
    "10_hands": [
        ('free = "knuckle.height"', 'free = "knuckle.width"'),
        ("growth = 1.5**5", "growth = 1.5**3"),
        ("topologies = 6", "topologies = 5"),
        ("mass_in_grams = 14.9 * 1.5 * 0.8", "mass_in_grams = 14.9 * 1.5 * 0.8**2"),
    ],
    "11_swimmers": [
        ("half_time = mass / (k * v_0)", "half_time = 0.5"),
        ("sinks_at = math.sqrt(mass * 9.81 / k)", "sinks_at = mass * 9.81 / k"),
        ("backwards = -math.pi / 2", "backwards = math.pi / 4"),
    ],
    "12_hybrid": [
        ("carried = (mass_of_ball + 2 * mass_of_mat) * g", "carried = (mass_of_ball + mass_of_mat) * g"),
        ("five = 0.06 + (5.0 - way(push(torch.tensor(0.06)))) / by_gradient[0]", "five = 0.05"),
        ("press = 0.019 * g / (2 * 0.6)", "press = 0.019 * g / 0.6"),
    ],
    "13_learning": [
        ("half_life = 0.02 * torch.tensor(0.5).log().item() / torch.tensor(gamma).log().item()", "half_life = 34.3"),
        ("share = gamma**20", "share = 1 - gamma**20"),
        (
            "def gait(seen):\n    phase = torch.tensor([[4.29], [1.92]])\n    back, front = phase.cos() * seen[:, -2] + phase.sin() * seen[:, -1]\n    return 0.73 * torch.stack([back, -back, front, -front], dim=1)",
            "def gait(seen):\n    return torch.zeros(len(seen), 4)",
        ),
        ("lag = 360 * 0.04 / 0.4", "lag = 0.2 * torch.pi"),
    ],
}
"""Right and wrong answers."""

UNITS = {
    "00_first_drop": ["factor = 100 * 10**-0.5", "speed = 100 * 9.81 * 0.3 / 2", "slope = 0.5 * 20 * 21"],
    "01_usd": [
        "number = 0.3",
        'layer = TWIN.replace(\'def "Twin" (references = </Lab/Ball>)\', \'over "Ball"\').replace("(15, 45, 0)", "(0, 0.3566, 0)")',
        "modulus = 5e5 * 1.62 / 9.81",
        "width = max(np.ptp(triangles(surface, code)[0][..., 0]) for code in range(43)) / 100",
    ],
    "02_springs": ["five_hertz = 5**2 * m1 * m2 / (m1 + m2)", "mode = -2", "rise = 200.0", "force = 4 * 0.05 / 2"],
    "03_solvers": [
        None,
        'softer = 1e-3 * ratio["projective"] * E',
        None,
        "leverage = 100 * tendon(0.02)[2] / by_formula",
    ],
    "04_mpm": [
        None,
        'E = sim.parameter("youngs_modulus").requires_grad_()\nsim.rollout(None, 20, youngs_modulus=E).final.position[..., 1].mean().backward()\nslope = 1e3 * E.grad.sum().item()',
        "tallest = 1e3 / 9810",
    ],
    "05_projective_dynamics": [
        "percent = 1 / 120",
        "step = -1e3 * math.log(0.9) / (math.pi * omega)",
        "sag_of_arm = sim.rollout(None, 60).final.q[0, 0].rad2deg()\nhold = (-sag_of_arm / rise).item() / 3.0",
        "gauge = 1.01325",
    ],
    "06_articulated": [
        "long_period = math.sqrt(2 * 2.0 / (3 * 9.81))",
        "mass_of_rod = 1000.0 * math.pi * radius**2 * length\ndamping = math.radians(2 * math.log(2) * mass_of_rod * length**2 / 3 / 5.0)",
        "mass = density * width**2 * own\njoint = torch.cat([torch.zeros(1), own.cumsum(0)[:2]])\nmiddle = joint + own / 2\nhold = torch.stack([(mass[k:] * 9.81 * (middle[k:] - joint[k])).sum() for k in range(3)])",
    ],
    "07_gradients": [
        "by_g = 100 * (100 + 1) / 2",
        None,
        "guess = torch.tensor([0.7], requires_grad=True)\nfor _ in range(3):\n    there = slide(guess, single)\n    (rate,) = torch.autograd.grad(there.sum(), guess)\n    guess = (guess + (0.3 - there) / rate).detach().requires_grad_()\ntilt = math.degrees(guess.item())",
    ],
    "08_identification": ["from_sag = 1.96 * noise / sag", "shrink = 50", "force = 2e3"],
    "09_codesign": [
        "firm = [140, 125, 115, 95, 75, 50]",
        None,
        'softest = 1e-3 * wb.Simulation(wb.usd.read(path), solver, dt, substeps).parameter("youngs_modulus").min().item()',
    ],
    "10_hands": [None, None, None, "mass_in_grams = 14.9e-3 * 1.5 * 0.8"],
    "11_swimmers": [
        "half_time = 1e3 * mass / (k * v_0)",
        "sinks_at = 3.6 * math.sqrt(mass * 9.81 / k)",
        "backwards = -90",
    ],
    "12_hybrid": [
        "carried = mass_of_ball + 2 * mass_of_mat",
        "five = 1e3 * (0.06 + (5.0 - way(push(torch.tensor(0.06)))) / by_gradient[0])",
        "press = 19 / (2 * 0.6)",
    ],
    "13_learning": [
        "half_life = torch.tensor(0.5).log().item() / torch.tensor(gamma).log().item()",
        "share = 100 * gamma**20",
        None,
        "lag = 2 * torch.pi * 0.04 / 0.4",
    ],
}
"""Right ideas in a wrong unit: degrees, kPa, cm, per cent, Hz for rad/s; None where an answer has no unit to mistake."""

MORE = {
    "00_first_drop": {
        1: (
            [
                "silicone = dataclasses.replace(silicone, youngs_modulus=5e5)\nball = dataclasses.replace(ball, material=silicone)\nscene, before = dataclasses.replace(scene, bodies=[ball]), sim.max_time_step\nsim = wb.Simulation(scene, wb.MPM(dx=0.01), dt=5e-3, substeps=20)\nfactor = sim.max_time_step / before"
            ],
            ["factor = 10**0.5", "factor = torch.tensor([0.3, 0.3])"],
        ),
    },
    "01_usd": {
        1: (["number = torch.tensor(3e6)"], ["number = '3000000'"]),
        2: (["layer = STRONG.replace('3924', '640')"], ["layer = STRONG.replace('3924', '6.4')"]),
        3: (["modulus = torch.tensor(8257.0)"], ["modulus = 8.257"]),
    },
    "02_springs": {
        1: (["five_hertz = np.array([1973.9])"], ["five_hertz = '1973.9'"]),
        2: (["mode = 2.0"], ["mode = True"]),
        3: (["height = 2 * height\nrise = height / 0.1"], []),
    },
    "03_solvers": {
        1: ([], ["factor = 8.0"]),
        2: (
            ["true, sag = sag, 7.8 * sag\nsofter = ratio['projective'] * E"],
            ["softer = ratio['springs'] * E", "softer = ratio['MPM'] * E"],
        ),
        4: (["sag = true\nleverage = tendon(0.02)[1] / raised"], []),
    },
    "05_projective_dynamics": {
        3: (["hold = torch.tensor([0.4026])"], []),
        4: (["gauge = 1e5"], []),
    },
    "08_identification": {
        2: ([], ["shrink = 1.5"]),
    },
    "09_codesign": {
        1: (
            ["firm = torch.tensor([[1.5, 1.3, 1.1, 0.9, 0.7, 0.5]])"],
            ["firm = [1.5, 1.3, 1.1, 0.6, 0.5]", "firm = [2, 2, 0.5, 0.5, 0.5, 0.5]"],
        ),
    },
    "12_hybrid": {
        2: ([], ["five = '0.0593'"]),
        3: ([], ["press = 0.019 * g"]),
    },
    "13_learning": {
        1: (["half_life = 0.68"], []),
    },
}
"""Further answers to some exercises, by number: right ones on other ways, and wrong ones that are near or look right."""
