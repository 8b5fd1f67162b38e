"""The loss with which the task `cloth` is learned: its parts, and its gradient."""

import sys
from pathlib import Path

import pytest
import torch

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def fold(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS / "tasks"), str(BENCHMARKS), *sys.path])
    names = "arm", "cloth", "common", "fast", "grasping"
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    import cloth

    yield cloth.Fold(*cloth.robot_of(None), cloth.EARLY)
    for name in names:
        sys.modules.pop(name, None)


@pytest.mark.slow
def test_gradients_of_a_fold_are_those_of_differences_and_end_with_its_parts(fold):
    """Through 20 steps with gripped cloth; in two parts the loss is the same, and the first sees itself only."""
    torch.manual_seed(0)
    signals = fold.plan[:20].clone().requires_grad_()
    way = torch.randn(signals.shape) * torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    whole, parts = (fold.loss(signals, reach) for reach in (20, 10))
    assert parts.item() == pytest.approx(whole.item(), rel=1e-6)
    slope, apart = (torch.autograd.grad(loss, signals)[0] for loss in (whole, parts))
    torch.testing.assert_close(apart[10:], slope[10:], rtol=1e-3, atol=1e-3 * float(slope.abs().max()))
    assert float((apart[:10] - slope[:10]).norm()) > 0.3 * float(slope[:10].norm())
    h = 5e-4  # differences over 1e-4 to 2e-3 scatter by 3 %, because pads stick and slip
    with torch.no_grad():
        ahead, behind = (float(fold.loss(signals + side * h * way, 20)) for side in (1.0, -1.0))
    assert float((slope * way).sum()) == pytest.approx((ahead - behind) / (2.0 * h), rel=0.05)
