//! The naive twin: the contract in its most obvious form. It keeps the whole text and looks at
//! everything again each time.

use holdback::Tie;

/// A stop list and its rule.
pub(crate) struct Twin {
    pub(crate) stops: Vec<Vec<char>>,
    pub(crate) tie: Tie,
    pub(crate) include_stop: bool,
}

/// What is known after some text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Characters emitted so far.
    pub(crate) emitted: usize,
    /// Characters held.
    pub(crate) held: usize,
    /// (stop, start, end) of the match.
    pub(crate) matched: Option<(usize, usize, usize)>,
}

impl Twin {
    /// The first position where a stop ends, and which.
    pub(crate) fn find(&self, text: &[char]) -> Option<(usize, usize, usize)> {
        (1..=text.len()).find_map(|end| {
            let here = (0..self.stops.len()).filter(|&i| text[..end].ends_with(&self.stops[i]));
            let best = match self.tie {
                Tie::First => here.min(),
                // The longest; of equal ones the first.
                Tie::Longest => here.max_by_key(|&i| (self.stops[i].len(), usize::MAX - i)),
            };
            best.map(|i| (i, end - self.stops[i].len(), end))
        })
    }

    /// A stop can be the match exactly if it is the match of itself.
    pub(crate) fn reachable(&self, index: usize) -> bool {
        self.find(&self.stops[index]).is_some_and(|(found, _, _)| found == index)
    }

    /// What has been emitted and what is held after `text`, however it was cut.
    pub(crate) fn after(&self, text: &[char]) -> Seen {
        if let Some((stop, start, end)) = self.find(text) {
            return Seen {
                emitted: if self.include_stop { end } else { start },
                held: 0,
                matched: Some((stop, start, end)),
            };
        }
        let could_go_on = |tail: &[char]| {
            (0..self.stops.len()).any(|i| {
                !self.include_stop
                    && self.reachable(i)
                    && self.stops[i].len() > tail.len()
                    && self.stops[i].starts_with(tail)
            })
        };
        let held = (0..=text.len())
            .rev()
            .find(|&len| len == 0 || could_go_on(&text[text.len() - len..]))
            .unwrap_or(0);
        Seen { emitted: text.len() - held, held, matched: None }
    }
}
