"""The lab in which students write kernels: other names are right, and each mistake fails at what it violates."""

import functools
import importlib.util
import re

import pytest
from submissions import LABS, filled_in, solution_of, source

from warpbots.exercises import WrongAnswer
from warpbots.labs import forms
from warpbots.labs.source import role

MISTAKES = {
    "no factor 4/dx²": ("p2g", "dt * V * 4.0 / (dx * dx)", "dt * V", "stress"),
    "no factor 4": ("p2g", "V * 4.0 / (dx * dx)", "V / (dx * dx)", "stress"),
    "stress pushes": ("p2g", "m * C[p] - ", "m * C[p] + ", "stress"),
    "no step in the impulse": ("p2g", "(dt * V *", "(V *", "stress"),
    "C with a factor of its own": ("p2g", "m * C[p] -", "m * 4.0 / (dx * dx) * C[p] -", "affine momentum"),
    "C turned": ("p2g", "m * C[p] -", "m * wp.transpose(C[p]) -", "affine momentum"),
    "distance in cells": ("p2g", "* dx - x[p]", "- x[p] / dx", "affine momentum"),
    "distance from node to particle": ("p2g", "A @ d", "A @ (-d)", "affine momentum"),
    "velocity instead of momentum": ("p2g", "m * v[p] + ", "v[p] + ", "momentum"),
    "no weight": ("p2g", "w * (m * v", "(m * v", "momentum"),
    "mass without weight": ("p2g", "j, w * m)", "j, m)", "mass"),
    "nodes in the wrong order": ("p2g", "w_x[i] * w_y[j]", "w_x[j] * w_y[i]", "mass"),
    "gradient without factor": ("g2p", "4.0 / (dx * dx) * B", "B", "velocity gradient"),
    "gradient turned": ("g2p", "wp.outer(h, d)", "wp.outer(d, h)", "velocity gradient"),
    "velocity doubled": ("g2p", "v[p] = new_v", "v[p] = 2.0 * new_v", "velocity"),
    "old velocity": ("g2p", "dt * new_v", "dt * v[p] * 0.5", "position"),
    "order of matrices": ("g2p", "new_C @ F[p]", "F[p] @ new_C", "deformation"),
    "no mass": ("move_grid", "if mass[i, j] > 0.0:", "if mass[i, j] >= 0.0:", "in the air"),
    "gravity upwards": ("move_grid", "- wp.vec2(0.0, dt", "+ wp.vec2(0.0, dt", "in the air"),
    "friction that reverses": ("move_grid", "wp.max(wp.abs(new[0]) + friction * new[1], 0.0)",
                               "wp.abs(new[0]) + friction * new[1]", "on the floor"),
    "floor that holds": ("move_grid", " and new[1] < 0.0", "", "on the floor"),
    "floor one node lower": ("move_grid", "j <= floor", "j < floor", "on the floor"),
}  # fmt: skip
"""Mistakes: the question, the part of the solution, its replacement, and the part of the check that has to fail."""


@functools.cache
def lab():
    return source.read(next(path for path in LABS if path.stem == "03_material_point_method"))


def judged(folder, question, answer, others=None):
    """What the check of a question says to an answer; None if it is right. Other questions have answers by `others`."""
    code, others = [], others or {}
    for cell in filled_in(forms.graded(lab()), lab(), "ada", {question: answer} | others).cells:
        kind, name = role(cell) or (None, question)
        if cell.cell_type == "code" and (name == question or (kind == "answer" and name in others)):
            code.append(cell.source)
        if role(cell) == ("check", question):
            break
    path = folder / f"lab_{re.sub('[^a-z0-9]', '_', folder.name)}.py"  # Warp reads the kernels' code, and names modules
    path.write_text("\n\n".join(code))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except WrongAnswer as fault:
        return str(fault)
    return None


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_fails_at_what_it_violates(mistake, tmp_path):
    question, right, other, part = MISTAKES[mistake]
    answer = solution_of(lab(), question)
    assert right in answer
    said = judged(tmp_path, question, answer.replace(right, other))
    assert said is not None
    assert f", {part}: not yet" in said


RENAMED = {
    "p2g": {"w_x": "a", "w_y": "b", "first": "corner", "cell": "place", "mass": "M", "momentum": "grid", "dt": "h",
            "dx": "size", "tau": "sigma", "m": "each", "V": "area", "x": "position", "v": "speed", "C": "B", "p": "k"},
    "g2p": {"velocity": "field", "new_v": "u", "new_C": "L", "B": "total", "h": "part", "F": "G", "p": "particle"},
    "move_grid": {"i": "row", "j": "column", "new": "result", "velocity": "out", "friction": "mu", "floor": "level"},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("question", RENAMED)
def test_names_do_not_matter(question, tmp_path):
    answer = solution_of(lab(), question)
    for old, new in RENAMED[question].items():
        answer = re.sub(rf"(?<![\w.]){old}\b", new, answer)
    assert judged(tmp_path, question, answer) is None


def test_a_kernel_with_dots_is_no_answer(tmp_path):
    blank = next(cell.source for cell in forms.student(lab()).cells if cell.metadata.get("answer") == "p2g")
    said = judged(tmp_path, "p2g", blank)
    assert said == "Question 1, mass: no answer yet; replace the three dots in `p2g`"


@pytest.mark.parametrize("question", ["g2p", "move_grid"])
def test_a_kernel_that_cannot_be_compiled_costs_only_its_own_points(question, tmp_path):
    """Kernels of one Warp module are compiled together."""
    whole = solution_of(lab(), "p2g").replace("4.0 / (dx * dx)", "4 / (dx * dx)")
    assert "Input types must be the same" in judged(tmp_path, "p2g", whole)
    assert judged(tmp_path, question, solution_of(lab(), question), {"p2g": whole}) is None
