// Search or do (Ctrl K): app.js loads this with the first press. Box and lines come from /palette, the first one chosen.
const find = (address, signal) => fetch('/palette' + address, { headers: { 'HX-Request': 'true' }, signal });
const came = await find('');
if (!came.ok) throw came; // the search page says why
document.body.insertAdjacentHTML('beforeend', await came.text());
const made = document.body.lastElementChild, field = made.querySelector('input'), list = made.querySelector('[role=listbox]');

const lines = () => [...list.querySelectorAll('[role=option]')];
const chosen = () => list.querySelector('[aria-selected=true]');
function choose(line) {
  chosen()?.setAttribute('aria-selected', false);
  line?.setAttribute('aria-selected', true);
  line ? field.setAttribute('aria-activedescendant', line.id) : field.removeAttribute('aria-activedescendant');
  line?.scrollIntoView({ block: 'nearest' });
}
function move(way) {
  const all = lines(), at = all.indexOf(chosen());
  if (all.length) choose(all[(at + way + all.length) % all.length]);
}

let asked, waits, shown, current; // `shown`: until the lines for what stands in the field are there
async function look() {
  asked?.abort();
  asked = new AbortController();
  current = field.value;
  try {
    const answer = await find('?q=' + encodeURIComponent(current), asked.signal);
    if (answer.status === 401) return location.reload();
    if (!answer.ok) throw answer;
    list.innerHTML = await answer.text();
  } catch (error) {
    if (error.name === 'AbortError') return;
    const words = document.createElement('p');
    words.className = 'pn';
    words.textContent = list.dataset.lost;
    list.replaceChildren(words);
  }
  choose(lines()[0]);
}
const again = () => { clearTimeout(waits); return shown = look(); };
field.addEventListener('input', () => { clearTimeout(waits); waits = setTimeout(again, 120); });
field.addEventListener('keydown', async event => {
  if (event.isComposing) return;
  const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (way) { event.preventDefault(); move(way); }
  if (event.key !== 'Enter') return;
  event.preventDefault();
  await (field.value === current ? shown : again()); // whoever types fast means what they typed
  chosen()?.click();
});
list.addEventListener('click', event => { if (event.target.closest('[role=option]') && !event.ctrlKey && !event.metaKey) made.close(); });

export async function open() {
  if (made.open) return made.close();
  again();
  made.showModal();
  field.select();
}
