"""Worlds of different age: clocks, tables, delays, differences and noise count from the start of each world."""

import math

import numpy as np
import pytest
import torch

import warpbots as wb
from warpbots.numerics import precision
from warpbots.observers import Accelerometer, Centroid, Clusters, Delayed, Noisy
from warpbots.scene import Box, floor

DT = 5e-3
LONG, SHORT = 7, 4
"""Control intervals of the worlds that go on, and of those that begin anew after the difference."""

OBSERVERS = {
    "no memory": Centroid(),
    "delay": Delayed(Centroid(), 2),
    "differences": Clusters(2, acceleration=True),
    "differences late": Delayed(Accelerometer(), 1),
    "noise": Noisy(Centroid(), 0.05, seed=3),
    "noise late": Delayed(Noisy(Delayed(Centroid(), 1), 0.05, seed=3), 3),
}


@pytest.fixture(scope="module")
def sim():
    body = wb.SoftBody("b", Box((0.2, 0.0), (0.5, 0.1)), wb.Material(1e4, 0.25), {"l": Box((0.2, 0.0), (0.3, 0.1))})
    muscle = wb.actuators.Muscle("m", "l", (1.0, 0.0), 1e3)
    return wb.Simulation(
        wb.Scene([body], [muscle], obstacles=[floor(dim=2)]), wb.MassSpring(0.05), DT, substeps=20, worlds=3
    )


def network(sim, observer, clock=0.031):
    return wb.controllers.MLP(sim, observer, (8,), clock=clock, seed=2)


def by_hand(sim, policy, restart=()):
    """Controls and states of each interval, where the worlds `restart` begin anew before the last intervals."""
    if isinstance(policy, wb.controllers.MLP):
        policy.forget()
    state, found = sim.state(), []
    began = torch.zeros(sim.worlds, dtype=torch.float64)
    for i in range(LONG):
        if len(restart) and i == LONG - SHORT:
            state = sim.reset(state, list(restart))
            began[list(restart)] = i
            if isinstance(policy, wb.controllers.MLP):
                policy.forget(list(restart))
        u = policy(state, (i - began) * DT if len(restart) else i * DT)
        state = sim.step(state, u)
        found.append((u.detach(), state.position.detach()))
    return found


@pytest.mark.parametrize("observer", OBSERVERS.values(), ids=OBSERVERS)
def test_worlds_of_different_age_are_single_runs_to_the_last_bit(sim, observer):
    policy = network(sim, observer)
    same, mixed = by_hand(sim, policy), by_hand(sim, policy, restart=(0, 2))
    for i in range(LONG - SHORT):
        assert all(torch.equal(a, b) for a, b in zip(same[i], mixed[i], strict=True))
    for i in range(SHORT):
        for now, old, anew in zip(mixed[LONG - SHORT + i], same[LONG - SHORT + i], same[i], strict=True):
            assert torch.equal(now[1], old[1])
            assert torch.equal(now[[0, 2]], anew[[0, 2]])
    assert not torch.equal(same[SHORT - 1][0], same[-1][0])  # age matters


def test_tables_count_for_each_world(sim):
    policy = wb.controllers.OpenLoop(sim, LONG)
    torch.nn.init.normal_(policy.table, generator=torch.Generator().manual_seed(1))
    same, mixed = by_hand(sim, policy), by_hand(sim, policy, restart=(1,))
    assert torch.equal(mixed[-1][0][:, 0], torch.tanh(policy.table.detach()[[LONG - 1, SHORT - 1, LONG - 1], 0]))
    assert torch.equal(mixed[-1][1][1], same[SHORT - 1][1][1])
    assert torch.equal(mixed[-1][1][0], same[-1][1][0])


@pytest.mark.parametrize("make", [lambda sim: network(sim, None), lambda sim: wb.controllers.OpenLoop(sim, LONG)])
def test_rollouts_go_on_at_the_age_of_each_world_with_the_same_gradient(sim, make):
    """Of states whose worlds are 0 and 3 intervals old; each world's gradient is that of its rollout from the start."""
    policy = make(sim)
    if isinstance(policy, wb.controllers.OpenLoop):
        torch.nn.init.normal_(policy.table, generator=torch.Generator().manual_seed(1))
    past, rest = LONG - SHORT, sim.state()
    grown = sim.rollout(policy, past).final.mapped(torch.Tensor.detach)
    age = torch.tensor([0.0, past * DT, 0.0], dtype=torch.float64)
    mixed = sim.rollout(policy, SHORT, sim.reset(grown, [0, 2], rest), time=age)
    young, old = sim.rollout(policy, SHORT, rest), sim.rollout(policy, SHORT, grown, time=past * DT)
    unknowns = tuple(policy.parameters())

    def slopes(run, world):
        return torch.autograd.grad(run.final.position[world, :, 0].sum(), unknowns, retain_graph=True)

    for world, single in ((0, young), (1, old), (2, young)):
        assert torch.equal(mixed.control[world], single.control[world])
        assert torch.equal(mixed.final.position[world], single.final.position[world])
        for ours, theirs in zip(slopes(mixed, world), slopes(single, world), strict=True):
            assert theirs.abs().max() > 0.0
            torch.testing.assert_close(ours, theirs, rtol=1e-4 if precision == "float32" else 1e-12, atol=1e-9)


def test_a_table_of_a_rollout_begins_with_its_first_row_at_any_age(sim):
    table = torch.linspace(-1.0, 1.0, SHORT)[:, None]
    plain = sim.rollout(table, SHORT).final.position
    for time in (1.2345, torch.tensor([0.0, 0.1, 7.7])):
        assert torch.equal(sim.rollout(table, SHORT, time=time).final.position, plain)


def test_a_reset_by_hand_is_not_lost_to_a_rollout_in_between(sim):
    """The reset belongs to the motion that is stepped by hand, not to a rollout that looks ahead."""
    observe = Delayed(Centroid(), 2).bind(sim)
    states = [sim.state(velocity=np.full(2, 0.1 * k)) for k in range(4)]
    for state in states[:3]:
        observe(state)
    observe.forget(torch.tensor([True, False, False]))
    sim.rollout(None, 1, observe=observe)
    seen, plain = observe(states[3]), Centroid().bind(sim)
    assert torch.equal(seen[0], plain(states[3])[0])
    assert torch.equal(seen[1:], plain(states[1])[1:])


def test_noise_is_independent_between_calls_worlds_and_seeds(sim):
    """At any age: over 400 calls of 3 worlds, correlations are within chance."""
    state = sim.state()
    plain = Centroid().bind(sim)(state)

    def drawn(seed):
        observe = Noisy(Centroid(), 1.0, seed).bind(sim)
        return torch.stack([observe(state) - plain for _ in range(400)]).double()  # calls, worlds, features

    one, other = drawn(1), drawn(2)
    columns = torch.cat([one[:-1].flatten(1), one[1:].flatten(1), other[1:].flatten(1)], dim=1)
    correlation = torch.corrcoef(columns.T)
    assert (correlation - torch.eye(len(correlation))).abs().max() < 5.0 / math.sqrt(399)
    assert abs(one.std() - 1.0) < 0.03 and abs(one.mean()) < 0.05


@pytest.mark.parametrize(("time", "said"), [
    (torch.zeros(2), r"one number or have shape \(3,\), the age of each world \[s\], got \(2,\)"),
    (torch.zeros(3, 1), r"got \(3, 1\)"),
    (float("nan"), "must be a finite number, got nan"),
    (torch.tensor([0.0, float("nan"), 0.0]), r"must be finite \[s\], got \[0.0, nan, 0.0\]"),
    (None, "must be a finite number, got None"),
    ("now", "must be a finite number, got 'now'"),
    (torch.tensor([True, False, True]), "must be real numbers"),
    ([0.0, "late", 0.0], "must be a number or a tensor of numbers"),
])  # fmt: skip
def test_what_is_no_age(sim, time, said):
    state = sim.state()
    for who, call in (
        ("MLP: time", lambda: network(sim, None)(state, time)),
        ("OpenLoop: time", lambda: wb.controllers.OpenLoop(sim, 2)(state, time)),
        ("rollout: time", lambda: sim.rollout(None, 1, time=time)),
    ):
        with pytest.raises(ValueError, match=f"{who}.*{said}"):
            call()


def test_tables_have_no_rows_before_their_first_and_after_their_last(sim):
    policy = wb.controllers.OpenLoop(sim, 2)
    counted = r"\d+ was requested; make it with steps=\d+ or more; if 1 is the number of an interval, give its time, 1 \* sim.dt$"
    for time, said in (
        (2 * DT, "2 was requested; make it with steps=3 or more$"),
        (-DT, "-1 .*; time begins at 0"),
        (1, counted),
    ):
        for age in (time, torch.tensor([0.0, time, 0.0])):
            with pytest.raises(IndexError, match=f"the table has 2 control intervals, but interval {said}"):
                policy(sim.state(), age)


def test_tables_are_for_their_control_interval(sim):
    """Under shorter intervals, rows were repeated in an order that rounding decides: 0, 0, 2, 2."""
    policy = wb.controllers.OpenLoop(sim, 4)
    with pytest.raises(
        ValueError, match=rf"a row for every {DT:g} s, but the signal at {DT / 2:g} s was requested; make"
    ):
        policy(sim.state(), DT / 2)
    for k in range(4):
        policy(sim.state(), k * DT * (1.0 + 1e-7))


def test_rows_that_longer_intervals_pass_over_are_counted(sim):
    """The signals are the rows at the times of the intervals; the rows between have no gradient, which a warning says."""
    policy = wb.controllers.OpenLoop(sim, 7)
    torch.nn.init.normal_(policy.table, generator=torch.Generator().manual_seed(1))
    slow = wb.Simulation(sim.scene, sim.solver, 3 * sim.dt, 3 * sim.substeps, worlds=sim.worlds)
    for _ in range(2):  # each rollout says it, once
        with pytest.warns(
            UserWarning, match="one row in 3: 4 of 7 rows are never used, and have a zero grad"
        ) as caught:
            run = slow.rollout(policy, 3)
        assert len(caught) == 1
    assert torch.equal(run.control[0], torch.tanh(policy.table[::3]))
    run.final.position[..., 0].sum().backward()
    assert (policy.table.grad[:, 0] != 0.0).tolist() == [True, False, False, True, False, False, True]
    sim.rollout(policy, 7)  # no warning, which is an error here


@pytest.mark.parametrize("worlds", [torch.tensor([True, False]), [3], torch.tensor([0.5]), "first"])
def test_what_cannot_begin_anew(sim, worlds):
    for observer in (Delayed(Centroid(), 1), Noisy(Centroid(), 0.1, seed=1)):
        with pytest.raises(
            ValueError, match="forget: (a mask of worlds must|there is no world 3|worlds must be a mask)"
        ):
            network(sim, observer).forget(worlds)


def test_a_mask_of_numbers_is_no_mask(sim):
    """It was taken for indices, so that other worlds began anew; indices in any order are not refused."""
    with pytest.raises(ValueError, match="reset: worlds .* are indices, of which some repeat; for a mask use booleans"):
        sim.reset(sim.state(), [0, 1, 1])
    for worlds in ([0, 1], [2, 1, 0], (1,), range(3), np.int64(1), torch.tensor([False, True, True])):
        sim.reset(sim.state(), worlds)


@pytest.mark.parametrize("worlds", [torch.tensor([1, 0, 0]), torch.tensor([2]), np.array([0, 1], np.uint8)], ids=str)
def test_numbers_in_a_tensor_could_be_a_mask_or_indices(sim, worlds):
    """With two worlds, [0, 1] as a mask would reset the second one, as indices both."""
    kind = r"bool\(\)" if isinstance(worlds, torch.Tensor) else r"astype\(bool\)"
    said = rf"reset: worlds must be a mask .* whose numbers could be either: give a mask as worlds.{kind}, indices as w"
    with pytest.raises(ValueError, match=said):
        sim.reset(sim.state(), worlds)
