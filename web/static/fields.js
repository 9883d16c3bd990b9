// Fields of forms that the browser's own leave wanting: files that are chosen are named and can be taken off again; a day or
// a time from the browser's calendar or clock is written as the pages write it.
(() => {
  const on = (type, act) => document.addEventListener(type, act);
  const size = bytes => bytes < 1e6 ? Math.max(1, Math.round(bytes / 1e3)) + ' kB' : (bytes / 1e6).toFixed(1) + ' MB';
  const held = new WeakMap(); // the files of each field: choosing more adds to them
  const add = (parent, name, words) => { const made = document.createElement(name); made.textContent = words; parent.append(made); return made; };

  const show = input => {
    const place = input.closest('.take'), { dataset } = place, list = place.querySelector('.take-l'), files = held.get(input);
    const isLarge = file => +dataset.most && file.size > +dataset.most;
    const all = files.reduce((sum, file) => sum + file.size, 0);
    const fault = files.some(isLarge) ? dataset.large : +dataset.all && all > +dataset.all ? dataset.much : '';
    list.replaceChildren(...files.map((file, at) => {
      const line = document.createElement('li'), words = isLarge(file) ? dataset.large : size(file.size);
      line.className = isLarge(file) ? 'file bad' : 'file';
      add(line, 'b', file.name).dir = 'auto';
      add(line, 'small', words);
      const button = add(line, 'button', '\u00d7');
      button.type = 'button'; button.className = 'mini'; button.dataset.at = at;
      button.setAttribute('aria-label', dataset.remove + ' ' + file.name);
      return line;
    }));
    input.setCustomValidity(fault);
    place.querySelector('.fr-e').textContent = fault === dataset.much ? fault : '';
  };
  const put = (input, files) => {
    const given = new DataTransfer();
    files.forEach(file => given.items.add(file));
    input.files = given.files;
    held.set(input, files);
    show(input);
  };
  const chosen = input => {
    const before = input.multiple ? held.get(input) ?? [] : [], isNew = file => !before.some(one => one.name === file.name && one.size === file.size);
    put(input, [...before, ...[...input.files].filter(isNew)]);
  };
  on('change', ({ target }) => {
    if (target.matches('.take [type=file]') && target.files.length) chosen(target);
    else if (target.matches('.take [type=file]')) put(target, held.get(target) ?? []); // the dialog was closed without a choice
    else if (target.dataset.writes && target.value) {
      const box = document.getElementById(target.dataset.writes), day = target.type === 'date' && new Date(target.value + 'T12:00');
      box.value = day ? day.getDate() + ' ' + day.toLocaleDateString('en', { month: 'short' }) + ' ' + day.getFullYear() : target.value;
      box.dispatchEvent(new Event('input', { bubbles: true }));
      box.focus();
    }
  });
  on('click', ({ target }) => {
    const { at } = target.dataset, place = at && target.closest('.take');
    if (!place) return;
    const input = place.querySelector('[type=file]');
    put(input, held.get(input).filter((file, index) => index !== +at));
    (place.querySelectorAll('.mini')[Math.min(at, held.get(input).length - 1)] ?? input).focus();
  });
  for (const [type, is] of [['dragover', true], ['dragleave', false], ['drop', false]]) {
    on(type, ({ target }) => target.closest?.('.take-b')?.classList.toggle('over', is));
  }
  for (const input of document.querySelectorAll('.take [type=file]')) if (input.files.length) chosen(input); // kept over a reload
})();
