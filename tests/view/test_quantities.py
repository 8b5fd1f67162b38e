"""Stress, strain, activation and parameters as colours: closed forms of a bar that is stretched, in every solver."""

import base64
import dataclasses
import io
import zlib

import numpy as np
import pytest
import torch
from PIL import Image
from pxr import Usd, UsdGeom
from scipy.optimize import brentq
from view_cases import RED

import warpbots as wb
from warpbots.quantities import point_values
from warpbots.scene import Box, Material, Scene, Sheet, SoftBody
from warpbots.view import animate, film_strip, save_html
from warpbots.view.browser.motion_data import motion_data
from warpbots.view.film import strip
from warpbots.view.motion import collect

E, NU = 2e5, 0.3
SOLVERS = {
    "particles": wb.MPM(dx=0.05),
    "tetrahedra": wb.ProjectiveDynamics(0.06),
    "quadratic": wb.ProjectiveDynamics(0.1, elements="quadratic_tetrahedra"),
    "hexahedra": wb.ProjectiveDynamics(0.05, elements="hexahedra"),
}


def bar(solver, dim=3, law="neo_hookean", nu=NU):
    size = (0.2, 0.1, 0.1)[:dim]
    body = SoftBody("bar", Box((0.0,) * dim, size), Material(E, nu, 1000.0, law=law), color=RED)
    return wb.Simulation(Scene([body], gravity=(0.0,) * dim), solver, dt=1e-4)


def stretched(sim, *ratios):
    """A motion of one step that starts with a uniform stretch."""
    state, F = sim.state(), torch.diag(torch.tensor(ratios, dtype=sim.state().position.dtype))
    fields = {"position": state.position @ F}
    if hasattr(state, "deformation"):
        fields["deformation"] = F.expand_as(state.deformation).contiguous()
    return sim.rollout(None, 1, state=dataclasses.replace(state, **fields))


def at_start(motion, color):
    return point_values(motion, color, "test").at(0.0, motion.start)


LAWS = [(solver, "neo_hookean") for solver in SOLVERS] + [("tetrahedra", "corotated"), ("particles", "fixed_corotated")]


@pytest.mark.parametrize(("solver", "law"), LAWS)
def test_the_stress_of_a_bar_that_is_stretched_a_little(solver, law):
    """Hooke: a bar that is longer by a thousandth, and thinner by nu of it, has the stress E / 1000."""
    motion = stretched(bar(SOLVERS[solver], law=law), 1.001, 1.0 - NU * 1e-3, 1.0 - NU * 1e-3)
    np.testing.assert_allclose(at_start(motion, "stress"), E * 1e-3, rtol=6e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_stress_of_a_bar_that_is_stretched_by_a_fifth(solver):
    """Neo-Hooke: sigma = (mu (l^2 - 1) + lambda ln J) / J, with a thickness at which the other stresses vanish."""
    mu, lam, long = E / (2.0 + 2.0 * NU), E * NU / ((1.0 + NU) * (1.0 - 2.0 * NU)), 1.2
    thin = brentq(lambda t: mu * (t**2 - 1.0) + lam * np.log(long * t**2), 0.5, 1.0)
    J = long * thin**2
    stress = (mu * (long**2 - 1.0) + lam * np.log(J)) / J
    motion = stretched(bar(SOLVERS[solver]), long, thin, thin)
    np.testing.assert_allclose(at_start(motion, "stress"), stress, rtol=1e-3)


def test_hydrostatic_pressure_is_no_stress():
    motion = stretched(bar(SOLVERS["particles"]), 0.9, 0.9, 0.9)
    np.testing.assert_allclose(at_start(motion, "stress"), 0.0, atol=1e-3 * E)


def test_the_stress_in_a_plane():
    """Plane strain without stress across the bar: E / (1 - nu^2) times the strain."""
    across = NU / (1.0 - NU)
    motion = stretched(bar(wb.MPM(dx=0.02), dim=2), 1.001, 1.0 - across * 1e-3)
    np.testing.assert_allclose(at_start(motion, "stress"), E / (1.0 - NU**2) * 1e-3, rtol=6e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_strain_of_a_bar(solver):
    """(l^2 - 1) / 2 along the bar and -1/2 of it across have this equivalent strain."""
    e = (1.1**2 - 1.0) / 2.0
    across = np.sqrt(1.0 - e)
    motion = stretched(bar(SOLVERS[solver]), 1.1, across, across)
    np.testing.assert_allclose(at_start(motion, "strain"), e, rtol=1e-3)


def test_stress_and_strain_of_a_lattice():
    """All springs of a lattice that grows grow alike; a stretched one has the stress of Hooke away from its surface."""
    sim = bar(wb.MassSpring(spacing=0.02), nu=0.25)
    np.testing.assert_allclose(at_start(stretched(sim, 1.01, 1.01, 1.01), "strain"), 0.01, rtol=1e-3)
    stress = at_start(stretched(sim, 1.001, 1.0 - 0.25e-3, 1.0 - 0.25e-3), "stress")
    x = sim.model.matter.position
    inner = (np.abs(x - [0.1, 0.05, 0.05]) < [0.075, 0.025, 0.025]).all(axis=1)
    assert inner.sum() > 8
    np.testing.assert_allclose(stress[inner], E * 1e-3, rtol=0.02)


def pulled():
    """A bar of particles, stretched, that springs back in four intervals."""
    motion = stretched(bar(SOLVERS["particles"]), 1.2, 0.95, 0.95)
    return motion.simulation.rollout(None, 4, state=motion.start)


def test_colours_of_a_motion_span_its_values():
    shown = collect(pulled(), range(5), color="stress")
    assert shown.color_map.label == "von Mises stress [Pa]"
    assert (shown.color_map.lower, shown.color_map.upper) == (0.0, shown.values.max())
    np.testing.assert_allclose(shown.colors(0), shown.color_map.colors(shown.values[0]))
    assert shown.pick(np.array([4])).values.shape == (1, len(shown.particles))


def test_a_strip_and_a_film_have_a_colour_bar(tmp_path):
    """Nothing is red as the body; below the pictures is a bar from dark violet to yellow."""
    motion = pulled()
    plain, picture = (np.asarray(film_strip(motion, 2, color=c)).astype(float) for c in (None, "stress"))
    assert picture.shape[0] == plain.shape[0] + 56
    r, g, b = np.moveaxis(picture, -1, 0)
    assert not ((r > 2.5 * g) & (r > 2.5 * b)).any()
    bar = picture[-56:-40].reshape(-1, 3)
    for color in ((0.27, 0.0, 0.33), (0.99, 0.91, 0.15)):
        assert np.abs(bar / 255.0 - color).max(axis=1).min() < 0.03
    path = animate(tmp_path / "pull.gif", motion, fps=10, seconds=0.2, width=120, color="stress")
    frame = np.asarray(Image.open(io.BytesIO(path.read_bytes())).convert("RGB")).astype(float)
    assert not ((frame[..., 0] > 2.5 * frame[..., 1]) & (frame[..., 0] > 2.5 * frame[..., 2])).any()


def test_a_page_names_the_range(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr("warpbots.view.html_page.motion_data", lambda motion, note: said.append((motion, note)) or "")
    save_html(tmp_path / "pull.html", pulled(), color="stress")
    ((motion, _),) = said
    assert motion.values is not None
    monkeypatch.undo()
    block = zlib.decompress(base64.b64decode(motion_data(motion, "a bar")))
    assert f"a bar; von Mises stress [Pa]: 0 (violet) to {motion.values.max():.3g} (yellow)".encode() in block


def test_a_file_has_the_stress_of_each_vertex(tmp_path):
    motion = pulled()
    wb.usd.write(tmp_path / "pull.usda", motion, fps=1.0 / motion.control_interval, color="stress")
    stage = Usd.Stage.Open(str(tmp_path / "pull.usda"))
    skin = UsdGeom.PrimvarsAPI(stage.GetPrimAtPath("/World/Bodies/bar/Surface"))
    for k in (0, 4):
        stress, color = (np.array(skin.GetPrimvar(n).ComputeFlattened(k)) for n in ("stress", "displayColor"))
        values = collect(motion, range(5), color="stress").values[k]
        assert len(stress) == len(color) > 100
        assert set(stress.tolist()) <= set(values.astype(np.float32).tolist())


def test_matter_without_the_quantity_keeps_its_colour():
    """A sheet beside a block has no stress of solids."""
    sheet = Sheet([[0.3, 0, 0], [0.4, 0, 0], [0.4, 0.1, 0], [0.3, 0.1, 0]], [[0, 1, 2], [0, 2, 3]], thickness=1e-3)
    block = SoftBody("block", Box((0.0,) * 3, (0.1,) * 3), Material(E, NU, 1000.0))
    scene = Scene([block, SoftBody("sheet", sheet, Material(E, NU, 1000.0), color=RED)])
    motion = wb.Simulation(scene, wb.ProjectiveDynamics(0.1), dt=1e-3).rollout(None, 1)
    shown = collect(motion, [0, 1], color="stress")
    cloth = shown.particles.body == 1
    np.testing.assert_array_equal(shown.known, ~cloth)
    np.testing.assert_array_equal(shown.colors(1)[cloth], np.tile(RED, (cloth.sum(), 1)))


def test_only_matter_that_yields_has_a_yield_stress():
    """The other body keeps its colour: it never yields, and no range of colours holds its 1e30 Pa and these 2 kPa."""
    clay = Material(E, NU, law="hencky", plasticity=wb.materials.VonMises(2e3))
    bodies = [SoftBody(n, Box((x, 0.0), (x + 0.1, 0.1)), m) for n, x, m in (("clay", 0.0, clay), ("gel", 0.2, Material(E, NU)))]  # fmt: skip
    motion = wb.Simulation(Scene(bodies, gravity=(0.0, 0.0)), wb.MPM(dx=0.05), dt=1e-4).rollout(None, 1)
    shown = collect(motion, [0, 1], color="yield_stress")
    np.testing.assert_array_equal(shown.known, shown.particles.body == 0)
    assert (shown.color_map.lower, shown.color_map.upper) == pytest.approx((2e3, 2e3))


def test_an_unknown_quantity_is_refused():
    motion = pulled()
    with pytest.raises(ValueError, match="view: color must be one of activation, stress, strain, .*, got 'heat'"):
        film_strip(motion, 2, color="heat")


def test_parameters_with_several_components_have_their_norm():
    """Of all components of all families: directions of unit length and moduli of 3 and 4 kPa."""
    fibres = [wb.materials.FibreReinforcement(along, modulus) for along, modulus in (((1, 0), 3e3), ((0, 1), 4e3))]
    body = SoftBody("bar", Box((0.0, 0.0), (0.2, 0.1)), Material(E, NU, fibres=fibres))
    motion = wb.Simulation(Scene([body], gravity=(0.0, 0.0)), wb.MPM(dx=0.05), dt=1e-4).rollout(None, 1)
    for name, norm in (("fibre_modulus", 5e3), ("fibre_direction", 2.0**0.5)):
        np.testing.assert_allclose(at_start(motion, name), norm, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "label"), [("youngs_modulus", "Young's modulus [Pa]"), ("density", "mass density at rest [kg/m^3]")]
)
def test_parameters_have_their_name_and_unit(name, label):
    """Equal values have a range of no width, which a bar shows, too."""
    motion = collect(pulled(), [0, 4], color=name)
    assert motion.color_map.label == label
    assert strip(motion).size[0] == 1200
