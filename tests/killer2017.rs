//! "How to Measure the Killer Microsecond": what is refused, and its first table alone. The figure
//! `killer2017_tools` repeats it whole.

use whylate_model::paper::{Paper, Scenario};

use crate::needs;
use crate::program::{self, said, whylate};

fn scenario<'a>(paper: &'a Paper, place: &str) -> &'a Scenario {
    paper.scenarios.iter().find(|of| of.place == place).unwrap_or_else(|| panic!("{place}"))
}

#[test]
fn table_1_alone_has_our_tool_as_measured_and_moongen_as_its_file_tells() {
    let _alone = program::alone();
    let possible = needs::root() && needs::program("ip").is_some() && needs::cpus(2).is_some();
    if !possible || needs::lacks("xdp") {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("paper");
    let file = home.path().join("moongen.csv");
    std::fs::write(&file, "10000,900\n20000,90\n30000,10\n").unwrap();
    let words = "paper killer2017 --quick --only table1 --tools xdp --seed 5";
    let mut command = whylate(words.split_whitespace());
    command.arg("--import").arg(format!("moongen={}", file.display())).arg("-o").arg(&directory);
    let output = command.output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    let paper = Paper::read(&directory).unwrap().unwrap();
    let table = scenario(&paper, "table1");
    table.runs.iter().for_each(|run| program::closes(&program::read(&directory.join(run))));
    let rows = &table.tables[0].rows;
    let tools: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(tools, ["xdp spin", "MoonGen"]);
    assert!(rows[0][3..6].iter().all(|cell| cell.ends_with('s')), "{rows:?}");
    let again = whylate(["report"]).arg(&directory).output().unwrap();
    assert_eq!(again.stdout, output.stdout);
}
