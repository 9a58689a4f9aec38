"use strict";
// The page is whole without this script; it adds sorting, filtering, unfolding and figures to explore.

const key = cell => cell.dataset.sort;
const numeric = text => text !== "" && !Number.isNaN(Number(text));
const compare = (a, b) => numeric(a) && numeric(b) ? a - b : a.localeCompare(b, "en", {numeric: true});

// Rows without a value stay at the end in either direction; equal rows keep their order.
function sort(table, column, sign) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map(row => ({row, key: key(row.cells[column])}));
  rows.sort((a, b) => (a.key === "") - (b.key === "") || (a.key === "" ? 0 : sign * compare(a.key, b.key)));
  body.append(...rows.map(({row}) => row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  if (table.tBodies[0].rows.length < 2) continue;
  table.tHead.classList.toggle("sorts", table.tBodies[0].rows.length > 3);  // of use on a phone, where it takes room
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const order = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      sort(table, column, order === "ascending" ? 1 : -1);
    });
  });
}

// A row is shown when it holds every word of the text.
for (const input of document.querySelectorAll("input.filter")) {
  const tools = input.closest(".tools");
  const rows = [...tools.nextElementSibling.querySelectorAll("tbody tr")];
  tools.hidden = false;
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    rows.forEach(row => { row.hidden = !words.every(word => row.dataset.words.includes(word)); });
    const shown = rows.filter(row => !row.hidden).length;
    tools.querySelector(".found").textContent = shown < rows.length ? `${shown} of ${rows.length} variants` : "";
  });
}

// A link to a folded run unfolds its variant.
function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const folded = target?.closest("details:not([open])");
  if (!folded) return;
  folded.open = true;
  target.scrollIntoView();
}
addEventListener("hashchange", unfold);
unfold();

const dark = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 48rem)");
const coarse = matchMedia("(pointer: coarse)");
const INK = "#000000";  // the palette's black, which the dark would swallow

// Text and grid in the page's colours; the legend beside the curves, or below them on a phone.
function look(meta) {
  const style = getComputedStyle(document.documentElement);
  const [text, line, ground] = ["--text", "--line", "--card"].map(name => style.getPropertyValue(name).trim());
  const below = 24 * meta.variants + 60;
  return {
    "font.color": text, "font.family": "system-ui, sans-serif",
    "xaxis.gridcolor": line, "yaxis.gridcolor": line, "xaxis.linecolor": line, "yaxis.linecolor": line,
    "modebar.color": text, "modebar.bgcolor": "rgba(0,0,0,0)", "modebar.activecolor": text,
    "hoverlabel.bgcolor": ground, "hoverlabel.font.color": text,
    "dragmode": coarse.matches ? false : "zoom",
    "height": narrow.matches ? 380 + below : Math.max(460, below + 40),
    "margin": narrow.matches ? {l: 56, r: 8, t: 30, b: 50 + below} : {l: 64, r: 20, t: 30, b: 56},
    "legend.orientation": "v",
    "legend.x": narrow.matches ? 0 : 1.02, "legend.y": narrow.matches ? -60 / 300 : 1,
    "legend.yanchor": "top", "legend.xanchor": "left",
  };
}

function explore(box) {
  const {data, layout} = JSON.parse(box.querySelector("script").textContent);
  const plot = box.querySelector(".plot");
  const inked = data.flatMap((trace, index) => (trace.line ?? trace.marker.line).color === INK ? [index] : []);
  const paint = () => {
    Plotly.relayout(plot, look(layout.meta));
    const ink = getComputedStyle(document.documentElement).getPropertyValue("--text").trim();
    if (inked.length) Plotly.restyle(plot, {"line.color": ink, "marker.line.color": ink}, inked);
  };
  box.hidden = false;
  Plotly.newPlot(plot, data, layout, {
    displaylogo: false, showSendToCloud: false, plotlyServerURL: "", responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  }).then(paint);
  [dark, narrow].forEach(media => media.addEventListener("change", paint));

  const toggle = (name, change) => box.querySelector(`button.${name}`)?.addEventListener("click", event => {
    const on = event.target.getAttribute("aria-pressed") === "false";
    event.target.setAttribute("aria-pressed", on);
    change(on);
  });
  toggle("log", on => {
    const type = on ? "log" : "linear";
    Plotly.relayout(plot, {"yaxis.type": type, "yaxis.range": [...layout.meta.range[type]]});
  });
  const steps = data.map(trace => trace.x);
  toggle("tokens", on => {
    const x = steps.map((values, index) => on ? values.map(step => step * data[index].meta.tokens) : values);
    Plotly.update(plot, {x}, {"xaxis.title.text": on ? "tokens" : "optimiser step", "xaxis.autorange": true});
  });
}

document.querySelectorAll(".curves").forEach(explore);
