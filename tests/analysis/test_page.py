"""The page in a browser, opened from disk without a network: sorted, filtered, explored, on a phone, in the dark."""

import re
import shutil

import pytest
from fake_study import changed, ending, noise, write_study

from ablate.records import Status
from analysis import report

api = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="the browser tests need Chromium")

LABELS = ("rope", "roper", "none", "_x$|<b>", "alibi", "fire", "t5")
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    study = tmp_path_factory.mktemp("studies") / "copy_repeat"
    values = {label: noise(i, 4, mean=0.4 + 0.01 * i, sd=0.005) for i, label in enumerate(LABELS)}
    factors = {label: {"attention": label, "model.width": 32 * (1 + i % 2)} for i, label in enumerate(LABELS)}
    changes = {("roper", 2): ending(Status.diverged), ("none", 1): changed(git={"commit": "f" * 40, "dirty": "d"})}
    write_study(study, values, factors=factors, changes=changes, curves=True)
    report.main([str(study)])
    return study / "report" / "report.html"


@pytest.fixture
def open_page(browser, written):
    """Open the report; any complaint of the browser and any request but the file itself fails the test."""
    contexts, complaints, requests = [], [], []

    def opened(viewport=WIDE, scheme="light", fragment="", **options):
        context = browser.new_context(viewport=viewport, color_scheme=scheme, offline=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(written.as_uri() + fragment)
        if options.get("java_script_enabled", True):
            until(page, "document.querySelector('.plot .legend') !== null")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url.partition("#")[0] for url in requests] == [written.as_uri()] * len(contexts)


def until(page, condition):
    """Wait for a condition; the page's policy forbids playwright's own way, which evaluates text inside the page."""
    for _ in range(200):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"never came true: {condition}")


def column(page, index):
    return page.eval_on_selector_all(
        ".filtered tbody tr", f"rows => rows.filter(r => !r.hidden).map(r => r.cells[{index}].textContent)"
    )


def heads(page):
    return page.eval_on_selector_all(".filtered th", "all => all.map(th => th.textContent)")


def numbers_of(texts):
    return [float(re.match(r"[+−]?[\d.]+", text)[0].replace("−", "-")) for text in texts]


def test_a_click_on_a_head_sorts_by_the_number_and_another_one_the_other_way(open_page):
    page = open_page()
    mean = heads(page).index("mean ± SD")
    button = page.locator(".filtered th button").nth(mean)
    button.click()
    up = numbers_of(column(page, mean))
    assert up == sorted(up)
    assert len(up) == len(LABELS)
    assert page.locator(".filtered th").nth(mean).get_attribute("aria-sort") == "ascending"
    button.click()
    assert numbers_of(column(page, mean)) == up[::-1]
    assert page.locator(".filtered th[aria-sort]").count() == 1


def test_enter_sorts_too_and_rows_without_a_value_stay_at_the_end(open_page):
    page = open_page()
    delta = heads(page).index("Δ vs baseline [95 % CI]")
    for _ in range(2):
        page.locator(".filtered th button").nth(delta).press("Enter")
        shown = column(page, delta)
        assert shown[-1] == "–"
    assert numbers_of(shown[:-1]) == sorted(numbers_of(shown[:-1]), reverse=True)


def test_sorting_uses_the_unrounded_value(open_page):
    page = open_page()
    found = page.eval_on_selector_all(".filtered td[data-title='mean ± SD']", "all => all.map(td => td.dataset.sort)")
    assert all(len(value) > 10 for value in found)


FILTERED = {
    "attention=rope": ["rope", "roper"],
    "ATTENTION=rope width=64": ["roper"],
    "<b>": ["_x$|<b>"],
    "nothing of the kind": [],
    "": list(LABELS),
}


def test_the_table_is_filtered_by_label_and_factor(open_page):
    page = open_page()
    for text, labels in FILTERED.items():
        page.fill("input.filter", text)
        assert column(page, 0) == labels
        assert page.text_content(".found") == (f"{len(labels)} of 7 variants" if text else "")


def traces(page, what):
    return page.evaluate(f"document.querySelector('.plot')._fullData.map(t => {what})")


def test_a_click_in_the_legend_hides_a_variant_with_all_its_seeds(open_page):
    page = open_page()
    assert set(traces(page, "t.visible")) == {True}
    page.locator(".legendtoggle").nth(1).click()
    until(page, "document.querySelector('.plot')._fullData.some(t => t.visible === 'legendonly')")
    hidden = {(group, visible) for group, visible in traces(page, "[t.legendgroup, t.visible]")}
    assert hidden == {(str(i), "legendonly" if i == 1 else True) for i in range(len(LABELS))}
    # its mean, its seeds, its diverged run, the cross of that
    assert len([1 for group, _ in traces(page, "[t.legendgroup, 0]") if group == "1"]) == 4


def axis(page, name, what):
    return page.evaluate(f"document.querySelector('.plot')._fullLayout.{name}.{what}")


def test_y_can_be_logarithmic_and_back(open_page):
    page = open_page()
    linear = axis(page, "yaxis", "range")
    page.click("button.log")
    until(page, "document.querySelector('.plot')._fullLayout.yaxis.type === 'log'")
    assert page.get_attribute("button.log", "aria-pressed") == "true"
    assert axis(page, "yaxis", "range")[1] < 1
    page.click("button.log")
    until(page, "document.querySelector('.plot')._fullLayout.yaxis.type === 'linear'")
    assert axis(page, "yaxis", "range") == linear


def test_x_can_be_in_tokens_and_back(open_page):
    page = open_page()
    steps = traces(page, "[...t.x]")
    page.click("button.tokens")
    until(page, "document.querySelector('.plot')._fullLayout.xaxis.title.text === 'tokens'")
    assert traces(page, "[...t.x]") == [[step * 64 for step in xs] for xs in steps]
    page.click("button.tokens")
    until(page, "document.querySelector('.plot')._fullLayout.xaxis.title.text === 'optimiser step'")
    assert traces(page, "[...t.x]") == steps


def test_hovering_tells_the_variant_the_seed_the_step_and_the_value(open_page):
    page = open_page()
    page.evaluate(
        "() => { const plot = document.querySelector('.plot');"
        " const i = plot._fullData.findIndex(t => t.legendgroup === '3' && t.customdata);"
        " Plotly.Fx.hover(plot, [{curveNumber: i, pointNumber: 1}]); }"
    )
    text = " ".join(page.locator(".hovertext tspan, .hovertext text").all_text_contents())
    for part in ("_x$|<b>, seed 0", "optimiser step 20", "eval/loss 0."):
        assert part in text


def test_nothing_offers_to_send_the_curves_anywhere(open_page):
    page = open_page()
    titles = page.eval_on_selector_all(".modebar-btn", "all => all.map(b => b.dataset.title)")
    assert titles
    assert not [title for title in titles if re.search("share|cloud|edit", title, re.IGNORECASE)]


def test_a_number_leads_to_its_runs_and_a_sign_of_the_matrix_to_its_run(open_page, written):
    page = open_page()
    assert page.locator("details[open]").count() == 0
    page.locator(".filtered td[data-title='mean ± SD'] a").nth(1).click()
    assert page.evaluate("document.querySelector('details[open]').id") == "runs-1"
    page.locator("table.matrix tbody tr").nth(2).locator("a").nth(1).click()
    row = page.locator("tr:target")
    assert row.is_visible()
    texts = row.locator("td").all_text_contents()
    assert texts[:2] == ["1", "ok"]
    assert texts[5:7] == ["fffffff+", "aaaaaaaa"]
    folder = row.locator("a").get_attribute("href")
    assert (written.parent / folder / "run.json").is_file()


def test_a_link_from_outside_unfolds_the_run(open_page):
    page = open_page(fragment="#run-1-2")
    assert page.locator("#run-1-2").is_visible()
    assert "diverged" in page.locator("#run-1-2").text_content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_the_page_is_no_wider_than_the_screen(open_page, scheme):
    page = open_page(PHONE, scheme, is_mobile=True, has_touch=True)
    page.eval_on_selector_all("details", "all => all.forEach(d => { d.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    assert page.evaluate("document.querySelector('.plot svg').getBoundingClientRect().right") <= PHONE["width"]
    mean = heads(page).index("mean ± SD")
    page.locator(".filtered th button").nth(mean).click()
    assert numbers_of(column(page, mean)) == sorted(numbers_of(column(page, mean)))


CONTRASTS = """() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = text => {
    const [r, g, b] = parse(text).map(c => c / 255).map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const ground = element => {
    const colour = getComputedStyle(element).backgroundColor;
    return element.parentElement && (parse(colour)[3] === 0) ? ground(element.parentElement) : colour;
  };
  const ratio = (a, b) => (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  return [...document.querySelectorAll(`h1, p, td, th, summary, button, pre, dt, dd, figcaption, .beside, input,
      .plot text, .plot path.js-line`)]
    .filter(element => element.getClientRects().length)
    .map(element => {
      const style = getComputedStyle(element);
      const colour = element.matches("text") ? style.fill : element.matches("path") ? style.stroke : style.color;
      return [element.tagName, colour, ratio(light(colour), light(ground(element.closest(".plot") ?? element)))];
    });
}"""


PAINTED = "document.querySelector('.plot')._fullData.every(t => t.line?.color !== '#000000')"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_lines_stand_out_from_the_ground(open_page, scheme):
    page = open_page(scheme=scheme)
    until(page, PAINTED)
    found = page.evaluate(CONTRASTS)
    assert len(found) > 100
    assert [each for each in found if each[0] != "path" and each[2] < 4.5] == []
    # Lines are as WCAG asks of graphics, or as near as a palette for both grounds and the colour-blind comes.
    assert [each for each in found if each[0] == "path" and each[2] < 2] == []


def test_the_figure_follows_when_the_screen_turns_dark(open_page):
    page = open_page(scheme="light")
    before = axis(page, "font", "color")
    page.emulate_media(color_scheme="dark")
    until(page, f"document.querySelector('.plot')._fullLayout.font.color !== '{before}'")
    until(page, PAINTED)


def test_without_script_the_tables_and_the_still_figure_are_there(open_page):
    page = open_page(java_script_enabled=False)
    assert column_without_script(page) == list(LABELS)
    assert not page.locator("input.filter").is_visible()
    assert page.locator(".filtered th button").count() == 0
    assert page.locator("#figure-learning_curves img").is_visible()
    assert not page.locator(".curves").is_visible()


def column_without_script(page):
    return page.locator(".filtered tbody tr td:first-child").all_text_contents()
