#!/usr/bin/env python3
"""Writes docs/benchmarks.md from the measurements in tests/bench/results/.

usage: report.py [--check]    --check: fail where the page is not what the measurements say

Measurements of too few rounds are refused, lines of too few samples too, and the page names every group of
goals that has no measurement and every goal that has no figure under its name, words and bound of today: so it
cannot pass for a page of figures that it does not hold.
"""
import dataclasses
import fnmatch
import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from bench import GPU_GROUPS, GPU_LEAST_ROUNDS, GROUPS, LEAST_ROUNDS  # noqa: E402: beside this file.
from bench import definition, goals_of  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/benchmarks.md"
RESULTS = ROOT / "tests/bench/results"
GELU = "gpu.gelu.table."  # Rows of a table of their own.
# Lines that have fewer samples than their file has rounds: by patterns, how many they have at least.
FEWER = {
    "memory.*": 3,              # In 0.1.0, and peaks of memory hardly vary.
    "metrics.instructions": 3,  # Older ones.
    "cpu.catalog.*": 3,         # Each is of several calls.
    "build.*": 1,               # Minutes each; the groups that follow are one run by nature,
    "submissions.*": 1,         # and what they tell is the worst of it, or a count.
    "gpu.fault.*": 1,
    "gpu.suspect*": 1,
    "gpu.fresh.*": 1,
    "gpu.exact.*": 1,
    "gpu.limits.*": 1,
}

HEAD = """# Speed

<!-- Written by tests/bench/report.py from tests/bench/results; do not edit. -->

`./dev bench` measures these goals and `./dev bench --check` fails where one is missed. Ratios are taken
within one run, from interleaved rounds; the figure is the median of the rounds, of `gpu.truth` and
`gpu.slope` the worst of them. Absolute figures are
those of one machine on one day and are shown only to explain the ratios.

- *echo*: an empty gRPC callback service in C++, 64 bytes, over TCP on loopback.
- *hop*: half the round trip of one byte over two pipes between processes pinned to different CPUs.
- *raw TCP*: one process writes, another reads, 1 MiB at a time, between buffers already in memory.
- *copy*, of a GPU: `cudaMemcpyAsync` from device to device of as many bytes as the kernel moves.
- Times of GPUs, PyTorch's too, are from the GPU's own records (CUPTI), from the first start to the last
  end of a call; `./dev gpu-bench` measures them, `docs/gpus.md` says how.
- Times of bulk are those of the bytes: what the server spent between the last byte in and the first
  byte out (queue, kernel, checksum) is taken off. All bytes are compared, or their checksum is.
- Times of `gpu.stream` are those of whole calls, with the copies to the GPU and from it. *gRPC alone*
  (`grpc_seconds`) moves the same chunks both ways on one stream between two processes.
- Where a row of `gpu.catalog`, `gpu.square`, `gpu.vector_add`, `gpu.gelu` or `gpu.softmax` has `ours_slope_us`, both sides
  were timed by slopes of CUDA graphs too, and the ratio is the lesser of both methods: PyTorch's records of kernels of very
  many short blocks are too long (docs/timing.md). `floor_us` is what the copy's rate, or the units' by the data sheet, would take.
- Where a product may take all power, PyTorch's calls go on for half a second before they are timed, ours until
  their clock stands still; `ours_mhz` and `torch_mhz` are the clocks behind the last one.
- `cpu.catalog`: times of launches on the CPU beside those of calls from Python, with as many threads; numpy with more
  than one where its BLAS has them. What the peers free they find again, as ours has its memory. Products of f16 of 4096
  and 8192 are left out: PyTorch takes two seconds a call of 1024, and so minutes.
- *compiled*: what torch.compile made of the same expression takes, in the run of the row; `x.compiled` is its ratio.
- `gpu.catalog.adamw.beside_compiled` is of 200 tensors: torch.compile takes a minute for these, and has not done with 1,000 after five.
- `gpu.variants`: whether the default of a kernel is the fastest of its variants. `gpu.limits`: of rows that missed a goal, how
  much of each part of the GPU the kernel takes by ncu, and what its warps wait for.
- `gpu.usual.torch.do_bench`: `triton.testing.do_bench` writes 256 MB of zeros before each call, so it stands over our device
  time with `cold_dirty`; all others stand over our device time in a hot cache. A row whose words say that this one did so
  too is older: there the two differ by the state of the cache as well.
- *ncu*, of `gpu.ncu`: Nsight Compute's `gpu__time_duration` of a worker by itself (`--bare`), clocks and
  caches left alone. `worst` is the worst round. Kernels of milliseconds have three rounds: a worker by itself makes their
  inputs on the host.
- Behind the verdict stand the flags of our own measurements (docs/timing.md): with SUSPECT, IMPOSSIBLE or
  INTERRUPTED a goal is missed whatever the figure. Figures from before 2026-11-23 were kept without theirs.
- A row that says FAIL is a goal that is missed. It stays listed: a goal is not lowered to what was reached.
- A row that says info has no bound. Those of `gpu.usual`, of the table of `gelu` and of torch.compile beside `gpu.square`,
  `gpu.gelu` and `gpu.softmax` must be there all the same: `--check` fails where one is not measured.
- What limits `unary.*.rate`: of the CPU time of a call with 64 in flight (times of threads in `/proc`, 40,000
  calls, two CPUs shared by all) the echo's client takes 1.0, its server 1.0; of a `Run` of `empty` the client takes 1.6,
  the server 2.5, the worker 0.4. The link to the worker is not it: with orders held back to be sent in
  batches the rate was the same. gRPC 1.51 finishes what another thread ended by waking
  one of its own: 1.0 context switches a call in the server against the echo's 0.3. Server threads under
  `SCHED_BATCH` gave 1.1 to 1.3 times the rate, and milliseconds of delay beside busy CPUs: left out. By valgrind the
  server took 138,000 instructions a call on 2026-11-23, the echo's 54,000 (115,000 on 2026-11-26, `metrics.instructions`).
  Asynchronous completion queues with one thread in place of gRPC's callbacks took 115,000 on that first day, and gave 0.74 to 0.87 of the rate: who answers alone sends each
  answer alone. A call's last word on the thread that hears of it, where gRPC 1.51 wakes a further one for calls with a
  stream of requests, saves a tenth of the server's CPU time and gave 1.05 times the rate; it takes a copy of gRPC's
  own handler: left out. That and tcmalloc in place of glibc's malloc, whose locks are met by threads that free what others took, gave
  0.46 to 0.52 on a Xeon where the server as it is had 0.41 to 0.49 (2026-11-28, both preloaded, not kept), and without gRPC's executor no
  more. Where client, server and worker have CPUs of their own the rate is reached: see the run with 16.
- The run with 16 CPUs is of a virtual machine in which a page fault takes 2 us, a copy between two shared mappings runs at
  6 to 7 GB/s, and a thread that sleeps is woken late: a call of the bare echo takes 170 us though the hop takes 6.
  `unary.*.p50` is missed there (21.5 and 30.5 hops; 22.3 and 29.6 since workers look for 1 ms for a lone order): the goal is in hops, and one takes
  5 us there, 30 on the Xeon of two CPUs, where it is met. In a run of 2026-11-29 (not kept) `empty` took 215 us and the echo 122; with server,
  worker and client on two of the 16 CPUs 132 and 57: the rest is gRPC's, which hands each event of a call to another of its eight threads, on a CPU that slept.
  By its own phases a call has been read and admitted 34 us after it came, is sent at once, and is launched 14 us later.
- On a Xeon of two CPUs that wakes late too (a hop takes 30 us) `unary.*.p50` was 6.7 and 9.2 hops (not kept), as a worker looked for the next order for 300 us, and a client that was
  back later found it asleep, and so was later still. It looks for 1 ms where orders come one by one since: 2.4 and 3.0 hops.
- `compile.small` was missed there (1.49) until 2026-11-26 because its peer compiled nothing: beside a GPU's driver NVRTC keeps a
  cache, and finds a source there that differs in comments alone. Told to compile (`--no-cache`, as our compiler tells it) it
  takes 26 to 28 ms in a process of one's own, where it had taken 10 to 17, and 27 to 41 in our child.
- `gpu.fault.*.late` was 0.18 s beside two of six faults until 2026-11-26: the worker of the other GPU had asked the driver how that
  GPU is, the driver answered once it had ended the process that had failed, and a call waited for that. It waits no more.
- `gpu.ncu` is a median: each round has processes, and so memory, of its own. Of 16,000,000 elements single rounds of nine were at
  1.08 and 1.16 of what is allowed, where Nsight Compute's own medians lie between 44.6 and 45.1 us.
- `gpu.slope` takes device time before and after each slope, which is held against the mean of the two. Where these are further
  apart than half of what is allowed the clock moved between them, and the round is taken anew, three times in all; a clock that
  moves in each misses the goal. Rows of other words counted what lay outside of both, which may be as far apart as is allowed.
- `gpu.suspect.kernels` was missed in four of five runs on an H100 until 2026-11-28, by one or two of 288: a product of 8192 cubed in f16,
  whose clock falls under it, so that both methods, turn by turn behind the samples, agreed on another time than the samples had (in
  `gpu.variants` one in bf16 is too); and twice one `adamw` of a list by `isolated`. The clock is measured since, and
  what it explains is NOISY (docs/timing.md). Of `square`, of which the 100 runs are, none was ever flagged.
- `gpu.catalog.gain` counted variants that are no default until 702f9b75 (1.83). It is computed from kept rows since: those of 7368a742, and those of 702f9b75 where there are such.
- `gpu.variants.layernorm.8192x8192`: rows in shared memory are 4 % faster than `streamed` on an H100, and 3 % slower on an H200.
- `gpu.variants.sum.of_all.268435456`: CUB was 2 % faster than `two_pass` on an H200 (0.9799, FAIL below) until 2026-11-29, as a single warp added up the states of the
  2,048 parts. A block does since: 0.984, where CUB took as long as before; 0.986 in a run that is not kept, where it took 1.7 % less. CUB is 1.5 % faster still; `two_pass` stays the default, as its sums
  have the same bits on every GPU.
- What limits `gpu.variants.rmsnorm.8192x1024`: registers are the faster choice of 65536 rows, by 2.5 % and more, and the slower one of
  8192 by 2 to 3 % on an H200, on an H100 by 0.3 % (not kept). A variant could look at the number of rows and do either,
  but a variant's name says what it does. Why `online` is the faster one of few rows was not found.
- What limits products of `cpu.catalog`: PyTorch has MKL and oneDNN, numpy OpenBLAS. On the CPU of 2026-11-26, by Intel, MKL's f32
  was 1.1 to 1.3 times as fast as ours (twice by two threads at 512, f16 1.3 to 1.7 times), and bf16, which widened to f32 then, seven times. Ours of bf16 go by the matrix units (AMX) since: on a
  Xeon that has them (16 CPUs, 702f9b75, while a GPU was measured beside it) by one thread 1.24 and 1.27 of PyTorch's rate at 4096 and 8192, 0.96 at 1024 and 0.69 at 512, where
  packing is a larger part, by 16 threads and with bias and gelu more than it throughout; f32 and f16 have not changed but for small matrices. On a Zen 5
  (2026-11-28) PyTorch's f32 takes twice as long as ours, OpenBLAS's 0.94 to 0.96 of ours from 4096 on and as long below, and bf16 by dot
  products (AVX512_BF16) 0.97 to 1.06 times as fast as oneDNN's; of 1024 cubed a tenth of the time goes to packing.
- Rows of `cpu.catalog` with two threads were up to twice too long, ours or the peers', before 2026-11-28: OpenBLAS's threads look for more work for
  20 ms after a call, and took a CPU from whoever was measured next. Each has 0.1 s of rest before it since. That may be what spread
  `kernel.matmul.f32.*.all_threads`, too. OpenBLAS 0.3.21 takes a Xeon that is newer for a CPU without AVX, and a fifth of its rate: it is told the level since 2026-11-29.
- `sum` and `mean` of rows (0.81 to 0.98 of PyTorch's rate), `max` and `argmax` of long rows (0.80 to 0.95) and `softmax` of 8192 and 131,072
  columns (0.86 to 0.98) are missed on that Zen 5, where sums of columns are two to 3.7 times as fast as PyTorch's. On a Zen 3 with two processors that
  others used too, the same programs' sum of 2^28 f32 by one thread had 0.755 of PyTorch's rate, and has 1.19 since blocks of rows that are
  read at once lie beside each other and are asked for four lines early; by two threads rows of sum and mean have 0.91 to 2.2 (not kept).
  Blocks of `max` and `argmax` do since too (02b7f25b); of all these a Zen 5 has no figures yet, and what limited them there was not found. `softmax` has not changed: what limits it there was not found.
- Rows of `cpu.catalog` are of three CPUs with two threads at most. Met are, of those that have a goal, 318 of 397 on one by Intel with AMX and 480 MiB of
  last cache (2026-11-26, b46064e; of 48 measured again at 870e63d 39), 124 of 151 on the Zen 5 (6197e26e) and on the Xeon
  below 314 of 327 and, of products, `cdist`, `gelu` and `pow`, 82 of 106. Of the 79 missed on the first, 75 are met on one of the other two; that those are other
  CPUs may be part of it. The others are products of 4096 and 8192 beside numpy's. What the first missed beside products, what changed since, and the figures of the Xeon:
  `silu` of 2^26 and 2^28 (0.62 to 0.74; with one division, 870e63d, 0.78 to 0.96), asked for two pages early (6b35a2fd): 1.11 to 3.6.
  `cumsum` beside PyTorch (0.73 to 0.84), fewer additions and stores past the caches (98b74b88): 2.2 to 3.4. `transpose` (0.46 to 0.79), stores past the
  caches, then four rows at a time (870e63d, 046d8536): 2.2 to 4.0. `sgd` (0.964), whose lists' pointers are read once (30eda7a6): 1.05. `max`
  (0.81 to 0.93), four blocks at once (6004b5de, 02b7f25b): 0.99 to 1.39. `sum.columns` beside numpy (0.735 of 8192 x 1024, 0.93 and 0.97 of
  longer ones), read at eight places at once (5a100071): 0.89, 1.28 and 1.43. `argmax` of 8192 x 1024 beside numpy (0.87): 0.84, and 1.10 on the Zen 5.
  `cdist` (0.84): 0.70 and 0.76, and 2.7 and 2.8 on the Zen 5.
  `pow` of a fraction (0.84 to 0.88 of PyTorch's rate at 2^26 and 2^28), asked for early since as `silu` is: 1.65 to 2.1.
- On a Zen 3 (AVX2, one thread, 2026-11-28, not kept) 190 of 222 such rows were met. Casts to f8e4m3 and f8e5m2 had 0.5 and 0.3 of PyTorch's rate, as
  the compiler made no vectors of them; they have 2.1 and 1.25 since. `transpose` of 8192 x 1024 and 65536 x 1024 had 0.83, and takes 0.77 and 0.62 of that time since; `sgd`, `adam` and `adamw`
  of 1,000 tensors 0.87 to 0.9, products of f32 0.92 to 0.97, and what goes element by element over a million elements, all of it in the last cache,
  0.8 to 1.1 from run to run (`square` and `relu` 0.9, and 1.1 to 1.3 since memory is asked for once for each line).
- On a Xeon with AVX-512 and no AMX (two CPUs, 260 MiB of last cache, 2026-11-28, f4906b80) 314 of 327 rows are met and two have no goal, all of `sgd`, `adam`, `adamw`,
  `transpose`, rows and casts to f8 among them. Missed are tensors of 4 to 32 MiB, all in the last cache (an i32 of a million cast to f32
  0.87 of numpy's rate, `max`, `argmax` and `sum` of 8192 x 1024 0.84 to 0.95), products of 512 and 1024 in f32 and f16 beside PyTorch's (0.85 to 0.96; 0.77 of
  512 by two threads), and `cdist` (0.69 to 0.73), whose peer goes by a product and is further off. All rows missed are `NOISY`, and the rounds of some lie on both sides of the goal, but not
  of `argmax` and `sum.columns` of 8192 x 1024. What limits these tensors was not found.
- On that Xeon products of f32 of 512 to 8192 have 0.90 to 0.96 of PyTorch's rate, which has MKL, by one thread and 0.79 to 0.82 by two (2cc773f0, 2026-11-29), of f16
  0.86 to 0.97, of bf16 by dot products 0.96 to 1.02, and with bias and gelu 0.92 to 3. By perf nine tenths of the time of 2048 cubed are in the small kernel
  that keeps 24 sums in registers; strips of b half as long, which the first cache has room for, were no faster. 1,024 products of 64 x 64 were packed (0.64 of numpy's rate
  and 0.73 of PyTorch's, not kept) and are read where they lie since: 0.90 and 1.03 by one thread, 2.5 and 0.92 by two. `cdist` by a product, as PyTorch's goes
  (`cdist.matmul`), has 1.20 and 1.24 of its rate; the default, `direct`, 0.70 and 0.76: it takes two instructions where a product takes one,
  and is the default as the other loses the digits of points that are near each other. Beside numpy's products those of 4096 and 8192 have 0.938 and 0.928 by one thread, of 1024, 4096
  and 8192 0.841, 0.796 and 0.916 by two; `matmul.16x512x512` 0.903 of PyTorch's rate by two. Four rows that are met at f4906b80 are missed here, by one thread `1024x1024.f16` (0.993, 0.898) and by two
  `1024x1024` beside both peers (1.166, 0.821; 1.052, 0.841) and `512x512.bf16` (0.995, 0.961): the two runs are of two days of a machine that others use too. Why two threads gain less than MKL's was not found.
- `gpu.catalog.matmul_bias_gelu.1024x1024` was missed (0.952) until 2026-11-28: with 32 MiB of memory to split products in, cuBLASLt names a
  tile of 64 x 128 for this one, which it does not split (57 us); without memory one of 128 x 64 (54 us, H200), as PyTorch gets with its 1 MiB.
  So what is not split is asked for again without memory, of f32, where that was seen.
- The CPU of 2026-11-26 has 480 MiB of last cache: what the goals of `kernel.sum` and `kernel.gelu` call memory is that
  cache, for tensors of 256 MiB. `kernel.gelu` was missed there (1.88 and 1.63); since then its input is asked for early (6b35a2fd), and on an EPYC
  (2026-11-28) it has 1.02 and 1.05. An estimate of the reciprocal in place of the division of `gelu` took longer there.
- `bulk.*.1G` was missed on 2026-11-26 (0.54 to 0.58): the server's reading thread is busy all the time, and spent a quarter of it in the copy
  from gRPC's slices to the arena. Operands of more than 32 MiB are stored past the caches since, server and client: such a copy takes 0.07 s
  for 1 GiB in place of 0.13, and the calls took 8 to 24 % less beside the same calls without, in interleaved rounds.
- What limits `kernel.sum`: memory. Of a copy's bytes/s a loop that only reads has 0.83 to 0.89 in the runs of 2026-11-21 and 22, 0.69 to 0.71 on the CPU
  of 2026-11-26, 0.75 to 0.78 on an EPYC (2026-11-28, b1c3b9ad) and 0.72 to 0.73 on the Xeon: a CPU has so many reads under way, and stores past the caches are not among them.
  So a goal of 0.8 leaves little to lose, or cannot be met; of that loop's the sums have 0.89 to 1.00, 1.02 to 1.06, 1.00 to 1.04 and 0.90 to 0.97 (`reader`, `of_reader`).
  In six processes on that EPYC, not all kept, a sum of rows took 0.66 of a copy's bytes/s in two and 0.80 to 0.82 in the others, each alike in all its
  rounds, and the flat one 0.76 to 0.89. Since then (83809416) the ranges that are read at once lie beside each other: of that there are no figures of an EPYC.
  On 16 CPUs of a Xeon (2026-11-29, e2965e2c) that loop has 0.91 to 0.95, and the goal is met by the flat sum and that of rows (0.88, 0.92); the sum of columns has 0.736, 0.805 of
  the loop's: there memory is not what limits it. Parts an odd number of rows apart, and sums half a page from the terms, brought no more than runs on two CPUs differ by.
- What limits `kernel.matmul.f32.*.all_threads` is not known: of 512 it was 1.6, 2.0, 0.95 and 1.04 times OpenBLAS in four
  runs, each alike in all its rounds; of 1024 it was 1.7 in the first, then 0.99 to 1.07.
- What limits `unary.*.p50` on two CPUs: a call of the echo wakes a client and a server, one of ours a worker too, and
  all share the two: rounds of one run spread from -0.1 to 8.8 hops on 2026-11-22, from 1.4 to 3.8 on 2026-11-26.
- `metrics.cost` was missed by time on 2026-11-22 (0.976) in rounds that spread from 0.85 to 1.32: times tell no 2 % apart there.
  The goal is `metrics.instructions` since, and the times stand beside it.
- What limits `gpu.module.square`: a guest's memory is its own, so 4 MB are copied to it and 4 MB back. Copied by several threads at
  once, and what arrives while the rest still comes, it was 1.12 instead of 1.18; by the phases of the calls the thread that receives
  lost 0.32 ms to those copies, and since another makes them it is 1.07. Of values that the GPU makes and keeps, with nothing to copy,
  it is 1.1 to 1.17 of 0.6 to 0.9 ms: a tenth of a millisecond of each call.
- `gpu.fresh` was missed by `matmul` (1.09 % on 2026-11-26, then 0.69 % on an H100 and 0.66 % on an H200) while samples were taken for some
  milliseconds, then 50: under this product the clock goes to and fro by half a per cent five times a second, whatever the driver tells
  (docs/timing.md). They are taken for a second since 2026-11-28; between, the run with all of `gpu_timing` of that day took them for 0.4 s, and
  missed `gpu.fresh.16000000` by one worker of twenty; the other rows spread as much over 0.4 s as over one. Of 500 samples, which squares of 2^28 elements take in 0.3 s, three workers of twenty were
  0.9 % off in that run, and none in the next. It is not where the memory lies: in each of six processes a product took the same time on eight
  triples of buffers and on twelve within one of 2 GiB.
- All GPU groups of 7368a742 were measured within half an hour on a host of four H200 and 64 CPUs: timing, truth, ncu (measured anew since), neighbour one after
  the other on the first GPU, what begins with `gpu_kernels` and `gpu_catalog` on the second, compute-sanitizer and the suite on the others beside them, which kept
  the CPUs busy (`load_at_start`), and behind these `gpu_bulk` and `gpu_faults`. `gpu_lessons` of that run was half NOISY, and so it was on 2026-11-29 on a quiet host (not kept), so the older one is kept. A launch costs 3.7 us there, as on one of two hosts before, and 2.3 us on the other: of `square` of 1000 PyTorch's
  events read 37 and 24 times our device time, `isolated` 5.7 and 3.8 times.
- Missed for `SUSPECT` alone, with figures that reach the goal: `gpu.catalog.matmul.8192x8192.f16.torch` (1.005; measured again on that day,
  0.2.0-gpu-catalog-rows.json, 1.044 without that flag), `gpu.catalog.matmul.cublaslt_tf32.8192x8192.torch` (1.054, again 1.050, with the flag both times) and
  `gpu.catalog.gain` (1.828), which has the flags of all its rows; of defaults alone (1.819, 2026-11-29) it has it not. Both products are `THROTTLED`: the power
  cap changes the clock, which may be why two methods disagree (docs/timing.md; it was not found). One of the three samples in f16 is 0.918. Behind the three samples in f16 ours was 1530, 1515 and 1365 MHz, PyTorch's 1515, 1635 and 1920
  (again: 1515 to 1560, 1455 to 1470); in tf32 1485 to 1635 and 1485 to 1575 (1530 to 1635, 1530 to 1605). By ncu
  (`gpu.limits`) the product in f16 takes 98 % of what its first caches can do, the one in tf32 93 % of what its SMs can: both are near what a part of the GPU can do; that the power cap limits them is what THROTTLED says.
- What limits `gpu.catalog.pow.of_a_fraction.*.copy` (0.69 of a copy's rate at 2^26, 0.71 at 2^28): arithmetic. A logarithm and an exponential in pairs of
  f32 are some 66 instructions of an element, by the rate at which they are issued. By ncu (`gpu.limits`) the SMs reach 74 to 75 % of what they can do and DRAM 59 to 62 %; 86 % of the warps that fit are there, in 25 % of
  cycles a scheduler has none that can go on, and what they wait for most is their turn (8.1 cycles an instruction). PyTorch's takes 1.16 and 1.15 times as long.
- torch.compile's `layernorm` takes less than ours of 8192 x 1024, 65536 x 1024 and 8192 x 8192 (0.88, 0.96 and 0.90 of our time; 1.28 of 1024 x 131,072), its
  `softmax` of 8192 and of 65536 rows of 1024 (0.977 and 0.984; 1.16 and 1.36 of the longer ones). Why is not known. These have no bound.
- What keeps `gpu.catalog.gain` from 2: from 2^26 elements on PyTorch's element-wise kernels in f32 run at memory's pace too, but for casts and `pow` of a fraction, so that
  they count with 1,000 elements and some with a million (1.30 to 1.54 by kernel); and products are a library's on both sides (`matmul` 1.01).
- `gpu.exact.cdist` may be off by twice as much as PyTorch's direct form, whose largest error is 1.0e-7 of the largest distance, 1.8 roundings of f32: so by
  some two roundings more, as terms may be summed in another order. Ours has 1.455 times that error, PyTorch's form by a product 219 times ours.
- `gpu.suspect.kernels` had five of 288 at 71ccbe89, four `adamw` of 200 tensors and a `foreach_mul`, each a copy of the list's table and a kernel, of which
  `isolated` read 0 to 1.8 us more than `device_time` where an empty kernel's is 3.9 more. What a launch costs may pass while its copy waits, so it
  may be in such a time or not since (docs/timing.md): none of 288 at 7368a742.
- `gpu.slope.blocks` has kernels of 2^10 to 2^13 blocks since 2026-11-28, when device times of 2^11 blocks or more came to be by serial records.
  Its worst is `pow` of 2^26, whose slope is 2.5 % shorter (177.2 us) than its device time in every round and run, by 4.5 to 4.9 us. Of 2^28 it is shorter
  by 3.7 to 4.6, so it is no share of the work: perhaps its many instructions, which a launch right behind itself finds in the caches. That was not tried.
"""


def figure(value):
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def span(samples):
    if len(samples) < 4:
        return f"{figure(min(samples))} .. {figure(max(samples))}" if samples else ""
    quartiles = statistics.quantiles(samples, n=4)
    return f"{figure(quartiles[0])} .. {figure(quartiles[2])}"


def median_us(line, *keys):
    """Of the first of them that it has; None without."""
    found = [statistics.median(line["extra"][key]) for key in keys if line["extra"].get(key)]
    return float(found[0]) if found else None


def times(line):
    """Ours, the peer's and what physics would allow, where a goal is of such times."""
    medians = [median_us(line, "ours_us"), median_us(line, "torch_us", "theirs_us"), median_us(line, "floor_us")]
    return "" if medians[0] is None else " / ".join("-" if us is None else figure(us) for us in medians)


def compiled(line, lines):
    """What torch.compile's takes, beside the row with PyTorch's own."""
    base, is_peer, _ = line["name"].rpartition(".torch")
    beside = lines.get(f"{base}.compiled") if is_peer else None
    us = beside and median_us(beside, "compiled_us")
    return "" if us is None else figure(us)


def row(line, lines):
    wanted = "" if line["informative"] else f"{line['op']} {line['bound']:g}{line['unit']}"
    measured = line["skipped"] if line["measured"] is None else figure(float(line["measured"])) + line["unit"]
    verdict = " ".join([line["verdict"], *line.get("flags", [])])  # Older measurements did not keep them.
    return (f"| `{line['name']}` | {line['what']} | {wanted} | {measured} | {span(line['samples'])} | "
            f"{times(line)} | {compiled(line, lines)} | {len(line['samples'])} | {verdict} |")


def behind(line):
    """The medians of the figures that the samples were made of."""
    medians = [f"{key} {figure(float(statistics.median(values)))}" for key, values in line["extra"].items()
               if values and all(isinstance(v, (int, float)) for v in values)]
    return f"- `{line['name']}`: {', '.join(medians)}" if medians else None


def gelu_table(lines):
    """A launch for each operation beside one for all."""
    table = [line for line in lines if line["name"].startswith(GELU)]
    if not table:
        return []
    rows = [f"| `{line['name'].removeprefix(GELU)}` | {median_us(line, 'launches'):g} | "
            f"{figure(median_us(line, 'microseconds'))} | {figure(float(line['measured']))} |"
            for line in table if line["samples"]]
    return ["", "`gelu` of 2^28 f32, its variants and PyTorch's:", "",
            "| variant | launches | us | time over the default's |", "| --- | --- | --- | --- |", *rows]


def cpus(data):
    """Older measurements did not keep which; of those of a GPU how many there were is told with it alone."""
    cache = data.get("last_cache_bytes")
    told = [data.get("cpu"), f"{cache / 2**20:g} MiB of last cache" if cache else ""]
    which = ", ".join(filter(None, told))
    if which:
        return f"{data['cpus']} CPUs ({which})"
    return "" if data.get("device") else f"{data['cpus']} CPUs"


def machine(data):
    libraries = ", ".join(f"{name} {version}" for name, version in data["libraries"].items())
    peers = [f"{name} {data[key]}" for key, name in (("numpy", "numpy"), ("pytorch", "PyTorch")) if key in data]
    device = data.get("device")
    told = [device, cpus(data), "" if device else libraries, ", ".join(peers)]
    return "; ".join(filter(None, told))


def section(data):
    lines = [f"## {data['date']}, commit {data['commit']}", "", f"{machine(data)}.", "",
             "| goal | what | wanted | median | quartiles | ours / peer / floor, us | compiled, us | rounds | |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    by_name = {line["name"]: line for line in data["lines"]}
    goals = [line for line in data["lines"] if not line["name"].startswith(GELU)]
    lines += [row(line, by_name) for line in goals] + gelu_table(data["lines"])
    lines += ["", "Behind them, medians:", ""] + [b for b in map(behind, goals) if b]
    return "\n".join(lines) + "\n"


def without_figure(group, measured):
    """The names of the group's goals of which no measurement has one."""
    known = {definition(line) for data in measured for line in data["lines"] if line["samples"]}
    return [goal.name for goal in goals_of(group) if definition(dataclasses.asdict(goal)) not in known]


def measured_groups(data):
    """Those of which some rows alone were asked for too, which `groups` does not name."""
    return {*data["groups"], *(line.get("group") for line in data["lines"] if line["samples"])}


def unmeasured(measured):
    known = set().union(*map(measured_groups, measured))
    groups = {group: group in known for group in (*GROUPS, *GPU_GROUPS)}
    missing = [group for group, is_measured in groups.items() if not is_measured]
    told = [f"There are no figures yet of these groups of goals: {', '.join(missing)}."] if missing else []
    names = {group: without_figure(group, measured) for group, is_measured in groups.items() if is_measured}
    if any(names.values()):
        told += ["Of measured groups these goals have no figure, or only one of a goal that had other words or another bound:",
                 "\n".join(f"- {group}: {', '.join(f'`{name}`' for name in of_group)}"
                           for group, of_group in names.items() if of_group)]
    return ["\n\n".join(["## Not measured", *told]) + "\n"] if told else []


def least_samples(name, least):
    return next((few for pattern, few in FEWER.items() if fnmatch.fnmatch(name, pattern)), least)


def check(name, data):
    """Raises ValueError where a measurement does not count."""
    least = GPU_LEAST_ROUNDS if set(data["groups"]) <= set(GPU_GROUPS) else LEAST_ROUNDS
    if data["rounds"] < least:
        raise ValueError(f"{name}: want at least {least} rounds, it has {data['rounds']}: measure again")
    for line in data["lines"]:
        wanted, got = least_samples(line["name"], least), len(line["samples"])
        if 0 < got < wanted:
            raise ValueError(f"{name}: {line['name']}: want at least {wanted} samples, it has {got}: measure again")


def page():
    """Raises ValueError where a measurement does not count."""
    measured = []
    for path in sorted(RESULTS.glob("*.json"), reverse=True):  # Of one day the later version first.
        data = json.loads(path.read_text())
        check(path.name, data)
        measured.append(data)
    measured.sort(key=lambda data: (data["date"], data.get("time", "")), reverse=True)
    return "\n".join([HEAD, *unmeasured(measured), *map(section, measured)])


def main():
    try:
        wanted = page()
    except ValueError as error:
        print(error)
        return 1
    if "--check" in sys.argv[1:]:
        same = PAGE.exists() and PAGE.read_text() == wanted
        print("docs/benchmarks.md is what the measurements say" if same else
              "docs/benchmarks.md is not what the measurements say: run tests/bench/report.py")
        return 0 if same else 1
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
