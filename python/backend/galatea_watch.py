"""Ends a worker whose server has gone, also while it executes.

A server that stops asks its workers to end. One that is killed only closes its sockets, which a worker sees when it
reads the next message; until then a thread looks who the worker's parent is.
"""

import os
import signal
import threading
import time

# So often somebody looks, in seconds.
_LOOK = 1.0
# So long an execution, or `finalize`, may go on without a server.
_PATIENCE = 5.0

_parent = os.getppid()


def is_orphan():
    """Whether the process that started this one has ended."""
    return os.getppid() != _parent


def end_all():
    """Ends this process and all of its group, where the group is its own."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def begin():
    """Starts the thread."""
    threading.Thread(target=_watch, name="watch", daemon=True).start()


def _watch():
    while not is_orphan():
        time.sleep(_LOOK)
    time.sleep(_PATIENCE)
    end_all()
