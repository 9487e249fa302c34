//! What a server, a forwarder or a delay line accounts for: that of a run of nothing else, or without a run.

use whylate_model::delay::DelayLine;
use whylate_model::forward::Forward;
use whylate_model::reflect::Reflected;
use whylate_model::run::Run;
use whylate_model::warning::Warning;

use super::{COMPARE, Screen, delay, forward, reflect, trusted};
use crate::doc::Section;
use crate::terminal::Style;

/// Where the rest is of what has no run directory.
const NO_DIRECTORY: &str = "--full or --format json has every counter; -o DIR keeps a run";

/// The account of a program that answers or carries what others send.
#[derive(Debug, Clone, Copy)]
pub enum Account<'a> {
    /// A server.
    Reflected(&'a Reflected),
    /// A forwarder.
    Forward(&'a Forward),
    /// A delay line.
    Delay(&'a DelayLine),
}

impl<'a> From<&'a Reflected> for Account<'a> {
    fn from(of: &'a Reflected) -> Self {
        Self::Reflected(of)
    }
}

impl<'a> From<&'a Forward> for Account<'a> {
    fn from(of: &'a Forward) -> Self {
        Self::Forward(of)
    }
}

impl<'a> From<&'a DelayLine> for Account<'a> {
    fn from(of: &'a DelayLine) -> Self {
        Self::Delay(of)
    }
}

impl<'a> Account<'a> {
    /// That of a recording of nothing else, and of no client.
    fn of(run: &'a Run) -> Option<Self> {
        let alone = run.flows.is_empty() && !run.is_merged();
        let reflected = run.reflected.as_deref().map(Self::from);
        let forward = run.forward.as_deref().map(Self::from);
        let delay = run.delay.as_deref().map(Self::from);
        reflected.or(forward).or(delay).filter(|_| alone)
    }

    fn warnings(self) -> &'a [Warning] {
        match self {
            Self::Reflected(of) => &of.warnings,
            Self::Forward(of) => &of.warnings,
            Self::Delay(of) => &of.warnings,
        }
    }

    /// What the whole report has of it below its answer.
    fn whole(self) -> Vec<Section> {
        let blocks = match self {
            Self::Reflected(of) => {
                crate::reflected::said(of).chain(crate::reflected::clients(of)).collect()
            }
            Self::Forward(of) => crate::forward::blocks(of),
            Self::Delay(of) => crate::delay::blocks(of),
        };
        vec![Section::new("", "", blocks)]
    }

    pub(super) fn screen(self, style: Style) -> Screen {
        match self {
            Self::Reflected(of) => reflect::screen(of, style).naming(of),
            Self::Forward(of) => forward::screen(of, style).naming(of),
            Self::Delay(of) => delay::screen(of, style).naming(of),
        }
    }
}

/// Is it a recording of one of them?
pub(super) fn is_it(run: &Run) -> bool {
    Account::of(run).is_some()
}

pub(super) fn screen(run: &Run, style: Style) -> Screen {
    let said = Account::of(run).map_or_else(Screen::default, |of| of.screen(style));
    Screen { more: vec![COMPARE.to_owned()], ..said }
}

/// With what its warnings say of it.
pub(super) fn without_run(of: Account, style: Style) -> Screen {
    let trust = trusted::of_warnings(of.warnings());
    let (trust, advice) =
        trusted::others_once(trust.unwrap_or_default(), of.warnings(), Warning::advice);
    let trust = (!trust.reasons.is_empty()).then_some(trust);
    let whole = super::whole(|| of.whole());
    Screen { trust, advice, whole, more: vec![NO_DIRECTORY.to_owned()], ..of.screen(style) }
}
