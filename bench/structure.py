"""Measure the structure of the package: `.venv/bin/python -m bench.structure`.

The depth of the import graph is the number of modules in the longest chain of imports within
posting/. A private function has a name with a leading underscore, and as many callers as there are
references to its name in posting/.
"""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import posting

PACKAGE = Path(posting.__file__).parent
PATHS = sorted(PACKAGE.rglob("*.py"))
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): (
        ast.parse(path.read_text())
    )
    for path in PATHS
}


def imports(module: str) -> set[str]:
    """Return the modules of posting/ that a module imports at its top level."""
    names = set()
    for node in MODULES[module].body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                names.add(name if name in MODULES else str(node.module))
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names & MODULES.keys() - {"posting"}


def imports_of_packages() -> dict[str, set[str]]:
    """Return the other packages and top-level modules that each of them imports."""
    found: dict[str, set[str]] = {}
    for module in MODULES.keys() - {"posting"}:
        package = module.split(".")[1]
        used = {imported.split(".")[1] for imported in imports(module)}
        found.setdefault(package, set()).update(used - {package})
    return found


@cache
def depth(module: str) -> int:
    """Return the length of the longest chain of imports that starts at a module."""
    return 1 + max(map(depth, imports(module)), default=0)


def main() -> None:
    packages = Counter(
        path.relative_to(PACKAGE).parts[0] if path.parent != PACKAGE else "top level"
        for path in PATHS
    )
    nodes = [node for tree in MODULES.values() for node in ast.walk(tree)]
    functions = [
        node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    private = [name for name in functions if name.startswith("_") and not name.startswith("__")]
    references = Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in nodes
        if isinstance(node, ast.Name | ast.Attribute)
    )
    single = [name for name in private if references[name] == 1]
    rows = {
        "lines": f"{sum(len(path.read_text().splitlines()) for path in PATHS):,}",
        "modules": f"{len(PATHS)}: "
        + ", ".join(f"{name} {count}" for name, count in packages.most_common()),
        "depth of the import graph": max(map(depth, MODULES)),
        "functions": len(functions),
        "private functions": f"{len(private)} ({len(private) / len(functions):.0%})",
        "private functions with one caller": len(single),
    }
    for name, value in rows.items():
        print(f"{name}: {value}")
    for name, used in sorted(imports_of_packages().items()):
        print(f"{name} imports: {', '.join(sorted(used))}")


if __name__ == "__main__":
    main()
