"""Sand under MPM: slopes that slide, heaps that stand, and what stands on them."""

import numpy as np
import pytest
import torch
from cases import to_numpy

import warpbots as wb
from warpbots.scene import Box, HalfSpace, Obstacle, Points, walls
from warpbots.simulation import Simulation
from warpbots.solvers import MPM

DX = 0.02
GROUND = Obstacle(HalfSpace((0.0, 0.0), (0.0, 1.0)), "sticky", name="ground")


def sand(friction_angle: float) -> wb.Material:
    return wb.Material(2e5, 0.3, 1500.0, "hencky", plasticity=wb.materials.DruckerPrager(friction_angle))


@pytest.mark.parametrize("friction_angle", [20.0, 35.0])
def test_a_layer_slides_down_a_slope_with_the_friction_of_its_grains(friction_angle):
    """Its acceleration is g (sin t - cos t sin phi): in shear that keeps the volume sand has the friction coefficient
    sin phi (Davis 1968, "Theories of plasticity and the failure of soil masses"), less than tan phi.

    In the middle of a layer of five cells, whose ends hold it back and whose surface is soft: within 5 %.
    """
    slope = np.arctan(np.sin(np.radians(friction_angle))) + np.radians(15.0)
    layer = wb.SoftBody("layer", Box((-0.6, 0.0), (0.6, 0.1)), sand(friction_angle))
    down = (9.81 * np.sin(slope), -9.81 * np.cos(slope))
    scene = wb.Scene([layer], obstacles=[GROUND], gravity=down, domain=((-1.2, -0.1), (1.2, 0.3)))
    sim = Simulation(scene, MPM(DX), 0.01, None)
    X = sim.model.matter.position
    middle = torch.as_tensor((np.abs(X[:, 0]) < 0.15) & (X[:, 1] > 0.05))
    with torch.no_grad():
        motion = sim.rollout(None, 30, observe=lambda state: state.velocity[:, middle, 0].mean(1))
    v = to_numpy(motion.observation)[0]
    exact = 9.81 * (np.sin(slope) - np.cos(slope) * np.sin(np.radians(friction_angle)))
    found = (v[-1] - v[15]) / (0.01 * (len(v) - 16))
    print(f"{found:.4f} m/s^2, exact {exact:.4f}")
    assert found == pytest.approx(exact, rel=0.05)


def heap(flank: float, friction_angle: float) -> tuple[float, float]:
    """Height of a triangular heap after 0.4 s over that at the start, and its mean speed then [m/s]."""
    half, apart = 0.2, DX / 2
    x, y = np.meshgrid(np.arange(-half + apart / 2, half, apart), np.arange(apart / 2, half, apart))
    inside = y < np.tan(np.radians(flank)) * (half - np.abs(x))
    points = np.stack([x[inside], y[inside]], axis=1)
    body = wb.SoftBody("heap", Points(points, np.full(len(points), apart**2)), sand(friction_angle))
    scene = wb.Scene([body], obstacles=[GROUND], domain=((-0.5, -0.1), (0.5, 0.4)))
    with torch.no_grad():
        final = Simulation(scene, MPM(DX), 0.02, None).rollout(None, 20).final
    height = to_numpy(final.position)[0, :, 1]
    top = points[:, 1] >= np.quantile(points[:, 1], 0.98)
    return float(height[top].mean() / points[top, 1].mean()), float(final.velocity.norm(dim=-1).mean())


@pytest.mark.parametrize("friction_angle", [20.0, 35.0])
def test_a_heap_stands_up_to_its_angle_of_repose(friction_angle):
    """It stands with flanks of arctan(sin phi), and slumps where they are steeper than phi."""
    stable = np.degrees(np.arctan(np.sin(np.radians(friction_angle))))
    height, speed = heap(stable - 2.0, friction_angle)
    slumped, _ = heap(friction_angle + 10.0, friction_angle)
    print(f"{height:.4f} at {speed:.1e} m/s, {slumped:.4f}")
    assert 0.985 < height < 1.001
    assert speed < 2e-3
    assert slumped < 0.9


def test_a_soft_block_stands_on_sand_and_sinks_into_what_has_no_friction():
    """A rubber block, elastic by another law, comes to rest; on grains of 35 degrees it sinks by less than 5 mm."""
    sunk = {}
    for friction_angle in (35.0, 3.0):
        bed = wb.SoftBody("bed", Box((-0.4, 0.0), (0.4, 0.15)), sand(friction_angle))
        block = wb.SoftBody("block", Box((-0.1, 0.15), (0.1, 0.25)), wb.Material(1e5, 0.3))
        box = ((-0.4, 0.0), (0.4, 0.4))
        sim = Simulation(wb.Scene([bed, block], obstacles=walls(*box), domain=box), MPM(0.025), 0.02, None)
        rubber = torch.as_tensor(sim.model.matter.body == 1)
        with torch.no_grad():
            final = sim.rollout(None, 40).final
        sunk[friction_angle] = 0.2 - float(final.position[0, rubber, 1].mean())
        assert final.velocity[0, rubber].norm(dim=-1).mean() < 0.03
        assert not final.plastic[0, rubber].any()
    assert 0.001 < sunk[35.0] < 0.005
    assert 0.03 < sunk[3.0] < 0.06
