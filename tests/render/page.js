#!/usr/bin/env node
// Runs the script of a plan's page over a small document (fake_dom.js): slider, senders and arrows, sorting, search, links.
//
// usage: page.js MESHPLAN      answers 0 where everything is as expected
'use strict';
const assert = require('assert');
const {execFileSync} = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const {parse} = require('./fake_dom.js');

const meshplan = path.resolve(process.argv[2]);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'meshplan-page-'));
const make = (name, ...words) => {
  const file = path.join(folder, name);
  execFileSync(meshplan, [...words, '-o', file], {cwd: folder, stdio: 'pipe'});
  return fs.readFileSync(file, 'utf8');
};
const spec = (name, dims, redistributions) => fs.writeFileSync(path.join(folder, name), JSON.stringify(
    {schema: 'meshplan/spec/1', mesh: {dims}, options: {planner: 'greedy'}, redistributions}));

// The page with its script running at a link.
function open(html, hash = '') {
  const document = parse(html), location = {hash, replace: to => { location.hash = to; }};
  const script = document.querySelectorAll('script');
  assert.strictEqual(script.length, 1);
  new Function('document', 'location', script[0].textContent)(document, location);
  const one = selector => document.querySelector(selector);
  return {document, location, one, frame: () => ['.plan', '.frame'].reduce(
      (inside, kind) => inside.querySelectorAll(kind).find(part => part.classList.contains('on')), document)};
}

function check() {
  const tensor = {shape: [8, 6], dtype: 'float32'};
  spec('spec.json', [{name: 'a_long_name_of_a_dim', size: 2}, {name: 'b_long_name_of_a_dim', size: 2}], [
    {id: 'wq', tensor, src: ['S(0)', 'S(1)'], dst: ['R', 'R'], count: 3},
    {id: 'wk', tensor, src: ['S(0)', 'S(1)'], dst: ['R', 'R'], count: 9},
    {id: 'large', tensor: {shape: [8000, 600], dtype: 'float32'}, src: ['R', 'P(sum)'], dst: ['R', 'R']}]);
  make('plan.json', 'plan', 'spec.json', '-q', '-W', 'no-missing-flatten');
  const html = make('plan.html', 'show', 'plan.json', '--format', 'html');
  const page = open(html);
  const plans = page.document.querySelectorAll('.plan'), step = page.one('#step'), which = page.one('#which');

  // Repeats share a section and its choice; one frame is shown.
  assert.strictEqual(plans.length, 2);
  assert.deepStrictEqual(page.document.querySelectorAll('option').map(o => o.value), ['0', '2']);
  assert.deepStrictEqual(plans.map(p => p.classList.contains('on')), [true, false]);
  assert.strictEqual(step.max, '2');
  assert.match(page.frame().querySelector('.from').textContent, /the source/);

  // The slider: what the first rank receives, and an arrow from whom.
  step.value = 1;
  step.fire('input');
  assert.strictEqual(page.location.hash, '#0.1');
  assert.strictEqual(page.one('#at').textContent, '1 of 2');
  const from = () => page.frame().querySelector('.from').textContent;
  const pointed = () => page.frame().querySelectorAll('.to').filter(c => c.classList.contains('on'));
  const arrows = () => pointed().flatMap(c => c.querySelectorAll('.arrow'));
  assert.strictEqual(from(), 'rank 0 receives [0:4, 3:6] from rank 1 (48 B)');
  const [cell0, cell1, , cell3] = page.frame().querySelectorAll('[data-rank]');
  const middle = cell => {
    const box = cell.querySelector('.hit'), get = name => +box.getAttribute(name);
    return (get('x') + get('width') / 2) + ' ' + (get('y') + get('height') / 2);
  };
  const ends = arrow => arrow.getAttribute('d').match(/^M(\d+ \d+)Q\d+ \d+ (\d+ \d+)$/).slice(1);
  assert.deepStrictEqual(arrows().map(ends), [[middle(cell1), middle(cell0)]]);
  for (const kind of ['mouseover', 'click', 'focusin']) {
    cell0.querySelector('.hit').fire(kind);
    assert.match(from(), /^rank 0 receives/);
    cell3.querySelector('.hit').fire(kind);
    assert.strictEqual(from(), 'rank 3 receives [4:8, 0:3] from rank 2 (48 B)');
    assert.strictEqual(arrows().length, 1);
    assert.deepStrictEqual(pointed(), [cell3]);
  }
  assert.match(cell3.querySelector('title').textContent, /rank 3: .*; receives \[4:8, 0:3\] from rank 2 \(48 B\)/);

  // Names of neighbouring columns do not touch: 7 pixels a character, centred.
  const labels = page.frame().querySelectorAll('.axis').filter(l => l.getAttribute('text-anchor') === 'middle');
  const places = labels.map(l => [+l.getAttribute('x'), l.textContent.length * 3.5]);
  for (let i = 1; i < places.length; ++i) assert(places[i][0] - places[i - 1][0] >= places[i][1] + places[i - 1][1], `labels ${i - 1} and ${i} collide`);

  // The table: a row chooses, columns sort by their values, words search.
  const body = page.one('#all').querySelector('tbody');
  const ids = () => body.children.filter(c => c.tag === 'tr').map(r => r.querySelector('td').textContent);
  const heads = page.one('#all').querySelectorAll('th button');
  const head = name => heads.find(h => h.textContent === name);
  assert.deepStrictEqual(ids(), ['wq', 'wk', 'large']);
  head('predicted').fire('click');
  assert.strictEqual(ids()[2], 'wq');
  head('predicted').fire('click');
  assert.strictEqual(ids()[0], 'wq');
  head('redistribution').fire('click');
  assert.deepStrictEqual(ids(), ['large', 'wk', 'wq']);
  const row = id => body.querySelectorAll('tr').find(r => r.querySelector('td').textContent === id);
  row('large').fire('click');
  assert.strictEqual(which.value, '2');
  assert.deepStrictEqual(plans.map(p => p.classList.contains('on')), [false, true]);
  assert(row('large').classList.contains('on') && !row('wq').classList.contains('on'));
  // A repeat is a short row that leads to the first and is shown as that one is.
  assert.strictEqual(row('wk').children.length, 3);
  assert.strictEqual(row('wk').textContent, 'wk9the same as wq');
  row('wk').fire('click');
  assert.deepStrictEqual([which.value, page.location.hash], ['0', '#1.0']);
  assert.deepStrictEqual(plans.map(p => p.classList.contains('on')), [true, false]);
  assert(row('wk').classList.contains('on') && !row('wq').classList.contains('on'));
  row('wk').querySelector('a').fire('click');
  assert.deepStrictEqual([page.location.hash, row('wq').scrolledTo], ['#0.0', true]);
  assert(row('wq').classList.contains('on') && !row('wk').classList.contains('on'));
  assert.strictEqual(open(html, '#1.1').one('#at').textContent, '1 of 2');
  for (const [name, order] of [['count', ['wk', 'wq', 'large']], ['wire bytes', ['large', 'wk', 'wq']]]) {
    head('tensor').fire('click');
    assert.strictEqual(ids().indexOf('large') % 2, 0, 'wk stands beside wq');
    head(name).fire('click');
    assert.deepStrictEqual(ids(), order, name);
  }
  page.one('#find').value = 'wk float32[8,';
  page.one('#find').fire('input');
  assert.deepStrictEqual(['wq', 'wk', 'large'].map(id => row(id).hidden), [true, false, true]);
  page.one('#find').value = 'LARGE float32';
  page.one('#find').fire('input');
  assert.deepStrictEqual(['wq', 'wk', 'large'].map(id => row(id).hidden), [true, true, false]);

  // Links open their step; those that lead nowhere open the first.
  assert.strictEqual(open(html, '#0.2').one('#at').textContent, '2 of 2');
  assert.strictEqual(open(html, '#1.1').one('#at').textContent, '1 of 2');
  assert.strictEqual(open(html, '#7.9').one('#at').textContent, '2 of 2');

  // What is long scrolls in its own place, and needs nothing from elsewhere.
  const css = page.one('style').textContent;
  for (const part of ['.picture, .list { overflow: auto; max-height', '.from { max-height']) assert(css.includes(part), part);
  assert(!/https?:\/\//.test(html));

  // Across meshes the frame before the step is in the picture, and arrows begin at its ranks.
  fs.writeFileSync(path.join(folder, 'cross.json'), JSON.stringify({schema: 'meshplan/spec/1', meshes: [
    {name: 'train', world: 4, dims: [{name: 'tp', size: 4}]}, {name: 'serve', world: 3, ranks: '4-6', dims: [{name: 'dp', size: 3}]}],
    redistributions: [{id: 'w', tensor: {shape: [13], dtype: 'int8'}, src_mesh: 'train', dst_mesh: 'serve', src: ['S(0)'], dst: ['R']}]}));
  make('cross.plan.json', 'plan', 'cross.json', '-q');
  const cross = open(make('cross.html', 'show', 'cross.plan.json', '--format', 'html'), '#0.1');
  const serving = cross.frame().querySelectorAll('[data-rank]');
  assert.deepStrictEqual(serving.map(c => [c.dataset.rank, c.querySelectorAll('.arrow').length]), [['4', 4], ['5', 4], ['6', 4]]);
  assert.strictEqual(cross.frame().querySelectorAll('.cell').length, 7);
  const starts = new Set(serving.flatMap(c => c.querySelectorAll('.arrow').map(a => ends(a)[0])));
  assert.strictEqual(starts.size, 4);
  for (const cell of serving) assert(!starts.has(middle(cell)));
  assert.match(cross.frame().querySelector('.from').textContent, /rank 4 receives \[0:4\] from rank 0 \(4 B\), .* from rank 3/);

  // A long label of the only column that there is begins inside the picture.
  spec('one.json', [{name: 'a_long_name_of_a_dim', size: 2}], [{id: 'w', tensor, src: ['S(0)'], dst: ['R']}]);
  make('one.plan.json', 'plan', 'one.json', '-q');
  const [label] = open(make('one.html', 'show', 'one.plan.json', '--format', 'html')).frame().querySelectorAll('.axis');
  assert(label.getAttribute('x') >= label.textContent.length * 3.5, `${label.textContent} begins left of the picture`);

  // The picture of the same: the first that receives has its arrows, a style shows those of others.
  const svg = make('cross.svg', 'show', 'cross.plan.json', '--format', 'svg');
  assert.strictEqual(svg.split('class="to first"').length, 2);
  assert.strictEqual(svg.split('class="arrow"').length, 13);
  assert(svg.includes('.to:hover .arrow'));

  // A plan without redistributions is a page, too.
  spec('none.json', [{name: 'a', size: 2}], []);
  make('none.plan.json', 'plan', 'none.json', '-q');
  open(make('none.html', 'show', 'none.plan.json', '--format', 'html'));

  // The diff's page is whole and says the same words as the text.
  spec('old.json', [{name: 'a', size: 4}], [{id: 'x<y', tensor, src: ['S(0)'], dst: ['R']}]);
  spec('new.json', [{name: 'a', size: 4}], [{id: 'x<y', tensor, src: ['P(sum)'], dst: ['R']}]);
  let page_text = '';
  try {
    make('diff.html', 'diff', 'old.json', 'new.json', '--format', 'html');
  } catch (error) {
    assert.strictEqual(error.status, 1);
    page_text = fs.readFileSync(path.join(folder, 'diff.html'), 'utf8');
  }
  const diff = parse(page_text);
  assert.strictEqual(diff.querySelectorAll('details').length, 1);
  assert.match(diff.querySelector('table').textContent, /x<y.*TOTAL/s);
  assert.match(diff.querySelector('.ins').textContent, /P\(sum\)/);
}

try {
  check();
  console.log('the page does what it says');
} catch (error) {
  console.error(error.stack);
  process.exitCode = 1;
} finally {
  fs.rmSync(folder, {recursive: true});
}
