"""The last search for pairs is spared where the first one says that nothing can be near, and only there."""

import numpy as np
import pytest
import torch
from soft_bodies import CELL

from warpbots.scene import Box, Material, Scene, SoftBody
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

SIZE = 0.08


def two_cubes(gap: float, velocity: float = 0.0) -> Simulation:
    """A cube above another one, with so many mean edges between them, which comes down with so many in a step."""
    edge = 1.2 * CELL  # nearly
    bodies = [
        SoftBody("below", Box((0, 0, 0), (SIZE, SIZE, SIZE)), Material(1e5, 0.3, 1000.0)),
        SoftBody(
            "above", Box((0, 0, SIZE + gap * edge), (SIZE, SIZE, 2 * SIZE + gap * edge)), Material(1e5, 0.3, 1000.0)
        ),
    ]
    bodies[1] = SoftBody(bodies[1].name, bodies[1].shape, bodies[1].material, velocity=(0, 0, -velocity * edge / 5e-3))
    sim = Simulation(Scene(bodies, gravity=(0.0, 0.0, 0.0)), ProjectiveDynamics(CELL), 5e-3)
    assert sim.model.matter.edge == pytest.approx(edge, rel=0.05)
    return sim


def stepped(sim: Simulation, position: torch.Tensor | None = None):
    """Positions after a step, the least height between facing nodes then [m], and the number of searches."""
    state = sim.state() if position is None else sim.state(position=position)
    end = sim.step(state, torch.zeros(0)).position[0].numpy()
    rest, above = sim.model.matter.position, sim.model.matter.body == 1
    bottom = np.flatnonzero(above & (rest[:, 2] == rest[above, 2].min()))
    top = np.flatnonzero(~above & (rest[:, 2] == rest[~above, 2].max()))
    bottom, top = (side[np.lexsort(rest[side, :2].T)] for side in (bottom, top))
    assert np.array_equal(rest[bottom, :2], rest[top, :2])
    return end, (end[bottom, 2] - end[top, 2]).min(), int(sim.model.workspace.contact.search.searches.numpy()[0])


@pytest.mark.parametrize(("gap", "velocity", "searches"), [(1.0, 0.0, 1), (0.4, 0.0, 1), (0.2, 0.0, 2), (1.0, 0.8, 2)])
def test_one_search_is_enough_beyond_the_margin(gap, velocity, searches):
    """The margin is a quarter of an edge, at both ends of the way and along it."""
    _, left, found = stepped(two_cubes(gap, velocity))
    assert left > 0.0
    assert found == searches


def test_a_node_that_leaves_its_way_is_searched_again():
    """The lower cube was squeezed to 0.4 of its height and springs up in one step, further than the gap above it.

    Nothing is near in free flight, which is no motion at all here; the second search finds what comes near.
    """
    sim = two_cubes(0.4)
    start = sim.state().position.clone()
    below = torch.as_tensor(sim.model.matter.body == 0)
    start[0, below, 2] = SIZE - 0.4 * (SIZE - start[0, below, 2])  # the top stays
    _, left, searches = stepped(sim, start)
    alone = Simulation(sim.scene, ProjectiveDynamics(CELL, collisions=False), 5e-3)
    _, passed, _ = stepped(alone, start)
    assert passed < 0.0
    assert searches > 1
    assert left > 0.0


def test_the_end_is_the_same_with_and_without_looking_for_pairs():
    """To the last bit, where one search was enough."""
    sim = two_cubes(0.4)
    start = sim.state().position + 0.01 * CELL * torch.as_tensor(
        np.random.default_rng(0).uniform(-1, 1, sim.state().position.shape), dtype=sim.state().position.dtype
    )
    end, _, searches = stepped(sim, start)
    other, _, none = stepped(Simulation(sim.scene, ProjectiveDynamics(CELL, collisions=False), 5e-3), start)
    assert (searches, none) == (1, 0)
    np.testing.assert_array_equal(end, other)
