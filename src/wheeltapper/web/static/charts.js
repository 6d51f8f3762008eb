/* Curves: uPlot with our colours, marks and zoom. */
"use strict";
(() => {
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const COLOURS = { train: "--train", val: "--val", test: "--test", other: "--other", dead: "--dead", lr: "--lr", plan: "--soft", a: "--train", b: "--val" };
  const HEIGHT = 240;
  const state = { smooth: 0, log: null, charts: [] };

  function smoothed(values, weight) {
    if (!weight) return values;
    let last = null, debias = 0;
    return values.map((v) => {
      if (v == null) return null;
      last = (last == null ? 0 : last) * weight + (1 - weight) * v;
      debias = debias * weight + (1 - weight);
      return last / debias;
    });
  }

  function short(v) {
    if (v == null) return "–";
    const a = Math.abs(v);
    return a !== 0 && (a < 1e-3 || a >= 1e6) ? (+v.toPrecision(4)).toExponential() : String(+v.toPrecision(5));
  }

  function marksPlugin(chart) {
    return {
      hooks: {
        drawClear: (u) => {
          const { ctx, bbox } = u;
          ctx.save();
          ctx.beginPath(); ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height); ctx.clip();
          for (const mark of chart.marks) {
            const colour = css(mark.kind === "ill" ? "--ill" : mark.kind === "watch" ? "--watch" : mark.kind === "best" ? "--best" : "--soft");
            const x = u.valToPos(mark.at, "x", true);
            if (mark.end != null) {
              ctx.globalAlpha = 0.1; ctx.fillStyle = colour;
              ctx.fillRect(x, bbox.top, u.valToPos(mark.end, "x", true) - x, bbox.height);
            }
            ctx.globalAlpha = 1; ctx.strokeStyle = colour; ctx.lineWidth = devicePixelRatio;
            ctx.beginPath();
            if (mark.y != null) ctx.arc(x, u.valToPos(mark.y, "y", true), 5 * devicePixelRatio, 0, 2 * Math.PI);
            else { ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); }
            ctx.stroke();
          }
          for (const line of chart.lines) {
            for (const [from, to] of line.broken || []) {
              const x = u.valToPos(from, "x", true);
              ctx.globalAlpha = 0.25; ctx.fillStyle = css("--ill");
              ctx.fillRect(x, bbox.top, Math.max(2 * devicePixelRatio, u.valToPos(to, "x", true) - x), bbox.height);
            }
          }
          ctx.restore();
        },
      },
    };
  }

  function dataOf(chart) {
    const tables = chart.lines.map((line) => [line.x, smoothed(line.y, line.role === "plan" || line.role === "lr" ? 0 : state.smooth)]);
    return tables.length === 1 ? tables[0] : uPlot.join(tables);
  }

  function options(chart, width, zoom) {
    const log = state.log == null ? chart.log : state.log;
    const series = chart.lines.map((line) => ({
      label: line.name + (line.own_scale ? " (own scale)" : ""),
      stroke: css(COLOURS[line.role] || "--other"),
      alpha: line.nth ? Math.max(0.35, 1 - 0.3 * line.nth) : 1,
      width: line.role === "lr" ? 1 : 1.5,
      dash: line.role === "lr" || line.role === "plan" || line.dashed ? [5, 4] : undefined,
      scale: line.own_scale ? "own" : "y",
      points: { show: line.x.length < 40 },
      value: (_, v) => short(v),
      spanGaps: false,
    }));
    const axis = { stroke: css("--soft"), grid: { stroke: css("--edge"), width: 1 }, ticks: { stroke: css("--edge") }, font: "11px system-ui" };
    return {
      width, height: HEIGHT,
      cursor: { drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { distr: log ? 3 : 1 }, own: {} },
      series: [{ label: chart.clock.replace("_", "-"), value: (_, v) => short(v) }, ...series],
      axes: [{ ...axis, size: 34 }, { ...axis, size: 58, values: (_, splits) => splits.map((v) => v == null ? "" : short(v)) }],
      plugins: [marksPlugin(chart)],
      hooks: { setScale: [(u, key) => { if (key === "x" && zoom) zoom(u); }] },
    };
  }

  function positive(chart) {
    return chart.lines.some((line) => !line.own_scale && line.y.some((v) => v != null && v > 0));
  }

  function drawAll(box, charts) {
    for (const old of state.charts) old.plot.destroy();
    state.charts = [];
    box.replaceChildren();
    if (!charts.length) { const p = document.createElement("p"); p.className = "soft"; p.textContent = "No curve with two points is logged."; box.append(p); }
    const holders = charts.map((chart) => {
      if (!chart.lines.length) return null;
      const figure = document.createElement("figure");
      const caption = document.createElement("figcaption");
      const title = document.createElement("strong");
      title.textContent = chart.title;
      caption.append(title);
      for (const mark of chart.marks) {
        if (!["ill", "watch"].includes(mark.kind)) continue;
        const note = document.createElement("span");
        note.className = `mark mark-${mark.kind}`;
        note.textContent = `${mark.label} from ${chart.clock} ${short(mark.at)}`;
        caption.append(note);
      }
      const words = document.createElement("span");
      words.className = "visually-hidden";
      words.textContent = chart.words;
      caption.append(words);
      figure.append(caption);
      const holder = document.createElement("div");
      figure.append(holder);
      box.append(figure);
      return holder;
    });
    charts.forEach((chart, number) => { // when all stand in their places, their widths are known
      const holder = holders[number];
      if (!holder) return;
      const shown = { ...chart };
      if (state.log && !positive(chart)) shown.log = false;
      let timer = null;
      const zoom = box.dataset.zoom ? (u) => {
        clearTimeout(timer);
        timer = setTimeout(() => fetchPart(box, u, chart, number), 120);
      } : null;
      const plot = new uPlot(options(shown, Math.max(240, holder.clientWidth || 480), zoom), dataOf(chart), holder);
      plot.root.dataset.chart = String(number);
      state.charts.push({ plot, chart, holder, full: chart.lines });
    });
  }

  async function fetchPart(box, u, chart, number) {
    const held = state.charts.find((c) => c.plot === u);
    if (!held) return;
    const { min, max } = u.scales.x;
    const xs = held.full.flatMap((line) => [line.x[0], line.x[line.x.length - 1]]).filter((v) => v != null);
    if (min <= Math.min(...xs) && max >= Math.max(...xs)) {
      if (held.part) { held.part = null; chart.lines = held.full; redraw(held, null); }
      return;
    }
    const part = `${min}:${max}`;
    if (held.part === part) return;
    held.part = part;
    const answer = await fetch(`${box.dataset.source}?chart=${number}&start=${min}&end=${max}`, { headers: { accept: "application/json" } });
    if (!answer.ok || held.part !== part) return;
    chart.lines = await answer.json();
    redraw(held, { min, max });
    figureState(held, part);
  }
  function figureState(held, part) { held.holder.dataset.zoomed = part; }
  function redraw(held, range) {
    held.plot.setData(dataOf(held.chart), range == null);
    if (range) held.plot.setScale("x", range);
    else delete held.holder.dataset.zoomed;
  }

  async function load(box) {
    const answer = await fetch(box.dataset.source, { headers: { accept: "application/json" } });
    const found = await answer.json();
    if (!answer.ok) { box.textContent = found.error || "The curves cannot be read."; return; }
    box.wheeltapper = found;
    drawAll(box, found);
    box.dataset.ready = String(+(box.dataset.ready || 0) + 1);
  }

  function scatter(box, found) {
    box.replaceChildren();
    if (found.error || !found.points.length) { box.textContent = found.error || "No run has both."; return; }
    const log = document.getElementById("log").checked && !found.names_x.length && found.points.every((p) => p.x > 0);
    const order = ["sound", "cannot-tell", "ill"];
    const colours = { sound: "--sound", "cannot-tell": "--watch", ill: "--ill" };
    const points = [...found.points].sort((p, q) => p.x - q.x);
    const data = [points.map((p) => p.x), ...order.map((v) => points.map((p) => p.verdict === v ? p.y : null))];
    const hint = document.createElement("p");
    hint.className = "hint";
    hint.setAttribute("role", "status");
    hint.textContent = `${found.points.length} runs. Click a point to open its run.`;
    const holder = document.createElement("div");
    box.append(holder, hint);
    const axis = { stroke: css("--soft"), grid: { stroke: css("--edge"), width: 1 }, font: "11px system-ui" };
    const named = (names) => (_, splits) => splits.map((v) => names.length ? (Number.isInteger(v) ? (names[v] || "") : "") : v == null ? "" : short(v));
    let at = null;
    const pad = (names) => names.length ? () => [-0.5, names.length - 0.5] : undefined;
    const plot = new uPlot({
      width: Math.max(260, box.clientWidth), height: 340,
      cursor: { drag: { x: true, y: true } },
      scales: { x: { time: false, distr: log ? 3 : 1, range: pad(found.names_x) }, y: { range: pad(found.names_y) } },
      series: [{ label: found.x, value: (_, v) => short(v) }, ...order.map((v) => ({ label: v.replace("-", " "), stroke: css(colours[v]), paths: () => null, points: { show: true, size: 8, fill: css(colours[v]) }, value: (_, y) => short(y) }))],
      axes: [{ ...axis, label: found.x, labelSize: 20, values: named(found.names_x) }, { ...axis, label: found.y, labelSize: 20, size: 70, values: named(found.names_y) }],
      hooks: { setCursor: [(u) => { at = u.cursor.idx; if (at != null && points[at]) hint.textContent = `${points[at].label}: ${short(points[at].y)}`; }] },
    }, data, holder);
    plot.over.addEventListener("click", () => { if (at != null && points[at] && plot.select.width < 3) location.href = `/run/${points[at].id}`; });
    box.dataset.ready = "1";
  }

  async function start() {
    const charts = document.getElementById("charts");
    const smooth = document.getElementById("smooth");
    const log = document.getElementById("log");
    const cloud = document.getElementById("scatter");
    if (charts) {
      await load(charts);
      smooth.addEventListener("input", () => {
        state.smooth = +smooth.value;
        document.getElementById("smooth-value").textContent = state.smooth ? smooth.value : "off";
        for (const held of state.charts) held.plot.setData(dataOf(held.chart), false), held.plot.redraw();
      });
      log.addEventListener("change", () => { state.log = log.checked; drawAll(charts, charts.wheeltapper); });
      let timer = null;
      addEventListener("resize", () => { clearTimeout(timer); timer = setTimeout(() => { for (const { plot, holder } of state.charts) plot.setSize({ width: Math.max(240, holder.clientWidth), height: HEIGHT }); }, 100); });
      addEventListener("wheeltapper-changed", () => load(charts));
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll(charts, charts.wheeltapper));
    }
    if (cloud) {
      const answer = await fetch(cloud.dataset.source, { headers: { accept: "application/json" } });
      const found = await answer.json();
      scatter(cloud, found);
      log.addEventListener("change", () => scatter(cloud, found));
    }
  }
  start();
})();
