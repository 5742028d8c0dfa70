"""Expected texts: scontrol 26.05 show hostnames, hostlist, hostlistsorted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.errors import LangError
from slurmbridge.lang import hostlist

EXPANDED = {
    "n[1-3,5]": "n1 n2 n3 n5",
    "n[8-11]": "n8 n9 n10 n11",
    "n[09-11]": "n09 n10 n11",
    "n[001-3]": "n001 n002 n003",
    "a[1-2]b[3-4]": "a1b3 a1b4 a2b3 a2b4",
    "a[1-2]b[3-4]c[5-6]d": "a1b3c5d a1b3c6d a2b3c5d a2b3c6d a1b4c5d a1b4c6d a2b4c5d a2b4c6d",
    "n1,n2,m[3-5]": "n1 n2 m3 m4 m5",
    "n[1,1,2]": "n1 n1 n2",
    "n[1-2],n[2-3]": "n1 n2 n2 n3",
    "n[1-2]-eth0": "n1-eth0 n2-eth0",
    "n[0-2]:8": "n0:8 n1:8 n2:8",
    "n]": "n]",
    "n[1-2]]": "n1] n2]",
    "n[[1-2]]": "n[1] n[2]",
    "n,,m": "n m",
    " n1 , n2\tn3\nn4": "n1 n2 n3 n4",
    "n[1-]": "n1",
    "n[+1]": "n01",
    "[1-3]": "1 2 3",
    "": "",
    ",": "",
}
REFUSED = {
    "n[3-1]": ("_parse_single_range: Invalid range: `3-1'", 2),
    "n[a-b]": ("_parse_single_range: Invalid range: `a-b'", 2),
    "n[1-3:2]": ("_parse_single_range: Invalid range: `1-3:2'", 2),
    "n[1,]": ("_parse_single_range: Invalid range: `'", 4),
    "n[]": ("_parse_single_range: Invalid range: `'", 2),
    "n[1-99999999]": ("_parse_single_range: Too many hosts in range `1-99999999'", 2),
    "n[1-3": ("Invalid hostlist: n[1-3", 1),
    "n]1[2": ("Invalid hostlist: n]1[2", 3),
    "n[0-65536]": ("Invalid hostlist: n[0-65536]", 2),
    "n{1-3}": ("hostlist_create_client: controller failed to expand hostlist function n{1-3}", 1),
}
FOLDED = {
    "n3,n1,n2": ("n[3,1-2]", "n[1-3]"),
    "n1,n1,n2": ("n[1,1-2]", "n[1,1-2]"),
    "n01,n02,n10": ("n[01-02,10]", "n[01-02,10]"),
    "x,y,z": ("x,y,z", "x,y,z"),
    "n8,n9,n10,n11": ("n[8-11]", "n[8-11]"),
    "n1,m1,n2": ("n1,m1,n2", "m1,n[1-2]"),
    "n001,n002,n0003": ("n[001-002,0003]", "n[001-002,0003]"),
    "alpha1beta,alpha2beta": ("alpha1beta,alpha2beta", "alpha1beta,alpha2beta"),
    "n08,n9,n10": ("n[08,9-10]", "n[9-10,08]"),
    "n10,n08,n9": ("n[10,08,9]", "n[9,08,10]"),
    "n1,n01,n001": ("n[1,01,001]", "n[1,01,001]"),
    "n[1-3],n[2-5]": ("n[1-3,2-5]", "n[1-2,2-3,3-5]"),
    "a1b1,a1b2,a2b1": ("a1b[1-2],a2b1", "a1b[1-2],a2b1"),
    "a10b-1,a9b-1": ("a10b-1,a9b-1", "a9b-1,a10b-1"),
    "n1,n,n2": ("n1,n,n2", "n,n[1-2]"),
    "n10,n9,n8": ("n[10,9,8]", "n[8-10]"),
    "": ("", ""),
}


@pytest.mark.parametrize("text", EXPANDED)
def test_a_list_expands_in_the_order_written(text: str) -> None:
    assert hostlist.expand(text) == EXPANDED[text].split()
    assert hostlist.count(text) == len(EXPANDED[text].split())


@pytest.mark.parametrize("text", REFUSED)
def test_a_bad_list_is_refused_in_slurms_words(text: str) -> None:
    with pytest.raises(LangError) as caught:
        hostlist.expand(text)
    assert (caught.value.message, caught.value.place) == REFUSED[text]


@pytest.mark.parametrize("text", FOLDED)
def test_names_fold_as_slurm_folds_them(text: str) -> None:
    names = hostlist.expand(text)
    assert (hostlist.compress(names), hostlist.compress_sorted(names)) == FOLDED[text]


def test_a_product_of_ranges_is_bounded() -> None:
    with pytest.raises(LangError, match="more than"):
        hostlist.expand("n[1-65536][1-65536]")


NAMES = st.lists(st.from_regex(r"[a-z][a-z0-9.-]{0,4}[0-9]{0,3}", fullmatch=True), max_size=12)


@given(NAMES)
def test_a_folded_list_expands_to_the_same_names(names: list[str]) -> None:
    assert hostlist.expand(hostlist.compress(names)) == names


@given(NAMES)
def test_a_sorted_list_holds_the_same_names(names: list[str]) -> None:
    assert sorted(hostlist.expand(hostlist.compress_sorted(names))) == sorted(names)
