// Elements made by hand. Documents only ever become text nodes.

const SVG = "http://www.w3.org/2000/svg";

export const find = (name) => document.getElementById(name);

export function make(name, attributes = {}, ...children) {
  return dress(document.createElement(name), attributes, children);
}

export function draw(name, attributes = {}, ...children) {
  return dress(document.createElementNS(SVG, name), attributes, children);
}

function dress(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element[key] = value;
    else if (value !== false && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

export const percent = (p) => (p >= 0.9995 && p < 1 ? "99.9 %" : p > 0 && p < 0.0005 ? "< 0.1 %" : `${(100 * p).toFixed(p > 0.1 && p < 0.9 ? 0 : 1)} %`);
export const signed = (weight) => (weight >= 0 ? "+" : "−") + Math.abs(weight).toFixed(2);
export const shown = (word) => (/^\\.$/.test(word) ? word[1] : word); // Kim's tokenizer has a backslash before brackets
export const shortened = (text, most) => (text.length <= most ? text : text.slice(0, most - 1) + "…");

// A colour a class, by its place among the model's classes; none of them is the blue or the orange of weights.
export const classColour = (number) => (number < 10 ? `var(--class-${number})` : `hsl(${hue((number * 0.618) % 1)} ${number % 2 ? 38 : 62}% ${[46, 60, 36][number % 3]}%)`);
const hue = (share) => { const at = Math.round(45 + 290 * share); return at < 200 ? at : at + 35; }; // from 45 to 370, without blues

// One scale for words and pairs: what share of the strongest a weight has; below the threshold, no colour.
export class Scale {
  constructor(weights, threshold) {
    this.top = weights.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0);
    this.threshold = threshold;
  }

  share(weight) {
    const part = this.top ? weight / this.top : 0;
    return Math.abs(part) < this.threshold || Math.abs(weight) < 0.005 ? 0 : part;
  }

  side(weight) {
    const part = this.share(weight);
    return part === 0 ? "even" : part > 0 ? "for" : "against";
  }

  colour(weight) {
    // At most so strong that the text on it keeps its contrast.
    const part = this.share(weight);
    return part === 0 ? "" : `rgba(var(--${part > 0 ? "for" : "against"}), ${(0.1 + 0.42 * Math.abs(part)).toFixed(2)})`;
  }
}

export function press(element, action) {
  element.onclick = action;
  element.onkeydown = (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      event.stopPropagation();
      action(event);
    }
  };
}
