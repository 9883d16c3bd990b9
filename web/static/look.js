// Theme, text size and lines change as they are chosen; the page that comes next has them from the server.
document.addEventListener('change', ({ target }) => {
  if (!target.closest('#look')) return;
  const { dataset } = document.documentElement;
  if (target.name === 'theme') dataset.theme = target.value || 'auto';
  if (target.name === 'density') dataset.density = target.value || 'normal';
  if (target.name === 'text_size') dataset.size = target.value;
  if (target.name === 'keys') document.body.dataset.keys = target.checked ? 'on' : 'off';
});
