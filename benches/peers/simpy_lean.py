"""The dumbbell in the fastest SimPy we know: bare Timeouts with callbacks, no process on a packet's path."""

from collections import deque

from simpy.events import Timeout
from simpy_dumbbell import main


class Link:
    """Store and forward: a drop-tail queue of packets, serialisation, propagation; one Timeout for each."""

    def __init__(self, env, rate, delay_s, queue, out):
        self.env, self.delay_s, self.queue, self.out = env, delay_s, queue, out
        self.seconds_per_byte = 8 / rate
        self.waiting = deque()
        self.busy = False
        self.sent = self.drops = 0

    def send(self, packet):
        if not self.busy:
            self.transmit(packet)
        elif len(self.waiting) < self.queue:
            self.waiting.append(packet)
        else:
            self.drops += 1

    def transmit(self, packet):
        self.busy = True
        Timeout(self.env, packet.size * self.seconds_per_byte, packet).callbacks.append(self.transmitted)

    def transmitted(self, event):
        self.sent += 1
        Timeout(self.env, self.delay_s, event.value).callbacks.append(self.arrived)
        if self.waiting:
            self.transmit(self.waiting.popleft())
        else:
            self.busy = False

    def arrived(self, event):
        self.out(event.value)


if __name__ == "__main__":
    main(Link)
