"""Grammars of robots: rules that state which components join, the topologies that they allow, and files of designs."""

from warpbots.design.grammar.design import Design
from warpbots.design.grammar.grammar import Grammar
from warpbots.design.grammar.hand_grammar import HAND_RULES, hand_components, hand_grammar
from warpbots.design.grammar.mounted import mounted
from warpbots.design.grammar.term import Term
from warpbots.design.grammar.topology import Topology

__all__ = [
    "HAND_RULES",
    "Design",
    "Grammar",
    "Term",
    "Topology",
    "hand_components",
    "hand_grammar",
    "mounted",
]
