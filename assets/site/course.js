// The course in a browser: draws the pictures that `tilestep site` laid out, step by step. The page holds all data,
// in elements with deflated JSON (app/cli/site); nothing is fetched, and no HTML is ever made of data.
'use strict';
(() => {
const body = document.body, whole = body.dataset.whole === 'yes', own = body.dataset.lesson;
const $ = (id) => document.getElementById(id);
const light = matchMedia('(prefers-color-scheme: light)'), still = matchMedia('(prefers-reduced-motion: reduce)');
const phone = matchMedia('(max-width: 640px)');

/// An element with attributes, handlers (`onclick`) and children: elements or text.
function make(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === 'function') made[name] = value;
    else if (value !== undefined && value !== false) made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

function message(words) {
  const box = $('message');
  box.textContent = words;
  box.hidden = !words;
}

// ---- data ---------------------------------------------------------------------------------------

const unpacked = new Map();
/// The data of an element, once.
function data(name) {
  if (!unpacked.has(name)) {
    unpacked.set(name, (async () => {
      const bytes = Uint8Array.from(atob($(name).textContent), (c) => c.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
      return JSON.parse(await new Response(stream).text());
    })());
  }
  return unpacked.get(name);
}

/// What was answered and seen, in the browser's storage; without one it lasts as long as the page.
const progress = (() => {
  let kept = {};
  try {
    kept = JSON.parse(localStorage.getItem('tilestep')) || {};
  } catch { /* none, or not ours */ }
  const save = () => {
    try {
      localStorage.setItem('tilestep', JSON.stringify(kept));
    } catch { /* no storage, or none left */ }
  };
  const of = (lesson) => {
    const one = kept[lesson];
    const good = one && typeof one === 'object' && one.stops && one.answers;
    return good ? one : (kept[lesson] = {stops: {}, answers: {}});
  };
  return {
    see(lesson, stop) { of(lesson).stops[stop] = 1; save(); },
    answer(lesson, id, how) { if (!of(lesson).answers[id]) of(lesson).answers[id] = how; save(); },
    answered: (lesson, id) => of(lesson).answers[id],
    words(lesson) {
      const {stops, answers} = of(lesson), all = Object.values(answers).filter((how) => how !== 'skipped');
      const right = all.filter((how) => how === 'right').length;
      const seen = Object.keys(stops).length;
      return (seen ? ` · ${seen} seen` : '') + (all.length ? ` · ${right} of ${all.length} right` : '');
    },
  };
})();

// ---- pictures -----------------------------------------------------------------------------------

const kSvg = 'http://www.w3.org/2000/svg';
const [kFill, kOutline, kHatch, kDot, kPolygon, kLine, kText] = [0, 1, 2, 3, 4, 5, 6];
const kTags = ['rect', 'rect', 'rect', 'circle', 'polygon', 'path', 'text'];
/// Where a shape's numbers that move begin and end.
const kMoves = [[5, 9], [5, 9], [5, 9], [5, 8], [5, Infinity], [7, Infinity], [5, 8]];
const kEms = [13, 16, 16, 20, 13, 16, 28];
const kFaces = ['sans', 'sans', 'sans bold', 'sans bold', 'mono', 'mono', 'mono'];
const svg = (tag) => document.createElementNS(kSvg, tag);
/// What of a row does not move, in words: the same where nothing but places changed.
const looks = (row, book) => {
  const [from, to] = kMoves[row[0]];
  const rest = row[0] === kText ? [row[8], book.texts[row[9]]] : row.slice(to);
  return [row[0], ...book.colours[row[2]], row[3], ...row.slice(5, from), ...rest].join();
};
const moving = (row) => row.slice(kMoves[row[0]][0], kMoves[row[0]][1]);

/// Frames of a book, each a list of rows: its shapes in drawing order.
function frameOf(book, number) {
  if (!book.made) {
    const before = [];  // rows are what they have more than the one of their kind before
    for (const row of book.shapes) {
      const last = before[row[0]] || [];
      for (let k = 1; k < row.length; ++k) row[k] += last[k] || 0;
      before[row[0]] = row;
    }
    book.made = [];
  }
  if (!book.made[number]) {
    const rows = [], ranges = book.frames[number];
    for (let k = 0; k < ranges.length; k += 2) {
      for (let n = 0; n < ranges[k + 1]; ++n) rows.push(book.shapes[ranges[k] + n]);
    }
    book.made[number] = rows;
  }
  return book.made[number];
}

let boards = 0;

class Board {
  constructor(host) {
    this.number = ++boards;
    this.root = svg('svg');
    this.defs = svg('defs');
    this.layer = svg('g');
    this.root.append(this.defs, this.layer);
    host.replaceChildren(this.root);
    this.layer.addEventListener('pointerover', (event) => this.tell(event.target));
    this.items = new Map();  // by id: element, row, book
    this.going = null;
  }

  /// Draws a frame; over `ms` what is in both moves, the rest fades. Resolves at rest.
  show(book, number, ms) {
    this.rest();
    const [w, h] = book.size, before = this.items, moves = [], fades = [], order = [];
    this.root.setAttribute('viewBox', `-6 -6 ${w + 12} ${h + 12}`);  // frames round what is lit reach out of it
    this.items = new Map();
    for (const row of frameOf(book, number)) {
      const id = book.ids[row[1]];
      let item = before.get(id);
      if (item && kTags[item.row[0]] !== kTags[row[0]]) item = undefined;
      const was = item && (item.row !== row || item.book !== book) ? item.row : null, wasIn = item && item.book;
      if (item) {
        before.delete(id);
      } else {
        item = {el: svg(kTags[row[0]])};
        item.el.id = 'mark-' + id;
        if (ms) fades.push([item.el, 0, 1]);
      }
      if (!item.row || was) {
        item.row = row;
        item.book = book;
        if (!was || looks(was, wasIn) !== looks(row, book)) this.dress(item);
        const from = was && moving(was), to = moving(row);
        if (ms && was && from.length === to.length && from.some((n, k) => n !== to[k])) {
          moves.push([item.el, row[0], from, to]);
        } else {
          this.put(item.el, row[0], to);
        }
      }
      this.items.set(id, item);
      order.push(item.el);
    }
    const leaving = new Set();
    for (const {el} of before.values()) {
      if (ms) {
        leaving.add(el);
        fades.push([el, 1, 0]);
      } else {
        el.remove();
      }
    }
    let at = this.layer.firstChild;
    for (const el of order) {
      while (at && leaving.has(at)) at = at.nextSibling;
      if (el === at) at = at.nextSibling;
      else this.layer.insertBefore(el, at);
    }
    if (!ms || (!moves.length && !fades.length)) return Promise.resolve();
    return new Promise((resolve) => {
      const begun = performance.now();
      const draw = (part) => {
        const t = part * part * (3 - 2 * part);
        for (const [el, kind, from, to] of moves) {
          this.put(el, kind, from.map((n, k) => n + (to[k] - n) * t));
        }
        for (const [el, from, to] of fades) el.style.opacity = from + (to - from) * t;
      };
      const end = () => {
        draw(1);
        for (const el of leaving) el.remove();
        this.going = null;
        resolve();
      };
      const frame = () => {
        const part = (performance.now() - begun) / ms;
        if (part >= 1) return end();
        draw(part);
        this.going.request = requestAnimationFrame(frame);
      };
      draw(0);
      this.going = {request: requestAnimationFrame(frame), end};
    });
  }

  /// Ends what moves.
  rest() {
    if (!this.going) return;
    cancelAnimationFrame(this.going.request);
    this.going.end();
  }

  put(el, kind, n) {
    const set = (names) => names.forEach((name, k) => el.setAttribute(name, n[k] / 10));
    if (kind <= kHatch) return set(['x', 'y', 'width', 'height']);
    if (kind === kDot) return set(['cx', 'cy', 'r']);
    if (kind === kText) return set(['x', 'y', 'textLength']);
    let path = '';
    const curved = el.dataset.pen === '2';
    for (let k = 0; k < n.length; k += 2) {
      if (kind === kLine) path += k === 0 ? 'M' : !curved ? 'L' : k === 2 ? 'C' : ' ';
      path += `${n[k] / 10} ${n[k + 1] / 10} `;
    }
    el.setAttribute(kind === kLine ? 'd' : 'points', path);
  }

  /// Colours, type, words: all that does not move.
  dress({el, row, book}) {
    const [kind, , colour, alpha] = row, set = (name, value) => el.setAttribute(name, value);
    const ink = book.colours[colour][light.matches ? 1 : 0];
    if (kind === kOutline || kind === kLine) {
      const [thick, dashed] = kind === kOutline ? [row[10], row[11] === 1] : [row[5], row[6] === 1];
      set('fill', 'none');
      set('stroke', ink);
      set('stroke-opacity', alpha / 100);
      set('stroke-width', thick / 10);
      if (dashed) set('stroke-dasharray', '4 4');
      else el.removeAttribute('stroke-dasharray');
      if (kind === kLine) el.dataset.pen = row[6];
    } else {
      set('fill', kind === kHatch ? `url(#${this.hatch(ink)})` : ink);
      set('fill-opacity', alpha / 100);
      el.removeAttribute('stroke');
    }
    if (kind === kFill || kind === kOutline) set('rx', row[9] / 10);
    if (kind === kText) {
      el.textContent = book.texts[row[9]];
      set('class', kFaces[row[8]]);
      set('font-size', kEms[row[8]]);
      set('lengthAdjust', 'spacingAndGlyphs');
    }
    if (kind !== kText && el.firstChild) el.textContent = '';
  }

  /// What a pointer on a thing is told.
  tell(el) {
    const item = this.items.get(el.id.replace(/^mark-/, ''));
    el.querySelector('title')?.remove();
    if (!item || !item.row[4]) return;
    const words = svg('title');
    words.textContent = item.book.texts[item.row[4]];
    el.append(words);
  }

  hatch(ink) {
    const id = `hatch-${this.number}-${ink.slice(1)}`;
    if (!$(id)) {
      const pattern = svg('pattern'), line = svg('line');
      for (const [name, value] of [['id', id], ['width', 5], ['height', 5], ['patternUnits', 'userSpaceOnUse'],
                                   ['patternTransform', 'rotate(45)']]) {
        pattern.setAttribute(name, value);
      }
      for (const [name, value] of [['y2', 5], ['stroke', ink], ['stroke-width', 1.4]]) line.setAttribute(name, value);
      pattern.append(line);
      this.defs.append(pattern);
    }
    return id;
  }

  recolour() {
    for (const item of this.items.values()) this.dress(item);
  }

  /// Marks the things of a key while the pointer is on its word.
  light(key) {
    for (const el of this.layer.querySelectorAll('.lit')) el.classList.remove('lit');
    if (!key) return;
    for (const [id, {el}] of this.items) {
      if (id === key || id.startsWith(key + '.')) el.classList.add('lit');
    }
  }
}

// ---- the way through a run ----------------------------------------------------------------------

const phasesIn = (s, tile) => (s.folded > 0 && tile === s.tiles ? s.folded : s.phases);
const placesOf = (s) => (s.tiles <= 0 ? 0 : (s.tiles - 1) * s.phases + phasesIn(s, s.tiles));
const endOf = (s, tile) => (tile <= 0 ? 0 : (tile - 1) * s.phases + phasesIn(s, tile));
function cursorAt(s, place) {
  if (place <= 0) return {tile: 0, phase: 0, complete: true};
  const tile = Math.min(Math.floor((place - 1) / s.phases), s.tiles - 1) + 1, phase = place - 1 - (tile - 1) * s.phases;
  return {tile, phase, complete: phase === phasesIn(s, tile) - 1};
}
/// The place that → leads to, or ←: the end of a step, or of several where one is too little to see.
function nextPlace(s, place, way) {
  const at = cursorAt(s, place), ends = s.ends.length ? s.ends : null;
  if (way > 0) {
    const tile = at.complete ? at.tile + 1 : at.tile;
    return endOf(s, Math.min(ends ? ends.find((end) => end >= tile) || s.tiles : tile, s.tiles));
  }
  const before = at.tile - 1;
  return endOf(s, Math.max(ends ? ends.filter((end) => end <= before).pop() || 0 : before, 0));
}
/// The place of a book, which has not all of a long run, that is next to `place` or beyond it.
function onward(book, place, way) {
  const there = book.places;
  if (way > 0) return there.find((each) => each >= place) ?? there.at(-1);
  return there.findLast((each) => each <= place) ?? 0;
}
function nearest(book, place) {
  return book.places.reduce((best, each) => (Math.abs(each - place) < Math.abs(best - place) ? each : best));
}
function placeWords(s, place) {
  const at = cursorAt(s, place);
  if (place <= 0) return `${s.tiles} ${s.tiles === 1 ? 'step' : 'steps'} to come`;
  const named = s.names.length === phasesIn(s, at.tile) && s.names.length > 1;
  return `Step ${at.tile} of ${s.tiles}` + (named ? ` · ${s.names[at.phase]}` : '');
}

// ---- the lesson on show -------------------------------------------------------------------------

const board = new Board($('board'));
/// lesson, core, stop (from 1; one more than there are: the sliders), shown (what the picture is of), place, tab.
const now = {};
let turn = 0;  // grows with everything that a play or a load must not outlive

const here = () => now.core.stops[now.stop - 1];
const section = () => $('lesson-' + now.lesson);
const bookName = (seen) => `${now.lesson}-book-${phone.matches ? seen.narrow : seen.wide}`;

async function openLesson(lesson, stop, query) {
  const mine = ++turn, core = await data(lesson + '-core');
  if (mine !== turn) return;
  Object.assign(now, {lesson, core});
  for (const id of ['home', 'glossary']) if ($(id)) $(id).hidden = true;
  $('course').hidden = false;
  $('title').textContent = core.title;
  document.title = core.title + ' · tilestep';
  const read = $('read');
  for (const each of document.querySelectorAll('.lesson')) each.hidden = each.dataset.lesson !== lesson;
  read.append(section());
  if (!section().querySelector('div.intro')) {
    section().prepend(make('div', {class: 'intro'}, section().querySelector('template').content.cloneNode(true)));
  }
  const rail = make('ol', {});
  const titles = core.stops.map((each) => each.title);
  if (core.explore.knobs.length) titles.push('Your turn');
  titles.forEach((title, k) => rail.append(make('li', {}, make('a', {
    href: `#/${lesson}/stop/${k + 1}`, title, 'data-stop': k + 1, 'aria-label': `Stop ${k + 1}: ${title}`,
  }, k < core.stops.length ? `${k + 1}` : 'Your turn'))));
  $('stops').replaceChildren(rail);
  makeTabs();
  await goStop(Math.min(Math.max(stop || 1, 1), titles.length), query);
}

/// The run and the books of settings that a link names, among those of this stop and of the sliders.
function seenOf(query, stop) {
  const wanted = [...query].filter(([id]) => id !== 'place');
  if (!wanted.length) return null;
  const base = stop ? now.core.runs[stop.seen.run] : Object.fromEntries(now.core.knobs.map((k) => [k[0], k[3]]));
  const goal = {...base, ...Object.fromEntries(wanted)};
  const all = [...(stop ? [stop.seen, ...stop.tries] : []), ...Object.values(now.core.explore.runs)];
  const fits = (seen) => seen.run >= 0 &&
    Object.entries(goal).every(([id, value]) => now.core.runs[seen.run][id] === value);
  const found = all.find(fits);
  if (found) return found;
  const there = wanted.map(([id]) => {
    const values = [...new Set(now.core.runs.map((run) => run[id]).filter((value) => value !== undefined))];
    return values.length ? `${id}: ${values.join(', ')}` : `no knob is called ${id}`;
  });
  message(`This page has no run of these settings. It has ${there.join('; ')}. ` +
          'tilestep runs any other.');
  return null;
}

/// Shows a stop; `data-at` of the body says when it is there.
async function goStop(number, query) {
  delete body.dataset.at;
  await arrive(number, query);
  if (now.stop === number) body.dataset.at = number;
}

async function arrive(number, query) {
  const mine = ++turn;
  message('');
  now.stop = number;
  now.tried = -1;
  now.asking = null;
  const stop = here();
  for (const link of $('stops').querySelectorAll('a')) {
    if (+link.dataset.stop === number) link.setAttribute('aria-current', 'step');
    else link.removeAttribute('aria-current');
  }
  for (const article of section().querySelectorAll('.stop')) article.hidden = +article.dataset.stop !== number;
  section().querySelector('div.intro').hidden = number !== 1;
  section().querySelector('.more').hidden = number <= now.core.stops.length;
  for (const chip of section().querySelectorAll('.try')) chip.setAttribute('aria-pressed', 'false');
  $('sliders').hidden = !!stop;
  if (!stop) {
    makeSliders();
    const first = now.core.explore.runs[now.core.explore.knobs.map((knob) => knob.own).join('|')];
    await showRun((query && seenOf(query, null)) || first, mine);
    return;
  }
  progress.see(now.lesson, number);
  if (stop.missing) {
    message(`This run cannot be had here: ${stop.missing}`);
    return;
  }
  const asks = stop.question && stop.asked >= 0 && !progress.answered(now.lesson, number);
  const found = query ? seenOf(query, stop) : null, seen = found || stop.seen;
  const place = query && query.has('place') ? Math.max(0, parseInt(query.get('place'), 10) || 0) : seen.place;
  cover(stop, asks);
  await showRun({...seen, place: asks && !found ? stop.asked : place}, mine);
  if (mine === turn && asks) askAt(stop, number);
  else if (mine === turn && stop.question && progress.answered(now.lesson, number)) verdictAt(stop, null);
  if (mine === turn && stop.tab === 'measured' && stop.chart >= 0) await showChart(stop);
}

/// While a stop asks, its text waits.
function cover(stop, asks) {
  const article = section().querySelector(`.stop[data-stop="${now.stop}"]`);
  article.querySelector('.text').hidden = asks;
  article.querySelector('.ask').replaceChildren();
}

async function showRun(seen, mine) {
  const [book, run] = await Promise.all([data(bookName(seen)), data(`${now.lesson}-run-${seen.run}`)]);
  if (mine !== turn) return;
  const again = now.shown && now.shown.run === seen.run;
  book.ids = now.core.ids;
  Object.assign(now, {shown: seen, book, run});
  $('course').classList.remove('charted');
  $('place').max = placesOf(run.steps);
  await show(nearest(book, seen.place), again ? 300 : 0);
}

/// The picture of a place, with the words beside it.
function show(place, ms) {
  now.place = place;
  const stop = here(), {book, run} = now;
  const lit = stop && now.shown.run === stop.seen.run && place === stop.seen.place && now.tried < 0
      ? (phone.matches ? stop.litNarrow : stop.lit) : undefined;
  const index = book.places.indexOf(place), frame = book.at[index], words = book.words[index];
  const says = now.core.knobs.filter(([id, , , own]) => (now.core.runs[now.shown.run][id] || own) !== own)
      .map(([id, label]) => `${label}: ${now.core.runs[now.shown.run][id]}`).join(' · ');
  $('headline').textContent = `${placeWords(run.steps, place)}. ${words.headline}`;
  $('board').setAttribute('aria-label', words.headline || now.core.title);
  $('place').value = place;
  $('where').textContent = placeWords(run.steps, place);
  $('place').setAttribute('aria-valuetext', placeWords(run.steps, place));
  $('source').textContent = `${says || 'All knobs at their defaults'} · ${run.device}`;
  $('readouts').replaceChildren(...words.readouts.map(([label, value, unit, look, from, detail]) =>
      make('div', {title: [from, detail].filter(Boolean).join(': '), class: look || undefined},
           make('dt', {}, label), make('dd', {}, value + (unit ? ' ' + unit : '')))));
  lightKernel();
  if (now.tab === 'data' || now.tab === 'checks') fillPanel();
  const query = new URLSearchParams();
  if (now.tried >= 0 || !stop) {
    for (const [id, , , own] of now.core.knobs) {
      const value = now.core.runs[now.shown.run][id], base = stop ? now.core.runs[stop.seen.run][id] : own;
      if (value !== undefined && value !== base) query.set(id, value);
    }
  }
  if (!stop || place !== stop.seen.place) query.set('place', place);
  const tail = query.toString();
  history.replaceState(null, '', `#/${now.lesson}/stop/${now.stop}${tail ? '?' + tail : ''}`);
  return board.show(book, lit === undefined ? frame : lit, still.matches ? 0 : ms);
}

/// Plays to a place; after an event it rests. Pressed again it is there at once.
async function playTo(target) {
  const mine = ++turn, {run} = now;
  now.playing = target;
  const ms = Math.min(420, Math.max(120, 2400 / Math.max(1, Math.abs(target - now.place))));
  while (mine === turn && now.place < target) {
    await show(onward(now.book, now.place + 1, 1), ms);
    if (mine === turn && now.place < target && run.events.some(([place]) => place === now.place)) {
      await new Promise((resolve) => setTimeout(resolve, 1200));
    }
  }
  if (mine === turn) now.playing = null;
}

function jump(place) {
  ++turn;
  now.playing = null;
  show(nearest(now.book, place), 220);
}

function step(way, fine) {
  if (!now.run) return;
  const stop = here(), s = now.run.steps;
  if (now.asking) {
    if (way > 0) now.asking.skip();
    return;
  }
  if ($('course').classList.contains('charted')) return leaveChart();
  if (now.playing !== null && now.playing !== undefined && way > 0) return jump(now.playing);
  if (way > 0 && stop && stop.question && stop.asked < 0 && now.place === stop.seen.place && now.tried < 0 &&
      !progress.answered(now.lesson, now.stop)) {
    return askAt(stop, now.stop);
  }
  const to = onward(now.book, fine ? now.place + way : nextPlace(s, now.place, way), way);
  if (way > 0) playTo(to);
  else jump(to);
}

// ---- questions ----------------------------------------------------------------------------------

/// Asks in `host`; `done` is told "right", "wrong" or "skipped".
function ask(question, host, done) {
  const box = make('form', {class: 'question', 'aria-label': 'Question'}, make('p', {class: 'asked'}, question.text));
  const end = (how, guess) => {
    now.asking = null;
    for (const control of box.querySelectorAll('button, input')) control.disabled = true;
    if (how !== 'skipped') box.append(verdict(question, how, guess));
    done(how);
  };
  if (question.choices.length) {
    question.choices.forEach((words, k) => box.append(make('button', {
      type: 'button', class: 'choice', onclick: () => end(k === question.answer ? 'right' : 'wrong', k),
    }, make('b', {}, 'ABCD'[k]), ' ' + words)));
  } else {
    const {low, high} = question, slider = make('input', {
      type: 'range', min: low, max: high, step: (high - low) / 400 || 'any', value: (low + high) / 2,
      'aria-label': 'Your guess',
    });
    const said = make('output', {}, 'drag it');
    slider.oninput = () => { said.textContent = (+slider.value).toPrecision(3); };
    box.append(slider, said, make('button', {
      type: 'button', class: 'choice',
      onclick: () => end(Math.abs(slider.value - question.truth) <= question.tolerance ? 'right' : 'wrong', -1),
    }, 'That is my guess'));
  }
  box.append(make('button', {type: 'button', class: 'skip', onclick: () => end('skipped')}, 'Skip'));
  box.onsubmit = () => false;
  host.replaceChildren(box);
  now.asking = {
    choose: (k) => k < question.choices.length && end(k === question.answer ? 'right' : 'wrong', k),
    skip: () => end('skipped'),
  };
  (box.querySelector('button, input')).focus({preventScroll: true});
}

function verdict(question, how, guess) {
  if (guess !== undefined && guess >= 0) {
    const words = question.choices[guess];
    return make('p', {class: 'verdict ' + how, role: 'status'},
                make('b', {}, how === 'right' ? `Right: ${words}` : `No: ${question.said}`),
                `, because ${question.because}`);
  }
  return make('p', {class: 'verdict ' + how, role: 'status'},
              make('b', {}, `${how === 'right' ? 'Right' : how === 'wrong' ? 'No' : 'The answer'}: ${question.said}`),
              `, because ${question.because}`);
}

const askBox = () => section().querySelector(`.stop[data-stop="${now.stop}"] .ask`);

function askAt(stop, number) {
  ask(stop.question, askBox(), async (how) => {
    progress.answer(now.lesson, number, how);
    section().querySelector(`.stop[data-stop="${number}"] .text`).hidden = false;
    if (stop.asked >= 0) await playTo(stop.seen.place);
    else await playTo(nextPlace(now.run.steps, now.place, 1));
  });
}

/// What was answered before.
function verdictAt(stop) {
  const how = progress.answered(now.lesson, now.stop);
  askBox().replaceChildren(make('div', {class: 'question'}, make('p', {class: 'asked'}, stop.question.text),
                                verdict(stop.question, how)));
}

// ---- measured -----------------------------------------------------------------------------------

const uri = (text) => 'data:image/svg+xml,' + encodeURIComponent(text);
function figure(chart) {
  return make('figure', {}, make('picture', {},
      make('source', {media: 'print, (prefers-color-scheme: light)', srcset: uri(chart.light)}),
      make('img', {src: uri(chart.dark), alt: chart.alt})));
}
const waiting = (name) => now.core.questions.findIndex((question, k) =>
    question.masks.includes(name) && !progress.answered(now.lesson, 'measured ' + k));

/// A stop about a chart has it in place of the picture, once its questions are answered.
async function showChart(stop) {
  const charts = await data(now.lesson + '-charts'), mine = turn, chart = charts[stop.chart];
  const first = waiting(chart.name);
  $('course').classList.add('charted');
  $('board').querySelectorAll('figure').forEach((each) => each.remove());
  if (first >= 0) {
    $('board').append(make('figure', {}, make('p', {}, 'The chart comes after the question.')));
    cover(stop, true);
    ask(now.core.questions[first], askBox(), (how) => {
      progress.answer(now.lesson, 'measured ' + first, how);
      const said = [...askBox().children];
      if (mine !== turn) return;
      showChart(stop).then(() => { if (!now.asking) askBox().replaceChildren(...said); });
    });
    return;
  }
  section().querySelector(`.stop[data-stop="${now.stop}"] .text`).hidden = false;
  $('board').append(figure(chart));
  $('board').setAttribute('aria-label', chart.alt);
  $('headline').textContent = chart.alt;
}

function leaveChart() {
  $('course').classList.remove('charted');
  show(now.place, 0);
}

// ---- below: kernel, data, charts, exercises -----------------------------------------------------

const kTabs = [['kernel', 'Kernel'], ['data', 'Data'], ['measured', 'Measured'], ['checks', 'Checks'],
               ['exercises', 'Exercises']];
function makeTabs() {
  now.tab = null;
  putBack();
  $('panel').replaceChildren();
  $('tabs').replaceChildren(...kTabs.map(([id, name]) => make('button', {
    type: 'button', role: 'tab', id: 'tab-' + id, 'aria-selected': 'false',
    onclick: () => openTab(now.tab === id ? null : id),
  }, name)));
}
function openTab(id) {
  now.tab = id;
  for (const [each] of kTabs) $('tab-' + each).setAttribute('aria-selected', each === id ? 'true' : 'false');
  fillPanel();
}

function tableOf(columns, rows) {
  return make('div', {class: 'scroll', tabindex: '0'}, make('table', {},
      make('thead', {}, make('tr', {}, ...columns.map(([label, unit, number]) =>
          make('th', {scope: 'col', class: number ? 'n' : undefined}, label + (unit ? ` (${unit})` : ''))))),
      make('tbody', {}, ...rows.map((cells) => make('tr', {}, ...cells.map((cell, k) =>
          make('td', {class: columns[k] && columns[k][2] ? 'n' : undefined}, cell)))))));
}
function saved(name, text, type) {
  const link = make('a', {download: name, href: URL.createObjectURL(new Blob([text], {type}))});
  link.click();
  URL.revokeObjectURL(link.href);
}
const csvCell = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/// What belongs to a lesson goes back to it.
function putBack() {
  for (const moved of $('panel').querySelectorAll('.kernels, .exercises')) {
    moved.hidden = true;
    $('lesson-' + moved.dataset.of).append(moved);
  }
}

async function fillPanel() {
  const panel = $('panel'), tab = now.tab, lesson = section();
  putBack();
  if (tab === 'kernel' || tab === 'exercises') {
    const shown = lesson.querySelector(tab === 'kernel' ? '.kernels' : '.exercises');
    shown.hidden = false;
    shown.dataset.of = now.lesson;
    panel.replaceChildren(shown);
    if (tab === 'kernel') lightKernel();
  } else if (tab === 'data') {
    panel.replaceChildren(...now.run.tables.map((table) => make('section', {},
        make('h3', {}, table.title, ' ', make('button', {
          type: 'button', class: 'save', onclick: () => saved(table.id + '.csv',
              [table.columns.map((c) => csvCell(c[0])), ...table.rows.map((row) => row.map(csvCell))]
                  .map((row) => row.join(',')).join('\n') + '\n', 'text/csv'),
        }, 'CSV')),
        tableOf(table.columns, table.rows.filter((_, r) => table.known[r].some((place) => place <= now.place)).map(
            (row, k) => row.map((cell, c) => (table.known[k][c] <= now.place ? cell : '')))),
        table.all > table.rows.length
            ? make('p', {class: 'note'}, `The first ${table.rows.length} of ${table.all} rows; ` +
                `all of them: tilestep run ${now.lesson} --csv`)
            : null)));
  } else if (tab === 'measured') {
    const charts = await data(now.lesson + '-charts');
    if (now.tab !== tab) return;
    panel.replaceChildren(...now.core.views.map((number) => {
      const chart = charts[number], first = waiting(chart.name), box = make('section', {}, make('h3', {}, chart.name));
      if (first < 0) {
        box.append(figure(chart));
        return box;
      }
      const host = make('div', {});
      box.append(host);
      const question = now.core.questions[first];
      host.append(make('p', {}, 'A question comes first. '), make('button', {
        type: 'button', onclick: () => ask(question, host, (how) => {
          progress.answer(now.lesson, 'measured ' + first, how);
          const said = host.cloneNode(true);
          fillPanel().then(() => panel.prepend(said));
        }),
      }, 'Ask me'), ' ', make('button', {
        type: 'button', class: 'skip', onclick: () => {
          progress.answer(now.lesson, 'measured ' + first, 'skipped');
          fillPanel();
        },
      }, 'Skip'));
      return box;
    }));
  } else if (tab === 'checks') {
    if (now.place < placesOf(now.run.steps)) {
      return panel.replaceChildren(make('p', {}, 'What the run comes to stands here at its last step (End).'));
    }
    // What a question about measurements asks is not to be read here first.
    const asks = now.core.questions.some((_, k) => !progress.answered(now.lesson, 'measured ' + k));
    const numbers = now.run.measurements.filter((row) => !(asks && row[5]));
    panel.replaceChildren(make('p', {}, now.run.summary),
        tableOf([['check'], ['result'], ['max error', '', true], ['tolerance', '', true], ['why this tolerance']],
                now.run.checks.map(([id, ok, ...rest]) => [id, ok ? '✓ ok' : '✗ failed', ...rest])),
        tableOf([['number'], ['variant'], ['value', '', true], ['where from'], ['detail']],
                numbers.map((row) => row.slice(0, 5))),
        asks ? make('p', {class: 'note'}, 'Measured numbers come after the questions under Measured.') : '');
  } else {
    panel.replaceChildren();
  }
}

/// The lines of the step in the kernel that is open below.
function lightKernel() {
  if (now.tab !== 'kernel' || !now.book) return;
  const [path, current, lines, values] = now.book.words[now.book.places.indexOf(now.place)].source;
  for (const kernel of $('panel').querySelectorAll('.kernel')) {
    const mine = kernel.dataset.path === path, rows = kernel.querySelectorAll('li');
    if (mine) kernel.open = true;
    rows.forEach((row) => {
      row.className = '';
      delete row.dataset.value;
    });
    if (!mine) continue;
    for (const line of lines) if (rows[line - 1]) rows[line - 1].className = 'step';
    for (const [line, value] of Object.entries(values)) if (rows[line - 1]) rows[line - 1].dataset.value = value;
    const row = rows[current - 1];
    if (!row) continue;
    row.className = 'now';
    const list = row.parentNode;
    list.scrollTop = row.offsetTop - list.clientHeight / 3;
  }
}

// ---- the learner's own settings -----------------------------------------------------------------

function makeSliders() {
  const {knobs, runs} = now.core.explore, chosen = knobs.map((knob) => knob.values.indexOf(knob.own));
  const change = () => {
    const name = knobs.map((knob, k) => knob.values[chosen[k]]).join('|'), seen = runs[name];
    const said = knobs.map((knob, k) => `${knob.label}: ${knob.values[chosen[k]]}`).join(', ');
    message(seen ? '' : `The lesson does not run ${said}.`);
    if (seen) showRun({...seen, place: Math.min(now.place, seen.place) || seen.place}, ++turn);
  };
  $('sliders').replaceChildren(make('h2', {}, 'Your turn'), ...knobs.map((knob, k) => {
    const said = make('output', {}, knob.own), slider = make('input', {
      type: 'range', min: 0, max: knob.values.length - 1, value: chosen[k], id: 'knob-' + knob.id,
      'aria-valuetext': knob.own, list: undefined,
    });
    slider.oninput = () => {
      chosen[k] = +slider.value;
      said.textContent = knob.values[chosen[k]];
      slider.setAttribute('aria-valuetext', knob.values[chosen[k]]);
      change();
    };
    return make('p', {}, make('label', {for: 'knob-' + knob.id}, knob.label + ' '), slider, ' ', said);
  }));
}

// ---- paper --------------------------------------------------------------------------------------

/// Puts `parts` on paper in place of the page.
function print(parts) {
  const paper = make('div', {id: 'paper'}, ...parts);
  body.append(paper);
  body.classList.add('on-paper');
  addEventListener('afterprint', () => {
    body.classList.remove('on-paper');
    paper.remove();
  }, {once: true});
  window.print();
}

async function printLesson() {
  const {core, lesson} = now, charts = await data(lesson + '-charts'), parts = [make('h1', {}, core.title)];
  for (const [k, stop] of core.stops.entries()) {
    const article = section().querySelector(`.stop[data-stop="${k + 1}"]`).cloneNode(true);
    article.hidden = article.querySelector('.text').hidden = false;
    article.querySelector('.ask').remove();
    const host = make('div', {class: 'picture'});
    if (stop.seen.run >= 0 && stop.tab !== 'measured') {
      const book = await data(`${lesson}-book-${stop.seen.wide}`);
      book.ids = core.ids;
      new Board(host).show(book, stop.lit === undefined ? book.at[book.places.indexOf(stop.seen.place)] : stop.lit, 0);
    }
    article.querySelector('h2').after(stop.tab === 'measured' && stop.chart >= 0 ? figure(charts[stop.chart]) : host);
    parts.push(article);
  }
  print(parts);
}

function printWorksheet() {
  const all = [...now.core.stops.map((stop) => stop.question).filter(Boolean), ...now.core.questions];
  const list = (of) => make('ol', {}, ...all.map(of));
  print([
    make('h1', {}, now.core.title), make('p', {}, 'Name: ______________________   Date: ______________'),
    list((question) => make('li', {}, make('p', {}, question.text), ...(question.choices.length
        ? question.choices.map((words, k) => make('p', {class: 'box tick'}, `${'ABCD'[k]}  ${words}`))
        : [make('p', {class: 'box'}, `A number from ${question.low} to ${question.high}: ____________`)]))),
    make('h1', {class: 'key'}, now.core.title + ': the answers'),
    list((question) => make('li', {}, make('p', {}, make('b', {}, question.choices.length
        ? `${'ABCD'[question.answer]}  ${question.choices[question.answer]}` : question.said),
        `, because ${question.because}`))),
  ]);
}

// ---- capsules -----------------------------------------------------------------------------------

/// Shows what a capsule holds, as text alone, and goes to its place where this page has its run.
async function openCapsule(text) {
  let capsule;
  try {
    capsule = JSON.parse(text);
  } catch {
    return message('This file is no capsule of tilestep: it is not JSON.');
  }
  const settings = capsule && capsule.settings;
  if (!capsule || capsule.tilestep_capsule !== 1 || typeof capsule.lesson !== 'string' || !settings ||
      typeof settings !== 'object') {
    return message('This file is no capsule of tilestep, or one of a newer tilestep.');
  }
  const lesson = capsule.lesson;
  if (!$(lesson + '-core')) {
    return message(`This capsule is of the lesson '${lesson}', which is on another page of the course; drop it there.`);
  }
  if (now.lesson !== lesson) await openLesson(lesson, 1);
  const told = Object.fromEntries(Object.entries(settings).map(([id, value]) => [id, String(value)]));
  const same = (run) => Object.entries(run).every(([id, value]) => {
    const theirs = told[id];
    return theirs === undefined || theirs === value || +theirs === +value || (value === 'off' && theirs === '0');
  });
  const number = now.core.runs.findIndex(same);
  const box = $('capsule');
  const report = capsule.report || {}, given = Array.isArray(report.tables) ? report.tables : [];
  const tables = given.filter((table) => table && Array.isArray(table.columns) && Array.isArray(table.rows));
  const words = (value) => (typeof value === 'string' || typeof value === 'number' ? String(value) : '');
  box.hidden = false;
  box.replaceChildren(
      make('h2', {}, 'A capsule', ' ',
           make('button', {type: 'button', onclick: () => { box.hidden = true; }}, 'Close')),
      make('p', {class: 'note'}, `Made ${words(capsule.made_at)} by tilestep ${words(capsule.program)}, with ` +
          (Object.entries(told).map(([id, value]) => `${id} = ${value}`).join(', ') || 'the defaults')),
      make('p', {}, words(report.summary)), make('p', {class: 'notes'}, words(capsule.notes)),
      ...tables.map((table) => make('section', {},
          make('h3', {}, words(table.title)),
          tableOf(table.columns.map((column) =>
              [words(column && (column.label || column.id)), words(column && column.unit)]),
                  table.rows.slice(0, 100).filter(Array.isArray).map((row) => row.map(words))))));
  const at = [...now.core.stops.map((stop) => stop.seen), ...now.core.stops.flatMap((stop) => stop.tries || []),
              ...Object.values(now.core.explore.runs)].find((seen) => seen.run >= 0 && seen.run === number);
  if (!at) {
    return message('This page has no pictures of this capsule: tilestep open shows them. Its numbers are below.');
  }
  const run = await data(`${lesson}-run-${number}`), s = run.steps;
  const tile = Number.isInteger(capsule.step) ? capsule.step : 0;
  const last = endOf(s, Math.min(Math.max(tile, 0), s.tiles));
  const within = Number.isInteger(capsule.phase) && capsule.phase >= 0;
  const phase = within ? endOf(s, Math.max(tile - 1, 0)) + capsule.phase + 1 : last;
  now.tried = 0;
  await showRun({...at, place: Math.min(phase, last)}, ++turn);
}

// ---- the page -----------------------------------------------------------------------------------

function goHome(part) {
  ++turn;
  $('course').hidden = true;
  $('home').hidden = part === 'glossary';
  $('glossary').hidden = part !== 'glossary';
  $('title').textContent = '';
  for (const each of document.querySelectorAll('[data-progress]')) {
    each.textContent = progress.words(each.dataset.progress);
  }
  for (const host of document.querySelectorAll('[data-card]')) {
    if (host.firstChild || !$(host.dataset.card + '-card')) continue;
    data(host.dataset.card + '-card').then((book) => new Board(host).show(book, 0, 0));
  }
}

/// Where the address leads: "#/coalescing/stop/4?stride=8", "#/glossary/warp", "#/". A picture that arrives between
/// a click on a link and its event writes its own address over the link's, which the event alone still has.
function follow(event) {
  const {hash} = event ? new URL(event.newURL) : location;
  const [path, tail] = hash.slice(1).split('?'), parts = path.split('/').filter(Boolean);
  const [lesson, , stop] = parts, query = tail ? new URLSearchParams(tail) : null;
  const home = hash.startsWith('#/') ? !lesson : !own;
  if (home || lesson === 'glossary') {
    if (!$('home')) return location.assign('../index.html' + hash);
    goHome(lesson);
    const term = parts[1] && $('term-' + parts[1]);
    if (term) term.focus();
    return;
  }
  const wanted = lesson || own;
  if (!$(wanted + '-core')) {
    const known = [...document.querySelectorAll('[data-card]')].map((card) => card.dataset.card);
    if (!own && !known.includes(wanted)) {
      goHome('');
      return message(`There is no lesson '${wanted}'; there are ${known.join(', ')}.`);
    }
    return location.assign((own ? '../' : '') + wanted + '/index.html' + hash);
  }
  const number = Math.max(+stop || 1, 1);
  if (!now.core || now.lesson !== wanted || $('course').hidden) return openLesson(wanted, number, query);
  goStop(Math.min(number, $('stops').querySelectorAll('a').length), query);
}

const kKeys = [['→ ←', 'a step on, a step back'], ['Shift + → ←', 'a phase'], ['Space', 'play'],
               ['Home End', 'first and last step'], ['] [', 'next and previous stop'], ['A B C D', 'answer'],
               ['K', 'kernel'], ['P', 'presenter'], ['?', 'these keys']];
const keyWords = () => kKeys.map(([keys, words]) => `${keys}: ${words}`).join(' · ');
const kActions = {
  ArrowRight: (event) => step(1, event.shiftKey),
  ArrowLeft: (event) => step(-1, event.shiftKey),
  PageDown: () => step(1, false),
  PageUp: () => step(-1, false),
  Home: () => jump(0),
  End: () => jump(placesOf(now.run.steps)),
  ' ': () => playTo(placesOf(now.run.steps)),
  ']': () => turnTo(now.stop + 1),
  '[': () => turnTo(now.stop - 1),
  k: () => openTab(now.tab === 'kernel' ? null : 'kernel'),
};
function turnTo(number) {
  const link = $('stops').querySelector(`a[data-stop="${number}"]`);
  if (link) location.hash = link.getAttribute('href');
}
function presenter() {
  const on = body.classList.toggle('presenter');
  $('presenter').setAttribute('aria-pressed', on);
}

addEventListener('keydown', (event) => {
  const {target, key} = event, typing = target.matches('input:not([type=range]), textarea');
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (key === '?') return message(keyWords());
  if (key === 'Escape') return message('');
  if (key.toLowerCase() === 'p') return presenter();
  if (!now.run || $('course').hidden) return;
  // A slider has its own keys; those of the place are the steps'.
  if (target.matches('input[type=range]') && target.id !== 'place' && /^(Arrow|Home|End|Page)/.test(key)) return;
  if (key === ' ' && target.matches('button, a, summary')) return;
  const letter = 'abcd'.indexOf(key.toLowerCase());
  if (now.asking && letter >= 0 && key.length === 1) {
    event.preventDefault();
    return now.asking.choose(letter);
  }
  const action = kActions[key.length === 1 ? key.toLowerCase() : key];
  if (!action) return;
  event.preventDefault();
  action(event);
});
document.addEventListener('click', (event) => {
  const chip = event.target.closest('.try'), save = event.target.closest('.exercise .save');
  if (save) {
    const lines = [...save.closest('details').querySelectorAll('li')].map((line) => line.textContent);
    saved(save.dataset.file, lines.join('\n') + '\n', 'text/plain');
  }
  if (!chip || !here()) return;
  const number = +chip.dataset.try, stop = here(), back = now.tried === number;
  const seen = back ? stop.seen : stop.tries[number];
  for (const each of section().querySelectorAll('.try')) each.setAttribute('aria-pressed', 'false');
  if (!seen || seen.run < 0) {
    return message(seen && seen.missing ? seen.missing : 'This run is not in these pages: tilestep site has it.');
  }
  message('');
  now.tried = back ? -1 : number;
  chip.setAttribute('aria-pressed', String(!back));
  showRun(seen, ++turn);
});
for (const [on, off] of [['pointerover', 'pointerout'], ['focusin', 'focusout']]) {
  document.addEventListener(on, (event) => {
    const word = event.target.closest && event.target.closest('[data-light]');
    if (word) board.light(word.dataset.light);
  });
  document.addEventListener(off, (event) => {
    if (event.target.closest && event.target.closest('[data-light]')) board.light('');
  });
}
$('first').onclick = () => jump(0);
$('back').onclick = () => step(-1, false);
$('forth').onclick = () => step(1, false);
$('play').onclick = () => playTo(placesOf(now.run.steps));
$('place').oninput = () => jump(+$('place').value);
$('presenter').onclick = presenter;
$('print').onclick = () => (now.core ? printLesson() : window.print());
$('worksheet').onclick = () => now.core && printWorksheet();
$('keys').onclick = () => message($('message').hidden ? keyWords() : '');
if ($('search')) {
  const plain = (text) => text.toLowerCase().normalize('NFD').replace(/[\u0300-\u036f]/g, '').replace(/-/g, ' ');
  $('search').oninput = () => {
    const query = plain($('search').value.trim());
    for (const term of document.querySelectorAll('article.term')) {
      term.hidden = query !== '' && !plain(term.dataset.names + ' ' + term.textContent).includes(query);
    }
  };
}
addEventListener('dragover', (event) => event.preventDefault());
addEventListener('drop', async (event) => {
  event.preventDefault();
  const file = event.dataTransfer.files[0];
  if (!file) return;
  const text = await file.text().catch(() => undefined);
  if (text === undefined) return message(`'${file.name}' could not be read; drop it again.`);
  openCapsule(text);
});
light.addEventListener('change', () => board.recolour());
phone.addEventListener('change', () => now.shown && showRun({...now.shown, place: now.place}, ++turn));
addEventListener('hashchange', follow);
follow();
})();
