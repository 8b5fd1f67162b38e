"""The output of a notebook's cell."""

from types import SimpleNamespace

import pytest


def cell_of(monkeypatch) -> list[dict]:
    """Everything that is displayed from now on, one MIME bundle for each display and update."""
    display, shown = pytest.importorskip("IPython.display"), []

    def record(bundle, *, raw, display_id):
        assert raw
        assert display_id
        shown.append(bundle)
        return SimpleNamespace(update=lambda bundle, *, raw: shown.append(bundle))

    monkeypatch.setattr(display, "display", record)
    return shown
