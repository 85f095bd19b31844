#include "render/page_parts.h"

#include "render/table.h"

namespace meshplan {
namespace {

constexpr const char* page_style = R"(
body { font-family: system-ui, sans-serif; margin: 1.5em; color: #222 }
select, input { font-size: 1em; max-width: 100% }
.plan, .frame { display: none }
.plan.on, .frame.on { display: block }
.picture, .list { overflow: auto; max-height: 70vh }
.list { max-height: 26em }
.step { color: #0b57a4; min-height: 1.4em }
.why, .from { color: #555; min-height: 1.4em; overflow-wrap: anywhere }
.from { max-height: 6em; overflow: auto }
code, .state, pre { font-family: ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; overflow-wrap: anywhere }
pre { overflow: auto; max-height: 26em }
table { border-collapse: collapse; font-size: .9em }
td, th { padding: .2em .7em; text-align: left; border-bottom: 1px solid #ddd }
.list th { position: sticky; top: 0; background: #fff }
th button { font: inherit; border: 0; background: none; padding: 0; cursor: pointer; color: #0b57a4 }
.n { text-align: right; white-space: nowrap }
input[type=range] { width: 24em; max-width: 90% }
#all tbody tr { cursor: pointer }
tr.on td { background: #eaf2fb }
[data-rank] { cursor: pointer }
.picture { padding: 2px }
.picture svg { overflow: visible }
.to { outline: none }
.to.on .hit { stroke: #c00; stroke-width: 2 }
.to.on .arrow { display: inline }
.ins { color: #176f2c } .del { color: #b3261e }
)";

constexpr const char* script = R"(
const one = id => document.getElementById(id);
const which = one('which'), step = one('step'), at = one('at'), find = one('find'), table = one('all');
const plans = [...document.querySelectorAll('.plan')];
const rows = [...table.querySelectorAll('tbody tr')];
const options = [...which.querySelectorAll('option')];
let chosen = 0;  // a row
const first = row => row.dataset.as === undefined ? row : rows[+row.dataset.as];
const frames = () => [...plans[+rows[chosen].dataset.section].querySelectorAll('.frame')];
const shown = () => frames()[+step.value];

// Who sends what to the rank in the shown step: in words, and as its arrows in the picture.
function point(rank) {
  const frame = shown(), from = frame.querySelector('.from');
  const ranks = [...frame.querySelectorAll('.to')];
  ranks.forEach(each => each.classList.toggle('on', each.dataset.rank === String(rank)));
  const into = JSON.parse(frame.dataset.senders)[rank] || [];
  if (frame.dataset.missing) from.textContent = frame.dataset.missing;
  else from.textContent = 'rank ' + rank + (into.length ? ' receives ' +
      into.map(([sender, box, bytes]) => box + ' from rank ' + sender + ' (' + bytes + ')').join(', ') : ' receives nothing');
}

function draw() {
  const row = rows[chosen];
  which.value = row.dataset.as === undefined ? chosen : +row.dataset.as;
  plans.forEach((plan, i) => plan.classList.toggle('on', i === +row.dataset.section));
  const all = frames();
  step.max = Math.max(all.length - 1, 0);
  if (+step.value > +step.max) step.value = step.max;
  all.forEach((frame, i) => frame.classList.toggle('on', i === +step.value));
  rows.forEach((row, i) => row.classList.toggle('on', i === chosen));
  at.textContent = step.value + ' of ' + step.max;
  const ranked = shown().querySelector('[data-rank]');
  if (ranked) point(ranked.dataset.rank);
  location.replace('#' + chosen + '.' + step.value);
}

function choose(index) {
  chosen = index;
  step.value = 0;
  draw();
}

// What a row has in a column; a repeat, beside its name and count, that of the first as often as it
// happens itself.
function value(row, column) {
  const said = cell => cell.dataset.value ?? cell.textContent;
  if (first(row) === row || column < 2) return said(row.children[column]);
  const whole = first(row).children[column];
  if (whole.dataset.value === undefined) return said(whole);
  return String(whole.dataset.value / said(first(row).children[1]) * said(row.children[1]));
}

// Sorts by a column, numbers by their value; the same column again turns the order.
let sorted = -1, down = true;
function sort(column) {
  down = column === sorted ? !down : true;
  sorted = column;
  const list = rows.map(row => [value(row, column), row]);
  const number = list.every(([its]) => its !== '' && !isNaN(its));
  const order = ([a], [b]) => number ? b - a : b < a ? -1 : b > a ? 1 : 0;
  list.sort((a, b) => down === number ? order(a, b) : order(b, a));
  table.querySelector('tbody').append(...list.map(([, row]) => row));
}

function search() {
  const words = find.value.toLowerCase().split(' ').filter(word => word);
  rows.forEach(row => {
    const text = (row.textContent + ' ' + first(row).textContent).toLowerCase();
    row.hidden = !words.every(word => text.includes(word));
  });
  options.forEach(option => { option.hidden = rows[+option.value].hidden; });
}

which.addEventListener('change', () => choose(+which.value));
step.addEventListener('input', draw);
find.addEventListener('input', search);
rows.forEach((row, i) => row.addEventListener('click', event => {
  const leads = event.target.closest('a') !== null;  // to the first
  choose(leads ? +row.dataset.as : i);
  if (leads) first(row).scrollIntoView({block: 'nearest'});
}));
table.querySelectorAll('th button').forEach((button, i) => button.addEventListener('click', () => sort(i)));
for (const kind of ['mouseover', 'click', 'focusin']) {
  document.addEventListener(kind, event => {
    const cell = event.target.closest && event.target.closest('[data-rank]');
    if (cell) point(cell.dataset.rank);
  });
}
const hash = location.hash.slice(1).split('.');
if (rows.length) {
  chosen = rows[+hash[0]] ? +hash[0] : 0;
  step.max = 1000;
  step.value = hash[1] || 0;
  draw();
}
)";

}  // namespace

std::string page_head(const std::string& title) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>" +
         escape_html(title) +
         "</title>\n<meta name=\"viewport\" content=\"width=device-width\">\n<style>" + page_style +
         "</style>\n</head>\n<body>\n";
}

std::string plan_page_script() { return std::string("<script>") + script + "</script>\n"; }

}  // namespace meshplan
