"""Grammars of hands: what they derive and how often, what is the same robot, what is refused, and designs in files."""

import dataclasses
import itertools
import json
import math
import re
from collections import Counter

import numpy as np
import pytest
import torch

import warpbots as wb
from warpbots.design import HAND_RULES, Design, Grammar, Port, Term, Topology, hand_components, hand_grammar, mounted
from warpbots.design.grammar.symmetry import symmetries
from warpbots.design.tree import instances_of


@pytest.fixture(scope="module")
def parts():
    return hand_components()


@pytest.fixture(scope="module")
def hands(parts):
    return Grammar(HAND_RULES, parts)


@pytest.fixture(scope="module")
def star(parts):
    """A square palm with a port on each of its four sides."""
    half = 13e-3
    nodes = np.stack(np.meshgrid(*[np.linspace(-half, half, 5)] * 3, indexing="ij"), axis=-1)
    palm = wb.design.palm(wb.design.hand_parts.FINGER, length=2 * half)
    layout = np.stack([palm.layout[..., own].sum(axis=-1) for own in ([0], [1, 3], [2, 4])], axis=-1)  # of a box
    ends = {name: dataclasses.replace(port, width="width", height="height") for name, port in palm.ports.items()}
    sides = {
        "left": Port((11, 3, 2, 7, 6), np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), "length", "height"),
        "right": Port((10, 0, 1, 4, 5), np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), "length", "height"),
    }  # fmt: skip
    return dataclasses.replace(
        palm,
        sizes=dict.fromkeys(("length", "width", "height"), 2 * half),
        layout=layout,
        ports={**ends, **sides},
        parts=(wb.design.Part.of_cells(nodes),),
    )


def texts(topologies):
    return [str(t) for t in topologies]


@pytest.mark.parametrize(("text", "short"), [
    ("palm(out: joint(out: tip), back: tip)", "palm(back: tip, out: joint tip)"),
    ("palm(back: tip) joint tip", "palm(back: tip, out: joint tip)"),
    ("joint(out: phalanx(out: tip))", "joint phalanx tip"),
    ("y-2(a.1: tip)", "y-2(a.1: tip)"),
])  # fmt: skip
def test_terms_are_read_and_written(text, short):
    term = Term.parse(text)
    assert str(term) == short
    assert Term.parse(short) == term


def test_hands_are_counted_by_a_closed_form(hands):
    """A finger has one form of each size from 3: hands of n components are 1 with one finger and n - 6 with two."""
    for largest in (4, 6, 7, 12, 25):
        found = texts(hands.topologies(largest))
        assert len(found) == len(set(found)) == largest - 3 + sum(n - 6 for n in range(7, largest + 1))
    sizes = [t.size for t in hands.topologies(14)]
    assert sizes == sorted(sizes)
    assert Counter(sizes) == {n: hands.count(n) for n in range(4, 15)} == {n: 1 + max(n - 6, 0) for n in range(4, 15)}


def test_binary_trees_are_catalan_numbers(star, parts):
    """Also where every tree has two derivations for each of its forks: it is found once."""
    layout, part = star.layout.copy(), star.parts[0]
    layout[:, 0, 0] += 0.5  # with its frame at its port "in"
    fork = dataclasses.replace(
        star,
        layout=layout,
        ports={
            "in": Port((8, 0, 2, 4, 6), np.eye(3), "width", "height"),
            **{k: star.ports[k] for k in ("left", "right")},
        },
        parts=(dataclasses.replace(part, vertices=part.vertices + [star.sizes["length"] / 2.0, 0.0, 0.0]),),
    )
    table = {**parts, "fork": fork}
    trees = Grammar({"tree": ["tip", "fork(left: tree, right: tree)"]}, table)
    again = Grammar({"tree": ["tip", "fork(left: tree, right: tree)", "other"], "other": ["fork(left: tree, right: tree)"]}, table)  # fmt: skip
    for forks in range(6):
        catalan, size = math.comb(2 * forks, forks) // (forks + 1), 2 * forks + 1
        assert trees.count(size) == catalan
        assert again.count(size) == catalan * 2**forks
        assert trees.count(size + 1) == 0
    for grammar in (trees, again):
        assert Counter(t.size for t in grammar.topologies(9)) == {1: 1, 3: 1, 5: 2, 7: 5, 9: 14}


def test_a_grammar_without_recursion_needs_no_limit(parts):
    grammar = Grammar({"finger": ["knuckle end", "end"], "end": ["joint tip", "joint phalanx tip"]}, parts)
    assert texts(grammar.topologies()) == [
        "joint tip", "knuckle joint tip", "joint phalanx tip", "knuckle joint phalanx tip",
    ]  # fmt: skip


def test_turned_hands_count_once(hands):
    """Two fingers on opposite sides are an unordered pair."""
    pairs = {
        tuple(sorted(p)) for n in range(7, 15) for p in itertools.product(range(3, 12), repeat=2) if sum(p) == n - 1
    }
    assert len(list(hands.topologies(14, up_to_symmetry=True))) == 11 + len(pairs)


def test_four_fingers_around_a_palm_are_bracelets(star, parts):
    """With k fingers to choose from, Burnside's lemma for the symmetries of a square counts them."""
    rules = {"hand": ["star(out: f, back: f, left: f, right: f)"], "f": ["tip", "phalanx tip", "phalanx phalanx tip"]}
    for k in (1, 2, 3):
        grammar = Grammar({**rules, "f": rules["f"][:k]}, {**parts, "star": star})
        assert len(list(grammar.topologies())) == k**4
        assert len(list(grammar.topologies(up_to_symmetry=True))) == (k**4 + 2 * k**3 + 3 * k**2 + 2 * k) // 8


def test_symmetries_are_those_of_the_shape(star, parts):
    assert len(symmetries(star, root=True)) == 8
    short = dataclasses.replace(star.parts[0], vertices=star.parts[0].vertices * [0.3, 1.0, 1.0])
    oblong = dataclasses.replace(star, sizes={**star.sizes, "length": 0.3 * star.sizes["length"]}, parts=(short,))
    assert len(symmetries(oblong, root=True)) == 4
    assert sorted(flipped for _, flipped in symmetries(parts["knuckle"], root=False)) == [False, True]
    skew = dataclasses.replace(parts["knuckle"], hinge=dataclasses.replace(parts["knuckle"].hinge, lower=-0.1))
    assert symmetries(skew, root=False) == (({"in": "in", "out": "out"}, False),)


def test_turned_hands_have_one_motion(hands):
    """The same hand in other words, turned about z, has the same mass matrix."""
    a, b = (t for t in hands.topologies(8) if t.size == 8 and "back" in str(t))
    order = []
    for topology, turn in ((a, np.eye(3)), (b, np.diag([-1.0, -1.0, 1.0]))):
        assembly = topology.assembly()
        joints = assembly.joints(rotation=turn)
        mount = wb.Joint("mount", "fixed", None, assembly.links[0].name, rotation=turn)
        scene = wb.Scene(assembly.bodies(points=0, rotation=turn), joints=[mount, *joints])
        sim = wb.Simulation(scene, wb.Articulated(), dt=0.01)
        names = [i.name for i in sim.model.robot.joints if i.name != "mount"]
        own = sorted(range(len(names)), key=lambda k: float(joints[k].position[0]))
        M = sim.dynamics(sim.state()).mass_matrix[0].numpy()
        order.append(M[np.ix_(own, own)])
    np.testing.assert_allclose(*order, rtol=1e-9, atol=1e-15)


def test_random_topologies_are_as_likely_as_they_should_be(hands, parts):
    """Chi-squared at a risk of 1e-6, uniform and by weights, over derivations of at most nine components."""
    weighted = Grammar({**HAND_RULES, "finger": {"knuckle segment": 3.0, "segment": 1.0}}, parts)
    everything = texts(hands.topologies(9))
    share = {"knuckle": 0.75, "plain": 0.25}

    def weight(text):
        two, knuckles, joints = "back" in text, text.count("knuckle"), text.count("joint")
        fingers = 2 if two else 1
        return 0.5 * share["knuckle"] ** knuckles * share["plain"] ** (fingers - knuckles) * 0.5**joints

    for grammar, uniform, expected in (
        (hands, True, np.ones(len(everything))),
        (weighted, False, np.array([weight(text) for text in everything])),
    ):
        drawn = grammar._random(9, 3, uniform)
        counts = Counter(str(next(drawn)) for _ in range(6000))
        assert set(counts) <= set(everything)
        expected = 6000.0 * expected / expected.sum()
        observed = np.array([counts[text] for text in everything])
        assert ((observed - expected) ** 2 / expected).sum() < 48.0  # 11 degrees of freedom


def test_random_topologies_are_seeded_and_within_their_limit(hands):
    assert (
        texts(hands.sample(8, 14, seed=5)) == texts(hands.sample(8, 14, seed=5)) != texts(hands.sample(8, 14, seed=6))
    )
    assert str(hands.random(14, seed=5)) == str(hands.sample(1, 14, seed=5)[0])
    for uniform in (True, False):
        found = hands.sample(20, 200, seed=1, uniform=uniform)
        assert len({str(t) for t in found}) == 20 and max(t.size for t in found) <= 200
    with pytest.raises(
        ValueError, match=r"1000 draws have found 3 different topologies of at most 6 components, and not 10"
    ):
        hands.sample(10, 6)


def test_every_topology_is_a_scene_that_moves(hands):
    for topology in [*hands.topologies(8), *hands.sample(2, 16, seed=2)]:
        assembly = topology.assembly()
        assert [i.component for i in assembly.instances] == [n.component for n in instances_of(topology.node())]
        assert len(assembly.instances) == topology.size
        scene = mounted(assembly)
        scene.validate()
        sim = wb.Simulation(scene, wb.Articulated(), dt=0.01)
        assert sim.channels == str(topology).count("joint") + str(topology).count("knuckle")
        q = sim.rollout(torch.ones(3, sim.channels), 3).final.q
        assert torch.isfinite(q).all() and q.abs().max() > 1e-4


@pytest.mark.parametrize(("rules", "message"), [
    ({"segment": ["joint phalanx segment"]}, "rule 'segment' never ends, as every production leads to it again"),
    ({"segment": ["joint b"], "b": ["phalanx segment"]}, "rules 'segment', 'b' never end, as every production leads to one of them again"),
    ({"finger": ["segment", "other"], "other": ["finger"]}, "'finger' -> 'other' -> 'finger' go round without adding a component"),
    ({"segment": ["segment", "joint tip"]}, "'segment' -> 'segment' go round"),
    ({"finger": ["knukle segment"]}, "rule 'finger': production 'knukle segment' names 'knukle', which is neither a rule nor a component; there are rules hand, finger, segment and components palm"),
    ({"finger": ["segment joint"]}, "something joins 'segment', which is a rule"),
    ({"finger": ["tip segment"]}, "'finger -> tip segment' joins 'joint' to 'tip': Component 'tip': it has no port 'out'"),
    ({"finger": ["knuckle(side: segment)"]}, "Component 'knuckle': it has no port 'side'; its ports are in, out"),
    ({"finger": ["knuckle(in: segment)"]}, "no child can join its port 'in'"),
    ({"finger": ["joint palm"]}, "joins 'palm' to 'joint': Component 'palm': it has no port 'in'"),
    ({"finger": ["thin tip"]}, "joins 'thin' to 'palm': Components 'palm' and 'phalanx' do not fit"),
    ({"palm": ["joint"]}, "'palm' is the name of a rule and of a component"),
    ({"finger": []}, "rule 'finger' needs a list of productions"),
    ({"finger": "joint tip"}, "rule 'finger' needs a list of productions"),
    ({"finger": {"joint tip": 0.0}}, "the weight of 'joint tip' must be positive and finite, got 0.0"),
    ({"finger": ["joint tip", "joint(out: tip)"]}, "rule 'finger' has one production twice"),
    ({"finger": ["knuckle(out segment)"]}, "rule 'finger': 'knuckle(out segment)': expected ':', got 'segment'"),
    ({"finger": ["knuckle(out: segment) tip"]}, "port 'out' is taken twice"),
    ({"finger": ["knuckle(out: segment"]}, "expected ')', got the end"),
    ({"finger": [""]}, "expected a name, got the end"),
    ({"finger": ["joint tip)"]}, "expected the end, got ')'"),
    ({"finger": ["joint/tip"]}, "names have letters, digits, '_', '.' and '-', got '/tip'"),
])  # fmt: skip
def test_a_grammar_that_does_not_work_is_refused(rules, message, parts):
    thin = wb.design.phalanx(wb.design.Section(20e-3, 20e-3))
    with pytest.raises(ValueError, match=re.escape(message)):
        Grammar({**HAND_RULES, **rules}, {**parts, "thin": thin})


def test_what_cannot_be_enumerated_is_refused(hands, parts):
    with pytest.raises(
        ValueError, match="rules 'segment' -> 'segment' lead back to where they began, .* give the largest"
    ):
        hands.topologies()
    for largest in (3, 201):
        for call in (hands.topologies, hands.random):
            with pytest.raises(
                ValueError, match=f"at least 4 components, and largest must be from there to 200, got {largest}"
            ):
                call(largest)
    with pytest.raises(ValueError, match="it has no rules"):
        Grammar({}, parts)
    with pytest.raises(ValueError, match="there is no rule 'foot' to start with; there are hand, finger, segment"):
        Grammar(HAND_RULES, parts, "foot")
    assert texts(Grammar(HAND_RULES, parts, "finger").topologies(3)) == ["joint phalanx tip"]


def test_a_student_adds_a_rule_and_a_component(star):
    grammar = hand_grammar({"hand": ["star(left: finger, right: finger, out: finger)"]}, {"star": star})
    found = grammar.random(16, seed=1)
    assert found.size <= 16 and str(found).startswith("star(left: ")
    mounted(found.assembly()).validate()


def test_a_design_comes_back_to_the_last_bit(hands, parts, tmp_path):
    topology = hands.random(14, seed=4)
    assembly = topology.assembly(("palm.*",), 1200.0)
    factors = 0.5 + torch.rand(len(assembly.names), dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    design = Design.of(topology, factors, constant=("palm.*",), density=1200.0, about={"loss": 0.1 + 0.2})
    design.save(tmp_path / "hand.json")
    back = Design.load(tmp_path / "hand.json", hand_components())
    assert back.topology == topology and str(back.topology) == str(topology)
    assert torch.equal(back.vector, factors) and back.about == {"loss": 0.1 + 0.2}
    for a, b in zip(back.assembly.shape(back.vector).masses, assembly.shape(factors).masses, strict=True):
        assert torch.equal(a.inertia, b.inertia)
    assert [p.name for p in tmp_path.iterdir()] == ["hand.json"]


def test_a_design_that_is_none_is_refused(hands, parts, tmp_path):
    topology, path = hands.random(8), tmp_path / "hand.json"
    with pytest.raises(ValueError, match="has no factor 'palm.size'; it has palm.length"):
        Design(topology, {"palm.size": 1.0})
    with pytest.raises(ValueError, match="the factor of 'palm.length' must be positive and finite, got -1.0"):
        Design(topology, {"palm.length": -1.0})
    with pytest.raises(ValueError, match=r"has \d+ factors, got 1"):
        Design.of(topology, torch.ones(1))
    with pytest.raises(ValueError, match="about must be plain data"):
        Design(topology, about={"loss": float("nan")}).save(path)
    assert not path.exists()
    Design(topology, {"palm.length": 1.5}).save(path)
    data = json.loads(path.read_text())
    longer = {**parts, "palm": wb.design.palm(wb.design.hand_parts.FINGER, 8e-3)}
    with pytest.raises(ValueError, match="'length' of component 'palm' was 0.007 m and is 0.008 m"):
        Design.load(path, longer)
    with pytest.raises(ValueError, match="it needs a component 'joint'; there are palm"):
        Design.load(path, {"palm": parts["palm"]})
    spoilt = {
        "its format is 'x'": {"format": "x"},
        "ends where it has to replace": {"derivation": data["derivation"][:-1]},
        "is complete before": {"derivation": data["derivation"] + [["hand", "palm"]]},
        "derivation is empty": {"derivation": []},
    }
    for message, change in spoilt.items():
        path.write_text(json.dumps(data | change))
        with pytest.raises(ValueError, match=f"hand.json is no design that can be read: .*{message}"):
            Design.load(path, parts)
    for text, message in (("{", "Expecting"), ("{}", "it has no 'format'"), ("[]", "list indices")):
        path.write_text(text)
        with pytest.raises(ValueError, match=f"no design that can be read: .*{message}"):
            Design.load(path, parts)
    with pytest.raises(ValueError, match="there is no component 'tip'; there are palm: add it"):
        Topology((("hand", "palm tip"),), {"palm": parts["palm"]})
