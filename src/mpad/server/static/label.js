// The labeling page: one document at a time, labels by mouse or keys, progress next to it.

import { draw, find, make, percent, Scale } from "./dom.js";

const THRESHOLD = 0.12; // share of the strongest weight below which a word has no color
let current = null;
let classes = [];
let busy = false;
let fitting = false;

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(path, options);
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.detail ?? `the server answered ${response.status}`);
  return answer;
}

async function act(path, body) {
  if (busy) return;
  busy = true;
  try {
    show(await ask(path, body));
    say("");
  } catch (error) {
    say(`Not stored: ${error.message}. Try again.`);
  } finally {
    busy = false;
  }
}

const say = (text) => { find("said").textContent = text; find("said").className = text ? "problem" : ""; };
const label = (name) => current && act("label", { row: current.row, label: name });

function show(answer) {
  showProgress(answer);
  current = answer.document;
  for (const name of ["skip"]) find(name).disabled = !current;
  find("undo").disabled = !answer.can_undo;
  find("suggestion").textContent = !current ? "" : current.suggestion === null ? "No suggestion yet: the model learns after a few labels." : `Suggestion: ${current.suggestion} (${percent(current.probability)})`;
  find("document").replaceChildren(...(current ? marked(current) : ["All documents have labels."]));
  showClasses();
}

function marked(document) {
  const scale = new Scale(document.words.map(([, , weight]) => weight), THRESHOLD);
  const characters = Array.from(document.text); // words are counted in code points
  const parts = [];
  let at = 0;
  for (const [start, end, weight] of document.words) {
    if (start < at) continue;
    parts.push(characters.slice(at, start).join(""));
    const color = scale.colour(weight);
    const word = characters.slice(start, end).join("");
    if (color) {
      const mark = make("mark", { title: `${weight >= 0 ? "supports" : "opposes"} ${document.suggestion}: ${weight.toFixed(2)}` }, word);
      mark.style.background = color;
      parts.push(mark);
    } else parts.push(word);
    at = end;
  }
  parts.push(characters.slice(at).join(""));
  return parts;
}

function showClasses() {
  const buttons = classes.map((name, number) => {
    const key = number < 9 ? [make("kbd", {}, String(number + 1))] : [];
    const suggested = current?.suggestion === name;
    return make("button", { type: "button", class: suggested ? "suggested" : "", onclick: () => label(name), disabled: current ? false : "disabled" }, name, ...key);
  });
  find("classes").replaceChildren(...buttons);
}

function showProgress(answer) {
  classes = answer.classes;
  fitting = answer.fitting;
  const learning = fitting ? "; the model is learning …" : answer.problem ? `; the model could not learn: ${answer.problem}` : "";
  find("progress").textContent = `${answer.labeled.toLocaleString("en")} of ${answer.documents.toLocaleString("en")} documents have labels${learning}`;
  find("counts").replaceChildren(...classes.map((name) => make("tr", {}, make("td", {}, name), make("td", {}, String(answer.counts[name] ?? 0)))));
  find("curve").replaceChildren(curve(answer.curve));
  find("flat").textContent = answer.flat ? "The curve is flat: more labels of this kind will help little." : answer.curve.length ? "By cross-validation on the labeled documents, which are harder than most." : "It begins with the first fit, after a few labels of two classes.";
}

function curve(points) {
  const width = 320, height = 170, left = 40, bottom = 22, top = 10;
  const most = Math.max(20, ...points.map(([n]) => n));
  const x = (n) => left + ((width - left - 8) * n) / most;
  const y = (share) => height - bottom - (height - bottom - top) * share;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": points.length ? `accuracy ${percent(points.at(-1)[1])} after ${points.at(-1)[0]} labels` : "no accuracy yet" });
  for (const share of [0, 0.5, 1]) svg.append(draw("line", { x1: left, x2: width - 8, y1: y(share), y2: y(share) }), draw("text", { x: 0, y: y(share) + 4 }, `${100 * share} %`));
  svg.append(draw("text", { x: width - 8, y: height - 4, "text-anchor": "end" }, `${most} labels`));
  if (points.length) svg.append(draw("path", { d: points.map(([n, share], k) => `${k ? "L" : "M"}${x(n)} ${y(share)}`).join("") }));
  for (const [n, share] of points) svg.append(draw("circle", { cx: x(n), cy: y(share), r: 3 }, draw("title", {}, `${n} labels: ${percent(share)}`)));
  return svg;
}

find("skip").onclick = () => current && act("skip", { row: current.row });
find("undo").onclick = () => act("undo", {});
find("add").onsubmit = (event) => {
  event.preventDefault();
  const name = find("new-class").value.trim();
  find("new-class").value = "";
  if (name && current) label(name);
};
document.onkeydown = (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "INPUT") return;
  const number = Number(event.key);
  if (number >= 1 && number <= classes.length) label(classes[number - 1]);
  else if (event.key === "Enter" && event.target.tagName !== "BUTTON" && current?.suggestion) label(current.suggestion);
  else if (event.key === "s" && current) act("skip", { row: current.row });
  else if (event.key === "u") act("undo", {});
  else return;
  event.preventDefault();
};

// While the model learns, ask how far it is; the document on the screen stays.
setInterval(async () => {
  if (!fitting || busy) return;
  try {
    const answer = await ask("state");
    if (!busy) showProgress(answer);
  } catch { /* the next action says so */ }
}, 1000);

act("next");
