"""Successive halving, which decides how many episodes each candidate gets."""

import dataclasses
from collections.abc import Iterator

from warpbots.optimize.search_history import SearchHistory

__all__ = ["Planned", "fewest_episodes", "schedule"]

_SHORTEST = 2
"""Smallest number of episodes of a run, because the first episode only repeats the best rollout of the run before."""


@dataclasses.dataclass(frozen=True)
class Planned:
    """The next run of a search.

    Attributes:
        round: Index of the round, from 0.
        candidate: Name of the candidate.
        episodes: Largest number of episodes of the run.
    """

    round: int
    candidate: str
    episodes: int


def schedule(history: SearchHistory, episodes: int, reduction: int) -> Iterator[Planned]:
    """Yield the runs of a search one after the other; each run depends on the results of all runs before it.

    All candidates take part in the first round. The best candidates of a round, one in `reduction`, take part in the
    next round, until one candidate is left (Karnin, Koren and Somekh 2013; Jamieson and Talwalkar 2016). Every round
    has the same number of episodes, distributed equally among its candidates. Episodes that a round does not use,
    because candidates have converged, are used in the next rounds. Episodes that the last round does not use are spent
    on the best candidate that can still be improved.

    Args:
        history: History of the search so far; the caller must add each run to the history before it asks for the next
            run.
        episodes: Number of episodes of all runs together.
        reduction: Number of candidates in a round divided by the number of candidates in the next round.
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
    """Smallest number of episodes of a search with which every run has at least two episodes."""
    return _SHORTEST * candidates * len(_sizes(candidates, reduction))


def _sizes(candidates: int, reduction: int) -> list[int]:
    """Number of candidates in each round."""
    sizes = [candidates]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // reduction))
    return sizes
