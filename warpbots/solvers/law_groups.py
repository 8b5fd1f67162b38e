"""Groups of consecutive particles or elements with one constitutive law; there is one launch for each group."""

import dataclasses
import itertools
from collections.abc import Iterable

from warpbots.materials import Law, law_of
from warpbots.scene import Material

__all__ = ["LawGroup", "law_groups"]


@dataclasses.dataclass(frozen=True)
class LawGroup:
    """Consecutive particles or elements with one constitutive law.

    Attributes:
        law: The law, as registered at the time when the model was built.
        incompressibility: Exponent of the volumetric energy that is added to the law; 0 for none.
        first: Index of the first particle or element.
        count: Number of particles or elements.
    """

    law: Law
    incompressibility: int
    first: int
    count: int


def law_groups(materials: Iterable[Material], counts: Iterable[int]) -> tuple[LawGroup, ...]:
    """Group particles or elements by law; consecutive bodies with the same law share a group.

    Args:
        materials: Material of each body.
        counts: Number of particles or elements of each body; bodies with 0 are skipped.
    """
    laws = ((m.law, m.incompressibility) for m in materials)
    groups, first = [], 0
    for law, run in itertools.groupby(zip(laws, counts, strict=True), key=lambda pair: pair[0]):
        count = int(sum(n for _, n in run))
        if count:
            groups.append(LawGroup(law_of(law[0]), law[1], first, count))
        first += count
    return tuple(groups)
