"""The dumbbell in SimPy as its documentation teaches it: a Store is the queue, a process serves it."""

import simpy
from simpy_dumbbell import main


class Link:
    """Store and forward: a drop-tail queue of packets, serialisation, then propagation as a process a packet."""

    def __init__(self, env, rate, delay_s, queue, out):
        self.env, self.rate, self.delay_s, self.queue, self.out = env, rate, delay_s, queue, out
        self.waiting = simpy.Store(env)
        self.sent = self.drops = 0
        env.process(self.serve())

    def send(self, packet):
        if len(self.waiting.items) < self.queue:
            self.waiting.put(packet)
        else:
            self.drops += 1

    def serve(self):
        while True:
            packet = yield self.waiting.get()
            yield self.env.timeout(packet.size * 8 / self.rate)
            self.sent += 1
            self.env.process(self.propagate(packet))

    def propagate(self, packet):
        yield self.env.timeout(self.delay_s)
        self.out(packet)


if __name__ == "__main__":
    main(Link)
