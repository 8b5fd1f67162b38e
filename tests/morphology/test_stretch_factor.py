"""The factor of a stretch is one number."""

import pytest
import torch

from warpbots.morphology import Stretch


@pytest.mark.parametrize("factor", [torch.tensor([2.0, 3.0, 4.0]), torch.tensor([[2.0], [3.0]])])
def test_a_stretch_has_one_factor(factor):
    with pytest.raises(ValueError, match=r"Stretch: factor must be one number, got a tensor of shape \("):
        Stretch(factor, 1, 0.0, 1.0)
