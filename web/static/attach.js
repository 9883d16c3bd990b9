// Files for a message: app.js loads this with the first one. Each goes up by itself, with its progress, and can be stopped.
const box = () => document.getElementById('files'), form = () => document.getElementById('composer');
const going = new Map(); // the card of each file that is on its way
let button = null; // sends once all are there

let held = '';
const bound = () => {
  form().text.required = !box().children.length;
  const ids = [...box().querySelectorAll('[name=attached]')].map(one => one.value).join();
  if (ids !== held) { held = ids; box().dispatchEvent(new Event('change', { bubbles: true })); } // what they cost is asked for
};
new MutationObserver(() => { if (box()) bound(); }).observe(document.querySelector('.dock'), { childList: true, subtree: true });

function card(file) {
  const made = document.createElement('span'), bar = document.createElement('progress'), name = document.createElement('b'), stop = document.createElement('button');
  made.className = 'file';
  bar.max = 1; bar.value = 0; bar.setAttribute('aria-label', file.name);
  name.textContent = file.name;
  stop.type = 'button'; stop.className = 'mini'; stop.textContent = '\u00d7';
  stop.setAttribute('aria-label', box().dataset.stop + ' ' + file.name);
  made.append(bar, name, stop);
  return made;
}

function failed(made, words) {
  made.classList.add('bad');
  made.querySelector('progress')?.remove();
  made.querySelector('b').textContent = words;
  made.setAttribute('role', 'alert');
  made.querySelector('button').onclick = () => made.remove();
}

function finished(made) {
  going.delete(made);
  if (going.size || !button) return;
  const by = button;
  button = null;
  if (!box().querySelector('.bad')) form().requestSubmit(by);
}

function send(file) {
  const made = card(file), ask = new XMLHttpRequest(), data = new FormData();
  box().append(made);
  if (file.size > +box().dataset.most) return failed(made, file.name + ': ' + box().dataset.large);
  data.append('files', file, file.name || 'picture.png');
  going.set(made, ask);
  ask.upload.onprogress = event => { made.querySelector('progress').value = event.loaded / (event.total || 1); };
  ask.onload = () => {
    if (ask.status === 200) made.outerHTML = ask.responseText;
    else if (ask.status === 401) location.reload();
    else failed(made, ask.status === 422 ? ask.responseText : file.name + ': ' + box().dataset.lost);
    finished(made);
  };
  ask.onerror = () => { failed(made, file.name + ': ' + box().dataset.lost); finished(made); };
  made.querySelector('button').onclick = () => { ask.abort(); made.remove(); finished(made); };
  ask.open('POST', '/files');
  ask.setRequestHeader('HX-Request', 'true');
  ask.send(data);
}

addEventListener('submit', event => {
  if (event.target !== form() || !going.size) return;
  event.preventDefault(); event.stopImmediatePropagation();
  button = event.submitter;
}, true);

export const give = files => files.forEach(send);
