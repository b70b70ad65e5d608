"""Runs each task in a process of its own, so that one that dies is known.

    for task, result, died in run_each(function, tasks, processes=2): ...

`result` is the function's result; if it is None, `died` says how the process
ended.
"""

import multiprocessing
import multiprocessing.connection
import time


def _work(function, task, pipe):
    pipe.send(function(task))
    pipe.close()


def _ended(process, pipe):
    """(result, died) of a process whose pipe has something to say."""
    try:
        return pipe.recv(), None
    except EOFError:
        process.join()
        return None, f"exit {process.exitcode}"


def run_each(function, tasks, *, processes, seconds):
    """In the order in which they end; each gets at most so many seconds."""
    context = multiprocessing.get_context("fork")
    waiting = list(reversed(tasks))
    running = {}  # by pipe: (task, process, when it must have ended)
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                task = waiting.pop()
                here, there = context.Pipe(duplex=False)
                process = context.Process(target=_work, args=(function, task, there))
                process.start()
                there.close()
                running[here] = task, process, time.monotonic() + seconds
            for pipe in multiprocessing.connection.wait(list(running), timeout=1):
                task, process, _ = running.pop(pipe)
                yield task, *_ended(process, pipe)
                process.join()
            for pipe, (task, process, until) in list(running.items()):
                if time.monotonic() > until:
                    del running[pipe]
                    process.kill()
                    process.join()
                    yield task, None, f"no end in {seconds} s"
    finally:
        for _, process, _ in running.values():
            process.kill()
