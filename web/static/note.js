// A search leads to a line of a note: it is selected, and so scrolled to.
(() => {
  const form = document.querySelector('form[data-line]'), box = form?.querySelector('textarea');
  if (!box) return;
  const lines = box.value.split('\n'), before = lines.slice(0, form.dataset.line - 1);
  const start = before.join('\n').length + (before.length ? 1 : 0), end = start + lines[before.length].length;
  box.setSelectionRange(end, end);
  box.blur();
  box.focus(); // brings the caret into view
  box.setSelectionRange(start, end);
})();
