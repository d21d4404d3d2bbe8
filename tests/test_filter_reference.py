"""The reference's filter (`docs/filter.md`) against its rule by brute force: every match of every rule by
`re`, over the whole text.
"""

from __future__ import annotations

import itertools
import pickle
import random
from typing import Any

import pytest
from brute import cuttings, is_word
from test_patterns_oracles import LOOKS as ALL_LOOKS
from test_patterns_oracles import all_small_trees, nullable, random_tree, written

from holdback.reference import Between, Edit, Filter, Pattern, Rule

LOOKS = [pattern for pattern in ALL_LOOKS if "+?" not in pattern]  # lazy ones are refused here


def matches(patterns: list[str], text: str) -> list[tuple[int, int, int]]:
    return [
        (start, end, number)
        for number, pattern in enumerate(patterns)
        for start in range(len(text))
        for end in range(start + 1, len(text) + 1)
        if is_word(pattern, text, start, end)
    ]


def regions(found: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Section 2: start, end, rule."""
    result: list[tuple[int, int, int]] = []
    for start, end, number in sorted(found, key=lambda m: (m[0], -m[1], m[2])):
        if result and start < result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]), result[-1][2])
        else:
            result.append((start, end, number))
    return result


def items(patterns: list[str], text: str) -> list[Any]:
    """What goes out: characters as their places, replacements as their starts and rules."""
    result: list[Any] = []
    at = 0
    for start, end, number in regions(matches(patterns, text)):
        result += [*range(at, start), (start, number)]
        at = end
    return [*result, *range(at, len(text))]


def written_out(some: list[Any], text: str) -> str:
    return "".join(f"<{one[1]}>" if isinstance(one, tuple) else text[one] for one in some)


def filter_of(patterns: list[str]) -> Filter:
    """`max_hold` is there only so that nothing is refused."""
    return Filter(Rule(Pattern(p, max_hold=1000), f"<{n}>") for n, p in enumerate(patterns))


def check(patterns: list[str], text: str, letters: str, depth: int) -> tuple[int, int]:
    """Every third cut gives what the rule says, and no prefix of the output has anything that some
    continuation takes back. How often is something held, and how often does a short continuation tell why?
    """
    rules = filter_of(patterns)
    want = written_out(items(patterns, text), text)
    spans = regions(matches(patterns, text))
    for chunks in itertools.islice(cuttings(text), 0, None, 3):
        stream = rules.stream()
        out, edits = "", []
        for chunk in chunks:
            more, closed = stream.feed(chunk)
            out += more
            edits += closed
        more, closed = stream.flush()
        assert out + more == want, (patterns, text, chunks)
        found = [(edit.start, edit.end, edit.rule) for edit in (*edits, *closed)]
        assert found == spans, (patterns, text, chunks)
    stream, out = rules.stream(), ""
    held = told = 0
    for end in range(1, len(text) + 1):
        out += stream.feed(text[end - 1])[0]
        if end > 4 or depth == 0:
            continue
        futures = [
            items(patterns, text[:end] + "".join(more))
            for length in range(depth + 1)
            for more in itertools.product(letters, repeat=length)
        ]
        common = [
            column[0]
            for column in itertools.takewhile(
                lambda column: len(set(column)) == 1, zip(*futures, strict=False)
            )
        ]
        settled = written_out([one for one in common if one is not None], text[:end] + "?" * depth)
        assert settled.startswith(out), (patterns, text[:end], out, settled)
        held += 1
        told += settled == out
    return held, told


@pytest.mark.parametrize("part", range(4))
def test_every_small_rule_on_every_small_text(part: int) -> None:
    texts = ["".join(t) for n in (1, 3, 5) for t in itertools.product("ab", repeat=n)]
    for tree in all_small_trees()[part::4]:
        for text in texts:
            check([written(tree)], text, "ab", 0)


@pytest.mark.parametrize("seed", range(4))
def test_random_rules(seed: int) -> None:
    r = random.Random(seed)
    held = told = 0
    for number in range(40):
        trees = [random_tree(r) for _ in range(r.choice([1, 1, 2, 3]))]
        patterns = [written(tree) for tree in trees if not nullable(tree)]
        for _ in range(4 if patterns else 0):
            text = "".join(r.choice("abc") for _ in range(r.randint(1, 7)))
            one, two = check(patterns, text, "abcd", 3 if number % 8 == 0 else 0)
            held += one
            told += two
    # The rest needs longer continuations, or waits for another rule that could not win.
    assert told > 0.9 * held > 0


@pytest.mark.parametrize("seed", range(3))
def test_look_around(seed: int) -> None:
    r = random.Random(seed)
    for number in range(40):
        patterns = r.sample([*LOOKS, "ab", "b!", r"[^a]b"], r.choice([1, 2, 3]))
        for _ in range(4):
            text = "".join(r.choice("ab!\n") for _ in range(r.randint(1, 6)))
            check(patterns, text, "ab!\n", 2 if number % 8 == 0 else 0)


@pytest.mark.parametrize("seed", range(3))
def test_no_character_of_any_match_in_any_prefix(seed: int) -> None:
    """With letters that no replacement has, and each letter of the text a different one."""
    r = random.Random(seed)
    alphabet = "abcdefghij"
    for _ in range(60):
        text = "".join(r.sample(alphabet, len(alphabet)))
        patterns = []
        for _ in range(r.choice([1, 2, 3])):
            a = r.randrange(len(text) - 2)
            piece = text[a : a + r.randint(2, 4)]
            patterns.append(r.choice([piece, piece[0] + ".+", f"[{piece}]{{2,}}", piece + r"\b"]))
        covered = {
            text[place] for start, end, _ in matches(patterns, text) for place in range(start, end)
        }
        for chunks in itertools.islice(cuttings(text), r.randrange(50), None, 97):
            stream, out = filter_of(patterns).stream(), ""
            for chunk in chunks:
                out += stream.feed(chunk)[0]
                assert not covered & set(out), (patterns, text, chunks)
            out += stream.flush()[0]
            assert not covered & set(out)
            assert set(text) - covered <= set(out)


def between(text: str, open_: str, close: str) -> list[tuple[int, int, int]]:
    """Section 1, by looking for the literals."""
    found, at = [], 0
    while (start := text.find(open_, at)) >= 0:
        end = text.find(close, start + len(open_))
        if end < 0:
            return [*found, (start, len(text), 0)]
        at = end + len(close)
        found.append((start, at, 0))
    return found


@pytest.mark.parametrize(("open_", "close"), [("ab", "ba"), ("a", "b"), ("aa", "aa"), ("aba", "b")])
def test_between(open_: str, close: str) -> None:
    redact = Filter([Rule(Between(open_, close), "<0>")])
    emit = Filter([Rule(Between(open_, close, unclosed="emit", max_hold=99), "<0>")])
    for length in range(1, 8):
        for text in map("".join, itertools.product("ab", repeat=length)):
            spans = between(text, open_, close)
            closed = [
                span
                for span in spans
                if text[: span[1]].endswith(close) and span[1] - span[0] >= len(open_ + close)
            ]
            for rules, want in ((redact, regions(spans)), (emit, regions(closed))):
                out, at = "", 0
                for start, end, _ in want:
                    out += text[at:start] + "<0>"
                    at = end
                out += text[at:]
                assert rules.apply(text) == out, text
                stream = rules.stream()
                assert "".join(stream.feed(c)[0] for c in text) + stream.flush()[0] == out


def fed(rules: list[Rule], chunks: list[Any], **options: Any) -> tuple[list[Any], list[str]]:
    stream = Filter(rules).stream(**options)
    out, held = [], []
    for chunk in chunks:
        out.append(stream.feed(chunk)[0])
        held.append(stream.held)
    return [*out, stream.flush()[0]], held


KEY = Rule(Pattern("sk-[a-z]{4,}"), "[K]", name="key")


def test_when_it_goes_out() -> None:
    assert fed([KEY], ["key sk-a", "bcd", "e ok"])[0] == ["key ", "[K]", " ok", ""]
    assert fed([KEY], list("ask-me"))[1] == ["", "s", "sk", "sk-", "sk-m", "sk-me"]
    names = [Rule("PERSON_1", "Ada"), Rule("PERSON_10", "Bob")]
    assert fed(names, ["PERSON_1", "0 is"])[0] == ["", "Bob is", ""]
    assert fed(names, ["PERSON_1", "."])[0] == ["", "Ada.", ""]
    assert fed([Rule(Between("<t>", "</t>"))], ["a<", "t>no</", "t>b"])[0] == ["a", "", "b", ""]
    assert fed([Rule(Pattern("[ab]+"), mask="*")], list("xaab."))[0] == [
        "x",
        "*",
        "*",
        "*",
        ".",
        "",
    ]
    upper = Rule(Pattern("[ab]+"), str.upper)
    assert fed([upper], list("xaab."))[0] == ["x", "", "", "", "AAB.", ""]


def test_at_the_end() -> None:
    assert fed([KEY], ["sk-ab"])[0] == ["", "sk-ab"]
    assert fed([KEY], ["sk-ab"], at_end="redact")[0] == ["", "[K]"]
    assert fed([KEY], ["ask"], at_end="redact")[0] == ["a", "[K]"]
    assert fed([Rule(Pattern(r"ab\b"), "X")], ["ab"])[0] == ["", "X"]
    assert Filter([KEY]).apply("sk-abcd and sk-", at_end="redact") == "[K] and [K]"


def test_overflow() -> None:
    redact = Rule(Pattern("a.*b", max_hold=3), "X")
    emit = Rule(Pattern("a.*b", max_hold=3), "X", on_overflow="emit")
    assert fed([redact], list("xa1234b."))[0] == ["x", "", "", "", "X", "", "", "", "."]
    assert fed([redact], list("xa1234\n."))[0] == ["x", "", "", "", "X", "", "\n", ".", ""]
    assert fed([emit], list("xa1234b."))[0] == ["x", "", "", "", "a", "1", "X", "", "."]
    assert fed([emit], list("xa12b."))[0] == ["x", "", "", "", "X", "", "."]


def test_edits() -> None:
    stream = Filter([KEY]).stream(keep_text=True)
    assert stream.feed("key sk-a") == ("key ", ())
    assert stream.feed("bcd") == ("[K]", ())
    out, edits = stream.feed("e ok")
    assert out == " ok"
    assert edits == (Edit(0, "key", 4, 12, 4, 7, 0, 2, "sk-abcde"),)
    assert Filter([KEY]).stream().feed("sk-abcd ")[1][0].text is None


def test_what_is_refused() -> None:
    for what, says in [
        (Pattern("a.*b"), "max_hold"),
        (Pattern("sk-[a-z]{4}(?: .*x)?"), "max_hold"),
    ]:
        with pytest.raises(ValueError, match=says):
            Filter([Rule("x"), Rule(what)])
    with pytest.raises(ValueError, match="position 1"):
        Rule(Pattern("a+?"))
    with pytest.raises(ValueError, match="max_hold"):
        Between("a", "b", unclosed="emit")
    with pytest.raises(ValueError, match="empty"):
        Between("", "b")
    with pytest.raises(ValueError, match="empty"):
        Rule("")
    with pytest.raises(ValueError, match="both"):
        Rule("a", "b", mask="*")
    with pytest.raises(ValueError, match="one character"):
        Rule("a", mask="**")
    with pytest.raises(TypeError, match="rule 0"):
        Filter(["a"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"rule 0.*byte_stream"):
        Filter([Rule(b"a")]).stream()
    stream = Filter([KEY]).stream()
    stream.flush()
    with pytest.raises(ValueError, match="flushed"):
        stream.feed("a")


def test_bounds() -> None:
    rules = [
        KEY,
        Rule("abc"),
        Rule(Pattern(r"\bab\b")),
        Rule(Pattern("(?:ab)+")),
        Rule(Pattern("a.*b", max_hold=7)),
        Rule(Between("<t>", "</t>")),
    ]
    assert Filter(rules).bounds == (6, 2, 2, 1, 7, 2)


def test_state() -> None:
    stream = Filter([KEY]).stream()
    stream.feed("x sk-ab")
    others = [stream.copy(), pickle.loads(pickle.dumps(stream))]
    for other in [*others, stream]:
        assert other.held == "sk-ab"
        assert other.feed("cd!")[0] == "[K]!"
    stream.reset()
    assert stream.feed("a")[0] == "a"


def test_bytes() -> None:
    rules = Filter([Rule(Pattern(rb"\xff+;", max_hold=9), b"?"), Rule("é", "e")])
    stream = rules.byte_stream()
    assert stream.feed(b"a\xff") == (b"a", ())
    assert stream.feed(b"\xff;\xc3")[0] == b"?"
    assert stream.feed(b"\xa9.")[0] == b"e."
    text = Filter([Rule("é", "e")]).stream()
    assert [text.feed(bytes([byte]))[0] for byte in "aéb".encode()] == ["a", "", "e", "b"]
