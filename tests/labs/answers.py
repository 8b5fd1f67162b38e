"""Answers that are wrong, by lab and question: a wrong idea, and the right one in a wrong unit."""

WRONG = {
    "01_springs_and_time": {
        "largest_step": "def largest_step(mass, stiffness):\n    return 2.0 * (mass.min() / stiffness.max()) ** 0.5",
        "steps_per_period": "steps_per_period = 10",
        "length_of": "def length_of(record):\n    return 1.0",
    },
}

UNITS = {
    "01_springs_and_time": {
        "largest_step": ("return 2.0 / fastest", "return 2.0e3 / fastest"),  # ms
        "steps_per_period": ("steps_per_period = 16", "steps_per_period = 16.0"),  # has none: stays right
        "length_of": ("(2 * math.pi * f)", "f"),  # Hz for rad/s
    },
}
"""What is replaced in the solution, and by what."""
