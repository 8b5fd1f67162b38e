"""Searches whose result may be poor: what they say, and results that they must not lose."""

import warnings

import pytest
import torch
from test_minimize import QUIET, SHORT, Lagrangian, hock_schittkowski_71, leaf, rosenbrock

import warpbots as wb
from warpbots.optimize import History, OptimizeWarning


def bounded_by_one(penalty, **options):
    """Minimise (x - 3)^2 from 0 under x <= 1: the optimum is 1, the minimum of the loss and the penalty 3 - 4 / (2 + penalty)."""
    x = leaf(0.0)
    method = wb.methods.Torch(lr=0.05, constraints=Lagrangian(penalty, every=20))
    outcome = lambda: wb.Outcome((x - 3.0).square().sum(), {}, {"one": x - 1.0})
    return x, wb.minimize(outcome, x, method, **{"iterations": 100, **QUIET, **options})


def test_a_search_that_went_on_outside_the_constraints_says_so_and_the_remedy_helps():
    with pytest.warns(
        OptimizeWarning, match="the result is iteration .* of 100, .* later iterations have a sm"
    ) as said:
        x, history = bounded_by_one(0.1)
    assert x.item() < 1.0 and history.violation[-1] > 1.0 and history.best < 30
    assert history.doubt in str(said[0].message) and history.doubt in str(history)
    assert str(history).startswith(
        f"iteration {history.best} of 100 is the best: loss {history.loss[history.best]:.5g}"
    )
    assert "with an AugmentedLagrangian a larger penalty" in history.doubt
    x, history = bounded_by_one(20.0)
    assert x.item() == pytest.approx(1.0, abs=0.02) and history.doubt == ""


def ended(loss, violation, reason="iteration limit", **options):
    return History(loss=loss, violation=violation, reason=reason, **{"allowed_violation": 1e-3, **options})


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1e-6, 0.0), (1.0, 1e3), (40.0, -7.0)])
def test_doubts_do_not_depend_on_units_and_origin_of_the_loss(scale, shift):
    def doubt(loss, violation, **options):
        return ended([scale * each + shift for each in loss], violation, **options).doubt

    walker = [-0.26, -0.27, *[-0.5 - 0.01 * k for k in range(10)]]
    assert "the result is iteration 1 of 11" in doubt(walker, [0.0, 0.0] + 10 * [0.02])
    assert "violate a constraint by 0.02 to 0.02, and allowed_violation is 0.001" in doubt(
        walker, [0.0, 0.0] + 10 * [0.02]
    )
    assert "the result is iteration 2 of 11" in doubt(walker, [0.0, 0.0, 0.0] + 9 * [0.02], window=1)
    assert doubt(walker, 12 * [0.0]) == "", "all fulfil it"
    assert doubt(walker, [0.0, 0.0] + 5 * [0.02] + 5 * [0.0]) == "", "it came back"
    assert doubt([*walker[:-1], -9.0], 11 * [0.0] + [0.02]) == "", "one violates it"
    around = [5.0, 1.0, *[0.96 if k % 2 else 1.1 for k in range(20)]]
    assert doubt(around, [0.0, 0.0] + 10 * [0.0, 0.01]) == "", "iterates about the bound"
    assert doubt([16.0, 17.05, *10 * [17.01]], [3.0, 0.0] + 10 * [0.01]) == "", "a start outside has a smaller loss"
    assert "no iteration fulfils all constraints: the smallest violation is 0.02, in iteration 11" in doubt(
        walker, 12 * [0.02]
    )
    assert "no iteration is better than the start" in doubt([1.0, 2.0, 1.0], 3 * [0.0])
    assert "no iteration is better than the mean of the first 2" in doubt([9.0, 1.0, 9.5, 8.0], 4 * [0.0], window=2)
    assert doubt([1.0, 2.0], 2 * [0.0], reason="converged") == ""


@pytest.mark.parametrize("reason", ["", "callback", "interrupted"])
def test_a_search_that_the_user_ended_or_that_still_runs_is_not_judged(reason):
    assert ended([1.0, 2.0], [0.0, 0.0], reason).doubt == ""
    assert ended([], []).doubt == ""


def test_a_search_that_found_nothing_says_so():
    uphill = lambda x: x.square().sum() - 2.0 * x.square().sum().detach()  # a gradient that points the wrong way
    x = leaf(1.0, 2.0)
    with pytest.warns(OptimizeWarning, match=r"no iteration is better than the start, with a loss of -5, after 5 iter"):
        wb.minimize(lambda: uphill(x), x, wb.methods.Torch(lr=0.1), iterations=5, **QUIET)
    assert x.tolist() == [1.0, 2.0]
    x, unknown, outcome = hock_schittkowski_71()
    with pytest.warns(OptimizeWarning, match="no iteration fulfils all constraints: the smallest violation is"):
        wb.minimize(outcome, unknown, wb.methods.SciPy("SLSQP"), iterations=1, **QUIET)
    x = leaf(1e-7)
    assert wb.minimize(lambda: x.square().sum(), x, wb.methods.SciPy("L-BFGS-B"), **QUIET).reason == "converged"
    x = leaf(0.0)
    with pytest.warns(UserWarning, match="exactly zero") as said:
        wb.minimize(lambda: x.square().sum(), x, wb.methods.Torch(lr=0.1), iterations=2, **QUIET)
    assert len(said) == 1, "one cause, one warning"


def test_a_search_over_candidates_is_silent_about_its_runs_and_judges_their_best():
    def searched(bound):
        def problem(start):
            x = leaf(start)
            return lambda: wb.Outcome((x - 3.0).square().sum(), {}, {"bound": bound - x.sum()}), wb.Unknown(
                x, -5.0, 5.0
            )

        return wb.search({"a": 0.0, "b": 1.0}, problem, wb.methods.SciPy("SLSQP"), episodes=30, **QUIET)

    assert searched(4.0).doubt == ""
    with pytest.warns(
        OptimizeWarning, match="search: no candidate fulfils all constraints: the smallest .* is 1, by '"
    ):
        searched(6.0)


@SHORT
@pytest.mark.filterwarnings("ignore:delta_grad")
@pytest.mark.parametrize(
    ("name", "constrained"),
    [("L-BFGS-B", False), ("SLSQP", False), ("SLSQP", True), ("trust-constr", False), ("trust-constr", True)],
)
def test_the_best_trial_counts_when_the_episodes_run_out(name, constrained):
    """At every limit, unknowns and history have the best of all rollouts that fulfil the constraints."""
    trials = 0
    for limit in range(1, 20):
        x, seen = leaf(-1.0, 0.5), []

        def loss():
            value, outside = (1.0 + (x - 50.0).square()).sqrt().sum(), x.sum() - 60.0  # noqa: B023
            excess = outside.item() if constrained and outside > 1e-3 else 0.0
            seen.append((excess, value.item(), x.tolist()))  # noqa: B023
            return wb.Outcome(value, {}, {"line": outside} if constrained else {})

        history = wb.minimize(loss, x, wb.methods.SciPy(name), iterations=99, episodes=limit, **QUIET)
        assert len(seen) == history.episodes[-1] <= limit
        assert (history.loss[history.best], x.tolist()) == min(seen)[1:]
        trials += len(history.gradient_norm) < len(history.loss)
    assert trials > 0 or constrained or name == "trust-constr", "a trial was the best"


@SHORT
def test_the_best_trial_of_a_step_of_lbfgs_counts_when_the_episodes_run_out():
    """One step takes up to twenty rollouts: none of them was in the history before the step had ended."""
    for limit in range(1, 12):
        x, seen = leaf(-1.0, 0.5), []

        def loss():
            value = (1.0 + (x - 5.0).square()).sqrt().sum()  # noqa: B023
            seen.append((value.item(), x.tolist()))  # noqa: B023
            return value

        method = wb.methods.Torch(torch.optim.LBFGS, lr=0.5)
        history = wb.minimize(loss, x, method, episodes=limit, **QUIET)
        assert (history.loss[history.best], x.tolist()) == min(seen) and len(seen) == limit


class Brittle(torch.autograd.Function):
    """The identity, whose backward pass fails above an edge, as the adjoint of a step that does not converge."""

    @staticmethod
    def forward(ctx, x, edge):
        ctx.fails = bool(x.max() > edge)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        if ctx.fails:
            raise FloatingPointError("the adjoint of a step did not converge")
        return gradient, None


def brittle(method, edge=3.1, stop=None, constrained=False, **options):
    """Minimise (x - 3)^2 from 0; the whole step ends at 6, where the loss has no gradient."""
    x, calls = leaf(0.0, 0.5), []

    def loss():
        calls.append(x.tolist())
        if len(calls) == stop:
            raise RuntimeError("killed")
        value = (Brittle.apply(x, edge) - 3.0).square().sum()
        return wb.Outcome(value, {}, {"sum": x.sum() - 5.0}) if constrained else value

    history = wb.minimize(loss, wb.Unknown(x, scale=9.0), method, **{"iterations": 60, **QUIET, **options})
    return x, calls, history


BRITTLE = {
    "L-BFGS-B": lambda: wb.methods.SciPy("L-BFGS-B"),
    "SLSQP": lambda: wb.methods.SciPy("SLSQP"),
    "trust-constr": lambda: wb.methods.SciPy("trust-constr", initial_tr_radius=10.0),
    "starts": lambda: wb.methods.MultiStart(wb.methods.SciPy("SLSQP"), 2, deviation=0.1),
}


@pytest.mark.filterwarnings("ignore:delta_grad")
@pytest.mark.parametrize("method", BRITTLE)
def test_a_method_turns_back_from_a_gradient_that_fails(method):
    x, calls, history = brittle(BRITTLE[method]())
    assert x.tolist() == pytest.approx([3.0, 3.0], abs=1e-2)
    assert history.failures[-1] > 0 and history.episodes[-1] == len(calls)
    assert history.doubt == "" and max(history.loss) < 20.0
    assert method == "starts" or len(set(history.loss)) == len(history.loss), "what is replayed is not noted again"


@pytest.mark.filterwarnings("ignore:delta_grad")
@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_a_method_turns_back_from_a_gradient_that_fails_under_constraints(method):
    x, _, history = brittle(BRITTLE[method](), edge=2.55, constrained=True)
    assert x.tolist() == pytest.approx([2.5, 2.5], abs=1e-2) and history.failures[-1] > 0


@SHORT
@pytest.mark.filterwarnings("ignore:delta_grad")
@pytest.mark.parametrize("method", BRITTLE)
def test_a_search_with_a_gradient_that_failed_is_resumed_at_the_same_bits(method, tmp_path):
    x, calls, once = brittle(BRITTLE[method](), iterations=6)
    for stop in range(2, len(calls) + 1):
        path = tmp_path / f"{stop}.pt"
        with pytest.raises(RuntimeError, match="killed"):
            brittle(BRITTLE[method](), iterations=6, stop=stop, checkpoint=path)
        again, _, twice = brittle(BRITTLE[method](), iterations=6, checkpoint=path, resume=True)
        assert torch.equal(again, x)
        assert (twice.loss, twice.failures, twice.episodes) == (once.loss, once.failures, once.episodes)


def test_an_end_without_a_smaller_loss_names_the_trials_that_failed():
    """Every step fails: the line search ends at the start, and says so; that of SLSQP cannot end there."""
    with pytest.warns(OptimizeWarning, match="no iteration is better than the start"):
        x, calls, history = brittle(wb.methods.SciPy("L-BFGS-B"), edge=0.5)
    many = len(calls)
    assert history.reason == "line search failed" and x.tolist() == [0.0, 0.5]
    assert history.message.endswith(
        f"; {history.failures[-1]} of {many} rollouts failed, the last one for this reason: its gradient: the adjoint of a step "
        f"did not converge"
    )
    with pytest.raises(wb.optimize.RolloutError, match="its gradient: the adjoint of a step did not converge"):
        brittle(wb.methods.SciPy("SLSQP"), edge=0.5)


@pytest.mark.parametrize("method", [wb.methods.SciPy("SLSQP"), wb.methods.Torch(lr=0.1)], ids=["SLSQP", "Adam"])
def test_a_first_gradient_that_fails_ends_the_search(method):
    with pytest.raises(wb.optimize.RolloutError, match=r"rollout 1 of the search.*adjoint of a step did not converge"):
        brittle(method, edge=-1.0)


@pytest.mark.parametrize("method", [wb.methods.SciPy("SLSQP"), wb.methods.Torch(lr=1e-3)], ids=["SLSQP", "Adam"])
def test_a_start_whose_first_gradient_fails_gives_way_to_the_next(method):
    """The first start is at 0.5, where the loss has no gradient above 0.4; of the others, some are below."""
    starts = wb.methods.MultiStart(method, 6, deviation=0.2)
    x, _, history = brittle(starts, edge=0.4)
    assert "start 0: rollout failed (the adjoint of a step did not converge)" in history.message
    assert history.failures[-1] > 0 and history.reason == "rollout failed"
    assert (x - 3.0).square().sum().item() == history.loss[history.best] == min(history.loss)


def test_starts_that_have_not_run_are_named():
    x = leaf(-1.0, 0.5)
    starts = wb.methods.MultiStart(wb.methods.Torch(lr=0.01), 4)
    with pytest.warns(
        OptimizeWarning, match="limit of 15 episodes ended the search in start 1 of 0 to 3, so that 2 st"
    ):
        history = wb.minimize(lambda: rosenbrock(x), x, starts, iterations=40, episodes=15, **QUIET)
    assert (
        history.message
        == "start 0: iteration limit (all iterations are done); start 1: episode limit (all episodes are spent)"
    )
    with warnings.catch_warnings(action="error"):
        wb.minimize(lambda: rosenbrock(x), x, starts, iterations=40, episodes=40, **QUIET)


def test_the_progress_says_which_iteration_is_the_best(capsys, monkeypatch):
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    x = leaf(0.5)
    with pytest.warns(OptimizeWarning):
        wb.minimize(lambda: x.square().sum(), x, wb.methods.Torch(torch.optim.SGD, lr=3.0), iterations=3)
    assert "best 0.25 in iteration 0" in capsys.readouterr().err
