#!/usr/bin/env python3
"""Counts sentences that hide their subject or use a private phrase.

    scripts/check_language.py                  check the modules of language.toml
    scripts/check_language.py --show PATH...   print each finding in PATH

Reads comments of C++, CUDA and Python, docstrings, and paragraphs of Markdown. The
words are data: scripts/language.toml. The exit status is 1 if a module is above its
share.
"""

import argparse
import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
RULES = tomllib.loads((ROOT / "scripts" / "language.toml").read_text())
PHRASES = re.compile("|".join(RULES["phrases"]), re.IGNORECASE)
COMMENT = {".h": "//", ".cc": "//", ".cu": "//", ".cuh": "//", ".py": "#"}
DOCSTRING = re.compile(r'"""(.*?)"""', re.DOTALL)


def paragraphs(path):
    """Yields (line number, text) of each paragraph of prose in a file."""
    text = path.read_text(errors="replace")
    if path.suffix == ".md":
        yield from runs(text.splitlines(), markdown_prose())
        return
    mark = COMMENT[path.suffix]

    def comment(line):
        line = line.strip()
        if not line.startswith(mark) or line.startswith("#!"):
            return ""
        inside = line[len(mark):]
        return "" if inside.startswith("   ") else inside.strip()

    yield from runs(text.splitlines(), comment)
    if path.suffix == ".py":
        for found in DOCSTRING.finditer(text):
            first = text.count("\n", 0, found.start()) + 1
            for line, words in runs(found[1].splitlines(), str.strip):
                yield first + line - 1, words


def markdown_prose():
    """Returns a function that maps a line of Markdown to its prose, or to ''."""
    in_code = False

    def prose(line):
        nonlocal in_code
        if line.lstrip().startswith("```"):
            in_code = not in_code
            return ""
        if in_code or line.lstrip().startswith(("|", "#", "<!--")):
            return ""
        return line.strip()

    return prose


def runs(lines, prose):
    """Joins lines that follow each other and have prose."""
    block, first = [], 0
    for number, line in enumerate([*lines, ""], 1):
        words = prose(line)
        begins_item = re.match(r"([*+-]|\d+\.)\s", words) is not None
        if block and (not words or begins_item):
            yield first, " ".join(block)
            block = []
        if words:
            if not block:
                first = number
            block.append(re.sub(r"^([*+-]|\d+\.)\s+", "", words))


def sentences(text):
    text = re.sub(r"\([^()]*\)", "", re.sub(r"`[^`]*`", "`x`", text))
    for sentence in re.split(r"(?<=[.!?:;])\s+(?=[A-Z`])", text):
        if re.match(r"[A-Z`]", sentence) and len(sentence.split()) >= 4:
            yield sentence


def is_hard(sentence):
    return (re.split(r"\W", sentence, maxsplit=1)[0].lower() in RULES["openers"]
            or PHRASES.search(sentence) is not None)


def files_of(name):
    path = ROOT / name
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    skip = {ROOT / s for s in RULES["skip"]}
    return [p for p in found if p.suffix in {*COMMENT, ".md"} and p not in skip]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", default=RULES["modules"])
    parser.add_argument("--show", action="store_true", help="print each finding")
    options = parser.parse_args()
    too_many = False
    for name in options.paths:
        total, hard = 0, []
        for path in files_of(name):
            for line, text in paragraphs(path):
                for sentence in sentences(text):
                    total += 1
                    if is_hard(sentence):
                        hard.append(f"{path.relative_to(ROOT)}:{line}: {sentence}")
        percent = 100 * len(hard) / max(total, 1)
        above = percent > RULES["most_percent"]
        too_many |= above
        print(f"{name}: {len(hard)} of {total} sentences, {percent:.1f} %"
              + (f", more than {RULES['most_percent']} %" if above else ""))
        if options.show or above:
            print("\n".join("  " + finding for finding in hard))
    return 1 if too_many else 0


if __name__ == "__main__":
    sys.exit(main())
