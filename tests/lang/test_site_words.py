"""The table of a site file's fields has every field that is read, and no other."""

from slurmbridge.lang import site_fields, site_nodes
from slurmbridge.lang.site_words import WORDS


def named(section: str) -> list[str]:
    return sorted(field.name for field in WORDS if section in field.sections)


def test_every_field_that_is_read_is_in_the_table() -> None:
    of_parts = {*site_fields.POD_FIELDS, *site_fields.DEVICE_FIELDS, "placement"}
    assert named("partitions") == sorted(of_parts)
    assert named("defaults") == sorted(of_parts | set(site_fields.MEMORY_FIELDS))
    assert named("nodes") == sorted(site_nodes.FIELDS)
    assert named("pools") == sorted(site_fields.POOL_FIELDS)
    assert named("scheduling") == sorted(site_fields.SCHEDULING_FIELDS)
    assert {section for field in WORDS for section in field.sections} == set(site_fields.SECTIONS)
