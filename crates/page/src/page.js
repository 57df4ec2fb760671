"use strict";
(() => {
  const one = (what) => document.querySelector(what);
  const all = (what) => Array.from(document.querySelectorAll(what));
  const tools = one(".tools");
  const scroller = one(".scroller");
  const root = document.documentElement;
  if (!tools || !scroller) return;
  tools.hidden = false;

  // Search: a row stays if every word is somewhere in it.
  const rows = all(".step").map((row) => [row, (row.id + " " + row.textContent).toLowerCase()]);
  const search = one("#search");
  const found = one("#found");
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const [row, text] of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) shown += 1;
    }
    for (const layer of all(".layer")) {
      layer.hidden = words.length > 0 && !layer.querySelector(".step:not([hidden])");
    }
    found.textContent = words.length ? shown + " of " + rows.length + " steps" : "";
  });

  // Zoom: the axis grows to the right, and what was in the middle stays there.
  let zoom = 1;
  const to = (next) => {
    const middle = (scroller.scrollLeft + scroller.clientWidth / 2) / scroller.scrollWidth;
    zoom = Math.min(32, Math.max(1, next));
    root.style.setProperty("--zoom", zoom);
    scroller.scrollLeft = middle * scroller.scrollWidth - scroller.clientWidth / 2;
  };
  const acts = { in: () => to(zoom * 2), out: () => to(zoom / 2), fit: () => to(1) };
  for (const button of all("[data-zoom]")) {
    button.addEventListener("click", acts[button.dataset.zoom]);
  }

  // A link to a step opens its row, also once more: the address is the same then. What the search hides is shown again.
  const open = (hash) => {
    const row = document.getElementById(decodeURIComponent(hash.slice(1)));
    if (!row || !row.matches(".step")) return;
    if (row.closest("[hidden]")) {
      search.value = "";
      search.dispatchEvent(new Event("input"));
    }
    row.open = true;
  };
  addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link) open(link.hash);
  });
  addEventListener("hashchange", () => open(location.hash));
  open(location.hash);
})();
