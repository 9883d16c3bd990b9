// A time that can be read now: what the last saving said of it is over. On pages whose form reads one.
document.addEventListener('htmx:after:swap', () => {
  if (!document.querySelector('#reading .read')) return;
  for (const field of document.querySelectorAll('#f-when[aria-invalid],#f-time_zone[aria-invalid]')) {
    const box = field.closest('.fr');
    field.removeAttribute('aria-invalid'); field.setAttribute('aria-describedby', field.id + '-h');
    box.classList.remove('bad'); box.querySelector('.fr-e').remove(); field.form.querySelector('.say.bad')?.remove();
  }
});
