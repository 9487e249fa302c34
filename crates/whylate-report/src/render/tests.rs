//! Documents of every shape, on a terminal and on a page: hostile names, no rows, one, a thousand.

use whylate_model::trust::Level;

use super::page::{self, Html};
use super::*;
use crate::doc::{Block, Document, Fold, Picture, Section, Table, Warning};
use crate::terminal::Style;

/// Everything a text field can hold that neither a terminal nor a page may.
const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>]]>{{ 7*7 }}\
                       \u{1b}[31m\u{202e}\u{2028}\0</style><!--";

fn on_a_terminal(section: &Section) -> String {
    terminal::write(&Document::default().sections([section.clone()]), Style::default())
}

fn on_a_page(section: &Section) -> String {
    let mut html = Html::default();
    html.section(section);
    html.finish()
}

#[test]
fn a_text_that_is_cut_keeps_its_numbers_whole() {
    for (text, most, told) in [
        ("short", 5, "short"),
        ("a name of many words", 10, "a name..."),
        ("through bridge, 1,500 bytes", 21, "through bridge,..."),
        ("through bridge, 1,500 bytes", 24, "through bridge, 1,500..."),
        ("142 of 285 (50%) more", 14, "142 of 285..."),
        ("0 of (12345 of)", 12, "0 of..."),
        // Nothing stands before it, or it is a part of a word.
        ("1234567890", 6, "123..."),
        ("run-1234567890", 9, "run-12..."),
    ] {
        assert_eq!(shorter(text, most), told);
    }
}

proptest::proptest! {
    #[test]
    fn a_cut_text_ends_with_a_number_only_where_that_is_whole(
        words in proptest::collection::vec("[a-c]{1,4}|[0-9]{1,6}", 2..8),
        most in 6_usize..30,
    ) {
        let text = format!("x {}", words.join(" "));
        let told = shorter(&text, most);
        proptest::prop_assert!(columns(&told) <= most);
        let kept = told.trim_end_matches(CUT);
        let last = kept.rsplit(' ').next().unwrap();
        let whole = text.split(' ').any(|word| word == last);
        proptest::prop_assert!(whole || !last.starts_with(|of: char| of.is_ascii_digit()), "{}", told);
    }
}

fn rows(rows: usize) -> Table {
    let mut table = Table::new("Numbers", &["name", "value", "why"]).words(&[2]);
    (0..rows)
        .for_each(|at| table.row([format!("row {at}"), at.to_string(), "it is so".to_owned()]));
    table
}

/// A text in each place that holds one.
fn everywhere(text: &str) -> Section {
    let said = || text.to_owned();
    let mut table = Table::new(said(), &[text, text]);
    table.row([said(), said()]);
    let blocks = vec![
        Block::Heading(said()),
        Block::Text(said()),
        Block::How(said()),
        Block::Note(said()),
        Block::Advice(said()),
        Block::Judged(Level::Good, said()),
        Block::Link(said(), said()),
        Block::Items(vec![said()]),
        Block::Code(said(), vec![said()]),
        Block::Warnings(vec![Warning { text: said(), advice: said(), level: Level::Poor }]),
        Block::Table(table.clone()),
        Block::Figure(Picture { svg: String::new(), how: said(), plot: Some(said()) }),
        Block::Fold(Fold { heading: said(), gap: None, blocks: vec![Block::Table(table)] }),
    ];
    Section { id: said(), ..Section::new("", said(), blocks).headed() }
}

#[test]
fn hostile_text_stays_text_wherever_it_stands() {
    let page = on_a_page(&everywhere(HOSTILE));
    for wanted in ['\u{1b}', '\u{202e}', '\u{2028}', '\0'] {
        assert!(!page.contains(wanted), "{wanted:?} in {page}");
    }
    assert!(
        !page.contains("<script") && !page.contains("<img") && !page.contains("</style"),
        "{page}"
    );
    assert_eq!(page.matches("&lt;script&gt;").count(), 28, "{page}");
    let screen = on_a_terminal(&everywhere(HOSTILE));
    assert!(!screen.chars().any(|letter| letter.is_control() && letter != '\n'), "{screen:?}");
    assert!(!screen.contains('\u{202e}'), "{screen:?}");
}

#[test]
fn a_command_is_one_line_that_does_nothing_else() {
    let section = Section::new("", "", vec![Block::Command(HOSTILE.to_owned())]);
    let (screen, page) = (on_a_terminal(&section), on_a_page(&section));
    assert!(screen.starts_with("    $ <script>alert(1)</script>"), "{screen:?}");
    assert!(!screen.chars().any(|letter| letter.is_control() && letter != '\n'), "{screen:?}");
    assert!(page.starts_with("<p><code>&lt;script&gt;") && !page.contains("<script"), "{page}");
}

#[test]
fn a_text_of_any_length_is_cut_and_fits() {
    let long = "é".repeat(LONGEST_TEXT);
    assert_eq!(shortened(&long), long);
    let longer = format!("{long}é");
    assert!(shortened(&longer).ends_with("... (8,002 bytes in all)"));
    let page = on_a_page(&everywhere(&longer));
    assert!(!page.contains(&longer) && page.contains("(8,002 bytes in all)"));
    let screen = on_a_terminal(&everywhere(&longer));
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
}

#[test]
fn a_table_without_rows_is_left_out_and_one_row_is_shown() {
    let of = |n| Section::new("numbers", "About numbers", vec![Block::Table(rows(n))]);
    assert_eq!(on_a_terminal(&of(0)).trim(), "");
    assert!(!on_a_page(&of(0)).contains("<table"));
    assert_eq!(on_a_terminal(&of(1)), "\nNumbers\nname   value  why\nrow 0      0  it is so\n");
    let page = on_a_page(&of(1));
    assert!(page.contains("<h2>About numbers</h2>") && page.contains("<caption>Numbers</caption>"));
    assert!(page.contains(
        "<tr><th scope=\"row\">row 0</th><td>0</td><td class=\"left\">it is so</td></tr>"
    ));
}

#[test]
fn of_a_thousand_rows_the_first_are_shown_and_the_others_counted() {
    let of = |table| Section::new("numbers", "", vec![Block::Table(table)]);
    let all = of(rows(1_000));
    let (page, screen) = (on_a_page(&all), on_a_terminal(&all));
    let most = page::MOST_ROWS;
    assert_eq!(page.matches("<tr>").count(), 1 + most + 1);
    assert!(page.contains(&format!("and {} more, in run.json", 1_000 - most)));
    assert_eq!(screen.matches("it is so").count(), 256);
    assert!(screen.contains("and 744 more, in run.json"), "{screen}");
    let few = of(rows(1_000).most(3));
    assert_eq!(on_a_page(&few).matches("<td>").count(), 3 + 1);
    assert!(on_a_terminal(&few).contains("and 997 more, in run.json"));
    let items: Vec<String> = (0..1_000).map(|at| at.to_string()).collect();
    let list = Section::new("", "", vec![Block::Items(items)]);
    assert!(on_a_page(&list).contains(&format!("and {} more", 1_000 - page::MOST_ITEMS)));
}

#[test]
fn a_heading_is_said_once_and_columns_stand_where_they_belong() {
    let table = rows(1).page_columns(&[2]);
    let blocks = vec![
        Block::Heading("Numbers".to_owned()),
        Block::Table(table),
        Block::Only(Where::Terminal, vec![Block::Text("80 columns".to_owned())]),
        Block::Only(Where::Page, vec![Block::Text("a picture".to_owned())]),
    ];
    let section = Section::new("numbers", "About numbers", blocks);
    assert_eq!(on_a_terminal(&section), "\nNumbers\nname   value\nrow 0      0\n80 columns\n");
    let page = on_a_page(&section);
    assert!(
        page.contains("it is so") && page.contains("a picture") && !page.contains("80 columns")
    );
    assert!(on_a_terminal(&section.headed()).starts_with("\nAbout numbers\n"));
}

#[test]
fn what_is_long_is_folded_on_the_page_and_left_out_on_a_terminal() {
    let fold =
        Fold { heading: "Gap 1".to_owned(), gap: Some(0), blocks: vec![Block::Table(rows(1))] };
    let section = Section::new("worst", "The longest gaps", vec![Block::Fold(fold)]);
    assert!(on_a_page(&section).contains("<details data-gap=\"0\">\n<summary>Gap 1</summary>"));
    assert_eq!(on_a_terminal(&section).trim(), "");
}
