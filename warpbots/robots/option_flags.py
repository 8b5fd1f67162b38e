"""Flags of MJCF's ``<option>``: followed, reported, or without effect on the motion."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = [
    "DISABLED",
    "ENABLED",
    "QUIET",
    "filters_parents",
    "idle_actuators",
    "named_flags",
    "switch_off",
    "has_contact",
]

QUIET = ""
"""For flags without effect on the motion: they control how MuJoCo computes, not what."""


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
    """The flag is read by `has_contact`, `filters_parents` or `idle_actuators`."""


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
"""Effect of ``<flag ...="disable"/>``, by the name in `mjtDisableBit`."""

ENABLED: dict[str, str] = {
    "OVERRIDE": "one margin, stiffness and friction for all contacts (o_margin, o_solref, o_solimp, o_friction)",
    "ENERGY": QUIET, "FWDINV": QUIET, "INVDISCRETE": QUIET, "SLEEP": QUIET, "DIAGEXACT": QUIET, "IPC": QUIET,
    "SPECULATIVE": QUIET, "MULTICCD": QUIET, "ISLAND": QUIET, "SENSORNOISE": QUIET,
}  # fmt: skip
"""Effect of ``<flag ...="enable"/>``, by the name in `mjtEnableBit`."""


def _set(words: ModuleType, kind: str, flags: int) -> list[str]:
    """Names of the flags that are set."""
    bits = getattr(words, f"mjt{kind}Bit").__members__
    return [name.partition("_")[2] for name, bit in bits.items() if "_" in name and int(bit) & flags]


def switch_off(model: Any, words: ModuleType) -> None:
    """Apply the flags of an `mujoco.MjModel` to its arrays."""
    for name in _set(words, "Disable", model.opt.disableflags):
        obey = DISABLED.get(name)
        if callable(obey):
            obey(model)


def named_flags(model: Any, words: ModuleType) -> list[str]:
    """A line for every flag with an effect that is not followed, or that is unknown."""
    lines = []
    for kind, known in (("Disable", DISABLED), ("Enable", ENABLED)):
        for name in _set(words, kind, getattr(model.opt, f"{kind.lower()}flags")):
            meaning = known.get(name, "an unknown flag")
            if isinstance(meaning, str) and meaning != QUIET:
                lines.append(f"option: <flag {name.lower()}={kind.lower()!r}>: {meaning}")
    return lines


def has_contact(model: Any, words: ModuleType) -> bool:
    """Whether contact is enabled."""
    return not {"CONTACT", "CONSTRAINT"} & set(_set(words, "Disable", model.opt.disableflags))


def filters_parents(model: Any, words: ModuleType) -> bool:
    """Whether bodies that a joint connects do not touch."""
    return "FILTERPARENT" not in _set(words, "Disable", model.opt.disableflags)


def idle_actuators(model: Any, words: ModuleType) -> frozenset[int]:
    """Indices of the actuators that are disabled, all together or by their group."""
    every = range(len(model.actuator_group))
    if "ACTUATION" in _set(words, "Disable", model.opt.disableflags):
        return frozenset(every)
    off = int(model.opt.disableactuator)
    return frozenset(k for k in every if 0 <= model.actuator_group[k] < 31 and off >> int(model.actuator_group[k]) & 1)
