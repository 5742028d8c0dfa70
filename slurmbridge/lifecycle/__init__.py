"""How jobs change: (record, event) -> (records, effects). Pure: times and new ids are arguments."""
