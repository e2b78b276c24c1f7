"""A TCP proxy that can do what networks do: `python -m tests.chaos.proxy HOST PORT`.

It says on which port it listens, and obeys the lines of its standard input, each with an echo:

| line | from then on |
| --- | --- |
| `open` | bytes pass |
| `freeze` | nothing passes, and nobody is told: a black hole |
| `mute` | what the server says is held back: half-open |
| `cut` | all connections are broken off; new ones pass |
| `refuse` | all connections are broken off, and new ones at once |
| `lead HOST PORT` | all connections are broken off; new ones lead there |
| `swallow N` | the answers to the next N commits are dropped, their connections broken off |
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import subprocess
import sys
from pathlib import Path

# The CommandComplete message of a COMMIT.
COMMITTED = b"C\x00\x00\x00\x0bCOMMIT\x00"
RESET = struct.pack("ii", 1, 0)


class Proxy:
    """Pumps bytes, or does not."""

    def __init__(self, host: str, port: int) -> None:
        self._target: tuple[str, int] = host, port
        self._writers: set[asyncio.StreamWriter] = set()
        self._state = "open"
        self._to_swallow = 0
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    async def obey(self, line: str) -> None:
        """Take an order."""
        verb, _, argument = line.partition(" ")
        if verb == "swallow":
            self._to_swallow = int(argument)
        elif verb == "lead":
            host, _, port = argument.partition(" ")
            self._target = host, int(port)
            self._break_off()
        else:
            self._state = "open" if verb == "cut" else verb
            if verb in ("cut", "refuse"):
                self._break_off()
        async with self._changed:
            self._changed.notify_all()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect a client."""
        self._writers.add(writer)
        if self._state == "refuse":
            self._abort(writer)
            return
        try:
            back_reader, back_writer = await asyncio.open_connection(*self._target)
        except OSError:
            self._abort(writer)
            return
        self._writers.add(back_writer)
        pair = (writer, back_writer)
        await asyncio.gather(
            self._pump(reader, back_writer, pair, "freeze"),
            self._pump(back_reader, writer, pair, "freeze", "mute"),
        )

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        pair: tuple[asyncio.StreamWriter, ...],
        *blocking: str,
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                if self._state in blocking:
                    async with self._changed:
                        await self._changed.wait_for(lambda: self._state not in blocking)
                if self._to_swallow and "mute" in blocking and COMMITTED in data:
                    self._to_swallow -= 1
                    break
                writer.write(data)
                await writer.drain()
        for each in pair:
            self._abort(each)

    def _break_off(self) -> None:
        for writer in list(self._writers):
            self._abort(writer)

    def _abort(self, writer: asyncio.StreamWriter) -> None:
        if writer in self._writers:
            self._writers.discard(writer)
            with contextlib.suppress(OSError, AttributeError):
                sock = writer.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.transport.abort()


async def serve(host: str, port: int) -> None:
    """Serve until the standard input closes."""
    proxy = Proxy(host, port)
    server = await asyncio.start_server(proxy.accept, "0.0.0.0", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := (await lines.readline()).decode().strip():
        await proxy.obey(line)
        print(line, flush=True)


class ProxyProcess:
    """The proxy, from the outside."""

    def __init__(self, host: str, port: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.proxy", host, str(port)],
            cwd=Path(__file__).resolve().parent.parent.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.port = int(self._read())

    def tell(self, line: str) -> None:
        """Have it obey, and return once it has."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        self._read()

    def close(self) -> None:
        """End it, and all that goes through it."""
        self._process.kill()
        self._process.communicate()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
