"""Something done again and again beside what is measured."""
import threading
import time


class Background(threading.Thread):
    """Takes a `turn` every `period` seconds for as long as its `with` block lasts; counts them."""

    def __init__(self, period):
        super().__init__(daemon=True)
        self.period, self.turns, self.stopped = period, 0, threading.Event()

    def turn(self):
        raise NotImplementedError

    def run(self):
        while not self.stopped.is_set():
            start = time.monotonic()
            self.turn()
            self.turns += 1
            self.stopped.wait(max(0, self.period - (time.monotonic() - start)))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.join()
