"""A trace as one HTML page: the text as it came out, and a timeline with a row for each chunk.

The page needs nothing from outside and runs no script (its own policy forbids both), follows the
light or dark scheme of the reader, and folds into cards on a narrow screen. Everything that comes
from the trace is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from holdback._folding import visible

from .table import rows, shown

if TYPE_CHECKING:
    from . import Step, Trace

KINDS = {
    "sent": "sent on in this step",
    "held": "held back: may be the start of a stop",
    "stop": "the stop",
    "unsent": "after the stop, never sent",
    "gone": "sent on before",
}


def page(trace: Trace, *, title: str) -> str:
    """The whole page."""
    title = visible(title)
    legend = "".join(
        f'<li><span class="key {kind}"></span>{escape(what)}</li>' for kind, what in KINDS.items()
    )
    stops = "".join(
        f"<li><b>{index}</b> {_code(shown(stop))}</li>" for index, stop in enumerate(trace.stops)
    )
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style></head>\n<body><main>\n"
        f"<h1>{escape(title)}</h1>\n<p>{_outcome(trace)}</p>\n"
        f'<section><h2>Stops</h2><ol class="stops">{stops or "<li>none</li>"}</ol></section>\n'
        f'<section><h2>Text</h2><p class="text" dir="auto">{_text(trace)}</p></section>\n'
        f'<section><h2>Timeline</h2><ul class="legend">{legend}</ul>\n'
        '<div class="steps" role="table" aria-label="One row for each chunk">\n'
        '<div class="row head" role="row">'
        + "".join(
            f'<span role="columnheader">{name}</span>'
            for name in ("#", "arrived", "position in the text", "held for")
        )
        + "</div>\n"
        + "".join(_rows(trace))
        + "</div></section>\n</main></body></html>\n"
    )


def _outcome(trace: Trace) -> str:
    sent, most = len(trace.emitted), trace.most_held
    figures = f"{_count(sent, 'character')} sent on, at most {most} held at once, {_count(_chunks(trace), 'chunk')} read"
    if trace.unread:
        figures += f", {trace.unread} left unread"
    match = trace.match
    if match is None:
        return f"<b>No stop fired.</b> {figures}."
    where = f"at character {match.start}, completed by chunk {match.end_chunk}"
    return f'<b class="fired">Stop {match.index} fired:</b> {_code(shown(str(match.stop)))} {where}. {figures}.'


def _chunks(trace: Trace) -> int:
    return sum(step.chunk is not None for step in trace.steps)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _spans(trace: Trace, step: Step, *, last: bool) -> Iterator[tuple[str, int, int]]:
    """The coloured stretches of one row, as kind, start and end in characters of the text."""
    sent = step.sent + len(step.emit)
    match = trace.match
    if step.sent:
        yield "gone", 0, step.sent
    if match is not None and last:
        stop_sent = sent >= match.end
        if match.start > step.sent:
            yield "sent", step.sent, match.start if stop_sent else sent
        yield "stop", match.start, match.end
        unsent = len(_rest(trace))
        if unsent:
            yield "unsent", match.end, match.end + unsent
        return
    if step.emit:
        yield "sent", step.sent, sent
    if step.held:
        yield "held", sent, sent + len(step.held)


def _rest(trace: Trace) -> str:
    if trace.match is None:
        return ""
    rest = trace.match.rest
    return rest if isinstance(rest, str) else bytes(rest).decode(errors="replace")


def _total(trace: Trace) -> int:
    return max(
        (
            end
            for at, step in enumerate(trace.steps)
            for _, _, end in _spans(trace, step, last=_last(trace, at))
        ),
        default=1,
    )


def _last(trace: Trace, at: int) -> bool:
    return at == len(trace.steps) - 1


def _rows(trace: Trace) -> Iterator[str]:
    total = _total(trace)
    for at, (step, (name, arrived, _, held, why)) in enumerate(
        zip(trace.steps, rows(trace), strict=True)
    ):
        bars = "".join(
            f'<i class="{kind}" style="left:{100 * start / total:.3f}%;width:{100 * (end - start) / total:.3f}%" '
            f'title="{escape(KINDS[kind])}: characters {start} to {end}"></i>'
            for kind, start, end in _spans(trace, step, last=_last(trace, at))
        )
        sent = f'<span class="out">{_code(shown(step.emit))}</span>' if step.emit else ""
        waits = " waits" if step.held else ""
        back = f'<span class="back">{_code(held)}</span>' if held else ""
        yield (
            f'<div class="row" role="row"><span role="rowheader" class="number">{name}</span>'
            f'<span role="cell" class="arrived">{_code(arrived)}</span>'
            f'<span role="cell" class="track"><span class="bar">{bars}</span><span class="texts">{sent}{back}</span></span>'
            f'<span role="cell" class="why{waits}">{_code(why) if why else ""}</span></div>\n'
        )


def _text(trace: Trace) -> str:
    """The whole text, each character marked by what happened to it."""
    match = trace.match
    text = trace.emitted
    kinds = ["direct"] * len(text)
    if match is not None:
        text = text[: match.start] + str(match.stop) + _rest(trace)
        kinds = (
            kinds[: match.start]
            + ["stop"] * (match.end - match.start)
            + ["unsent"] * len(_rest(trace))
        )
    for step in trace.steps:
        start = step.sent + len(step.emit)
        for at in range(start, min(start + len(step.held), len(kinds))):
            if kinds[at] == "direct":
                kinds[at] = "late"
    pieces = []
    at = 0
    while at < len(text):
        end = at
        while end < len(text) and kinds[end] == kinds[at]:
            end += 1
        what = {"late": "held back for a while, then sent on", **KINDS}.get(
            kinds[at], "sent on as it arrived"
        )
        body = "\n".join(_marked(visible(line)) for line in text[at:end].split("\n"))
        pieces.append(f'<span class="{kinds[at]}" title="{escape(what)}">{body}</span>')
        at = end
    return "".join(pieces).replace("\n", '<span class="esc">\\n</span>\n')


def _code(text: str) -> str:
    return f"<code><bdi>{_marked(text)}</bdi></code>"


def _marked(text: str) -> str:
    """Escaped for HTML, with the visible escapes and space dots set apart."""
    out = []
    at = 0
    while at < len(text):
        width = {"x": 4, "u": 6, "U": 10}.get(text[at + 1 : at + 2], 2) if text[at] == "\\" else 1
        piece = text[at : at + width]
        set_apart = (width > 1 and len(piece) > 1) or piece == "·"
        out.append(f'<span class="esc">{escape(piece)}</span>' if set_apart else escape(piece))
        at += width
    return "".join(out)


STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2129; --soft: #5c6470; --line: #d9dde3; --panel: #f5f6f8;
  --sent: #2f9e5b; --held: #e0a100; --stop: #d13438; --unsent: #9aa1ac; --gone: #d5ebdd; --late: #fdf0c8; --hit: #fbdcdc; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171c; --ink: #e4e7ec; --soft: #9aa3b0; --line: #323842;
  --panel: #1d2128; --sent: #3fb871; --held: #e3ad24; --stop: #ee5d60; --unsent: #6b7380; --gone: #24402f;
  --late: #4a3c10; --hit: #5a2124; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 74rem; margin: 0 auto; padding: 1.5rem 1.25rem 3rem; }
h1 { font-size: 1.35rem; margin: 0 0 .4rem; } h2 { font-size: 1rem; margin: 1.6rem 0 .5rem; }
p { margin: 0; } ul, ol { list-style: none; margin: 0; padding: 0; }
code, .text { font: 13px/1.6 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre-wrap;
  overflow-wrap: anywhere; }
.fired { color: var(--stop); }
.esc { color: var(--soft); white-space: nowrap; }
.stops, .legend { display: flex; flex-wrap: wrap; gap: .4rem 1.1rem; }
.stops li { background: var(--panel); border: 1px solid var(--line); border-radius: 5px; padding: .1rem .55rem; }
.text { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .7rem .9rem; }
.text .late { background: var(--late); } .text .stop { background: var(--hit); font-weight: 600; }
.text .unsent { color: var(--soft); text-decoration: line-through; }
.legend { font-size: .85rem; color: var(--soft); margin-bottom: .6rem; }
.legend li { display: flex; align-items: center; gap: .4rem; }
.key { width: 1.2rem; height: .7rem; border-radius: 2px; display: inline-block; }
.sent { background: var(--sent); } .gone { background: var(--gone); } i.stop, .key.stop { background: var(--stop); }
i.unsent, .key.unsent { background: repeating-linear-gradient(90deg, var(--unsent) 0 3px, transparent 3px 6px); }
.held { background: repeating-linear-gradient(-45deg, var(--held) 0 5px, color-mix(in srgb, var(--held) 60%, transparent) 5px 8px); }
.row { display: grid; grid-template-columns: 2.6rem minmax(7rem, 1fr) minmax(14rem, 2.6fr) minmax(7rem, 1fr);
  gap: 0 1rem; align-items: start; border-top: 1px solid var(--line); padding: .35rem 0; }
.head { border: 0; font-size: .8rem; color: var(--soft); padding-bottom: .2rem; }
.number, .head :first-child { text-align: right; color: var(--soft); font-variant-numeric: tabular-nums; }
.bar { position: relative; display: block; height: .85rem; margin-top: .28rem; background: var(--panel); border-radius: 3px;
  overflow: hidden; }
.bar i { position: absolute; top: 0; bottom: 0; min-width: 2px; }
.bar .gone { top: 38%; bottom: 38%; }
.texts { display: flex; flex-wrap: wrap; gap: 0 .8rem; margin-top: .1rem; }
.out, .back { position: relative; padding-left: .85rem; }
.out::before, .back::before { content: ""; position: absolute; left: 0; top: .45rem; width: .5rem; height: .5rem;
  border-radius: 50%; background: var(--sent); }
.back::before { background: var(--held); }
.number { font-size: 13px; line-height: 1.6; }
@media (max-width: 44rem) { .head { display: none; } .row { grid-template-columns: 2rem 1fr; gap: .1rem .6rem; }
  .track, .why { grid-column: 2; } .why:empty { display: none; } .why { color: var(--soft); }
  .waits::before { content: "held for "; font-size: .85rem; } main { padding: 1rem .8rem 2rem; } }
"""
