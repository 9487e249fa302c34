// Zoom and hover for the figures of a report. The page is complete without it: each figure is an SVG
// that this hides and draws again with uPlot. Texts reach the page as text alone.
"use strict";
(() => {
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const shown = [];
  const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3], [4, 2], [1, 2], [12, 3], [9, 2, 2, 2, 2, 2]];

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (index) => css("--c" + (index % 8));
  const three = (value) => String(Number(value.toPrecision(3)));
  const minus = (digits) => digits.replace("-", "\u2212");
  const time = (ns) => {
    const size = Math.abs(ns);
    if (size < 1e3) return minus(String(Math.round(ns))) + " ns";
    const [unit, name] = size < 1e6 ? [1e3, "µs"] : size < 1e9 ? [1e6, "ms"] : [1e9, "s"];
    return (ns < 0 ? "\u2212" : "") + three(size / unit) + " " + name;
  };
  const round = (value) => String(Number(value.toPrecision(6)));
  const tick = (ns) => {
    const size = Math.abs(ns);
    if (size === 0) return "0";
    const [unit, name] = size < 1e3 ? [1, "ns"] : size < 1e6 ? [1e3, "µs"] : size < 1e9 ? [1e6, "ms"] : [1e9, "s"];
    return minus(round(ns / unit)) + " " + name;
  };
  const share = (part) => {
    const percent = part * 100;
    return (percent >= 0.99e-4 || percent === 0 ? String(Number(percent.toPrecision(3))) : Number(percent.toPrecision(2)).toExponential()) + "%";
  };
  const count = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
  const isDecade = (value) => Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-6;

  function element(name, parent, text) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  function axis(values, label, extra) {
    const soft = () => css("--soft");
    const whole = (u, splits) => {
      const wide = u.scales.x.distr === 3 && splits.length > 1 && splits[splits.length - 1] / splits[0] > 30;
      return splits.map((v) => (wide && v != null && !isDecade(v) ? null : v));
    };
    const grid = { stroke: () => css("--grid"), width: 1, filter: whole };
    return { stroke: soft, grid, ticks: grid, values, label, labelFont: "12px system-ui", font: "12px system-ui", labelSize: 20, ...extra };
  }

  // Buttons and the plot itself; `home` is the range that "reset" returns to.
  function live(plot, options, data, height, home) {
    const figure = document.querySelector(`figure[data-plot="${plot.id}"]`);
    const box = document.createElement("div");
    box.className = "live";
    figure.prepend(box);
    figure.classList.add("is-live");
    const buttons = element("div", box);
    const place = element("div", box);
    const width = () => Math.max(280, figure.clientWidth);
    options.width = width();
    options.height = height;
    options.legend = { show: false };
    options.cursor = { drag: { x: true, y: false }, focus: { prox: 24 }, ...options.cursor };
    options.hooks = { ...options.hooks, setScale: [(u, key) => {
      if (key === "x") figure.dataset.range = u.scales.x.min + " " + u.scales.x.max;
    }] };
    const u = new uPlot(options, data, place);
    const log = options.scales.x.distr === 3;
    const [to, from] = log ? [Math.log10, (v) => 10 ** v] : [(v) => v, (v) => v];
    const go = (min, max) => u.setScale("x", {
      min: Math.max(min, home[0]), max: Math.min(max, home[1]),
    });
    const zoom = (factor, move) => {
      const [low, high] = [to(u.scales.x.min), to(u.scales.x.max)];
      const half = (high - low) / 2 * factor;
      const middle = (low + high) / 2 + move * (high - low);
      go(from(middle - half), from(middle + half));
    };
    const button = (label, title, act) => {
      const made = element("button", buttons, label);
      made.type = "button";
      made.title = title;
      made.addEventListener("click", act);
    };
    button("Zoom in", "or drag across the picture", () => zoom(0.4, 0));
    button("Zoom out", "", () => zoom(2.5, 0));
    button("\u2190", "earlier or shorter", () => zoom(1, -0.3));
    button("\u2192", "later or longer", () => zoom(1, 0.3));
    button("Reset", "or double-click", () => go(...home));
    let before = width();
    new ResizeObserver(() => {
      if (width() === before) return;
      before = width();
      u.setSize({ width: before, height });
    }).observe(figure);
    shown.push(u);
    return { box, go };
  }

  // Keys of the curves, with their values where the pointer is.
  function keys(box, labels) {
    const readout = element("p", box, "Point at the picture to read it; drag across it to zoom in.");
    readout.className = "readout";
    const list = element("ul", box);
    list.className = "keys";
    const values = labels.map((label, index) => {
      const item = element("li", list);
      item.innerHTML = `<svg><path d="M0 5H40" class="s${index % 8} d${index % 8}"/></svg>`;
      return element("b", element("span", item, label + " "));
    });
    return (where, texts) => {
      readout.textContent = where;
      values.forEach((value, index) => { value.textContent = texts[index] ?? ""; });
    };
  }

  // The share at or above x is that of the next value of the sample: steps hold to the left.
  function at(curve, column, x) {
    let [low, high] = [0, curve.x.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (curve.x[middle] < x) low = middle + 1; else high = middle;
    }
    return low === curve.x.length || x < curve.x[0] ? null : column[low];
  }

  function ccdf(plot) {
    const curves = plot.curves.filter((curve) => curve.x.length > 0);
    if (curves.length === 0) return;
    const x = [...new Set(curves.flatMap((curve) => curve.x.map((v) => Math.max(v, 1))))].sort((a, b) => a - b);
    const decades = (low, high) => {
      const [first, last] = [Math.floor(Math.log10(low) + 1e-9), Math.ceil(Math.log10(high) - 1e-9)];
      return [10 ** (first === last ? first - 1 : first), 10 ** last];
    };
    const least = Math.min(...curves.map((curve) => curve.y[curve.y.length - 1]));
    const rangeX = decades(x[0], x[x.length - 1]);
    const rangeY = decades(Math.min(least, 0.1), 1);
    const stepped = uPlot.paths.stepped({ align: -1 });
    const series = [{}];
    const data = [x];
    const bands = [];
    curves.forEach((curve, index) => {
      const lines = (stroke, keep) => {
        series.push({ stroke, width: 2, dash: DASHES[index % 8], paths: stepped, points: { show: false } });
        data.push(x.map((v) => { const y = at(curve, curve.y, v); return y != null && keep(y) ? y : null; }));
      };
      // What may not be trusted is grey.
      lines(() => colour(index), (y) => curve.faint == null || y >= curve.faint * (1 - 1e-3));
      if (curve.faint != null) lines(() => css("--rest"), (y) => y < curve.faint * (1 + 1e-3));
      if (curve.low.length > 0) {
        for (const column of [curve.high, curve.low]) {
          series.push({ stroke: "transparent", width: 0, paths: stepped, points: { show: false } });
          data.push(x.map((v) => { const y = at(curve, column, v); return y == null ? null : Math.max(y, rangeY[0]); }));
        }
        bands.push({ series: [series.length - 2, series.length - 1], fill: () => colour(index) + "2e" });
      }
    });
    const resolution = Math.max(...curves.map((curve) => curve.resolution));
    const extras = (u) => {
      const { ctx, bbox } = u;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      curves.forEach((curve, index) => {
        ctx.strokeStyle = colour(index);
        ctx.lineWidth = 1.6 * devicePixelRatio;
        ctx.setLineDash([]);
        for (const [value, low, high] of curve.whiskers) {
          const px = u.valToPos(value, "x", true) + 3 * devicePixelRatio * (index - (curves.length - 1) / 2);
          ctx.beginPath();
          ctx.moveTo(px, u.valToPos(Math.max(low, rangeY[0]), "y", true));
          ctx.lineTo(px, u.valToPos(Math.min(high, 1), "y", true));
          ctx.stroke();
        }
      });
      if (resolution > u.scales.x.min) {
        const end = u.valToPos(resolution, "x", true);
        ctx.fillStyle = css("--ran");
        ctx.globalAlpha = 0.6;
        ctx.fillRect(bbox.left, bbox.top, end - bbox.left, bbox.height);
        ctx.globalAlpha = 1;
        ctx.fillStyle = css("--soft");
        ctx.font = `${12 * devicePixelRatio}px system-ui`;
        ctx.fillText("below the resolution", bbox.left + 6 * devicePixelRatio, bbox.top + bbox.height - 8 * devicePixelRatio);
      }
      ctx.restore();
    };
    const labels = (label) => (u, splits) => {
      const wide = Math.log10(splits[splits.length - 1] / splits[0]) > 1.5;
      return splits.map((v) => (v == null || (wide && !isDecade(v)) ? "" : label(v)));
    };
    let tell = () => {};
    const read = (u) => {
      const { idx } = u.cursor;
      if (idx == null) return;
      tell(`At ${time(x[idx])}:`, curves.map((curve) => {
        const y = at(curve, curve.y, x[idx]);
        if (y == null) return "";
        return share(y) + (curve.low.length > 0 ? ` (${share(at(curve, curve.low, x[idx]))}–${share(at(curve, curve.high, x[idx]))})` : "");
      }));
    };
    const { box } = live(plot, {
      scales: {
        x: { time: false, distr: 3, range: (u, min, max) => (min == null || min === x[0] && max === x[x.length - 1] ? rangeX : [min, max]) },
        y: { distr: 3, range: rangeY },
      },
      axes: [axis(labels(tick), plot.of, { space: 40 }), axis(labels(share), undefined, { size: 70, space: 20 })],
      series, bands, hooks: { draw: [extras], setCursor: [read] },
    }, data, 360, rangeX);
    tell = keys(box, curves.map((curve) => `${curve.label}: n = ${count(curve.n)}, resolution ${curve.step}`));
  }

  function blocks(plot) {
    const lines = plot.lines.filter((line) => line.y.some((v) => v != null));
    if (lines.length === 0) return;
    const x = Array.from({ length: Math.max(...lines.map((line) => line.y.length)) }, (_, i) => i + 1);
    const series = [{}, ...lines.map((line, index) => ({
      stroke: () => colour(index), width: 2, dash: DASHES[index % 8], points: { size: 7, fill: () => colour(index) },
    }))];
    let tell = () => {};
    const read = (u) => {
      const { idx } = u.cursor;
      if (idx != null) tell(`Block ${x[idx]}:`, lines.map((line) => (line.y[idx] == null ? "too few samples" : time(line.y[idx]))));
    };
    const all = lines.flatMap((line) => line.y).filter((v) => v != null);
    const range = [10 ** Math.floor(Math.log10(Math.max(Math.min(...all), 1))), 10 ** Math.ceil(Math.log10(Math.max(...all, 10)))];
    const { box } = live(plot, {
      scales: { x: { time: false, range: (u, min, max) => (min == null || max - min > x.length - 1.01 ? [0.5, x.length + 0.5] : [min, max]) }, y: { distr: 3, range } },
      axes: [axis((u, splits) => splits.map((v) => (Number.isInteger(v) ? v : "")), "block of time"),
        axis((u, splits) => splits.map((v) => (v != null && isDecade(v) ? tick(v) : "")), undefined, { size: 70, space: 20 })],
      series, hooks: { setCursor: [read] },
    }, [x, ...lines.map((line) => x.map((_, i) => line.y[i] ?? null))], 260, [0.5, x.length + 0.5]);
    tell = keys(box, lines.map((line) => line.label));
  }

  // Lost share of each bin by cause, from steps and millionths.
  function unpack(cells) {
    const bins = [];
    let bin = 0;
    for (let i = 0; i < cells.length; i += 2) {
      bin += cells[i];
      bins.push([bin, cells[i + 1] / 1e6]);
    }
    return bins;
  }

  function timeline(plot) {
    const lanes = plot.lanes.map((lane) => ({
      ...lane, bins: lane.cells.map(unpack),
      single: Array.from({ length: lane.gaps.length / 3 }, (_, i) => lane.gaps.slice(3 * i, 3 * i + 3)),
    }));
    if (lanes.length === 0) return;
    const span = plot.length;
    for (const lane of lanes) lane.rest = remaining(lane);
    const fill = (slot) => (slot == null || slot === plot.colours ? css("--rest") : slot > plot.colours ? css("--unnamed") : colour(slot));
    const name = (slot) => (slot < plot.colours ? `[${slot + 1}] ` : "") + plot.names[slot];
    const each = lanes.length > 5 ? 80 : 132;

    // What bins hold beside the gaps that are known one by one.
    function remaining(lane) {
      const rest = lane.bins.map((cells) => new Map(cells));
      for (const [start, length, slot] of lane.single) {
        for (let bin = Math.floor(start / plot.bin); bin * plot.bin < start + length; bin++) {
          const overlap = Math.min(start + length, (bin + 1) * plot.bin) - Math.max(start, bin * plot.bin);
          rest[slot].set(bin, (rest[slot].get(bin) ?? 0) - overlap / plot.bin);
        }
      }
      return rest.map((cells) => [...cells].filter(([, lost]) => lost > 2e-6));
    }

    // The share of each pixel that was lost, by cause, and the gaps that are wider than one.
    function columns(lane, low, high, pixels) {
      const step = (high - low) / pixels;
      const sums = new Map();
      const put = (from, to, slot, lost) => {
        const last = Math.min(pixels, Math.ceil((to - low) / step));
        for (let i = Math.max(0, Math.floor((from - low) / step)); i < last; i++) {
          const left = low + i * step;
          const part = (Math.min(to, left + step) - Math.max(from, left)) / step * lost;
          if (!sums.has(i)) sums.set(i, new Float64Array(lane.bins.length));
          sums.get(i)[slot] += Math.max(part, 0);
        }
      };
      lane.rest.forEach((cells, slot) => {
        for (const [bin, lost] of cells) put(bin * plot.bin, (bin + 1) * plot.bin, slot, lost);
      });
      const wide = [];
      for (const gap of lane.single) {
        const [start, length, slot] = gap;
        if (start + length < low || start > high) continue;
        if (length >= step) wide.push(gap); else put(start, start + length, slot, 1);
      }
      return { sums, wide };
    }

    // What to draw of one lane between two times: stacks of at least two pixels.
    function stacks(lane, low, high, pixels) {
      const bins = Math.max((high - low) / plot.bin, 1);
      const group = Math.max(1, Math.ceil(2 * bins / pixels));
      const sums = new Map();
      lane.bins.forEach((cells, slot) => {
        for (const [bin, lost] of cells) {
          if ((bin + 1) * plot.bin < low || bin * plot.bin > high) continue;
          const key = Math.floor(bin / group);
          const stack = sums.get(key) ?? new Float64Array(lane.bins.length);
          stack[slot] += lost / group;
          sums.set(key, stack);
        }
      });
      return { width: group * plot.bin, sums };
    }

    function inside(ctx, text, left, right, middle) {
      left = Math.max(left, 0);
      if (right - left < ctx.measureText(text).width + 8) return;
      // On whatever colour: its edge is the ground.
      ctx.lineJoin = "round";
      ctx.lineWidth = 3 * devicePixelRatio;
      ctx.strokeStyle = css("--ground");
      ctx.strokeText(text, left + 4, middle);
      ctx.fillStyle = css("--ink");
      ctx.fillText(text, left + 4, middle);
    }

    function strip(u, ctx, lane, index, low, high, top, height) {
      const ratio = devicePixelRatio;
      const px = (t) => u.valToPos(t, "x", true);
      const edge = (t) => Math.min(Math.max(px(t), u.bbox.left), u.bbox.left + u.bbox.width);
      ctx.fillStyle = css("--ran");
      ctx.fillRect(u.bbox.left, top, u.bbox.width, height);
      ctx.textBaseline = "middle";
      const pixels = Math.max(1, Math.round(u.bbox.width / ratio));
      const { sums, wide } = columns(lane, low, high, pixels);
      for (const [pixel, lost] of sums) {
        const part = Math.min(1, lost.reduce((a, b) => a + b, 0)) * height;
        ctx.fillStyle = fill(lost.indexOf(Math.max(...lost)));
        ctx.fillRect(u.bbox.left + pixel * u.bbox.width / pixels, top + height - part, u.bbox.width / pixels, part);
      }
      for (const [start, length, slot] of wide) {
        const [left, right] = [edge(start), edge(start + length)];
        ctx.fillStyle = fill(slot);
        ctx.fillRect(left, top, Math.max(right - left, ratio), height);
        inside(ctx, name(slot), left, right, top + height / 2);
      }
      for (const gap of plot.worst) {
        if (gap.lane !== index || gap.start + gap.length < low || gap.start > high) continue;
        if (px(gap.start + gap.length) - px(gap.start) < 60 * ratio) continue;
        for (const [from, length, slot, label] of gap.parts) {
          const [left, right] = [edge(gap.start + from), edge(gap.start + from + length)];
          ctx.fillStyle = fill(slot);
          ctx.fillRect(left, top, Math.max(right - left, ratio / 2), height);
          inside(ctx, label, left, right, top + height / 2);
        }
        ctx.fillStyle = css("--ink");
        for (const [when, , elsewhere] of gap.events) {
          const x = px(gap.start + when);
          if (x >= u.bbox.left && x <= u.bbox.left + u.bbox.width) {
            ctx.fillRect(x, elsewhere ? top + height : top - 8 * ratio, ratio, 8 * ratio);
          }
        }
      }
    }

    function draw(u) {
      const { ctx, bbox } = u;
      const ratio = devicePixelRatio;
      const [low, high] = [u.scales.x.min, u.scales.x.max];
      const height = bbox.height / lanes.length;
      const band = Math.min(26 * ratio, height * 0.35);
      const tall = height - band - 38 * ratio;
      const all = lanes.map((lane) => stacks(lane, low, high, bbox.width / ratio));
      const sum = (stack) => stack.reduce((a, b) => a + b, 0);
      const full = Math.max(0, ...all.flatMap(({ sums }) => [...sums.values()].map(sum)));
      ctx.save();
      ctx.font = `${12 * ratio}px system-ui`;
      ctx.textAlign = "left";
      lanes.forEach((lane, index) => {
        const top = bbox.top + index * height + 22 * ratio;
        const base = top + tall;
        ctx.save();
        ctx.beginPath();
        ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
        ctx.clip();
        for (const [key, stack] of all[index].sums) {
          const left = u.valToPos(key * all[index].width, "x", true);
          const right = u.valToPos((key + 1) * all[index].width, "x", true);
          let y = base;
          stack.forEach((lost, slot) => {
            if (lost <= 0) return;
            const part = lost / full * tall;
            ctx.fillStyle = fill(slot);
            ctx.fillRect(left, y - part, Math.max(right - left, ratio), part);
            y -= part;
          });
        }
        ctx.font = `${12 * ratio}px system-ui`;
        strip(u, ctx, lane, index, low, high, base + 9 * ratio, band);
        ctx.restore();
        ctx.fillStyle = css("--ink");
        ctx.textBaseline = "middle";
        ctx.fillText(lane.label, bbox.left, top - 11 * ratio);
        ctx.fillStyle = css("--soft");
        ctx.textAlign = "right";
        if (full > 0) ctx.fillText(share(Number(full.toPrecision(2))), bbox.left - 8 * ratio, top + 5 * ratio);
        ctx.textAlign = "left";
      });
      ctx.restore();
    }

    const x = [0, span];
    const { box, go } = live(plot, {
      scales: { x: { time: false, range: (u, min, max) => (min == null ? x : [min, Math.max(max, min + 100)]) }, y: { range: [0, 1] } },
      axes: [axis((u, splits) => {
        // Far into a zoom only what differs between ticks is worth reading.
        const step = splits.length > 1 ? splits[1] - splits[0] : span;
        const fine = step < 1e-5 * splits[0];
        const origin = fine ? splits[0] : 0;
        return splits.map((v, i) => (fine && i === 0 ? (v / 1e9).toFixed(6) + " s" : (fine ? "+" : "") + tick(v - origin)));
      }, plot.of, { space: 90 }), { show: false, size: 70 }],
      padding: [0, 28, 0, 70],
      series: [{}, { show: false }],
      cursor: { y: false },
      hooks: { draw: [draw], setCursor: [(u) => read(u)] },
    }, [x, [null, null]], each * lanes.length + 54, x);

    const readout = element("p", box, "Drag across a stretch to zoom in, to one stall and its events; double-click to return.");
    readout.className = "readout";
    const legend = element("ul", box);
    legend.className = "keys short";
    plot.names.forEach((_, slot) => {
      if (!lanes.some((lane) => lane.bins[slot]?.length)) return;
      const item = element("li", legend);
      const key = element("span", item);
      key.className = "swatch";
      key.dataset.slot = slot;
      element("span", item, name(slot));
    });
    const paint = () => legend.querySelectorAll("[data-slot]").forEach((key) => { key.style.background = fill(Number(key.dataset.slot)); });
    paint();
    dark.addEventListener("change", paint);

    function read(u) {
      const { left, top } = u.cursor;
      if (left == null || left < 0) return;
      const now = u.posToVal(left, "x");
      const lane = lanes[Math.min(lanes.length - 1, Math.floor(top / (u.bbox.height / devicePixelRatio) * lanes.length))];
      if (!lane) return;
      const reach = (u.scales.x.max - u.scales.x.min) / u.bbox.width * 2;
      const words = [`${lane.label}, ${(now / 1e9).toFixed(6)}s`];
      const gap = lane.single.filter(([start, length]) => now >= start - reach && now <= start + length + reach).sort((a, b) => b[1] - a[1])[0];
      if (gap) words.push(`stall of ${time(gap[1])}, ${name(gap[2])}`);
      for (const worst of plot.worst) {
        if (lanes[worst.lane] !== lane || now < worst.start - reach || now > worst.start + worst.length + reach) continue;
        const part = worst.parts.find(([from, length]) => now - worst.start >= from && now - worst.start < from + length);
        if (part) words.push(`in it ${part[3]} for ${time(part[1])}`);
        const events = worst.events.filter(([when]) => Math.abs(worst.start + when - now) <= 2 * reach);
        words.push(...events.slice(0, 3).map(([when, label]) => `${time(when)}: ${label}`));
      }
      const bin = Math.floor(now / plot.bin);
      const lost = lane.bins.map((cells, slot) => [slot, cells.find(([b]) => b === bin)?.[1] ?? 0]).filter(([, part]) => part > 0);
      if (lost.length > 0) {
        lost.sort((a, b) => b[1] - a[1]);
        words.push(`lost in these ${time(plot.bin)}: ` + lost.slice(0, 3).map(([slot, part]) => `${share(part)} ${name(slot)}`).join(", "));
      }
      readout.textContent = words.join("; ");
    }

    for (const gap of plot.worst) {
      const details = document.querySelector(`details[data-gap="${gap.index}"]`);
      if (!details) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "Show on the timeline";
      button.addEventListener("click", () => {
        go(gap.start - gap.length * 0.1, gap.start + gap.length * 1.1);
        box.scrollIntoView({ block: "center" });
      });
      details.querySelector("summary").after(button);
    }
  }

  const draw = { ccdf, blocks, timeline };
  for (const plot of plots) draw[plot.kind](plot);
  dark.addEventListener("change", () => shown.forEach((u) => u.redraw(false, true)));
  document.documentElement.dataset.drawn = Math.round(performance.now());
})();
