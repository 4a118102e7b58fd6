// Returns the faults of the page, as a list of sentences. The browser evaluates this script in a report that
// `candide bench --report` has written.
//
// The page marks its elements. `data-field` names a field of the results, and `data-results` gives the places of these results;
// `data-places` gives pairs of both. `data-mark` names the direction in which the place of a drawn element counts, and `data-told` what
// a drawn ratio compares. The check compares the marked values with the JSON, and with the layout that the browser has made.
(() => {
  const problems = [];
  const report = JSON.parse(document.getElementById('results').textContent);
  const results = report.results;
  document.querySelectorAll('details').forEach(details => { details.open = true; });

  const derived = { abort_rate: result => result.aborted / Math.max(result.aborted + result.committed, 1) };
  const fieldOf = (index, path) => path in derived
    ? derived[path](results[index])
    : path.split('/').reduce((value, name) => value?.[name], results[index]);
  const placesOf = element => element.dataset.places === undefined
    ? indexesOf(element).map(index => [index, element.dataset.field])
    : element.dataset.places.split('|').map(place => [Number(place.split(':', 1)[0]), place.slice(place.indexOf(':') + 1)]);
  const indexesOf = element => element.closest('[data-results]').dataset.results.split(' ').map(Number);
  const isVisible = element => element.getClientRects().length > 0 && getComputedStyle(element).visibility === 'visible';

  // Returns whether a written number, in units of `scale`, equals `actual` after rounding.
  function isWritten(text, scale, actual) {
    const match = /^-?[\d,]+(?:\.(\d+))?/.exec(text);
    if (match === null) return false;
    const written = Number(match[0].replaceAll(',', '')) * scale;
    const digit = 10 ** -(match[1]?.length ?? 0) * scale;
    return Math.abs(written - actual) <= digit * 0.5001 + Math.abs(actual) * 1e-12;
  }

  // Every number shown equals the number in the JSON, and no number is rounded so much that it carries no information.
  const shown = new Set();
  for (const element of document.querySelectorAll('td[data-field], dd[data-field], span[data-field], [data-places]')) {
    const scale = Number(element.dataset.scale ?? 1) * (element.textContent.endsWith('%') ? 0.01 : 1);
    for (const [index, path] of placesOf(element)) {
      const actual = fieldOf(index, path);
      const place = `results/${index}/${path}`;
      if (!isVisible(element)) { problems.push(`${place} is not visible`); continue; }
      const numbers = [actual].flat();
      const texts = Array.isArray(actual) ? element.textContent.split(' ').filter(text => text !== '') : [element.textContent];
      if (texts.length !== numbers.length) problems.push(`${place} shows ${texts.length} numbers of ${numbers.length}`);
      numbers.forEach((number, position) => {
        if (typeof number !== 'number') return;
        const text = texts[position] ?? '';
        if (!isWritten(text, scale, number)) problems.push(`${place} is ${number}, but "${text}" is shown`);
        else if (!(path in derived) && number !== 0 && Math.abs(parseFloat(text.replaceAll(',', '')) * scale / number - 1) > 0.01) {
          problems.push(`${place} is ${number}, and "${text}" is too coarse`);
        }
        shown.add(Array.isArray(actual) ? `${place}/${position}` : place);
      });
    }
  }
  function expectShown(value, place) {
    if (typeof value === 'number' && !shown.has(place)) problems.push(`${place} is shown nowhere`);
    if (value !== null && typeof value === 'object') {
      Object.entries(value).forEach(([name, part]) => expectShown(part, `${place}/${name}`));
    }
  }
  results.forEach((result, index) => expectShown(result, `results/${index}`));

  // Each axis begins at zero and is linear, or is marked as logarithmic. Each mark is at the place of its number on the axis.
  const multiples = { k: 1e3, M: 1e6 };
  const parsed = label => {
    const match = /^([\d.]+)([kM]?)/.exec(label);
    return match === null ? NaN : Number(match[1]) * (multiples[match[2]] ?? 1);
  };
  function axisOf(svg, direction, name) {
    const ticks = [...svg.querySelectorAll(`[data-axis="${direction}"]`)].map(tick => {
      const line = tick.querySelector('line').getBBox();
      return { value: Number(tick.dataset.value), label: tick.querySelector('text')?.textContent, at: line[direction] };
    });
    if (ticks.length === 0) return null;
    if (ticks.length < 2) problems.push(`${name}: an axis has no two ticks`);
    const last = ticks[ticks.length - 1];
    const isLog = svg.querySelector(`[data-axis="${direction}"]`).dataset.log !== undefined;
    if (!isLog && (ticks[0].value !== 0 || parsed(ticks[0].label ?? '') !== 0)) {
      problems.push(`${name}: the ${direction} axis does not start at zero`);
    }
    const part = value => isLog ? Math.log(value / ticks[0].value) / Math.log(last.value / ticks[0].value) : value / last.value;
    const place = value => ticks[0].at + (last.at - ticks[0].at) * Math.max(part(value), 0);
    for (const { value, label, at } of ticks) {
      if (Math.abs(place(value) - at) > 0.1) problems.push(`${name}: the tick ${value} is not in its place`);
      if (label !== undefined && Math.abs(parsed(label) - value) > Math.abs(value) * 1e-6) {
        problems.push(`${name}: the tick ${value} says ${label}`);
      }
    }
    return place;
  }
  const close = (a, b) => Math.abs(a - b) <= 0.1;
  function isInPlace(mark, x, y) {
    const box = mark.getBBox();
    const { value, low, high, values } = mark.dataset;
    switch (mark.dataset.mark) {
      case 'x': return close(box.x + box.width / 2, x(value));
      case 'y': return close(box.y + box.height / 2, y(value));
      case 'x-end': return close(box.x, x(0)) && close(box.x + box.width, x(value));
      case 'x-range': return close(box.x, x(low)) && close(box.x + box.width, x(high));
      case 'y-range': return close(box.y, y(high)) && close(box.y + box.height, y(low));
      case 'y-points': {
        const points = [...mark.points];
        return points.length === values.split(' ').length && values.split(' ').every((value, index) => close(points[index].y, y(value)));
      }
    }
    return false;
  }
  // No ratio is drawn that is in doubt: of threads without a core, of one run, or closer to 1 than the spread of the runs.
  const at = path => path.split('/').reduce((value, name) => value?.[name], report);
  const spread = runs => Math.max(...runs) - Math.min(...runs);
  const starves = result => (result.core_share ?? 1) < 0.8;
  function isInDoubt(told) {
    const [one, other] = told.split(' ').map(at);
    if (other === undefined) return one.doubt !== undefined || starves(results[one.result]);
    return starves(one) || starves(other) || Math.min(one.tps_runs.length, other.tps_runs.length) < 2
      || Math.abs(one.throughput_tps - other.throughput_tps) < Math.max(spread(one.tps_runs), spread(other.tps_runs));
  }
  let marks = 0;
  for (const svg of document.querySelectorAll('figure svg')) {
    const name = svg.getAttribute('aria-label');
    const [x, y] = ['x', 'y'].map(direction => axisOf(svg, direction, name));
    if (x === null && y === null) problems.push(`${name}: no axis`);
    for (const mark of svg.querySelectorAll('[data-mark]')) {
      marks += 1;
      if (!isInPlace(mark, x, y)) problems.push(`${name}: ${mark.dataset.value ?? 'a range'} is not where the axis has it`);
      if (mark.dataset.field === undefined) continue;
      const actual = fieldOf(indexesOf(mark)[0], mark.dataset.field) * (mark.dataset.field in derived ? 100 : 1);
      if (Math.abs(Number(mark.dataset.value) - actual) > Math.abs(actual) * 1e-9) {
        problems.push(`${name}: draws ${mark.dataset.value} for ${mark.dataset.field}, which is ${actual}`);
      }
    }
    for (const mark of svg.querySelectorAll('[data-told]')) {
      if (isInDoubt(mark.dataset.told)) problems.push(`${name}: draws a ratio that is in doubt: ${mark.dataset.told}`);
    }
    for (const text of svg.querySelectorAll('text')) {
      const box = text.getBBox();
      if (box.x < -0.5 || box.x + box.width > svg.viewBox.baseVal.width + 0.5) {
        problems.push(`${name}: "${text.textContent}" is cut off`);
      }
      const pixels = parseFloat(getComputedStyle(text).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
      if (pixels < 9) problems.push(`${name}: "${text.textContent}" is ${pixels.toFixed(1)} pixels high`);
    }
  }
  if (marks === 0) problems.push('nothing is drawn');

  // Each protocol has one colour, and no two protocols have the same colour.
  const colours = new Map();
  for (const group of document.querySelectorAll('[data-protocol]')) {
    const protocol = group.dataset.protocol;
    const colour = getComputedStyle(group).color;
    if ((colours.get(protocol) ?? colour) !== colour) problems.push(`${protocol} is both ${colours.get(protocol)} and ${colour}`);
    colours.set(protocol, colour);
    for (const mark of group.querySelectorAll('.mark, .bar')) {
      if (getComputedStyle(mark).fill !== colour) problems.push(`${protocol} is ${colour}, but something of it is filled otherwise`);
    }
    for (const line of group.querySelectorAll('.series')) {
      if (getComputedStyle(line).stroke !== colour) problems.push(`${protocol} is ${colour}, but a line of it is drawn otherwise`);
    }
  }
  if (new Set(colours.values()).size !== colours.size) problems.push('two protocols have the same colour');
  for (const result of results) {
    if (!colours.has(result.protocol)) problems.push(`${result.protocol} is in no chart`);
  }

  // The page scrolls only downwards.
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) problems.push(`the page is ${page.scrollWidth} pixels wide, the window ${page.clientWidth}`);
  // Headings and links can be told apart.
  for (const [what, elements] of [['headings', document.querySelectorAll('h1, h2, h3')], ['links', document.querySelectorAll('nav a')]]) {
    const texts = [...elements].map(element => element.textContent);
    texts.filter((text, index) => texts.indexOf(text) !== index).forEach(text => problems.push(`two ${what} say "${text}"`));
  }
  // On a large screen sentences in tables are whole, and charts take the width.
  if (page.clientWidth >= 1200) {
    for (const scroll of document.querySelectorAll('.scroll:has(td.words)')) {
      if (scroll.scrollWidth > scroll.clientWidth) {
        problems.push(`"${scroll.getAttribute('aria-label')}" is cut off: ${scroll.scrollWidth} pixels in ${scroll.clientWidth}`);
      }
    }
    for (const charts of document.querySelectorAll('.comparison')) {
      const boxes = [...charts.querySelectorAll('figure')].map(figure => figure.getBoundingClientRect());
      const used = Math.max(...boxes.map(box => box.right)) - Math.min(...boxes.map(box => box.left));
      if (boxes.length > 1 && used < 0.85 * charts.clientWidth) {
        problems.push(`charts take ${used.toFixed()} of ${charts.clientWidth} pixels`);
      }
    }
  }
  // A script could add content that this check does not cover.
  const scripts = [...document.scripts].filter(script => script.type !== 'application/json');
  if (scripts.length > 0) problems.push('scripts run in the page');

  return { problems, numbers: shown.size, marks };
})()
