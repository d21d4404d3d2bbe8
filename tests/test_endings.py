"""Ends of a text that are no fixed string: loops, whole JSON values, closed code fences.

The oracles read whole texts: `json` itself for JSON, a loop over lines for fences, and the rule of
loops word by word. Cuts, copies and pickles change nothing."""

from __future__ import annotations

import json
import pickle
import sysconfig
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdback import FenceEnd, JsonEnd, Repetition, StoppingCriteria

cuts = st.lists(st.integers(1, 4), max_size=12)


def pieces(text: str, sizes: list[int]) -> list[str]:
    made, at = [], 0
    for size in sizes or [len(text)]:
        made.append(text[at : at + size])
        at += size
    return [*made, text[at:]] if text[at:] else made


def read(rule, text: str, sizes: list[int], at: int = 0) -> int | None:
    """How much of the text belongs to the answer, read in pieces, with a copy or a pickle on the
    way.
    """
    detector = rule.detector()
    done = 0
    for number, piece in enumerate(pieces(text, sizes)):
        if number == at:
            detector = detector.copy()
        elif number == at + 1:
            detector = pickle.loads(pickle.dumps(detector))
        kept = detector.feed(piece)
        if kept is not None:
            return done + kept
        done += len(piece)
    return None


# --- loops
# ---------------------------------------------------------------------------------------------


def loop_end(rule: Repetition, text: str) -> int | None:
    """The rule, word by word."""
    for end in range(1, len(text) + 1):
        for unit in range(1, min(rule.max_unit, end) + 1):
            cover = rule.cover if unit >= rule.min_unit else rule.short_cover
            last = text[end - unit : end]
            primitive = (last + last).find(last, 1) == unit
            length = unit
            while length < end and text[end - 1 - length] == text[end - 1 - length + unit]:
                length += 1
            if cover is not None and primitive and length >= max(cover, rule.count * unit):
                return end
    return None


rules = st.builds(
    Repetition,
    count=st.integers(3, 5),
    cover=st.integers(0, 20),
    min_unit=st.integers(1, 4),
    max_unit=st.integers(4, 9),
    short_cover=st.none() | st.integers(0, 25),
)
loops = st.lists(
    st.tuples(st.text("ab", min_size=1, max_size=7), st.integers(1, 7)), min_size=1, max_size=4
).map(lambda parts: "".join(unit * times for unit, times in parts))


@given(rules, loops, cuts, st.integers(0, 3))
def test_a_loop_ends_where_the_rule_says_however_it_is_cut(rule, text, sizes, at):
    assert read(rule, text, sizes, at) == loop_end(rule, text)


@given(rules, loops, cuts, st.booleans())
def test_a_run_that_ends_with_a_loop_loses_nothing_and_counts_its_tokens(rule, text, sizes, block):
    parts = pieces(text, sizes)
    run = StoppingCriteria(repetition=rule, stop=["bbab"]).start()
    emitted, finish = "", None
    if block:
        emitted, finish = run.step_block(range(len(parts)), parts)
    else:
        for number, part in enumerate(parts):
            emit, finish = run.step(number, part)
            emitted += emit
            if finish is not None:
                break
    if finish is None:
        rest, finish = run.cancel()
        emitted += rest
    assert emitted + finish.removed == "".join(parts[: finish.tokens])
    stop_at = text.find("bbab")
    head = text if stop_at < 0 else text[:stop_at]
    end = loop_end(rule, head)
    assert (finish.reason == "repetition") == (end is not None)
    if end is not None:
        assert emitted == text[:end]
        unit, count = finish.loop.unit, finish.loop.count
        assert text[finish.loop.start : end].startswith(unit * count)
        assert end - finish.loop.start < len(unit) * (count + 1)
        ends = [len("".join(parts[: number + 1])) for number in range(finish.tokens)]
        assert finish.kept_tokens == sum(place <= end for place in ends)


# What vLLM's own tests ask of its detector of repeated tokens, a letter for a token.
VLLM = [
    ("abcabcabc", {"min_unit": 2, "max_unit": 3}, True),
    ("abcabc", {"min_unit": 2, "max_unit": 3}, False),
    ("abababab", {"min_unit": 2, "max_unit": 5, "count": 4}, True),
    ("abcdefghi", {"min_unit": 2, "max_unit": 5}, False),
    ("abcabcabd", {"min_unit": 2, "max_unit": 3}, False),
    ("", {"min_unit": 2, "max_unit": 3}, False),
    ("abcdefefef", {"min_unit": 2, "max_unit": 3}, True),
    ("abcdefgh" * 5, {"min_unit": 2, "max_unit": 10}, True),
    ("klklkl", {"min_unit": 2, "max_unit": 5}, True),
    ("klmnop", {"min_unit": 2, "max_unit": 5}, False),
    ("klmklmklm", {"min_unit": 3, "max_unit": 3}, True),
    ("ghijghijghij", {"min_unit": 2, "max_unit": 5}, True),
    ("klklkl", {"min_unit": 3, "max_unit": 5}, False),
    ("klklkl", {"min_unit": 2, "max_unit": 5, "count": 5}, False),
]


@pytest.mark.parametrize(("text", "rule", "fires"), VLLM)
def test_cases_of_vllm(text, rule, fires):
    made = Repetition(**{"count": 3, "cover": 0, "short_cover": None, **rule})
    assert (made.detector().feed(text) is not None) == fires


def test_an_end_token_and_min_tokens_go_before_a_loop():
    rule = Repetition(count=3, cover=0, min_unit=2, max_unit=5, short_cover=None)
    run = StoppingCriteria(repetition=rule, stop_token_ids=9).start()
    assert run.step_block([1, 2, 1, 2, 9], ["k", "l", "k", "l", ""])[1].reason == "stop_token"
    run = StoppingCriteria(repetition=rule, min_tokens=7).start()
    finishes = [run.step(number, "kl"[number % 2])[1] for number in range(8)]
    assert finishes[:7] == [None] * 7
    assert (finishes[7].reason, finishes[7].tokens) == ("repetition", 8)


def test_the_finish_says_what_was_repeated_in_each_systems_words():
    run = StoppingCriteria(repetition=True, stop=["END"]).start()
    run.step(1, "Let me see. ")
    emit, finish = run.step(2, "I will check the file again.\n" * 20 + "tail")
    assert len(emit) == 400
    assert finish.loop.unit == "I will check the file again.\n"
    assert (finish.loop.count, finish.loop.start) == (13, 12)
    assert finish.removed.endswith("tail")
    assert finish.to("vllm") == {
        "finish_reason": "repetition",
        "stop_reason": "repetition_detected",
    }
    assert finish.to("openai") == {"finish_reason": "stop"}
    assert pickle.loads(pickle.dumps(finish)) == finish


def test_no_false_alarm_in_the_sources_of_pythons_library():
    """Its tests are left out: they hold tables of data that are loops."""
    rule = Repetition()
    library = Path(sysconfig.get_path("stdlib"))
    skipped = {"test", "tests", "idle_test", "site-packages", "dist-packages"}
    alarms, characters = [], 0
    for path in sorted(library.rglob("*.py")):
        if skipped & {*path.relative_to(library).parts}:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        characters += len(text)
        if rule.detector().feed(text) is not None:
            alarms.append(path.name)
    assert alarms == []
    assert characters > 8_000_000, "most of the library was there to be read"


def test_short_units_take_a_larger_cover_and_rules_of_dashes_are_no_long_units():
    assert Repetition().detector().feed("items " * 200) == 1000
    assert Repetition(short_cover=None).detector().feed("-" * 100_000) is None
    assert Repetition(short_cover=None).detector().feed("items " * 10_000) is None


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({"count": 2}, ValueError, "count"),
        ({"count": 2.5}, TypeError, "count"),
        ({"cover": -1}, ValueError, "cover"),
        ({"min_unit": 0}, ValueError, "min_unit"),
        ({"min_unit": 9, "max_unit": 8}, ValueError, "min_unit"),
        ({"max_unit": 1 << 20}, ValueError, "max_unit"),
        ({"short_cover": "x"}, TypeError, "short_cover"),
        ({"count": True}, TypeError, "count"),
    ],
)
def test_a_bad_rule_names_its_argument(options, error, named):
    with pytest.raises(error, match=named):
        Repetition(**options)


@pytest.mark.parametrize(
    "options",
    [{"repetition": 3}, {"custom": [JsonEnd]}, {"custom": ["json"]}, {"custom": [3]}],
)
def test_what_is_no_end_is_refused_when_the_criteria_are_made(options):
    with pytest.raises(TypeError, match=r"repetition|custom"):
        StoppingCriteria(**options)


# --- JSON
# ----------------------------------------------------------------------------------------------


def json_end(text: str) -> int | None:
    """The first place from which `json` reads an object or array; what cannot begin one is passed."""
    decoder = json.JSONDecoder(parse_constant=None)
    for at, character in enumerate(text):
        if character in "{[":
            try:
                return decoder.raw_decode(text, at)[1]
            except ValueError:
                continue
    return None


containers = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text('a"\\}]{[\n\té😀', max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('k"}', max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)
spaces = st.sampled_from([None, 1, "\t"])


@given(
    st.lists(containers, max_size=2) | st.dictionaries(st.text("k}", max_size=2), containers),
    st.text("a: \n", max_size=6),
    st.text('a}] ,\n{["', max_size=6),
    spaces,
    st.booleans(),
    cuts,
    st.integers(0, 3),
)
@example([1], "", "", None, True, [1, 1], 0)
def test_the_first_value_ends_it_wherever_it_is_cut(
    value, before, after, indent, ascii_, sizes, at
):
    written = json.dumps(value, indent=indent, ensure_ascii=ascii_)
    text = before + written + after
    assert read(JsonEnd(), text, sizes, at) == len(before + written)


@given(containers, st.text(" \n", max_size=2), st.sampled_from([" x", "\n", "}", "]", ","]), cuts)
def test_any_value_may_be_asked_for_and_a_number_ends_before_what_follows(
    value, before, after, sizes
):
    written = json.dumps(value)
    text = before + written
    assert read(JsonEnd(scalars=True), text + after, sizes) == len(text)
    alone = read(JsonEnd(scalars=True), text, sizes)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        assert alone is None, "a number that ends the text may go on"
    else:
        assert alone == len(text)


@given(st.text('{}[]",:\\ 1te', max_size=14), cuts)
def test_what_is_taken_for_json_is_json(text, sizes):
    end = read(JsonEnd(), text, sizes)
    assert end == read(JsonEnd(), text, [])
    if end is not None:
        begins = [at for at in range(end) if text[at] in "{["]
        assert any(_is_json(text[at:end]) for at in begins)
    elif (first := json_end(text)) is not None:
        # A candidate that broke off later than this value began has swallowed it: said in the docs.
        assert text[:first].count("{") + text[:first].count("[") > 1


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('Sure! {"a": "}"} Done', 16),
        ("[link](x) then [1, 2] and", 21),
        ("[see {}", 7),
        ('{"a": 01} [true]', 16),
        ('{"a": nul} [null]', 17),
        ('["\\u00e9\\ud83d"] ', 16),
        ('["\\x"] [0]', 10),
        ("[1,] [2]", 8),
        ('{"a" 1} {}', 10),
        ("[-0.5e+10, 1E5]", 15),
        ('["a\nb"] {}', 10),
        ("no json", None),
        ('{"a": [', None),
    ],
)
def test_named_cases_of_json(text, kept):
    assert read(JsonEnd(), text, []) == kept
    assert read(JsonEnd(), text, [1] * len(text)) == kept


def test_nesting_is_limited_not_fatal():
    detector = JsonEnd().detector()
    assert detector.feed("[" * 100_000) is None
    assert len(detector.closers) <= 1000
    assert JsonEnd(max_depth=3).detector().feed("[[[1]]]") == 7
    assert JsonEnd(max_depth=3).detector().feed("{}") == 2


def test_a_run_ends_after_its_json_and_removes_the_rest():
    run = StoppingCriteria(custom=[JsonEnd(after="</think>")], eos_token_ids=2).start()
    assert run.step(1, "<think>{}") == ("<think>{}", None)
    assert run.step(1, "</thi") == ("</thi", None)
    emit, finish = run.step(1, 'nk>{"a": 1}\n```')
    assert (emit, finish.reason, finish.removed) == ('nk>{"a": 1}', "json_end", "\n```")
    assert (finish.tokens, finish.kept_tokens) == (3, 2)
    assert finish.to("openai") == {"finish_reason": "stop"}


def test_the_first_end_in_the_text_counts():
    def ended(text: str, **options: object) -> tuple[str, str]:
        run = StoppingCriteria(custom=[JsonEnd()], stop=["STOP"], **options).start()
        emit, finish = run.step(1, text)
        return emit, finish.reason

    assert ended("{} STOP") == ("{}", "json_end")
    assert ended("STOP {}") == ("", "stop_string")
    assert ended("{} STOP", include_stop=True) == ("{}", "json_end")
    assert ended("STOP {}", include_stop=True) == ("STOP", "stop_string")
    run = StoppingCriteria(custom=[JsonEnd()], stop=["}\n\n"], eos_token_ids=2).start()
    assert run.step(1, "{}") == ("{", None)
    emit, finish = run.step(2, "</s>")
    assert (emit, finish.reason, finish.removed) == ("}", "json_end", "</s>")


# --- fences
# --------------------------------------------------------------------------------------------


def fence_end(text: str, *, inside: bool) -> int | None:
    mark, at = "```" if inside else "", 0
    for line in text.split("\n")[:-1]:
        end = at + len(line)
        bare = line.rstrip("\r").strip(" \t")
        indent = len(line) - len(line.lstrip(" "))
        sign = bare[:1]
        run = len(bare) - len(bare.lstrip(sign)) if sign else 0
        if indent <= 3 and sign in ("`", "~") and run >= 3 and not line.startswith("\t"):
            if not mark:
                if sign == "~" or "`" not in bare[run:]:
                    mark = sign * run
            elif sign == mark[0] and run >= len(mark) and bare == sign * run:
                return end
        at = end + 1
    return None


lines = st.lists(
    st.sampled_from(
        ["```", "~~~", "````", " ```", "     ```", "```py", "``", "a", "", "``` ", "```\r", "~~~ `"]
    ),
    max_size=7,
).map("\n".join)


@given(lines, st.booleans(), st.booleans(), cuts, st.integers(0, 3))
def test_a_fence_ends_where_its_lines_say_however_they_are_cut(text, ended, inside, sizes, at):
    text += "\n" if ended else ""
    assert read(FenceEnd(inside=inside), text, sizes, at) == fence_end(text, inside=inside)


def test_a_run_ends_with_its_code_block():
    run = StoppingCriteria(custom=[FenceEnd()]).start()
    text = "Here:\n```python\nprint(1)\n```\nIt prints"
    emitted, finish = "", None
    for number, character in enumerate(text):
        emit, finish = run.step(number, character)
        emitted += emit
        if finish is not None:
            break
    assert (emitted, finish.reason) == ("Here:\n```python\nprint(1)\n```", "fence_end")


def test_a_line_without_end_takes_no_memory():
    detector = FenceEnd().detector()
    for _ in range(1000):
        assert detector.feed("`" * 1000) is None
    assert len(detector.line) <= 1024
    assert detector.feed("\n") is None


@pytest.mark.parametrize("rule", [JsonEnd, FenceEnd])
def test_after_is_a_text(rule):
    with pytest.raises(ValueError, match="after must be a non-empty str"):
        rule(after="")
