"""How a search ends: rollouts that fail, reasons, and checkpoints of another problem."""

import math

import numpy as np
import pytest
import torch
from test_minimize import QUIET, RESUMED, SHORT, Lagrangian, _cma_is_there, leaf, rosenbrock, seeded  # noqa: F401

import warpbots as wb


class Cliff:
    """(x − 3)² in each entry, of a simulation that fails above an edge; from 0, the whole step is 6."""

    def __init__(self, edge=4.0, constrained=False):
        self.x, self.calls, self.edge, self.constrained = leaf(0.0, 0.5), [], edge, constrained

    def __call__(self):
        self.calls.append(self.x.tolist())
        if self.x.max() > self.edge:
            raise wb.SimulationError("the step did not converge")
        loss = (self.x - 3.0).square().sum()
        return wb.Outcome(loss, {}, {"sum": self.x.sum() - 5.0}) if self.constrained else loss


TURNING_BACK = {
    "L-BFGS-B": wb.methods.SciPy("L-BFGS-B"),
    "SLSQP": wb.methods.SciPy("SLSQP"),
    "trust-constr": wb.methods.SciPy("trust-constr", initial_tr_radius=10.0),
    "CMA": wb.methods.CMA(2.0),
}


@pytest.mark.filterwarnings("ignore:delta_grad")
@pytest.mark.parametrize("bounds", [(None, None), (-9.0, 9.0)], ids=["free", "bounded"])
@pytest.mark.parametrize("method", TURNING_BACK)
def test_a_method_turns_back_from_a_rollout_that_fails(method, bounds):
    cliff = Cliff(3.1)
    unknown = wb.Unknown(cliff.x, *bounds, scale=9.0)
    history = wb.minimize(cliff, {"x": unknown}, TURNING_BACK[method], iterations=100, **QUIET)
    failed = sum(max(x) > 3.1 for x in cliff.calls)
    assert history.failures[-1] == failed > 0
    assert history.episodes[-1] == len(cliff.calls)
    assert cliff.x.tolist() == pytest.approx([3.0, 3.0], abs=1e-2)
    assert math.isfinite(max(history.loss))
    assert history.reason == ("iteration limit" if len(history.loss) == 101 else "converged")


@pytest.mark.filterwarnings("ignore:delta_grad")
@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_a_method_turns_back_under_constraints(method):
    cliff = Cliff(2.55, constrained=True)
    history = wb.minimize(cliff, wb.Unknown(cliff.x, scale=5.0), TURNING_BACK[method], iterations=100, **QUIET)
    assert history.failures[-1] > 0
    assert cliff.x.tolist() == pytest.approx([2.5, 2.5], abs=1e-2)


@pytest.mark.filterwarnings("ignore:delta_grad")
@pytest.mark.parametrize("bounded", [False, True], ids=["inequality", "bounds"])
def test_a_search_inside_a_barrier_has_converged_only_when_the_barrier_is_gone(bounded):
    """The minimum lies on the boundary; SciPy stopped 2e-4 before it, at the minimum of the loss and the barrier."""
    x = leaf(1.0, 1.0, 1.0)
    unknown = wb.Unknown(x, -1.0, 2.5) if bounded else wb.Unknown(x)

    def outcome():
        return wb.Outcome((x - 3.0).square().sum(), {}, {} if bounded else {"sum": x.sum() - 7.5})

    history = wb.minimize(outcome, unknown, wb.methods.SciPy("trust-constr"), iterations=100, **QUIET)
    assert history.reason == "converged"
    assert x.tolist() == pytest.approx([2.5] * 3, abs=1e-6)


def test_a_loss_that_is_not_a_number_is_a_rollout_that_failed():
    x = leaf(5.0)
    history = wb.minimize(lambda: (x - x.log()).sum(), wb.Unknown(x, scale=5.0), wb.methods.SciPy("SLSQP"), **QUIET)
    assert history.failures[-1] > 0
    assert x.item() == pytest.approx(1.0, abs=1e-3)


def test_the_first_trial_between_bounds_is_no_longer_than_the_scales():
    """From 0 to a minimum at (300, −200) of a steep loss: plain L-BFGS-B would begin in a corner."""
    x = leaf(0.0, 0.0)
    target, scale = torch.tensor([300.0, -200.0]), torch.tensor([7.0, 3.0])
    seen = []

    def loss():
        seen.append(x.detach().clone())
        return 1e4 * ((x - target) / scale).square().sum()

    history = wb.minimize(loss, wb.Unknown(x, -1e3, 1e3, scale), wb.methods.SciPy("L-BFGS-B"), iterations=60, **QUIET)
    first = (seen[1] / scale).abs().max().item()
    assert 0.25 <= first <= 1.0
    assert x.tolist() == pytest.approx([300.0, -200.0], rel=1e-5)
    assert history.reason == "converged" and "CONVERGENCE" in history.message


@pytest.mark.parametrize("method", ["Adam", "L-BFGS-B"])
def test_an_error_of_a_rollout_names_what_was_tried_and_keeps_the_best(method, tmp_path):
    """Adam climbs over the edge; L-BFGS-B starts beyond it."""
    path = tmp_path / "run.pt"
    cliff = Cliff(1.9 if method == "Adam" else -1.0)
    rule = wb.methods.Torch(lr=0.5) if method == "Adam" else wb.methods.SciPy(method)
    with pytest.raises(wb.optimize.RolloutError, match="with 'x' = .*did not converge.*narrower bounds") as fault:
        wb.minimize(cliff, {"x": cliff.x}, rule, checkpoint=path, **QUIET)
    assert isinstance(fault.value, wb.SimulationError)
    assert fault.value.unknowns["x"].tolist() == cliff.calls[-1]
    assert ", ".join(f"{v:.6g}" for v in cliff.calls[-1]) in str(fault.value)
    history = fault.value.history
    assert history.reason == "rollout failed" and history.message == str(fault.value)
    if method == "Adam":
        assert (cliff.x - 3.0).square().sum().item() == min(history.loss) == history.loss[history.best]
        assert len(history.loss) == len(cliff.calls) - 1 == history.episodes[-1] - 1
        assert torch.equal(torch.load(path, weights_only=True)["best"][0], cliff.x)
        with pytest.raises(wb.optimize.RolloutError, match="'x' ="):
            wb.minimize(cliff, {"x": cliff.x}, rule, checkpoint=path, resume=True, **QUIET)


def test_a_start_that_fails_gives_way_to_the_next():
    cliff = Cliff(2.0)
    starts = wb.methods.MultiStart(wb.methods.Torch(lr=0.5), 3, seed=2)
    with pytest.raises(wb.optimize.RolloutError):
        wb.minimize(cliff, {"x": wb.Unknown(cliff.x, -9.0, 9.0)}, starts, iterations=60, **QUIET)
    cliff = Cliff(2.0)
    starts = wb.methods.MultiStart(wb.methods.Torch(lr=0.05), 3, seed=2)
    history = wb.minimize(cliff, {"x": wb.Unknown(cliff.x, -9.0, 9.0)}, starts, iterations=60, **QUIET)
    assert 0 < history.failures[-1] < 3
    assert "start 1: rollout failed" in history.message
    assert (cliff.x - 3.0).square().sum().item() == history.loss[history.best]


@pytest.mark.filterwarnings("ignore:delta_grad")
@pytest.mark.parametrize("method", ["L-BFGS-B", "SLSQP", "CMA"])
def test_a_search_that_turned_back_is_resumed_at_the_same_bits(method, tmp_path):
    def run(stop=None, **more):
        cliff = Cliff(3.1)

        def killed():
            if len(cliff.calls) == stop:
                raise RuntimeError("killed")
            return cliff()

        history = wb.minimize(
            killed, wb.Unknown(cliff.x, -9.0, 9.0, 9.0), TURNING_BACK[method], iterations=4, **QUIET, **more
        )
        return cliff, history

    whole, once = run()
    for stop in range(2, len(whole.calls)):
        path = tmp_path / f"{stop}.pt"
        with pytest.raises(RuntimeError, match="killed"):
            run(stop, checkpoint=path)
        resumed, twice = run(checkpoint=path, resume=True)
        assert torch.equal(resumed.x, whole.x)
        assert (twice.loss, twice.failures, twice.episodes) == (once.loss, once.failures, once.episodes)
        assert (twice.reason, twice.message) == (once.reason, once.message)


@SHORT
@pytest.mark.filterwarnings("ignore:delta_grad")
@pytest.mark.parametrize("method", RESUMED)
def test_a_run_that_has_ended_is_resumed_by_one_rollout(method, tmp_path):
    path = tmp_path / "run.pt"
    x, once, calls = seeded(RESUMED[method](), 8, checkpoint=path)
    assert calls == once.episodes[-1]
    assert once.reason in ("iteration limit", "converged", "line search failed", "infeasible constraints")
    assert once.message
    resumed, twice, calls = seeded(RESUMED[method](), 8, seed=3, checkpoint=path, resume=True)
    assert calls == 1
    assert torch.equal(resumed, x)
    assert {n: c for n, c in vars(twice).items() if n != "seconds"} == {
        n: c for n, c in vars(once).items() if n != "seconds"
    }


@SHORT
def test_reasons_tell_how_a_search_ended():
    def ended(method, loss=lambda x: (x - 3.0).square().sum(), **options):
        x = leaf(0.0, 0.5)
        return wb.minimize(lambda: loss(x), x, method, **QUIET, **options)

    lbfgsb = wb.methods.SciPy("L-BFGS-B")
    assert ended(lbfgsb).reason == "converged"
    assert ended(lbfgsb, rosenbrock, iterations=3).reason == "iteration limit"
    assert ended(wb.methods.SciPy("L-BFGS-B", maxfun=3), rosenbrock).reason == "evaluation limit"
    assert ended(lbfgsb, callback=lambda history: True).reason == "callback"
    uphill = lambda x: x.sum() - 2.0 * x.sum().detach()  # a gradient that points the wrong way
    assert ended(lbfgsb, uphill).reason == "line search failed"
    two = lambda x: wb.Outcome(x.sum(), {"one": x[0] - 1.0, "two": x[0] + 1.0})
    impossible = ended(wb.methods.SciPy("SLSQP"), two)
    assert impossible.reason in ("infeasible constraints", "line search failed") and impossible.message
    assert ended(wb.methods.Torch(lr=0.1), iterations=2).reason == "iteration limit"


def changed(path, resume=True, target=3.0, method=None, names=("x",), constraint=None, bounds=(-5.0, 5.0), scale=1.0,
            noise=None, **options):  # fmt: skip
    """A short run, and other ways to resume it."""
    unknowns = {name: wb.Unknown(leaf(0.0, 1.0), *bounds, scale=scale) for name in names}
    method = method or wb.methods.Torch(lr=0.1, constraints=Lagrangian() if constraint else None)

    def loss():
        value = sum((u.tensor - target).square().sum() for u in unknowns.values())
        value = value if noise is None else value + noise.standard_normal()
        return value if constraint is None else wb.Outcome(value, constraint(unknowns["x"].tensor))

    settings = {"iterations": 8, "checkpoint": path, "resume": resume, **QUIET} | options
    return wb.minimize(loss, unknowns, method, **settings)


LINE = {"constraint": lambda x: {"line": x.sum()}}


@SHORT
@pytest.mark.parametrize(("before", "after", "message"), [
    ({}, {"bounds": (-5.0, 2.0)}, "unknown 'x': its upper bound was 5 there and is 2 here in entry 0; use the settings"),
    ({}, {"bounds": (None, 5.0)}, "unknown 'x': its lower bound was -5 there and is -inf here"),
    ({}, {"scale": torch.tensor([1.0, 2.0])}, "unknown 'x': its scale was 1 there and is 2 here in entry 1"),
    ({}, {"names": ("y",)}, "an unknown was named 'x' there and is 'y' here"),
    ({}, {"names": ("x", "y")}, "its unknowns have the shapes (2,) of torch.float64 there and (2,) of"),
    ({}, {"target": 2.0}, "the loss is 10.18418 there and the loss is 3.3821705 here"),
    ({}, {"target": 2.0, "iterations": 4}, "the loss is 10.18418 there and the loss is 3.3821705 here"),
    ({}, {"window": 3}, "window was 1 there and is 3 here"),
    ({}, {"allowed_violation": 0.1}, "allowed_violation was 0.001 there and is 0.1 here"),
    (LINE, {"constraint": lambda x: {"line": x}}, "equality line of shape () there and the loss"),
    (LINE, {"constraint": lambda x: {"line": x.sum(), "more": x[0]}}, "equality more of shape () here; use the loss"),
    ({"method": wb.methods.SciPy("SLSQP")}, {"target": 2.0}, "; use the loss, data and scene of that run"),
    ({"method": wb.methods.SciPy("SLSQP", ftol=1e-9)}, {"method": wb.methods.SciPy("SLSQP")}, "ftol was 1e-09 there"),
    ({"noise": np.random.default_rng(0)}, {}, "its own cannot be compared: set window above 1"),
])  # fmt: skip
def test_a_problem_that_has_changed_is_not_resumed(before, after, message, tmp_path):
    path = tmp_path / "run.pt"
    changed(path, resume=False, **{"iterations": 4, **before})
    kept = path.read_bytes()
    with pytest.raises(ValueError, match="cannot resume") as fault:
        changed(path, **before | after)
    assert message in str(fault.value)
    assert path.read_bytes() == kept


def test_a_random_loss_with_a_window_is_resumed_without_a_comparison(tmp_path):
    noise = {"noise": np.random.default_rng(0), "window": 3}
    changed(tmp_path / "run.pt", resume=False, iterations=4, **noise)
    assert len(changed(tmp_path / "run.pt", **noise).loss) == 9
