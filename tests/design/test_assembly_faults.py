"""Assemblies that do not fit, designs that are not sound, and scenes of something else are refused."""

import numpy as np
import pytest
import torch
from hands import finger, of

import warpbots as wb
from warpbots.design import Assembly, Component, Node, Part, Port, Section, box_cage, chain, palm, phalanx, tip


def wedge() -> Component:
    """A block whose length is the difference of two sizes."""
    cage = box_cage((0.0, -0.005, -0.005), (0.01, 0.005, 0.005))
    layout = np.zeros((14, 3, 4))
    end = (cage.handles[:, 0] - 0.005).round(9) / 0.005  # -1 at the start and 1 at the end
    layout[:, 0, 0], layout[:, 0, 1] = (end + 1) / 2, -(end + 1) / 2
    layout[:, 1, 2], layout[:, 2, 3] = cage.handles[:, 1] / 0.01, cage.handles[:, 2] / 0.01
    part = Part.of_mesh(cage.handles, cage.faces)
    sizes = {"stock": 0.03, "cut": 0.02, "width": 0.01, "height": 0.01}
    ports = {"in": Port((8, 0, 2, 4, 6), np.eye(3), "width", "height")}
    return Component("wedge", sizes, layout, cage.faces, ports, (part,))


def test_factors_that_turn_a_component_inside_out():
    """Even where the link that it belongs to still encloses a volume."""
    small = Section(0.01, 0.01)
    hand = Assembly(chain(phalanx(small), Node(wedge())))
    at = hand.names.index("wedge.cut")
    x = hand.rest
    x[at] = 1.2
    assert hand.shape(x).masses[0].mass > 0
    x[at] = 1.6
    with pytest.raises(ValueError, match=r"turn component 'wedge' inside out, whose mesh encloses -2e-07 m\^3: change"):
        hand.shape(x)


def test_bad_factors():
    hand = finger()
    x = hand.rest
    x[1] = -0.5
    with pytest.raises(ValueError, match="the factor of 'joint-1.width' must be positive, got -0.5"):
        hand.shape(x)
    x[1] = torch.nan
    with pytest.raises(ValueError, match=r"Assembly.shape: factors must be finite, got nan at index \(1,\)"):
        hand.shape(x)
    with pytest.raises(ValueError, match=r"factors must have shape \(9,\), got \(3,\)"):
        hand.shape(torch.ones(3))


def test_bad_assemblies():
    with pytest.raises(
        ValueError, match=r"'palm' and 'phalanx' do not fit: port 'out' of the former is 0.016 x 0.0324 m, port 'in' of the latter 0.026 x 0.026 m"
    ):  # fmt: skip
        Assembly(chain(palm(), phalanx()))
    with pytest.raises(KeyError, match="'tip': it has no port 'out'; its ports are in"):
        Assembly(chain(tip(), phalanx()))
    with pytest.raises(KeyError, match="'palm': it has no port 'in'"):
        Assembly(chain(phalanx(Section(16e-3, 32.4e-3)), palm()))
    with pytest.raises(ValueError, match="no child can join its port 'in'"):
        Assembly(Node(phalanx(), {"in": Node(phalanx())}))
    with pytest.raises(ValueError, match="chain: 'phalanx' has a child at its port 'out' already"):
        chain(Node(phalanx(), {"out": Node(tip())}), phalanx())
    with pytest.raises(ValueError, match="'a' is the name of several components"):
        Assembly(chain(Node(phalanx(), name="a"), Node(phalanx(), name="a")))
    with pytest.raises(ValueError, match="no parameter is called 'thumb.*'; there are palm.length,"):
        Assembly(of("palm", "knuckle", "tip"), constant=("thumb.*",))
    with pytest.raises(ValueError, match=r"density must be positive \[kg/m\^3\], got 0"):
        Assembly(of("palm"), density=0.0)
    hand = finger()
    with pytest.raises(KeyError, match="there is no component 'thumb'; there are palm, knuckle, joint-0"):
        hand.carried("thumb", [(0.0, 0.0, 0.0)], hand.shape(hand.rest))
    with pytest.raises(ValueError, match="Cage: 1 of 1 points are outside of it"):
        hand.carried("tip", [(0.0, 0.0, 1.0)], hand.shape(hand.rest))


def test_a_scene_that_is_not_of_the_design():
    hand = finger()
    shape = hand.shape(hand.rest)
    law = [wb.Contact("skin", "floor", 1e6, 1e3, 0.5, 1e4)]
    other = wb.Scene(hand.bodies(points=7, surface="skin"), [], [wb.floor(-1.0)], joints=hand.joints(), contacts=law)
    with pytest.raises(ValueError, match=r"body 'palm' has \d contact points in the simulation and 10 in the design"):
        hand.model_parameters(wb.Simulation(other, wb.Articulated(), 1e-3, 1), shape)
    block = wb.SoftBody("block", wb.shapes.Box((0.0, 0.0, 0.0), (0.1, 0.1, 0.1)), wb.Material(1e4))
    soft = wb.Simulation(wb.Scene([block], domain=((-0.1, -0.1, -0.1), (0.3, 0.3, 0.3))), wb.MPM(dx=0.05), 1e-3, None)
    with pytest.raises(ValueError, match="shapes of bodies are parameters of Articulated, got MPM"):
        hand.model_parameters(soft, shape)
    shorter = Assembly(of("palm", "knuckle", "tip"))
    sim = wb.Simulation(wb.Scene(shorter.bodies(points=0), joints=shorter.joints()), wb.Articulated(), 2e-3, 1)
    with pytest.raises(KeyError, match="joint-0"):
        hand.model_parameters(sim, shape)
    renamed = [wb.Joint("other", "revolute", "palm", "knuckle", position=shorter.joints()[0].position, axis=(0, 0, 1))]
    sim = wb.Simulation(wb.Scene(shorter.bodies(points=0), joints=renamed), wb.Articulated(), 2e-3, 1)
    with pytest.raises(KeyError, match="model_parameters: there is no joint 'knuckle'; the scene has .*other"):
        shorter.model_parameters(sim, shorter.shape(shorter.rest))
