"""Text in a corpus's form, as plain text, and in the form of each score."""

import dataclasses
from pathlib import Path

import pytest

from seq2seq_memattn.text.form import (
    AS_GIVEN,
    FormedLines,
    TextForm,
    check_truecase_model,
    looks_tokenised,
)

MOSES = TextForm("en", "en", is_tokenised=True, is_truecased=True)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("it &apos;s a well @-@ known fact .", "It's a well-known fact."),
        # For detruecase.perl, a colon ends a sentence.
        ("he said : &quot; no , thanks ! &quot;", 'He said: "No, thanks!"'),
        ("a &amp; b &#124; c &#91; d &#93;", "A & b | c [d]"),
        ("", ""),
    ],
)
def test_readable_text_has_neither_escapes_nor_spaces_of_a_tokeniser(
    line: str, expected: str
) -> None:
    assert MOSES.readable([line]) == [expected]


def test_only_what_was_done_is_undone() -> None:
    line = "it &apos;s here ."
    assert TextForm("en", "en", is_tokenised=True).readable([line]) == ["it's here."]
    assert TextForm("en", "en", is_truecased=True).readable([line]) == ["It &apos;s here ."]
    assert AS_GIVEN.readable([line]) == [line]
    unescaped = TextForm("en", "en", is_tokenised=True, has_escapes=False)
    assert unescaped.readable(["AT &amp; T , here"]) == ["AT &amp; T, here"]


def test_czech_that_sacremoses_cannot_join_is_readable_too() -> None:
    form = TextForm("en", "cs", is_tokenised=True)
    assert form.readable(["x' - li y , z ."]) == ["x' - li y, z."]


@pytest.fixture
def truecase_model(tmp_path: Path) -> Path:
    """A truecase model in the format of train-truecaser.perl."""
    path = tmp_path / "source.truecase"
    path.write_text("the (9/10) The (1/10)\nfact (3/3)\nLondon (4/4)\n")
    return path


def test_sources_are_normalised_tokenised_and_truecased_as_the_corpus_was(
    truecase_model: Path,
) -> None:
    form = TextForm("en", "de", True, True, True, True, truecase_model.name)
    line = "The “well-known” fact: LONDON & the rest , isn't The end."
    found = form.as_trained([line, ""], truecase_model.parent)
    assert found == [
        "the &quot; well @-@ known &quot; fact : London &amp; the rest , isn &apos;t The end .",
        "",
    ]
    plain = dataclasses.replace(form, splits_hyphens=False, has_escapes=False, truecase_model="")
    assert plain.as_trained([line], truecase_model.parent) == [
        'The " well-known " fact : LONDON & the rest , isn \'t The end .'
    ]
    assert AS_GIVEN.as_trained([line], truecase_model.parent) == [line]
    lower = TextForm("de", "en", is_lowercased=True)
    assert lower.as_trained(["Ärger im Park"], truecase_model.parent) == ["ärger im park"]


def test_text_may_have_been_lower_cased_before_or_after_it_was_tokenised() -> None:
    after = TextForm("en", "de", is_tokenised=True, is_lowercased=True)
    before = dataclasses.replace(after, is_lowercased_first=True)
    line = "A man sits. A woman stands."
    # Moses' tokeniser takes a dot for the end of a sentence if a capital follows.
    assert after.as_trained([line], Path()) == ["a man sits . a woman stands ."]
    assert before.as_trained([line], Path()) == ["a man sits. a woman stands ."]
    assert before.beginnings_as_trained(["Da. Ein"]) == ["da. ein"]
    with pytest.raises(ValueError, match="is_lowercased_first: expected only with is_lowercased"):
        TextForm("en", is_lowercased_first=True)


def test_a_truecase_model_is_read_once_and_may_then_go(truecase_model: Path) -> None:
    form = TextForm("en", "de", is_truecased=True, truecase_model=truecase_model.name)
    convert = form.source_converter(truecase_model.parent)
    truecase_model.unlink()
    assert convert(["The london fact"]) == ["the London fact"]


def test_languages_without_spaces_are_taken_as_they_were_divided() -> None:
    form = TextForm("ja", "zh", is_tokenised=True, is_lowercased=True)
    assert not form.tokenises_sources
    assert form.as_trained(["彼 は A です 。"], Path()) == ["彼 は a です 。"]
    assert form.beginnings_as_trained(["他 是"]) == ["他 是"]
    assert form.readable(["他 是 。"]) == ["他是。"]


def test_a_file_that_is_no_truecase_model_is_named(tmp_path: Path) -> None:
    for content in (b"the (9/10) The\n", b"\x1f\x8b\x00"):
        (tmp_path / "model").write_bytes(content)
        with pytest.raises(ValueError, match="model: expected a model of truecase.perl"):
            check_truecase_model(tmp_path / "model")
    with pytest.raises(ValueError, match="truecase_model: expected only with is_truecased"):
        TextForm("en", truecase_model="model")


def test_the_truecase_model_of_a_stored_form_lies_beside_it(truecase_model: Path) -> None:
    form = TextForm(is_truecased=True, truecase_model=truecase_model.name)
    assert TextForm.from_dict(form.to_dict()) == form
    elsewhere = dataclasses.replace(form, truecase_model=str(truecase_model))
    with pytest.raises(ValueError, match="truecase_model: expected a name without directories"):
        TextForm.from_dict(elsewhere.to_dict())


def test_text_of_a_tokeniser_is_known_by_its_marks() -> None:
    for line in ("well @-@ known", "it &apos;s", "&quot; no"):
        assert looks_tokenised(["plain", line])
    assert not looks_tokenised(["It's a well-known fact & more.", "a @-@b"])


def test_a_region_or_capitals_in_a_language_code_change_nothing(tmp_path: Path) -> None:
    assert TextForm("en-GB", is_tokenised=True).as_trained(["It isn't."], tmp_path) == (
        TextForm("en", is_tokenised=True).as_trained(["It isn't."], tmp_path)
    )
    chinese = TextForm("zh-CN", "ZH_tw", is_tokenised=True)
    assert not chinese.tokenises_sources
    assert chinese.standard_tokeniser == "zh"
    assert TextForm("en", "zh-Hans").tokenised(["我 喜欢猫。"]) == ["我 喜 欢 猫 。"]
    assert TextForm("en", "th-TH", is_tokenised=True).readable(["แมว หมา"]) == ["แมวหมา"]


def test_a_line_break_does_not_stop_the_truecaser(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("hello (9/9)\nWorld (9/9)\n")
    form = TextForm("en", is_truecased=True, truecase_model="model")
    assert form.as_trained(["Hello\nWorld"], tmp_path) == ["hello World"]


def test_text_is_tokenised_for_scores_where_it_is_not_and_the_language_is_known() -> None:
    line = 'It\'s a "well-known" fact & more.'
    expected = 'It \'s a " well-known " fact & more .'
    assert TextForm("de", "en").tokenised([line]) == [expected]
    assert AS_GIVEN.tokenised([line]) == [line]
    assert MOSES.tokenised([line]) == [line]


def test_text_without_spaces_is_scored_by_characters_and_joined_again() -> None:
    assert TextForm("en", "zh").tokenised(["我 喜欢猫。"]) == ["我 喜 欢 猫 。"]
    standard = {"de": "13a", "zh": "zh", "ja": "char", "th": "char", "": "13a"}
    for language, expected in standard.items():
        assert TextForm("en", language).standard_tokeniser == expected
    thai, khmer = TextForm("en", "th", True), TextForm("en", "km", True)
    assert thai.readable(["ฉัน รัก แมว and dogs"]) == ["ฉันรักแมว and dogs"]
    assert khmer.readable(["ខ្ញុំ ស្រឡាញ់"]) == ["ខ្ញុំស្រឡាញ់"]


def test_punctuation_is_normalised_where_that_of_the_corpus_was() -> None:
    text = "„Ja“ – er’s"
    form = TextForm("de", "en", is_tokenised=True, has_escapes=False)
    as_written = dataclasses.replace(form, has_normalised_punctuation=False)
    for convert in (
        lambda form: form.as_trained([text], Path("unused")),
        lambda form: form.beginnings_as_trained([text]),
    ):
        assert "„" not in convert(form)[0] and '" Ja "' in convert(form)[0]
        assert convert(as_written)[0].startswith("„ Ja “ –")


def test_each_form_of_lines_is_made_of_the_lines_as_they_came() -> None:
    lines = FormedLines(["the end ."], MOSES)
    assert (lines.lines, lines.tokenised, lines.readable) == (
        ["the end ."],
        ["the end ."],
        ["The end."],
    )
    assert len(lines) == 1
