// Draws a listing (HTML, SVG, Mermaid) below itself: app.js loads this with the first press of a Preview button.
// The frame is in no origin and reaches no network (web/pages/whole.py); pressed again it is gone.
const DIAGRAMS = '/static/vendor/mermaid.js?v=' + document.documentElement.dataset.version;

async function hand(frame, kind, text) {
  const script = kind === 'mermaid' ? await (await fetch(DIAGRAMS)).text() : '';
  const { theme } = document.documentElement.dataset;
  const isDark = theme === 'dark' || (theme !== 'light' && matchMedia('(prefers-color-scheme:dark)').matches);
  frame.contentWindow?.postMessage({ kind, text, script, isDark }, '*'); // it has no origin to name
}

export function toggle(button) {
  const code = button.closest('.code'), open = code.querySelector('iframe');
  button.setAttribute('aria-pressed', !open);
  if (open) return open.remove();
  const frame = document.createElement('iframe');
  frame.className = 'preview';
  frame.title = button.textContent;
  frame.setAttribute('sandbox', 'allow-scripts');
  frame.src = '/preview';
  const ready = event => {
    if (event.source !== frame.contentWindow || event.data !== 'ready') return;
    removeEventListener('message', ready);
    hand(frame, button.dataset.preview, code.querySelector('code').textContent);
  };
  addEventListener('message', ready);
  code.append(frame);
}
