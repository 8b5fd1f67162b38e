"""What `print` and notebooks show of scenes and simulations."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

import warpbots as wb
from warpbots.scene import Box, Points
from warpbots.scene.shapes import Sheet
from warpbots.tables import Table, TableSection, size


def walker() -> wb.Scene:
    """Two soft bodies, of which one is a muscle, on a floor."""
    torso = wb.SoftBody("torso", Box((0, 0.1), (0.3, 0.2)), wb.Material(2e4, 0.3))
    leg = wb.SoftBody("leg", Box((0, 0), (0.1, 0.1)), wb.Material(1e4, 0.3, 500.0), {"foot": Box((0, 0), (0.1, 0.05))})
    return wb.Scene(
        [torso, leg], [wb.actuators.Muscle("push", "foot", (0, 1), 1e3)], [wb.floor(dim=2, friction=0.7)], name="w"
    )


def arm() -> wb.Scene:
    link = wb.RigidBody("link", Box((0, 0, 0), (0.1, 0.1, 0.2)), density=500.0)
    hand = wb.RigidBody("hand", None, inertia=wb.Inertia(0.25, (0, 0, 0), 1e-4 * np.eye(3)), position=(0, 0, 0.2))
    joints = [wb.Joint("hinge", "revolute", None, "link", axis=(0, 1, 0)), wb.Joint("wrist", "fixed", "link", "hand")]
    return wb.Scene([link, hand], [wb.actuators.Servo("servo", "hinge", 2.0)], joints=joints, name="arm")


def rows(text: str) -> list[list[str]]:
    """Words of the lines of a table, between two spaces and more."""
    return [[cell for cell in line.strip().split("  ") if cell] for line in text.splitlines()]


def test_a_scene_is_a_short_table():
    """0.3 m x 0.1 m of 1000 kg/m^2 are 30 kg, 0.1 m x 0.1 m of 500 kg/m^2 are 5 kg."""
    text = str(walker())
    assert text.splitlines()[0] == "Scene 'w', 2D, 0.3 x 0.2 m from (0, 0) m"
    found = [[cell.strip() for cell in row] for row in rows(text)]
    assert ["torso", "Box, 0.3 x 0.1 m", "30 kg", "neo_hookean, E 2e+04 Pa, nu 0.3, 1000 kg/m^2"] in found
    assert ["leg", "Box, 0.1 x 0.1 m", "5 kg", "neo_hookean, E 1e+04 Pa, nu 0.3, 500 kg/m^2", "regions foot"] in found
    assert ["push", "Muscle", "region foot, direction (0, 1), max_stress 1000"] in found
    assert ["floor", "HalfSpace", "friction, coefficient 0.7"] in found
    assert ["gravity", "(0, -9.81) m/s^2"] in found
    assert repr(walker()).startswith("Scene(bodies=(SoftBody(name='torso'")  # all that it says


def test_masses_of_rigid_bodies_are_those_of_shape_or_inertia():
    found = [[cell.strip() for cell in row] for row in rows(str(arm()))]
    assert ["link", "Box, 0.1 x 0.1 x 0.2 m", "1 kg"] in found and ["hand", "no shape", "0.25 kg"] in found
    assert ["hinge", "revolute", "world to link"] in found and ["wrist", "fixed", "link to hand"] in found
    assert ["servo", "Servo", "joint hinge, stiffness 2"] in found


def test_a_simulation_says_its_method_and_its_parameters():
    sim = wb.Simulation(arm(), wb.Articulated("bdf1"), 1e-2, 4, worlds=3, threads=1, device="cpu")
    text = str(sim)
    found = [[cell.strip() for cell in row] for row in rows(text)]
    assert text.splitlines()[0] == "Simulation of 'arm', 3D, 1 control channel"
    assert ["solver", "Articulated(integrator='bdf1')"] in found
    assert ["elements", sim.model.summary()] in found
    assert ["steps", "dt=0.01 s in 4 substeps of 0.0025 s, stable for every step"] in found
    assert ["worlds", "3 on cpu, 1 thread"] in found
    for name, spec in sim.parameters().items():
        assert [name, f"{tuple(sim.parameter(name).shape)}{spec.suffix(3)}", f"per {spec.per}", spec.doc] in found
    assert ["link", "Box, 0.1 x 0.1 x 0.2 m", "1 kg"] in found
    assert repr(sim) == f"Simulation of 'arm' by Articulated: {sim.model.summary()}"


def test_long_sections_end_with_a_number():
    text = Table(
        "many", [TableSection("things", [(f"t{i}", str(i)) for i in range(30)]), TableSection("none", [])]
    ).text()
    assert text.splitlines()[-1].strip() == "... and 19 more" and len(text.splitlines()) == 14 and "none" not in text
    assert [size(n) for n in (12, 1234, 5.6e7, 7e12)] == ["12 B", "1.23 kB", "56 MB", "7e+03 GB"]


def test_names_cannot_write_html():
    html = Table("<a>", [TableSection("b&", [("<script>", "x")])]).html()
    assert "<script>" not in html and "&lt;script&gt;" in html and "<a>" not in html and "b&amp;" in html


def picture(bundle: dict) -> np.ndarray:
    image = Image.open(io.BytesIO(base64.b64decode(bundle["image/png"]))).convert("RGB")
    return np.asarray(image).astype(int)


CLOTH = Sheet.rectangle((0, 0), (1, 1), 1e-3, (2, 2))


@pytest.mark.parametrize("shape", [Box((0, 0, 0.1), (1, 1, 0.4)), CLOTH, wb.shapes.Union((CLOTH, Box((0, 0, -1), (1, 1, 0)))),
                                   Points(np.random.default_rng(0).uniform(0, 1, (50, 3)), np.full(50, 1e-2)),
                                   Box((0, 0), (1, 1))])  # fmt: skip
def test_notebooks_show_the_table_and_a_picture_of_the_bodies(shape):
    """There are pixels of about the colour of the body, and of none that is not there."""
    dim = 2 if len(shape.bounds[0]) == 2 else 3
    red = wb.SoftBody("red", shape, wb.Material(1e4, 0.3), color=(1.0, 0.1, 0.1))
    scene = wb.Scene([red], obstacles=[wb.floor(dim=dim)])
    bundle = scene._repr_mimebundle_()
    image = picture(bundle)
    reddish = (image[..., 0] > 1.5 * image[..., 1]) & (image[..., 0] > 1.5 * image[..., 2])
    assert 0.03 < reddish.mean() < 0.8
    assert bundle["text/plain"] == str(scene)
    assert "<table>" in bundle["text/html"] and bundle["image/png"] in bundle["text/html"]


def test_notebooks_show_simulations_with_their_elements():
    sim = wb.Simulation(walker(), wb.MassSpring(0.05), 1e-3, device="cpu")
    bundle = sim._repr_mimebundle_()
    assert bundle["text/plain"] == str(sim) and picture(bundle).min() < 128
    link = wb.Simulation(arm(), wb.Articulated(), 1e-3, device="cpu")
    assert picture(link._repr_mimebundle_()).min() < 200


def test_what_cannot_be_drawn_is_a_table_alone():
    scene = wb.Scene([wb.SoftBody("endless", wb.shapes.HalfSpace((0, 0), (0, 1)), wb.Material(1e4, 0.3))])
    bundle = scene._repr_mimebundle_()
    assert "image/png" not in bundle and "endless" in bundle["text/html"]
