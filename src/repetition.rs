//! Text that has fallen into a loop: exact copies of a unit, one after the other.
//!
//! A [`Detector`] fires at the first character at which the text ends in at least `count` copies of
//! a *primitive* unit (no shorter one builds it) that cover at least `cover` characters. Nothing is
//! held back, every chunking gives the same answer, a character costs constant time (amortised) and
//! memory is bounded by the longest unit, whatever the text is.
//!
//! How: the text ends in `run + p` characters of period `p` when its last `run` characters equal the
//! ones `p` places before. For the few periods whose unit already stands there twice, `run` is
//! counted character by character. Those periods are found at *anchors*: each `Level` of periods
//! looks at the end of the text every `step` characters, and its step is short enough that a period
//! which stands there twice cannot fire before the next anchor. At an anchor the Z function of the
//! text read backwards gives `run` of all periods at once, in linear time; a scan for the last eight
//! characters, which ordinary text seldom repeats, spares most anchors even that.
#![forbid(unsafe_code)]

use crate::Error;

/// What counts as a loop. All lengths are in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repetition {
    /// Copies of the unit, at least 3.
    pub count: usize,
    /// How much text the copies cover at least.
    pub cover: usize,
    /// The shortest unit for which `cover` holds.
    pub min_unit: usize,
    /// The longest unit.
    pub max_unit: usize,
    /// How much text copies of a unit shorter than `min_unit` cover at least; `None`: such units do
    /// not count.
    pub short_cover: Option<usize>,
}

impl Default for Repetition {
    fn default() -> Self {
        Self { count: 4, cover: 400, min_unit: 16, max_unit: 4096, short_cover: Some(1000) }
    }
}

/// The longest unit that may be asked for: memory of a detector is a few times this.
pub const MAX_UNIT: usize = 1 << 16;
/// The most copies, and characters to cover, that may be asked for.
pub const MAX_COVER: usize = 1 << 24;

impl Repetition {
    /// Fails for a rule that cannot be kept; the message names the field.
    ///
    /// # Errors
    ///
    /// A `count` below 3, a unit of no characters or of more than [`MAX_UNIT`], lengths that
    /// contradict each other or are beyond [`MAX_COVER`].
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |message: String| Err(Error::option(message));
        if !(3..=MAX_COVER).contains(&self.count) {
            return wrong(format!("count must be from 3 to {MAX_COVER}, not {}", self.count));
        }
        if !(1..=MAX_UNIT).contains(&self.max_unit) {
            return wrong(format!("max_unit must be from 1 to {MAX_UNIT}, not {}", self.max_unit));
        }
        if !(1..=self.max_unit).contains(&self.min_unit) {
            return wrong(format!(
                "min_unit must be from 1 to max_unit ({}), not {}",
                self.max_unit, self.min_unit
            ));
        }
        for (name, cover) in [("cover", self.cover), ("short_cover", self.short_cover.unwrap_or(0))]
        {
            if cover > MAX_COVER {
                return wrong(format!("{name} must be at most {MAX_COVER}, not {cover}"));
            }
        }
        Ok(())
    }

    /// How many characters in a row must equal the ones `period` places before them.
    fn needed(&self, period: usize) -> usize {
        let cover = if period < self.min_unit { self.short_cover.unwrap_or(0) } else { self.cover };
        cover.max(self.count * period) - period
    }
}

/// A loop that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// One copy, the first.
    pub unit: String,
    /// Whole copies.
    pub count: usize,
    /// Where the periodic text begins, in characters of all that was read.
    pub start: usize,
}

/// Periods that are looked for together: `from..=to`, every `step` characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    from: usize,
    to: usize,
    step: usize,
}

/// Characters between two anchors are never more than this, so that the text that is kept stays
/// short.
const LONGEST_STEP: usize = 2048;

impl Level {
    fn of(rule: &Repetition, from: usize, to: usize) -> Self {
        let slack = |period| rule.needed(period) - period;
        let step = (from..=to).map(slack).min().unwrap_or(1).clamp(1, LONGEST_STEP);
        Self { from, to, step }
    }

    fn all(rule: &Repetition) -> Vec<Self> {
        let mut levels = Vec::new();
        if rule.short_cover.is_some() && rule.min_unit > 1 {
            levels.push(Self::of(rule, 1, rule.min_unit - 1));
        }
        let mut from = rule.min_unit;
        while from <= rule.max_unit {
            let to = (2 * from - 1).min(rule.max_unit);
            levels.push(Self::of(rule, from, to));
            from = to + 1;
        }
        levels
    }

    /// The end of the text that an anchor looks at: a run is at most `to + step - 1` at the first
    /// anchor after its unit stood there twice.
    fn window(&self) -> usize {
        2 * self.to + self.step
    }
}

/// A period whose unit stands at the end of the text at least twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Live {
    period: usize,
    run: usize,
}

/// Reads one text. See the module.
#[derive(Clone, Debug)]
pub struct Detector {
    rule: Repetition,
    levels: Vec<Level>,
    /// The end of the text: at least the longest window, at most a half more.
    tail: Vec<char>,
    keep: usize,
    read: usize,
    /// Characters read when the next level looks.
    anchor: usize,
    live: Vec<Live>,
}

impl Detector {
    /// A detector at the beginning of a text.
    ///
    /// # Errors
    ///
    /// As [`Repetition::check`].
    pub fn new(rule: Repetition) -> Result<Self, Error> {
        rule.check()?;
        let levels = Level::all(&rule);
        let keep = levels.iter().map(Level::window).max().unwrap_or(0);
        let mut made =
            Self { rule, levels, tail: Vec::new(), keep, read: 0, anchor: 0, live: Vec::new() };
        made.anchor = made.next_anchor();
        Ok(made)
    }

    /// The rule that it was made with.
    #[must_use]
    pub fn rule(&self) -> &Repetition {
        &self.rule
    }

    /// Characters read so far.
    #[must_use]
    pub fn read(&self) -> usize {
        self.read
    }

    /// Reads `text` up to the character that completes a loop, and tells how many characters of it
    /// were read then and what the loop is; `None` if it was read to its end. What comes after that
    /// character is not read and may be fed again.
    pub fn feed(&mut self, text: &str) -> Option<(usize, Loop)> {
        for (at, character) in text.chars().enumerate() {
            if let Some(found) = self.push(character) {
                return Some((at + 1, found));
            }
        }
        None
    }

    /// Reads all of `text` without looking for a loop that ends in it; one that goes on after it is
    /// found at the next character.
    pub fn skip(&mut self, text: &str) {
        for character in text.chars() {
            self.advance(character);
        }
    }

    fn push(&mut self, character: char) -> Option<Loop> {
        self.advance(character);
        let found = self
            .live
            .iter()
            .filter(|live| live.run >= self.rule.needed(live.period))
            .min_by_key(|live| live.period)?;
        Some(self.describe(*found))
    }

    fn advance(&mut self, character: char) {
        if self.tail.len() >= self.keep + self.keep / 2 {
            self.tail.drain(..self.tail.len() - self.keep);
        }
        self.tail.push(character);
        self.read += 1;
        if !self.live.is_empty() {
            let end = self.tail.len() - 1;
            let tail = &self.tail;
            self.live.retain_mut(|live| {
                live.run += 1;
                tail[end - live.period] == character
            });
        }
        if self.read == self.anchor {
            for at in 0..self.levels.len() {
                if self.read % self.levels[at].step == 0 {
                    self.look(self.levels[at]);
                }
            }
            self.anchor = self.next_anchor();
        }
    }

    fn next_anchor(&self) -> usize {
        let next = |level: &Level| (self.read / level.step + 1) * level.step;
        self.levels.iter().map(next).min().unwrap_or(usize::MAX)
    }

    fn describe(&self, live: Live) -> Loop {
        let length = live.run + live.period;
        let mut unit = self.tail[self.tail.len() - live.period..].to_vec();
        unit.rotate_right(length % live.period);
        Loop {
            unit: unit.into_iter().collect(),
            count: length / live.period,
            start: self.read - length,
        }
    }

    /// An anchor: adopts the periods of `level` whose unit stands at the end twice.
    fn look(&mut self, level: Level) {
        let window = &self.tail[self.tail.len().saturating_sub(level.window())..];
        if !may_repeat(window, level) {
            return;
        }
        let runs = runs(window, level.to);
        for period in level.from..=level.to.min(runs.len().saturating_sub(1)) {
            let run = runs[period];
            let known = || self.live.iter().any(|live| live.period == period);
            if run >= period && !known() && is_primitive(&runs, period) {
                self.live.push(Live { period, run });
            }
        }
    }

    /// The state as plain values: characters read, the end of the text, and each period under
    /// watch with its run. [`Detector::restore`] takes them back.
    #[must_use]
    pub fn state(&self) -> (usize, String, Vec<(usize, usize)>) {
        let begin = self.tail.len().saturating_sub(self.keep);
        let live = self.live.iter().map(|live| (live.period, live.run)).collect();
        (self.read, self.tail[begin..].iter().collect(), live)
    }

    /// The detector that [`Detector::state`] describes; it goes on as the one it came from would.
    ///
    /// # Errors
    ///
    /// A state that no detector of this rule has, as far as its text shows.
    pub fn restore(
        rule: Repetition,
        read: usize,
        tail: &str,
        live: &[(usize, usize)],
    ) -> Result<Self, Error> {
        let mut made = Self::new(rule)?;
        let tail: Vec<char> = tail.chars().collect();
        let sound = tail.len() == read.min(made.keep)
            && live.len() <= made.levels.len() * 64
            && live.iter().all(|&(period, run)| {
                let shown = run.min(tail.len().saturating_sub(period));
                (1..=rule.max_unit).contains(&period)
                    && run >= period
                    && run.checked_add(period).is_some_and(|length| length <= read)
                    && tail.len() > period
                    && tail[tail.len() - shown..]
                        .iter()
                        .zip(&tail[tail.len() - shown - period..])
                        .all(|(one, other)| one == other)
            });
        if !sound {
            return Err(Error::option("this is not the state of a loop detector".to_owned()));
        }
        made.tail = tail;
        made.read = read;
        made.anchor = made.next_anchor();
        made.live = live.iter().map(|&(period, run)| Live { period, run }).collect();
        Ok(made)
    }
}

/// Characters that the quick scan compares.
const PROBE: usize = 8;

/// Whether the last few characters stand in `window` once more at a distance of the level. A unit
/// that is shorter than the probe repeats it all the same, since it stands there twice: only the
/// part of the probe that two copies cover is compared.
fn may_repeat(window: &[char], level: Level) -> bool {
    let end = window.len();
    let probe = PROBE.min(level.from);
    if end < probe + level.from {
        return false;
    }
    let last = &window[end - probe..];
    let (first, begin) = (last[0], end.saturating_sub(probe + level.to));
    let there = &window[begin..end - level.from];
    // One character first: most places differ in it.
    (0..=there.len() - probe).any(|at| there[at] == first && there[at..at + probe] == *last)
}

/// For each distance up to `to`, how many of the last characters of `text` equal the ones that far
/// before them: the Z function of `text` read backwards. The entry of distance 0 is unused.
fn runs(text: &[char], to: usize) -> Vec<usize> {
    let size = text.len();
    let back = |at: usize| text[size - 1 - at];
    let mut z = vec![0; size.min(to + 1)];
    // `left..right` is the match that reaches furthest, as usual for this function.
    let (mut left, mut right) = (0, 0);
    for at in 1..z.len() {
        let mut length = if at < right { z[at - left].min(right - at) } else { 0 };
        while at + length < size && back(length) == back(at + length) {
            length += 1;
        }
        if at + length > right {
            (left, right) = (at, at + length);
        }
        z[at] = length;
    }
    z
}

/// Whether no shorter unit builds the last `period` characters.
fn is_primitive(runs: &[usize], period: usize) -> bool {
    !(1..=period / 2).any(|shorter| period % shorter == 0 && runs[shorter] >= period - shorter)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule, word for word: at each character, every unit.
    fn naive(rule: &Repetition, text: &[char]) -> Option<(usize, usize, usize)> {
        for end in 1..=text.len() {
            let longest = rule.max_unit.min(end);
            for unit in 1..=longest {
                if unit < rule.min_unit && rule.short_cover.is_none() {
                    continue;
                }
                let cover =
                    if unit < rule.min_unit { rule.short_cover.unwrap() } else { rule.cover };
                let mut length = unit;
                while length < end && text[end - 1 - length] == text[end - 1 - length + unit] {
                    length += 1;
                }
                let last = &text[end - unit..end];
                let primitive = !(1..unit).any(|part| {
                    unit % part == 0 && last.chunks(part).all(|piece| *piece == last[..part])
                });
                if primitive && length / unit >= rule.count && length >= cover {
                    return Some((end, unit, end - length));
                }
            }
        }
        None
    }

    fn next(seed: &mut u64) -> usize {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        (*seed >> 11) as usize
    }

    fn letter(seed: &mut u64) -> char {
        ('a'..='z').nth(next(seed) % 26).unwrap()
    }

    /// Texts that are full of loops, of loops of loops, and of loops that break off.
    fn draw(seed: &mut u64, letters: &[char]) -> Vec<char> {
        let mut text: Vec<char> = Vec::new();
        while text.len() < 90 {
            match next(seed) % 4 {
                0 => text.push(letters[next(seed) % letters.len()]),
                _ if text.is_empty() => text.push(letters[0]),
                _ => {
                    let unit = 1 + next(seed) % text.len().min(14);
                    for _ in 0..next(seed) % (unit * 5) {
                        text.push(text[text.len() - unit]);
                    }
                }
            }
        }
        text
    }

    #[test]
    fn it_fires_where_the_rule_says_however_the_text_is_cut() {
        let mut seed = 0x2545_f491_4f6c_dd1d;
        let mut fired = 0;
        for _ in 0..20_000 {
            let max_unit = 1 + next(&mut seed) % 12;
            let rule = Repetition {
                count: 3 + next(&mut seed) % 3,
                cover: next(&mut seed) % 40,
                min_unit: 1 + next(&mut seed) % max_unit,
                max_unit,
                short_cover: (next(&mut seed) % 2 == 0).then(|| next(&mut seed) % 60),
            };
            let letters = ['a', 'b', 'é', '\n'];
            let used = 1 + next(&mut seed) % letters.len();
            let text = draw(&mut seed, &letters[..used]);
            let mut detector = Detector::new(rule).unwrap();
            let mut found = None;
            let mut at = 0;
            while at < text.len() && found.is_none() {
                let size = (1 + next(&mut seed) % 9).min(text.len() - at);
                let chunk: String = text[at..at + size].iter().collect();
                if let Some((read, what)) = detector.feed(&chunk) {
                    assert_eq!(detector.read(), at + read);
                    assert_eq!(what.count, (at + read - what.start) / what.unit.chars().count());
                    found = Some((at + read, what.unit.chars().count(), what.start));
                }
                if next(&mut seed) % 16 == 0 {
                    let (read, tail, live) = detector.state();
                    detector = Detector::restore(rule, read, &tail, &live).unwrap();
                }
                at += size;
            }
            fired += usize::from(found.is_some());
            assert_eq!(found, naive(&rule, &text), "{rule:?} {}", text.iter().collect::<String>());
        }
        assert!((4_000..19_000).contains(&fired), "{fired} of 20,000 texts fired");
    }

    #[test]
    fn long_units_are_found_by_the_default_rule_and_memory_stays_bounded() {
        for size in [15, 16, 33, 50, 51, 127, 128, 1000, 2048, 4095, 4096] {
            let mut seed = size as u64 + 77;
            let unit: String = (0..size).map(|_| letter(&mut seed)).collect();
            let rule = Repetition::default();
            let mut detector = Detector::new(rule).unwrap();
            let before: String = (0..5000).map(|_| letter(&mut seed)).collect();
            assert_eq!(detector.feed(&before), None);
            let cover = if size < 16 { 1000 } else { 400 };
            let expected = (4 * size).max(cover);
            let (read, found) = detector.feed(&unit.repeat(200)).unwrap();
            // A character or two in front may belong to the period by chance.
            assert!(read <= expected && read + 4 >= expected, "{size}: {read}, not {expected}");
            assert_eq!(found.unit.chars().count(), size);
            assert!(detector.tail.len() <= 2 * detector.keep);
        }
        let mut detector = Detector::new(Repetition::default()).unwrap();
        assert_eq!(detector.feed(&unit_of_letters(4097).repeat(20)), None, "longer than max_unit");
    }

    fn unit_of_letters(size: usize) -> String {
        let mut seed = 99;
        (0..size).map(|_| letter(&mut seed)).collect()
    }

    #[test]
    fn a_rule_that_cannot_be_kept_is_named() {
        let rule = Repetition::default();
        for (wrong, named) in [
            (Repetition { count: 2, ..rule }, "count"),
            (Repetition { min_unit: 0, ..rule }, "min_unit"),
            (Repetition { min_unit: 5000, ..rule }, "min_unit"),
            (Repetition { max_unit: 0, ..rule }, "max_unit"),
            (Repetition { max_unit: MAX_UNIT + 1, ..rule }, "max_unit"),
            (Repetition { cover: MAX_COVER + 1, ..rule }, "cover"),
            (Repetition { short_cover: Some(usize::MAX), ..rule }, "short_cover"),
        ] {
            let error = Detector::new(wrong).unwrap_err().to_string();
            assert!(error.starts_with(named), "{error}");
        }
        assert!(Detector::restore(rule, 3, "ab", &[]).is_err());
        assert!(Detector::restore(rule, 4, "abac", &[(2, 2)]).is_err());
        assert!(Detector::restore(rule, 4, "abab", &[(2, usize::MAX)]).is_err());
        assert!(Detector::restore(rule, 4, "abab", &[(2, 2)]).is_ok());
    }
}
