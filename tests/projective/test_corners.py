"""Rigid bodies at faces, edges and corners of one another: what is continuous at touch-down and lift-off stays so."""

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from warpbots.scene import Box, Joint, Material, Posed, RigidBody, Scene, SoftBody
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

pytestmark = pytest.mark.verification


def cube_on_a_plate(turn: tuple, place: tuple, twist: tuple, dt: float = 0.01) -> Simulation:
    """A rigid cube of 6 cm, turned about its axes [degrees], above a plate that ends at x = 6 cm with its top at 0."""
    plate = RigidBody("plate", Box((-0.06, -0.06, -0.06), (0.06, 0.06, 0.0)), friction=0.4)
    turned = Rotation.from_euler("xyz", turn, degrees=True).as_matrix()
    shape = Posed(Box((-0.03,) * 3, (0.03,) * 3), (0.0,) * 3, turned)
    cube = RigidBody("cube", shape, position=place, friction=0.4)
    joints = Joint("held", "fixed", None, "plate"), Joint("free", "free", None, "cube", start_velocity=twist)
    return Simulation(Scene((plate, cube), joints=joints), ProjectiveDynamics(0.03, 1e-10), dt)


def clearance(sim: Simulation) -> float:
    """Distance that the surfaces keep [m]."""
    return float(sim.model.pairs.clearance.numpy().max())


def ends(sim: Simulation, axis: int, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Joint coordinates at the end of a step, and their gradients, for offsets of one of them at the start [m]."""
    start, end, slope = sim.state(), [], []
    for offset in offsets:
        q = start.q.clone()
        q[0, axis] += offset
        q.requires_grad_()
        after = sim.step(sim.state(q=q, qd=start.qd), torch.zeros(1, 0)).q[0]
        end.append(after.detach().numpy())
        slope.append([torch.autograd.grad(c, q, retain_graph=True)[0][0, axis].item() for c in after[:6]])
    return np.array(end)[:, :6], np.array(slope)


def test_a_cube_that_tips_over_an_edge_ends_where_its_gradients_lead():
    """It starts .6 clearances above the plate, slides and tips. When the distance at the start was measured along the
    plane at the end, the turn of the plane made it seem to touch the plate, and the edge let it through.
    """
    sim = cube_on_a_plate((0, 0, 0), (0.06, 0.013, 0.0302), (0.5, 0.0, -0.1, 0.0, 0.0, 0.0))
    offsets = np.linspace(-0.012, -0.005, 8)
    end, slope = ends(sim, 0, offsets)
    along = 0.5 * (slope[1:] + slope[:-1]) * np.diff(offsets)[:, None]
    np.testing.assert_allclose(np.diff(end, axis=0), along, atol=1e-5)


@pytest.mark.parametrize(
    ("turn", "place"),
    [
        ((0, 0, 0), (0.02, 0.013, 0.03)),
        ((0, 45, 0), (0.06, 0.013, 0.03 * 2**0.5)),
        ((45, 0, 0), (0.05, 0.013, 0.03 * 2**0.5)),
    ],
    ids=["faces", "parallel edges", "edges that cross"],
)
def test_the_distance_that_surfaces_keep_rises_steadily_at_half_the_clearance(turn, place):
    """It jumped by three quarters of the clearance where bodies began half the clearance apart."""
    sim = cube_on_a_plate(turn, place, (0.1, 0.0, -0.1, 0.0, 1.0, 0.0), 0.005)
    keep = clearance(sim)
    offsets = keep * np.array([0.45, 0.499, 0.501, 0.55])
    end, slope = ends(sim, 2, offsets)
    along = 0.5 * (slope[1:] + slope[:-1]) * np.diff(offsets)[:, None]
    np.testing.assert_allclose(np.diff(end, axis=0), along, rtol=1e-3, atol=1e-3 * keep)
    assert abs(end[2, 2] - end[1, 2]) < 0.02 * keep


@pytest.mark.filterwarnings("ignore:SoftBody 'cube' touches")
def test_the_distance_of_soft_matter_from_a_rigid_plate_rises_steadily_at_half_the_clearance(rng):
    plate = RigidBody("plate", Box((-0.06, -0.06, -0.06), (0.06, 0.06, 0.0)), friction=0.4)
    shape, material = Box((0.0, -0.017, 0.0), (0.06, 0.043, 0.06)), Material(1e5, 0.3, 1000.0, "corotated")
    cube = SoftBody("cube", shape, material, velocity=(0.1, 0.0, -0.1), friction=0.4)
    scene = Scene((cube, plate), joints=(Joint("held", "fixed", None, "plate"),))
    sim = Simulation(scene, ProjectiveDynamics(0.03, 1e-10), 0.01)
    keep, start, end, slope = clearance(sim), sim.state(), [], []
    weight = torch.as_tensor(rng.uniform(size=start.position.shape))
    weight[..., 2] /= weight[..., 2].sum()
    weight[..., :2] = 0.0
    offsets = keep * np.array([0.45, 0.499, 0.501, 0.55])
    for offset in offsets:
        height = torch.tensor(offset, requires_grad=True)
        position = start.position + height * torch.tensor((0.0, 0.0, 1.0))
        value = (
            weight * sim.step(sim.state(position=position, velocity=start.velocity), torch.zeros(0)).position
        ).sum()
        value.backward()
        end.append(value.item())
        slope.append(height.grad.item())
    along = 0.5 * (np.array(slope[1:]) + np.array(slope[:-1])) * np.diff(offsets)
    np.testing.assert_allclose(np.diff(end), along, rtol=1e-2, atol=1e-3 * keep)
    assert abs(end[2] - end[1]) < 0.02 * keep
