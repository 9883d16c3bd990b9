// The page as an app: the service worker, its updates, the badge, push on this device. Without them the page is whole.
(() => {
  const $ = selector => document.querySelector(selector);
  const on = (type, act) => document.addEventListener(type, act);
  const ask = async (path, fields) => {
    const body = fields && new URLSearchParams(fields);
    const answer = await fetch(path, { method: body ? 'POST' : 'GET', headers: { Accept: 'application/json' }, body });
    if (!answer.ok) throw new Error((await answer.json()).error.message);
    return answer.json();
  };

  if ($('[data-away]')) addEventListener('online', () => location.reload());
  // what this browser subscribed: endpoint, key of the house, the device's id, when the house was last told
  const kept = () => JSON.parse(localStorage.push ?? 'null');
  const keep = what => localStorage.push = JSON.stringify(what);
  if (!document.body.dataset.user) { // a visitor's page: the next login is told of the device, which belongs to a login
    if (kept()) keep({ ...kept(), at: 0 });
    return;
  }
  // --- how many are unread: on the app's icon, on the tab's and in front of its title, whoever writes that
  let count = $('[data-unread]')?.dataset.unread ?? 0;
  const news = () => {
    const icon = $('link[rel=icon]'), href = icon.dataset[+count ? 'news' : 'calm'];
    const words = document.title.replace(/^\(\d+\+?\) /, ''), title = +count ? `(${count > 99 ? '99+' : count}) ${words}` : words;
    if (document.title !== title) document.title = title;
    if (icon.getAttribute('href') !== href) icon.href = href;
  };
  const told = now => {
    count = now; news();
    navigator.setAppBadge?.(+count).catch(() => {}); // not installed: refused, and not needed
  };
  on('unread', event => told(event.detail.data));
  told(count);
  new MutationObserver(news).observe(document.head, { childList: true, subtree: true });

  // --- what this page shows is no news any more, and what led here least of all
  const here = new URL(location), notice = here.searchParams.get('notice') ?? '';
  if (notice || $('.bell[data-news]')) {
    here.searchParams.delete('notice');
    if (notice) history.replaceState(history.state, '', here);
    const body = new URLSearchParams({ path: location.pathname, notice });
    fetch('/notifications/seen', { method: 'POST', body }).catch(() => {}); // without network: the next page
  }

  // --- installing: offered on the page of devices, where its person looks for it, and never over what they read
  const invite = $('[data-install]');
  let offer;
  const offers = event => { offer = event; if (invite) invite.hidden = !offer; };
  addEventListener('beforeinstallprompt', event => { event.preventDefault(); offers(event); });
  addEventListener('appinstalled', () => offers());
  invite?.addEventListener('click', async event => { if (event.target.closest('button')) { offer.prompt(); await offer.userChoice; offers(); } });

  const box = $('[data-push]');
  const enrol = async worker => {
    const known = kept(), { key } = await ask('/push/key');
    let sub = await worker.pushManager.getSubscription();
    if (sub && known && known.key !== key) { await sub.unsubscribe(); sub = null; }
    sub ??= await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
    const { endpoint, keys } = sub.toJSON(), isSame = known?.endpoint === endpoint;
    const { id } = await ask('/push/subscribe', { endpoint, ...keys, signed_for: key, was: isSame ? '' : known?.endpoint ?? '', device: known?.id ?? '' });
    if (id) keep({ endpoint, key, id, at: Date.now() });
    else { await sub.unsubscribe(); delete localStorage.push; } // removed from another device
  };
  const drop = async worker => {
    const sub = await worker.pushManager.getSubscription(), { endpoint } = sub ?? kept() ?? {};
    delete localStorage.push;
    await sub?.unsubscribe();
    if (endpoint) await ask('/push/unsubscribe', { endpoint });
  };
  const sync = async worker => {
    const known = kept(), sub = known && await worker.pushManager.getSubscription();
    const isListed = known && (!box || $('#device-' + known.id)); // it was removed a moment ago, perhaps here
    if (!known || (isListed && sub?.endpoint === known.endpoint && Date.now() - known.at < 864e5)) return;
    await (Notification.permission === 'granted' ? enrol(worker) : drop(worker));
    show();
  };

  // --- the list of devices: which of its words hold here
  const has = 'PushManager' in window && 'Notification' in window;
  const state = () => !isSecureContext ? 'plain' : !has ? (navigator.standalone === false ? 'ios' : 'none')
    : Notification.permission === 'denied' ? 'denied' : kept() ? 'on' : 'off';
  const show = (now = state(), words) => box?.querySelectorAll('[data-when]').forEach(one => {
    one.hidden = one.dataset.when !== now;
    if (words && !one.hidden) one.querySelector('[data-words]').textContent = words;
  });
  const mine = () => $('#device-' + kept()?.id)?.querySelector('.own')?.removeAttribute('hidden');
  show(); mine();
  if (!navigator.serviceWorker) return;
  const turn = act => async () => {
    try {
      if (act === enrol && await Notification.requestPermission() !== 'granted') return show();
      await act(await navigator.serviceWorker.ready);
      location.reload();
    } catch (error) { show('failed', error.message); }
  };
  $('[data-push-on]')?.addEventListener('click', turn(enrol));
  $('[data-push-off]')?.addEventListener('click', turn(drop));

  // --- the worker: a page that is older than it is told so
  navigator.serviceWorker.addEventListener('message', ({ data }) => {
    if (data.version !== document.documentElement.dataset.version) $('#toasts').replaceChildren($('#fresh').content.cloneNode(true));
  });
  let lost = false, looked = Date.now();
  navigator.serviceWorker.register('/sw.js').then(worker => {
    const look = () => { looked = Date.now(); worker.update().catch(() => {}); }; // offline: the next look finds it
    on('htmx:sse:error', () => lost = true);
    on('htmx:sse:after:connection', () => { if (lost) look(); lost = false; }); // the daemon may have been renewed
    on('visibilitychange', () => { if (!document.hidden && Date.now() - looked > 36e5) look(); });
    if (has) sync(worker).catch(() => {}); // without network or login: the next page
  }, () => {}); // refused by the browser's settings: the page works without
})();
