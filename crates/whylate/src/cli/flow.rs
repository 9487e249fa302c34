//! A flow in words: `load: rate=20kpps size=1400 cpus=2 one-way`.

use std::str::FromStr;

use whylate_model::CpuId;
use whylate_net::Speaks;
use whylate_net::schedule::Rate;
use whylate_port::Wait;
use whylate_port::open::Transport;

use crate::arrivals::AskedArrivals;
use crate::parse::{self, Sched};

/// A flow beside the first one; what it does not say of what both have is as in that one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FlowWords {
    pub(crate) name: String,
    pub(crate) to: Option<String>,
    pub(crate) rate: Option<Rate>,
    pub(crate) arrivals: Option<AskedArrivals>,
    pub(crate) size: Option<usize>,
    pub(crate) transport: Option<Transport>,
    pub(crate) protocol: Option<Speaks>,
    pub(crate) wait: Option<Wait>,
    pub(crate) outstanding: Option<u64>,
    pub(crate) cpus: Option<CpuId>,
    pub(crate) reflector_cpus: Option<CpuId>,
    pub(crate) sched: Sched,
    pub(crate) one_way: bool,
    pub(crate) back: bool,
}

impl FromStr for FlowWords {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((name, words)) = text.split_once(':') else {
            return Err(format!("`{text}` has no name: write it as `load: rate=20kpps size=1400`"));
        };
        let mut flow = Self { name: name.trim().to_owned(), ..Self::default() };
        for word in words.split_whitespace() {
            match word.split_once('=') {
                None => flow.flag(word)?,
                Some((key, value)) => flow.set(key, value)?,
            }
        }
        Ok(flow)
    }
}

impl FlowWords {
    fn flag(&mut self, word: &str) -> Result<(), String> {
        match word {
            "one-way" => self.one_way = true,
            "back" => self.back = true,
            _ => {
                return Err(format!(
                    "`{word}` is no setting of a flow: use one-way, back, or a word with `=`"
                ));
            }
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "to" => self.to = Some(value.to_owned()),
            "rate" => self.rate = Some(read(value)?),
            "arrivals" => self.arrivals = Some(read(value)?),
            "size" => self.size = Some(parse::size(value)? as usize),
            "transport" | "port" => self.transport = Some(read(value)?),
            "protocol" => self.protocol = Some(read(value)?),
            "wait" => self.wait = Some(read(value)?),
            "outstanding" => self.outstanding = Some(parse::outstanding(value)?),
            "cpus" | "cpu" => self.cpus = Some(parse::cpu(value)?),
            "reflector-cpus" | "other-cpu" => self.reflector_cpus = Some(parse::cpu(value)?),
            "sched" | "fifo" => self.sched = parse::sched(value)?,
            _ => {
                return Err(format!(
                    "a flow has no `{key}`: it has to, rate, arrivals, size, transport, protocol, wait, \
                     outstanding, cpus, reflector-cpus and sched"
                ));
            }
        }
        Ok(())
    }
}

fn read<T: FromStr>(value: &str) -> Result<T, String>
where
    T::Err: ToString,
{
    value.parse().map_err(|error: T::Err| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_says_what_differs_and_leaves_the_rest() {
        let flow: FlowWords =
            "load: rate=20kpps arrivals=burst(32) size=1400 cpus=2 one-way".parse().unwrap();
        assert_eq!(
            (flow.name.as_str(), flow.size, flow.cpus),
            ("load", Some(1400), Some(CpuId(2)))
        );
        assert!(flow.one_way && !flow.back && flow.wait.is_none());
        assert_eq!("back:".parse::<FlowWords>().unwrap().name, "back");
    }

    #[test]
    fn words_that_say_nothing_are_refused_by_name() {
        for (text, part) in [
            ("load", "has no name"),
            ("load: loud", "`loud` is no setting of a flow"),
            ("load: colour=red", "no `colour`"),
            ("load: cpus=x", "`x` is no CPU"),
            ("load: rate=fast", "`fast` is not a rate"),
            (
                "load: outstanding=0",
                "`0` is no number of requests in flight: write 1 or more, such as 8",
            ),
            (
                "load: outstanding=x",
                "`x` is no number of requests in flight: write 1 or more, such as 8",
            ),
            ("load: outstanding=-1", "write 1 or more"),
            ("load: outstanding=99999999999999999999", "write 1 or more"),
        ] {
            let refusal = text.parse::<FlowWords>().unwrap_err();
            assert!(refusal.contains(part), "{refusal}");
        }
    }

    #[test]
    fn whatever_is_written_is_a_flow_or_refused_and_a_pattern_reads_as_it_is_told() {
        use whylate_stats::rng::Rng;
        const PIECES: [&str; 24] = [
            "load",
            ":",
            " ",
            "=",
            ",",
            "(",
            ")",
            "rate",
            "arrivals",
            "capture(",
            "cut)",
            "size",
            "cpu",
            "to",
            "back",
            "one-way",
            "burst(32)",
            "closed",
            "1kpps",
            "-1",
            "64",
            "\u{7f}",
            "é",
            "99999999999999999999",
        ];
        let mut rng = Rng::new(1);
        let mut read = 0;
        for _ in 0..20_000 {
            let pieces = 1 + rng.next_u64() % 8;
            let piece = |_| PIECES[(rng.next_u64() % PIECES.len() as u64) as usize];
            let words: String = (0..pieces).map(piece).collect();
            for text in [words.clone(), format!("load:{words}"), format!("load: arrivals={words}")]
            {
                match text.parse::<FlowWords>() {
                    Ok(flow) => {
                        read += 1;
                        let Some(pattern) = &flow.arrivals else { continue };
                        assert!(!pattern.to_string().is_empty(), "{text}");
                    }
                    Err(refusal) => assert!(!refusal.is_empty(), "{text}"),
                }
            }
        }
        assert!(read > 100, "{read} of them are flows");
    }
}
