# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What in a kernel's log makes a run fail, however its command ended."""

import re

# Every detector a kernel of the lab has, by the words it reports with.
REPORT = re.compile("|".join((
    r"\bWARNING: ",
    r"\bBUG: ",
    r"\bkernel BUG at ",
    r"\bKASAN: ",
    r"\bKFENCE: ",
    r"\bUBSAN: ",
    r"\bODEBUG: ",
    r"\bDMA-API: .*(error|not|leak|exceed|overlap|different|mismatch|warning)",
    r"possible circular locking",
    r"possible recursive locking",
    r"possible irq lock inversion",
    r"inconsistent lock state",
    r"[Ii]nvalid wait context",
    r"bad unlock balance",
    r"lock held when returning to user space",
    r"held lock freed",
    r"suspicious RCU usage",
    r"sleeping function called from invalid context",
    r"scheduling while atomic",
    r"new suspected memory leaks",
    r"lab: kmemleak: unreferenced object",
    r"blocked for more than",
    r"self-detected stall",
    r"detected stalls on CPUs",
    r"soft lockup",
    r"Disabling lock debugging",
    r"general protection",
    r"\bOops\b",
    r"unable to handle",
    r"Kernel panic",
    r"refcount_t: ",
    r"list_(add|del) corruption",
    r"page allocation failure",
    r"Out of memory: Killed",
    r"Bad page (state|map)",
    r"Bad rss-counter",
    r"percpu ref .* <= 0",
    r"Call Trace:",
    r"lab: hcomm cannot be unloaded",
)))
CONTEXT = 60


def clean(raw):
    text = raw.decode("utf-8", "replace")
    return [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line).rstrip() for line in text.split("\n")]


def find(lines, allowed=()):
    """Numbers of the lines that are reports, but for those the caller expects."""
    return [n for n, line in enumerate(lines)
            if REPORT.search(line) and not any(a.search(line) for a in allowed)]


def describe(lines, hits):
    """The first report with what follows it, the rest a line each."""
    first = hits[0]
    text = lines[first:first + CONTEXT]
    text += [lines[n] for n in hits if n >= first + CONTEXT][:40]
    return text
