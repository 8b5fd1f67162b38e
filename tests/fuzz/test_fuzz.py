"""A slice of the fuzzing of `campaign.py`: no raw error, no silent NaN, in scenes, steps, problems and files that people spoil."""

import campaign
import pytest
from verdict import is_sentence, verdict

from warpbots.scene import Material, memory_limit


@pytest.fixture(autouse=True)
def little_memory(monkeypatch):
    monkeypatch.setattr(memory_limit, "available_memory", lambda: campaign.MEMORY)


def judged(kind, seeds):
    """How many ended how, after every other end than a good one or a refusal was said."""
    ends = {seed: verdict(lambda: campaign.KINDS[kind](seed)) for seed in seeds}  # noqa: B023 (called at once)
    bad = {seed: end for seed, end in ends.items() if end[0] not in ("fine", "refused")}
    assert not bad, "\n".join(f"{kind} {seed}: {what}\n{said}" for seed, (what, said) in bad.items())
    return [end[0] for end in ends.values()].count("fine")


def test_scenes():
    """Two hundred scenes with up to three accidents; more than one in ten is as good as before."""
    assert judged("build", range(200)) > 20


def test_steps():
    """A dozen scenes of all solvers with at most one accident: finite, with a finite gradient."""
    assert judged("step", range(12)) > 4


def test_minimisations():
    """Sixty problems for every method with up to two accidents; more than one in five is solved."""
    assert judged("minimise", range(60)) > 12


def test_files():
    """Three dozen spoilt files."""
    judged("usd", range(36))


def test_meshes():
    """A hundred spoilt meshes; more than one in ten is as good as before."""
    assert judged("mesh", range(100)) > 10


def test_a_sentence_is_told_from_a_raw_error():
    """A message that fails while it is made is raw, even where the line begins with ``raise``."""

    def caught(action):
        try:
            action()
        except Exception as error:
            return error

    assert is_sentence(caught(lambda: Material(-1.0)))
    assert not is_sentence(caught(lambda: float("x")))
    assert not is_sentence(caught(lambda: Material.__eq__()))
    assert verdict(lambda: "wrong")[0] == "silent"
    assert verdict(lambda: None)[0] == "fine"
    assert verdict(lambda: 1 / 0)[0] == "raw"
