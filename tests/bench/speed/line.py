"""One goal: what was asked, what was measured, in how many rounds."""
import dataclasses
import statistics


# Of a time with one of these nobody knows whether it is right: no goal is met by it.
DISTRUSTED = ("SUSPECT", "IMPOSSIBLE", "INTERRUPTED")
# Beside the flags: the first call ended with LAUNCH_WAITED, which asks to call again. No doubt; how many is told.
REPEATED = "repeated"


@dataclasses.dataclass
class Line:
    """`samples` holds one figure for each round; their median, or the worst, is held against `bound`."""

    name: str
    what: str               # In words: what is compared with what.
    op: str                 # "<=" or ">=".
    bound: float
    unit: str = ""
    samples: list = dataclasses.field(default_factory=list)
    extra: dict = dataclasses.field(default_factory=dict)  # The figures behind the samples.
    skipped: str = ""       # Why there is no figure. A skipped goal does not pass.
    informative: bool = False  # Stands beside the goals; cannot fail.
    worst: bool = False     # The worst sample counts, not their median.
    flags: list = dataclasses.field(default_factory=list)  # Of the measurements behind the samples, each once.
    each: int = 1           # How many times what a sample tells of was done: 25 faults, 100 results.

    @property
    def rounds(self):
        return len(self.samples) * self.each

    @property
    def measured(self):
        if not self.samples:
            return None
        if self.worst:
            return max(self.samples) if self.op == "<=" else min(self.samples)
        return statistics.median(self.samples)

    @property
    def verdict(self):
        if self.measured is None:
            return "----" if self.informative else "FAIL"
        if self.informative:
            return "info"
        met = self.measured <= self.bound if self.op == "<=" else self.measured >= self.bound
        return "PASS" if met and not set(self.flags) & set(DISTRUSTED) else "FAIL"

    def add(self, sample, flags=(), **extra):
        self.samples.append(sample)
        self.count_repeated(list(flags).count(REPEATED))
        self.flags += [flag for flag in dict.fromkeys(flags) if flag not in (REPEATED, *self.flags)]
        for key, value in extra.items():
            self.extra.setdefault(key, []).append(value)

    def count_repeated(self, times):
        """One figure, over all samples."""
        if times:
            self.extra[REPEATED] = [self.extra.get(REPEATED, [0])[0] + times]

    def text(self):
        goal = "" if self.informative else f"{self.op} {self.bound:g}{self.unit}"
        measured = self.skipped if self.measured is None else f"{self.measured:.3g}{self.unit}"
        flags = f" [{', '.join(self.flags)}]" if self.flags else ""
        return f"{self.verdict}  {self.name:<34} {goal:>12}  {measured:>10}  {self.rounds:3}  {self.what}{flags}"

    @classmethod
    def from_json(cls, data):
        return cls(**{field.name: data[field.name] for field in dataclasses.fields(cls) if field.name in data})

    def as_json(self):
        return {**dataclasses.asdict(self), "measured": self.measured, "verdict": self.verdict}
