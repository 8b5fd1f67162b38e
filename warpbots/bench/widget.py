"""A bench in a notebook: a widget of anywidget, which JupyterLab, Colab, VS Code and marimo show."""

import atexit
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpbots.bench.server import client_module
from warpbots.notebook_cells import in_notebook
from warpbots.view.color_reduction import png_of
from warpbots.view.notebook import is_static

if TYPE_CHECKING:
    from anywidget import AnyWidget

    from warpbots.bench.bench import Bench

__all__ = ["show"]

_HERE = Path(__file__).parent
_WIDGET = "application/vnd.jupyter.widget-view+json"


def show(bench: "Bench") -> None:
    """Show a bench below the cell that runs: a widget, whose place in a stored notebook is taken by a picture.

    Viewers of notebooks do not fall back to a picture if the kernel of a widget is gone. Therefore the output becomes a
    picture as soon as JupyterLab has taken the widget out of it, or when the bench or the kernel ends. Without a
    notebook, and if the environment variable ``WARPBOTS_STATIC`` is set to anything but 0, the picture is all there is.

    Raises:
        ImportError: anywidget is not installed.
    """
    from IPython.display import display

    still = is_static() or not in_notebook()
    if still:
        display(_picture(bench), raw=True)
        return

    def keep_picture() -> None:
        handle.update(_picture(bench), raw=True)

    widget = _widget_of(bench, keep_picture)
    bundle = _picture(bench) | {_WIDGET: {"version_major": 2, "version_minor": 1, "model_id": widget.model_id}}
    handle = display(bundle, raw=True, display_id=True)
    bench.at_end(keep_picture)
    atexit.register(bench.close)


def _picture(bench: "Bench") -> dict:
    """The current state as a PNG, and a line of text."""
    return {"image/png": png_of(bench.picture()), "text/plain": repr(bench)}


def _widget_of(bench: "Bench", taken_out: Callable[[], None]) -> "AnyWidget":
    """A widget that shows a bench; every view of it is a browser of its own.

    Args:
        bench: The bench.
        taken_out: A function that is called when a view stands beside its output, no longer in it.
    """
    try:
        import anywidget
    except ImportError as fault:
        raise ImportError('a bench in a notebook needs anywidget: pip install "warpbots[notebook]"') from fault

    class BenchWidget(anywidget.AnyWidget):
        """Messages carry the name of the view to which or from which they go."""

        _esm = client_module()
        _css = _HERE / "client.css"

    widget = BenchWidget()

    def hear(_: Any, content: dict, buffers: list) -> None:
        view, what = content["from"], content["what"]
        if what["type"] == "join":
            bench.conversation.join(view, lambda message, data: widget.send({"to": view, "what": message}, data))
        elif what["type"] == "leave":
            bench.conversation.leave(view)
        elif what["type"] == "taken out":
            taken_out()
        else:
            bench.conversation.hear(view, what)

    widget.on_msg(hear)
    return widget
