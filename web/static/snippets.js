// Snippets: app.js loads this when a message begins with "/". The list comes from the server; a choice fills the box.
const box = () => document.getElementById('text');
const list = document.createElement('div');
list.className = 'snip';
list.id = 'snip';
list.setAttribute('role', 'listbox');
list.hidden = true;
const say = words => { document.getElementById('sr').textContent = words; };

const lines = () => [...list.querySelectorAll('[role=option]')];
const chosen = () => list.querySelector('[aria-selected=true]');
function choose(line) {
  chosen()?.setAttribute('aria-selected', false);
  line?.setAttribute('aria-selected', true);
  if (line) box().setAttribute('aria-activedescendant', line.id);
}
function hide() {
  list.hidden = true;
  for (const name of ['aria-activedescendant', 'aria-controls']) box()?.removeAttribute(name);
}

// --- the gaps of a snippet that was put in: {so}; Tab and a tap go from one to the next
const GAP = /\{[^{}\n]{1,60}\}/g;
let fills = false;
function next(from, way = 1) {
  const all = [...box().value.matchAll(GAP)];
  const gap = way > 0 ? all.find(one => one.index >= from) : all.findLast(one => one.index + one[0].length <= from);
  if (gap) { box().setSelectionRange(gap.index, gap.index + gap[0].length); say(gap[0].slice(1, -1)); }
  return gap;
}
function take(line) {
  if (!line.dataset.words) return line.click();
  hide();
  box().value = line.dataset.words;
  box().focus();
  box().dispatchEvent(new Event('input', { bubbles: true }));
  fills = Boolean(next(0));
  if (!fills) box().setSelectionRange(box().value.length, box().value.length);
}

let asked;
async function look() {
  asked?.abort();
  asked = new AbortController();
  const typed = box().value;
  try {
    const answer = await fetch('/snippets/fitting?q=' + encodeURIComponent(typed), { headers: { 'HX-Request': 'true' }, signal: asked.signal });
    if (!answer.ok || box().value !== typed) return;
    list.innerHTML = await answer.text();
  } catch { return; } // the words stay as they are: nothing is lost
  const form = document.getElementById('composer');
  if (list.nextSibling !== form) form.before(list);
  list.setAttribute('aria-label', 'Snippets');
  list.hidden = false;
  box().setAttribute('aria-controls', 'snip');
  choose(lines()[0]);
  say(lines().length - 1 + ' ' + list.getAttribute('aria-label'));
}

const isBegun = () => /^\/[^\s/]*$/.test(box()?.value ?? '');
document.addEventListener('input', event => { if (event.target.id === 'text') isBegun() ? look() : hide(); });
list.addEventListener('mousedown', event => event.preventDefault()); // the box keeps the focus, a phone its keyboard
list.addEventListener('click', event => { const line = event.target.closest('[data-words]'); if (line) take(line); });
document.addEventListener('click', event => { if (!list.hidden && !list.contains(event.target) && event.target !== box()) hide(); });
document.addEventListener('click', event => {
  if (!fills || event.target !== box() || box().selectionStart !== box().selectionEnd) return;
  const at = box().selectionStart, gap = [...box().value.matchAll(GAP)].find(one => one.index < at && at < one.index + one[0].length);
  if (gap) box().setSelectionRange(gap.index, gap.index + gap[0].length);
});
document.addEventListener('keydown', event => { // ahead of app.js: what is pressed here neither sends nor stops anything
  if (event.target.id !== 'text' || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  const done = () => { event.preventDefault(); event.stopPropagation(); };
  if (!list.hidden) {
    const all = lines(), at = all.indexOf(chosen()), way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (way) { done(); choose(all[(at + way + all.length) % all.length]); }
    else if (event.key === 'Escape') { done(); hide(); }
    else if (!event.shiftKey && (event.key === 'Enter' || event.key === 'Tab') && chosen()) { done(); take(chosen()); }
    return;
  }
  if (!fills || event.key !== 'Tab') return;
  if (next(event.shiftKey ? box().selectionStart : box().selectionEnd, event.shiftKey ? -1 : 1)) return done();
  if (event.shiftKey) return;
  fills = false; // the last one is filled: Tab first leads to the end of the words, then on as ever
  done();
  box().setSelectionRange(box().value.length, box().value.length);
}, true);

export const begin = () => { if (isBegun()) look(); };
