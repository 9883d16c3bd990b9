// Loaded for whoever wants it (Account, Look): the page scrolls with an answer while it is written, until its reader
// scrolls away from its end.
{
  const root = document.scrollingElement, dock = document.querySelector('.dock'), log = document.getElementById('log');
  const below = () => (log.lastElementChild?.lastElementChild?.getBoundingClientRect().bottom ?? 0) - dock?.getBoundingClientRect().top;
  let isNear = true, top = root.scrollTop;
  addEventListener('scroll', () => { // only upwards is away: a new question is brought to the top of the window, downwards
    isNear = below() < 40 || (isNear && root.scrollTop >= top);
    top = root.scrollTop;
  }, { passive: true });
  let alive = 0; // when it was last written, or sent: a short answer is whole before anybody sees that it runs
  document.addEventListener('turn', () => { isNear = true; alive = performance.now(); });
  new ResizeObserver(() => {
    if (document.getElementById('composer')?.dataset.running === '1') alive = performance.now();
    if (!isNear || performance.now() - alive >= 1000 || below() <= 0) return;
    root.scrollBy({ top: below() + 16, behavior: 'instant' });
    top = root.scrollTop; // else a reader who scrolls up before the next frame would not be seen
  }).observe(log);
}
