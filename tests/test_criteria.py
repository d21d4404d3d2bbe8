"""Ending a generation: `StoppingCriteria`, `Generation`, `step_batch`.

The oracle below restates the rules of `holdback.criteria` on whole texts; the rest are the named
cases of the rules, and bad input."""

from __future__ import annotations

import itertools
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdback import Generation, StoppingCriteria, StopSet, step_batch
from holdback.finish import Finish

EOS, STOP_TOKEN = 90, 91

pieces = st.text("ab.\n", max_size=4)
tokens = st.tuples(st.sampled_from([1, 2, 3, EOS, STOP_TOKEN, None]), pieces)
generations = st.lists(tokens, max_size=12)
stop_lists = st.lists(st.text("ab.\n", min_size=1, max_size=3), max_size=3)
limits = st.fixed_dictionaries(
    {"min_tokens": st.integers(0, 3), "max_tokens": st.one_of(st.none(), st.integers(3, 8))},
)


def criteria_for(stops: list[str], **options: object) -> StoppingCriteria:
    return StoppingCriteria(stop=stops, eos_token_ids=EOS, stop_token_ids=[STOP_TOKEN], **options)  # type: ignore[arg-type]


def oracle(
    stops: list[str],
    generation: list[tuple[int | None, str]],
    *,
    min_tokens: int,
    max_tokens: int | None,
    include_stop: bool = False,
) -> tuple[str, str | None, str | None, int, str]:
    """Emitted text, reason, stop, tokens, cut: judged on the whole text, token by token, character
    by character.
    """
    text = ""
    for count, (token, piece) in enumerate(generation, 1):
        if count > min_tokens and token == EOS:
            return text, "eos", None, count, piece
        if count > min_tokens and token == STOP_TOKEN:
            return text, "stop_token", None, count, piece
        for at, character in enumerate(piece, 1):
            text += character
            ended = [stop for stop in stops if text.endswith(stop)] if count > min_tokens else []
            if ended:
                stop = max(ended, key=len)
                kept = text if include_stop else text[: len(text) - len(stop)]
                return kept, "stop_string", stop, count, ("" if include_stop else stop) + piece[at:]
        if max_tokens is not None and count >= max_tokens:
            return text, "length", None, count, ""
    return text, None, None, len(generation), ""


def play(run: Generation, generation: list[tuple[int | None, str]]) -> tuple[str, Finish | None]:
    emitted = ""
    for token, piece in generation:
        emit, finish = run.step(token, piece)
        emitted += emit
        if finish is not None:
            return emitted, finish
    return emitted, None


@given(stop_lists, generations, limits, st.booleans())
def test_every_ending_is_the_one_of_the_oracle(stops, generation, limit, include_stop):
    run = criteria_for(stops, include_stop=include_stop, **limit).start()
    emitted, finish = play(run, generation)
    expected = oracle(stops, generation, include_stop=include_stop, **limit)
    if finish is None:
        assert (emitted + run.held, None, None, run.tokens, "") == expected
    else:
        assert (emitted, finish.reason, finish.stop, finish.tokens, finish.removed) == expected
        assert run.finish == finish
        assert run.tokens == finish.tokens


@given(
    stop_lists,
    generations,
    limits,
    st.booleans(),
    st.sampled_from(["cancel", "end", "poll", "nothing"]),
)
def test_emitted_plus_cut_is_what_was_generated_on_every_path(
    stops, generation, limit, include_stop, how
):
    now = [0.0]
    criteria = criteria_for(
        stops, include_stop=include_stop, max_time=1.0, clock=lambda: now[0], **limit
    )
    run = criteria.start()
    emitted, finish = play(run, generation)
    if how == "cancel":
        emit, finish = run.cancel()
        emitted += emit
    elif how == "end":
        emit, finish = run.end("tool_calls")
        emitted += emit
    elif how == "poll":
        now[0] = 2.0
        emit, finish = run.poll()
        emitted += emit
    generated = "".join(piece for _, piece in generation[: run.tokens])
    assert emitted + run.held + (finish.removed if finish else "") == generated


@given(
    stop_lists,
    st.lists(st.tuples(st.sampled_from([1, EOS]), st.binary(max_size=3)), max_size=8),
    limits,
)
def test_nothing_is_lost_when_pieces_are_bytes_cut_anywhere(stops, generation, limit):
    run = criteria_for(stops, **limit).start()
    emitted, finish = play(run, generation)  # type: ignore[arg-type]
    if finish is None:
        emit, finish = run.cancel()
        emitted += emit
    counted = generation[: finish.tokens]
    ended_by_token = finish.reason in ("eos", "stop_token")
    text = b"".join(piece for _, piece in (counted[:-1] if ended_by_token else counted)).decode(
        errors="replace"
    )
    if ended_by_token:
        text += counted[-1][1].decode(errors="replace")
    assert emitted + finish.removed == text


@given(stop_lists, generations, limits, st.lists(st.integers(0, 12), max_size=3))
def test_a_block_is_judged_as_its_tokens_one_by_one(stops, generation, limit, cuts):
    criteria = criteria_for(stops, **limit)
    one, emitted, finish = criteria.start(), "", None
    alone, ended = play(one, generation)
    run = criteria.start()
    borders = sorted({0, len(generation), *(cut for cut in cuts if cut < len(generation))})
    for start, end in itertools.pairwise(borders):
        block = generation[start:end]
        before = run.tokens
        emit, finish = run.step_block([token for token, _ in block], [piece for _, piece in block])
        emitted += emit
        if finish is not None:
            assert finish.block_tokens == finish.tokens - before
            break
    assert emitted == alone
    assert (finish and (finish.reason, finish.tokens, finish.match)) == (
        ended and (ended.reason, ended.tokens, ended.match)
    )


@given(st.lists(st.tuples(stop_lists, generations, limits), max_size=5))
def test_a_batch_is_its_runs_one_by_one(rows):
    alone = [criteria_for(stops, **limit).start() for stops, _, limit in rows]
    batch = [criteria_for(stops, **limit).start() for stops, _, limit in rows]
    for step in range(max((len(generation) for _, generation, _ in rows), default=0)):
        live = [i for i, (_, generation, _) in enumerate(rows) if step < len(generation)]
        ids, texts = [rows[i][1][step][0] for i in live], [rows[i][1][step][1] for i in live]
        going = [i for i in live if alone[i].finish is None]
        expected = [
            alone[i].step(token, text) for i, token, text in zip(live, ids, texts, strict=True)
        ]
        emits, ended = step_batch([batch[i] for i in live], ids, texts)
        assert emits == [emit for emit, _ in expected]
        assert [(live[at], finish) for at, finish in ended] == [
            (i, alone[i].finish) for i in going if alone[i].finish
        ]


@given(stop_lists, generations, limits, st.integers(0, 12))
def test_a_copy_and_a_pickle_go_on_alike(stops, generation, limit, at):
    run = criteria_for(stops, **limit).start()
    play(run, generation[:at])
    twins = [run.copy(), pickle.loads(pickle.dumps(run))]
    rest = play(run, generation[at:])
    for twin in twins:
        assert play(twin, generation[at:]) == rest
        assert (twin.tokens, twin.held) == (run.tokens, run.held)


def test_a_copy_leaves_the_original_alone():
    run = StoppingCriteria(stop=["END"]).start()
    run.step(1, "E")
    run.copy().step(2, "ND")
    assert (run.tokens, run.held, run.finish) == (1, "E", None)
    assert run.step(2, "ND")[1].match.start_chunk == 0


# --- the named rules
# -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", [128001, 128009])
def test_both_end_tokens_of_a_chat_model_end_it_and_their_text_stays_in(token):
    run = StoppingCriteria(stop=["\n\nUser:"], eos_token_ids=[128001, 128009]).start()
    assert run.step(5, "Hi\n\n") == ("Hi", None)
    emit, finish = run.step(token, "<|eot_id|>")
    assert (emit, finish.reason, finish.token_id, finish.tokens, finish.removed) == (
        "\n\n",
        "eos",
        token,
        2,
        "<|eot_id|>",
    )


def test_an_id_in_both_lists_is_the_models_own_end():
    assert StoppingCriteria(eos_token_ids=7, stop_token_ids=7).start().step(7)[1].reason == "eos"


def test_include_stop_is_about_strings_not_about_end_tokens():
    run = StoppingCriteria(stop=["END"], eos_token_ids=2, include_stop=True).start()
    assert run.step(2, "</s>")[0] == ""


@pytest.mark.parametrize(("min_tokens", "ended_at"), [(0, 1), (1, 2), (2, 3)])
def test_min_tokens_is_the_number_of_tokens_that_cannot_end_it(min_tokens, ended_at):
    for criteria, piece in [
        (StoppingCriteria(eos_token_ids=2, min_tokens=min_tokens), "x"),
        (StoppingCriteria(stop_token_ids=2, min_tokens=min_tokens), "x"),
        (StoppingCriteria(stop="x", min_tokens=min_tokens), "x"),
    ]:
        run = criteria.start()
        finishes = [run.step(2, piece)[1] for _ in range(4)]
        assert finishes[ended_at - 1 :] == [run.finish] * (5 - ended_at)
        assert finishes[: ended_at - 1] == [None] * (ended_at - 1)


def test_an_ignored_end_token_is_text_like_any_other():
    run = StoppingCriteria(stop=["b</s>"], eos_token_ids=2, min_tokens=2).start()
    assert run.step(2, "a</s>") == ("a</s>", None)
    assert run.step(5, "b") == ("", None)
    assert run.step(2, "</s>")[1].reason == "eos"


def test_a_stop_that_begins_inside_min_tokens_and_ends_outside_counts():
    run = StoppingCriteria(stop=["END"], min_tokens=2).start()
    assert [run.step(i, piece) for i, piece in enumerate(["END", "EN"])] == [
        ("END", None),
        ("", None),
    ]
    emit, finish = run.step(3, "D")
    assert (emit, finish.reason, finish.match.start, finish.match.start_chunk) == (
        "",
        "stop_string",
        3,
        1,
    )


def test_vllms_min_tokens_case():
    words = [
        " is",
        " Lee",
        ",",
        " and",
        " I",
        "'m",
        " a",
        " student",
        " in",
        " the",
        " college",
        " of",
        " engineering",
    ]
    for min_tokens, expected in [(0, " is L"), (5, " is Lee, and I'm a stud")]:
        emitted, finish = play(
            StoppingCriteria(stop="e", min_tokens=min_tokens).start(), list(enumerate(words))
        )
        assert (emitted, finish.stop) == (expected, "e")


def test_the_stop_wins_over_the_limit_on_the_last_token():
    run = StoppingCriteria(stop=["END"], max_tokens=2).start()
    run.step(1, "xE")
    emit, finish = run.step(2, "ND")
    assert (emit, finish.reason, finish.tokens) == ("", "stop_string", 2)


# Cases that engines' own tests hold them to: chunks (or tokens), stops, what goes out, what ended
# it.
PEERS = [
    (
        [(1, " delta,"), (1, " epsilon,"), (1, " zeta,"), (1, " eta,")],
        [" zeta, eta"],
        " delta, epsilon,",
        "stop_string",
    ),
    ([(1, "h"), (1, "i"), (EOS, "</s>")], ["hiya"], "hi", "eos"),
    ([(1, piece) for piece in "aaaaab"], ["aaaab"], "a", "stop_string"),
    ([(1, "k "), (1, "X"), (1, "Y")], ["STOP", "XY"], "k ", "stop_string"),
    ([(1, "STOP")], ["OP", "ST"], "", "stop_string"),
    ([(1, "STOP"), (EOS, "</s>")], ["STOP"], "", "stop_string"),
    ([(EOS, "STOP")], ["STOP"], "", "eos"),
    ([(1, " th"), (1, "ere")], ["re", "he"], " t", "stop_string"),
    ([(1, "Paris")], ["Pari"], "", "stop_string"),
]


@pytest.mark.parametrize(("generation", "stops", "text", "reason"), PEERS)
def test_cases_of_the_engines(generation, stops, text, reason):
    emitted, finish = play(criteria_for(stops).start(), generation)
    assert (emitted, finish.reason) == (text, reason)
    block = criteria_for(stops).start().step_block(*zip(*generation, strict=True))
    assert (block[0], block[1].reason) == (text, reason)


def test_the_end_token_wins_over_the_limit():
    assert StoppingCriteria(eos_token_ids=2, max_tokens=1).start().step(2)[1].reason == "eos"


def test_a_limit_gives_out_what_was_held():
    run = StoppingCriteria(stop=["END"], max_tokens=2).start()
    run.step(1, "xE")
    emit, finish = run.step(2, "N")
    assert (emit, finish.reason, finish.removed) == ("EN", "length", "")


def test_time_is_counted_from_the_start_by_the_given_clock():
    now = [100.0]
    run = StoppingCriteria(stop=["END"], max_time=2.0, clock=lambda: now[0]).start()
    now[0] = 101.9
    assert run.step(1, "E") == ("", None)
    assert run.poll() == ("", None)
    now[0] = 102.0
    emit, finish = run.poll()
    assert (emit, finish.reason, finish.tokens, finish.block_tokens) == ("E", "time", 1, 0)


def test_a_stop_completed_when_time_is_up_wins():
    now = [0.0]
    run = StoppingCriteria(stop=["E"], max_time=1.0, clock=lambda: now[0]).start()
    now[0] = 5.0
    assert run.step(1, "E")[1].reason == "stop_string"


def test_time_used_travels_with_a_pickle():
    run = StoppingCriteria(max_time=3600.0).start()
    run.started -= 1800.0
    assert 1800.0 <= pickle.loads(pickle.dumps(run)).elapsed < 3600.0


@pytest.mark.parametrize("stops", [["STOP", "XY"], ["XY", "STOP"]])
def test_a_speculative_block_ends_at_its_first_completed_stop(stops):
    run = StoppingCriteria(stop=stops, eos_token_ids=2).start()
    emit, finish = run.step_block([10, 11, 12, 13, 2], ["k ", "STOP", "X", "Y", "</s>"])
    assert (emit, finish.stop, finish.block_tokens, finish.tokens) == ("k ", "STOP", 2, 2)


def test_block_tokens_counts_the_last_block_only():
    run = StoppingCriteria(stop=["END"]).start()
    run.step_block([1, 2], ["a", "b"])
    assert run.tokens == 2
    finish = run.step_block([3, 4, 5], ["E", "ND", "x"])[1]
    assert (finish.block_tokens, finish.tokens) == (2, 4)


def test_a_stop_before_the_end_token_of_one_block_wins():
    run = StoppingCriteria(stop=["cd"], eos_token_ids=2).start()
    emit, finish = run.step_block([1, 1, 1, 1, 2], ["a", "b", "c", "d", "Z"])
    assert (emit, finish.reason, finish.stop) == ("ab", "stop_string", "cd")


def test_half_a_character_at_the_end_can_complete_a_stop():
    run = StoppingCriteria(stop=["x�"], eos_token_ids=2).start()
    assert run.step(1, b"ax\xe2") == ("a", None)
    emit, finish = run.step(2, "</s>")
    assert (emit, finish.reason, finish.stop, finish.removed) == ("", "stop_string", "x�", "x�</s>")


def test_the_engine_may_decide_the_end():
    run = StoppingCriteria(stop=["END"]).start()
    run.step(1, "fn()E")
    emit, finish = run.end("tool_calls")
    assert (emit, finish.reason, finish.tokens, finish.block_tokens) == ("E", "tool_calls", 1, 0)


def test_an_end_told_by_another_system_keeps_its_stop_and_token():
    assert StoppingCriteria().start().end("stop_string", stop="###")[1].stop == "###"
    assert StoppingCriteria().start().end("eos", token_id=2)[1].token_id == 2


def test_after_the_end_every_call_answers_with_the_same_finish():
    run = StoppingCriteria(stop=["."], eos_token_ids=2, max_tokens=5).start()
    _, finish = run.step(1, "a. b")
    for answer in [
        run.step(2),
        run.step_block([1], ["x"]),
        run.cancel(),
        run.end("length"),
        run.poll(),
        run.step(1, "x"),
    ]:
        assert answer == ("", finish)
    assert step_batch([run], [2], ["x"]) == ([""], [])
    assert run.tokens == 1


# --- own criteria
# --------------------------------------------------------------------------------------------------


def three_lines(run: Generation, token_id: int | None, emit: str) -> str | None:
    run.data["lines"] = run.data.get("lines", 0) + emit.count("\n")
    return "lines" if run.data["lines"] >= 3 else None


def test_own_criteria_keep_notes_per_run_and_name_their_reason():
    criteria = StoppingCriteria(stop=["END"], custom=[three_lines])
    runs = [criteria.start(), criteria.start()]
    runs[0].step(1, "a\nb\n")
    assert runs[1].step(1, "a\n") == ("a\n", None)
    emit, finish = runs[0].step(2, "c\nE")
    assert (emit, finish.reason) == ("c\nE", "lines")


def test_own_criteria_come_last_and_in_order():
    seen = []
    criteria = StoppingCriteria(
        stop=["."],
        max_tokens=3,
        custom=[lambda *_: seen.append("first"), lambda *_: True, lambda *_: seen.append("third")],
    )
    assert criteria.start().step(1, "a.")[1].reason == "stop_string"
    assert seen == []
    assert criteria.start().step(1, "a")[1].reason == "custom"
    assert seen == ["first"]


def test_own_criteria_are_not_held_back_by_min_tokens():
    assert (
        StoppingCriteria(min_tokens=5, custom=[lambda *_: "mine"]).start().step(1, "a")[1].reason
        == "mine"
    )


@pytest.mark.parametrize("call", ["step", "step_block", "step_batch"])
def test_a_criterion_that_fails_leaves_the_run_as_it_was(call):
    def fails_at_two(run: Generation, token_id: int | None, emit: str) -> None:
        run.data["seen"] = run.tokens
        if run.tokens == 2:
            raise OSError("no")

    criteria = StoppingCriteria(stop=["END"], custom=[fails_at_two])
    run, other = criteria.start(), StoppingCriteria().start()
    run.step(1, "xE")
    calls = {
        "step": lambda: run.step(2, "ND"[:1]),
        "step_block": lambda: run.step_block([2], ["N"]),
        "step_batch": lambda: step_batch([other, run], [1, 2], ["y", "N"]),
    }
    with pytest.raises(OSError, match="no"):
        calls[call]()
    assert (run.tokens, run.held, run.finish, run.data) == (1, "E", None, {"seen": 1})
    assert other.tokens == 0


# --- bad input
# -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": -1}, "max_tokens must not be negative, not -1"),
        ({"min_tokens": -1}, "min_tokens must not be negative, not -1"),
        ({"ignore_end_inside": True}, "ignore_end_inside needs the regions of ignore_inside"),
        ({"max_time": -0.5}, "max_time must be seconds, 0 or more, not -0.5"),
        ({"max_time": float("nan")}, "max_time must be seconds, 0 or more, not nan"),
        ({"min_tokens": 1, "min_chars": 1}, "min_tokens and min_chars"),
        ({"eos_token_ids": [1, -1]}, "eos_token_ids[1] is -1"),
    ],
)
def test_a_bad_value_is_named(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        StoppingCriteria(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"eos_token_ids": "</s>"},
            "eos_token_ids are integers, not text: '</s>' may belong in stop",
        ),
        ({"stop_token_ids": [1, 2.0]}, "stop_token_ids[1] is float, not an integer"),
        ({"stop": [b"\xff"]}, "0"),
        ({"atomic": b"ab"}, "atomic must hold str, not bytes"),
        ({"ignore_inside": "ab"}, "ignore_inside[0] must be an (opener, closer) pair, not str"),
        (
            {"ignore_inside": [("a", "b"), ("c",)]},
            "ignore_inside[1] must be an (opener, closer) pair",
        ),
        (
            {"start_inside": 1, "ignore_inside": [("a", "b")]},
            "start_inside must be a bool, not int",
        ),
    ],
)
def test_a_bad_type_is_named_when_the_criteria_are_made(options, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        StoppingCriteria(**options)


def test_a_bad_piece_changes_nothing():
    run = StoppingCriteria(stop=["END"], eos_token_ids=2).start()
    run.step(1, "xE")
    for call in [
        lambda: run.step(1, 5),
        lambda: run.step(2, 7.5),
        lambda: run.step("1", "x"),
        lambda: run.step_block([1, 1], ["N", 5]),
        lambda: run.step_block([1], "N"),
        lambda: step_batch([run], [2], [5]),
    ]:
        with pytest.raises(TypeError):
            call()
        assert (run.tokens, run.held, run.finish) == (1, "E", None)


@given(
    stop_lists,
    generations,
    limits,
    st.integers(0, 12),
    st.sampled_from([[], 5, b"\xff"]),
    st.booleans(),
)
def test_a_call_that_raises_leaves_no_trace(stops, generation, limit, at, bad, own):
    errors = "strict" if bad == b"\xff" else "replace"
    criteria = criteria_for(stops, errors=errors, custom=[lambda *_: None] if own else [], **limit)
    run = criteria.start()
    block = [*generation[:at], (1, bad)]
    try:
        finish = run.step_block([token for token, _ in block], [piece for _, piece in block])[1]
        assert finish is not None  # it had ended in front of the bad piece
    except (TypeError, UnicodeDecodeError):
        assert (run.tokens, run.held, run.finish) == (0, "", None)
        assert play(run, generation) == play(criteria.start(), generation)


def test_a_block_taken_back_behind_min_tokens_arms_again():
    run = StoppingCriteria(stop=["END"], min_tokens=2).start()
    with pytest.raises(TypeError):
        run.step_block([1, 2, 3], ["END", "b", 5])
    emit, finish = run.step_block([1, 2, 3, 4], ["END", "b", "c", "END"])
    assert (emit, finish.reason, finish.tokens) == ("ENDbc", "stop_string", 4)


def test_a_batch_with_one_bad_piece_changes_no_run():
    runs = [StoppingCriteria(stop=["END"], eos_token_ids=2).start() for _ in range(3)]
    with pytest.raises(TypeError, match="piece 2 is int, not str or bytes-like"):
        step_batch(runs, [1, 2, 1], ["xE", "</s>", 5])
    assert [(run.tokens, run.held, run.finish) for run in runs] == [(0, "", None)] * 3


def test_strict_bytes_are_refused_without_a_trace():
    run = StoppingCriteria(stop=["END"], errors="strict", max_tokens=2).start()
    run.step(1, b"xE")
    with pytest.raises(UnicodeDecodeError):
        run.step(2, b"\xff")
    with pytest.raises(UnicodeDecodeError):
        run.step(2, b"N\xe2")  # the limit falls inside a character
    assert (run.tokens, run.held, run.finish) == (1, "E", None)
    assert run.step(2, b"N")[0] == "EN"


@pytest.mark.parametrize(("ids", "texts"), [([1, 2], ["a"]), ([1], ["a", "b"])])
def test_a_block_of_unequal_lists_is_refused(ids, texts):
    with pytest.raises(
        ValueError, match=f"a block of {len(ids)} token ids came with {len(texts)} pieces"
    ):
        StoppingCriteria().start().step_block(ids, texts)


def test_a_batch_of_unequal_lists_or_with_a_run_twice_is_refused():
    run = StoppingCriteria().start()
    with pytest.raises(ValueError, match="2 runs came with 1 token ids and 2 pieces"):
        step_batch([run, run.copy()], [1], ["a", "b"])
    with pytest.raises(ValueError, match="twice"):
        step_batch([run, run], [1, 2], ["a", "b"])
    assert run.tokens == 0


@pytest.mark.parametrize("reason", ["", None, 5])
def test_an_end_needs_a_reason(reason):
    with pytest.raises(ValueError, match="needs a reason"):
        StoppingCriteria().start().end(reason)


def test_a_stop_string_found_elsewhere_needs_its_name():
    with pytest.raises(ValueError, match="needs stop="):
        StoppingCriteria().start().end("stop_string")


def test_integers_of_other_libraries_are_found_in_the_lists():
    class Scalar:
        """As a zero-dimensional tensor: an integer by `__index__`, not by hash."""

        def __index__(self) -> int:
            return 2

    assert StoppingCriteria(eos_token_ids=[Scalar()]).start().step(Scalar())[1].token_id == 2


def test_a_compiled_set_is_shared_not_compiled_again():
    stops = StopSet(["END"])
    assert StoppingCriteria(stop=stops).stops is stops


def test_criteria_compare_and_pickle_by_value():
    criteria = StoppingCriteria(stop=["END"], eos_token_ids=[1, 2])
    assert criteria == StoppingCriteria(stop=["END"], eos_token_ids=(2, 1))
    assert pickle.loads(pickle.dumps(criteria)) == criteria


def test_stop_and_piece_options_reach_the_stream():
    run = StoppingCriteria(
        stop=["END"], ignore_inside=[("<think>", "</think>")], atomic="regions"
    ).start()
    emitted, finish = play(run, [(1, "<think>END</thi"), (2, "nk>x"), (3, "END")])
    assert (emitted, finish.match.start) == ("<think>END</think>x", 19)


@pytest.mark.parametrize("include", [["END"], "END", {"END"}, [b"END"]])
def test_one_stop_may_be_included_and_another_not(include):
    criteria = StoppingCriteria(stop=["END", "STOP"], include_stop=include)
    assert play(criteria.start(), [(1, "a EN"), (2, "D b")])[0] == "a END"
    emitted, finish = play(criteria.start(), [(1, "a ST"), (2, "OP b")])
    assert (emitted, finish.removed) == ("a ", "STOP b")


def test_regions_may_come_as_lists():
    assert StoppingCriteria(stop="END", ignore_inside=[["<t>", "</t>"]]).ignore_inside == (
        ("<t>", "</t>"),
    )


def test_a_criterion_that_ends_the_run_itself_is_told_so_and_nothing_is_lost():
    calls = []

    def cancels(run, _token, _emit):
        calls.append(run)
        return run.cancel() if len(calls) == 2 else None

    run = StoppingCriteria(stop=["END"], custom=[cancels]).start()
    assert run.step(1, "the E") == ("the ", None)
    with pytest.raises(RuntimeError, match="by what it returns"):
        run.step(2, "N")
    assert (run.finish, run.tokens, run.held) == (None, 1, "E")
    assert run.step(2, "d of") == ("Ed of", None)


def test_a_clock_that_fails_leaves_the_run_as_it_was():
    times = iter([0.0, 1.0])
    run = StoppingCriteria(stop=["END"], max_time=9.0, clock=lambda: next(times)).start()
    assert run.step(1, "the E") == ("the ", None)
    with pytest.raises(StopIteration):
        run.step(2, "N")
    assert (run.finish, run.tokens, run.held) == (None, 1, "E")


# --- which tokens stay
# ---------------------------------------------------------------------------------------------

byte_texts = st.text("a.。好😀é", max_size=8)


@st.composite
def byte_tokens(draw: st.DrawFn) -> list[str | bytes]:
    """A text cut into tokens anywhere, also inside characters, some tokens as `str` where they are
    whole.
    """
    data = draw(byte_texts).encode()
    parts: list[str | bytes] = []
    while data:
        size = draw(st.integers(0, 5))
        piece, data = data[:size], data[size:]
        whole = not parts or isinstance(parts[-1], str) or _whole(parts)
        try:
            text = piece.decode()
        except UnicodeDecodeError:
            text = ""
        parts.append(text if text and whole and draw(st.booleans()) else piece)
    return parts


def _whole(parts: list[str | bytes]) -> bool:
    joined = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    try:
        joined.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(
    byte_tokens(),
    st.lists(st.sampled_from(["。", "😀", ".a", "。好", "é"]), max_size=2),
    st.booleans(),
    st.sampled_from([None, 3]),
    st.booleans(),
)
def test_the_tokens_that_stay_have_no_byte_of_what_was_removed(parts, stops, include, limit, block):
    run = StoppingCriteria(stop=stops, include_stop=include, max_tokens=limit).start()
    emitted, finish = "", None
    if block:
        emitted, finish = run.step_block(range(len(parts)), parts)
    else:
        for number, part in enumerate(parts):
            emit, finish = run.step(number, part)
            emitted += emit
            waiting = list(run.held_tokens)
            assert waiting == list(range(number + 1))[number + 1 - len(waiting) :]
            if finish is not None:
                break
    if finish is None:
        rest, finish = run.cancel()
        emitted += rest
    assert run.held_tokens == ()
    sizes = [len(part.encode() if isinstance(part, str) else part) for part in parts]
    ends = list(itertools.accumulate(sizes[: finish.tokens]))
    out = len(emitted.encode())
    expected = sum(end <= out for end in ends) if finish.removed else finish.tokens
    assert finish.kept_tokens == expected
    assert finish.trim(list(range(len(parts)))) == list(range(len(parts)))[:expected]


@given(byte_tokens(), st.lists(st.sampled_from(["。", "😀", ".a", "。好"]), max_size=2))
def test_held_tokens_are_those_with_a_byte_that_is_not_out(parts, stops):
    run = StoppingCriteria(stop=stops).start()
    out, ends, size = 0, [], 0
    for number, part in enumerate(parts):
        emit, finish = run.step(number, part)
        if finish is not None:
            return
        out += len(emit.encode())
        size += len(part.encode() if isinstance(part, str) else part)
        ends.append(size)
        assert run.held_tokens == tuple(at for at, end in enumerate(ends) if end > out)


def test_a_character_of_a_stop_in_three_tokens_takes_all_three_with_it():
    run = StoppingCriteria(stop=["。"]).start()
    tokens = [bytes([byte]) for byte in "好。".encode()]
    for at, piece in enumerate(tokens):
        _, finish = run.step(at, piece)
    assert finish.match.start_chunk == 5, "the token that completed its first character"
    assert (finish.kept_tokens, b"".join(finish.trim(tokens)).decode()) == (3, "好")
    assert finish.trim(tokens, [0.5] * 6) == (tokens[:3], [0.5] * 3)


def test_a_token_without_text_goes_with_the_text_that_comes_next():
    """As `tokenizers.DecodeStream` gives it: nothing until the character is whole."""
    run = StoppingCriteria(stop=["。"]).start()
    pieces = [None, None, "好", None, None, "。"]
    for at, piece in enumerate(pieces):
        _, finish = run.step(at, piece)
        if at == 1:
            assert run.held_tokens == (0, 1)
    assert (finish.tokens, finish.kept_tokens) == (6, 3)
    run = StoppingCriteria(stop=["END"], eos_token_ids=2).start()
    run.step(7, None)
    assert run.step(2, None)[1].kept_tokens == 1, "nothing of it was removed"


def test_a_token_without_text_leaves_an_unfinished_character_alone():
    run = StoppingCriteria(stop=["END"]).start()
    assert run.step(1, "好".encode()[:2]) == ("", None)
    assert run.step(9, None) == ("", None)
    assert run.step(2, "好".encode()[2:]) == ("好", None)
    emits, _ = step_batch([run], [9], [None])
    assert (emits, run.tokens) == ([""], 4)
    assert run.step_block([1, 9], ["x", None])[0] == "x"


@pytest.mark.parametrize(
    ("how", "kept"),
    [("eos", 1), ("stop_token", 1), ("length", 2), ("custom", 2), ("cancelled", 2), ("time", 2)],
)
def test_every_reason_says_how_many_tokens_stay(how, kept):
    now = [0.0]
    run = StoppingCriteria(
        stop=["END"],
        eos_token_ids=2,
        stop_token_ids=3,
        max_tokens=2 if how == "length" else None,
        max_time=5.0 if how == "time" else None,
        clock=lambda: now[0],
        custom=[lambda run, *_: how == "custom" and run.tokens == 2],
    ).start()
    run.step(1, "xE")
    now[0] = 9.0
    token = {"eos": 2, "stop_token": 3}.get(how, 1)
    _, finish = run.step(token, "N")
    if how == "cancelled":
        _, finish = run.cancel()
    assert (finish.reason, finish.tokens, finish.kept_tokens) == (how, 2, kept)


def test_a_finish_that_nobody_counted_trims_nothing():
    with pytest.raises(ValueError, match="nobody counted"):
        Finish("eos").trim([1])


@given(stop_lists, generations, limits)
def test_the_text_of_an_ending_token_comes_out_when_it_is_asked_for(stops, generation, limit):
    plain = criteria_for(stops, **limit).start()
    emitted, finish = play(plain, generation)
    run = criteria_for(stops, include_stop_token=True, **limit).start()
    with_token, same = play(run, generation)
    if finish is not None and finish.reason in ("eos", "stop_token"):
        assert with_token == emitted + finish.removed
        assert (same.removed, same.kept_tokens) == ("", same.tokens)
        assert (same.reason, same.tokens) == (finish.reason, finish.tokens)
    else:
        assert (with_token, same) == (emitted, finish)


def test_no_token_at_all_may_be_allowed():
    run = StoppingCriteria(stop=["END"], max_tokens=0, min_tokens=3).start()
    assert (run.finish.reason, run.finish.tokens) == ("length", 0)
    assert run.step(1, "x") == ("", run.finish)
    assert pickle.loads(pickle.dumps(run)).finish == run.finish


def test_the_limit_wins_over_min_tokens():
    run = StoppingCriteria(stop=["x"], eos_token_ids=2, min_tokens=5, max_tokens=2).start()
    assert run.step(2, "x") == ("x", None)
    assert run.step(2, "x")[1].reason == "length"


def test_own_criteria_are_asked_on_the_last_token_too_and_win():
    seen = []

    def own(run, token, emit):
        seen.append(token)
        return "mine" if token == 9 else None

    criteria = StoppingCriteria(custom=[own], max_tokens=2)
    run = criteria.start()
    run.step(1, "a")
    assert run.step(2, "b")[1].reason == "length"
    assert seen == [1, 2]
    run = criteria.start()
    run.step(1, "a")
    assert run.step(9, "b")[1].reason == "mine"


def test_end_tokens_may_be_ignored_inside_a_region():
    criteria = StoppingCriteria(
        stop=["END"],
        eos_token_ids=2,
        stop_token_ids=3,
        ignore_inside=[("<tool_call>", "</tool_call>")],
        ignore_end_inside=True,
    )
    run = criteria.start()
    run.step(1, "<tool_call>{")
    assert run.step(2, "|")[1] is None
    assert step_batch([run], [3], ["|"]) == (["|"], [])
    assert run.step(1, "}</tool_call>")[1] is None
    assert run.step(2, "</s>")[1].reason == "eos"
    plain = StoppingCriteria(eos_token_ids=2, ignore_inside=[("<t>", "</t>")]).start()
    plain.step(1, "<t>")
    assert plain.step(2)[1].reason == "eos"
