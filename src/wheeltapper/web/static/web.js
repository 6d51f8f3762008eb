/* The table that answers while one types, live updates, the keyboard. Every page works without it. */
"use strict";
(() => {
  const page = document.body.dataset.page;
  const byId = (id) => document.getElementById(id);
  const table = byId("table");
  const picked = new Set();
  let current = -1;

  // the table
  function addressOf(form) {
    const pairs = [...new FormData(form)].filter(([, value]) => value !== "");
    return "?" + new URLSearchParams(pairs);
  }
  let latest = 0;
  async function show(query, remember = true) {
    const mine = ++latest;
    const answer = await fetch("/table" + query);
    if (mine !== latest || !answer.ok) return;
    const body = await answer.text();
    const scroll = table.querySelector(".scroll:last-of-type");
    const left = scroll ? scroll.scrollLeft : 0;
    table.innerHTML = body; // rendered and escaped by the server
    const again = table.querySelector(".scroll:last-of-type");
    if (again) again.scrollLeft = left;
    if (remember) history.replaceState(null, "", "/" + query);
    table.dataset.loads = String(+(table.dataset.loads || 0) + 1);
    for (const box of table.querySelectorAll(".pick")) box.checked = picked.has(box.value);
    mark(Math.min(current, rows().length - 1));
  }
  function hidden(name, value) {
    const form = byId("ask");
    for (const old of form.querySelectorAll(`input[type=hidden][name="${name}"]`)) old.remove();
    for (const one of [].concat(value)) {
      if (!one) continue;
      const input = document.createElement("input");
      Object.assign(input, { type: "hidden", name, value: one });
      form.append(input);
    }
  }
  if (page === "fleet") {
    const form = byId("ask");
    let timer = null;
    form.addEventListener("submit", (event) => { event.preventDefault(); show(addressOf(form)); });
    byId("search").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => show(addressOf(form)), 60); });
    form.querySelector("select").addEventListener("change", () => show(addressOf(form)));
    for (const box of form.querySelectorAll("[data-column]")) {
      box.addEventListener("change", () => {
        hidden("columns", [...form.querySelectorAll("[data-column]:checked")].map((b) => b.dataset.column).join(","));
        show(addressOf(form));
      });
    }
    table.addEventListener("click", (event) => {
      const link = event.target.closest("a");
      if (!link || link.pathname !== "/" || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      const query = new URLSearchParams(link.search);
      hidden("sort", query.get("sort"));
      hidden("filter", query.getAll("filter"));
      byId("search").value = query.get("q") || "";
      form.querySelector("select").value = query.get("group") || "";
      show(link.search || "?");
    });
    table.addEventListener("change", (event) => { if (event.target.classList.contains("pick")) pick(event.target); });
    byId("compare").addEventListener("click", compare);
  }
  function pick(box) {
    if (box.checked) picked.add(box.value); else picked.delete(box.value);
    byId("picked").textContent = picked.size ? `(${picked.size} of 2)` : "";
    byId("compare").disabled = picked.size !== 2;
  }
  function compare() {
    if (picked.size === 2) location.href = "/compare?" + [...picked].map((id) => `run=${id}`).join("&");
  }

  // the keyboard
  const rows = () => table ? [...table.querySelectorAll("tr[data-id]")] : [];
  function mark(index) {
    const all = rows();
    for (const row of all) row.classList.remove("at");
    current = Math.max(-1, Math.min(index, all.length - 1));
    if (current >= 0) { all[current].classList.add("at"); all[current].scrollIntoView({ block: "nearest" }); }
  }
  const keys = {
    "/": () => { const box = byId("search"); if (box) { box.focus(); box.select(); } },
    j: () => mark(current + 1),
    k: () => mark(Math.max(0, current - 1)),
    Enter: () => { const row = rows()[current]; if (row) row.querySelector("a.open").click(); },
    x: () => { const row = rows()[current]; if (row) row.querySelector(".pick").click(); },
    c: compare,
    g: () => { location.href = "/"; },
    l: () => { const box = byId("log"); if (box) box.click(); },
    "?": () => byId("help").showModal(),
  };
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") document.activeElement.blur();
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog[open]")) return;
    if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
  byId("help-open").addEventListener("click", () => byId("help").showModal());

  // live
  let version = +document.body.dataset.version;
  const line = new EventSource("/events");
  line.onmessage = async (event) => {
    const told = JSON.parse(event.data);
    const live = byId("live");
    if (told.ready && live.dataset.scanning === "yes") { live.textContent = ""; live.dataset.scanning = "no"; version = -1; }
    if (told.version === version) return;
    version = told.version;
    live.textContent = `updated ${new Date().toLocaleTimeString()}`;
    live.classList.add("new");
    if (page === "fleet") {
      await show(location.search || "?", false);
      for (const id of told.changed) { const row = table.querySelector(`tr[data-id="${id}"]`); if (row) row.classList.add("fresh"); }
    } else if (page === "run" && told.changed.includes(document.body.dataset.run)) {
      const answer = await fetch(location.href);
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const id of ["run", "detail"]) byId(id).replaceWith(fresh.getElementById(id));
      document.title = fresh.title;
      dispatchEvent(new Event("wheeltapper-changed"));
    }
  };
  line.onerror = () => { byId("live").textContent = "not connected"; };
})();
