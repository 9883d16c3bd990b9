// The bell's panel: app.js loads this with the first press. Its lines come from /notifications/panel, and again with each change.
let bell = document.getElementById('bell'); // the one that was pressed: a phone has another in its header
const panel = document.createElement('div');
panel.id = 'bell-panel';
panel.className = 'pop';
panel.popover = 'auto';
panel.setAttribute('role', 'dialog');
panel.setAttribute('aria-labelledby', 'bell-h');
document.body.append(panel);

const isOpen = () => panel.matches(':popover-open');
const isLost = () => document.activeElement === document.body; // what had the focus is gone
const first = () => panel.querySelector('.bell-o,a')?.focus({ preventScroll: true });
const look = async () => {
  await htmx.ajax('GET', '/notifications/panel', { target: panel, swap: 'innerMorph' });
  if (isOpen() && isLost()) first();
};
document.addEventListener('unread', () => { if (isOpen()) look(); });
panel.addEventListener('htmx:after:request', ({ target }) => { if (target !== panel && isOpen()) look(); });
panel.addEventListener('toggle', () => {
  bell.setAttribute('aria-expanded', isOpen());
  if (!isOpen() && isLost()) bell.focus();
});
// A press on the bell closes the panel before it comes here as a click, which would open it again.
let wasOpen = false;
document.addEventListener('pointerdown', ({ target }) => { wasOpen = isOpen() && bell.contains(target); }, true);
panel.addEventListener('click', ({ target }) => { if (target.closest('[data-shut]')) panel.hidePopover(); });

export async function toggle(pressed) {
  bell = pressed;
  if (wasOpen || isOpen()) { wasOpen = false; return panel.hidePopover(); }
  await look();
  document.querySelectorAll('#toasts .news').forEach(one => one.remove()); // they stand in the panel now
  panel.showPopover({ source: bell });
  first();
}
