#!/usr/bin/env python3
"""Holds the .proto files of the contract against the last release and refuses what would break a
client: anything removed, renumbered, renamed, retyped, taken out of `reserved`, or streamed another
way. What is only added passes.

    tools/check_contract.py            compare; exit code 1 and one line for each break
    tools/check_contract.py --update   write the baseline anew (a release, or a break that is meant)

The baseline may change only together with a line of CHANGELOG.md that begins `wire:` and carries
the baseline's fingerprint, as `- wire: first release (contract 1a2b3c4d5e6f)`.

Needs protoc and Python's own library.
"""

import argparse
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONTRACT = ("gridclock/v1/*.proto", "google/rpc/*.proto")

# ---- Descriptors as plain values ----------------------------------------------------------------

TOKEN = re.compile(r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<punct>[{}:])|(?P<word>[^\s{}:"]+))')


def tokens(text):
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = TOKEN.match(text, at)
        at = match.end()
        yield match.group().strip()


def parse(words, nested=False):
    """A message of protobuf's text form: name -> list of values (str, or dict for a message)."""
    result = {}
    for name in words:
        if name == "}":
            return result
        sign = next(words)
        value = parse(words, True) if sign == "{" else next(words).strip('"')
        result.setdefault(name, []).append(value)
    if nested:
        raise ValueError("protoc's text ends within a message")
    return result


def one(message, name, default=""):
    return message.get(name, [default])[0]


def protoc(arguments, stdin=b""):
    found = shutil.which("protoc")
    if not found:
        raise SystemExit("check_contract: protoc is missing (Debian: protobuf-compiler)")
    run = subprocess.run([found, *arguments], input=stdin, capture_output=True, check=False)
    if run.returncode:
        raise SystemExit("check_contract: protoc: " + run.stderr.decode(errors="replace").strip())
    return run.stdout


def describe(proto):
    """The contract under the folder `proto`, as it is written into the baseline."""
    files = sorted(str(p.relative_to(proto)) for glob in CONTRACT for p in proto.glob(glob))
    with tempfile.NamedTemporaryFile(suffix=".pb") as out:
        protoc([f"-I{proto}", f"--descriptor_set_out={out.name}", *files])
        text = protoc(
            ["--decode=google.protobuf.FileDescriptorSet", "google/protobuf/descriptor.proto"],
            pathlib.Path(out.name).read_bytes(),
        ).decode()
    model = {"messages": {}, "enums": {}, "services": {}}
    for file in parse(tokens(text)).get("file", []):
        add_file(model, file)
    return model


def add_file(model, file):
    package = one(file, "package")
    for message in file.get("message_type", []):
        add_message(model, package, message)
    for enum in file.get("enum_type", []):
        add_enum(model, package, enum)
    for service in file.get("service", []):
        model["services"][f"{package}.{one(service, 'name')}"] = {
            one(method, "name"): {
                "takes": one(method, "input_type").lstrip("."),
                "returns": one(method, "output_type").lstrip("."),
                "client_streams": one(method, "client_streaming") == "true",
                "server_streams": one(method, "server_streaming") == "true",
            }
            for method in service.get("method", [])
        }


def add_message(model, scope, message):
    name = f"{scope}.{one(message, 'name')}"
    oneofs = [one(o, "name") for o in message.get("oneof_decl", [])]
    model["messages"][name] = {
        "fields": {one(f, "number"): field(f, oneofs) for f in message.get("field", [])},
        # The end of a message's range is not part of it; that of an enum's is.
        "reserved": reserved(message, 1),
        "reserved_names": sorted(message.get("reserved_name", [])),
    }
    for inner in message.get("nested_type", []):
        add_message(model, name, inner)
    for enum in message.get("enum_type", []):
        add_enum(model, name, enum)


def field(descriptor, oneofs):
    kind = one(descriptor, "type_name").lstrip(".") or one(descriptor, "type")[len("TYPE_") :].lower()
    result = {
        "name": one(descriptor, "name"),
        "type": kind,
        "label": one(descriptor, "label")[len("LABEL_") :].lower(),
    }
    if one(descriptor, "proto3_optional") == "true":
        result["label"] = "explicit"
    elif "oneof_index" in descriptor:
        result["oneof"] = oneofs[int(one(descriptor, "oneof_index"))]
    return result


def reserved(descriptor, beyond):
    return sorted(
        [int(one(r, "start", 0)), int(one(r, "end", 0)) - beyond]
        for r in descriptor.get("reserved_range", [])
    )


def add_enum(model, scope, enum):
    model["enums"][f"{scope}.{one(enum, 'name')}"] = {
        "values": {one(v, "number", "0"): one(v, "name") for v in enum.get("value", [])},
        "reserved": reserved(enum, 0),
        "reserved_names": sorted(enum.get("reserved_name", [])),
    }


# ---- Comparison ---------------------------------------------------------------------------------


def breaks(old, new):
    """One line for each way in which `new` breaks those who were built for `old`."""
    found = []
    for kind, compare in (
        ("messages", message_breaks),
        ("enums", enum_breaks),
        ("services", service_breaks),
    ):
        for name, before in old[kind].items():
            if name not in new[kind]:
                found.append(f"{name}: removed")
            else:
                found += [f"{name}: {why}" for why in compare(before, new[kind][name])]
    return found


def message_breaks(old, new):
    numbers = {f["name"]: number for number, f in new["fields"].items()}
    for number, before in old["fields"].items():
        name = before["name"]
        after = new["fields"].get(number)
        if numbers.get(name, number) != number:
            yield f"field '{name}' was {number}, is {numbers[name]}"
        elif after is None:
            yield f"field '{name}' = {number} removed"
        elif after["name"] != name:
            yield f"field {number} was '{name}', is '{after['name']}'"
        else:
            yield from field_breaks(before, after)
    added = [(n, f["name"]) for n, f in new["fields"].items() if n not in old["fields"]]
    yield from reservation_breaks(old, new, added, "field")


def field_breaks(old, new):
    for what, missing in (("type", ""), ("label", ""), ("oneof", "none")):
        before, after = old.get(what, missing), new.get(what, missing)
        if before != after:
            yield f"field '{old['name']}': {what} was {before}, is {after}"


def enum_breaks(old, new):
    for number, name in old["values"].items():
        if number not in new["values"]:
            yield f"value {name} = {number} removed or renumbered"
        elif new["values"][number] != name:
            yield f"value {number} was {name}, is {new['values'][number]}"
    added = [(n, name) for n, name in new["values"].items() if n not in old["values"]]
    yield from reservation_breaks(old, new, added, "value")


def reservation_breaks(old, new, added, what):
    for number, name in added:
        if any(first <= int(number) <= last for first, last in old["reserved"]):
            yield f"{what} '{name}' takes the reserved number {number}"
        if name in old["reserved_names"]:
            yield f"{what} '{name}' takes a reserved name"
    for first, last in old["reserved"]:
        if not any(f <= first and last <= l for f, l in new["reserved"]):
            yield f"numbers {first} to {last} are no longer reserved"
    for name in old["reserved_names"]:
        if name not in new["reserved_names"]:
            yield f"name '{name}' is no longer reserved"


def service_breaks(old, new):
    for name, before in old.items():
        if name not in new:
            yield f"rpc {name} removed"
            continue
        for what, value in before.items():
            if new[name][what] != value:
                yield f"rpc {name}: {what} was {value}, is {new[name][what]}"


# ---- The baseline -------------------------------------------------------------------------------


def fingerprint(model):
    return hashlib.sha256(json.dumps(model, sort_keys=True).encode()).hexdigest()[:12]


def readable(model):
    """JSON with one line for each field, so that a change can be reviewed."""
    text = json.dumps(model, indent=1)
    return re.sub(r"\{[^{}\[\]]*\}", lambda m: re.sub(r"\s+", " ", m[0]), text) + "\n"


def newest(folder):
    def version(path):
        return [int(n) for n in re.findall(r"\d+", path.stem)]

    found = sorted(folder.glob("v*.json"), key=version)
    return found[-1] if found else None


def changelog_names(changelog, mark):
    lines = changelog.read_text().splitlines() if changelog.exists() else []
    return any(re.match(r"\s*(?:[-*]\s+)?wire:", line) and mark in line for line in lines)


def check(proto, changelog):
    path = newest(proto / "baseline")
    if path is None:
        return [f"no baseline in {proto / 'baseline'}: run --update"]
    baseline = json.loads(path.read_text())
    mark = fingerprint(baseline)
    found = breaks(baseline, describe(proto))
    if not changelog_names(changelog, mark):
        found.append(
            f"{path.name} has changed: say so in {changelog.name}, in a line that begins with "
            f"'wire:' and holds '(contract {mark})'"
        )
    return found


def update(proto, version):
    model = describe(proto)
    folder = proto / "baseline"
    folder.mkdir(exist_ok=True)
    path = folder / f"v{version}.json"
    path.write_text(readable(model))
    print(f"wrote {path}; CHANGELOG.md needs a line such as:")
    print(f"- wire: WHAT CHANGED AND WHO MUST DO WHAT (contract {fingerprint(model)})")


def version_of(root):
    return re.search(r"project\(gridclock VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text())[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    parser.add_argument("--update", action="store_true", help="write the baseline of this version")
    options = parser.parse_args()
    proto = options.root / "proto"
    if options.update:
        return update(proto, version_of(options.root))
    found = check(proto, options.root / "CHANGELOG.md")
    for line in found:
        print(f"contract: {line}", file=sys.stderr)
    if found:
        print("contract: additions are free; for a break that is meant see --help", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
