// Every text on the page with less contrast than 4.5 to 1 against what is behind it.
const parse = (colour) => (colour.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
const over = ([r, g, b, a = 1], below) => [r, g, b].map((value, k) => a * value + (1 - a) * below[k]);
const light = (colour) => colour.map((value) => { const c = value / 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; })
  .reduce((sum, value, k) => sum + value * [0.2126, 0.7152, 0.0722][k], 0);
const behind = (element) => {
  const layers = [];
  for (let at = element; at; at = at.parentElement) {
    const style = getComputedStyle(at);
    layers.push(parse(style.backgroundColor.startsWith("color") ? "rgba(0,0,0,0)" : style.backgroundColor));
  }
  return layers.reverse().reduce((below, layer) => over(layer.length === 3 ? [...layer, 1] : layer, below), [255, 255, 255]);
};
const low = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || !element.checkVisibility() || element.closest("svg, template, option")) continue;
  const back = behind(element), ink = over(parse(getComputedStyle(element).color), back);
  const [a, b] = [light(ink), light(back)], ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) low.push([walker.currentNode.textContent.trim().slice(0, 30), ratio.toFixed(2), getComputedStyle(element).color, back.map(Math.round).join()]);
}
return low;
