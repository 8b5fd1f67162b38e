"""Contacts do not depend on which thread of a search is first."""

import numpy as np
import pytest
import warp as wp

from warpbots.numerics import real
from warpbots.scene import Box, Material, Scene, SoftBody
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective import detection_step
from warpbots.solvers.projective.contact import surface_search
from warpbots.solvers.projective.contact.detection import find_edges_kernel, find_faces_kernel
from warpbots.solvers.projective.contact.merge import order_kernel
from warpbots.solvers.projective.contact.surface_search import PAIRS
from warpbots.solvers.projective.states import ProjectiveState

LISTED = ("key", "slot", "kind", "node", "side", "normal", "weight")


def blocks() -> Scene:
    """A cube that falls on another one, half beside it, turned by nothing: vertices come to lie over edges of faces."""
    material = Material(1e5, 0.3, 1000.0, "neo_hookean")
    low = SoftBody("low", Box((0, 0, 0), (0.1, 0.1, 0.1)), material)
    high = SoftBody("high", Box((0.05, 0.025, 0.104), (0.15, 0.125, 0.2)), material, velocity=(0.1, 0, -1.2))
    return Scene([low, high], gravity=(0.0, 0.0, 0.0))


def table(model) -> dict[str, np.ndarray]:
    """Contacts of all worlds."""
    return {name: getattr(model.workspace.contact.search, name).numpy() for name in PAIRS}


def shuffle(hits, rng: np.random.Generator) -> None:
    """Bring what was found into another order, as other threads that are first would."""
    count = int(hits.count.numpy()[0])
    order = rng.permutation(count)
    for name in LISTED:
        array = getattr(hits, name)
        values = array.numpy()
        values[:count] = values[order]
        array.assign(values)


def run(monkeypatch, before_order, steps: int = 2) -> tuple[dict, ProjectiveState, list[int]]:
    """Contacts, the state and how many pairs each search found, after a few steps with something done to what is found."""
    solver = ProjectiveDynamics(0.05)
    model = solver.build(blocks(), 1, "cpu")
    launch, found = detection_step.launch, []

    def launched(kernel, *arguments):
        before = table(model)
        launch(kernel, *arguments)
        if kernel in (find_faces_kernel, find_edges_kernel):
            assert all(np.array_equal(values, table(model)[name]) for name, values in before.items())

    def ordered(kernel, *arguments):
        if kernel is order_kernel:
            found.append(int(model.workspace.contact.search.hits.count.numpy()[0]))
            before_order(model.workspace.contact.search.hits)
        launched(kernel, *arguments)

    monkeypatch.setattr(detection_step, "launch", ordered)
    state, end = solver.state(model), solver.state(model)
    control = wp.zeros((1, 0), dtype=real, device="cpu")
    for _ in range(steps):
        solver.step(model, state, control, end, 5e-3)
        state, end = end, state
    return table(model), state, found


@pytest.mark.parametrize("seed", [0, 1])
def test_contacts_do_not_depend_on_the_order_in_which_they_are_found(seed, monkeypatch):
    """A search changes no contact while its threads read them, and what it has found is merged in one order."""
    expected, one, found = run(monkeypatch, lambda hits: None)
    assert max(found) > 10
    rng = np.random.default_rng(seed)
    actual, other, _ = run(monkeypatch, lambda hits: shuffle(hits, rng))
    count = expected["count"][0]
    assert all(np.array_equal(actual[name][:count], expected[name][:count]) for name in PAIRS)
    assert np.array_equal(one.position.numpy(), other.position.numpy())


def test_more_pairs_than_a_search_has_room_for_are_more_than_there_is_room_for(monkeypatch):
    """A step that cannot list what it finds fails as one does that has no room for its contacts."""

    monkeypatch.setattr(surface_search, "_HITS", 0)
    contacts, end, found = run(monkeypatch, lambda hits: None, steps=1)
    assert max(found) > 0
    assert contacts["count"][0] > len(contacts["kind"])
    assert end.lost.numpy().all()
