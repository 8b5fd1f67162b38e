"""Problems with constraints and published optima, resumed searches, and refusals."""

import math
import re

import numpy as np
import pytest
import torch

import warpbots as wb
from warpbots.optimize.problem import Problem
from warpbots.optimize.unknowns import Unknowns

QUIET = {"progress": False}
Lagrangian = wb.methods.AugmentedLagrangian
SHORT = pytest.mark.filterwarnings("ignore::warpbots.optimize.OptimizeWarning")  # too short on purpose


def leaf(*values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def rosenbrock(x):
    return (1.0 - x[0]) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2


def in_a_disc():
    """Rosenbrock's function in a disc of radius sqrt(2) about zero, touched from inside at (1, 1): optimum 0."""
    x = leaf(-1.0, 0.5)
    return x, wb.Unknown(x, -1.5, 1.5), lambda: wb.Outcome(rosenbrock(x), {}, {"disc": x.square().sum() - 2.0})


def hock_schittkowski_6():
    x = leaf(-1.2, 1.0)
    return x, x, lambda: wb.Outcome((1.0 - x[0]) ** 2, {"parabola": 10.0 * (x[1] - x[0] ** 2)})


def hock_schittkowski_35():
    x = leaf(0.5, 0.5, 0.5)

    def outcome():
        a, b, c = x
        loss = 9 - 8 * a - 6 * b - 4 * c + 2 * a**2 + 2 * b**2 + c**2 + 2 * a * b + 2 * a * c
        return wb.Outcome(loss, {}, {"sum": a + b + 2 * c - 3})

    return x, wb.Unknown(x, 0.0), outcome


def hock_schittkowski_71():
    x = leaf(1.0, 5.0, 5.0, 1.0)

    def outcome():
        loss = x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]
        return wb.Outcome(loss, {"norm": x.square().sum() - 40.0}, {"product": 25.0 - x.prod()})

    return x, wb.Unknown(x, 1.0, 5.0), outcome


PROBLEMS = {
    "disc": (in_a_disc, [1.0, 1.0], 0.0),
    "HS6": (hock_schittkowski_6, [1.0, 1.0], 0.0),
    "HS35": (hock_schittkowski_35, [4 / 3, 7 / 9, 4 / 9], 1 / 9),
    "HS71": (hock_schittkowski_71, [1.0, 4.7429994, 3.8211503, 1.3794082], 17.0140173),
}


def decaying(rule):
    return torch.optim.lr_scheduler.ExponentialLR(rule, 0.995)


CONSTRAINED = {
    "SLSQP": (wb.methods.SciPy("SLSQP", ftol=1e-10), 60, 1e-5),
    "trust-constr": (wb.methods.SciPy("trust-constr", gtol=1e-9), 400, 1e-4),
    "Adam": (wb.methods.Torch(lr=0.05, scheduler=decaying, constraints=Lagrangian()), 1000, 1e-3),
}


@pytest.mark.filterwarnings("ignore:delta_grad")  # of SciPy, about linear constraints
@pytest.mark.parametrize(
    ("problem", "method"),  # first-order steps creep along Rosenbrock's valley
    [(p, m) for p in PROBLEMS for m in CONSTRAINED if m != "Adam" or p in ("HS35", "HS71")],
)
def test_published_optima_under_constraints_are_found(problem, method):
    make, optimum, value = PROBLEMS[problem]
    rule, iterations, near = CONSTRAINED[method]
    x, unknown, outcome = make()
    history = wb.minimize(outcome, unknown, rule, iterations=iterations, allowed_violation=near, **QUIET)
    assert x.tolist() == pytest.approx(optimum, abs=30 * near)
    assert history.loss[history.best] == pytest.approx(value, abs=30 * near)
    assert history.violation[history.best] <= near
    assert len(history.loss) <= iterations + 1
    assert len(history.loss) == len(history.violation) == len(history.episodes) == len(history.seconds)


def test_a_plateau_scheduler_sees_the_loss():
    """A loss that falls all the time is no plateau: 20 steps of 0.1 along a slope of one."""
    x = leaf(1.0)
    wait = lambda rule: torch.optim.lr_scheduler.ReduceLROnPlateau(rule, patience=2)
    wb.minimize(lambda: x.sum(), x, wb.methods.Torch(torch.optim.SGD, lr=0.1, scheduler=wait), iterations=20, **QUIET)
    assert x.item() == pytest.approx(-1.0)


def test_a_scheduler_advances_after_every_step():
    x = leaf(1.0)
    halving = lambda rule: torch.optim.lr_scheduler.ExponentialLR(rule, 0.5)
    wb.minimize(lambda: x.sum(), x, wb.methods.Torch(torch.optim.SGD, lr=0.4, scheduler=halving), iterations=3, **QUIET)
    assert x.item() == pytest.approx(1.0 - 0.4 - 0.2 - 0.1)


def test_lbfgs_finds_the_optimum_of_an_equality_constraint():
    x, unknown, outcome = hock_schittkowski_6()
    lbfgs = wb.methods.Torch(torch.optim.LBFGS, line_search_fn="strong_wolfe", constraints=Lagrangian(every=1))
    wb.minimize(outcome, unknown, lbfgs, iterations=20, allowed_violation=1e-6, **QUIET)
    assert x.tolist() == pytest.approx([1.0, 1.0], abs=1e-4)


def test_a_constraint_moves_unknowns_that_begin_at_a_stationary_point_of_the_loss():
    """Without a warning: |x|² is least at its start, which violates x₁ + x₂ = 2."""
    x = leaf(0.0, 0.0)
    outcome = lambda: wb.Outcome(x.square().sum(), {"line": x.sum() - 2.0})
    wb.minimize(outcome, x, wb.methods.SciPy("SLSQP"), iterations=10, **QUIET)
    assert x.tolist() == pytest.approx([1.0, 1.0], abs=1e-6)


def test_the_multiplier_is_that_of_the_optimum():
    """Minimise |x|² on x₁ + x₂ = 2: the optimum is (1, 1), and its multiplier −2."""
    x = leaf(3.0, 0.0)
    rule = wb.methods.Torch(torch.optim.SGD, lr=0.1, constraints=Lagrangian(every=20))
    problem = Problem(lambda: wb.Outcome(x.square().sum(), {"line": x.sum() - 2.0}), Unknowns(x), True)
    search = rule.search(problem)
    for iteration in range(600):
        search._step(type("Run", (), {"note": lambda *_: None})(), iteration)
    assert search._multipliers._equality.item() == pytest.approx(-2.0, abs=1e-5)
    assert x.tolist() == pytest.approx([1.0, 1.0], abs=1e-5)


def test_a_constraint_that_binds_late_has_no_memory_of_its_slack():
    """Minimise (x − 3)² from −5 under x ≤ 1, slowly: many updates find the constraint slack."""
    x = leaf(-5.0)
    rule = wb.methods.Torch(torch.optim.SGD, lr=0.02, constraints=Lagrangian(every=5))
    wb.minimize(lambda: wb.Outcome(((x - 3) ** 2).sum(), {}, {"x": x - 1}), x, rule, iterations=300, **QUIET)
    assert x.item() == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize("name", ["L-BFGS-B", "SLSQP", "trust-constr"])
@pytest.mark.filterwarnings("ignore:delta_grad")
def test_bounds_hold_in_every_rollout_and_scales_change_nothing_but_units(name):
    """The quadratic's minimum (1, −2) is outside: the optimum on the border is (1, −1)."""
    seen = []
    x = leaf(0.0, 0.0, dtype=torch.float32)

    def loss():
        seen.append(x.detach().clone())
        return (x[0] - 1.0) ** 2 + 10.0 * (x[1] + 2.0) ** 2

    unknown = wb.Unknown(x, torch.tensor([-2.0, -1.0]), 2.0, scale=torch.tensor([1.0, 0.1]))
    wb.minimize(loss, unknown, wb.methods.SciPy(name), iterations=100, **QUIET)
    assert x.tolist() == pytest.approx([1.0, -1.0], abs=1e-3)
    assert min(s[1].item() for s in seen) >= -1.0


@pytest.mark.filterwarnings("ignore:delta_grad")
def test_an_interior_point_method_that_leaves_the_bounds_sees_the_nearest_point_inside():
    x, unknown, outcome = hock_schittkowski_71()
    seen, asked = [], wb.methods.SciPy("trust-constr")

    def watched():
        seen.append(x.detach().clone())
        return outcome()

    search = asked.search(Problem(watched, Unknowns(unknown), True))
    far = search._evaluations.at(np.array([0.9, 5.0, 5.1, 1.0]), derivatives=True)
    assert seen[0].tolist() == [1.0, 5.0, 5.0, 1.0]
    assert far.loss == 16.0


def test_torch_steps_are_in_units_of_the_scale_and_projected_onto_bounds():
    """Adam's first step is its learning rate: 0.1 scales, whatever the gradient."""
    E = leaf(1e5, 1e5, dtype=torch.float32)
    unknown = wb.Unknown(E, 9.5e4, scale=torch.tensor([1e4, 1e5]))
    wb.minimize(lambda: (E / 1e5).sum(), unknown, wb.methods.Torch(lr=0.1), iterations=1, **QUIET)
    assert E.tolist() == pytest.approx([9.9e4, 9.5e4], rel=1e-6)


def spring_problem():
    """A bar of MPM pulled by two muscles: its displacement, and the distance of its ends."""
    halves = {"left": wb.shapes.Box((0.1, 0.1), (0.2, 0.2)), "right": wb.shapes.Box((0.2, 0.1), (0.3, 0.2))}
    body = wb.SoftBody("bar", wb.shapes.Box((0.1, 0.1), (0.3, 0.2)), wb.Material(1e4), halves)
    muscles = [wb.actuators.Muscle(name, name, (1.0, 0.0), 2e3) for name in halves]
    scene = wb.Scene([body], muscles, gravity=(0.0, 0.0), domain=((0.0, 0.0), (0.4, 0.3)))
    sim = wb.Simulation(scene, wb.MPM(0.025), dt=4e-3, substeps=2)
    table = torch.full((10, 2), 0.3, requires_grad=True)

    def outcome():
        motion = sim.rollout(table, 10)
        ends = motion.final.position[0, :, 0]
        width = 10.0 * (ends.amax() - ends.amin())
        speed = motion.final.velocity[0].square().sum(-1).mean()
        return wb.Outcome(table.square().mean(), {"width": width - 1.6}, {"speed": speed - 0.2})

    return table, outcome


def test_the_jacobian_of_a_rollout_agrees_with_differences():
    """One rollout and three backward passes agree with differences along a direction for each row."""
    table, outcome = spring_problem()
    problem = Problem(outcome, Unknowns(wb.Unknown(table, scale=0.5)), True)
    now = problem.evaluate(0)
    jacobian = problem.jacobian(now)
    assert jacobian.shape == (3, 20)
    z, step = problem.unknowns.vector(), 2e-2
    direction = np.random.default_rng(0).standard_normal(20)
    values = []
    for sign in (1, -1):
        problem.unknowns.set_vector(z + sign * step * direction)
        there = problem.evaluate(0)
        values.append(np.array([there.value, there.equality.item(), there.inequality.item()]))
    difference = (values[0] - values[1]) / (2 * step)
    near = 1e-4 if table.dtype == torch.float64 else 5e-3
    assert jacobian @ direction == pytest.approx(difference, rel=near, abs=near * np.abs(difference).max())
    assert problem.episodes == 3


def test_a_muscle_reaches_a_width_with_the_least_signal():
    table, outcome = spring_problem()
    history = wb.minimize(outcome, table, wb.methods.SciPy("SLSQP"), iterations=12, **QUIET)
    assert history.violation[0] > 0.1
    assert history.violation[history.best] <= 1e-3
    assert history.episodes[-1] >= len(history.loss)


RESUMED = {
    "Adam": lambda: wb.methods.Torch(lr=0.05, scheduler=decaying, constraints=Lagrangian(every=2)),
    "plateau": lambda: wb.methods.Torch(
        torch.optim.SGD, lr=1e-3, constraints=Lagrangian(every=2), max_norm=1.0,
        scheduler=lambda rule: torch.optim.lr_scheduler.ReduceLROnPlateau(rule, patience=1),
    ),
    "SLSQP": lambda: wb.methods.SciPy("SLSQP"),
    "trust-constr": lambda: wb.methods.SciPy("trust-constr"),
    "L-BFGS-B": lambda: wb.methods.SciPy("L-BFGS-B"),
    "CMA": lambda: wb.methods.CMA(population=4),
    "smoothed": lambda: wb.methods.Torch(lr=0.05, smoothing=wb.methods.Smoothing(0.1, samples=4)),
    "starts of Adam": lambda: wb.methods.MultiStart(wb.methods.Torch(lr=0.05), 2),
    "starts of SLSQP": lambda: wb.methods.MultiStart(wb.methods.SciPy("SLSQP"), 4),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _cma_is_there(request):
    if "CMA" in request.node.name:
        pytest.importorskip("cma", reason="the extra cma is not installed")


def seeded(method, iterations, stop=None, seed=1, noise=0.0, **more):
    """Minimise HS71, with scaled unknowns, killed in evaluation `stop`."""
    x, _, outcome = hock_schittkowski_71()
    torch.manual_seed(seed)
    count = [0]

    def evaluated():
        count[0] += 1
        if count[0] == stop:
            raise RuntimeError("killed")
        here = outcome()
        loss = here.loss + noise * torch.randn(())
        return wb.Outcome(loss, here.equality, here.inequality) if method.constrained else loss

    unknown = wb.Unknown(x, 1.0, 5.0, scale=2.0)
    return x, wb.minimize(evaluated, unknown, method, iterations=iterations, **QUIET, **more), count[0]


@SHORT
@pytest.mark.parametrize("method", RESUMED)
def test_a_search_that_was_killed_anywhere_ends_at_the_same_bits(method, tmp_path):
    whole, once, count = seeded(RESUMED[method](), 8, noise=1e-3)
    for stop in range(2, count):
        path = tmp_path / f"{stop}.pt"
        with pytest.raises(RuntimeError, match="killed"):
            seeded(RESUMED[method](), 8, stop, noise=1e-3, checkpoint=path)
        saved = max(torch.load(path, weights_only=True)["history"]["episodes"], default=0)
        resumed, twice, again = seeded(RESUMED[method](), 8, seed=2, noise=1e-3, checkpoint=path, resume=True)
        assert torch.equal(resumed, whole)
        assert (twice.loss, twice.violation, twice.gradient_norm) == (once.loss, once.violation, once.gradient_norm)
        assert twice.episodes == once.episodes
        assert again <= count - saved + 1, "what was recorded is not evaluated again, but for the last"


@SHORT
@pytest.mark.parametrize("method", ["SLSQP", "Adam"])
def test_more_iterations_continue_a_run_that_was_complete(method, tmp_path):
    whole, once, _ = seeded(RESUMED[method](), 6)
    seeded(RESUMED[method](), 3, checkpoint=tmp_path / "run.pt")
    resumed, twice, _ = seeded(RESUMED[method](), 6, checkpoint=tmp_path / "run.pt", resume=True)
    assert torch.equal(resumed, whole)
    assert twice.loss == once.loss


@SHORT
def test_a_checkpoint_of_another_method_problem_or_version_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "run.pt"
    seeded(wb.methods.SciPy("SLSQP"), 3, checkpoint=path)
    with pytest.raises(ValueError, match="optimizer was SLSQP there and is trust-constr here"):
        seeded(wb.methods.SciPy("trust-constr"), 8, checkpoint=path, resume=True)
    with pytest.raises(ValueError, match="scene was None there and is arm here"):
        seeded(wb.methods.SciPy("SLSQP"), 8, checkpoint=path, resume=True, about={"scene": "arm"})
    state = torch.load(path, weights_only=True)
    state["about"]["warpbots"] = "0.0.1"
    torch.save(state, path)
    with pytest.raises(
        ValueError, match=r"warpbots was 0.0.1 there and is (?!None).* here; use the settings of that run"
    ):
        seeded(wb.methods.SciPy("SLSQP"), 8, checkpoint=path, resume=True)
    del state["method"]
    torch.save(state, path)
    with pytest.raises(ValueError, match="is not a checkpoint of warpbots.minimize, or of an earlier version"):
        seeded(wb.methods.SciPy("SLSQP"), 8, checkpoint=path, resume=True)


@SHORT
def test_recorded_points_that_come_out_differently_are_refused(tmp_path):
    path = tmp_path / "run.pt"
    seeded(wb.methods.SciPy("SLSQP"), 3, checkpoint=path)
    state = torch.load(path, weights_only=True)
    state["method"]["evaluations"][2]["point"] += 1e-12
    torch.save(state, path)
    with pytest.raises(ValueError, match="evaluation 2 of the stopped run is at another point"):
        seeded(wb.methods.SciPy("SLSQP"), 8, checkpoint=path, resume=True)


def test_cma_finds_the_optimum_within_bounds_and_leaves_global_generators_alone():
    x = leaf(-1.0, 0.5)
    np.random.seed(3)  # noqa: NPY002
    history = wb.minimize(lambda: rosenbrock(x), wb.Unknown(x, -1.5, 0.5), wb.methods.CMA(), iterations=60, **QUIET)
    assert x.tolist() == pytest.approx([0.5, 0.25], abs=1e-3)
    assert history.loss[history.best] == pytest.approx(0.25, abs=1e-3)
    assert history.gradient_norm == []
    assert history.episodes[1] == 1 + 6  # 4 + 3 ln 2
    assert np.random.random() == np.random.RandomState(3).random()  # noqa: NPY002


@SHORT
def test_the_best_rollout_of_a_generation_that_the_limit_ended_counts():
    """Of every limit, from none to two generations of six: unknowns and history have the best of all rollouts."""
    for limit in range(1, 14):
        x, seen = leaf(-1.0, 0.5), []

        def loss():
            seen.append((rosenbrock(x).item(), x.tolist()))  # noqa: B023
            return rosenbrock(x)  # noqa: B023

        history = wb.minimize(loss, x, wb.methods.CMA(), episodes=limit, **QUIET)
        assert (history.loss[history.best], x.tolist()) == min(seen)
        assert len(seen) == history.episodes[-1] == limit and history.reason == "episode limit"


def smoothed_step(loss, start, **settings):
    """The gradient of a smoothed loss, as the step of plain descent at a rate of one."""
    x = leaf(start)
    torch.manual_seed(0)
    rule = wb.methods.Torch(torch.optim.SGD, lr=1.0, smoothing=wb.methods.Smoothing(**settings))
    unknown = wb.Unknown(x, scale=0.5)
    end = []
    wb.minimize(lambda: loss(x), unknown, rule, iterations=1, callback=lambda h: end.append(x.item()), **QUIET)
    return (start - end[-1]) / 0.5 / 0.5, end


def test_smoothed_gradients_are_those_of_the_convolution():
    """Of x²: 2 x, exactly with pairs. Of the step function: the normal density, which only differences see."""
    slope, _ = smoothed_step(lambda x: x.square().sum(), 0.7, deviation=0.3, samples=2)
    assert slope == pytest.approx(1.4, rel=1e-12)

    def jump(x):
        return (x > 0).double().sum() + 0.0 * x.sum()

    sigma = 0.8  # in units of the scale, 0.5
    with pytest.warns(UserWarning, match="exactly zero in the first iteration"):
        blind, seen = smoothed_step(jump, 0.1, deviation=sigma, samples=2)
    assert blind == 0.0
    assert seen[0] == 0.1, "the callback sees the unperturbed unknowns"
    density = math.exp(-0.5 * (0.1 / (0.5 * sigma)) ** 2) / math.sqrt(2 * math.pi) / (0.5 * sigma)
    slope, _ = smoothed_step(jump, 0.1, deviation=sigma, samples=4000, order=0)
    assert slope == pytest.approx(density, rel=0.05)


def test_several_starts_leave_a_local_minimum():
    """(x² − 1)² + x / 2 has its global minimum at −1.057, beyond a hill from the start."""

    def solved(method, bounds, **options):
        x = leaf(1.0)
        unknown = wb.Unknown(x, *bounds)
        history = wb.minimize(lambda: ((x**2 - 1) ** 2 + x / 2).sum(), unknown, method, **options, **QUIET)
        return x.item(), history

    one = wb.methods.SciPy("L-BFGS-B")
    assert solved(one, (-2.0, 2.0), iterations=20)[0] > 0.8
    for bounds in ((-2.0, 2.0), (None, None)):
        x, history = solved(wb.methods.MultiStart(one, 5, deviation=2.0), bounds, iterations=50)
        assert x == pytest.approx(-1.0575, abs=1e-3)
    descent = wb.methods.MultiStart(wb.methods.Torch(torch.optim.SGD, lr=0.05), 4)
    x, history = solved(descent, (-2.0, 2.0), iterations=160)
    assert x == pytest.approx(-1.0575, abs=1e-3)
    assert len(history.loss) == 4 * 41
    assert len(solved(descent, (-2.0, 2.0), iterations=163)[1].loss) == 163 + 4  # the first three starts get one more
    with pytest.raises(ValueError, match=r"iterations must be at least 1 for each of 4 starts, .*got 3$"):
        solved(descent, (-2.0, 2.0), iterations=3)


def far_dip(x):
    """Its global minimum is 0 at 0; the other minimum, at 8, is 1."""
    return torch.where(x < 5.0, x.square(), 1.0 + (x - 8.0).square()).sum()


def test_a_mean_over_recent_losses_does_not_mix_two_starts(tmp_path):
    """The mean still falls when the second start, in a poor minimum, takes the last losses of the first one over."""
    starts = wb.methods.MultiStart(wb.methods.Torch(torch.optim.SGD, lr=0.1), 2, deviation=3.0, seed=86)
    path = tmp_path / "run.pt"
    for resume in (False, True):
        x = leaf(4.0)
        options = {"iterations": 24, "window": 8, "checkpoint": path, "resume": resume}
        history = wb.minimize(lambda x=x: far_dip(x), x, starts, **options, **QUIET)
        assert min(history.loss[13:]) >= 1.0, "the second start ends in the poor minimum"
        assert history.begins == [13]
        assert history.best == 12
        assert x.item() == pytest.approx(4.0 * 0.8**12)
    with pytest.raises(ValueError, match=r"window must be at most the 12 iterations of each start, got 13"):
        wb.minimize(lambda: far_dip(x), x, starts, iterations=24, window=13, **QUIET)


def double_well(x):
    """Its global minimum is -0.515 at -1.057; the other minimum, at 0.930, is 0.484."""
    return (x**2 - 1) ** 2 + x / 2


def test_starts_at_once_do_what_each_does_alone():
    drawn = torch.full((3, 2), 1.0, dtype=torch.float64, requires_grad=True)
    starts = wb.methods.BatchedStarts(wb.methods.Torch(lr=0.05, max_norm=0.5), 3, seed=1)
    rows = []
    wb.minimize(
        lambda: double_well(drawn).sum(1), drawn, starts, iterations=1, **QUIET,
        callback=lambda history: rows.append(drawn.detach().clone()),
    )  # fmt: skip
    together = rows[0].clone().requires_grad_()
    ends, norms = [], []
    for row in rows[0]:
        alone = row.clone().requires_grad_()
        one = wb.methods.Torch(lr=0.05, max_norm=0.5)
        history = wb.minimize(lambda alone=alone: double_well(alone).sum(), alone, one, iterations=20, **QUIET)
        ends.append(history.loss)
        norms.append(history.gradient_norm)
    assert (rows[0][0] == 1.0).all(), "the first start is the given one"
    fixed = wb.methods.BatchedStarts(wb.methods.Torch(lr=0.05, max_norm=0.5), 3, deviation=1e-300)
    history = wb.minimize(lambda: double_well(together).sum(1), together, fixed, iterations=20, **QUIET)
    np.testing.assert_allclose(history.loss, np.min(ends, axis=0), rtol=1e-5)  # torch clips to 1e-6 below the norm
    np.testing.assert_allclose(history.gradient_norm, np.max(norms, axis=0), rtol=1e-5)
    assert history.episodes == [3 * (i + 1) for i in range(21)]
    best = np.argmin(np.array(ends).min(axis=1))
    np.testing.assert_allclose(double_well(together.detach()).sum(1), np.min(ends[best]), rtol=1e-5)


def test_starts_at_once_leave_a_local_minimum():
    x = torch.ones(6, 1, dtype=torch.float64, requires_grad=True)
    starts = wb.methods.BatchedStarts(wb.methods.Torch(lr=0.05), 6)
    history = wb.minimize(lambda: double_well(x[:, 0]), wb.Unknown(x, -2.0, 2.0), starts, iterations=150, **QUIET)
    np.testing.assert_allclose(x.detach(), -1.0575, atol=1e-3)
    assert history.loss[history.best] == pytest.approx(-0.5148, abs=1e-3)
    assert re.search(r"last losses of the starts: 0\.48\d*(, -?0\.\d+){5}$", history.message)


def test_starts_at_once_that_were_killed_end_at_the_same_bits(tmp_path):
    def run(stop=0, **more):
        x, count = torch.ones(3, 2, requires_grad=True), [0]

        def losses():
            count[0] += 1
            if count[0] == stop:
                raise RuntimeError("killed")
            return double_well(x).sum(1)

        starts = wb.methods.BatchedStarts(wb.methods.Torch(lr=0.05), 3)
        return x.detach(), wb.minimize(losses, x, starts, iterations=5, **QUIET, **more)

    whole, once = run()
    for stop in range(1, 7):
        path = tmp_path / f"{stop}.pt"
        with pytest.raises(RuntimeError, match="killed"):
            run(stop, checkpoint=path)
        resumed, twice = run(checkpoint=path, resume=True)
        assert torch.equal(resumed, whole)
        assert (twice.loss, twice.gradient_norm, twice.episodes) == (once.loss, once.gradient_norm, once.episodes)


def test_starts_at_once_are_refused_by_name():
    x, Torch, Starts = leaf(1.0, 1.0), wb.methods.Torch, wb.methods.BatchedStarts
    for fault, message in (
        (lambda: Starts(Torch(), 1), r"starts must be at least 2 and deviation positive, got 1 and 1"),
        (lambda: Starts(Torch(constraints=Lagrangian()), 2), r"neither constraints nor smoothing; use methods.Multi"),
        (lambda: Starts(Torch(smoothing=wb.methods.Smoothing(0.1)), 2), r"neither constraints nor smoothing"),
        (lambda: wb.minimize(lambda: x, x, Starts(Torch(), 3), **QUIET), r"shape \(2,\); it needs an axis of 3 starts"),
        (lambda: wb.minimize(lambda: x.sum(), x, Starts(Torch(), 2), **QUIET), r"one number for each of 2 starts, got"),
        (lambda: wb.minimize(lambda: x, x, Starts(Torch(torch.optim.LBFGS), 2), **QUIET), r"LBFGS mixes the starts"),
    ):
        with pytest.raises(ValueError, match=message):
            fault()
    with pytest.raises(wb.optimize.RolloutError, match=r"the loss of start 1 is nan"):
        wb.minimize(lambda: x * torch.tensor([1.0, math.nan]), x, Starts(Torch(), 2), **QUIET)
    with pytest.raises(ValueError, match=r"BatchedStarts: method must be a Torch, got <"):
        Starts(wb.methods.SciPy(), 2)


def test_best_is_a_mean_over_recent_losses_and_obeys_constraints():
    lucky = wb.optimize.History(loss=[5.0, 0.0, 5.0, 2.0, 2.0, 2.0], window=3)
    assert lucky.best == 5
    assert wb.optimize.History(loss=[1.0, 9.0, 9.0, 5.0, 4.0], window=3).best == 4, "one loss is no mean over three"
    lucky.window = 1
    assert lucky.best == 1
    bent = wb.optimize.History(loss=[0.0, 3.0, 2.0], violation=[1.0, 0.0, 0.009], allowed_violation=0.01)
    assert bent.best == 2
    bent.allowed_violation = 0.0
    assert bent.best == 1
    bent.violation = [0.5, 0.3, 0.4]
    assert bent.best == 1


@pytest.mark.parametrize("method", ["Adam", "SLSQP"])
def test_callback_loggers_and_ctrl_c(method):
    """All see the iterations in order, and the unknowns as they were; Ctrl-C keeps the best."""
    x, unknown, outcome = hock_schittkowski_71()
    losses, scalars, runs = [], [], []

    class Writer:
        def add_scalar(self, tag, value, step):
            scalars.append((tag, step))

    class Run:
        def log(self, data, step):
            runs.append((step, data["loss"]))

    def callback(history):
        with torch.no_grad():
            losses.append(outcome().loss.item())
        if len(losses) == 4:
            raise KeyboardInterrupt

    options = {"iterations": 20, "callback": callback, "log": [Writer(), Run()], **QUIET}
    history = wb.minimize(outcome, unknown, RESUMED[method](), **options)
    assert history.interrupted
    assert history.loss == losses
    assert runs == list(enumerate(losses))
    assert {tag for tag, _ in scalars} == {"loss", "violation", "episodes", "gradient_norm"}
    assert outcome().loss.item() == history.loss[history.best]
    stopped = wb.minimize(
        outcome, unknown, RESUMED[method](), iterations=20, callback=lambda h: len(h.loss) == 2, **QUIET
    )
    assert len(stopped.loss) == 2 and not stopped.interrupted


def quadratic():
    x = leaf(1.0, 2.0)
    return x, lambda: x.square().sum()


REFUSED = {
    "needs at least 1 unknown that requires a gradient, got 0": lambda x: {"unknowns": []},
    "iterations and window must be at least 1": lambda x: {"iterations": 0},
    "unknown '0': must be a tensor, a torch module or a warpbots.Unknown, got float": lambda x: {"unknowns": [1.0]},
    "unknown 'E' is computed from other tensors": lambda x: {"unknowns": {"E": 2.0 * x}},
    "unknown 'E' requires no gradient": lambda x: {"unknowns": {"E": torch.zeros(2)}},
    "unknown 'E': its lower bound 3 is above the upper bound 2": lambda x: {"unknowns": {"E": wb.Unknown(x, 3.0, 2.0)}},
    "unknown 'E' starts at 2, outside its bounds 0 to 1.5": lambda x: {"unknowns": {"E": wb.Unknown(x, 0.0, 1.5)}},
    "unknowns 'E' and 'policy' are one tensor of shape (2,)": lambda x: {
        "unknowns": {"E": wb.Unknown(x, 0.0, 2.5), "policy": x}
    },
    "unknown 'E': its lower bound must be a number or have the shape (2,) of the tensor, got (3,)": lambda x: {
        "unknowns": {"E": wb.Unknown(x, torch.zeros(3))}
    },
    "unknown 'E': its scale must be positive and finite, got 0": lambda x: {"unknowns": {"E": wb.Unknown(x, scale=0.0)}},
    "unknown 'E': its tensor must be of real numbers, such as float64, got torch.complex64": lambda x: {
        "unknowns": {"E": torch.zeros(2, dtype=torch.complex64, requires_grad=True)}
    },
    "unknown 'E': its tensor must have at least 1 number, got (0, 3)": lambda x: {
        "unknowns": {"E": torch.zeros(0, 3, requires_grad=True)}
    },
    "the loss must be a real number, got torch.complex128; take its abs()": lambda x: {"loss": lambda: x.sum() * 1j},
    "constraint 'line' must be of real numbers, got torch.complex128": lambda x: {
        "loss": lambda: wb.Outcome(x.sum(), {"line": 1j * x})
    },
    "depend on the unknown 'idle': no gradient path leads there": lambda x: {"unknowns": {"x": x, "idle": leaf(1.0)}},
    "depend on the unknowns '1.weight', '1.bias'": lambda x: {"unknowns": [x, torch.nn.Linear(1, 1).double()]},
    "the loss has no gradient path to any of the unknowns '0'": lambda x: {"loss": lambda: x.detach().sum()},
    "the loss must be one number, got a tensor of shape (2,)": lambda x: {"loss": lambda: x * 2},
    "the loss must be a tensor or a warpbots.Outcome, got float": lambda x: {"loss": lambda: x.sum().item()},
    "the method takes no constraints, but the loss returned 'line'; use": lambda x: {
        "loss": lambda: wb.Outcome(x.sum(), {"line": x.sum()}), "method": wb.methods.SciPy("L-BFGS-B")
    },
    "constraint 'line' is not finite in iteration 0: 1 of 2 entries, the first is nan": lambda x: {
        "loss": lambda: wb.Outcome(x.sum(), {"line": x * torch.tensor([1.0, math.nan])})
    },
    "constraint 'line' has no gradient path to any unknown": lambda x: {
        "loss": lambda: wb.Outcome(x.sum(), {}, {"line": torch.zeros(2)})
    },
    "constraint 'line' must be a tensor, got float": lambda x: {"loss": lambda: wb.Outcome(x.sum(), {"line": 1.0})},
    "one name; rename one of them": lambda x: {"loss": lambda: wb.Outcome(x.sum(), {"a": x}, {"a": x})},
    "log must be something with add_scalar, something with log": lambda x: {"log": object()},
    "torch.optim.LBFGS cannot keep bounds": lambda x: {
        "unknowns": wb.Unknown(x, 0.0), "method": wb.methods.Torch(torch.optim.LBFGS)
    },
}  # fmt: skip


@pytest.mark.parametrize("said", REFUSED)
def test_what_cannot_be_solved_is_refused_before_anything_moves(said):
    x, loss = quadratic()
    problem = {"loss": loss, "unknowns": x, "method": wb.methods.SciPy("SLSQP")} | REFUSED[said](x)
    with pytest.raises((ValueError, TypeError, FloatingPointError), match=re.escape(said)):
        wb.minimize(**problem, **QUIET)
    assert x.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("method", [wb.methods.Torch(lr=0.1), wb.methods.SciPy("SLSQP")], ids=["Torch", "SciPy"])
def test_constraints_that_change_their_shape_are_refused(method):
    x, count = leaf(1.0, 2.0), [0]
    if not method.constrained:
        method = wb.methods.Torch(lr=0.1, constraints=Lagrangian())

    def loss():
        count[0] += 1
        return wb.Outcome(x.square().sum(), {}, {"c": x[: count[0]] - 0.5})

    with pytest.raises(ValueError, match=r"the constraints have the shapes .*\(2,\).* and had .*\(1,\).* before"):
        wb.minimize(loss, x, method, **QUIET)


def test_settings_out_of_range_are_refused():
    with pytest.raises(ValueError, match="there is no method 'WORHP', choose from L-BFGS-B, SLSQP, trust-constr"):
        wb.methods.SciPy("WORHP")
    with pytest.raises(ValueError, match="instead of maxiter, use the option iterations"):
        wb.methods.SciPy(maxiter=3)
    with pytest.raises(ValueError, match="SLSQP does not take the option gtol=0.1: .*[Uu]nknown"):
        wb.methods.SciPy(gtol=0.1)
    with pytest.raises(ValueError, match="trust-constr does not take the option seed=1: .* unexpected keyword"):
        wb.methods.SciPy("trust-constr", seed=1)
    with pytest.raises(ValueError, match="L-BFGS-B does not take the option ftol='a': "):
        wb.methods.SciPy("L-BFGS-B", ftol="a")
    with pytest.raises(ValueError, match="penalty must be positive"):
        Lagrangian(penalty=0.0)
    with pytest.raises(ValueError, match="samples even and at least 2"):
        wb.methods.Smoothing(0.1, samples=3)
    with pytest.raises(ValueError, match="starts must be at least 2"):
        wb.methods.MultiStart(wb.methods.Torch(), 1)
    with pytest.raises(ValueError, match="step must be positive"):
        wb.methods.CMA(0.0)
    with pytest.raises(ValueError, match="max_norm must be positive, or None for no clipping, got 0"):
        wb.methods.Torch(lr=0.1, max_norm=0.0)
    for refused in (wb.methods.MultiStart, wb.methods.BatchedStarts):
        with pytest.raises(ValueError, match=f"{refused.__name__}: seed must be at least 0, got -1"):
            refused(wb.methods.Torch(lr=0.1), 2, seed=-1)
    with pytest.raises(ValueError, match="Clusters: seed must be at least 0, got -3"):
        wb.observers.Clusters(3, seed=-3)
    x, loss = quadratic()
    with pytest.raises(ValueError, match="option lr must be a number that the unknowns can hold, .* got inf"):
        wb.minimize(loss, x, wb.methods.Torch(torch.optim.SGD, lr=math.inf), **QUIET)
    with pytest.raises(ValueError, match="population 2 to 1,000,000, got 0.3 and 10000000"):
        wb.methods.CMA(population=10_000_000)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_lagrangian_without_constraints_is_the_loss(dtype):
    """In both precisions, for any default precision of torch."""
    x = torch.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
    history = wb.minimize(lambda: x.square().sum(), x, wb.methods.Torch(lr=0.3, constraints=Lagrangian()), **QUIET)
    assert history.loss[history.best] < 0.1


def test_cma_without_its_package_says_what_to_install(monkeypatch):
    from warpbots.optimize.methods import cma_method

    def missing(name):
        raise cma_method.metadata.PackageNotFoundError

    monkeypatch.setattr(cma_method.metadata, "version", missing)
    with pytest.raises(ImportError, match=r"needs the package cma: pip install 'warpbots\[cma\]'"):
        wb.methods.CMA().search(Problem(lambda: None, Unknowns(leaf(1.0, 2.0)), False))
