// What a file of scored documents comes to: classes, how sure, how right, what is odd; each a filter of the table below.

import { classColour, make, percent, shortened } from "./dom.js";
import { f1, same, tally } from "./labels.js";

const BINS = 20;
export const STRANGE = 0.3; // share of unknown words
export const binOf = (p) => Math.min(Math.floor(p * BINS), BINS - 1);

const box = (title, ...children) => make("section", { class: "box" }, make("h3", {}, title), ...children);

export function overview(space) {
  const { documents, scoredBy } = space;
  const count = new Map(scoredBy.classes.map((name) => [name, 0]));
  for (const one of documents) for (const name of one.given) count.set(name, (count.get(name) ?? 0) + 1);
  const most = Math.max(...count.values(), 1);
  const classes = make("div", { class: "bars" });
  for (const [name, number] of [...count].sort((a, b) => b[1] - a[1])) {
    const bar = make("i", { class: "fill" });
    bar.style.width = `${(100 * number) / most}%`;
    bar.style.background = classColour(Math.max(scoredBy.classes.indexOf(name), 0));
    classes.append(make("button", { type: "button", class: "name", "aria-pressed": String(space.filter.predicted === name), onclick: () => space.toggle({ predicted: name }) }, name),
      make("div", { class: "track" }, bar), make("span", { class: "number" }, number.toLocaleString("en")));
  }
  return [box("Classes", make("div", { class: "scroll" }, classes)), make("div", { class: "stack" }, ...confidence(space), ...remarks(space)), ...judged(space)];
}

function confidence(space) {
  const sure = space.documents.filter((one) => one.sure !== null);
  if (!sure.length) return [];
  const counts = Array(BINS).fill(0);
  for (const one of sure) counts[binOf(one.sure)] += 1;
  const most = Math.max(...counts), bars = make("div", { class: "histogram" });
  counts.forEach((number, bin) => {
    const bar = make("i");
    bar.style.height = `${number ? Math.max((100 * number) / most, 2) : 0}%`;
    bars.append(make("button", { type: "button", "aria-pressed": String(space.filter.bin === bin), title: `${5 * bin} to ${5 * bin + 5} % sure: ${number}`,
      "aria-label": `${5 * bin} to ${5 * bin + 5} percent sure: ${number} documents`, onclick: () => space.toggle({ bin }) }, bar));
  });
  return [box("How sure", bars, make("div", { class: "axis" }, make("span", {}, "0 %"), make("span", {}, "100 %")))];
}

function judged(space) {
  if (!space.labelled) return [];
  const known = space.documents.filter((one) => one.scored), right = known.filter((one) => same(one.truth, one.given)).length;
  const p = right / Math.max(known.length, 1), [low, high] = wilson(p, Math.max(known.length, 1));
  const wrong = make("button", { type: "button", "aria-pressed": String(Boolean(space.filter.wrong)), onclick: () => space.toggle({ wrong: true }) }, `${known.length - right} mistakes`);
  const said = make("p", { class: "accuracy" }, make("b", {}, percent(p)), ` right ${space.scoredBy.many ? "in all labels " : ""}(95 % interval ${percent(low)} to ${percent(high)}) `, wrong);
  const result = space.scoredBy.many ? box("Labels", ...byLabel(space, known), said) : box("Accuracy", said, confusion(space, known));
  result.classList.add("broad");
  return [result];
}

function wilson(p, n) {
  // The 95 % interval of a share, sound for few documents and near 0 and 1.
  const z = 1.96, centre = (p + (z * z) / (2 * n)) / (1 + (z * z) / n), half = (z / (1 + (z * z) / n)) * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n));
  return [Math.max(0, Math.min(p, centre - half)), Math.min(1, Math.max(p, centre + half))];
}

function byLabel(space, known) {
  // Of many labels there is no confusion of one with another: each is right, missed or wrongly given.
  const counts = [...tally(known)].sort((a, b) => b[1].right + b[1].missed - a[1].right - a[1].missed), kinds = ["right", "missed", "wrong"];
  const all = Object.fromEntries(kinds.map((kind) => [kind, counts.reduce((sum, [, one]) => sum + one[kind], 0)]));
  const table = make("table", { class: "confusion" }, make("tr", {}, ...["", "F1", "right", "missed", "wrongly given"].map((name) => make("th", { scope: "col" }, name))));
  for (const [name, own] of counts.slice(0, 50)) {
    table.append(make("tr", {}, make("th", { scope: "row", title: name }, shortened(name, 24)), make("td", {}, f1(own).toFixed(3)), ...kinds.map((kind) => {
      const became = `${kind}\u0000${name}`;
      return make("td", {}, make("button", { type: "button", "aria-label": `${name}, ${kind === "wrong" ? "wrongly given" : kind}: ${own[kind]}`,
        "aria-pressed": String(space.filter.became === became), onclick: () => space.toggle({ became }) }, own[kind].toLocaleString("en")));
    })));
  }
  return [make("p", { class: "accuracy" }, make("b", {}, percent(f1(all))), " micro-F1"), make("div", { class: "scroll" }, table)];
}

function confusion(space, known) {
  const names = [...new Set([...space.scoredBy.classes, ...known.map((one) => one.truth[0])])].slice(0, 25);
  const cells = new Map();
  for (const one of known) cells.set(`${one.truth[0]}\u0000${one.given[0]}`, (cells.get(`${one.truth[0]}\u0000${one.given[0]}`) ?? 0) + 1);
  const mistakes = [...cells].filter(([key]) => { const [truth, given] = key.split("\u0000"); return truth !== given; }).map(([, number]) => number);
  const most = { true: Math.max(...cells.values(), 1), false: Math.max(...mistakes, 1) }; // mistakes have a scale of their own
  const table = make("table", { class: "confusion square" }, make("caption", {}, "rows: true class, columns: predicted"));
  table.append(make("tr", {}, make("th"), ...names.map((name) => make("th", { scope: "col", title: name }, make("span", {}, shortened(name, 40))))));
  for (const truth of names) {
    table.append(make("tr", {}, make("th", { scope: "row", title: truth }, shortened(truth, 40)), ...names.map((predicted) => {
      const number = cells.get(`${truth}\u0000${predicted}`) ?? 0;
      const button = make("button", { type: "button", "aria-label": `true ${truth}, predicted ${predicted}: ${number}`,
        "aria-pressed": String(space.filter.truth === truth && space.filter.predicted === predicted), onclick: () => space.toggle({ truth, predicted }) }, String(number));
      button.style.background = number ? `color-mix(in srgb, ${truth === predicted ? "var(--faint)" : "rgb(var(--against))"} ${Math.round(14 + (50 * number) / most[truth === predicted])}%, transparent)` : "";
      button.classList.toggle("right", truth === predicted);
      return make("td", {}, button);
    })));
  }
  return make("div", { class: "scroll" }, table);
}

function remarks(space) {
  const remark = (key, number, name, said) => {
    if (!number) return [];
    const button = make("button", { type: "button", "aria-pressed": String(Boolean(space.filter[key])), onclick: () => space.toggle({ [key]: true }) }, `${number.toLocaleString("en")} ${name}`);
    return [make("p", {}, button, said)];
  };
  const again = space.documents.filter((one) => one.again).length, strange = space.documents.filter((one) => one.unknown >= STRANGE).length;
  const all = [...remark("again", again, "near-duplicates", " have the same words as another document."),
    ...remark("strange", strange, "with unknown words", ` have at least ${percent(STRANGE)} words that the model does not know.`)];
  return all.length ? [box("Odd", ...all)] : [];
}
