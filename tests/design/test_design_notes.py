"""What a design stores about itself comes back as it was."""

import pytest

from warpbots.design import Design, hand_grammar


@pytest.mark.parametrize("about", [{"runs": {1: "a", 2: "b"}}, {"runs": [{None: 3}]}])
def test_keys_that_a_file_would_turn_into_texts_are_refused(about, tmp_path):
    design = Design(next(hand_grammar().topologies(5)), about=about)
    with pytest.raises(ValueError, match="Design.save: about must have texts as keys"):
        design.save(tmp_path / "hand.json")
    assert not list(tmp_path.iterdir())
