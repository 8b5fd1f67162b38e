"""The grammar of hands: a palm with one or two fingers, which may have a knuckle and have any number of phalanges."""

from collections.abc import Mapping, Sequence

from warpbots.design.component import Component
from warpbots.design.grammar.grammar import Grammar
from warpbots.design.hand_parts import FINGER, joint, knuckle, palm, phalanx, tip
from warpbots.scene.field_types import checked

__all__ = ["HAND_RULES", "hand_components", "hand_grammar"]

HAND_RULES: Mapping[str, Sequence[str]] = {
    "hand": ["palm(out: finger)", "palm(back: finger, out: finger)"],
    "finger": ["knuckle segment", "segment"],
    "segment": ["joint phalanx tip", "joint phalanx segment"],
}
"""Rules of hands; your own grammar may begin with them: ``{**HAND_RULES, "segment": [...]}``."""


def hand_components() -> dict[str, Component]:
    """The parts of hands by name.

    All ports have the same section, so that fingers may begin with a knuckle or a joint.
    """
    return {
        "palm": palm(FINGER),
        "knuckle": knuckle(root=FINGER),
        "joint": joint(),
        "phalanx": phalanx(),
        "tip": tip(),
    }


@checked
def hand_grammar(
    rules: Mapping[str, Sequence[str] | Mapping[str, float]] | None = None,
    components: Mapping[str, Component] | None = None,
) -> Grammar:
    """The grammar of hands, with additional or replaced rules and components.

    The default rules are ``hand -> palm(out: finger) | palm(back: finger, out: finger)``, ``finger -> knuckle segment |
    segment`` and ``segment -> joint phalanx tip | joint phalanx segment``.

    Args:
        rules: Rules in addition to `HAND_RULES`; a given rule replaces the default rule of the same name.
        components: Components in addition to `hand_components`; a given component replaces the default one of the same
            name.

    Raises:
        ValueError: See `Grammar`.
    """
    return Grammar({**HAND_RULES, **(rules or {})}, {**hand_components(), **(components or {})})
