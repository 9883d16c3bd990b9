// Folds stay as the person left them: over a search, a reload and the way back. On a wide window `.folds[data-wide]` begin open.
(() => {
  const key = 'folds:' + location.pathname;
  const left = JSON.parse(sessionStorage[key] ?? '{}');
  const isWide = matchMedia('(min-width: 761px)').matches;
  const restore = () => {
    for (const fold of document.querySelectorAll('.folds:not([data-found]) > .fold[id]')) {
      fold.open = left[fold.id] ?? (fold.open || (isWide && 'wide' in fold.parentElement.dataset));
    }
  };
  restore();
  const aim = document.getElementById(location.hash.slice(1)), fold = aim?.closest('.fold');
  if (fold && !fold.open) { fold.open = true; aim.scrollIntoView(); }
  document.addEventListener('htmx:after:swap', restore);
  document.addEventListener('click', event => { // what a search or an address opens is nobody's choice
    const fold = event.target.closest('.folds:not([data-found]) > .fold[id] > summary')?.parentElement;
    if (!fold) return;
    left[fold.id] = !fold.open;
    sessionStorage[key] = JSON.stringify(left);
  });
})();
