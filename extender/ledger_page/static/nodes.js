// The map of nodes on a canvas. The cells are drawn once for each change of the data, the size or
// the theme; a move of the pointer only copies that picture and outlines one cell.
(() => {
  "use strict";

  const map = document.getElementById("map");
  const canvas = document.getElementById("nodes");
  const label = document.getElementById("node-label");
  const context = canvas.getContext("2d");
  const picture = document.createElement("canvas");
  const STEPS = 20;
  let nodes = [];
  let columns = 1;
  let cell = 12;
  let scale = 1;
  let selected = -1;
  let scheduled = false;
  let outline = "";

  function colour(name) {
    // A computed colour resolves light-dark().
    canvas.style.color = `var(${name})`;
    const found = getComputedStyle(canvas).color;
    canvas.style.removeProperty("color");
    return found;
  }

  function channels(text) {
    return text.match(/[\d.]+/g).slice(0, 3).map(Number);
  }

  function mixed(from, to, part) {
    const [a, b] = [channels(from), channels(to)];
    return `rgb(${a.map((each, place) => Math.round(each + (b[place] - each) * part)).join(" ")})`;
  }

  function layOut() {
    const width = map.clientWidth;
    cell = Math.max(7, Math.min(24, Math.floor(Math.sqrt((width * width * 0.55) / Math.max(1, nodes.length)))));
    columns = Math.max(1, Math.floor(width / cell));
    scale = window.devicePixelRatio || 1;
    const height = Math.ceil(nodes.length / columns) * cell;
    for (const each of [canvas, picture]) {
      each.width = Math.round(width * scale);
      each.height = Math.round(height * scale);
    }
  }

  function drawPicture() {
    layOut();
    const [back, strong, mark] = [colour("--line"), colour("--c0"), colour("--victim-line")];
    const shades = Array.from({ length: STEPS + 1 }, (_, step) => mixed(back, strong, step / STEPS));
    const most = Math.max(1, ...nodes.map((each) => each[2]));
    const inner = cell - 1;
    const brush = picture.getContext("2d");
    brush.setTransform(scale, 0, 0, scale, 0, 0);
    nodes.forEach(([, percent, preemptions], place) => {
      const x = (place % columns) * cell;
      const y = Math.floor(place / columns) * cell;
      brush.fillStyle = shades[Math.round((Math.min(100, Math.max(0, percent)) / 100) * STEPS)];
      brush.fillRect(x, y, inner, inner);
      if (preemptions) {
        const height = Math.max(2, Math.round((inner * 0.7 * preemptions) / most));
        brush.fillStyle = mark;
        brush.fillRect(x, y + inner - height, inner, height);
      }
    });
    schedule();
  }

  function draw() {
    scheduled = false;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    if (!picture.width || !picture.height) return; // the page is about to be left
    context.drawImage(picture, 0, 0);
    if (selected < 0) return;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.strokeStyle = outline;
    context.lineWidth = 2;
    context.strokeRect((selected % columns) * cell, Math.floor(selected / columns) * cell, cell - 1, cell - 1);
  }

  function schedule() {
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(draw);
  }

  function select(place) {
    if (place === selected || place < 0 || place >= nodes.length) return;
    selected = place;
    const [name, percent, preemptions] = nodes[place];
    label.textContent = `${name}: ${percent}% full, ${preemptions} preemption${preemptions === 1 ? "" : "s"}`;
    schedule();
  }

  function placeAt(event) {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / cell);
    return column < columns ? Math.floor((event.clientY - box.top) / cell) * columns + column : -1;
  }

  function open() {
    if (selected < 0) return;
    const url = new URL(map.dataset.list, location.href);
    url.searchParams.set("node", nodes[selected][0]);
    location.href = url;
  }

  function refresh() {
    if (!nodes.length) return;
    outline = colour("--text");
    drawPicture();
  }

  canvas.addEventListener("pointermove", (event) => select(placeAt(event)));
  canvas.addEventListener("click", (event) => {
    select(placeAt(event));
    open();
  });
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
    if (event.key in steps) select(selected < 0 ? 0 : selected + steps[event.key]);
    else if (event.key === "Home") select(0);
    else if (event.key === "End") select(nodes.length - 1);
    else if (event.key === "Enter") open();
    else return;
    event.preventDefault();
  });
  document.addEventListener("themechange", refresh);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refresh);

  async function load() {
    const url = new URL(location.href);
    url.searchParams.set("format", "json");
    const response = await fetch(url);
    if (!response.ok) return;
    nodes = (await response.json()).nodes;
    map.hidden = false;
    refresh();
    // Observes once at first, and then each change of the width.
    let width = map.clientWidth;
    new ResizeObserver(() => {
      if (map.clientWidth !== width) {
        width = map.clientWidth;
        refresh();
      }
    }).observe(map);
  }

  load();
})();
