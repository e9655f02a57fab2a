"""What is read out of the outputs of tests: by GoogleTest, by Python's unittest, and the figures that some print."""
import collections
import dataclasses
import re

PASSED = re.compile(r"\[  PASSED  \] (\d+) tests?")
FAILED = re.compile(r"\[  FAILED  \] (\d+) tests?")
SKIPPED = re.compile(r"\[  SKIPPED \] (\d+) tests?")
BEGUN = re.compile(r"^\[ RUN      \] ", re.MULTILINE)
REASON = re.compile(r"Skipped\n(.+)")
UNITS_RUN = re.compile(r"Ran (\d+) tests?")
UNIT_BEGUN = re.compile(r"(\w+ \([\w.]+\))")
UNIT_SKIPPED = re.compile(r"""\.\.\. skipped (['"])(.+)\1$""")
UNIT_FAILED = re.compile(r"^(?:FAIL|ERROR): (\w+ \([\w.]+\))", re.MULTILINE)


def count(pattern, text):
    """The sum over all that is found."""
    return sum(int(next(group for group in found.groups() if group)) for found in pattern.finditer(text))


def found(passed, failed, skips, failures):
    return {"passed": passed, "failed": failed, "skipped": len(skips),
            "skips": [{"test": test, "reason": reason} for test, reason in skips], "failures": failures}


def has_ended(name, told):
    """Whether a test of GoogleTest did, and not with a failure."""
    return re.search(rf"\[ +(?:OK|SKIPPED) +\] {re.escape(name)}[, ]", told) is not None


# Of a process that a test starts and kills, whose output comes between the test's own.
OF_A_TEST = "DISABLED_"


def of_gtest(output):
    """What the program's tests came to. One that was under way when the program ended has failed."""
    before, *told = BEGUN.split(output)
    tests = [(text.split(maxsplit=1)[0], text) for text in told]
    skips = [(name, reason) for name, text in [("", before), *tests] for reason in REASON.findall(text)]
    failures = [name for name, _ in tests if OF_A_TEST not in name and not has_ended(name, output)]
    return {**found(count(PASSED, output), max(count(FAILED, output), len(failures)), skips, failures),
            "skipped": max(count(SKIPPED, output), len(skips))}


def of_unittest(output):
    name, skips = "", []
    for line in output.splitlines():
        if begun := UNIT_BEGUN.match(line):
            name = begun[1]
        if skipped := UNIT_SKIPPED.search(line):
            skips.append((name, skipped[2]))
    failures = list(dict.fromkeys(UNIT_FAILED.findall(output)))
    return found(max(0, count(UNITS_RUN, output) - len(failures) - len(skips)), len(failures), skips, failures)


def reasons_of(tests):
    return collections.Counter(skip["reason"] for skip in tests["skips"])


@dataclasses.dataclass(frozen=True)
class Figure:
    what: str
    goal: str
    measured: str
    good: bool
    rounds: int = 1


def fault(kind, rounds, answer, most_answer, following, most_following, wrong):
    good = wrong == "0" and float(answer) <= float(most_answer) and float(following) <= float(most_following)
    return Figure(f"fault {kind}", f"{most_answer} s, next {most_following} s, 0 wrong",
                  f"{answer} s, next {following} s, {wrong} wrong", good, int(rounds))


def others(kind, right, wrong, later):
    return Figure(f"calls beside {kind}", "0 wrong, 0.05 s later", f"{wrong} of {int(right) + int(wrong)} wrong, {later} s later",
                  wrong == "0" and float(later) <= 0.05, int(right) + int(wrong))


def placement(wanted, served, gpus, each):
    calls = sum(int(own) for own in re.findall(r" (\d+)(?:,|$)", each))
    return Figure(f"calls for '{wanted}'", "on all GPUs", f"on {served} of {gpus}: {each}",
                  served == gpus and "none" not in each, calls)


def neighbour(number, rounds, suspect, alone, samples, suspect_alone, results_alone):
    return Figure(f"late neighbour {number}/{rounds}", "SUSPECT, none without it",
                  f"{'SUSPECT' if suspect == '1' else 'not so'}, {alone} of {samples} alone, {suspect_alone} of "
                  f"{results_alone} without it", suspect == "1" and suspect_alone == "0" and 2 * int(alone) > int(samples))


def submissions(many, rate, mebibytes):
    """The bound is of 1,000, half of which take no more than the half before."""
    return Figure("submissions", "< 5 MiB more of 1,000", f"{mebibytes} MiB more, {rate} a second",
                  int(many) < 1000 or float(mebibytes) < 5, int(many))


def spun(span, device, off, allowed, verdict):
    return Figure(f"spin of {span} us by its timer", f"off {allowed} ns at most", f"{device} us, off {off} ns", verdict == "PASS")


def many_spun(span, device, off, allowed, _, verdict):
    return Figure(f"many blocks spin {span} us", f"off {allowed} ns at most", f"{device} us, off {off} ns", verdict == "PASS")


def stamped(name, device, stamps, off, low, high, verdict):
    return Figure(f"stamps of {name}", f"off {low} to {high} ns", f"{device} us, off {off} ns", verdict == "PASS")


FIGURES = (
    (r"^ +(\d+) +([\d.]+) +(-?\d+) +(\d+) +[\d.]+ +-?\d+ +[\d.]+ +-?\d+ +[\d.]+ +(PASS|FAIL)$", spun),
    (r"^many blocks: span (\d+) us, device time ([\d.]+) us, off (-?\d+) ns, allowed (\d+) ns, isolated (-?\d+) ns more "
     "(PASS|FAIL)$", many_spun),
    (r"^(\w+): device time ([\d.]+) us, stamps ([\d.]+) us, off (-?\d+) ns, allowed (-?\d+) to (-?\d+) ns (PASS|FAIL)$", stamped),
    (r"^(\w+) +(\d+) rounds +answer +([\d.]+) s \(goal (\d+)\) +next kernel +([\d.]+) s \(goal (\d+)\) +(\d+) wrong$", fault),
    (r"^calls on cuda:1 beside (\w+): (\d+) good, (\d+) bad, the slowest (-?[\d.]+) s later than without$", others),
    (r"^calls that name '(\w*)': on (\d+) of (\d+) GPUs: (.+)$", placement),
    (r"^late neighbour, round (\d+) of (\d+): SUSPECT ([01]), (\d+) of (\d+) samples alone; without it (\d+) of (\d+) SUSPECT$",
     neighbour),
    (r"(\d+) submissions, ([\d.]+) per second; the second half took (-?[\d.]+) MiB$", submissions),
)


def figures_of(output):
    return [figure(*told) for pattern, figure in FIGURES for told in re.findall(pattern, output, re.MULTILINE)]
