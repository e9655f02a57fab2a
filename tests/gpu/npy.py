"""Files of .npy, and values for them, without numpy."""
import array
import ast
import pathlib

CODES = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "<u8": "Q", "<u2": "H", "|V2": "H"}


def save(path, values, shape, descr="<f4"):
    """Writes a .npy file of version 1.0."""
    shape = f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    data = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode()
    pathlib.Path(path).write_bytes(data + array.array(CODES[descr], values).tobytes())


def load(path):
    """(shape, values) of a .npy file."""
    data = pathlib.Path(path).read_bytes()
    length = int.from_bytes(data[8:10], "little")
    head = ast.literal_eval(data[10:10 + length].decode())
    values = array.array(CODES[head["descr"]])
    values.frombytes(data[10 + length:])
    return head["shape"], list(values)


def some(count, step=97):
    """Values of both signs that f32 and bf16 hold exactly."""
    return [((i * step + 13) % 64 - 32) / 16 for i in range(count)]


def bf16(value):
    """The bits of the nearest bfloat16, ties to even."""
    bits = int.from_bytes(array.array("f", [value]).tobytes(), "little")
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
