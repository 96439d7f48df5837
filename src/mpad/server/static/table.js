// A table of any number of rows: only those in sight are drawn.

import { make } from "./dom.js";

const HEIGHT = 36, SPARE = 8;

export class Table {
  constructor(place, columns, on) {
    Object.assign(this, { columns, on, rows: [], sorted: { column: null, down: true }, at: 0 });
    this.head = make("div", { class: "cells head", role: "row" });
    this.body = make("div", { class: "body", role: "rowgroup", tabindex: 0, "aria-label": "scored documents: arrows move, Enter explains" });
    this.spacer = make("div", { class: "spacer" });
    this.body.append(this.spacer);
    this.body.onscroll = () => this.draw();
    this.body.onkeydown = (event) => this.keys(event);
    place.replaceChildren(this.head, this.body);
    this.drawHead();
  }

  drawHead() {
    this.head.replaceChildren(...this.columns.map((column) => {
      const { column: by, down } = this.sorted, now = by === column.name;
      return make("button", { type: "button", class: column.class, role: "columnheader", "aria-sort": now ? (down ? "descending" : "ascending") : "none",
        onclick: () => this.sortBy(column) }, `${column.name}${now ? (down ? " ↓" : " ↑") : ""}`);
    }));
  }

  sortBy(column) {
    const { sorted } = this;
    this.sorted = { column: column.name, down: sorted.column === column.name ? !sorted.down : true };
    this.drawHead();
    this.show(this.rows);
  }

  show(rows) {
    const column = this.columns.find((one) => one.name === this.sorted.column);
    this.rows = [...rows];
    if (column) {
      const sign = this.sorted.down ? -1 : 1;
      this.rows.sort((a, b) => { const [x, y] = [column.value(a), column.value(b)]; return sign * (x < y ? -1 : x > y ? 1 : 0); });
    }
    this.at = Math.min(this.at, Math.max(this.rows.length - 1, 0));
    this.spacer.style.height = `${this.rows.length * HEIGHT}px`;
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.body.scrollTop / HEIGHT) - SPARE);
    const last = Math.min(this.rows.length, first + Math.ceil(this.body.clientHeight / HEIGHT) + 2 * SPARE);
    const lines = [];
    for (let k = first; k < last; k += 1) {
      const line = make("div", { class: `cells line${k === this.at ? " at" : ""}`, role: "row", "data-row": k },
        ...this.columns.map((column) => make("span", { class: column.class, role: "cell" }, column.show(this.rows[k]))));
      line.style.top = `${k * HEIGHT}px`;
      line.onclick = () => this.choose(k);
      lines.push(line);
    }
    this.spacer.replaceChildren(...lines);
  }

  choose(k) {
    this.at = k;
    this.draw();
    this.on(this.rows[k]);
  }

  keys(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -this.rows.length, End: this.rows.length }[event.key];
    if (event.key === "Enter" && this.rows.length) return this.choose(this.at);
    if (!step) return undefined;
    event.preventDefault();
    this.at = Math.min(Math.max(this.at + step, 0), Math.max(this.rows.length - 1, 0));
    const top = this.at * HEIGHT, { scrollTop, clientHeight } = this.body;
    if (top < scrollTop) this.body.scrollTop = top;
    else if (top + HEIGHT > scrollTop + clientHeight) this.body.scrollTop = top + HEIGHT - clientHeight;
    return this.draw();
  }
}
