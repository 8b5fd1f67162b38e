"""Everything public answers odd arguments with a result or with a sentence that names what is wrong, and nothing raw.

New public names are tried by themselves: if one has a parameter without a default that no example is known for, the
test asks for one.
"""

import inspect
import traceback
from pathlib import Path

import numpy as np
import pytest
import torch

import warpbots as wb
from warpbots import controllers, design, morphology, observers, optimize
from warpbots.optimize import methods
from warpbots.scene import Box
from warpbots.simulation import state_files

PACKAGE = str(Path(wb.__file__).parent)
ODD = {
    "None": None, "text": "odd", "bool": True, "nan": float("nan"), "inf": float("inf"), "negative": -3, "zero": 0,
    "fraction": 2.5, "empty": [], "dict": {"odd": 1.0}, "tensor": torch.zeros(2, 7), "array": np.zeros((2, 7)),
    "tensor of nan": torch.full((1, 3), float("nan")), "complex": torch.zeros(3, dtype=torch.complex64),
    "texts": ["odd", "odder"], "class": torch.optim.Adam, "function": lambda a, b, c, d, e: None, "module": np,
}  # fmt: skip
"""Values that few arguments can be."""

ERRORS = (ValueError, TypeError, KeyError, IndexError, OSError, ImportError, wb.SimulationError)
RAW = ("NoneType", "object has no", "object is not", "unhashable", "could not be broadcast")

RESULTS = {
    "AssemblyShape", "Estimate", "History", "MassProperties", "OptimizeWarning", "RolloutError", "SearchHistory", "SearchRun", "SurfacePoints",
    "Outcome", "Unknown",  # what is in them is checked where they are used
    "Design", "Grammar", "Term", "Topology",  # see tests/design/test_grammar.py
    "Deformation", "Observation", "Observer", "Remembers",  # protocols
    "designed_parameters",  # takes simulations with the bodies of its design
}  # fmt: skip
"""Public names that users do not call, or not by themselves."""


def simulation():
    body = wb.SoftBody("b", Box((0.1, 0.1), (0.3, 0.3)), wb.Material(1e4, 0.25), {"r": Box((0.1, 0.1), (0.2, 0.3))})
    scene = wb.Scene([body], [wb.actuators.Muscle("m", "r", (1, 0), 10.0)])
    return wb.Simulation(scene, wb.MassSpring(0.1), 2e-3, substeps=2)


def examples(path):
    """An argument for every parameter without a default, by the names of function and parameter, or of the latter."""
    sim, x = simulation(), torch.ones(2, requires_grad=True)
    plain = wb.Simulation(wb.Scene(sim.scene.bodies), wb.MassSpring(0.1), 2e-3, substeps=2)
    vertices = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    cage, component = design.box_cage((-1, -1, -1), (2, 2, 2)), design.phalanx()
    section = design.Section(0.026, 0.026)
    mesh = {"vertices": torch.tensor(vertices), "faces": torch.tensor(faces)}
    inside = torch.tensor(0.1 + 0.2 * vertices)
    own = {
        **{(f, n): v for f in ("mass_properties", "mean_value_weights", "mesh_distance") for n, v in mesh.items()},
        ("hessian_product", "loss"): lambda y: (y**2).sum(), ("Cage", "faces"): cage.faces,
        ("CageMap", "handles"): torch.tensor(cage.handles), ("Component", "faces"): component.faces,
        ("Component", "parts"): component.parts, ("box_component", "length"): 0.0234,
        ("Hinge", "lower"): -1.0, ("Hinge", "axis"): (0, 0, 1), ("Port", "handles"): (0, 1, 2, 3, 4),
        ("Port", "width"): "w", ("Port", "height"): "h", ("Stretch", "start"): 0.0, ("Stretch", "end"): 1.0,
        ("FreeForm", "lower"): (0, 0), ("FreeForm", "upper"): (1, 1), ("CagedBody", "points"): 0, ("Stretch", "axis"): 0,
        ("box_cage", "lower"): (0, 0, 0), ("box_cage", "upper"): (1, 1, 1), ("grid_cage", "lower"): (0, 0, 0),
        ("grid_cage", "upper"): (1, 1, 1), ("jacobian", "points"): torch.rand(4, 2, dtype=torch.float64),
        ("CagedBody", "vertices"): inside.numpy(), ("shaped", "sim"): plain, ("parameter", "name"): "gravity",
        ("region", "name"): "r", ("surface_points", "count"): 10, ("hessian_product", "x"): torch.ones(2),
        ("step", "control"): torch.zeros(1), ("Port", "rotation"): np.eye(3),
    }  # fmt: skip
    return own | {
        "loss": lambda: (x**2).sum(), "unknowns": [x], "method": methods.Torch(lr=0.1), "iterations": 1,
        "progress": False, "parameters": [x], "residual": lambda: torch.cat([x, x]), "candidates": {"a": 1},
        "problem": lambda c: (lambda: (x**2).sum(), [x]), "episodes": 2, "value": torch.tensor(0.5), "lower": 0.0,
        "upper": 1.0, "starts": 2, "direction": torch.ones(2), "deviation": 0.1, "simulation": sim, "sim": sim,
        "observer": observers.Centroid(), "steps": 2, "count": 2, "intervals": 1, "body": "b", "vertices": vertices,
        "faces": faces, "points": inside, "cells": (1, 1, 1), "start": section, "end": section, "name": "n",
        "parts": component.parts, "matrix": torch.eye(2), "center": (0.0, 0.0), "factor": 1.1,
        "displacement": torch.zeros(2, 2, 2), "maps": [], "design": morphology.Affine(torch.eye(2), (0.0, 0.0)),
        "state": sim.state(), "controller": None, "worlds": [0], "values": {"r": 1e4}, "parameter": "youngs_modulus",
        "root": design.chain(component), "cage": cage, "handles": cage.handles, "layout": component.layout,
        "sizes": component.sizes, "ports": component.ports, "component": component, "exposed": np.ones(4, bool),
        "position": (0, 0, 0), "axis": 0, "width": 0.02, "height": 0.02, "path": str(path / "state.pt"),
        "assembly": design.Assembly(design.chain(design.palm(), design.knuckle(), design.tip())),
    }  # fmt: skip


def parameters(call):
    """Parameters by name, without those that collect others."""
    collect = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return {n: p for n, p in inspect.signature(call).parameters.items() if p.kind not in collect}


def fault_of(call, name, value, others):
    """The fault of the response to an odd value; None if it is accepted, or refused with a sentence."""
    try:
        call(**{**others, name: value})
    except Exception as fault:
        frames = traceback.extract_tb(fault.__traceback__)
        text, words = f"{type(fault).__name__}: {fault} ({frames[-1].filename}:{frames[-1].lineno})", str(fault)
        if callable(value) and any(frame.line and f"{name}(" in frame.line for frame in frames[-3:]):
            return None  # the function of the caller itself has raised
        named = name[:7].rstrip("s") in words or getattr(call, "__name__", "") in words or "unknown" in words
        named = named or "Component 'n'" in words  # of which the argument is a part
        ours = frames[-1].filename.startswith(PACKAGE) and isinstance(fault, ERRORS) and named
        return None if ours and not any(raw in words for raw in RAW) else text
    return None


def tried(call, known):
    """All faults of a public function or class."""
    title, others, faults = call.__name__, {}, []
    for name, parameter in parameters(call).items():
        if (title, name) in known or parameter.default is inspect.Parameter.empty or name in ("progress", "iterations"):
            example = known.get((title, name), known.get(name, KeyError))
            assert example is not KeyError, f"give an example of the parameter {name!r} of {title} in this file"
            others[name] = example
    for name in parameters(call):
        for kind, value in ODD.items():
            if fault := fault_of(call, name, value, others):
                faults.append(f"{title}({name}={kind}): {fault}")
    return faults


PUBLIC = {
    f"{module.__name__.removeprefix('warpbots.')}.{name}": getattr(module, name)
    for module in (optimize, methods, design, morphology, observers, controllers)
    for name in module.__all__
    if callable(getattr(module, name)) and name not in RESULTS
}
METHODS = (
    "parameter", "scene_with", "region", "per_region", "center_of_mass", "reset", "save_state", "load_state", "cost",
    "step", "sense", "rollout",
)  # fmt: skip


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Functions that write a file with an odd name write it in this folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    return examples(tmp_path_factory.mktemp("odd"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_answer_odd_arguments_in_sentences(name, known, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a text is a path of a file
    with torch.no_grad():
        known["unknowns"][0].fill_(1.0)
    assert not tried(PUBLIC[name], known)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", METHODS)
def test_simulations_answer_odd_arguments_in_sentences(name, known, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not tried(getattr(known["sim"], name), known)


def test_whole_numbers_may_be_written_as_floats(known):
    """1e3 steps are 1000 steps, here as elsewhere; 2.5 are refused."""
    sim = known["sim"]
    assert torch.equal(sim.rollout(None, 3e0).final.position, sim.rollout(None, 3).final.position)
    with pytest.raises(ValueError, match="rollout: steps must be a whole number, got 2.5"):
        sim.rollout(None, 2.5)


def touched_points() -> wb.Simulation:
    """A box that may touch an obstacle of a single point."""
    cube = wb.RigidBody("a", wb.shapes.Box((-0.05,) * 3, (0.05,) * 3), points=8)
    point = wb.Obstacle(wb.shapes.Points(np.zeros((1, 3)), np.ones(1)), name="o")
    scene = wb.Scene([cube], obstacles=[point], contacts=[wb.Contact("a", "o", 1e5)])
    return wb.Simulation(scene, wb.Articulated(), 1e-3)


def finer(sim: wb.Simulation) -> wb.Simulation:
    return wb.Simulation(sim.scene, wb.MassSpring(0.05), 2e-3)


@pytest.mark.parametrize(("make", "said"), [
    (lambda sim, x: wb.minimize(lambda: wb.Outcome(3.0), x, methods.Torch()), "the loss of an Outcome must be a tensor"),
    (lambda sim, x: wb.minimize(lambda: wb.Outcome(x.sum(), [x]), x, methods.Torch()), "equality of an Outcome must be"),
    (lambda sim, x: wb.minimize(lambda: 3.0, x, methods.Torch()), "loss must be a tensor or a warpbots.Outcome"),
    (lambda sim, x: wb.minimize(x.sum, wb.Unknown(x, scale="wide"), methods.Torch()), "scale must be a number or a tens"),
    (lambda sim, x: wb.minimize(x.sum, wb.Unknown(x, float("nan")), methods.Torch()), "lower bound must be a number, got"),
    (lambda sim, x: wb.minimize(x.sum, wb.Unknown(1.0), methods.Torch()), "its tensor must be a torch tensor, got 1.0"),
    (lambda sim, x: wb.minimize(x.sum, 3, methods.Torch()), "unknowns must be a torch tensor.*, got 3"),
    (lambda sim, x: wb.minimize(x.sum, x, methods.Torch), "method must be a Method, got the class Torch; make one with"),
    (lambda sim, x: wb.minimize(x.sum, x, methods.Torch(lr=-1.0)), "methods.Torch: optimizer the class Adam does not ta"),
    (lambda sim, x: wb.minimize(lambda y: y, x, methods.Torch()), "loss must be a function of no arguments"),
    (lambda sim, x: sim.rollout(None, 2, observe=lambda s: s.position[:, : 1 + int(s.velocity.abs().max() > 0.03)]),
     "observe must return tensors of one shape"),
    (lambda sim, x: sim.rollout(None, 2, observe=lambda s: s.position.mean()), r"of shape \(1, \.\.\.\), with the worlds"),
    (lambda sim, x: sim.rollout(None, 2, observe=lambda s: s.position[0]), r"got \(9, 2\); leave the first axis"),
    (lambda sim, x: sim.rollout(controllers.MLP(finer(sim), observers.Clusters(2)), 2),
     r"Clusters observes .* a state of another one: its position has shape \(1, 9, 2\) instead of \('worlds', 25, 2\)"),
    (lambda sim, x: sim.rollout(lambda state: None, 1), "controller must be a function of 2 arguments"),
    (lambda sim, x: controllers.MLP(sim, lambda state: 1.0), "observer must return a torch tensor of shape"),
    (lambda sim, x: touched_points(), "a Points at .* alone has no extent and is no solid; use a Sphere"),
])  # fmt: skip
def test_what_functions_return_and_records_hold_is_checked(make, said, known):
    with pytest.raises((ValueError, TypeError), match=said):
        make(known["sim"], torch.ones(2, requires_grad=True))


def test_a_simulation_keeps_its_scene_and_solver(known):
    """Its model would not follow them."""
    for name in ("scene", "solver", "model", "dt"):
        with pytest.raises(AttributeError, match=f"'{name}' of 'Simulation' object has no setter"):
            setattr(known["sim"], name, None)


def test_a_state_of_another_simulation_is_refused(known, tmp_path):
    """By all functions that take a state; also a state in a file that is not finite."""
    sim, body = known["sim"], known["sim"].scene.bodies[0]
    other = wb.Simulation(wb.Scene([body]), wb.MassSpring(0.05), 2e-3, substeps=4)
    for state, said in (
        (other.state(), "of another simulation: field 'position' has shape"),
        ({}, "must be a MassSpring"),
    ):
        for use in (sim.sense, sim.center_of_mass, lambda s: sim.rollout(None, 1, s), lambda s: sim.reset(s, [0]),
                    lambda s: sim.step(s, torch.zeros(1)), lambda s: sim.save_state(tmp_path / "s", s)):  # fmt: skip
            with pytest.raises(ValueError, match=said):
                use(state)
    wild = sim.state().mapped(lambda field: field * float("nan"))
    state_files.save(tmp_path / "s", wild, sim.state(), sim.scene, sim.solver)
    with pytest.raises(ValueError, match=r"load_state: .* its \w+ is nan at index"):
        sim.load_state(tmp_path / "s")
