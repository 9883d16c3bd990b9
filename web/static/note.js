// The editor of a note: buttons and keys for Markdown; a list goes on at Enter. A search leads to a line: it is selected.
(() => {
  const box = document.querySelector('#f-text'), form = box?.form, bar = form?.querySelector('[role=toolbar]');
  if (!box) return;
  const put = (words, start, end) => { // so that Undo takes it back
    box.focus();
    box.setSelectionRange(start, end);
    if (!document.execCommand(words ? 'insertText' : 'delete', false, words)) box.setRangeText(words, start, end, 'end');
  };
  const startOf = at => box.value.lastIndexOf('\n', at - 1) + 1;
  const around = (before, after) => {
    const { selectionStart: start, selectionEnd: end, value } = box;
    put(before + value.slice(start, end) + after, start, end);
    box.setSelectionRange(start + before.length, end + before.length);
  };
  const ahead = mark => { // of each line that is chosen; taken off where all have it
    const start = startOf(box.selectionStart), lines = box.value.slice(start, box.selectionEnd).split('\n');
    const has = lines.every(line => line.startsWith(mark));
    put(lines.map(line => has ? line.slice(mark.length) : mark + line).join('\n'), start, box.selectionEnd);
  };
  const act = mark => mark === '[' ? around('[', '](https://)') : /\s$/.test(mark) ? ahead(mark) : around(mark, mark);
  bar.addEventListener('click', ({ target }) => { if (target.dataset.mark) act(target.dataset.mark); });
  bar.addEventListener('keydown', ({ key, target }) => {
    const all = [...bar.children], step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!step) return;
    const next = all[(all.indexOf(target) + step + all.length) % all.length];
    target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  box.addEventListener('keydown', event => {
    const isCommand = event.ctrlKey || event.metaKey, mark = isCommand && { b: '**', i: '_' }[event.key];
    if (mark) { event.preventDefault(); return act(mark); }
    if (event.key !== 'Enter' || event.isComposing || event.shiftKey) return;
    if (isCommand) return form.requestSubmit();
    const at = box.selectionStart, start = startOf(at);
    const found = /^(\s*)([-*] (?:\[[ x]\] )?|(\d+)\. )/.exec(box.value.slice(start, at));
    if (!found || at !== box.selectionEnd) return;
    event.preventDefault();
    if (start + found[0].length === at) return put('', start, at); // an empty item ends the list
    put('\n' + found[1] + (found[3] ? +found[3] + 1 + '. ' : found[2].replace('[x]', '[ ]')), at, at);
  });
  const { line } = form.dataset;
  if (!line) return;
  const lines = box.value.split('\n'), before = lines.slice(0, line - 1);
  const start = before.join('\n').length + (before.length ? 1 : 0), end = start + lines[before.length].length;
  box.setSelectionRange(end, end);
  box.blur();
  box.focus(); // brings the caret into view
  box.setSelectionRange(start, end);
})();
