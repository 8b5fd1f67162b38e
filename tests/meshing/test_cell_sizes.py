"""Sizes of cells that are no lengths."""

import pytest

from warpbots.meshing import hexahedra
from warpbots.scene import Box, Posed


@pytest.mark.parametrize("size", [-0.1, 0.0, True, float("nan"), "0.1"])
def test_hexahedra_need_a_positive_cell_size(size):
    box = Box((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    for shape in (box, Posed(box, (1.0, 0.0, 0.0), ((1, 0, 0), (0, 1, 0), (0, 0, 1)))):
        with pytest.raises(ValueError, match="hexahedra: cell_size must be"):
            hexahedra(shape, size)
