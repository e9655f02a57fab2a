"""Reads fenced blocks and links out of Markdown pages."""
import dataclasses
import re

KINDS = ("cpu", "nvrtc", "gpu", "container")


@dataclasses.dataclass
class Block:
    line: int       # Of the opening fence.
    language: str
    kind: str
    text: str


def blocks_of(text):
    """The fenced blocks of a page, in order. An unclosed fence raises ValueError."""
    found, opening = [], None
    for number, line in enumerate(text.splitlines(), 1):
        fence = re.match(r"( *)(`{3,}|~{3,})(.*)$", line)
        if opening is None:
            if fence:
                words = fence.group(3).split()
                opening = (number, fence.group(2), len(fence.group(1)), (words + ["", ""])[:2], [])
        elif fence and fence.group(2).startswith(opening[1]) and not fence.group(3).strip():
            found.append(Block(opening[0], *opening[3], "".join(opening[4])))
            opening = None
        else:
            opening[4].append(line[min(opening[2], len(line) - len(line.lstrip())):] + "\n")
    if opening is not None:
        raise ValueError(f"line {opening[0]}: the fence is never closed")
    return found


def untagged(blocks):
    """What is wrong with the tags of these blocks."""
    for block in blocks:
        if not block.language:
            yield block.line, "a block without a language"
        elif block.kind not in KINDS:
            yield block.line, f"a {block.language} block must say what it needs, {', '.join(KINDS)}; it says '{block.kind}'"


def orphans(blocks):
    """Sample output that follows no command. On a page without commands, text is only text."""
    commanded = not any(block.language in ("sh", "python") for block in blocks)
    for block in blocks:
        if block.language == "text" and not commanded:
            yield block.line, "sample output before any command"
        commanded = commanded or block.language in ("sh", "python")


def dead_links(page, text):
    """Relative links whose file is not there."""
    outside = re.sub(r"^( *)(`{3,}|~{3,}).*?^ *\2", "", text, flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", outside):
        path = target.partition("#")[0]
        if path and "://" not in target and not target.startswith("mailto:") and not (page.parent / path).exists():
            yield target
