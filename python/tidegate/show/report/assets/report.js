// The charts of a tidegate report. Data comes from the JSON block of the page; nothing is fetched.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let printing = false; // on paper it is always light
  const hue = (pair) => pair[dark.matches && !printing ? 1 : 0];
  const charts = [];
  let zoom = null; // [from, to] in seconds, the same for every chart over time
  let logDelay = data.logDelay;

  // Differences of whole steps back to values; see series.py.
  function unpack(packed, step) {
    let last = 0;
    return packed.map((d) => (d === null ? null : ((last += d) * step)));
  }

  const QUANTITIES = {
    rate: { unit: "Mbit/s", digits: 2, title: "Rate", height: 230 },
    delay: { unit: "ms", digits: 0, title: "One-way delay", height: 190 },
    loss: { unit: "%", digits: 1, title: "Packets lost", height: 130 },
    trip: { unit: "ms", digits: 0, title: "Round trip", height: 130 },
    pacer: { unit: "kB", digits: 1, title: "Waiting at the sender", height: 110 },
    frame: { unit: "ms", digits: 0, title: "Frame delay", height: 150 },
    queue: { unit: "kB", digits: 1, title: "Queues", height: 150 },
  };
  // lines that share a hue are told apart by these
  const DASHES = [undefined, [8, 3], [2, 2], [10, 3, 2, 3], [14, 4], [4, 4]];

  function lines(column, panel, quantity) {
    const out = [];
    const add = (label, packed, style) => {
      if (packed && packed.some((d) => d !== null)) {
        out.push({ label, values: unpack(packed, data.steps[quantity]), ...style });
      }
    };
    const many = column.flows.length > 1;
    const named = (flow, what) => (many ? `${flow} ${what}` : what);
    if (quantity === "rate") {
      add("capacity", panel.capacity, { stroke: css("--edge"), fill: css("--fill"), width: 1, stepped: true });
      for (const flow of panel.others) add(flow.name, flow.receive, { stroke: css("--muted"), width: 1 });
    }
    if (quantity === "queue") {
      (panel.queues || []).forEach((queue, i) => {
        const fill = i ? undefined : css("--fill");
        add(queue.name, queue.bytes, { stroke: css(i ? "--ink" : "--soft"), fill, width: 1.2, dash: DASHES[i % DASHES.length], stepped: true });
      });
    }
    panel.flows.forEach((flow, i) => {
      const stroke = hue(column.flows[i].colour);
      if (quantity === "rate") {
        add(named(flow.name, "received"), flow.receive, { stroke, width: 2 });
        add(named(flow.name, "sent"), flow.sent, { stroke, width: 2 });
        if (!many) {
          add("encoders", flow.encoder, { stroke: css("--soft"), width: 1, dash: DASHES[2] });
          add("acknowledged", flow.acked, { stroke, width: 1, dash: DASHES[3] });
          add("goodput", flow.goodput, { stroke, width: 1, dash: DASHES[1] });
        }
        add(named(flow.name, "target"), flow.target, { stroke: many ? stroke : css("--ink"), width: 1, dash: [5, 4] });
      } else if (quantity === "delay") {
        add(named(flow.name, "mean"), flow.delay, { stroke, width: 2 });
        if (!many) add("largest", flow.delayMax, { stroke, width: 0.7 });
      } else if (quantity === "trip" || quantity === "pacer" || quantity === "frame") {
        add(many ? flow.name : "largest", flow[quantity], { stroke, width: 1.5, fill: quantity === "pacer" && !many ? stroke + "33" : undefined });
      } else if (quantity === "loss") {
        add(named(flow.name, "lost"), flow.loss, { stroke, width: 1.5, stepped: true, fill: many ? undefined : stroke + "33" });
      }
    });
    return out;
  }

  // Charts of one quantity share their scale, so that controllers can be compared by eye. Capacity far above
  // every flow would press them to the floor, so it may fill at most half of the height on its own.
  function scaleOf(quantity) {
    let flows = 0, capacity = 0, low = Infinity;
    for (const chart of charts) {
      if (chart.quantity !== quantity) continue;
      chart.lines.forEach((line) => {
        line.values.forEach((v, i) => {
          const t = chart.t[i];
          if (v === null || (zoom && (t < zoom[0] || t > zoom[1]))) return;
          if (line.label === "capacity") capacity = Math.max(capacity, v);
          else { flows = Math.max(flows, v); if (v > 0) low = Math.min(low, v); }
        });
      });
    }
    const least = { rate: 0.1, delay: 10, loss: 1, queue: 1, trip: 10, pacer: 1, frame: 10 }[quantity];
    const top = Math.max(flows, Math.min(capacity, flows * 2 || capacity), least) * 1.06;
    if (quantity !== "delay" || !logDelay) return [0, top];
    // whole decades: a logarithmic axis begun elsewhere would have its ticks at odd numbers
    const decade = (value, round) => 10 ** round(Math.log10(value));
    return [decade(Math.min(low, top / 2), Math.floor), decade(top, Math.ceil)];
  }

  function axes(label, unit) {
    const common = () => ({
      stroke: css("--soft"), font: "11px system-ui, sans-serif", labelFont: "11px system-ui, sans-serif",
      grid: { stroke: css("--grid"), width: 1 }, ticks: { stroke: css("--line"), width: 1, size: 4 },
    });
    return [
      { ...common(), size: 34, values: (u, ticks) => ticks.map((v) => `${v}${label}`) },
      { ...common(), size: 48, values: (u, ticks) => ticks.map((v) => (v === null ? "" : `${+v.toPrecision(3)}`)), label: unit, labelSize: 16, labelGap: 0 },
    ];
  }

  // Delay over decades, with 2 and 5 between them.
  function logAxes(x, what) {
    const ticks = [];
    for (let decade = 10 ** Math.floor(Math.log10(x[0])); decade <= x[x.length - 1]; decade *= 10) {
      for (const step of [1, 2, 5]) if (decade * step >= x[0] && decade * step <= x[x.length - 1]) ticks.push(decade * step);
    }
    const [across, up] = axes(" ms", what);
    return [{ ...across, splits: () => ticks, values: (u, some) => some.map((v) => `${+v.toPrecision(3)} ms`), filter: (u, some) => some }, up];
  }

  function timeChart(host, column, panel, quantity) {
    const spec = QUANTITIES[quantity];
    const shown = lines(column, panel, quantity);
    const t = Array.from({ length: panel.n }, (_, i) => +(panel.t0 + i * panel.dt).toFixed(3));
    const full = [panel.t0, panel.t0 + panel.n * panel.dt];
    const chart = { quantity, lines: shown, t, host, full };
    chart.make = () => {
      const log = quantity === "delay" && logDelay;
      chart.plot = new uPlot({
        width: host.clientWidth, height: spec.height, padding: [8, 18, 0, 0],
        scales: {
          x: { time: false, range: () => zoom || full },
          y: { distr: log ? 3 : 1, log: 10, range: () => scaleOf(quantity) },
        },
        axes: axes(" s", spec.unit),
        legend: { live: true },
        cursor: {
          drag: { x: true, y: false, setScale: false },
          sync: {
            key: "time", scales: ["x", null],
            filters: { pub: (type) => type === "mousemove" || type === "mouseleave", sub: () => true },
          },
          points: { size: 5 },
          bind: { dblclick: () => () => { setZoom(null); return null; } },
        },
        hooks: {
          drawClear: quantity !== "frame" ? [] : [(u) => {
            // where the picture stood still
            const { ctx, bbox } = u;
            ctx.save();
            ctx.fillStyle = css("--freeze");
            for (const flow of panel.flows) {
              for (const [from, to] of flow.freezes || []) {
                const a = Math.max(u.valToPos(from, "x", true), bbox.left), b = Math.min(u.valToPos(to, "x", true), bbox.left + bbox.width);
                if (b > a) ctx.fillRect(a, bbox.top, b - a, bbox.height);
              }
            }
            ctx.restore();
          }],
          setSelect: [(u) => {
            if (u.select.width < 3) return;
            const from = u.posToVal(u.select.left, "x"), to = u.posToVal(u.select.left + u.select.width, "x");
            u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            setZoom([from, to]);
          }],
        },
        series: [
          { label: "t", value: (u, v) => (v === null ? "–" : `${v.toFixed(1)} s`) },
          ...shown.map((line) => ({
            label: line.label, stroke: line.stroke, fill: line.fill, width: line.width, dash: line.dash,
            paths: line.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
            points: { show: false }, spanGaps: false,
            value: (u, v) => (v === null || v === undefined ? "–" : `${v.toFixed(spec.digits)} ${spec.unit}`),
          })),
        ],
      }, [t, ...shown.map((line) => (log ? line.values.map((v) => (v > 0 ? v : null)) : line.values))], host);
    };
    charts.push(chart);
    return shown.length > 0;
  }

  function setZoom(range) {
    zoom = range;
    document.getElementById("reset").disabled = zoom === null;
    document.documentElement.dataset.zoom = zoom ? zoom.map((s) => s.toFixed(3)).join(" ") : "";
    for (const chart of charts) {
      if (!chart.full) continue; // not over time
      const [min, max] = zoom || chart.full;
      chart.plot.setScale("x", { min, max });
    }
  }

  function build() {
    for (const chart of charts) if (chart.plot) chart.plot.destroy();
    charts.length = 0;
    const seed = document.getElementById("seed");
    for (const host of document.querySelectorAll("[data-chart]")) {
      const column = data.columns[+host.dataset.column];
      const panel = column.panels[seed ? Math.min(+seed.value, column.panels.length - 1) : 0];
      const some = timeChart(host, column, panel, host.dataset.chart);
      host.closest("figure").hidden = !some;
      if (!some) charts.pop();
      // no heading over nothing: a session's programs tell no round trip
      const section = host.closest("section");
      section.hidden = !section.querySelector("figure:not([hidden])");
    }
    const host = document.getElementById("cdf");
    if (host && data.cdf.lines.length) cdfChart(host);
    for (const chart of charts) chart.make();
  }

  function cdfChart(host) {
    const chart = { quantity: "cdf", lines: [], t: [], host };
    chart.make = () => {
      chart.plot = new uPlot({
        width: host.clientWidth, height: 320, padding: [8, 18, 0, 0],
        scales: { x: { time: false, distr: 3, log: 10, range: () => [data.cdf.x[0], data.cdf.x[data.cdf.x.length - 1]] }, y: { range: () => [0, 101] } },
        axes: logAxes(data.cdf.x, "% of packets"),
        hooks: {
          draw: [(u) => {
            // the 95th percentile of each, which the table and the scatter have
            const { ctx } = u, y = u.valToPos(95, "y", true);
            ctx.save();
            for (const line of data.cdf.lines) {
              ctx.beginPath();
              ctx.arc(u.valToPos(line.p95, "x", true), y, 4 * devicePixelRatio, 0, 2 * Math.PI);
              ctx.fillStyle = hue(line.colour);
              ctx.fill();
            }
            ctx.restore();
          }],
        },
        cursor: { drag: { x: true, y: false }, points: { size: 5 } },
        series: [
          { label: "delay", value: (u, v) => (v === null ? "–" : `${v.toFixed(0)} ms`) },
          ...data.cdf.lines.map((line) => ({
            label: line.label, stroke: hue(line.colour), width: 2, dash: line.dash.length ? line.dash : undefined, points: { show: false },
            value: (u, v) => (v === null || v === undefined ? "–" : `${v.toFixed(1)} %`),
          })),
        ],
      }, [data.cdf.x, ...data.cdf.lines.map((line) => line.y.map((v) => v / 10))], host);
    };
    charts.push(chart);
  }

  function paint() {
    for (const node of document.querySelectorAll("[data-hue]")) {
      const colour = hue(node.dataset.hue.split(" "));
      if (node.namespaceURI.endsWith("svg")) node.style[node.classList.contains("line") ? "stroke" : "fill"] = colour;
      else node.style.color = colour;
    }
  }

  const seed = document.getElementById("seed");
  if (seed) seed.addEventListener("change", build);
  const log = document.getElementById("log");
  if (log) {
    log.checked = logDelay;
    log.addEventListener("change", () => { logDelay = log.checked; build(); });
  }
  const reset = document.getElementById("reset");
  if (reset) reset.addEventListener("click", () => setZoom(null));
  dark.addEventListener("change", () => { paint(); build(); });
  // paper is narrower than a screen, and light: what is on it is drawn for it
  const paper = (on) => {
    printing = on;
    document.documentElement.classList.toggle("printing", on);
    paint();
    build();
  };
  addEventListener("beforeprint", () => paper(true));
  addEventListener("afterprint", () => paper(false));
  let pending = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(() => {
      for (const chart of charts) chart.plot.setSize({ width: chart.host.clientWidth, height: chart.plot.height });
    });
  });
  paint();
  build();
  document.documentElement.dataset.charts = String(charts.length);
})();
