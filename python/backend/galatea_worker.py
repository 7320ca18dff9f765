"""A worker: the process of one instance of a Python model.

It is started with one end of a socket as its standard input, and gets the socket for what it says through that one. The
first message says what model it is for; then it executes what it is sent until it is told to stop or the server has
gone.
"""

import asyncio
import gc
import importlib
import inspect
import json
import os
import socket
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# Before anything that may print.
import galatea_descriptor  # noqa: E402

# The files of the backend are found under any name of the folder that a model changes to.
import galatea_bls  # noqa: E402
import galatea_calls  # noqa: E402
import galatea_channel as wire  # noqa: E402
import galatea_watch as watch  # noqa: E402
import triton_python_backend_utils as utils  # noqa: E402
from galatea_requests import REQUEST_RELEASE_ALL, REQUEST_RELEASE_RESCHEDULE, InferenceResponse  # noqa: E402

# Calls in these files are not the model's.
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_IMPORTS = os.path.dirname(importlib.__file__) + os.sep


class _Refused(Exception):
    """What the worker itself finds wrong: its text is all that is told."""


def described(error):
    """An exception as Triton writes it: its type, its text and where it was raised, innermost call first."""
    if type(error) is _Refused:
        return str(error)
    try:
        text = str(error) or "<EMPTY MESSAGE>"
    except Exception:
        text = "<its text cannot be made>"
    text = f"{type(error).__name__}: {text}"
    places = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith((_HERE, _IMPORTS, "<frozen importlib")):
            places.append(f"  {code.co_filename}({trace.tb_lineno}): {code.co_name}\n")
        trace = trace.tb_next
    if places:
        text += "\n\nAt:\n" + "".join(reversed(places))
    return text


class Worker:
    """A model and the way to the server."""

    def __init__(self, channel):
        self._channel = channel
        self._model = None
        self._decoupled = False
        self._name = ""
        self._loop = None
        # Whether the model is one of the program's, which may ask for another process.
        self._ends = False

    def start(self, message):
        """Loads the model; whether there is something to execute from now on."""
        start = json.loads(bytes(message[1:]))
        try:
            kind = _load(start)
            if start["complete"]:
                config = _completed(kind, start)
                self._channel.send(bytes([wire.CONFIG]), config.encode())
                return False
            self._channel.attach(start["flags"], start["prefix"], start["least"])
            if "calls" in start:
                galatea_bls.attach(start["calls"]["flags"], start["calls"]["prefix"], start["least"])
            galatea_calls.instance = start["args"]["model_instance_name"]
            galatea_calls.loading = True
            config = json.loads(start["args"]["model_config"])
            self._channel.outputs = [output["name"] for output in config.get("output", ())]
            states = config.get("sequence_batching", {}).get("state", ())
            self._channel.states = [state["output_name"] for state in states]
            wire.declare_outputs([*self._channel.outputs, *self._channel.states], self._tell_unknown)
            self._decoupled = utils.using_decoupled_model_transaction_policy(config)
            self._channel.decoupled = self._decoupled
            self._name = start["args"]["model_instance_name"]
            self._model = kind()
            self._ends = _is_own(start["path"])
            if hasattr(self._model, "initialize"):
                self._model.initialize(start["args"])
            if not callable(getattr(self._model, "execute", None)):
                raise _Refused(f"'{kind.__name__}' of model '{start['args']['model_name']}' has no function 'execute'")
        except BaseException as error:
            self._channel.send(bytes([wire.FAILED]), described(error).encode("utf-8", "replace"))
            return False
        galatea_calls.loading = False
        # What is there now stays, and is not looked through again and again while requests come.
        gc.collect()
        gc.freeze()
        self._channel.send(bytes([wire.READY]))
        return True

    def _tell_unknown(self, name):
        known = ", ".join(f"'{known}'" for known in self._channel.outputs) or "none"
        utils.Logger.log_warn(
            f"output '{name}' is left out of responses: the model's configuration has no such output, but {known}"
        )

    def run(self):
        """Executes until there is nothing more."""
        while True:
            message = self._channel.receive()
            if message is None or message[0] == wire.STOP:
                break
            self._execute(message)
            del message
            self._channel.blocks.release_held()
            if self._channel.ending:
                break
        if hasattr(self._model, "finalize"):
            self._model.finalize()

    def _execute(self, message):
        execution, block = self._channel.execution_of(message)
        failure = None
        work = []
        try:
            work.append(self._channel.read_requests(message))
            del message
            self._call(execution, work, block)
            return
        except BaseException as error:
            # What would end a program ends only the execution here.
            failure = described(error)
        work.clear()
        message = None
        self._look_whether_it_ends()
        self._channel.send_failure(execution, failure, block)

    def _look_whether_it_ends(self):
        """Before the answers, which say so: what the server has sent meanwhile is for the next process."""
        if self._ends and self._model.must_end:
            self._channel.ending = True

    def _call(self, execution, work, block):
        """Executes the requests in `work` and sends what comes of them."""
        result = self._model.execute(work[0])
        self._look_whether_it_ends()
        if type(result) is not list and inspect.iscoroutine(result):
            if self._decoupled:
                self._schedule(result, list(work[0]))
                result = None
            else:
                result = self._background().call(result)
        if self._decoupled and result is not None:
            raise _Refused(
                f"Python model '{self._name}' is using the decoupled mode and the execute function must return None."
            )
        if self._decoupled:
            self._rescheduled(work)
            work.clear()
            self._channel.send_done(execution, block)
            return
        if result is None:
            result = [None] * len(work[0])
        self._check(work[0], result)
        work.append(result)
        del result
        self._channel.send_responses(execution, work, block)

    def _rescheduled(self, work):
        for request in work[0]:
            if request._release_flags == REQUEST_RELEASE_RESCHEDULE:
                self._channel.send_reschedule(request._number)

    def _check(self, requests, result):
        """Refuses what is no list of responses, and waits for senders whose requests have none in it."""
        if not isinstance(result, list):
            raise _Refused(
                f"Expected a list in the execute return, found type '{type(result)}'."
            )
        if len(result) != len(requests):
            raise _Refused(
                "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
                f"InferenceRequest(s) size is:{len(requests)}, and InferenceResponse(s) size is:{len(result)}\n"
            )
        for request, response in zip(requests, result):
            if type(response) is InferenceResponse and request._release_flags == REQUEST_RELEASE_ALL:
                continue
            if request._release_flags == REQUEST_RELEASE_RESCHEDULE:
                if response is not None:
                    raise _Refused(
                        "Expected a None object in the execute function return list for reschduled request."
                    )
            elif response is None:
                _wait_for_sender(request)
            elif not isinstance(response, InferenceResponse):
                raise _Refused(
                    "Expected an 'InferenceResponse' object in the execute function return list, found type "
                    f"'{type(response)}'."
                )

    def _background(self):
        if self._loop is None:
            self._loop = _Loop()
        return self._loop

    def _schedule(self, coroutine, requests):
        """Lets a coroutine run beside further executions."""

        def ended(future):
            _, error = future.result()
            if error is None:
                return
            text = described(error)
            utils.Logger.log_error(f"a coroutine of execute raised: {text}")
            response = InferenceResponse(error=utils.TritonError(text))
            for request in requests:
                sender = request.get_response_sender()
                if not sender.closed:
                    sender.send(response, utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

        self._background().begin(coroutine).add_done_callback(ended)


def _wait_for_sender(request):
    """Until the request, which `execute` has given no response, has its last one from its sender."""
    if request._sender is None:
        raise _Refused(
            "Expected an 'InferenceResponse' object in the execute function return list, found type "
            "'<class 'NoneType'>'."
        )
    sender = request._sender
    done = threading.Event()
    sender.on_final = done.set
    if not sender.closed:
        done.wait()


class _Loop:
    """A thread that runs coroutines."""

    def __init__(self):
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="coroutines", daemon=True).start()

    def begin(self, coroutine):
        """Starts a coroutine; the future of its result and of what it has raised."""
        return asyncio.run_coroutine_threadsafe(_ended(coroutine), self._loop)

    def call(self, coroutine):
        """Runs a coroutine to its end; its result."""
        result, error = self.begin(coroutine).result()
        if error is not None:
            raise error
        return result


async def _ended(coroutine):
    """The result of a coroutine and what it has raised, which must not end the loop."""
    try:
        return await coroutine, None
    except BaseException as error:
        return None, error


def _is_own(path):
    return os.path.dirname(path) + os.sep == _HERE


def _load(start):
    """The class of the model."""
    path = start["path"]
    folder = os.path.dirname(path)
    stem = os.path.splitext(os.path.basename(path))[0]
    # A model that is part of the program lies beside this file and has no version.
    if _is_own(path):
        return importlib.import_module(stem).TritonPythonModel
    parent = os.path.dirname(folder)
    utils._model_dir = folder
    # Modules in the folder that the server was started in come first, as in Triton's processes.
    if "" not in sys.path:
        sys.path.insert(0, "")
    for one in (folder, parent):
        if one not in sys.path:
            sys.path.append(one)
    # As Triton does: the version's folder is the package, so that `from . import` finds its neighbours.
    module = importlib.import_module(f"{os.path.basename(folder)}.{stem}")
    return module.TritonPythonModel


def _completed(kind, start):
    """The configuration as `auto_complete_config` completes it, as text of JSON; empty where the model has none. Of a
    file that a model of the program runs: what `describe` says of it."""
    if "model_file" in start:
        return kind.describe(json.loads(start["model_config"]), start["model_file"])
    if not hasattr(kind, "auto_complete_config"):
        return ""
    given = utils.ModelConfig(json.loads(start["model_config"]))
    completed = kind.auto_complete_config(given)
    if not isinstance(completed, utils.ModelConfig):
        name = given.as_dict().get("name", "")
        raise _Refused(f"auto_complete_config function in model '{name}' must return a valid pb.ModelConfig object.")
    return json.dumps(completed.as_dict())


def main():
    """Takes the socket from standard input, so that nothing that the model reads or starts has it."""
    # The worker's own arguments are nothing for models.
    sys.argv = [""]
    link = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    link.setblocking(True)
    _, handed, _, _ = socket.recv_fds(link, 1, 1)
    if not handed:
        sys.exit("the server has handed over no socket for what the worker says")
    os.set_inheritable(handed[0], False)
    channel = wire.Channel(link, socket.socket(fileno=handed[0]))
    if galatea_descriptor.CALLS is not None:
        galatea_calls.attach(socket.socket(fileno=galatea_descriptor.CALLS))
    channel.send(bytes([wire.HELLO, wire.VERSION]))
    message = channel.receive()
    if message is None or message[0] != wire.START:
        return
    watch.begin()
    worker = Worker(channel)
    try:
        if worker.start(message):
            worker.run()
    finally:
        # Nobody else ends what the model has started.
        if watch.is_orphan():
            watch.end_all()


if __name__ == "__main__":
    main()
