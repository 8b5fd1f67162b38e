"""The lab on co-design: its steps suit every body within the budget, not only the one that the solution finds."""

import re

import pytest
import torch
from submissions import LABS, source

SOURCE = next(path for path in LABS if path.stem == "09_codesign")
ARMS = sorted(set(re.findall(r"arm\((?:spacing=)?(0\.\d+), (?:substeps=)?(\d+)\)", SOURCE.read_text())))
"""Spacing and number of substeps of all arms of the lab."""


@pytest.fixture(scope="module")
def names():
    """Names of the lab, up to the cell that makes the arm, for the largest modulus that it draws."""
    names = {}
    for cell in source.read(SOURCE).cells:
        if cell.cell_type == "code":
            code = cell.source.replace('student = ""', 'student = "ada"').partition("\ncoarse = ")
            exec(code[0], names)
            if code[1]:
                break
    names["modulus"] = 1.4e5
    return names


def test_the_arms_of_the_lab_are_found():
    assert {spacing for spacing, _ in ARMS} == {"0.01", "0.02"}
    assert len(ARMS) == 3
    assert '"modulus", 0.9e5, 1.4e5' in SOURCE.read_text()


@pytest.mark.filterwarnings("ignore:.*too stiff", "ignore:.*stability bound")
@pytest.mark.parametrize(("spacing", "substeps"), ARMS)
def test_a_part_may_have_all_the_stiffness_that_is_free(names, spacing, substeps):
    """Factors of 0.8 and one of 2: a rollout whose step is too long for them raises a `ValueError`."""
    sim = names["arm"](float(spacing), int(substeps))
    for part in range(names["parts"]):
        moduli = {f"part {k}": names["modulus"] * (2.0 if k == part else 0.8) for k in range(names["parts"])}
        sim.rollout(torch.zeros(1, 2), 1, youngs_modulus=sim.per_region(moduli, "youngs_modulus"))
