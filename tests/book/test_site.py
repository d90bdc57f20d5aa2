"""The site check: a sound page passes, and each thing that may be wrong is found by itself."""

from pathlib import Path

import pytest

from unmasked.book import site

PAGE = """<!DOCTYPE html>
<html lang="en"><head><title>A page</title>
<link rel="stylesheet" href="_static/style.css?v=1">
<link rel="canonical" href="https://example.org/page.html">
<script src="_static/script.js"></script>
</head><body><h1 id="top">A page</h1>
<p>Text, an <a href="https://example.org">address</a>, <a href="#top">up</a>,
<a href="other.html#part">there</a>, a <a href="_static/data%20file.csv">file</a>.</p>
<pre>{cite}`in_code` is code, ::: too</pre>
<div class="math">\\(x_{eq} {ref}\\)</div>
<img src="figure.png" alt="A line that falls">
</body></html>
"""
OTHER = (
    '<html lang="en"><head><title>B</title></head><body><h1>B</h1><p id="part">x</p></body></html>'
)


@pytest.fixture
def html(tmp_path: Path) -> Path:
    folder = tmp_path / "html"
    (folder / "_static").mkdir(parents=True)
    (folder / "_static" / "style.css").write_text("@import 'more.css'; p { color: red }")
    (folder / "_static" / "more.css").write_text("b { background: url('dot.png') }")
    (folder / "_static" / "script.js").write_text("fetch('https://example.org')")
    (folder / "_static" / "data file.csv").write_text("a\n")
    (folder / "_static" / "template.html").write_text("<p>not a page</p>")
    (folder / "figure.png").write_bytes(b"png")
    (folder / "page.html").write_text(PAGE)
    (folder / "other.html").write_text(OTHER)
    (folder / "index.html").write_text(
        '<meta http-equiv="Refresh" content="0; url=page.html" />',
    )
    return folder


def change(html: Path, old: str, new: str) -> list[str]:
    assert PAGE.count(old) == 1
    (html / "page.html").write_text(PAGE.replace(old, new))
    return site.check_site(html)


def test_a_sound_site_has_no_problems(html):
    assert site.check_site(html) == []


def test_a_folder_without_pages_is_not_a_site(tmp_path):
    assert site.check_site(tmp_path) == [
        f"there are no pages in {tmp_path.name}; run `unmasked build`"
    ]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('href="#top"', 'href="#down"', "no anchor '#down'"),
        ("other.html#part", "other.html#whole", "no anchor 'other.html#whole'"),
        ("other.html#part", "another.html", "broken link 'another.html'"),
        ("other.html#part", "../outside.html", "broken link '../outside.html'"),
        ("other.html#part", "/other.html", "broken link '/other.html'"),
        ('src="figure.png"', 'src="gone.png"', "loads a file that is not there: gone.png"),
        ('alt="A line that falls"', 'alt=" "', "image without alt text: figure.png"),
        (' alt="A line that falls"', "", "image without alt text: figure.png"),
        ('lang="en"', "", "no language: <html lang=...>"),
        ("<title>A page</title>", "<title></title>", "no text in <title>"),
        ('<h1 id="top">A page</h1>', '<p id="top">A page</p>', "no text in <h1>"),
        ("Text,", "{cite:p}`devlin2019bert`,", "markup left as text: '{cite:p}`'"),
        ("Text,", "see {eq} here,", "markup left as text: '{eq'"),
        ("Text,", ":::{note} x", "markup left as text: ':::'"),
        ("Text,", "$$x$$", "markup left as text: '$$'"),
        ("Text,", "of $A_i$ here,", "markup left as text: '$A_i$'"),
        ("Text,", r"is $\epsilon \ge 0$;", r"markup left as text: '\\epsilon'"),
        ("{cite}`in_code`", "Traceback (most recent call last):", "shows a traceback"),
    ],
)
def test_what_is_wrong_with_a_page_is_named(html, old, new, problem):
    assert change(html, old, new)[0] == f"page.html: {problem}"


@pytest.mark.parametrize(
    "loading",
    [
        '<script src="https://far.org/x.js"></script>',
        '<script src="//far.org/x.js"></script>',
        '<link rel="stylesheet" href="https://far.org/x.css">',
        '<link rel="preconnect" href="https://far.org">',
        '<img src="https://far.org/x.png" alt="x">',
        '<img src="figure.png" srcset="figure.png 1x, https://far.org/x.png 2x" alt="x">',
        '<iframe src="http://far.org/"></iframe>',
        '<picture><source srcset="https://far.org/x.webp"></picture>',
        '<video poster="https://far.org/x.png"></video>',
        '<p style="background: url(https://far.org/x.png)">x</p>',
        "<style>@import 'https://far.org/x.css';</style>",
        "<style>p { background: url('//far.org/x.png') }</style>",
        "<script>fetch('https://far.org/x.json')</script>",
        "<script type='module'>import x from 'https://far.org/x.js'</script>",
        "<script>const s = document.createElement('script'); s.src = 'https://far.org/x'</script>",
    ],
)
def test_anything_from_another_host_is_refused(html, loading):
    problems = change(html, "</body>", loading + "</body>")
    assert len(problems) == 1
    assert problems[0].startswith("page.html: loads from another host: ")
    assert "far.org" in problems[0]


def test_a_style_sheet_is_followed_through_its_imports(html):
    (html / "_static" / "more.css").write_text("@font-face { src: url(https://far.org/f.woff2) }")
    assert site.check_site(html) == [
        "page.html: loads from another host: https://far.org/f.woff2",
    ]


def test_a_redirect_must_lead_somewhere(html):
    (html / "index.html").write_text('<meta http-equiv="Refresh" content="0; url=gone.html" />')
    assert site.check_site(html) == ["index.html: broken link 'gone.html'"]


def test_weight_counts_what_the_page_loads_and_not_what_it_links_to(html):
    heavy = bytes(site.MAX_BYTES)
    (html / "_static" / "data file.csv").write_bytes(heavy)
    assert site.check_site(html) == []
    (html / "figure.png").write_bytes(heavy)
    assert site.check_site(html) == ["page.html: loads 1.50 MB; at most 1.5 MB are allowed"]


def test_text_is_weighed_as_it_is_sent_compressed(html):
    (html / "_static" / "script.js").write_text(" " * 2 * site.MAX_BYTES)
    assert site.check_site(html) == []
