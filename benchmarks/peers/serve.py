"""What the peers of ``beside_peers.py`` have in common: they answer controls with a loss and its gradient.

A peer is a process. Its argument is a JSON object with the paths and sizes of the scene. It first prints a line with
its name; then it reads a line for each episode, the controls of all intervals, shape (intervals, channels), and
answers with one line of JSON. A peer that simulates several worlds at once gets controls of shape (worlds, intervals,
channels), too, and requests for a loss without its gradient.
"""

import contextlib
import json
import sys
import time
from collections.abc import Callable

import numpy as np

__all__ = ["serve"]


def serve(prepare: Callable[[dict], tuple[str, Callable[..., tuple], Callable[[], np.ndarray]]]) -> None:
    """Answer until standard input ends.

    Args:
        prepare: Function of the options that returns the name of the peer, the function that runs an episode, and the
            function that returns the path of the last episode. An episode takes controls and returns the loss and its
            gradient, of the shape of the controls; its processor time is reported. With several worlds, the loss is
            their sum, and ``gradient=False`` asks for no gradient. A path has the shape (intervals, n).
    """
    answers = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):  # programs announce themselves
        name, episode, path = prepare(json.loads(sys.argv[1]))
        print(json.dumps({"peer": name}), file=answers, flush=True)
        for line in sys.stdin:
            request = json.loads(line)
            controls = np.array(request["controls"], dtype=np.float64)
            begun = time.process_time()
            loss, gradient = episode(controls) if request["gradient"] else episode(controls, gradient=False)
            seconds = time.process_time() - begun
            answer = {"loss": float(loss), "gradient": np.asarray(gradient, dtype=np.float64).tolist()}
            if request["path"]:
                answer["path"] = np.asarray(path(), dtype=np.float64).tolist()
            print(json.dumps(answer | {"seconds": seconds}), file=answers, flush=True)
