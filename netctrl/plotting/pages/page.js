"use strict";
// Shows a figure's values at the point nearest to the pointer, a finger or, with the arrow keys, a ring.
for (const part of document.querySelectorAll(".hover")) {
  const { points: single, x, y, kinds, cells, start } = JSON.parse(part.querySelector("script").textContent);
  const columns = single ? 1 : x.length;
  const cell = (i, j) => [kinds[cells[i * columns + j][0]], cells[i * columns + j][1]].filter(Boolean).join("\n");
  const points = single ?? y.flatMap(([v, row], i) => x.map(([u, column], j) => [u, v, `${column}\n${row}\n${cell(i, j)}`]));
  const svg = part.querySelector("svg");
  const output = part.querySelector("output");
  const ring = svg.appendChild(document.createElementNS(svg.namespaceURI, "circle"));
  let at = start;

  const hide = () => { output.textContent = ""; ring.removeAttribute("r"); };
  const show = (index) => {
    at = index;
    const [u, v] = points[at];
    const here = single ? points.filter(([a, b]) => Math.hypot(a - u, b - v) < 3) : [points[at]];
    const { width, height } = svg.viewBox.baseVal;
    for (const [name, value] of Object.entries({ class: "ring", cx: u, cy: v, r: 6 })) ring.setAttribute(name, value);
    output.textContent = here.map((each) => each[2]).join("\n\n");
    output.style.left = `${100 * u / width}%`;
    output.style.top = `${100 * v / height}%`;
    output.classList.toggle("left", 2 * u > width);
  };
  const under = (event) => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const away = points.map(([u, v]) => Math.hypot(u - place.x, v - place.y));
    const nearest = away.reduce((best, each, index) => (each < away[best] ? index : best), 0);
    if (away[nearest] < 40) show(nearest); else hide();
  };
  svg.addEventListener("pointermove", under);
  svg.addEventListener("pointerdown", under);
  svg.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hide(); });
  part.addEventListener("focus", () => { if (part.matches(":focus-visible")) show(at); });
  part.addEventListener("blur", hide);
  part.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: columns, ArrowDown: -columns }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = at + step;
    const stays = Math.abs(step) === 1 && columns > 1 && Math.floor(next / columns) !== Math.floor(at / columns);
    if (points[next] && !stays) show(next);
  });
}
