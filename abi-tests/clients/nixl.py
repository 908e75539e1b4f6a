"""Two agents of NIXL, each in a process of its own, that write and read each other's memory by its backend LIBFABRIC, tell
each other of it, and look at every byte. Says how many transfers were right."""
import os
import socket
import sys
import time

import numpy
from nixl_cu12._api import nixl_agent, nixl_agent_config

SIZES = 1, 4096, 100_000, 1 << 20, 16 << 20
PATIENCE = 60


def until(what, ready):
    give_up = time.monotonic() + PATIENCE
    while not (answer := ready()):
        if time.monotonic() > give_up:
            sys.exit(f"{what} did not come")
    return answer


class Side:
    def __init__(self, rank, line):
        self.name, self.other, self.line = f"side{rank}", f"side{1 - rank}", line
        self.agent = nixl_agent(self.name, nixl_agent_config(enable_prog_thread=True, backends=["LIBFABRIC"]))
        self.memory = numpy.zeros(max(SIZES), dtype=numpy.uint8)
        at = self.memory.ctypes.data
        self.agent.register_memory(self.agent.get_reg_descs([(at, self.memory.nbytes, 0, "")], "DRAM"))
        self.say(self.agent.get_agent_metadata())
        self.agent.add_remote_agent(self.heard())
        self.say(at.to_bytes(8, "little"))
        self.there = int.from_bytes(self.heard(), "little")

    def say(self, text):
        self.line.sendall(len(text).to_bytes(4, "little") + text)

    def heard(self):
        def exactly(count):
            if len(came := self.line.recv(count, socket.MSG_WAITALL)) < count:
                sys.exit("the other side has gone")
            return came
        return exactly(int.from_bytes(exactly(4), "little"))

    def transfer(self, how, size):
        """Has so many bytes written or read, and waits for the end of it."""
        here, there = (self.agent.get_xfer_descs([(at, size, 0)], "DRAM") for at in (self.memory.ctypes.data, self.there))
        handle = self.agent.initialize_xfer(how, here, there, self.other, f"{how} {size}".encode())
        state = self.agent.transfer(handle)
        while state == "PROC":
            state = self.agent.check_xfer_state(handle)
        self.agent.release_xfer_handle(handle)
        if state != "DONE":
            sys.exit(f"{how} of {size} bytes ended as {state}")

    def told(self):
        """What the other side says of a transfer that it has made."""
        return until("a notification", lambda: self.agent.get_new_notifs().get(self.other))


def pattern(size, seed):
    return (numpy.arange(size, dtype=numpy.uint64) * seed >> 3).astype(numpy.uint8)


def begin(side):
    """Writes what it has, then reads what the other side has put there."""
    for size in SIZES:
        side.memory[:size] = pattern(size, 7)
        side.transfer("WRITE", size)
        side.heard()
        side.transfer("READ", size)
        if not (side.memory[:size] == pattern(size, 11)).all():
            sys.exit(f"{size} bytes were not read as they are")
        side.say(b"checked")
        side.heard()
    print(f"{2 * len(SIZES)} transfers")


def answer(side):
    for size in SIZES:
        if (told := side.told()) != [f"WRITE {size}".encode()]:
            sys.exit(f"a write of {size} bytes was told as {told}")
        if not (side.memory[:size] == pattern(size, 7)).all():
            sys.exit(f"{size} bytes were not written as they were")
        side.memory[:size] = pattern(size, 11)
        side.say(b"read")
        if (told := side.told()) != [f"READ {size}".encode()]:
            sys.exit(f"a read of {size} bytes was told as {told}")
        side.heard()
        side.say(b"told")


def main():
    # Before any library is asked for anything, so that both sides begin alike.
    lines = socket.socketpair()
    child = os.fork()
    rank = 1 if child == 0 else 0
    lines[1 - rank].close()
    side = Side(rank, lines[rank])
    if rank == 1:
        return answer(side)
    begin(side)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit("the other side did not come to its end")


main()
