//! Any text as statistics of TRex: a distribution that says nothing finer than the file, or a reason that is safe to print.
//!
//! Good seeds: `{"7": {"latency": {"histogram": {"20": 3}}}}`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use whylate_report::import::IMPORTERS;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let importer = IMPORTERS.into_iter().find(|of| of.name() == "trex").unwrap();
    match importer.read(&text, None) {
        Ok(all) => {
            assert!(!all.is_empty());
            for imported in all {
                let drawn = imported.distribution("fuzzed", 1);
                let shares: Vec<f64> = drawn.points.iter().map(|point| point.share).collect();
                assert!(shares.iter().all(|share| *share > 0.0 && *share <= 1.0), "{shares:?}");
                assert!(drawn.points.is_sorted_by(|a, b| a.value_ns <= b.value_ns));
                for at in &drawn.reached {
                    let (low, high) = at.between_ns.unwrap_or((at.value_ns, at.value_ns));
                    assert!(low <= at.value_ns && at.value_ns <= high, "{at:?}");
                }
                let cells = imported.buckets.cells();
                assert_eq!(
                    cells.iter().map(|cell| cell.count).sum::<u64>(),
                    imported.buckets.samples()
                );
            }
        }
        Err(error) => {
            let told = error.to_string();
            assert!(told.len() < 2_000 && told.chars().all(|c| !c.is_control()), "{told}");
        }
    }
});
