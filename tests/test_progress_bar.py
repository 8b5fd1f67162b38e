"""The progress bar of a training: text on stderr in a terminal, HTML in a notebook, where stderr is red."""

import re

import pytest
import torch
from cells import cell_of

import warpbots as wb
from warpbots.optimize import progress_bar


def train(**options):
    x = torch.ones(1, requires_grad=True)
    wb.fit([x], lambda: x.square().sum(), torch.optim.SGD, lr=0.1, iterations=3, **options)


@pytest.fixture
def shown(monkeypatch):
    """Output of the cell of a notebook."""
    monkeypatch.setattr(progress_bar, "in_notebook", lambda: True)
    return cell_of(monkeypatch)


def test_in_a_terminal_it_is_printed(capsys):
    train()
    assert "training: 100%" in capsys.readouterr().err


def test_in_a_notebook_it_is_html_that_ends_full(shown, capsys):
    train()
    assert all(set(bundle) == {"text/plain", "text/html"} for bundle in shown)
    assert '<progress value="0" max="3"' in shown[0]["text/html"]
    assert '<progress value="3" max="3"' in shown[-1]["text/html"]
    assert re.search(r"training: 3/3 \[.*loss 0\.\d+, best 0\.\d+\]", shown[-1]["text/plain"])
    assert capsys.readouterr().err == ""


def test_it_can_be_switched_off(shown):
    train(progress=False)
    assert shown == []
