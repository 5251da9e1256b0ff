//! Tests of the devices, their frames, and sets of them.

use super::table::Table;

#[test]
fn the_tables_are_whole() {
    let table = Table::own().expect("a table is damaged");
    assert_eq!(table.layouts.len(), 23);
    assert_eq!(super::table::table().parts.len(), table.parts.len());
}
