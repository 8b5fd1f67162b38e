"""Where matter may go if the scene does not say so, and regions too thin to hold a particle."""

import dataclasses

import numpy as np
import pytest
from cases import to_numpy

import warpbots as wb
from warpbots.scene import SceneError

SOFT = wb.Material(5e4, 0.3, 1000.0)
DISC = wb.SoftBody("disc", wb.shapes.Sphere((0.0, 0.5), 0.05), SOFT)


def test_matter_falls_onto_a_floor_far_below_it():
    """The domain reaches down to where rays along gravity meet an obstacle: the disc lands and stays in the grid."""
    scene = wb.Scene([DISC], obstacles=[wb.floor(dim=2)])
    sim = wb.Simulation(scene, wb.MPM(0.025), 0.02, None)
    height = to_numpy(sim.rollout(None, 16).final.position)[0, :, 1]
    assert height.min() > -0.025
    assert height.mean() < 0.15
    assert wb.Simulation(dataclasses.replace(scene, obstacles=[]), wb.MPM(0.025), 0.02).model.grid.lower[1] > 0.25


def test_the_domain_follows_gravity_and_ends_somewhere():
    wall = wb.Obstacle(wb.shapes.HalfSpace((0.8, 0.0), (-1.0, 0.0)), name="wall")
    deep = wb.Obstacle(wb.shapes.HalfSpace((0.0, -9.0), (0.0, 1.0)), name="deep")
    scene = wb.Scene([DISC], obstacles=[wall, deep], gravity=(9.81, 0.0))
    grid = wb.Simulation(scene, wb.MPM(0.025), 0.02).model.grid
    upper = grid.lower + grid.dx * (np.array(grid.resolution) - 1)
    assert upper[0] >= 0.8
    assert grid.lower[1] > 0.25
    down = dataclasses.replace(scene, obstacles=[deep], gravity=(0.0, -9.81))  # 9.5 m below a body of 0.1 m
    assert wb.Simulation(down, wb.MPM(0.025), 0.02).model.grid.lower[1] > 0.25


@pytest.mark.parametrize("dim", [2, 3])
def test_a_region_that_is_a_face_holds_the_particles_at_it(dim):
    """As the nodes there of the other solvers; not those behind, and nothing where it lies outside of the body."""
    corner, size = (0.0,) * dim, (0.2, *(0.1,) * (dim - 1))
    face = wb.shapes.Box((-1.0,) * dim, (1e-6, *(1.0,) * (dim - 1)))
    block = wb.SoftBody("block", wb.shapes.Box(corner, size), SOFT, regions={"face": face})
    sim = wb.Simulation(wb.Scene([block], constraints=[wb.Constraint("face")]), wb.MPM(0.025), 0.01)
    inside, x = sim.region("face").numpy(), sim.model.matter.position[:, 0]
    assert (inside == (x < 0.0125)).all()
    assert inside.sum() == 8 ** (dim - 1)
    away = dataclasses.replace(block, regions={"face": wb.shapes.Box((0.23,) * dim, (0.24,) * dim)})
    with pytest.raises(SceneError, match="region 'face' .* selects 0 of"):
        wb.Simulation(wb.Scene([away]), wb.MPM(0.025), 0.01)


@pytest.mark.parametrize(("dim", "dx", "count"), [(2, 0.2, "1 particle"), (3, 0.2, "1 particle"), (3, 0.15, None)])
def test_a_body_smaller_than_a_cell_is_named(dim, dx, count):
    """One particle has no shape; two along each axis are few, and silent, as is matter given as points."""
    box = wb.shapes.Box((0.0,) * dim, (0.1,) * dim)
    point = wb.shapes.Points(np.full((1, dim), 0.05), np.array([0.1**dim]))
    scene = wb.Scene([wb.SoftBody("crumb", box, wb.Material(1e5))])
    wb.MPM(0.2).build(wb.Scene([wb.SoftBody("grain", point, wb.Material(1e5))]))
    if count is None:
        wb.MPM(dx / 2).build(scene)
        return
    with pytest.warns(UserWarning, match=rf"'crumb' is {count}, because it is 0\.1 m thick .* of at most 0\.05 m"):
        wb.MPM(dx).build(scene)
