"""Former names: each raises an error with the new name, and the new name exists."""

import importlib

import pytest

import warpbots as wb
from warpbots.renamed import _NEW_NAMES


def found(full: str) -> object:
    """The object with a full name."""
    module, _, name = full.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except AttributeError:
        return importlib.import_module(full)


@pytest.mark.parametrize(("old", "new"), _NEW_NAMES.items())
def test_a_former_name_says_the_new_one(old, new):
    """As an attribute, in ``from ... import``, and as a module; the new one exists and is not itself a former one."""
    module, _, name = old.rpartition(".")
    sentence = rf"^{old} is now {new}$".replace(".", r"\.")
    with pytest.raises(AttributeError, match=sentence):
        getattr(importlib.import_module(module), name)
    with pytest.raises(ImportError, match=sentence):
        exec(f"from {module} import {name}")
    with pytest.raises(ImportError, match=sentence):
        importlib.import_module(old)
    assert new not in _NEW_NAMES
    assert found(new) is not None


def test_names_that_never_were_are_unknown_as_everywhere():
    for module in ("warpbots", "warpbots.observers", "warpbots.solvers.mpm"):
        with pytest.raises(AttributeError, match=f"^module '{module}' has no attribute 'nonsense'$"):
            _ = importlib.import_module(module).nonsense
    with pytest.raises(ModuleNotFoundError, match="warpbots.nonsense"):
        importlib.import_module("warpbots.nonsense")
    assert not hasattr(wb, "load_mesh")


@pytest.mark.parametrize(
    ("owner", "old", "new"),
    [
        (wb.Simulation, "centre", "center_of_mass"),
        (wb.optimize.SearchHistory, "legs", "runs"),
        (importlib.import_module("warpbots.solvers.mpm").MPMModel, "particles", "matter"),
    ],
)
def test_a_former_attribute_of_a_class_says_the_new_one(owner, old, new):
    instance = owner.__new__(owner)
    for where in (owner, instance):
        with pytest.raises(AttributeError, match=rf"^{owner.__name__}\.{old} is now {owner.__name__}\.{new}$"):
            getattr(where, old)
        assert not hasattr(where, old)
