// Draws the formulas of a page: `.math` holds TeX. Joined with KaTeX; app.js loads it on a page that has one.
(() => {
  // KaTeX would write style attributes for these two, which the content policy refuses
  const macros = { '\\pmb': '\\boldsymbol{#1}', '\\fcolorbox': '\\@secondoftwo{#1#2}{\\fbox{#3}}' };
  const options = { trust: false, strict: 'ignore', maxSize: 20, maxExpand: 500, errorColor: 'var(--err)' };
  const draw = box => {
    const tex = box.textContent;
    try {
      katex.render(tex, box, { ...options, displayMode: box.matches('.wide'), macros: { ...macros } });
    } catch { // not finished, or no TeX: it stays readable as what it is
      box.textContent = tex;
      box.classList.add('plain');
    }
    box.classList.add('drawn');
  };
  const { dataset } = document.documentElement, shown = () => delete dataset.math; // app.js
  let waits = 0;
  const look = () => { // before the browser paints; of very many, some in each frame
    waits = 0;
    const end = performance.now() + 12;
    for (const box of document.querySelectorAll('.math:not(.drawn)')) {
      if (performance.now() > end) { waits = requestAnimationFrame(look); break; }
      draw(box);
    }
    seen.takeRecords();
    if (!waits) shown();
  };
  const seen = new MutationObserver(() => waits || look());
  const sheet = document.createElement('link');
  sheet.rel = 'stylesheet';
  sheet.href = '/static/vendor/math.css?v=' + dataset.version;
  sheet.onerror = shown;
  sheet.onload = () => { look(); seen.observe(document.body, { childList: true, subtree: true }); };
  document.head.append(sheet);
})();
