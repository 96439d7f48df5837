// Labels of documents: one each, or any number of them with a sign between.

const SIGNS = [";", "|", ",", "\t", "¦"];

export const same = (some, others) => some.length === others.length && some.every((name) => others.includes(name));

export class Labelling {
  // How the labels that a model gives stand in a cell: the sign between them is that which the cells have, and none of their names.
  constructor({ many, classes }, cells = []) {
    const known = new Set(classes), signs = SIGNS.filter((sign) => !classes.some((name) => name.includes(sign)));
    const fit = (sign) => cells.reduce((sum, cell) => sum + parts(cell, sign).filter((name) => known.has(name)).length, 0);
    this.many = many;
    this.sign = signs.reduce((best, sign) => (fit(sign) > fit(best) ? sign : best), signs[0] ?? SIGNS[0]);
  }

  split(cell) {
    return this.many ? parts(cell, this.sign) : [cell];
  }

  join(names) {
    return names.join(this.many ? this.sign : "");
  }
}

const parts = (cell, sign) => [...new Set(cell.split(sign).map((name) => name.trim()).filter(Boolean))];

export function outcome(document, name) {
  // What became of a label of a document: "right", "missed" or "wrong"; "" where it neither has it nor was given it.
  const has = document.truth.includes(name), given = document.given.includes(name);
  return has && given ? "right" : has ? "missed" : given ? "wrong" : "";
}

export function tally(documents) {
  // How often each label is right, missed and wrongly given.
  const result = new Map();
  const add = (name, kind) => { if (!result.has(name)) result.set(name, { right: 0, missed: 0, wrong: 0 }); result.get(name)[kind] += 1; };
  for (const one of documents) for (const name of new Set([...one.truth, ...one.given])) add(name, outcome(one, name));
  return result;
}

export const f1 = ({ right, missed, wrong }) => (2 * right) / Math.max(2 * right + missed + wrong, 1);
