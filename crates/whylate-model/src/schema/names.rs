//! What the name of a number in a JSON document must say: its unit, unless it is a count or an identifier.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Ends of names that are units. A share is a part of a whole; a ratio is any other quotient.
const UNITS: [&str; 14] = [
    "ns", "ticks", "hz", "s", "per_s", "pps", "bps", "bytes", "ppm", "percent", "share", "ratio",
    "cpus", "p_value",
];

/// Whole numbers that are counts or identifiers.
const COUNTS: &str = "\
    abandoned accepted acknowledgements address after again agree ambiguous amount answered arrived \
    ascribed ascribed_rightly asked attempt backwards base_n before beside blocks broken bursts \
    by_another_thread by_order by_socket by_whylate callback callsite came capacity_frames causes \
    causes_left_out client_lost clients_replaced cold_from compared contaminated contradicted copies \
    corrected count counted cut damaged deadlines deleted delivered direction disagree discarded \
    discarded_by_host downs dropped duplicated duplicates duplicates_lost early empty episodes \
    episodes_least error events events_cut events_elsewhere events_in_gaps events_in_recording \
    events_left_out events_measured excluded foreign format_version forwarded found fragments frames \
    from function gaps gaps_disordered gaps_forced given_up have held_periods hits hops id \
    in_cluster in_order in_time in_vain index inferred injected intended interruptions intervals \
    involuntary involuntary_switches ip irq iterations job jobs joined kept kernel_stamps_unfit late \
    later left left_aside left_out left_to_card let_past level long_turns looked_at looks lost \
    lost_before lost_behind lost_elsewhere lost_in lost_on_purpose machine matched merged messages \
    migrations missed misses missing most most_under_way moved n named_right napi never_done \
    never_sent none_as_none none_as_switch not_answered not_asked not_compared not_explained not_judged number \
    of offered one_way only_before only_behind only_out order other_address other_network other_port \
    other_protocol other_version others outside over overflow overruns packets paired pairs parts \
    passed passed_on passes patterns perhaps_host pid pieces planted points port prio priority \
    put_off queue queues rate_dropped raw read readings receive receive_dropped receive_errors \
    receive_ring received recordings records refusals refused reordered replies replies_twice \
    requests requests_twice resolution retransmitted ring ring_full round rounds rows runnable \
    runners runs runts samples seed send_dropped send_errors send_ring sends sent sent_by shared_by \
    signal simulated_misses sizes skb skipped skipped_wakeups sleeping slow smi_count socket split \
    stranger stuck switch_as_none switch_as_switch switches task thread threads times to too_early too_long \
    traced traffic_class transmit tried turned_away turns twice unaccounted unanswered unasked \
    undecided unexplained unfinished unframed unjudged unknown unordered unplaced unplanted unread \
    unrecorded unseen unsent untrusted unverified unwritten vector version violated voluntary \
    waiting waiting_at_the_end wakes wanted warm_from warm_ups with_interrupt with_others with_tick \
    within without_account without_host without_measurement without_request without_truth woken work \
    zero";

/// Other numbers without a unit: means of counts, statistics, probabilities.
const DIMENSIONLESS: &str = "\
    a_squared effect largest n_eff p_value_if_independent passes passes_alone passes_together \
    relative superiority superiority_interval switches z";

/// Numbers whose unit the field `of` beside them names.
const BESIDE: &str = "value low high intercept within between";

/// Numbers of differences, whose unit the name of an object around them ends in: `difference_ns`.
const INSIDE: &str = "before after difference relative interval within between";

/// Numbers of a document that do not say what they are: each with the objects around it.
#[must_use]
pub fn without_unit(schema: &Value) -> Vec<String> {
    Walk::over(schema).unfit
}

/// Fields of a document that the schema does not describe.
#[must_use]
pub fn undescribed(schema: &Value) -> Vec<String> {
    Walk::over(schema).undescribed
}

/// Fields of a document as `OBJECT.FIELD`, each with the name of the object that it stands in, and that of
/// the one around: `CLOCK.ANCHORS.TICKS` for any depth.
#[must_use]
pub fn fields(schema: &Value) -> BTreeSet<[String; 3]> {
    Walk::over(schema).fields
}

/// A walk over a schema from its root.
struct Walk<'a> {
    types: Option<&'a Map<String, Value>>,
    /// Types that were walked through, with what was around them.
    seen: BTreeSet<(&'a str, Place<'a>)>,
    unfit: Vec<String>,
    undescribed: Vec<String>,
    fields: BTreeSet<[String; 3]>,
}

/// Where in the document.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place<'a> {
    around: &'a str,
    object: &'a str,
    /// Does the name of an object around it end in a unit?
    inside_unit: bool,
}

impl<'a> Walk<'a> {
    fn over(schema: &'a Value) -> Self {
        let mut walk = Self {
            types: schema["$defs"].as_object(),
            seen: BTreeSet::new(),
            unfit: Vec::new(),
            undescribed: Vec::new(),
            fields: BTreeSet::new(),
        };
        walk.value(schema, Place { around: "", object: "", inside_unit: false }, &[]);
        walk
    }

    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        let of = name.and_then(|name| self.types?.get(name));
        of.unwrap_or(schema)
    }

    /// Goes into what a field may hold. `beside` are fields of the same object that stand outside of it.
    fn value(&mut self, schema: &'a Value, place: Place<'a>, beside: &[&'a str]) {
        if let Some(path) = schema["$ref"].as_str()
            && self.seen.insert((path, place))
        {
            self.value(self.resolved(schema), place, beside);
        }
        let mut known = beside.to_vec();
        if let Some(fields) = schema["properties"].as_object() {
            known.extend(fields.keys().map(String::as_str));
            for (name, of) in fields {
                self.field((name, of), place, &known);
                if of["description"].is_null() && of["const"].is_null() && !is_variant(schema) {
                    self.undescribed.push(format!("{}.{name}", place.object));
                }
            }
        }
        for kind in ["oneOf", "anyOf", "allOf"] {
            for of in schema[kind].as_array().into_iter().flatten() {
                self.value(of, place, &known);
            }
        }
        for of in items(schema) {
            self.value(of, place, &[]);
        }
    }

    fn field(&mut self, (name, of): (&'a str, &'a Value), place: Place<'a>, beside: &[&str]) {
        let around = [place.around, place.object, name].map(str::to_owned);
        self.fields.insert(around);
        let mut units = BTreeSet::new();
        self.units(of, &mut units);
        let fits = units.iter().all(|unit| match *unit {
            Number::Of(unit) => ends_in(name, unit),
            Number::Identifier => true,
            Number::Whole => has_unit(name) || is_in(COUNTS, name),
            Number::Any => {
                let named = beside.contains(&"of") && is_in(BESIDE, name);
                let inside = place.inside_unit && is_in(INSIDE, name);
                has_unit(name) || is_in(DIMENSIONLESS, name) || inside || named
            }
        });
        if !fits {
            self.unfit.push(format!("{}.{}.{name}", place.around, place.object));
        }
        let inside_unit = place.inside_unit || has_unit(name);
        self.value(of, Place { around: place.object, object: name, inside_unit }, &[]);
    }

    /// What the numbers are that a field holds by itself, in lists and in maps.
    fn units(&self, schema: &'a Value, found: &mut BTreeSet<Number<'a>>) {
        let of = self.resolved(schema);
        let is = |kind: &str| {
            let of_kind = |of: &Value| of.as_str() == Some(kind);
            of_kind(&of["type"]) || of["type"].as_array().is_some_and(|all| all.iter().any(of_kind))
        };
        match of["x-unit"].as_str() {
            Some("identifier") => drop(found.insert(Number::Identifier)),
            Some(unit) => drop(found.insert(Number::Of(unit))),
            None if is("integer") => drop(found.insert(Number::Whole)),
            None if is("number") => drop(found.insert(Number::Any)),
            None => {}
        }
        let choices = ["oneOf", "anyOf", "allOf"].into_iter();
        let choices = choices.flat_map(|kind| of[kind].as_array().into_iter().flatten());
        choices.chain(items(of)).for_each(|of| self.units(of, found));
    }
}

/// What a number is.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Number<'a> {
    /// Its type has this unit.
    Of(&'a str),
    /// Its type is that of an identifier.
    Identifier,
    Whole,
    Any,
}

/// What the lists and maps hold that a schema is of.
fn items(schema: &Value) -> impl Iterator<Item = &Value> {
    let all = schema["prefixItems"].as_array().into_iter().flatten();
    let each = [&schema["items"], &schema["additionalProperties"]];
    all.chain(each.into_iter().filter(|of| of.is_object()))
}

/// Is it an arm of an enumeration, which has its description beside its one field?
fn is_variant(schema: &Value) -> bool {
    let fields = schema["properties"].as_object().map_or(0, Map::len);
    fields == 1 && !schema["description"].is_null()
}

fn has_unit(name: &str) -> bool {
    UNITS.iter().any(|unit| ends_in(name, unit))
}

fn ends_in(name: &str, unit: &str) -> bool {
    name.strip_suffix(unit).is_some_and(|before| before.is_empty() || before.ends_with('_'))
}

fn is_in(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|known| known == name)
}
