// Lines to tick, on Today and on the lists: a ticked one stays a while, swiping, keys. Without it the forms do all of it.
const STAYS_MS = 4000, FOLDS_MS = 140, SWIPED_PX = 72;
const $ = (selector, root = document) => root.querySelector(selector);
const on = (type, act, options) => document.addEventListener(type, act, options);
const say = words => { $('#sr').textContent = words; };
const lines = () => [...document.querySelectorAll('[data-lines] .line:has(.ck)')];
const AS_PART = { 'HX-Request': 'true', 'HX-Request-Type': 'partial' };

// --- a tick shows at once; its line stays so that it can be taken back, then the list is fetched anew
const ticked = new Map(); // form -> what ends its stay
let wanted = false;
const anew = () => { wanted = false; document.body.dispatchEvent(new Event('lists')); };
const isWriting = () => [...document.querySelectorAll('[data-lines] input:not([type=hidden])')].some(box => box.value);
const hold = event => {
  if (!event.target.matches?.('[data-again]') || !(ticked.size || isWriting())) return;
  event.preventDefault();
  wanted = true;
};
on('htmx:before:request', hold); on('htmx:before:swap', hold); // also one that was asked for before the tick
const fold = form => {
  const line = form.closest('.line'), next = line.nextElementSibling ?? line.previousElementSibling;
  if (line.contains(document.activeElement)) $('.ck,input:not([type=hidden])', next ?? document)?.focus();
  line.classList.add('folds');
  setTimeout(() => { ticked.delete(form); if (!ticked.size) anew(); }, FOLDS_MS);
};
const show = (form, isOn) => {
  const button = $('.ck', form), other = form.dataset.other;
  form.dataset.other = form.getAttribute('action');
  form.setAttribute('action', other); form.setAttribute('hx-post', other);
  button.classList.toggle('on', isOn);
  form.closest('.line').classList.toggle('is-done', isOn);
};
const news = text => {
  const told = $('hx-partial', new DOMParser().parseFromString(text, 'text/html'));
  if (told) $('#toasts').replaceChildren(...told.childNodes);
};
const waiting = new Map(); // form -> what was pressed without a connection
const back = () => {
  asOf(false);
  for (const [form, isOn] of waiting) {
    waiting.delete(form);
    form.closest('.line').classList.remove('waits');
    show(form, !isOn);
    tick(form);
  }
};
// Nothing of a page is kept on the device: it may be shared. One that is open stays, and says of when it is.
const asOf = isAway => { const line = $('#as-of'); if (line) line.textContent = isAway ? line.dataset.words : ''; };
addEventListener('offline', () => asOf(true)); addEventListener('online', back);
on('htmx:sse:error', () => asOf(true)); on('htmx:sse:after:connection', back);
if (!navigator.onLine) asOf(true);
const tick = async form => {
  const isOn = !$('.ck', form).classList.contains('on'), body = new URLSearchParams(new FormData(form));
  const to = form.getAttribute('action');
  clearTimeout(ticked.get(form));
  ticked.set(form, 0);
  show(form, isOn);
  try {
    const answer = await fetch(to, { method: 'POST', headers: AS_PART, body });
    if (!answer.ok) throw answer;
    news(await answer.text());
  } catch (failed) {
    if (!failed.status) { // no network, or no server: it waits for that
      form.closest('.line').classList.add('waits');
      say('Not sent yet: it waits for the network.');
      return waiting.set(form, isOn);
    }
    show(form, !isOn);
    ticked.delete(form);
    return failed.status === 401 ? location.reload() : anew();
  }
  if (isOn) return ticked.set(form, setTimeout(fold, STAYS_MS, form));
  ticked.delete(form);
  if (wanted && !ticked.size) anew();
};
on('submit', event => {
  if (!event.target.matches('[data-tick]')) return;
  event.preventDefault(); event.stopImmediatePropagation();
  tick(event.target);
}, true);

// --- a thumb: to the right ticks, to the left puts off
let swipe;
on('pointerdown', event => {
  const line = event.pointerType === 'touch' && event.target.closest('[data-lines] .line:not(.line-add)');
  if (line && !event.target.closest('.line-more,.menu,.grip')) swipe = { line, x: event.clientX, y: event.clientY, by: 0 };
});
on('pointermove', event => {
  if (!swipe) return;
  const by = (event.clientX - swipe.x) * (getComputedStyle(document.body).direction === 'rtl' ? -1 : 1);
  if (!swipe.by && Math.abs(event.clientY - swipe.y) > Math.abs(by)) return swipe = undefined;
  swipe.by = by > 0 || $('[data-later]', swipe.line) ? by : 0;
  swipe.line.style.translate = event.clientX - swipe.x + 'px';
  swipe.line.classList.toggle('to-tick', swipe.by > SWIPED_PX);
  swipe.line.classList.toggle('to-later', swipe.by < -SWIPED_PX);
});
const end = event => {
  const { line, by } = swipe ?? {};
  swipe = undefined;
  if (!line) return;
  line.style.translate = '';
  line.classList.remove('to-tick', 'to-later');
  if (event.type === 'pointercancel') return;
  if (Math.abs(by) > 8) addEventListener('click', click => { click.preventDefault(); click.stopPropagation(); }, { capture: true, once: true, signal: AbortSignal.timeout(50) });
  if (by > SWIPED_PX) $('[data-tick]', line)?.requestSubmit();
  if (by < -SWIPED_PX) $('[data-later]', line)?.requestSubmit();
};
on('pointerup', end); on('pointercancel', end);

// --- a handle: drag a task to another place of its list; the line's menu does the same a place at a time
let drag;
const kin = line => [...line.parentElement.children].filter(one => one.dataset.list === line.dataset.list);
on('pointerdown', event => {
  const line = event.target.closest?.('.grip')?.closest('.line');
  if (!line) return;
  event.preventDefault();
  drag = { line, from: kin(line).indexOf(line) };
  line.classList.add('drags');
});
on('pointermove', event => {
  if (!drag) return;
  const over = kin(drag.line).find(one => { const box = one.getBoundingClientRect(); return event.clientY >= box.top && event.clientY < box.bottom; });
  if (over && over !== drag.line) over[drag.line.compareDocumentPosition(over) & Node.DOCUMENT_POSITION_FOLLOWING ? 'after' : 'before'](drag.line);
});
const drop = () => {
  if (!drag) return;
  const { line, from } = drag, by = kin(line).indexOf(line) - from;
  drag = undefined;
  line.classList.remove('drags');
  if (!by) return;
  const form = $('[data-move]', line);
  form.elements.by.value = by;
  form.requestSubmit();
};
on('pointerup', drop); on('pointercancel', drop);

// --- a deed of a menu: the menu is gone with the old lines, and the focus goes back to its button
let from;
on('submit', event => { const menu = event.target.closest('.line .menu'); if (menu) { from = menu.closest('.line').id; menu.hidePopover?.(); } });
on('htmx:after:swap', () => {
  if (from && document.activeElement === document.body) $('.line-more,.ck', document.getElementById(from) ?? lines()[0] ?? document)?.focus();
  from = undefined;
});

// --- keys: j k move, x ticks, a adds
const walk = way => {
  const all = lines(), at = all.indexOf(document.activeElement.closest('.line'));
  $('.ck', all[at < 0 ? (way < 0 ? all.length - 1 : 0) : Math.min(all.length - 1, Math.max(0, at + way))] ?? document)?.focus();
};
const keys = {
  j: () => walk(1), k: () => walk(-1), a: () => ($('#add-line') ?? $('#new-title') ?? $('#say'))?.focus(),
  x: () => $('[data-tick]', document.activeElement.closest('.line') ?? document.createElement('i'))?.requestSubmit(),
};
on('keydown', event => {
  const typing = event.target.closest('input,textarea,select,[contenteditable]');
  if (event.ctrlKey || event.metaKey || event.altKey || typing || $(':popover-open,dialog[open]') || document.body.dataset.keys === 'off') return;
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});
