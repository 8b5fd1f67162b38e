"""The laws and constants of materials in the documentation are those that are registered."""

import re
from pathlib import Path

from cases import FLUIDS, LAWS

from warpbots.materials import law_of
from warpbots.scene import Material

PAGE = Path(__file__).resolve().parents[1] / "docs" / "materials.md"


def quoted(start: str, end: str) -> set[str]:
    """Names between double backquotes in a part of the docstring of `Material`."""
    return {*re.findall("``([a-z_]+)``", Material.__doc__.split(start)[1].split(end)[0])}


def test_every_law_and_constant_is_in_the_documentation():
    """In the docstring of `Material`, which cannot read the registry, and in the tables of the page of materials."""
    registered = {n: law_of(n).constants for n in (*LAWS, *FLUIDS)}
    assert quoted(" law: ", " incompressibility: ") == set(registered)
    of_laws = {c.name for constants in registered.values() for c in constants}
    assert quoted(" constants: ", "Raises") == of_laws | {n for n, constants in registered.items() if constants}
    lines = PAGE.read_text().splitlines()
    rows = [[cell.strip(" `") for cell in line.split("|")[1:3]] for line in lines if line.startswith("|")]
    assert set(LAWS) <= {row[0].strip('"') for row in rows}
    assert of_laws <= {row[1].split("`")[0] for row in rows}
