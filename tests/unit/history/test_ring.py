"""A topic is in the bundle that its hash falls into, by the boundaries of one snapshot."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.history.ring import Ring
from pulsar_advisor.model.cluster.bundle_range import contains, format_range, parse_range, topic_hash

BOUNDS = (0, 0x40000000, 0x80000000, 0xFFFFFFFF)
BUNDLES = tuple(f"t/n/{format_range(*pair)}" for pair in pairwise(BOUNDS))
WHOLE = format_range(0, 0xFFFFFFFF)


@given(st.text(), st.sampled_from(["persistent", "non-persistent", "segment"]))
def test_a_topic_is_in_the_range_that_contains_its_hash(name: str, domain: str) -> None:
    ring = Ring([*BUNDLES, f"t/m/{WHOLE}"], [])
    topic = f"{domain}://t/n/{name}"
    bundle = ring.names[ring.bundle_of("t/n", topic)]
    assert bundle in BUNDLES
    assert contains(*parse_range(bundle.rpartition("/")[2]), topic_hash(topic))


def test_names_are_in_order_also_where_one_begins_like_another() -> None:
    ring = Ring([f"t/n-b/{WHOLE}", *BUNDLES], ["t/n!"])
    assert ring.names == (f"t/n!/{WHOLE}", f"t/n-b/{WHOLE}", *BUNDLES)
    assert list(ring.bundles_of("t/n")) == [2, 3, 4]


def test_a_namespace_that_the_snapshot_lacks_is_one_bundle() -> None:
    ring = Ring(BUNDLES, ["t/gone", "t/n"])
    assert ring.unbounded == ("t/gone",)
    assert ring.names[ring.bundle_of("t/gone", "persistent://t/gone/a")] == f"t/gone/{WHOLE}"
