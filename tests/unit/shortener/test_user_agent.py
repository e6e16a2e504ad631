"""Reading a user agent: browser, system, device and bot."""

import pytest

from shortener import user_agent
from shortener.user_agent import LONGEST_NAME_CHARACTERS, OTHER, Agent

FIREFOX = "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:26.0) Gecko/20100101 Firefox/26.0"
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 7_0_4 like Mac OS X) AppleWebKit/537.51.1 (KHTML, like Gecko) "
    "Version/7.0 Mobile/11B554a Safari/9537.53"
)


def test_a_browser_on_a_desktop() -> None:
    assert user_agent.read(FIREFOX) == Agent(browser="Firefox", system="Ubuntu", device=OTHER, bot=False)


def test_a_browser_on_a_telephone() -> None:
    assert user_agent.read(IPHONE) == Agent(browser="Mobile Safari", system="iOS", device="iPhone", bot=False)


@pytest.mark.parametrize(
    "agent",
    [
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        "Xenu Link Sleuth/1.3.8",  # known to ua-parser alone
        "UniversalFeedParser/4.2-pre-314-svn +http://feedparser.org/",  # known to BOT_WORDS alone
        "Mozilla/5.0 (Unknown; Linux x86_64) AppleWebKit/534.34 (KHTML, like Gecko) PhantomJS/1.9.2 Safari/534.34",
        "curl/8.5.0",
        "python-requests/2.31",
        "",
        " ",
    ],
)
def test_bots_are_recognized(agent: str) -> None:
    assert user_agent.read(agent).bot


@pytest.mark.parametrize(
    "agent",
    [
        FIREFOX,
        IPHONE,
        "Mozilla/5.0 (Linux; Android 8.0; CUBOT X18 Build/OPR) AppleWebKit/537 Chrome/70 Mobile Safari/537",
        "Lynx/2.8.7rel.2 libwww-FM/2.14 SSL-MM/1.4.1 OpenSSL/1.0.1f",
    ],
)
def test_browsers_do_not_count_as_bots(agent: str) -> None:
    assert not user_agent.read(agent).bot


def test_an_agent_whose_name_is_blank_counts_as_other() -> None:
    """The rule for watches matches and finds a blank name, so ua-parser raises."""
    assert user_agent.read("SmartWatch(  ;  ;").device == OTHER


def test_a_long_name_is_cut() -> None:
    assert user_agent.read("x" * 190 + "/1.2 CFNetwork/672").browser == "x" * LONGEST_NAME_CHARACTERS


def test_a_name_is_converted_to_ascii() -> None:
    assert user_agent.read("Bücher☃/1.2 CFNetwork/672").browser == "B?cher?"


@pytest.mark.parametrize("agent", ["\0\x01\x7f", "\ufffe", "(" * 512, "; " * 256, "'\"<>{}$[]\\", "Mozilla/5.0"])
def test_any_text_can_be_read(agent: str) -> None:
    assert user_agent.read(agent).browser == OTHER
