"""Successive halving: the number of episodes for each candidate."""

import dataclasses
from collections.abc import Iterator

from warpbots.optimize.search_history import SearchHistory

__all__ = ["Planned", "fewest_episodes", "schedule"]

_SHORTEST = 2
"""Episodes of the shortest leg; the first episode of a leg only repeats the best one before."""


@dataclasses.dataclass(frozen=True)
class Planned:
    """The next leg of a search.

    Attributes:
        round: Number of the round, from 0.
        candidate: Name of the candidate.
        episodes: Largest number of episodes.
    """

    round: int
    candidate: str
    episodes: int


def schedule(history: SearchHistory, episodes: int, reduction: int) -> Iterator[Planned]:
    """The legs of a search, one by one: each depends on the results of the legs before it.

    Each round has an equal part of the episodes, which its candidates share equally: all candidates in the first round,
    then the best one in `reduction` of each round, down to one (Karnin, Koren and Somekh 2013; Jamieson and Talwalkar
    2016). Episodes that a round leaves, because candidates have converged, are for the next rounds; those that the last
    round leaves are for the best candidate that can still be improved.

    Args:
        history: The search so far; the caller adds each leg before it asks for the next.
        episodes: Number of episodes of all legs together.
        reduction: Number of candidates for each one that remains in the next round.
    """
    sizes = _sizes(len(history.candidates), reduction)
    for number, size in enumerate(sizes):
        remaining = [name for name in history.ranked()[:size] if history.goes_on(name)]
        share = (episodes - history.episodes) // (len(sizes) - number)
        for k, name in enumerate(remaining):
            yield Planned(number, name, share // len(remaining) + (k < share % len(remaining)))
    while history.episodes < episodes and (open_ := [name for name in history.ranked() if history.goes_on(name)]):
        yield Planned(len(sizes), open_[0], episodes - history.episodes)


def fewest_episodes(candidates: int, reduction: int) -> int:
    """The smallest number of episodes for which every leg has two."""
    return _SHORTEST * candidates * len(_sizes(candidates, reduction))


def _sizes(candidates: int, reduction: int) -> list[int]:
    """Number of candidates in each round."""
    sizes = [candidates]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // reduction))
    return sizes
