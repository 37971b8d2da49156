// The tasks of a plan, or the steps of a workflow, as a drawing that is moved and zoomed. Far away it is one shape for
// each status; near, each task in sight is drawn with its name. So it stays fluent with thousands of tasks.

import {html, nothing, render, svg} from '../../vendor/lit-html/lit-html.js';
import {repeat} from '../../vendor/lit-html/directives/repeat.js';
import {words} from '../format.js';
import {layout, lineOf, NODE} from '../graph/layout.js';
import {icon} from '../icons.js';
import {announce} from '../page.js';
import {tone} from '../parts.js';

const LARGEST = 2;
const NAMES_FROM = 0.45;
// So few are drawn with their names however far away they are.
const FEW = 100;
const READABLE = 0.85;
const ZOOM_STEP = 1.25;
const FIT_MARGIN = 24;
// What is drawn reaches this part of the sight beyond it, so that a short move draws nothing anew.
const BEYOND = 0.25;
const NAME_LENGTH = 21;

class PlanGraph extends HTMLElement {
  #graph = null;
  #structure = '';
  #layout = null;
  #rows = [];
  #selected = null;
  #letThrough = null;
  #line = null;
  #sight = {x: 0, y: 0, scale: 1};
  #drawnFor = null;
  #pointers = new Map();
  #moved = 0;
  #scheduled = false;
  #isFitted = true;
  #isPlaced = false;
  #observer = new ResizeObserver(() => this.#resize());

  connectedCallback() {
    render(this.#frame(), this);
    this.#observer.observe(this);
    this.addEventListener('wheel', this.#onWheel, {passive: false});
    this.addEventListener('pointerdown', this.#onPointerDown);
    this.addEventListener('pointermove', this.#onPointerMove);
    this.addEventListener('pointerup', this.#onPointerUp);
    this.addEventListener('pointercancel', this.#onPointerUp);
    this.addEventListener('keydown', this.#onKey);
  }

  disconnectedCallback() {
    this.#observer.disconnect();
  }

  // `{rows: [{id, name, status, agent}], edges}`: only statuses change often, and they leave the layout as it is.
  set graph(graph) {
    if (graph === this.#graph) return;
    this.#graph = graph;
    this.#rows = graph.rows;
    const structure = `${graph.rows.map(({id}) => id).join()}|${graph.edges.join('|')}`;
    if (structure !== this.#structure) {
      this.#structure = structure;
      this.#layout = layout(graph.rows.length, graph.edges);
      this.#line = null;
      this.style.setProperty('--wanted', `${Math.ceil(this.#layout.height) + FIT_MARGIN * 2}px`);
      if (this.#isPlaced && this.#isFitted) this.fit();
    }
    this.#drawnFor = null;
    this.#schedule();
  }

  set selected(id) {
    if (id === this.#selected) return;
    this.#selected = id;
    this.#line = null;
    this.#drawnFor = null;
    if (id && this.#layout && this.clientWidth) this.#reveal(this.#positionOf(id));
    this.#schedule();
  }

  // The ids of the tasks that a filter lets through, or null if there is none.
  set letThrough(ids) {
    if (ids === this.#letThrough) return;
    this.#letThrough = ids;
    this.#drawnFor = null;
    this.#schedule();
  }

  fit() {
    const {width, height} = this.#layout;
    const scale = Math.min(
      1,
      (this.clientWidth - FIT_MARGIN * 2) / Math.max(1, width),
      (this.clientHeight - FIT_MARGIN * 2) / Math.max(1, height),
    );
    this.#sight = {scale, x: (this.clientWidth - width * scale) / 2, y: (this.clientHeight - height * scale) / 2};
    this.#isFitted = true;
    this.#schedule();
  }

  // Zoom at a point of the element; its middle unless given.
  zoom(factor, x = this.clientWidth / 2, y = this.clientHeight / 2) {
    const before = this.#sight.scale;
    const scale = Math.min(LARGEST, Math.max(this.#smallest(), before * factor));
    this.#sight = {scale, x: x - ((x - this.#sight.x) / before) * scale, y: y - ((y - this.#sight.y) / before) * scale};
    this.#isFitted = false;
    this.#schedule();
  }

  #smallest() {
    return Math.min(
      0.2,
      this.clientWidth / (this.#layout.width * 1.5),
      this.clientHeight / (this.#layout.height * 1.5),
    );
  }

  #resize() {
    if (!this.#layout || !this.clientWidth) return;
    const chosen = this.#positionOf(this.#selected);
    if (!this.#isPlaced) this.#placeFirst(chosen);
    else if (chosen >= 0) this.#reveal(chosen);
    else if (this.#isFitted) this.fit();
    this.#drawnFor = null;
    this.#schedule();
  }

  // At first the whole plan is shown; a task that is chosen, or on a small screen what is at work, so that it can be read.
  #placeFirst(chosen) {
    this.#isPlaced = true;
    this.fit();
    const isTiny = this.#sight.scale < NAMES_FROM && this.#rows.length <= FEW;
    const first = chosen < 0 && isTiny ? this.#begin() : chosen;
    if (first < 0 || this.#sight.scale >= READABLE) return;
    const {x, y} = this.#layout.nodes[first];
    this.#sight = {
      scale: READABLE,
      x: this.clientWidth / 2 - (x + NODE.width / 2) * READABLE,
      y: this.clientHeight / 2 - (y + NODE.height / 2) * READABLE,
    };
    this.#isFitted = false;
  }

  #begin() {
    return Math.max(
      0,
      this.#rows.findIndex(({status}) => status === 'in_progress'),
    );
  }

  #positionOf(id) {
    return this.#rows.findIndex((row) => row.id === id);
  }

  // Move as little as needed to have a task in sight.
  #reveal(position) {
    if (position < 0) return;
    const {x, y} = this.#layout.nodes[position];
    const {scale} = this.#sight;
    const left = x * scale + this.#sight.x;
    const top = y * scale + this.#sight.y;
    const moveX =
      Math.max(FIT_MARGIN - left, 0) || Math.min(this.clientWidth - FIT_MARGIN - NODE.width * scale - left, 0);
    const moveY =
      Math.max(FIT_MARGIN - top, 0) || Math.min(this.clientHeight - FIT_MARGIN - NODE.height * scale - top, 0);
    if (!moveX && !moveY) return;
    this.#sight = {scale, x: this.#sight.x + moveX, y: this.#sight.y + moveY};
    this.#isFitted = false;
  }

  #schedule() {
    if (this.#scheduled || !this.isConnected) return;
    this.#scheduled = true;
    requestAnimationFrame(() => {
      this.#scheduled = false;
      if (this.isConnected && this.#layout) this.#draw();
    });
  }

  #frame() {
    return html`<svg class="graph" role="group" tabindex="0" aria-label=${this.getAttribute('label')}>
        <g class="world"></g>
      </svg>
      <div class="graph-tools">
        <button
          type="button"
          class="icon-button"
          aria-label="Zoom in"
          title="Zoom in (+)"
          @click=${() => this.zoom(ZOOM_STEP)}
        >
          ${icon('plus')}
        </button>
        <button
          type="button"
          class="icon-button"
          aria-label="Zoom out"
          title="Zoom out (−)"
          @click=${() => this.zoom(1 / ZOOM_STEP)}
        >
          ${icon('minus')}
        </button>
        <button type="button" class="icon-button" aria-label="Show all" title="Show all (0)" @click=${() => this.fit()}>
          ${icon('fit')}
        </button>
      </div>`;
  }

  #draw() {
    const world = this.querySelector('.world');
    const {x, y, scale} = this.#sight;
    world.setAttribute('transform', `translate(${x} ${y}) scale(${scale})`);
    const near = scale >= NAMES_FROM || this.#rows.length <= FEW;
    const drawn = this.#drawnFor;
    const seen = {
      left: -x / scale,
      top: -y / scale,
      right: (this.clientWidth - x) / scale,
      bottom: (this.clientHeight - y) / scale,
    };
    if (drawn && drawn.near === near && (!near || contains(drawn.area, seen))) return;
    const area = grown(seen);
    this.#drawnFor = {near, area};
    render(near ? this.#near(area) : this.#far(), world);
  }

  #far() {
    const {nodes} = this.#layout;
    const shapes = new Map();
    this.#rows.forEach((row, position) => {
      const key = this.#isDim(position) ? 'dim' : row.status;
      const {x, y} = nodes[position];
      shapes.set(key, `${shapes.get(key) ?? ''}M${x} ${y}h${NODE.width}v${NODE.height}h-${NODE.width}z`);
    });
    const chosen = nodes[this.#positionOf(this.#selected)];
    return svg`${this.#edges(this.#graph.edges)}
      ${[...shapes].map(([status, shape]) => svg`<path class="far far-${status}" d=${shape}></path>`)}
      ${chosen ? svg`<rect class="far-chosen" x=${chosen.x - 8} y=${chosen.y - 8} width=${NODE.width + 16} height=${NODE.height + 16} rx="12"></rect>` : nothing}`;
  }

  #near(area) {
    const {nodes} = this.#layout;
    const inSight = (position) => {
      const {x, y} = nodes[position];
      return x + NODE.width > area.left && x < area.right && y + NODE.height > area.top && y < area.bottom;
    };
    const positions = [];
    for (let position = 0; position < nodes.length; position += 1) if (inSight(position)) positions.push(position);
    const edges = this.#graph.edges.filter(([from, to]) => crosses(nodes[from], nodes[to], area));
    return svg`${this.#edges(edges)}${repeat(
      positions,
      (position) => this.#rows[position].id,
      (position) => this.#node(position),
    )}`;
  }

  #edges(edges) {
    const {nodes} = this.#layout;
    const line = this.#lineOfSelected();
    const isOn = ([from, to]) =>
      line &&
      ((line.before.has(from) && (line.before.has(to) || to === line.node)) ||
        (line.after.has(to) && (line.after.has(from) || from === line.node)));
    const rest = line ? edges.filter((edge) => !isOn(edge)) : edges;
    return svg`<path class=${line ? 'edges is-dim' : 'edges'} d=${rest.map((edge) => curve(nodes, edge)).join('')}></path>
      ${
        line
          ? svg`<path class="edges is-on" d=${edges
              .filter(isOn)
              .map((edge) => curve(nodes, edge))
              .join('')}></path>`
          : nothing
      }`;
  }

  #node(position) {
    const {id, name, status, agent} = this.#rows[position];
    const {x, y} = this.#layout.nodes[position];
    const names = ['node', `node-${status}`, `tone-${tone(status)}`];
    if (id === this.#selected) names.push('is-chosen');
    if (this.#isDim(position)) names.push('is-dim');
    return svg`<g class=${names.join(' ')} data-id=${id} transform=${`translate(${x} ${y})`}>
      <title>${name} (${words(status).toLowerCase()})</title>
      <rect class="node-box" width=${NODE.width} height=${NODE.height} rx="8"></rect>
      <rect class="node-mark" x="0" y="0" width="5" height=${NODE.height} rx="2.5"></rect>
      <text class="node-name" x="16" y="19">${cut(name)}</text>
      <text class="node-detail" x="16" y="35">${cut(agent ? `${words(status)} · ${agent}` : words(status), 26)}</text></g>`;
  }

  #neighbours(position, direction) {
    const {edges} = this.#graph;
    const linked = {
      Left: () => edges.filter(([, to]) => to === position).map(([from]) => from),
      Right: () => edges.filter(([from]) => from === position).map(([, to]) => to),
    };
    const found = linked[direction]?.() ?? [];
    return found.length ? found : nodesOf(this.#layout);
  }

  #isDim(position) {
    if (this.#letThrough && !this.#letThrough.has(this.#rows[position].id)) return true;
    const line = this.#lineOfSelected();
    return Boolean(line) && position !== line.node && !line.before.has(position) && !line.after.has(position);
  }

  #lineOfSelected() {
    if (!this.#selected) return null;
    const node = this.#positionOf(this.#selected);
    if (node >= 0) this.#line ??= {node, ...lineOf(node, this.#graph.edges)};
    return this.#line;
  }

  #taskAt(clientX, clientY) {
    const box = this.getBoundingClientRect();
    const x = (clientX - box.left - this.#sight.x) / this.#sight.scale;
    const y = (clientY - box.top - this.#sight.y) / this.#sight.scale;
    return this.#layout.nodes.findIndex(
      (node) => x >= node.x && x <= node.x + NODE.width && y >= node.y && y <= node.y + NODE.height,
    );
  }

  #choose(position) {
    this.dispatchEvent(new CustomEvent('choose', {detail: position < 0 ? null : this.#rows[position].id}));
  }

  #onWheel = (event) => {
    if (!this.#layout || event.target.closest('.graph-tools')) return;
    event.preventDefault();
    const box = this.getBoundingClientRect();
    this.zoom(
      Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0018)),
      event.clientX - box.left,
      event.clientY - box.top,
    );
  };

  #onPointerDown = (event) => {
    if (event.button || event.target.closest('.graph-tools')) return;
    this.#pointers.set(event.pointerId, event);
    this.#moved = 0;
    this.setPointerCapture(event.pointerId);
  };

  #onPointerMove = (event) => {
    const before = this.#pointers.get(event.pointerId);
    if (!before) return;
    const others = [...this.#pointers.values()].filter(({pointerId}) => pointerId !== event.pointerId);
    this.#pointers.set(event.pointerId, event);
    this.#moved += Math.hypot(event.clientX - before.clientX, event.clientY - before.clientY);
    if (others.length === 1) this.#pinch(before, event, others[0]);
    else this.#pan(event.clientX - before.clientX, event.clientY - before.clientY);
  };

  #onPointerUp = (event) => {
    if (!this.#pointers.delete(event.pointerId) || event.type === 'pointercancel' || this.#pointers.size) return;
    if (this.#moved < 5) this.#choose(this.#taskAt(event.clientX, event.clientY));
  };

  #pan(x, y) {
    this.#sight = {scale: this.#sight.scale, x: this.#sight.x + x, y: this.#sight.y + y};
    this.#isFitted = false;
    this.#schedule();
  }

  #pinch(before, after, other) {
    const box = this.getBoundingClientRect();
    const distance = (event) => Math.max(1, Math.hypot(event.clientX - other.clientX, event.clientY - other.clientY));
    this.zoom(
      distance(after) / distance(before),
      (after.clientX + other.clientX) / 2 - box.left,
      (after.clientY + other.clientY) / 2 - box.top,
    );
  }

  #onKey = (event) => {
    if (!this.#layout?.nodes.length || event.ctrlKey || event.metaKey || event.altKey) return;
    const action = {
      '+': () => this.zoom(ZOOM_STEP),
      '=': () => this.zoom(ZOOM_STEP),
      '-': () => this.zoom(1 / ZOOM_STEP),
      0: () => this.fit(),
      Escape: () => this.#choose(-1),
    }[event.key];
    if (action) action();
    else if (event.key.startsWith('Arrow')) this.#go(event.key.slice('Arrow'.length));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  // From task to task: left to what it needs, right to what needs it, else the nearest one in that direction.
  #go(direction) {
    const {nodes} = this.#layout;
    const from = this.#positionOf(this.#selected);
    const next = from < 0 ? this.#begin() : nearest(nodes, from, direction, this.#neighbours(from, direction));
    if (next < 0) return;
    announce(`${this.#rows[next].name}, ${words(this.#rows[next].status)}`);
    this.#choose(next);
  }
}

const DIRECTIONS = {Left: [-1, 0], Right: [1, 0], Up: [0, -1], Down: [0, 1]};

function nodesOf({nodes}) {
  return [...nodes.keys()];
}

function nearest(nodes, from, direction, candidates) {
  const [alongX, alongY] = DIRECTIONS[direction];
  let best = -1;
  let least = Infinity;
  candidates.forEach((position) => {
    const {x, y} = nodes[position];
    const forward = (x - nodes[from].x) * alongX + (y - nodes[from].y) * alongY;
    const aside = Math.abs((x - nodes[from].x) * alongY) + Math.abs((y - nodes[from].y) * alongX);
    const distance = forward + aside * 2.5;
    if (forward > 0 && distance < least) [best, least] = [position, distance];
  });
  return best;
}

function curve(nodes, [from, to]) {
  const x1 = nodes[from].x + NODE.width;
  const y1 = nodes[from].y + NODE.height / 2;
  const x2 = nodes[to].x;
  const y2 = nodes[to].y + NODE.height / 2;
  const bend = Math.max(24, Math.min(90, (x2 - x1) / 2));
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

function crosses(from, to, area) {
  return (
    Math.max(from.x + NODE.width, to.x) > area.left &&
    Math.min(from.x, to.x) < area.right &&
    Math.max(from.y, to.y) + NODE.height > area.top &&
    Math.min(from.y, to.y) < area.bottom
  );
}

function contains(outer, inner) {
  return (
    outer.left <= inner.left && outer.top <= inner.top && outer.right >= inner.right && outer.bottom >= inner.bottom
  );
}

function grown({left, top, right, bottom}) {
  const [width, height] = [(right - left) * BEYOND, (bottom - top) * BEYOND];
  return {left: left - width, top: top - height, right: right + width, bottom: bottom + height};
}

function cut(text, length = NAME_LENGTH) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

customElements.define('plan-graph', PlanGraph);
