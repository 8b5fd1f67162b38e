"""Flags of MJCF's ``<option>``: some are applied, some are reported, and some have no effect on the motion."""

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

__all__ = [
    "DISABLED",
    "ENABLED",
    "QUIET",
    "FlaggedOptions",
    "options_of",
    "switch_off",
]

QUIET = ""
"""Marks flags without effect on the motion: they only control how MuJoCo computes it."""


def _no_constraints(model: Any) -> None:
    for obey in (_no_equalities, _no_dry_friction, _no_limits):
        obey(model)


def _no_equalities(model: Any) -> None:
    model.eq_active0[:] = 0


def _no_dry_friction(model: Any) -> None:
    model.dof_frictionloss[:] = 0.0


def _no_limits(model: Any) -> None:
    model.jnt_limited[:] = 0


def _no_springs(model: Any) -> None:
    model.jnt_stiffness[:] = 0.0
    model.jnt_stiffnesspoly[:] = 0.0


def _no_dampers(model: Any) -> None:
    model.dof_damping[:] = 0.0
    model.dof_dampingpoly[:] = 0.0


def _no_gravity(model: Any) -> None:
    model.opt.gravity[:] = 0.0


def _nothing(_: Any) -> None:
    """Do nothing, because `options_of` reads the flag."""


DISABLED: dict[str, Callable[[Any], None] | str] = {
    "CONSTRAINT": _no_constraints,
    "EQUALITY": _no_equalities,
    "FRICTIONLOSS": _no_dry_friction,
    "LIMIT": _no_limits,
    "CONTACT": _nothing,
    "SPRING": _no_springs,
    "DAMPER": _no_dampers,
    "PASSIVE": lambda model: (_no_springs(model), _no_dampers(model)),
    "GRAVITY": _no_gravity,
    "CLAMPCTRL": "controls beyond their range; here all are in [-1, 1]",
    "FILTERPARENT": _nothing,
    "ACTUATION": _nothing,
    "WARMSTART": QUIET, "REFSAFE": QUIET, "SENSOR": QUIET, "MIDPHASE": QUIET, "EULERDAMP": QUIET, "AUTORESET": QUIET,
    "NATIVECCD": QUIET, "ISLAND": QUIET, "MULTICCD": QUIET,
}  # fmt: skip
"""Effect of ``<flag ...="disable"/>``, by the name in `mjtDisableBit`: a function that changes the model, or a note."""

ENABLED: dict[str, str] = {
    "OVERRIDE": "one margin, stiffness and friction for all contacts (o_margin, o_solref, o_solimp, o_friction)",
    "ENERGY": QUIET, "FWDINV": QUIET, "INVDISCRETE": QUIET, "SLEEP": QUIET, "DIAGEXACT": QUIET, "IPC": QUIET,
    "SPECULATIVE": QUIET, "MULTICCD": QUIET, "ISLAND": QUIET, "SENSORNOISE": QUIET,
}  # fmt: skip
"""Note on the effect of ``<flag ...="enable"/>``, by the name in `mjtEnableBit`."""


def _set(words: ModuleType, kind: str, flags: int) -> list[str]:
    """Names of the flags of the given kind that are set in `flags`."""
    bits = getattr(words, f"mjt{kind}Bit").__members__
    return [name.partition("_")[2] for name, bit in bits.items() if "_" in name and int(bit) & flags]


def switch_off(model: Any, words: ModuleType) -> None:
    """Apply the flags of a `mujoco.MjModel` to the arrays of the model."""
    for name in _set(words, "Disable", model.opt.disableflags):
        obey = DISABLED.get(name)
        if callable(obey):
            obey(model)


class FlaggedOptions(NamedTuple):
    """Effects of the flags of a file.

    Attributes:
        has_contact: Whether contact is enabled.
        filters_parents: Whether contact between a body and its parent in the tree is disabled, as by default in MuJoCo.
        idle: Indices of the disabled actuators; a file can disable all actuators, or groups of them.
        named: Text lines for the user, one for every flag that is unknown or whose effect is not applied.
    """

    has_contact: bool
    filters_parents: bool
    idle: frozenset[int]
    named: list[str]


def options_of(model: Any, words: ModuleType) -> FlaggedOptions:
    """The effects of the flags of a `mujoco.MjModel`."""
    off = {*_set(words, "Disable", model.opt.disableflags)}
    return FlaggedOptions(
        not off & {"CONTACT", "CONSTRAINT"}, "FILTERPARENT" not in off, _idle(model, "ACTUATION" in off),
        _named(model, words),
    )  # fmt: skip


def _named(model: Any, words: ModuleType) -> list[str]:
    lines = []
    for kind, known in (("Disable", DISABLED), ("Enable", ENABLED)):
        for name in _set(words, kind, getattr(model.opt, f"{kind.lower()}flags")):
            meaning = known.get(name, "an unknown flag")
            if isinstance(meaning, str) and meaning != QUIET:
                lines.append(f"option: <flag {name.lower()}={kind.lower()!r}>: {meaning}")
    return lines


def _idle(model: Any, all_of_them: bool) -> frozenset[int]:
    every, off = range(len(model.actuator_group)), int(model.opt.disableactuator)
    if all_of_them:
        return frozenset(every)
    return frozenset(k for k in every if 0 <= model.actuator_group[k] < 31 and off >> int(model.actuator_group[k]) & 1)
