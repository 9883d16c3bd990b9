// Loaded for whoever wants it (Account, Look): the page scrolls with an answer while it is written, until its reader
// scrolls away from its end.
{
  const root = document.scrollingElement, dock = document.querySelector('.dock'), log = document.getElementById('log');
  const below = () => (log.lastElementChild?.lastElementChild?.getBoundingClientRect().bottom ?? 0) - dock?.getBoundingClientRect().top;
  let isNear = true;
  addEventListener('scroll', () => { isNear = below() < 40; }, { passive: true });
  document.addEventListener('turn', () => { isNear = true; });
  new ResizeObserver(() => {
    if (isNear && document.getElementById('composer')?.dataset.running === '1' && below() > 0) root.scrollBy({ top: below() + 16, behavior: 'instant' });
  }).observe(log);
}
