"""The fish of benchmarks/papers: its mesh, its symmetry, and the gradients of its stroke and of its fin."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree

import warpbots as wb
from warpbots.numerics import precision

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "papers"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import softbody_fish_scene as swimmers
from softbody_strokes import Stroke
from softbody_tail import Tail

MIRROR = torch.tensor([1.0, -1.0, 1.0])


def swimming(tolerance: float | None = None) -> wb.Simulation:
    return wb.Simulation(swimmers.fish(), wb.ProjectiveDynamics(0.02, tolerance, collisions=False), 0.02)


def test_the_fish_is_one_symmetric_body_with_six_bones_inside():
    mesh = swimmers.fish_mesh()
    assert wb.meshing.quality(mesh).min_angle > 8.0
    nodes = {tuple(v) for v in mesh.vertices.round(9) + 0.0}
    assert {(x, -y + 0.0, z) for x, y, z in nodes} == nodes
    sim = swimming()
    assert sim.channels == 5
    assert (np.bincount(sim.model.matter.bone + 1, minlength=7)[1:] >= 6).all()
    assert sim.model.matter.element_regions["caudal fin"].any()
    for bone in sim.scene.rigid:
        lower, upper = bone.bounds
        assert (lower[0] > mesh.vertices[:, 0].min()) and (upper[0] < mesh.vertices[:, 0].max())


def test_mirrored_strokes_mirror_the_motion():
    """Torques of the spine reversed, fins exchanged: every node moves as its mirror image does, to the tolerance."""
    sim = swimming()
    rest = sim.state().position[0]
    _, image = cKDTree(rest.numpy()).query((rest * MIRROR).numpy())
    control = 0.5 * torch.sin(torch.arange(6.0)[:, None] + torch.tensor([0.0, 1.0, 2.0, 0.5, 1.5]))
    other = torch.cat([-control[:, :3], control[:, [4, 3]]], dim=1)
    moved = [sim.rollout(u, 6).final.position[0] - rest for u in (control, other)]
    assert moved[0].norm(dim=1).max() > 5e-3
    torch.testing.assert_close(moved[0][image] * MIRROR, moved[1], rtol=0.0, atol=2e-5)


@pytest.mark.skipif(precision != "float64", reason="central differences need float64")
@pytest.mark.verification
def test_slopes_are_those_of_differences():
    """Of the distance along a random direction of the torques, and of the way along the three numbers of the fin."""
    sim = swimming(1e-12)
    stroke = Stroke(sim, sim, (0.15, 0.0, 0.0), 4)
    (gradient,) = torch.autograd.grad(stroke.distance(), stroke.raw)
    start = stroke.raw.detach().numpy().ravel().copy()
    along = np.random.default_rng(0).normal(size=len(start))
    ends = [stroke.value(start + s * 1e-4 * along) for s in (1.0, -1.0)]
    assert gradient.numpy().ravel() @ along == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-6)
    tail = Tail(sim, 4)
    (gradient,) = torch.autograd.grad(tail.loss(), tail.numbers)
    for k, slope in enumerate(gradient.tolist()):
        ends = []
        for sign in (1.0, -1.0):
            with torch.no_grad():
                tail.start(0)
                tail.numbers[k] += sign * 1e-4
                ends.append(float(tail.loss()))
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-6)
