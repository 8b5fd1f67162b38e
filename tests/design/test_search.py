"""A search over candidates: who gets how many episodes, what fails, where it was stopped, and a finger that reaches."""

import csv
import math

import numpy as np
import pytest
import torch

import warpbots as wb
from warpbots.design import hand_grammar, mounted
from warpbots.optimize.halving import fewest_episodes, schedule
from warpbots.optimize.search_history import SearchHistory, SearchRun

QUIET = {"progress": False}
METHODS = {
    "L-BFGS-B": lambda: wb.methods.SciPy("L-BFGS-B"),
    "SLSQP": lambda: wb.methods.SciPy("SLSQP"),
    "Adam": lambda: wb.methods.Torch(lr=0.1),
    "LBFGS": lambda: wb.methods.Torch(torch.optim.LBFGS, lr=0.01, max_iter=4),
    "CMA": lambda: wb.methods.CMA(population=4),
    "starts": lambda: wb.methods.MultiStart(wb.methods.SciPy("L-BFGS-B"), 2),
    "batched": lambda: wb.methods.BatchedStarts(wb.methods.Torch(lr=0.1), 2),
}


def of(method, **options):
    """Valleys that suit a method."""
    return Valleys(starts=2 if method == "batched" else 1, bounds=() if method == "LBFGS" else (-3.0, 3.0), **options)


@pytest.fixture(autouse=True)
def _cma_is_there(request):
    if "CMA" in request.node.name:
        pytest.importorskip("cma", reason="the extra cma is not installed")


class _NoSlope(torch.autograd.Function):
    """A number whose gradient is not finite, which is found as in a rollout."""

    @staticmethod
    def forward(ctx, value):
        return value.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise FloatingPointError("a gradient is not finite")


class Valleys:
    """Rosenbrock's function plus a number: the candidate, whose minimum is that number. It counts its calls."""

    def __init__(self, broken=(), stop=None, starts=1, noise=0.0, bounds=(-3.0, 3.0)):
        self.calls, self.broken, self.stop, self.starts, self.noise = [], broken, stop, starts, noise
        self.bounds = bounds

    def __call__(self, depth):
        if ("scene", depth) in self.broken:
            raise wb.SceneError(f"candidate {depth} is no scene")
        rows = () if self.starts == 1 else (self.starts,)
        x = (torch.tensor([-1.2, 1.0], dtype=torch.float64) + 0.1 * torch.randn(*rows, 2)).requires_grad_()

        def loss():
            self.calls.append(depth)
            if len(self.calls) == self.stop:
                raise MemoryError("killed")
            if ("first", depth) in self.broken or (("later", depth) in self.broken and self.calls.count(depth) > 3):
                raise wb.SimulationError(f"candidate {depth} did not converge")
            value = (1.0 - x[..., 0]) ** 2 + 100.0 * (x[..., 1] - x[..., 0] ** 2) ** 2 + depth
            value = value + self.noise * torch.randn(())
            return _NoSlope.apply(value) if ("slope", depth) in self.broken else value

        return loss, {"x": wb.Unknown(x, *self.bounds)}


def run(valleys, method, depths=range(8), seed=1, **options):
    torch.manual_seed(seed)
    candidates = {f"valley {d}": d for d in depths}
    return wb.search(candidates, valleys, method, **{"episodes": 160, **QUIET, **options})


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("episodes", [64, 97, 160])
def test_no_more_rollouts_are_made_than_there_are_episodes(method, episodes):
    valleys = of(method)
    history = run(valleys, METHODS[method](), episodes=episodes)
    assert len(valleys.calls) * valleys.starts == history.episodes == sum(record.episodes for record in history.runs)
    if method == "batched":  # two at a time
        assert episodes - 1 <= history.episodes <= episodes
    else:
        assert history.episodes == episodes and history.reason == "episode limit"


def test_the_rounds_halve_the_candidates_and_share_the_episodes():
    """Of candidates that never end, by the rule: each round has a quarter, and the best half goes on."""
    history = SearchHistory(tuple("abcdefgh"))
    for planned in schedule(history, 100, 2):
        history.runs.append(
            SearchRun(
                planned.candidate,
                planned.round,
                planned.episodes,
                0,
                ord(planned.candidate) % 5,
                0.0,
                "episode limit",
                "",
            )
        )
    rounds = [[(record.candidate, record.episodes) for record in history.runs if record.round == k] for k in range(5)]
    assert rounds[0] == list(zip("abcdefgh", (4, 3, 3, 3, 3, 3, 3, 3), strict=True))
    assert rounds[1] == [("d", 7), ("e", 6), ("a", 6), ("f", 6)]  # losses 0, 1, 2 and 2
    assert rounds[2:] == [[("d", 13), ("e", 12)], [("d", 25)], []]
    assert [fewest_episodes(n, 2) for n in (1, 2, 8, 9)] == [2, 8, 64, 90]
    assert fewest_episodes(9, 3) == 54


def test_candidates_that_converge_leave_their_episodes_to_others():
    history = run(Valleys(), METHODS["L-BFGS-B"](), range(3), episodes=10_000)
    assert history.reason == "nothing goes on" and history.episodes < 1000
    assert [record.candidate for record in history.ranking] == ["valley 0", "valley 1", "valley 2"]
    assert [record.loss for record in history.ranking] == pytest.approx([0.0, 1.0, 2.0], abs=1e-6)
    assert history.best == "valley 0"
    assert torch.allclose(history.values[history.best]["x"], torch.ones(2, dtype=torch.float64), atol=1e-3)


@pytest.mark.parametrize("how", ["first", "scene", "slope"])
@pytest.mark.parametrize("method", ["L-BFGS-B", "Adam"])
def test_a_candidate_that_fails_comes_last_and_the_search_goes_on(how, method):
    """Also if its gradient is not finite."""
    valleys = Valleys([(how, 0)])
    history = run(valleys, METHODS[method]())
    assert history.best == "valley 1" and history.ranking[-1].candidate == "valley 0"
    (failed,) = [record for record in history.runs if record.candidate == "valley 0"]
    assert (failed.loss, failed.reason) == (math.inf, "not built" if how == "scene" else "rollout failed")
    assert failed.episodes == valleys.calls.count(0) == (how != "scene")
    assert {"first": "did not converge", "scene": "is no scene", "slope": "not finite"}[how] in failed.message
    assert "valley 0" not in history.values
    assert history.episodes == len(valleys.calls) == 160


def test_a_candidate_that_fails_later_keeps_what_it_has_found():
    history = run(Valleys([("later", 0)]), METHODS["Adam"]())
    (record,) = [record for record in history.runs if record.candidate == "valley 0"]
    assert (record.episodes, record.failures, record.reason) == (4, 1, "rollout failed")
    assert math.isfinite(record.loss) and "valley 0" in history.values


def test_nothing_that_works_is_said():
    with pytest.warns(
        wb.optimize.OptimizeWarning, match="search: no candidate has a loss; that of 'valley 0' failed: "
    ):
        history = run(Valleys([("first", d) for d in range(8)]), METHODS["Adam"]())
    assert history.reason == "nothing goes on" and history.episodes == 8
    with pytest.raises(ValueError, match="no candidate has a loss, see the messages"):
        _ = history.best


def test_a_leg_begins_where_the_best_one_of_its_candidate_has_ended():
    valleys, firsts = Valleys(), []

    def problem(depth):
        loss, unknowns = valleys(depth)
        seen = []

        def first():
            value = loss()
            if not seen:
                seen.append(value)
                firsts.append((depth, value.item()))
            return value

        return first, unknowns

    best = {}
    history = run(problem, METHODS["Adam"]())
    for record, (depth, begun) in zip(history.runs, firsts, strict=True):
        assert record.candidate == f"valley {depth}" and best.get(depth, begun) == begun >= record.loss
        best[depth] = record.loss
    assert len(history.runs) == 15


def test_violations_decide_before_losses():
    """The candidate of the smallest loss cannot satisfy its constraint; one without any loss comes after it."""

    def problem(depth):
        if depth == 3:
            raise wb.SceneError("no scene")
        x = torch.full((2,), 0.5, dtype=torch.float64, requires_grad=True)
        where = 3.0 if depth == 0 else 1.0
        return lambda: wb.Outcome(x.square().sum() + depth, {"sum": x.sum() - where}), wb.Unknown(x, 0.0, 1.0)

    history = wb.search({str(d): d for d in range(4)}, problem, METHODS["SLSQP"](), episodes=60, **QUIET)
    assert [record.candidate for record in history.ranking] == ["1", "2", "0", "3"]
    assert history.ranking[2].violation == pytest.approx(1.0) and history.ranking[0].violation < 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_a_search_that_was_killed_anywhere_ends_at_the_same_bits(method, tmp_path):
    """Also with starts and losses at random."""
    noise = 1e-3 if method == "Adam" else 0.0
    whole = of(method, noise=noise)
    once = run(whole, METHODS[method](), range(4), episodes=40)
    first = {1 + n for n, _ in once.curve if n < once.episodes and method != "batched"}  # of a record
    for stop in sorted(first | set(range(1, len(whole.calls) + 1, 9))):
        path = tmp_path / f"{stop}.pt"
        with pytest.raises(MemoryError):
            run(
                of(method, stop=stop, noise=noise),
                METHODS[method](),
                range(4),
                episodes=40,
                checkpoint=path,
            )
        again = of(method, noise=noise)
        twice = run(again, METHODS[method](), range(4), seed=7, episodes=40, checkpoint=path, resume=True)
        assert twice.runs == once.runs and twice.reason == once.reason
        for name, values in once.values.items():
            assert torch.equal(twice.values[name]["x"], values["x"])
        assert [p.name for p in tmp_path.iterdir() if p.stem.startswith(f"{stop}-") or p.stem == f"{stop}"] == [
            path.name
        ]
        finished = of(method, noise=noise)
        assert run(finished, METHODS[method](), range(4), episodes=40, checkpoint=path, resume=True).runs == once.runs
        assert finished.calls == []


def test_a_search_that_is_stopped_has_its_best(tmp_path):
    path = tmp_path / "run.pt"
    seen = []
    history = run(Valleys(), METHODS["Adam"](), callback=lambda h: seen.append(len(h.runs)) or len(h.runs) == 10)
    assert history.reason == "callback" and seen == list(range(1, 11)) and history.best == "valley 0"
    valleys = Valleys()

    def interrupted(depth):
        loss, unknowns = valleys(depth)

        def pressed():
            if len(valleys.calls) == 90:
                raise KeyboardInterrupt
            return loss()

        return pressed, unknowns

    torch.manual_seed(1)
    stopped = run(interrupted, METHODS["Adam"](), checkpoint=path)
    assert stopped.reason == stopped.runs[-1].reason == "interrupted" and stopped.best == "valley 0"
    assert (
        run(Valleys(), METHODS["Adam"](), checkpoint=path, resume=True).runs == run(Valleys(), METHODS["Adam"]()).runs
    )


def test_another_search_is_not_resumed(tmp_path):
    path = tmp_path / "run.pt"
    run(Valleys(), METHODS["Adam"](), checkpoint=path)
    more = {"checkpoint": path, "resume": True}
    with pytest.raises(ValueError, match="episodes was 160 there and is 200 here; use the settings of that search"):
        run(Valleys(), METHODS["Adam"](), episodes=200, **more)
    with pytest.raises(ValueError, match="optimizer was Adam there and is SLSQP here"):
        run(Valleys(), METHODS["SLSQP"](), **more)
    with pytest.raises(ValueError, match="its candidates differ, or are in another order"):
        run(Valleys(), METHODS["Adam"](), reversed(range(8)), **more)
    with pytest.raises(ValueError, match="target was None there and is 3 here"):
        run(Valleys(), METHODS["Adam"](), about={"target": 3}, **more)
    with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
        run(Valleys(), METHODS["Adam"](), checkpoint=tmp_path / "none.pt", resume=True)
    path.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="is not a checkpoint of warpbots.search"):
        run(Valleys(), METHODS["Adam"](), **more)


def test_settings_that_cannot_be_are_refused():
    adam = METHODS["Adam"]()
    for options, message in (
        ({"depths": ()}, "at least 1 candidate and a reduction of at least 2, got 0 and 2"),
        ({"reduction": 1}, "got 8 and 1"),
        ({"episodes": 63}, "8 candidates need at least 64 episodes, so that each has 2 in every round, got 63"),
        ({"resume": True}, "resume needs a checkpoint"),
    ):
        with pytest.raises(ValueError, match=message):
            run(Valleys(), adam, **options)
    with pytest.raises(ValueError, match="2 episodes are too few for an iteration of the method"):
        run(Valleys(starts=3), wb.methods.BatchedStarts(adam, 3), episodes=64)
    count = iter(range(100))

    def changing(depth):
        x = torch.zeros(2 + (next(count) > 7), dtype=torch.float64, requires_grad=True)
        return lambda: (x - 1.0).square().sum(), x

    with pytest.raises(
        ValueError, match=r"unknowns of 'valley \d' had the shapes {'0': \(2,\)} and have {'0': \(3,\)} now"
    ):
        run(changing, adam)


@pytest.mark.filterwarnings("ignore::warpbots.optimize.OptimizeWarning")  # too short on purpose
@pytest.mark.parametrize("method", METHODS)
def test_minimize_stops_at_its_limit_of_episodes_and_goes_on(method, tmp_path):
    starts = 2 if method == "batched" else 1
    path = tmp_path / "run.pt"

    def once(limit, **options):
        torch.manual_seed(1)
        valleys = of(method)
        loss, unknowns = valleys(0)
        history = wb.minimize(loss, unknowns, METHODS[method](), iterations=30, episodes=limit, **QUIET, **options)
        return history, len(valleys.calls) * starts, unknowns["x"].tensor.detach().clone()

    for limit in range(2, 20):
        history, calls, _ = once(limit)
        assert calls == limit - limit % starts == history.episodes[-1] and history.reason == "episode limit"
    whole, _, best = once(20)
    once(9, checkpoint=path)
    resumed, _, again = once(20, checkpoint=path, resume=True)
    assert (resumed.loss, resumed.episodes, resumed.reason) == (whole.loss, whole.episodes, whole.reason)
    assert torch.equal(again, best)
    with pytest.raises(ValueError, match="episodes must be at least 1, or None for no limit, got 0"):
        once(0)


def test_the_history_is_a_table(tmp_path):
    history = run(Valleys([("first", 3)]), METHODS["Adam"]())
    history.write_csv(tmp_path / "runs.csv")
    with (tmp_path / "runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["candidate"] for row in rows] == [record.candidate for record in history.runs]
    assert [float(row["loss"]) for row in rows] == [record.loss for record in history.runs]
    episodes, losses = zip(*history.curve, strict=True)
    assert list(episodes) == np.cumsum([record.episodes for record in history.runs]).tolist()
    assert all(np.diff(losses) <= 0.0) and losses[-1] == history.ranking[0].loss


def test_the_search_finds_the_finger_that_brute_force_finds():
    """A target beside and below the axis of the palm takes a knuckle; lengths and controls are found with it."""
    grammar = hand_grammar({"hand": ["palm finger"]})
    fingers = {str(t): t.assembly(("*width", "*height")) for t in grammar.topologies(6)}
    goal = torch.tensor([0.055, 0.035, -0.015], dtype=torch.float64)

    def problem(finger):
        scene = mounted(finger, gravity=(0.0, 0.0, 0.0))
        sim = wb.Simulation(scene, wb.Articulated(), dt=0.1, substeps=5, checkpoints=wb.Checkpoints.all())
        factors = finger.rest.requires_grad_()
        control = torch.full((4, sim.channels), 0.3, dtype=torch.float64, requires_grad=True)  # straight is a saddle

        def loss():
            shape = finger.shape(factors)
            changed = finger.model_parameters(sim, shape)
            link, end = finger.carried("tip", [(22.1e-3, 0.0, 0.0)], shape)
            final = sim.rollout(control, 4, **changed).final
            readings, k = sim.sense(final, **changed), sim.model.robot.body(link)
            tip = readings.position[0, k] + readings.rotation[0, k] @ end[0]
            return (tip - goal).norm() / 0.01 + 0.1 * sim.channels + 0.01 * control.square().sum()

        return loss, {"factors": wb.Unknown(factors, 0.5, 2.0), "control": wb.Unknown(control, -1.0, 1.0)}

    brute = {}
    for name, finger in fingers.items():
        loss, unknowns = problem(finger)
        history = wb.minimize(loss, unknowns, METHODS["L-BFGS-B"](), episodes=40, iterations=40, **QUIET)
        brute[name] = history.loss[history.best]
    best = min(brute, key=brute.get)
    assert best == "palm knuckle joint phalanx tip"
    found = wb.search(fingers, problem, METHODS["L-BFGS-B"](), episodes=80, **QUIET)
    assert found.best == best and found.episodes <= 80
    assert found.ranking[0].loss <= brute[best] + 0.05
