"""Identification by least squares: against the closed forms of linear regression, and of a bar that oscillates."""

import numpy as np
import pytest
import torch
from scipy import stats

import warpbots as wb

QUIET = {"progress": False}
POINTS = torch.linspace(-1.0, 2.0, 12, dtype=torch.float64)
SIGMA = torch.linspace(0.1, 0.4, 12, dtype=torch.float64)  # of each point
DATA = 3.0 - 2e3 * POINTS / 1e3 + SIGMA * torch.randn(12, generator=torch.Generator().manual_seed(0)).double()


def line(noise=None, start=(0.0, 0.0), bounds=(None, None), **options):
    """The line a + b t / 1000 through the points, by names, and the estimate."""
    a, b = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in start)
    unknowns = {"a": a, "b": wb.Unknown(b, *bounds, scale=500.0)}
    return a, b, wb.least_squares(lambda: a + b * POINTS / 1e3 - DATA, unknowns, noise=noise, **options, **QUIET)


@pytest.mark.parametrize("jacobian", ["adjoint", "differences", None])
@pytest.mark.parametrize("noise", [0.2, SIGMA, None], ids=["one", "each", "unknown"])
def test_linear_regression_has_its_closed_form(noise, jacobian):
    """(XᵀWX)⁻¹ XᵀWy, its covariance (XᵀWX)⁻¹, or s² (XᵀX)⁻¹ with Student's t if the noise is unknown."""
    a, b, found = line(noise, jacobian=jacobian)
    X = np.stack([np.ones(12), POINTS.numpy() / 1e3], axis=1)
    w = 1.0 / (np.ones(12) if noise is None else np.broadcast_to(np.asarray(noise), 12))[:, None]
    y = DATA.numpy()[:, None]
    C = np.linalg.inv((w * X).T @ (w * X))
    best = (C @ (w * X).T @ (w * y))[:, 0]
    if noise is None:
        C *= ((X @ best - y[:, 0]) ** 2).sum() / 10
    assert found.value == pytest.approx(best, rel=1e-6)
    assert [a.item(), b.item()] == pytest.approx(best, rel=1e-6)
    assert found.covariance == pytest.approx(C, rel=1e-6)
    assert found.deviation == pytest.approx(np.sqrt(np.diag(C)), rel=1e-6)
    assert found.correlation[0, 1] == pytest.approx(C[0, 1] / np.sqrt(C[0, 0] * C[1, 1]), rel=1e-6)
    quantile = stats.t(10).ppf(0.95) if noise is None else stats.norm.ppf(0.95)
    assert found.interval(0.9)[1, 1] - best[1] == pytest.approx(quantile * C[1, 1] ** 0.5, rel=1e-6)
    assert found.names == ["a", "b"]
    assert found.history.reason == "converged"
    assert str(found).splitlines()[0].startswith(f"a = {best[0]:.6g} ± ")


def test_intervals_contain_the_truth_as_often_as_they_say():
    """A decay exp(-k t): 100 repetitions with the noise given and 100 with it estimated, of which 90 ± 3 do."""
    t = torch.linspace(0.1, 2.0, 8, dtype=torch.float64)
    clean, generator = 2.0 * (-0.7 * t).exp(), torch.Generator().manual_seed(1)
    inside = {0.02: 0, None: 0}
    for noise in inside:
        for _ in range(100):
            data = clean + 0.02 * torch.randn(8, generator=generator, dtype=torch.float64)
            p = torch.tensor([1.5, 1.0], dtype=torch.float64, requires_grad=True)
            found = wb.least_squares(lambda: p[0] * (-p[1] * t).exp() - data, {"p": p}, noise=noise, **QUIET)  # noqa: B023
            lower, upper = found.interval(0.9)[1]
            inside[noise] += lower <= 0.7 <= upper
    assert found.names == ["p[0]", "p[1]"]
    assert all(82 <= count <= 97 for count in inside.values()), inside


def bar():
    shape = wb.shapes.Box((0.1, 0.1), (0.3, 0.2))
    body = wb.SoftBody("bar", shape, wb.Material(1e4), {"all": shape})
    muscle = wb.actuators.Muscle("all", "all", (1, 0), 2e3)
    return wb.Simulation(
        wb.Scene([body], [muscle], gravity=(0, 0), domain=((0, 0), (0.4, 0.3))), wb.MPM(0.05), dt=4e-3, substeps=2
    )


def test_stiffness_and_density_of_a_bar_are_found_within_their_intervals():
    """A twin experiment: both ways to the Jacobian agree, and the truth lies within four deviations."""
    sim = bar()
    signal = torch.full((20, 1), 0.8)
    corners = [0, -1]

    def film(E, rho):
        out = sim.rollout(
            signal, 20, observe=lambda s: s.position[:, corners].flatten(1),
            youngs_modulus=E * torch.ones_like(sim.parameter("youngs_modulus")), density=rho * torch.ones_like(sim.parameter("density")),
        )  # fmt: skip
        return out.observation

    sigma = 2e-4
    with torch.no_grad():
        clean = film(torch.tensor(7e3), torch.tensor(1200.0))
    data = clean + sigma * torch.randn(clean.shape, generator=torch.Generator().manual_seed(2))
    found = {}
    for jacobian in ("adjoint", "differences"):
        E, rho = torch.tensor(1e4, requires_grad=True), torch.tensor(1000.0, requires_grad=True)
        unknowns = {"E": wb.Unknown(E, 2e3, 5e4, scale=2e3), "density": wb.Unknown(rho, 500.0, 3000.0, scale=300.0)}
        found[jacobian] = wb.least_squares(
            lambda: film(E, rho) - data, unknowns, noise=sigma, jacobian=jacobian, **QUIET  # noqa: B023
        )  # fmt: skip
    exact, near = found.values()
    off = (exact.value - [7e3, 1200.0]) / exact.deviation
    assert np.abs(off).max() < 4.0
    assert exact.deviation.max() < 100.0
    assert 0.6 < exact.reduced_chi_square < 1.5
    assert near.value == pytest.approx(exact.value, abs=0.1 * exact.deviation.min())
    assert near.deviation == pytest.approx(exact.deviation, rel=0.01)
    assert near.correlation == pytest.approx(exact.correlation, abs=0.01)


def test_a_fit_turns_back_from_a_rollout_that_fails():
    """The first Gauss-Newton step from 4 towards 1 along exp(-x) is -19, cut to -4."""
    x, calls = torch.tensor(4.0, dtype=torch.float64, requires_grad=True), []

    def residual():
        calls.append(x.item())
        if x.item() < 0.5:
            raise wb.SimulationError("the step did not converge")
        return ((-x).exp() - np.exp(-1.0)) * torch.tensor([1.0, 0.1])

    found = wb.least_squares(residual, {"x": x}, jacobian="adjoint", **QUIET)
    assert found.history.failures[-1] == sum(c < 0.5 for c in calls) > 0
    assert found.history.episodes[-1] == len(calls)
    assert x.item() == pytest.approx(1.0, rel=1e-5)
    x.data.fill_(0.25)
    with pytest.raises(wb.optimize.RolloutError, match="with 'x' = 0.25: "):
        wb.least_squares(residual, {"x": x}, **QUIET)


def test_a_bound_holds_and_is_named():
    _, b, found = line(0.2, bounds=(-1500.0, 5e3))
    assert b.item() == pytest.approx(-1500.0)
    assert found.at_bound.tolist() == [False, True]
    assert str(found).endswith("(on a bound)")


def test_a_limit_of_iterations_and_a_callback_end_a_fit():
    def fitted(**options):
        p = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
        return wb.least_squares(
            lambda: torch.stack([10 * (p[1] - p[0] ** 2), 1 - p[0]]), p, noise=1.0, **options, **QUIET
        )

    with pytest.warns(
        wb.optimize.OptimizeWarning, match="has not converged after 4 iterations, so that its covariance"
    ):
        limited = fitted(iterations=3)
    assert str(limited).endswith("\nnot converged: iteration limit")
    assert limited.history.reason == "iteration limit" and len(limited.history.loss) == 4
    assert 0.5 * (limited.residual @ limited.residual) == limited.history.loss[-1]
    assert fitted(callback=lambda history: len(history.loss) == 2).history.reason == "callback"
    assert "not converged" not in str(fitted())
    assert fitted().value == pytest.approx([1.0, 1.0], rel=1e-5)


@pytest.mark.parametrize(("message", "arguments"), [
    ("noise must be positive, a number or a tensor of the shape \\(12,\\)", {"noise": torch.ones(3)}),
    ("noise must be positive, .* smallest value of 0", {"noise": 0.0}),
    ("iterations must be at least 1, tolerance and step positive, got 0", {"iterations": 0}),
    ("jacobian must be 'adjoint' or 'differences', got 'exact'", {"jacobian": "exact"}),
])  # fmt: skip
def test_arguments_out_of_range_are_refused(message, arguments):
    with pytest.raises(ValueError, match=message):
        line(**arguments)


def test_residuals_that_determine_nothing_are_refused():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(ValueError, match="2 unknown numbers need at least 3 residuals, one more than unknowns, to"):
        wb.least_squares(lambda: x - 1.0, {"x": x}, **QUIET)
    with pytest.raises(TypeError, match="the residual must be a tensor, got float"):
        wb.least_squares(lambda: 1.0, {"x": x}, **QUIET)
    both = wb.least_squares(lambda: x.sum() - torch.tensor([2.0, 2.1, 1.9]), {"x": x}, noise=0.1, **QUIET)
    with pytest.raises(
        ValueError, match=r"the residuals do not change along .*'x\[0\]', .*'x\[1\]'.*another experiment"
    ):
        both.covariance  # noqa: B018
    with pytest.raises(ValueError, match="level must be between 0 and 1, got 95"):
        line(0.2)[2].interval(95)
