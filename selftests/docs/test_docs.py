#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The documentation says what the code does.

Whatever can be compared is: names, offsets, sizes, numbers, limits, parameters,
variables, files of sysfs, prototypes, and the first program of the README, which
is compiled and run. Writes KTAP.
"""

import fnmatch
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
REPO = pathlib.Path(__file__).resolve().parents[2]
DOC = REPO / "Documentation"
BUILD = REPO / "build"
PAGES = sorted(DOC.glob("*.rst"))
WIDTH = 80


class Skip(Exception):
    """What a test needs is not on this machine."""


def read(path):
    return (REPO / path).read_text()


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def code(path):
    return without_comments(read(path))


def sources(folder, *suffixes):
    return [p for p in sorted((REPO / folder).rglob("*")) if p.suffix in suffixes]


def missing(names, text):
    return [n for n in names if not re.search(rf"(?<!\w){re.escape(n)}(?!\w)", text)]


def check(problems):
    assert not problems, "; ".join(problems)


def lacks(where, names):
    return [f"{where} lacks {name}" for name in names]


def run_c(text, *options):
    """Compile a program and return what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "program.c")
        program = pathlib.Path(folder, "program")
        source.write_text(text)
        subprocess.run(["cc", "-o", program, source, *options], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout


def sections(page):
    """Titles of a page, and the text below each until the next one."""
    text = read(page)
    found = list(re.finditer(r"^(\S.*)\n([=~-])\2{2,}$", text, flags=re.M))
    ends = [m.start() for m in found[1:]] + [len(text)]
    return {m[1]: text[m.end():end] for m, end in zip(found, ends)}


def rows(text):
    """Rows of simple tables as lists of words of each column's first line."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()
            if re.match(r"\S.*\s{2,}\S", line)]


# ------------------------------------------------------------ the interface

def uapi_structs():
    found = re.findall(r"struct (hcomm_\w+) \{(.*?)\n\};", code("uapi/hcomm.h"), flags=re.S)
    return {name: re.findall(r"^\s*(?:__\w+|char)\s+(\w+)(?:\[[^\]]*\])?;", body, flags=re.M)
            for name, body in found}


def test_uapi_names():
    """uapi.rst or errors.rst names every constant of uapi/hcomm.h"""
    text = code("uapi/hcomm.h")
    names = re.findall(r"^#define (HCOMM_\w+)[( \t]", text, flags=re.M)
    names += re.findall(r"^\t(HCOMM_\w+) = ", text, flags=re.M)
    assert len(names) > 60
    check(lacks("uapi.rst", missing(names, read(DOC / "uapi.rst") + read(DOC / "errors.rst"))))


def test_uapi_constants():
    """uapi.rst has the values of the interface's constants"""
    said = {}
    for row in rows(read(DOC / "uapi.rst")):
        if re.fullmatch(r"``HCOMM_\w+``", row[0]) and row[1].isdigit():
            name = row[0].strip("`")
            said[name] = 1 << int(row[1]) if name.startswith("HCOMM_OPF_") else int(row[1])
    lines = [f'printf("{n} %llu\\n", (unsigned long long){n});' for n in said]
    head = ["#include <stdio.h>", '#include "hcomm.h"', "int main(void){"]
    out = run_c("\n".join([*head, *lines, "}"]), f"-I{REPO}/uapi")
    assert len(said) > 30
    check([f"differs: {line}" for line in set(out.split("\n"))
           ^ {*(f"{n} {v}" for n, v in said.items()), ""}])


def test_uapi_layout():
    """uapi.rst has the compiler's offset and size of every field"""
    structs = uapi_structs()
    assert len(structs) > 15
    lines = ["#include <stddef.h>", "#include <stdio.h>", '#include "hcomm.h"', "int main(void){"]
    for name, fields in structs.items():
        lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
        lines += [f'printf("{name}.{f} %zu %zu\\n", offsetof(struct {name}, {f}),'
                  f" sizeof(((struct {name} *)0)->{f}));" for f in fields]
    told = run_c("\n".join([*lines, "}"]), f"-I{REPO}/uapi")

    said = []
    for title, text in sections(DOC / "uapi.rst").items():
        if not title.startswith("struct "):
            continue
        name = title.split()[1]
        size = re.search(r"^Size: (\d+) bytes\.", text, flags=re.M)
        said.append(f"{name} {size[1]}")
        said += [f"{name}.{row[2]} {row[0]} {row[1]}" for row in rows(text)
                 if len(row) > 3 and row[0].isdigit()]
    check([f"differs: {line}" for line in set(told.split("\n")) ^ {*said, ""}])


def test_uapi_calls():
    """uapi.rst has every call with its number and structure"""
    calls = re.findall(r"#define (HCOMM_IOC_\w+)\s+_IO\w*\(HCOMM_IOC_MAGIC, (\w+)"
                       r"(?:,\s*(struct \w+))?\)", code("uapi/hcomm.h"))
    assert len(calls) > 10
    table = {tuple(row[:3]) for row in rows(read(DOC / "uapi.rst")) if len(row) > 3}
    wanted = [(f"``{name}``", nr, f"``{arg}``" if arg else "none") for name, nr, arg in calls]
    check([f"no row {row}" for row in wanted if row not in table]
          + lacks("uapi.rst", {name for name, _, _ in calls} - set(sections(DOC / "uapi.rst"))))


# ------------------------------------------------------------- the protocol

def wire_numbers(enum):
    body = re.search(rf"enum {enum} \{{(.*?)\}}", code("kmod/core/wire.h"), flags=re.S)[1]
    value, numbers = -1, {}
    for name, given in re.findall(r"(\w+)(?:\s*=\s*(\d+))?\s*,", body):
        value = int(given) if given else value + 1
        numbers[name] = value
    return numbers


def test_protocol_types():
    """protocol.rst has every message with its number and queue pair"""
    said = {(row[0], row[1]): row[2] for row in rows(read(DOC / "protocol.rst")) if len(row) > 3}
    rules = read("kmod/core/wire.c")
    problems = []
    for name, number in wire_numbers("hcomm_wire_type").items():
        short = name.removeprefix("HCOMM_WIRE_")
        rule = re.search(rf"\[{name}\]\s*=\s*\{{\s*\"{short}\",\s*([\w| ]+),", rules)
        qp = {"ON_SMALL": "small", "ON_BULK": "bulk"}.get(rule[1].strip(), "both")
        if said.get((str(number), short)) != qp:
            problems.append(f"{number} {short} {qp}")
    check(problems)


def test_protocol_header():
    """protocol.rst has the header's fields where wire.c asserts them"""
    asserted = re.findall(r"^AT\((\w+), (\d+)\);", read("kmod/core/wire.c"), flags=re.M)
    assert len(asserted) == 17
    header = sections(DOC / "protocol.rst")["Header"]
    said = {(row[2], row[0]) for row in rows(header) if len(row) > 3}
    check([f"differs: {item}" for item in set(asserted) ^ {s for s in said if s[1].isdigit()}])


def test_protocol_states():
    """protocol.rst has the table of moves of a path"""
    table = re.findall(r"\[HCOMM_PATH_(\w+)\]\s*=\s*((?:FROM\(\w+\)[\s|]*)+|0),",
                       read("kmod/core/pathstate.c"))
    said = {row[0]: set(row[1].split(", ")) for row in rows(read(DOC / "protocol.rst"))
            if len(row) == 2}
    problems = []
    for state, moves in table:
        wanted = {m.lower() for m in re.findall(r"FROM\((\w+)\)", moves)}
        if wanted and said.get(state.lower()) != wanted:
            problems.append(f"{state.lower()} from {sorted(wanted)}")
    assert len(table) == 8
    check(problems)


# -------------------------------------------------------------- the library

def public_functions():
    found = re.findall(r"^((?:const )?\w+ \*?)(hcomm\w+)\(([^;]*?)\);",
                       code("libhcomm/include/hcomm.h"), flags=re.M | re.S)
    return {name: (kind.strip(), [" ".join(a.split()) for a in args.split(",")])
            for kind, name, args in found}


def synopsis(page):
    """The prototypes of a manual page."""
    found = re.findall(r"^\.Ft (.+)\n\.Fo (\w+)\n((?:\.Fa .+\n)+)\.Fc", page, flags=re.M)
    return {name: (kind, re.findall(r'^\.Fa "?(.*?)"?$', args, flags=re.M))
            for kind, name, args in found}


def test_manual_functions():
    """every public function has a manual page with its prototype"""
    functions = public_functions()
    assert len(functions) > 40
    pages = {p.stem for p in DOC.glob("man/*.3")}
    check([f"no page {n}" for n in set(functions) - pages]
          + [f"no function {n}" for n in pages - set(functions)]
          + [f"prototype of {n}" for n in set(functions) & pages
             if synopsis(read(DOC / f"man/{n}.3")).get(n) != functions[n]])


def test_manual_renders():
    """the manual pages are without errors wherever they lie, and name pages that exist"""
    if not shutil.which("groff"):
        raise Skip("no groff")
    problems = []
    for page in sorted(DOC.glob("man/*.[1-9]")):
        text = page.read_text()
        result = subprocess.run(["groff", "-mandoc", "-ww", "-z", page], capture_output=True,
                                text=True, check=False, cwd="/")
        problems += [f"{page.name}: {line}" for line in result.stderr.splitlines()[:1]]
        problems += [f"{page.name}: no {name}({section})"
                     for name, section in re.findall(r"^\.Xr (hcomm\w*) (\d)", text, flags=re.M)
                     if not (DOC / f"man/{name}.{section}").exists()]
    check(problems)


def test_result_codes():
    """errors.rst has every result code with number and sentence, causes and states"""
    header = code("libhcomm/include/hcomm.h")
    enum = re.search(r"enum hcommResult \{(.*?)\tHCOMM_NR_RESULTS", header, flags=re.S)[1]
    codes = re.findall(r"^\t(HCOMM_\w+) = (\d+),", enum, flags=re.M)
    causes = re.findall(r"^\t(HCOMM_CAUSE_\w+) = (\d+),", code("uapi/hcomm.h"), flags=re.M)
    assert len(codes) > 10 and len(causes) > 5
    found = sections(DOC / "errors.rst")
    told = dict(re.findall(r'\[(\w+)\] = \{ "\w+",\s*"([^"]+)" \}',
                           code("libhcomm/api/text.c")))
    wanted = [(n, f'Code {v}, "{told[n]}"[.]') for n, v in codes] + [(n, f"Cause {v}[.,]") for n, v in causes]
    states = re.findall(r"^\t(HCOMM_STATE_\w+) = ", code("uapi/hcomm.h"), flags=re.M)
    check([f"{name}: {start}" for name, start in wanted
           if not re.match(start, " ".join(found.get(name, "").split()))]
          + lacks("errors.rst", missing(states, read(DOC / "errors.rst"))))


def test_environment():
    """every variable that is read is in a manual page, and the other way round"""
    calls = r"\b(?:\w*getenv|is_set|env_\w+|load_\w+)\(([^;{]*?)\)"
    names = set()
    for path in sources("libhcomm", ".c") + sources("tools", ".c"):
        for arguments in re.findall(calls, without_comments(path.read_text())):
            names |= set(re.findall(r'"([A-Z][A-Z_]+)"', arguments))
    pages = [read(p) for p in DOC.glob("man/hcomm*.[17]")]
    said = set(re.findall(r"^\.(?:It )?Ev (.+)$", read(DOC / "man/hcomm.7"), flags=re.M))
    said = {w for line in said for w in re.findall(r"[A-Z_]{4,}", line)}
    assert len(names) > 15
    check(lacks("man", missing(names, "\n".join(pages)))
          + [f"nobody reads {n}" for n in said - names])


def test_options():
    """--help and the manual page of a tool have its options, and no other"""
    problems = []
    for tool, source in (("hcomm_benchmark", "args.c"), ("hcomm_diag", "main.c")):
        text = read(f"tools/{tool}/{source}")
        options = set(re.findall(r'\{ "([a-z_-]+)", (?:no|required)_argument', text))
        usage = re.search(r"usage\[\] =\n(.*?);\n", text, flags=re.S)[1]
        page = read(DOC / f"man/{tool}.1")
        for where, said in ((f"{tool} --help", set(re.findall(r"--([a-z][a-z_-]+)", usage))),
                            (f"{tool}.1", set(re.findall(r"Fl -([a-z][a-z_-]+)", page)))):
            problems += [f"{where}: {name}" for name in (options - {"help"}) ^ (said - {"help"})]
        assert "version" in options
    check(problems)


# What others than hcomm print, and words that are quoted for what they are.
FOREIGN = ("Invalid module format", "disagrees about version of symbol", "Invalid argument",
           "Key was rejected by service", "Required key not available", "Permission denied",
           "Unknown symbol in module", "Module hcomm is in use", "missing", "extra", "event")
# What stands in a quoted message for something else.
FILLED_IN = r"\.\.\.|hcomm\d|(?:rank )?\b\d+\b|AllReduce|No such file or directory"


def said_by_code():
    """Every text of the code as one line, with % for what printf() fills in."""
    text = "".join(p.read_text() for folder in ("kmod", "libhcomm", "tools")
                   for p in sources(folder, ".c", ".h"))
    text = re.sub(r'"\s*\n\s*"', "", text)
    return re.sub(r"%[-.\d*]*[lz]*[a-z]", "%", text)


def test_troubleshooting_quotes():
    """troubleshooting.rst quotes what the code, or the system, really prints"""
    text = re.sub(r"``.*?``", "", read(DOC / "troubleshooting.rst"), flags=re.S)
    quotes = [" ".join(q.split()) for paragraph in re.split(r"\n\s*\n", text)
              for q in re.findall(r'"(.*?)"', paragraph, flags=re.S)]
    assert len(quotes) > 20
    known = said_by_code()
    parts = [part.strip(" ,:()") for quote in quotes for part in re.split(FILLED_IN, quote)]
    check([f"nobody prints {part}" for part in parts
           if part not in known and part not in FOREIGN])


# --------------------------------------------------------------- the module

def test_parameters():
    """hcomm.4 has every parameter of the module"""
    names = []
    for path in sources("kmod", ".c"):
        names += re.findall(r"^module_param(?:_named)?\((\w+),", path.read_text(), flags=re.M)
    said = re.findall(r"^\.It Cm (\w+)", read(DOC / "man/hcomm.4"), flags=re.M)
    assert names
    check([f"differs: {n}" for n in set(names) ^ set(said)])


def sysfs_files():
    text = without_comments(read("kmod/sysfs.c"))
    folders = {"port": "ports/DEVICE-PORT/", "session": "sessions/PEER/",
               "path": "sessions/PEER/paths/P/"}
    files = set(re.findall(r"DEVICE_ATTR_\w\w\((\w+)\)", text))
    for prefix, name in re.findall(r"^HCOMM_FILE_\w\w\((\w+), (\w+)\)", text, flags=re.M):
        files.add(folders[prefix] + name)
    return files


def test_sysfs():
    """Documentation/ABI has every file below /sys/class/hcomm, and no other"""
    text = "".join(p.read_text() for p in DOC.glob("ABI/**/*") if p.is_file())
    said = re.findall(r"^What:\s+/sys/class/hcomm/hcommN/(\S+)$", text, flags=re.M)
    files = sysfs_files()
    assert len(files) > 3
    check([f"differs: {name}" for name in files ^ set(said)])


def test_observers():
    """hcomm.4 names every tracepoint, README and hcomm.4 the files of debugfs"""
    points = re.findall(r"^TRACE_EVENT\(hcomm_(\w+),", read("kmod/trace.h"), flags=re.M)
    files = []
    for path in sources("kmod", ".c"):
        files += re.findall(r'hcomm_debugfs_add\([^,]+,\s*"(\w+)"', path.read_text())
    assert points and files
    page = read(DOC / "man/hcomm.4").lower()
    check(lacks("hcomm.4", missing(points + files, page)))


def test_limits():
    """design.rst has every limit with its value"""
    names = re.findall(r"^#define (HCOMM_MAX_\w+)\s", read("kmod/limits.h"), flags=re.M)
    names += re.findall(r"^#define (HCOMM_MAX_(?:RANKS|WAITS))\s", read("uapi/hcomm.h"), flags=re.M)
    units = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    said = {}
    for row in rows(sections(DOC / "design.rst")["Sizes and limits"]):
        value = re.match(r"(\d+)(?: (KiB|MiB|GiB)\b)?", row[1])
        if row[0].startswith("``HCOMM_") and value:
            said[row[0].strip("`")] = int(value[1]) * units[value[2] or ""]
    check(lacks("design.rst", set(names) - set(said)))
    headers = ["typedef unsigned long long u64;", '#include "hcomm.h"', '#include "limits.h"']
    wire = [n for n in said if not n.startswith("HCOMM_MAX_")]
    for path in ("wire", "flow", "stripe"):
        headers += re.findall(rf"^#define (?:{'|'.join(wire)})\s+.*$", code(f"kmod/core/{path}.h"),
                              flags=re.M)
    lines = [f'printf("{n} %llu\\n", (unsigned long long){n});' for n in said]
    out = run_c("\n".join(["#include <stdio.h>", *headers, "int main(void){", *lines, "}"]),
                f"-I{REPO}/uapi", f"-I{REPO}/kmod")
    check([f"differs: {line}" for line in set(out.split("\n"))
           ^ {*(f"{n} {v}" for n, v in said.items()), ""}])


def test_files():
    """design.rst has every concept of kmod/"""
    names = {p.stem for p in sources("kmod", ".c") if p.parent.name == "kmod"}
    check(lacks("design.rst", missing(sorted(names), sections(DOC / "design.rst")["Files"])))


# ---------------------------------------------------------------- the pages

def test_pages_parse():
    """the pages are correct reStructuredText"""
    try:
        from docutils import core
    except ImportError as error:
        raise Skip("no docutils") from error
    problems = []
    for page in PAGES:
        warnings = tempfile.TemporaryFile("w+")
        core.publish_string(page.read_text(), source_path=str(page), writer_name="null",
                            settings_overrides={"warning_stream": warnings, "report_level": 1,
                                                "halt_level": 5})
        warnings.seek(0)
        problems += warnings.read().splitlines()
    check(problems)


def test_pages_width():
    """lines of the pages fit into 80 columns"""
    pages = [*PAGES, REPO / "README.md"]
    check([f"{p.name}:{nr}" for p in pages
           for nr, line in enumerate(p.read_text().splitlines(), 1) if len(line) > WIDTH])


def test_links():
    """links and names of files lead somewhere"""
    problems = []
    for page in [*PAGES, REPO / "README.md"]:
        text = page.read_text()
        links = re.findall(r"`[^`]*<([^`>#]+)(?:#[^`>]*)?>`__", text)
        links += re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text) if page.suffix == ".md" else []
        problems += [f"{page.name}: {link}" for link in links
                     if not (page.parent / link.strip()).exists()]
        paths = re.findall(r"``((?:kmod|uapi|libhcomm|tools|selftests|packaging|Documentation|man)"
                           r"/[\w./-]+)``", text)
        problems += [f"{page.name}: {path}" for path in paths
                     if not (REPO / path).exists() and not (DOC / path).exists()]
    check(problems)


def everything_said():
    return [(p.name, p.read_text()) for p in [REPO / "README.md", *PAGES,
                                              *sorted(DOC.glob("man/*.[1-9]"))]]


def test_named_system_files():
    """files below /sys that the pages name exist"""
    text = read(DOC / "ABI/testing/sysfs-class-hcomm")
    known = re.findall(r"^What:\s+(\S+)$", text, flags=re.M)
    known += [f"/sys/kernel/debug/hcomm/hcommN/{name}" for path in sources("kmod", ".c")
              for name in re.findall(r'hcomm_debugfs_add\([^,]+,\s*"(\w+)"', path.read_text())]
    problems = []
    for page, text in everything_said():
        for path in re.findall(r"/sys/(?:class|module|kernel/debug)/hcomm[\w/]*", text):
            form = re.sub(r"/hcomm\d", "/hcommN", re.sub(r"paths/\d", "paths/P", path)).rstrip("/")
            if not any(f"{k}/".startswith(f"{form}/") for k in known):
                problems.append(f"{page}: {path}")
    check(problems)


def test_named_targets():
    """targets of make that the pages name exist"""
    problems = []
    for page, text in everything_said():
        for folder, words in re.findall(r"^ {4}(?:sudo )?make( -C \w+)?((?: [a-z][\w.-]*)+)",
                                        text, flags=re.M) + \
                re.findall(r"``?make( -C \w+)?((?: [a-z][\w.-]*)+)", text):
            makefile = read(pathlib.Path(folder.removeprefix(" -C ") or ".", "Makefile"))
            targets = " ".join(re.findall(r"^([\w. -]+):", makefile, flags=re.M)).split()
            problems += [f"{page}: make{folder} {word}" for word in words.split()
                         if word not in targets]
    check(problems)


def test_named_version():
    """the pages, the header and DKMS are of one version"""
    version = re.search(r'PACKAGE_VERSION="(.*)"', read("dkms.conf"))[1]
    parts = re.findall(r"#define HCOMM_(?:MAJOR|MINOR|PATCH)\s+(\d+)",
                       read("libhcomm/include/hcomm.h"))
    problems = [] if ".".join(parts) == version else [f"hcomm.h: {parts}"]
    for page, text in everything_said():
        problems += [f"{page}: {said}" for said in
                     re.findall(r"(?:-m\s+hcomm -v|Version) (\d[\d.]*\d)", text)
                     if said != version]
    check(problems)


def test_index():
    """the table of contents has every file of Documentation/"""
    text = read(DOC / "index.rst")
    said = re.findall(r"``([\w./*-]+)``", text) + re.findall(r"<([\w.]+)>`__", text)
    files = [str(p.relative_to(DOC)) for p in sorted(DOC.rglob("*")) if p.is_file()]
    check(lacks("index.rst", [f for f in files if f not in ("index.rst", "Makefile")
                              and not any(fnmatch.fnmatch(f, pattern) for pattern in said)]))


# --------------------------------------------------------------------- make

def make(*words):
    return subprocess.run(["make", "-C", REPO, *words], capture_output=True, text=True,
                          check=False)


def test_make_help():
    """make help has every target, and says which one is the default"""
    targets = re.findall(r"^\.PHONY: (.*)$", read("Makefile"), flags=re.M)
    targets = set(" ".join(targets).split()) - {"help"}
    default = re.search(r"^\.DEFAULT_GOAL := (\w+)", read("Makefile"), flags=re.M)[1]
    told = make("help").stdout
    assert len(targets) > 15 and re.search(rf"^  {default} +\(the default\)", told, flags=re.M)
    said = re.findall(r"^  (\w[\w.-]*(?:, [\w.-]+)*)", told, flags=re.M)
    check(lacks("make help", sorted(targets - set(", ".join(said).split(", ")))))


def test_make_wrong_kernel():
    """a KERNEL that does not exist is told with those that do"""
    result = make("module", "KERNEL=9.9")
    here = [p.name.removeprefix("vmlinuz-") for p in pathlib.Path("/boot").glob("vmlinuz-*")]
    assert result.returncode == 2
    check(lacks("the text", [w for w in ["9.9", "6.1, 6.12, debug", *here, "lab/setup"]
                             if w not in result.stderr]))


# -------------------------------------------------------- the first program

def test_first_is_example():
    """the first program of the README is Documentation/examples/first.c"""
    program = re.search(r"^```c\n(.*?)^```$", read("README.md"), flags=re.M | re.S)[1]
    example = read(DOC / "examples/first.c")
    assert program == example.split("\n", 1)[1], "they differ"
    assert len(program.splitlines()) <= 30, "longer than 30 lines"


def build_first(folder):
    program = re.search(r"^```c\n(.*?)^```$", read("README.md"), flags=re.M | re.S)[1]
    source = pathlib.Path(folder, "first.c")
    source.write_text(program)
    library = BUILD / "lib"
    if not (library / "libhcomm.so").exists():
        raise Skip("the library is not built: make library")
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", source, "-o", f"{folder}/first",
                    f"-I{REPO}/libhcomm/include", f"-L{library}", f"-Wl,-rpath,{library}",
                    "-lhcomm"], check=True)
    return f"{folder}/first"


def run_first(**variables):
    """What the first program prints on two ranks: (output, errors) of each."""
    environment = {n: v for n, v in os.environ.items() if not n.startswith("HCOMM_")}
    environment |= {"HCOMM_NRANKS": "2", **variables}
    with tempfile.TemporaryDirectory() as folder:
        program = build_first(folder)
        ranks = [subprocess.Popen([program], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, env={**environment, "HCOMM_RANK": str(rank)})
                 for rank in range(2)]
        return [rank.communicate(timeout=60) for rank in ranks]


def test_first_runs():
    """the first program compiles, and prints on two ranks what the README says"""
    wanted = re.findall(r"^    (rank \d of 2: .*\n)", read("README.md"), flags=re.M)
    said = [out for out, _ in run_first()]
    assert len(wanted) == 2 and said == wanted, f"{said} instead of {wanted}"


def test_first_warns():
    """without the module the first program warns as the README says, or not"""
    words = re.search(r"warns.*?\"(.*?)\"", read("README.md"), flags=re.S)[1]
    _, warned = zip(*run_first(HCOMM_DEVICE="hcomm999"))
    assert words.replace("\n", " ") in warned[0] and not warned[1], warned
    _, warned = zip(*run_first(HCOMM_DEVICE="hcomm999", HCOMM_TRANSPORT="local"))
    assert not any(warned), warned


def test_first_fails_with_words():
    """the first program says what is wrong when a rank is missing"""
    with tempfile.TemporaryDirectory() as folder:
        program = build_first(folder)
        environment = {**os.environ, "HCOMM_RANK": "0", "HCOMM_NRANKS": "2",
                       "HCOMM_CONNECT_TIMEOUT": "1"}
        result = subprocess.run([program], env=environment, capture_output=True, text=True,
                                timeout=60, check=False)
    assert result.returncode == 1 and "missing: 1" in result.stderr, result.stderr


# ------------------------------------------------------------------- runner

def run(number, name, test):
    what = f"{number} {name} - {inspect.getdoc(test)}"
    try:
        test()
    except Skip as reason:
        print(f"ok {what} # SKIP {reason}", flush=True)
        return True
    except Exception as error:  # whatever it was, the test has not passed
        print(f"not ok {what}", flush=True)
        for line in (str(error) or repr(error)).split("; ")[:40]:
            print(f"# {line}", flush=True)
        return False
    print(f"ok {what}", flush=True)
    return True


def main():
    tests = [(n.removeprefix("test_"), t) for n, t in globals().items() if n.startswith("test_")]
    wanted = sys.argv[1:]
    tests = [(n, t) for n, t in tests if not wanted or n in wanted]
    print("KTAP version 1")
    print(f"1..{len(tests)}")
    results = [run(number, name, test) for number, (name, test) in enumerate(tests, 1)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
