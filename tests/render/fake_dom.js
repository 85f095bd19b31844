// As much of a browser's document as the page's script asks for: parsed from the page's text.
'use strict';

const VOID = new Set(['meta', 'input', 'rect', 'path', 'line', 'br']);
const ENTITIES = {amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'"};
const unescape = text => text.replace(/&(#?\w+);/g, (whole, name) => ENTITIES[name] ?? whole);

class Element {
  constructor(tag) {
    Object.assign(this, {tag, attributes: {}, children: [], parent: null, listeners: {}, own: '', hidden: false});
    this.classList = {
      toggle: (name, on) => {
        const names = new Set((this.attributes.class || '').split(' ').filter(n => n));
        if (on) names.add(name); else names.delete(name);
        this.attributes.class = [...names].join(' ');
      },
      contains: name => (this.attributes.class || '').split(' ').includes(name),
    };
    this.dataset = new Proxy({}, {get: (_, name) => this.attributes['data-' + name]});
  }
  get textContent() { return this.own + this.children.map(c => c.textContent).join(''); }
  set textContent(text) { this.own = text; this.children = []; }
  get value() { return this.attributes.value ?? ''; }
  set value(value) { this.attributes.value = String(value); }
  get max() { return this.attributes.max; }
  set max(value) { this.attributes.max = String(value); }
  getAttribute(name) { return this.attributes[name] ?? null; }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  addEventListener(kind, run) { (this.listeners[kind] ||= []).push(run); }
  fire(kind) {
    for (const run of this.listeners[kind] || []) run({target: this});
    if (this.parent) this.parent.fire_at(kind, this);
  }
  fire_at(kind, target) {
    for (const run of this.listeners[kind] || []) run({target});
    if (this.parent) this.parent.fire_at(kind, target);
  }
  scrollIntoView() { this.scrolledTo = true; }
  append(...more) {
    for (const child of more) {
      child.remove();
      child.parent = this;
      this.children.push(child);
    }
  }
  remove() {
    if (this.parent) this.parent.children = this.parent.children.filter(c => c !== this);
    this.parent = null;
  }
  closest(selector) {
    for (let at = this; at; at = at.parent) if (at.matches(selector)) return at;
    return null;
  }
  matches(simple) {  // tag, .class, #id, [attribute]
    const [, tag, kind, name] = /^(\w*)(?:([.#[])([\w-]+)\]?)?$/.exec(simple);
    if (tag && tag !== this.tag) return false;
    if (kind === '.') return this.classList.contains(name);
    if (kind === '#') return this.attributes.id === name;
    return kind === '[' ? name in this.attributes : true;
  }
  querySelectorAll(selector) {
    const parts = selector.split(' '), found = [];
    const walk = (element, above) => {
      for (const child of element.children) {
        const fits = child.matches(parts[above]);
        if (fits && above === parts.length - 1) found.push(child);
        walk(child, fits && above < parts.length - 1 ? above + 1 : above);
      }
    };
    walk(this, 0);
    return found;
  }
  querySelector(selector) { return this.querySelectorAll(selector)[0] ?? null; }
}

// Throws where elements are not closed in their order.
function parse(html) {
  const root = new Element('#document');
  let at = root, place = 0;
  const token = /<!DOCTYPE[^>]*>|<(script|style)>([\s\S]*?)<\/\1>|<(\/?)([\w]+)((?:\s+[\w-]+(?:="[^"]*")?)*)\s*(\/?)>|[^<]+/gy;
  while (place < html.length) {
    token.lastIndex = place;
    const found = token.exec(html);
    if (!found) throw new Error('cannot read the page at: ' + html.slice(place, place + 80));
    place = token.lastIndex;
    const [text, raw, inside, closes, tag, attributes, alone] = found;
    if (raw) {
      const element = new Element(raw);
      element.own = inside;
      at.append(element);
    } else if (tag && closes) {
      if (at.tag !== tag) throw new Error(`</${tag}> inside <${at.tag}>`);
      at = at.parent;
    } else if (tag) {
      const element = new Element(tag);
      for (const [, name, value] of attributes.matchAll(/([\w-]+)(?:="([^"]*)")?/g)) element.attributes[name] = unescape(value ?? '');
      at.append(element);
      if (!alone && !VOID.has(tag)) at = element;
    } else if (text[0] !== '<') {
      const words = new Element('#text');
      words.own = unescape(text);
      at.append(words);
    }
  }
  if (at !== root) throw new Error(`<${at.tag}> is not closed`);
  root.getElementById = id => root.querySelector('#' + id);
  root.createElementNS = (_, name) => new Element(name);
  return root;
}

module.exports = {parse};
