"""Every class of address that is not public is told, in whatever form it comes."""

from __future__ import annotations

import pytest

from taskqueue.core.addresses import address_of, class_of, embedded_in

REFUSED = [
    # IPv4
    ("0.0.0.0", "unspecified"),
    ("0.1.2.3", "unspecified"),
    ("127.0.0.1", "loopback"),
    ("127.255.255.254", "loopback"),
    ("10.0.0.1", "private"),
    ("172.16.0.1", "private"),
    ("172.31.255.255", "private"),
    ("192.168.1.1", "private"),
    ("100.64.0.1", "private"),
    ("169.254.1.1", "link-local"),
    ("169.254.169.254", "metadata"),
    ("169.254.170.2", "metadata"),
    ("100.100.100.200", "metadata"),
    ("168.63.129.16", "metadata"),
    ("192.0.0.192", "metadata"),
    ("192.0.0.8", "reserved"),
    ("192.0.0.9", "reserved"),
    ("192.0.2.1", "reserved"),
    ("192.88.99.1", "reserved"),
    ("198.18.0.1", "reserved"),
    ("198.51.100.7", "reserved"),
    ("203.0.113.9", "reserved"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.250", "multicast"),
    ("240.0.0.1", "reserved"),
    ("255.255.255.255", "reserved"),
    # IPv6
    ("::", "unspecified"),
    ("::1", "loopback"),
    ("fe80::1", "link-local"),
    ("fe80::1%eth0", "link-local"),
    ("fc00::1", "private"),
    ("fd12:3456::1", "private"),
    ("fec0::1", "private"),
    ("fd00:ec2::254", "metadata"),
    ("ff02::1", "multicast"),
    ("ff0e::1", "multicast"),
    ("100::1", "reserved"),
    ("2001:db8::1", "reserved"),
    ("2001:2::1", "reserved"),
    ("3fff::1", "reserved"),
    ("5f00::1", "reserved"),
    ("4000::1", "reserved"),
    # IPv4 in IPv6: mapped, compatible, NAT64, 6to4, Teredo, ISATAP.
    ("::ffff:127.0.0.1", "loopback"),
    ("::ffff:10.0.0.1", "private"),
    ("::ffff:169.254.169.254", "metadata"),
    ("::127.0.0.1", "loopback"),
    ("64:ff9b::10.0.0.1", "private"),
    ("64:ff9b::a9fe:a9fe", "metadata"),
    ("64:ff9b:1::808:808", "private"),
    ("2002:7f00:1::", "loopback"),
    ("2002:a9fe:a9fe::1", "metadata"),
    ("2001:0:808:808:0:0:f5ff:fffe", "private"),
    ("2001:0:a00:1:0:0:f7f7:f7f7", "private"),
    ("2a00:1450::5efe:10.0.0.1", "private"),
    ("2a00:1450::200:5efe:127.0.0.1", "loopback"),
]
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "172.15.255.255",
    "172.32.0.1",
    "100.128.0.1",
    "2606:4700:4700::1111",
    "2a00:1450:4001:830::200e",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2002:808:808::1",
]


@pytest.mark.parametrize(("text", "expected"), REFUSED)
def test_an_address_that_is_not_public_has_a_class(text: str, expected: str) -> None:
    assert class_of(address_of(text)) == expected


@pytest.mark.parametrize("text", PUBLIC)
def test_a_public_address_has_none(text: str) -> None:
    assert class_of(address_of(text)) == ""


def test_a_teredo_address_stands_for_its_server_and_its_client() -> None:
    inner = embedded_in(address_of("2001:0:808:808:0:0:f5ff:fffe"))
    assert list(map(str, inner)) == ["8.8.8.8", "10.0.0.1"]
