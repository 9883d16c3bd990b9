// The calendar's keys: each link says its own (data-key). Without it the links are pressed.
let led = 0; // a g ahead leads to another page (app.js)
const isTyping = event => event.target.closest?.('input,textarea,select,[contenteditable]');
document.addEventListener('keydown', event => {
  const isFree = !(event.ctrlKey || event.metaKey || event.altKey || isTyping(event));
  if (!isFree || document.body.dataset.keys === 'off' || document.querySelector(':popover-open,dialog[open]')) return;
  if (event.key === 'g') { led = Date.now(); return; }
  if (Date.now() - led < 1200) { led = 0; return; }
  const isBack = document.dir === 'rtl' ? 'ArrowRight' : 'ArrowLeft', isOn = document.dir === 'rtl' ? 'ArrowLeft' : 'ArrowRight';
  const key = { [isBack]: 'ArrowLeft', [isOn]: 'ArrowRight' }[event.key] ?? event.key;
  const link = document.querySelector(`.top [data-key="${CSS.escape(key)}"]`);
  if (!link) return;
  event.preventDefault();
  location = link.href;
});
