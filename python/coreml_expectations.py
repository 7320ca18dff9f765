"""Write which ONNX node cases have no form as a Core ML package, with the reasons.

usage: GALATEA_BARE=1 cargo test -p galatea-coreml --test coreml_nodes > LOG
       coreml_expectations.py LOG NODE_DATA crates/testkit/expectations/coreml.txt

LOG is what the suite prints while it expects no refusal; NODE_DATA is the folder of its cases. Lines of the
file that are no refusals stay as they are.
"""

import pathlib
import re
import sys
from collections import defaultdict

REFUSED = "refused: "


def refusals(log):
    """The operator and the reason of each refused case."""
    found = {}
    failures = re.finditer(
        r"^---- coreml::(\S+) ----\n(.*?)(?=^---- |^failures:|\Z)", log, re.S | re.M
    )
    for name, text in (match.groups() for match in failures):
        if REFUSED not in text:
            print(f"{name} is not refused: {text.strip()[:200]}", file=sys.stderr)
            continue
        reason = text.split(REFUSED, 1)[1].split("\n")[0].split("; node ")[0]
        node = re.match(r"node \d+ '.*?' \(([^)]*)\): (.*)", reason)
        border = re.match(r"(?:in|out)put '[^']*': (.*)", reason)
        found[name] = node.groups() if node else ("", border[1] if border else reason)
    return found


def patterns(group, names):
    """Patterns that fit all names of the group and none of the others."""
    left = set(group)
    while left:
        words = min(left).split("_")
        pattern, fitting = "_".join(words), {min(left)}
        for count in range(2, len(words) + 1):
            start = "_".join(words[:count])
            some = {name for name in names if name.startswith(start)}
            if len(some) > 1 and some <= set(group):
                pattern, fitting = f"{start}*", some
                break
        yield pattern
        left -= fitting


def main(log, data, file):
    names = [path.name for path in pathlib.Path(data).iterdir() if path.is_dir()]
    groups = defaultdict(lambda: defaultdict(list))
    for name, (operator, reason) in refusals(pathlib.Path(log).read_text()).items():
        groups[operator][reason].append(name)
    text = pathlib.Path(file).read_text()
    lines = [text.split("\n# Refused:")[0].rstrip()]
    for operator, reasons in sorted(groups.items()):
        lines += ["", f"# Refused: {operator or 'what a package is given'}."]
        lines += sorted(
            f"{pattern}: [refused] {reason}"
            for reason, group in reasons.items()
            for pattern in patterns(group, names)
        )
    pathlib.Path(file).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
