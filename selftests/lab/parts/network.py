# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Wires between the machines of one run.

A network card of a machine is a unix stream to this process, or, where just
two cards share a link, to the other machine's qemu. In this process a switch
passes every frame on to the other cards of its link; it needs no rights on the
host's network and ends with the run.
"""

import selectors
import socket
import struct
import threading

from . import host

BUFFER = 1 << 20


def mac(instance, link):
    return f"52:54:00:00:{instance:02x}:{link:02x}"


def pair():
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
    return ends


class Switch(threading.Thread):
    """Floods the frames of a link; qemu puts each frame's length before it."""

    def __init__(self):
        super().__init__(daemon=True)
        self.selector = selectors.DefaultSelector()

    def plug(self, link, ends):
        for end in ends:
            others = [o for o in ends if o is not end]
            self.selector.register(end, selectors.EVENT_READ, (link, others, bytearray()))

    def run(self):
        while self.selector.get_map():
            for key, _ in self.selector.select():
                _, others, pending = key.data
                self.forward(key.fileobj, others, pending)

    def forward(self, end, others, pending):
        try:
            data = end.recv(BUFFER)
        except OSError:
            data = b""
        if not data:
            self.selector.unregister(end)
            end.close()
            return
        pending += data
        whole = whole_frames(pending)
        if whole:
            self.send(bytes(pending[:whole]), others)
            del pending[:whole]

    @staticmethod
    def send(frames, others):
        for other in others:
            try:
                other.sendall(frames)
            except OSError:
                pass


def whole_frames(data):
    """How many bytes at the start of data are complete frames."""
    offset = 0
    while offset + 4 <= len(data):
        length = struct.unpack_from(">I", data, offset)[0]
        if offset + 4 + length > len(data):
            break
        offset += 4 + length
    return offset


class Wires:
    """cards[node] is a list of (socket, MAC address) for its qemu to take."""

    def __init__(self, nodes, instances, links):
        self.cards = [[] for _ in range(nodes)]
        self.switch = Switch()
        if nodes == 1:
            return
        if nodes * instances > 255 or links > 64:
            raise host.LabError("too many instances or links for the lab's addresses")
        for link in range(links):
            self.wire(link, nodes, instances)
        self.switch.start()

    def wire(self, link, nodes, instances):
        count = nodes * instances
        if count == 2:
            theirs = pair()
        else:
            pairs = [pair() for _ in range(count)]
            self.switch.plug(link, [ours for ours, _ in pairs])
            theirs = [end for _, end in pairs]
        for instance, end in enumerate(theirs):
            self.cards[instance // instances].append((end, mac(instance, link)))

    def handed_over(self):
        """The machines have their copies: let a machine's end be its own."""
        for cards in self.cards:
            for end, _ in cards:
                end.close()
