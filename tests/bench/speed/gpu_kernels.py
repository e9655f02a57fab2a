"""Kernels beside a copy of the same bytes and beside PyTorch, all by the GPU's own records."""
from speed import gpu
from speed.gpu import Torch, gpu_server, median_ns
from speed.line import Line

MANY = 1 << 28
# Kernel, tensors of its size that it moves, the least part of a copy's bandwidth.
STREAMS = (("square", 2, 0.92), ("vector_add", 3, 0.92), ("gelu", 2, 0.92))
COMPILED = ("square", "gelu")  # Beside torch.compile too, as softmax is.
# Shape, the least part of a copy's bandwidth; None: no goal.
SOFTMAX = (((8192, 1024), None), ((65536, 1024), 0.85), ((8192, 8192), 0.85), ((1024, 131072), None))
ALIKE = 0.98  # Of PyTorch's speed: the noise of two clocks.
GELU = ("unfused", "naive", "vec4")
GELU_PEERS = ("gelu_written_out", "gelu", "gelu_compiled")


def text(shape):
    return "x".join(map(str, shape))


def torch_line(name, what, **options):
    return Line(f"{name}.torch", f"{what}: PyTorch's time over ours", ">=", ALIKE, **options)


def copy_line(name, what, part, **options):
    return Line(f"{name}.copy", f"{what}: bytes per second over a copy's", ">=", part, **options)


def compiled_line(name, what, **options):
    return gpu.table_line(f"{name}.compiled", f"{what}: torch.compile's time over ours", ">=", **options)


def variant_line(variant):
    return gpu.table_line(f"gpu.gelu.table.{variant}", f"gelu.{variant} of 2^28 f32: its time over the default's")


def peer_line(op, **options):
    return gpu.table_line(f"gpu.gelu.table.torch.{op}", f"PyTorch, {op} of 2^28 f32: its time over our default's", **options)


def stream_words(kernel):
    return f"gpu.{kernel}", f"{kernel} of 2^28 f32"


def softmax_words(shape):
    return f"gpu.softmax.{text(shape)}", f"softmax of {text(shape)} f32"


def goals():
    rows = [*((stream_words(kernel), part) for kernel, _, part in STREAMS),
            *((softmax_words(shape), part) for shape, part in SOFTMAX)]
    compiled = [*map(stream_words, COMPILED), *(softmax_words(shape) for shape, _ in SOFTMAX)]
    return [*(line for words, part in rows
              for line in (*([copy_line(*words, part)] if part else []), torch_line(*words))),
            *(compiled_line(*words) for words in compiled), *map(variant_line, GELU), *map(peer_line, GELU_PEERS)]


class Figures:
    def __init__(self, torch):
        self.lines, self.torch = {}, torch

    def line(self, line):
        """The one of that name, from round to round."""
        return self.lines.setdefault(line.name, line)

    def beside(self, name, what, ours, slope, peer_op, shape):
        """The peer's time over ours, by device time and by graph slope: the lesser of both ratios."""
        if self.torch.missing:
            self.line(torch_line(name, what, skipped=self.torch.missing))
            return
        theirs, their_slope = self.torch.ns(peer_op, shape), self.torch.ns(peer_op, shape, how="slope")
        self.line(torch_line(name, what)).add(min(theirs / ours, their_slope / slope), (*ours.flags, *slope.flags),
                                              ours_us=ours / 1e3, torch_us=theirs / 1e3, ours_slope_us=slope / 1e3,
                                              torch_slope_us=their_slope / 1e3)

    def compiled(self, name, what, ours, peer_op, shape):
        if self.torch.missing:
            self.line(compiled_line(name, what, skipped=self.torch.missing))
            return
        theirs = self.torch.ns(peer_op, shape)
        self.line(compiled_line(name, what)).add(theirs / ours, ours.flags, ours_us=ours / 1e3, compiled_us=theirs / 1e3)

    def of_copy(self, name, what, moved, ours, part):
        """Bytes per second over those of a copy that moves as many."""
        if self.torch.missing:
            self.line(copy_line(name, what, part, skipped=self.torch.missing))
            return
        theirs = self.torch.ns("copy", [moved // 8])  # Of floats, each read and written.
        self.line(copy_line(name, what, part)).add(theirs / ours, ours.flags, gigabytes_per_second=moved / ours,
                                                   copy_gigabytes_per_second=moved / theirs)


def streams(config, server, figures):
    for kernel, tensors, part in STREAMS:
        words = "--shape", f"*={MANY}", "--dtype", "T=f32"
        ours = median_ns(config, server, kernel, *words)
        slope = median_ns(config, server, kernel, *words, method="back_to_back")
        name, what = stream_words(kernel)
        figures.of_copy(name, what, tensors * 4 * MANY, ours, part)
        figures.beside(name, what, ours, slope, kernel, [MANY])
        if kernel in COMPILED:
            figures.compiled(name, what, ours, f"{kernel}_compiled", [MANY])


def softmax(config, server, figures):
    for shape, part in SOFTMAX:
        name, what = softmax_words(shape)
        words = "--shape", f"*={shape[0]}", "--shape", f"N={shape[1]}", "--dtype", "T=f32"
        ours = median_ns(config, server, "softmax", *words)
        slope = median_ns(config, server, "softmax", *words, method="back_to_back")
        if part:
            figures.of_copy(name, what, 2 * 4 * shape[0] * shape[1], ours, part)
        figures.beside(name, what, ours, slope, "softmax", list(shape))
        figures.compiled(name, what, ours, "softmax_compiled", list(shape))


def gelu_table(config, server, figures):
    fused = median_ns(config, server, "gelu", "--shape", f"*={MANY}", "--dtype", "T=f32")
    for variant in GELU:
        ours = median_ns(config, server, f"gelu.{variant}", "--shape", f"*={MANY}", "--dtype", "T=f32")
        launches = gpu.launches_of_one(config, server, f"gelu.{variant}", "x=randn:f32[1000]")
        figures.line(variant_line(variant)).add(ours / fused, (*ours.flags, *fused.flags), microseconds=ours / 1e3,
                                                launches=launches)
    for op in GELU_PEERS:
        line = figures.line(peer_line(op, skipped=figures.torch.missing))
        if not figures.torch.missing:
            told = figures.torch.ask(op, [MANY])
            line.add(told["ns"] / fused, fused.flags, microseconds=told["ns"] / 1e3, launches=told["launches"])


def measure(config):
    with gpu_server(config) as server, Torch() as torch:
        gpu.describe(config, server, torch)
        figures = Figures(torch)
        for _ in range(config.rounds):
            streams(config, server, figures)
            softmax(config, server, figures)
            gelu_table(config, server, figures)
        return list(figures.lines.values())
