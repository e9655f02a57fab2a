"""As much HTTP/2 as it takes to begin calls and never to end them: no library does that.

with Connection(port) as connection:
    call = connection.begin("/gridclock.v1.KernelService/Run")
    connection.send(call, unfinished(4 << 20))
    connection.status(call, seconds=10)  # (4, "the client was too slow to send: ...")
"""
import contextlib
import re
import socket
import struct
import threading

DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER_TABLE_SIZE, INITIAL_WINDOW_SIZE = 1, 4  # Settings.
END_STREAM, END_HEADERS, ACK = 1, 4, 1
FRAME = 16384  # The most that a peer takes unless it says otherwise.
WINDOW = 65535  # So too.


def message(payload, compressed=False):
    """As gRPC sends it."""
    return struct.pack(">BI", compressed, len(payload)) + payload


def unfinished(size):
    """A gRPC message of `size` bytes without its last one."""
    return struct.pack(">BI", 0, size) + bytes(size - 1)


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def number(value):
    """Of HPACK, behind one bit."""
    if value < 127:
        return bytes([value])
    value, digits = value - 127, []
    while value > 127:
        value, digits = value >> 7, [*digits, value & 127 | 128]
    return bytes([127, *digits, value])


def literal(name, value):
    """A header that neither side is to remember."""
    return b"\0" + b"".join(number(len(text)) + text.encode() for text in (name, value))


def headers(stream, block, flags=0):
    """A block of headers, in as many frames as it takes."""
    parts = [block[at:at + FRAME] for at in range(0, len(block), FRAME)]
    kinds = [(HEADERS, flags), *[(CONTINUATION, 0)] * (len(parts) - 1)]
    kinds[-1] = kinds[-1][0], kinds[-1][1] | END_HEADERS
    return b"".join(frame(kind, flag, stream, part) for (kind, flag), part in zip(kinds, parts))


def header_in(block, name):
    """A header's value as a server writes that is to remember none: two texts behind their lengths."""
    found = re.search(re.escape(name) + b"(.)", block, re.DOTALL)
    return block[found.end():found.end() + found[1][0]].decode() if found else None


class Connection:
    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._windows, self._of_new = {0: WINDOW}, WINDOW
        self._moved, self._writing = threading.Condition(), threading.Lock()
        self._next, self.ended = 1, False
        self._statuses = {}
        remember_no_headers = struct.pack(">HI", HEADER_TABLE_SIZE, 0)
        self._write(PREFACE + frame(SETTINGS, 0, 0, remember_no_headers))
        self._reader = threading.Thread(target=self._read_to_the_end, daemon=True)
        self._reader.start()

    def begin(self, path, token=None, more=()):
        """The number of a new call, its headers sent, `more` pairs of a name and a value too."""
        fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "x", "te": "trailers",
                  "content-type": "application/grpc"}
        if token is not None:
            fields["authorization"] = f"Bearer {token}"
        with self._moved:
            call, self._next = self._next, self._next + 2
            self._windows[call] = self._of_new
        self._write(headers(call, b"".join(literal(*field) for field in (*fields.items(), *more))))
        return call

    def write_ahead(self, payload):
        """Data of the call that comes next, before its headers."""
        self._windows[0] -= len(payload)
        self._write(frame(DATA, 0, self._next, payload))

    def send(self, call, payload, patience=1):
        """How much the server took; it is given `patience` seconds for each window that it opens."""
        sent = 0
        while sent < len(payload):
            with self._moved:
                opened = self._moved.wait_for(lambda: self._over(call) or self._room(call) > 0, patience)
                if self._over(call) or not opened:
                    return sent
                size = min(self._room(call), FRAME, len(payload) - sent)
                self._windows[0] -= size
                self._windows[call] -= size
            self._write(frame(DATA, 0, call, payload[sent:sent + size]))
            sent += size
        return sent

    def end(self, call):
        """What was sent is all."""
        self._write(frame(DATA, END_STREAM, call))

    def status(self, call, seconds):
        """(gRPC's code, its text) once the call has ended, (None, text) if it ended without, None if it goes on."""
        with self._moved:
            self._moved.wait_for(lambda: self._over(call), seconds)
            return self._statuses.get(call, (None, "the connection ended") if self.ended else None)

    def ended_calls(self):
        """In the order in which they ended."""
        with self._moved:
            return list(self._statuses)

    def _over(self, call):
        return self.ended or call in self._statuses

    def _room(self, call):
        return min(self._windows[0], self._windows[call])

    def _write(self, data):
        with self._writing, contextlib.suppress(OSError):  # Who reads sees the end, behind what came before it.
            self._socket.sendall(data)

    def _read(self, size):
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def _read_to_the_end(self):
        try:
            self._socket.settimeout(None)
            while True:
                self._read_frame()
        except (OSError, EOFError):
            with self._moved:
                self.ended = True
                self._moved.notify_all()

    def _read_frame(self):
        head = self._read(9)
        kind, flags, stream = struct.unpack(">BBI", head[3:])
        payload = self._read(int.from_bytes(head[:3], "big"))
        if kind == SETTINGS and not flags & ACK:
            self._set(payload)
            self._write(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self._write(frame(PING, ACK, 0, payload))
        elif kind == DATA and payload:
            self._write(b"".join(frame(WINDOW_UPDATE, 0, at, struct.pack(">I", len(payload))) for at in (0, stream)))
        elif kind == HEADERS and flags & END_STREAM:
            code = header_in(payload, b"grpc-status")
            self._set_status(stream, (int(code), header_in(payload, b"grpc-message") or ""))
        elif kind == RST_STREAM:
            self._set_status(stream, (None, f"reset with {int.from_bytes(payload, 'big')}"))
        elif kind == WINDOW_UPDATE:
            with self._moved:
                self._windows[stream] = self._windows.get(stream, 0) + int.from_bytes(payload, "big")
                self._moved.notify_all()

    def _set_status(self, call, status):
        with self._moved:
            self._statuses.setdefault(call, status)
            self._moved.notify_all()

    def _set(self, payload):
        for name, value in struct.iter_unpack(">HI", payload):
            if name == INITIAL_WINDOW_SIZE:
                with self._moved:
                    for call in self._windows:
                        self._windows[call] += (value - self._of_new) if call else 0
                    self._of_new = value
                    self._moved.notify_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # The server was first.
        self._reader.join()
        self._socket.close()
