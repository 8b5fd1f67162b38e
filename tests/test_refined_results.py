"""Stored results of the papers' experiments and the table of the shares that they keep when they are played finer."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import warpbots as wb
from warpbots.numerics import precision

PAPERS = Path(__file__).resolve().parents[1] / "benchmarks" / "papers"


@pytest.fixture
def refined(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(PAPERS), str(PAPERS.parent), *sys.path])
    import refined

    yield refined
    for name in [name for name in sys.modules if name.startswith(("chainqueen_", "diffhand_", "refined"))]:
        sys.modules.pop(name)


def test_a_table_says_what_is_kept(refined, capsys):
    """A result that depends on its step, one on its grid, and one whose finer motion fails."""

    def fails(how):
        if how.steps > 1:
            raise wb.SimulationError("a body is torn")
        return 1.0

    plays = {"a": lambda how: 2.0 / how.steps, "b": lambda how: how.cells**0.1, "c": fails}
    found = refined.table(plays, 0.5)
    assert found["a"] == (2.0, 1.0, 2.0)
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "| a | 2.000 | 1.000 (50 %, below 85 %) | 2.000 (100 %) |"
    assert lines[3] == "| b | 1.000 | 1.000 (100 %) | 0.933 (93 %) |"
    assert "a body is torn" in lines[4]
    assert lines[5] == "| c | 1.000 | nan (fails) | 1.000 (100 %) |"


def test_what_is_kept_is_read(refined, monkeypatch, tmp_path):
    """As it was stored; without a file the message says which search is missing."""
    monkeypatch.setattr(refined, "FOLDER", tmp_path)
    monkeypatch.setattr(refined, "FAST", False)
    refined.keep("gait", control=torch.linspace(0.0, 1.0, 5).requires_grad_(), place=np.eye(2))
    kept = refined.kept("gait")
    np.testing.assert_allclose(kept["control"].numpy(), np.linspace(0.0, 1.0, 5), atol=1e-7)
    assert kept["place"].dtype == torch.get_default_dtype()
    with pytest.raises(FileNotFoundError, match="run the script without --refine"):
        refined.kept("another")


def test_a_simulation_is_built_again_finer(refined):
    scene = wb.Scene(
        [wb.SoftBody("box", wb.shapes.Box((0.0, 0.0), (0.4, 0.4)), wb.Material(1e4, 0.3, 1e3))],
        domain=((-1.0, -1.0), (1.0, 1.0)),
    )
    sim = wb.Simulation(scene, wb.MPM(dx=0.1), 1e-2, 5, checkpoints=wb.Checkpoints.all())
    assert refined.again(sim, refined.Refinement(), "dx").substeps == 5
    assert refined.again(sim, refined.Refinement(steps=2), "dx").substeps == 10
    finer = refined.again(sim, refined.Refinement(cells=0.5), "dx")
    assert finer.solver.dx == 0.05
    assert len(finer.model.matter) == 4 * len(sim.model.matter)
    assert finer.checkpoints == sim.checkpoints
    both = refined.again(sim, refined.Refinement(steps=2, cells=0.5), "dx")
    assert (both.solver.dx, both.substeps) == (0.05, 2 * finer.substeps)


def test_a_finer_grid_has_the_steps_of_the_designed_matter(refined):
    """Hundred times as stiff, ten times as many; nothing is warned of when it moves. Softer matter changes nothing."""
    scene = wb.Scene(
        [wb.SoftBody("box", wb.shapes.Box((0.0, 0.0), (0.4, 0.4)), wb.Material(1e4, 0.3, 1e3))],
        domain=((-1.0, -1.0), (1.0, 1.0)),
    )
    sim, how = wb.Simulation(scene, wb.MPM(dx=0.1), 5e-2, 40), refined.Refinement(cells=0.5)
    plain, stiff, soft = (
        refined.again(sim, how, "dx", lambda finer, f=f: {"youngs_modulus": f * finer.parameter("youngs_modulus")})
        for f in (1.0, 100.0, 0.1)
    )
    assert plain.substeps == soft.substeps == refined.again(sim, how, "dx").substeps
    assert stiff.substeps == pytest.approx(10 * plain.substeps, abs=10)
    stiff.rollout(None, 1, youngs_modulus=100.0 * stiff.parameter("youngs_modulus"))


@pytest.fixture
def boxes(refined, monkeypatch, tmp_path):
    """A box on a coarse and on a fine grid; results are stored in a folder of the test."""
    monkeypatch.setattr(refined, "FOLDER", tmp_path)
    monkeypatch.setattr(refined, "FAST", False)
    scene = wb.Scene(
        [wb.SoftBody("box", wb.shapes.Box((0.0, 0.0), (0.4, 0.4)), wb.Material(1e4, 0.3, 1e3))],
        domain=((-1.0, -1.0), (1.0, 1.0)),
    )
    return tuple(wb.Simulation(scene, wb.MPM(dx=dx), 1e-2, 10) for dx in (0.1, 0.05))


def test_a_field_is_found_again_on_a_finer_grid(refined, boxes):
    """A field that is the height of each particle is, on twice as many, right to half the distance of the first."""
    import chainqueen_common

    coarse, fine = boxes
    heights = {sim: torch.as_tensor(sim.model.matter.position)[:, 1] for sim in (coarse, fine)}
    chainqueen_common.keep_found("box", coarse, {"youngs_modulus": heights[coarse]}, table=torch.zeros(3))
    stored = refined.kept("box")
    (found,) = chainqueen_common.stored_fields(stored, fine).values()
    assert stored["table"].tolist() == [0.0, 0.0, 0.0]
    assert len(found) == 4 * len(heights[coarse])
    np.testing.assert_allclose(found, heights[fine], atol=0.51 * 0.05)
    assert np.abs(np.asarray(found) - np.asarray(heights[fine])).max() > 0.01


def test_a_finer_grid_has_a_gradient_for_the_field(refined, boxes):
    """Each particle of the coarse grid gives its value to four of the fine one, and collects their gradients."""
    import chainqueen_common

    coarse, fine = boxes
    field = torch.ones(1, len(coarse.model.matter), requires_grad=True)
    (finer,) = chainqueen_common.spread({"density": field}, coarse.model.matter.position, fine).values()
    (gradient,) = torch.autograd.grad(finer.sum(), field)
    np.testing.assert_array_equal(gradient, 4.0 * np.ones(gradient.shape))


def test_a_field_of_many_particles_is_stored_at_few_places(refined, boxes):
    """The mean of the heights of all particles in a coarse cell is the height of its middle; on places that are finer
    than the particles nothing is stored."""
    import chainqueen_common

    coarse, fine = boxes
    places, height = coarse.model.matter.position, torch.as_tensor(fine.model.matter.position)[None, :, 1]
    chainqueen_common.keep_found("box", fine, {"youngs_modulus": height}, places, table=torch.zeros(3))
    stored = refined.kept("box")
    np.testing.assert_allclose(stored["position"], places, atol=1e-7)
    np.testing.assert_allclose(stored["field.youngs_modulus"][0], places[:, 1], atol=1e-6)
    with pytest.raises(ValueError, match="no finer than the particles: 192 have none"):
        chainqueen_common.nearest_mean(torch.as_tensor(places)[:, 1], places, fine.model.matter.position)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Contact")
@pytest.mark.skipif(precision != "float32", reason="computes in float32: runs there")
def test_a_box_is_flipped_with_more_contact_points(refined):
    """By the finger that was optimised for several numbers of points, in numbers and steps that the search has not seen;
    the finger that was optimised for one number fails."""
    import diffhand_sizes

    found = tuple(refined.kept("diffhand_flip")[name].double() for name in ("controls", "factors"))
    with torch.no_grad():
        for points, steps in ((4, 1), (1, 2)):
            task = diffhand_sizes.task_of(points=points, steps=steps)
            assert task.evaluate(found[0][None], found[1])[1].item() < 1.0
        alone = diffhand_sizes.stored()
        assert diffhand_sizes.task_of(points=4).evaluate(alone[0][None], alone[1])[1].item() > 60.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Contact")
@pytest.mark.skipif(precision != "float32", reason="computes in float32: runs there")
@pytest.mark.parametrize("name", ["reach", "flip", "rotate", "assemble"])
def test_a_stored_loss_is_the_loss_of_its_motion(refined, name):
    """Of today's solver: losses of Flip Box with BDF2 and SDIRK2 differ by 3 %. Controls are rounded to float32."""
    from diffhand_tasks import TASKS

    found = {key: value.double() for key, value in refined.kept(f"diffhand_{name}_after").items()}
    with torch.no_grad():
        loss, metric = TASKS[name]().evaluate(found["controls"][None], found["factors"])
    assert loss.item() == pytest.approx(found["loss"].item(), rel=1e-3)
    assert metric.item() == pytest.approx(found["metric"].item(), abs=0.02)


@pytest.mark.slow
@pytest.mark.skipif(precision != "float32", reason="computes in float32: runs there")
def test_a_strip_has_goals_and_colours(refined, tmp_path):
    """The finger is orange, and each of the four targets of Finger Reach is green in its own picture."""
    import diffhand_strips
    from diffhand_tasks import TASKS
    from PIL import Image

    task = TASKS["reach"]()
    assert diffhand_strips.moments(task) == [0, 4, 12, 19, 27, 30]
    goals = [diffhand_strips.goals_of(task, step, {})[0][0][0] for step in (4, 12, 19, 27)]
    np.testing.assert_allclose(goals, 0.01 * np.array([(10, -5, -5), (10, -5, 5), (20, 10, 10), (20, 10, -10)]))
    found = {key: value.double() for key, value in refined.kept("diffhand_reach_after").items()}
    diffhand_strips.strip(task, found["controls"], found["factors"], "a test", tmp_path / "strip.png")
    red, green, blue = np.moveaxis(np.asarray(Image.open(tmp_path / "strip.png").convert("RGB")).astype(int), 2, 0)
    width, height = red.shape[1] // 2, red.shape[0] // 3
    for k in range(6):
        cell = np.s_[k // 2 * height : (k // 2 + 1) * height, k % 2 * width : (k % 2 + 1) * width]
        assert (red - blue > 80)[cell].sum() > 1000
        assert (green - red > 60)[cell].sum() > 30


def test_a_box_has_twelve_edges(refined):
    import diffhand_strips

    lengths = [np.abs(b - a).sum() for a, b in diffhand_strips.edges((0.0, 0.0, 0.0), (1.0, 2.0, 3.0))]
    assert sorted(lengths) == [1.0] * 4 + [2.0] * 4 + [3.0] * 4


def test_stored_results_are_whole(refined):
    names = [path.stem for path in refined.FOLDER.glob("*.npz")]
    assert "chainqueen_biped" in names
    for name in names:
        assert all(torch.isfinite(value).all() for value in refined.kept(name).values())
