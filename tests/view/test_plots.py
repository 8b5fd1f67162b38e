"""Curves show the numbers they are given."""

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from PIL import Image

from warpbots.optimize import History
from warpbots.scene import DielectricElastomer, Material, Muscle, Pressure, Scene, SoftBody, Sphere
from warpbots.simulation import Simulation
from warpbots.solvers import MPM
from warpbots.view import controls, loss_curve, save_loss, save_losses
from warpbots.view.palette import CONTRACT, EXPAND


def test_loss_curve_shows_every_loss_and_marks_the_best(axes):
    history = History(loss=[3.0, 1.0, 2.0], seconds=[1.0, 2.0, 3.0])
    ax = loss_curve(history, axes())
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), [[0, 3.0], [1, 1.0], [2, 2.0]])
    np.testing.assert_array_equal(ax.lines[1].get_xydata(), [[1, 1.0]])
    assert [t.get_text() for t in ax.texts] == ["1"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("iteration", "loss")


@pytest.mark.parametrize(
    ("loss", "scale"), [([1.0, 1e-3], "log"), ([1.0, 0.5], "linear"), ([1.0, -1e-3], "linear"), ([1.0, 0.0], "linear")]
)
def test_only_losses_over_decades_are_logarithmic(axes, loss, scale):
    assert loss_curve(History(loss=loss, seconds=[0.0, 0.0]), axes()).get_yscale() == scale


def test_an_empty_history_is_refused(axes):
    with pytest.raises(ValueError, match="the history is empty"):
        loss_curve(History(), axes())


def test_saved_loss_is_a_picture(tmp_path):
    path = save_loss(tmp_path / "loss.png", History(loss=[3.0, 1.0], seconds=[1.0, 2.0]))
    with Image.open(path) as image:
        assert image.size == (960, 420)
        assert len(image.convert("RGB").getcolors(100_000)) > 10
    assert [p.name for p in tmp_path.iterdir()] == ["loss.png"]


def test_loss_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(OSError, match=r"cannot write .*loss\.png"):
        save_loss(tmp_path / "nowhere" / "loss.png", History(loss=[1.0], seconds=[1.0]))
    assert not list(tmp_path.iterdir())


def test_losses_of_groups_are_means_with_intervals_over_iterations_and_time(tmp_path, monkeypatch):
    """The interval of two runs a and b is (a + b) / 2 +- 6.314 |a - b| / 2, by Student's t for one degree."""
    seen = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path: (seen.append(figure), path.write_text("")))
    runs = {"a": [np.array([4.0, 2.0]), np.array([2.0, 2.0, 9.0])], "b": [np.array([1.0, 3.0])]}
    save_losses(tmp_path / "runs.png", runs, "way [m]", {"a": 0.5, "b": 2.0})
    over_iterations, over_time = seen[0].axes
    for ax, apart in ((over_iterations, {"a": 1.0, "b": 1.0}), (over_time, {"a": 0.5, "b": 2.0})):
        np.testing.assert_allclose(ax.lines[0].get_xydata(), [[0.0, 3.0], [apart["a"], 2.0]])
        np.testing.assert_allclose(ax.lines[1].get_xydata(), [[0.0, 1.0], [apart["b"], 3.0]])
        (band,) = ax.collections
        np.testing.assert_allclose(band.get_paths()[0].get_extents().extents, [0, 3 - 6.314, apart["a"], 3 + 6.314], rtol=1e-3)  # fmt: skip
    assert [ax.get_xlabel() for ax in seen[0].axes] == ["iteration", "time [s]"]
    assert [t.get_text() for t in seen[0].legends[0].get_texts()] == ["a (2 runs)", "b"]
    save_losses(tmp_path / "runs.png", runs, logarithmic=True)
    assert [ax.get_yscale() for ax in seen[1].axes] == ["log"]


@pytest.mark.parametrize("seconds", [{"a": 1.0}, {"a": 1.0, "b": 0.0}, {}])
def test_losses_without_a_time_of_each_group_are_refused(tmp_path, seconds):
    runs = {"a": [np.ones(2)], "b": [np.ones(2)]}
    with pytest.raises(ValueError, match=r"seconds must have a positive time for each of \['a', 'b'\]"):
        save_losses(tmp_path / "runs.png", runs, seconds=seconds)
    with pytest.raises(ValueError, match="a logarithmic axis needs positive losses"):
        save_losses(tmp_path / "runs.png", runs | {"c": [np.zeros(2)]}, logarithmic=True)
    assert not list(tmp_path.iterdir())


def test_controls_are_steps_by_name_over_time(solid, axes):
    ax = controls(solid, axes())
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["inflate", "cable"]
    for channel, patch in enumerate(ax.patches):
        values, edges, _ = patch.get_data()
        np.testing.assert_array_equal(values, solid.control[0, :, channel].cpu().numpy())
        np.testing.assert_allclose(edges, 0.01 * np.arange(7))


def test_many_controls_are_bands_red_where_they_contract(axes):
    ball = Sphere((0.0, 0.0), 0.1)
    scene = Scene(
        (SoftBody("b", ball, Material(1e4), regions={"r": ball}),),
        tuple(Muscle(f"m{k}", "r", (1.0, 0.0), 1.0) for k in range(6)) + (Pressure("p", "r", 1.0),),
    )
    ax = controls(Simulation(scene, MPM(0.05), 1e-3).rollout(torch.ones(3, 7), 3), axes())
    assert [t.get_text() for t in ax.get_yticklabels()] == ["m0", "m1", "m2", "m3", "m4", "m5", "p"]
    mesh = ax.collections[0]
    mesh.update_scalarmappable()
    colors = mesh.get_facecolor().reshape(7, 3, 4)[..., :3]
    np.testing.assert_allclose(colors[:6], np.broadcast_to(CONTRACT, (6, 3, 3)), atol=0.01)
    np.testing.assert_allclose(colors[6], np.broadcast_to(EXPAND, (3, 3)), atol=0.01)
    assert ax.get_ylim() == (7.0, 0.0)
    legend = ax.figure.axes[1]
    assert [t.get_text() for t in legend.get_yticklabels()] == ["expands", "0", "contracts"]
    assert legend.get_ylim() == (-1.0, 1.0)


def test_bands_follow_an_actuator_that_contracts_for_both_signs(axes):
    """A contraction of u^2: a quarter of full contraction at u = -1/2."""
    ball = Sphere((0.0, 0.0), 0.1)
    field = tuple(DielectricElastomer(f"d{k}", "r", (1.0, 0.0), 1.0, 3.0) for k in range(7))
    scene = Scene((SoftBody("b", ball, Material(1e4), regions={"r": ball}),), field)
    ax = controls(Simulation(scene, MPM(0.05), 1e-3).rollout(-0.5 * torch.ones(3, 7), 3), axes())
    np.testing.assert_allclose(ax.collections[0].get_array(), np.full((7, 3), 0.25))


def test_controls_of_nothing_and_of_no_world_are_refused(flat, axes):
    with pytest.raises(ValueError, match="world must be in 0 to 0, got -1"):
        controls(flat, axes(), world=-1)

    stone = Scene((SoftBody("b", Sphere((0.0, 0.0), 0.1), Material(1e4)),), name="stone")
    with pytest.raises(ValueError, match="scene 'stone' has no actuators"):
        controls(Simulation(stone, MPM(0.05), 1e-3).rollout(None, 3), axes())
