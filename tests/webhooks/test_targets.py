"""What a URL alone tells: the scheme, the port, credentials, and addresses in odd notation."""

from __future__ import annotations

import pytest

from taskqueue.core.addresses import address_of
from taskqueue.core.webhook_targets import Allowed, InvalidURL, target_of

REFUSED = [
    ("http://example.com/", "https://"),
    ("ftp://example.com/", "https://"),
    ("file:///etc/passwd", "https://"),
    ("gopher://example.com/", "https://"),
    ("//example.com/", "https://"),
    ("example.com", "https://"),
    ("https://example.com:22/", "port"),
    ("https://example.com:80/", "port"),
    ("https://example.com:99999/", "no URL"),
    ("https://user@example.com/", "user name"),
    ("https://user:secret@example.com/", "user name"),
    ("https://@example.com/", "user name"),
    ("https://example.com#@127.0.0.1/", "#"),
    ("https://example.com/#", "#"),
    ("https:///path", "host name"),
    ("https://", "host name"),
    ("https://exa mple.com/", "printable"),
    ("https://example.com/\nHost: x", "printable"),
    ("https://example.com\\@127.0.0.1/", "printable"),
    ("https://ex\u00e4mple.com/", "printable"),
    ("https://\uff11\uff12\uff17.0.0.1/", "printable"),
    ("https://example..com/", "host name"),
    ("https://example.com./", "host name"),
    ("https://-example.com/", "host name"),
    ("https://exa%6dple.com/", "host name"),
    # Addresses in decimal, octal, hexadecimal and short forms.
    ("https://2130706433/", "four decimal"),
    ("https://0x7f000001/", "four decimal"),
    ("https://017700000001/", "four decimal"),
    ("https://127.1/", "four decimal"),
    ("https://127.0.1/", "four decimal"),
    ("https://0177.0.0.1/", "four decimal"),
    ("https://0x7f.0.0.1/", "four decimal"),
    ("https://127.0.0.0x1/", "four decimal"),
    ("https://127.000.000.001/", "four decimal"),
    ("https://1.2.3.4.5/", "four decimal"),
    ("https://256.1.1.1/", "four decimal"),
    ("https://0/", "four decimal"),
    # Addresses in their usual notation that are not public.
    ("https://127.0.0.1/", "loopback"),
    ("https://10.1.2.3/", "private"),
    ("https://169.254.169.254/latest/meta-data/", "metadata"),
    ("https://[::1]/", "loopback"),
    ("https://[::ffff:127.0.0.1]/", "loopback"),
    ("https://[::ffff:7f00:1]/", "loopback"),
    ("https://[64:ff9b::7f00:1]/", "loopback"),
    ("https://[fe80::1%25eth0]/", "IPv6"),
    ("https://[fe80::1]/", "link-local"),
    ("https://[::1/", "no URL"),
    ("https://" + "a" * 2000 + ".com/", "2000"),
]


@pytest.mark.parametrize(("url", "said"), REFUSED)
def test_a_url_that_no_webhook_may_have_is_refused(url: str, said: str) -> None:
    with pytest.raises(InvalidURL, match=said):
        target_of(url)


@pytest.mark.parametrize(
    ("url", "host", "port", "path"),
    [
        ("https://example.com", "example.com", 443, "/"),
        ("https://EXAMPLE.com:8443/a?b=c", "example.com", 8443, "/a?b=c"),
        ("https://xn--exmple-cua.com/", "xn--exmple-cua.com", 443, "/"),
        ("https://8.8.8.8/", "8.8.8.8", 443, "/"),
        ("https://[2606:4700:4700::1111]/x", "2606:4700:4700::1111", 443, "/x"),
        ("https://localhost/", "localhost", 443, "/"),
    ],
)
def test_an_ordinary_url_is_read(url: str, host: str, port: int, path: str) -> None:
    target = target_of(url)
    assert (target.host, target.port, target.path) == (host, port, path)


@pytest.mark.parametrize(
    ("entries", "url", "address"),
    [
        (["10.0.0.0/8"], "https://inside.test/", "10.1.2.3"),
        (["10.0.0.0/8"], "http://inside.test:8000/", "10.1.2.3"),
        (["10.0.0.0/8"], "https://inside.test/", "::ffff:10.1.2.3"),
        (["*.inside.test"], "http://a.inside.test:8000/", "10.1.2.3"),
        (["a.test:8000"], "http://a.test:8000/", "127.0.0.1"),
        (["fd00::/8"], "https://inside.test/", "fd12::1"),
    ],
)
def test_addresses_named_in_the_setting_are_allowed(
    entries: list[str], url: str, address: str
) -> None:
    allowed = Allowed.of(entries)
    assert target_of(url, allowed).refusal(address_of(address), allowed) == ""


@pytest.mark.parametrize(
    ("entries", "url", "address", "said"),
    [
        (["10.0.0.0/8"], "https://inside.test/", "192.168.0.1", "private"),
        (["10.0.0.0/8"], "http://inside.test/", "8.8.8.8", "https://"),
        (["10.0.0.0/8"], "https://inside.test:22/", "8.8.8.8", "port"),
        (["0.0.0.0/0"], "https://inside.test/", "169.254.169.254", "metadata"),
        (["*"], "https://inside.test/", "169.254.169.254", "metadata"),
        (["*.inside.test"], "https://other.test/", "10.1.2.3", "private"),
        (["a.test:8000"], "https://a.test/", "127.0.0.1", "loopback"),
    ],
)
def test_addresses_not_named_in_the_setting_are_refused(
    entries: list[str], url: str, address: str, said: str
) -> None:
    allowed = Allowed.of(entries)
    assert said in target_of(url, allowed).refusal(address_of(address), allowed)


@pytest.mark.parametrize("entry", ["10.0.0.0/8/8", "http://a.test", "10.0.0.256", "a b", "a:b", ""])
def test_an_entry_of_the_setting_that_is_neither_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="^" + __import__("re").escape(entry) + "$"):
        Allowed.of([entry])


def test_the_origin_holds_no_path_and_no_query() -> None:
    target = target_of("https://example.com:8443/hooks/secret?token=secret")
    assert target.origin == "https://example.com:8443"
    assert target_of("https://[2606:4700::1]/x").authority == "[2606:4700::1]"
