"""What is measured: texts, the ways they are cut into chunks, and stop lists. All seeded, all made
here.

The same arguments give the same text everywhere, except `library_text`, which reads the Python that
runs it. No text holds one of the stops it is measured with, so that a pass sees it to the end
(`measure.verify` appends a stop of its own). Functions that cut give new `str` objects in every
call: CPython keeps a string's UTF-8 form once somebody asked for it, and a second pass over the
same objects would measure that cache."""

from __future__ import annotations

import random
import re
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import accumulate, chain, islice, pairwise
from pathlib import Path

Cut = Callable[[str], list[str]]

# --- stop lists
# ------------------------------------------------------------------------------------------------------

# As users and chat templates write them; the first four are the list of a usual request.
NATURAL = (
    "<|im_end|>",
    "</s>",
    "\n\nHuman:",
    "\nUser:",
    "<|eot_id|>",
    "### Response:",
    "\nObservation:",
    "<end_of_turn>",
    "</answer>",
    "[/INST]",
    "<|endoftext|>",
    "\nQuestion:",
    "</tool_call>",
    "\n\nAssistant:",
    "<|end|>",
    "END_OF_OUTPUT",
)
WIDE = (
    "用户：",
    "<|im_end|>",
    "。\n问题",
    "👋🏽 bye",
)  # what a request in Chinese, or with emoji, may bring
CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"


@cache
def stops(count: int) -> tuple[str, ...]:
    """`count` distinct stops, the natural ones first, then invented ones in the same styles: about
    20 characters each.
    """
    rng = random.Random(count)

    def name(low: int, high: int) -> str:
        return "".join(
            rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(rng.randint(low, high))
        )

    styles = [
        lambda: f"<|{name(2, 4)}_{name(3, 6)}|>",
        lambda: f"\n{name(3, 5).title()} {name(3, 5)}:",
        lambda: f"### {name(3, 5).title()} {name(3, 5).title()}",
        lambda: f"</{name(3, 5)}-{name(3, 5)}>",
        lambda: f"{name(3, 5).title()} {name(3, 5)} {name(2, 4)}",
    ]
    found = dict.fromkeys(NATURAL[:count])
    while len(found) < count:
        found[rng.choice(styles)()] = None
    return tuple(found)


def never_seen(known: Sequence[str], number: int) -> list[str]:
    """The same list with a last stop that no cache has met: what a new request brings."""
    return [*known[:-1], f"{known[-1]}{number}"]


# --- texts
# -----------------------------------------------------------------------------------------------------------

WORDS = re.findall(
    r"\w+",
    "the of and a to in is that for it as with on be this by are or from an at which can not we if will its one has when "
    "would there their more so about all time each other into then than only some could these two may first new very "
    "model text value answer because function example step number result state question between under order given "
    "without point line however several possible simple system process different second called therefore water light "
    "history language country people together actually remember consider following difference",
)
CODE = (
    "def load(path):\n    return open(path).read()\n",
    "for (int i = 0; i < n; i++) {\n    sum += a[i];\n}\n",
    'if x <= 0:\n    raise ValueError(f"{x} < 0")\n',
    '<li class="row"><b>{{ name }}</b></li>\n',
    '{"id": 7, "tags": ["a", "b"], "ok": true}\n',
    "```python\nprint([n ** 2 for n in range(10)])\n```\n",
    "### Notes\n\n* first\n* second\n\n",
    "$ git log --oneline | head -5\n",
)
EMOJI = ("😀", "🚀", "🎉", "👍🏽", "👩‍💻", "🇫🇷", "❤️", "🧪", "👨‍👩‍👧", "✨")


def prose(rng: random.Random) -> Iterator[str]:
    """Sentences in which frequent words are frequent."""
    weights = list(accumulate(1 / (rank + 2) for rank in range(len(WORDS))))
    while True:
        words = rng.choices(WORDS, cum_weights=weights, k=rng.randint(5, 18))
        yield " ".join(words).capitalize() + rng.choice([". ", ". ", "? ", ": ", ".\n", ".\n\n"])


@cache
def mixed_text(length: int) -> str:
    """ASCII: prose with code, markup and JSON in it, as an assistant writes it."""
    rng = random.Random(11)
    sentences = prose(rng)
    pieces = (next(sentences) if rng.random() < 0.8 else rng.choice(CODE) for _ in iter(int, 1))
    return first(length, pieces)


@cache
def cjk_text(length: int) -> str:
    """Chinese by its shape: a few hundred characters, the frequent ones frequent, with full-width
    punctuation.
    """
    rng = random.Random(12)
    letters = [chr(code) for code in rng.sample(range(0x4E00, 0x9FA5), 600)]
    weights = list(accumulate(1 / (rank + 5) for rank in range(len(letters))))
    pieces = (
        "".join(rng.choices(letters, cum_weights=weights, k=rng.randint(4, 20)))
        + rng.choice("，，。。、\n？")
        for _ in iter(int, 1)
    )
    return first(length, pieces)


@cache
def emoji_text(length: int) -> str:
    """Emoji, with all that joins and modifies them."""
    rng = random.Random(13)
    return first(length, (rng.choice(EMOJI) for _ in iter(int, 1)))


def library_files() -> Iterator[str]:
    """The sources of this Python's own library, file by file: the modules, without packages."""
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text = path.read_text("utf-8")
        if text.isascii():
            yield text


@cache
def library_text(length: int) -> str:
    """Real text: files of the library in which no natural stop stands, repeated if there are too
    few of them.
    """
    files = (text for text in library_files() if not any(stop in text for stop in NATURAL))
    found = first(length, files)
    return (found * (length // len(found) + 1))[:length]


def first(length: int, pieces: Iterator[str]) -> str:
    """The first `length` characters of the pieces."""
    taken, total = [], 0
    for piece in pieces:
        taken.append(piece)
        total += len(piece)
        if total >= length:
            break
    return "".join(taken)[:length]


# --- cuts
# ------------------------------------------------------------------------------------------------------------


def every(size: int) -> Cut:
    """Chunks of `size` characters."""
    return lambda text: [text[at : at + size] for at in range(0, len(text), size)]


def like_tokens(text: str) -> list[str]:
    """Chunks of 1 to 8 characters, 4 on average, as tokens of a language model are."""
    rng = random.Random(14)
    ends = accumulate(
        chain([0], rng.choices(range(1, 9), [8, 14, 20, 20, 16, 11, 7, 4], k=len(text)))
    )
    bounds = list(islice(ends, len(text)))
    return [text[a:b] for a, b in pairwise(bounds) if a < len(text)]


LEXEME = re.compile(r"[ \t]*\w{1,8}|\s{1,16}|[^\w\s]{1,3}")


def like_lexemes(text: str) -> list[str]:
    """Chunks of code: a word with the blanks before it, an indentation, a few signs."""
    return LEXEME.findall(text)


# --- adversaries
# -----------------------------------------------------------------------------------------------------


@cache
def adversaries(length: int) -> dict[str, tuple[tuple[str, ...], str]]:
    """Stop lists and texts made to cost a matcher more than it promises.

    No text completes a stop.
    """
    rng = random.Random(15)
    fibonacci = ["b", "a"]
    while len(fibonacci[-1]) < length:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    word = fibonacci[-1]
    halves = [stop[: rng.randint(1, len(stop) - 1)] for stop in NATURAL * 8]
    return {
        # One stop that repeats itself, and a text that is always about to complete it.
        "overlap": (("a" * 1000 + "b",), "a" * length),
        # The same with two periods at once: suffixes of suffixes.
        "fibonacci": ((word[:987] + "c",), word[:length]),
        # Stops with one long beginning in common: many ways to go on, none taken.
        "fan": (tuple("a" * 64 + f"{number:03}" for number in range(256)), "a" * length),
        # Stops with one long end in common: whoever looks for ends finds all of them at once.
        "tails": (tuple(f"{number:03}" + "z" * 64 + "!" for number in range(500)), "z" * length),
        # The beginnings of natural stops, one after another: whoever skips to where a stop may
        # begin never skips.
        "bait": (NATURAL, first(length, (rng.choice(halves) for _ in iter(int, 1)))),
    }
