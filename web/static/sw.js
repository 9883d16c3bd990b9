// Shows what is pushed, opens what it is about, and says so when the network is gone. The server writes VERSION, SHELL
// and WORDS above this. SHELL, public files under their hash and the page /offline, is all that is ever kept.
const on = (type, act) => self.addEventListener(type, event => event.waitUntil(act(event)));
const own = address => { try { const url = new URL(address, location.origin); return url.pathname + url.search; } catch { return '/'; } };
const badge = async unread => { try { if (Number.isInteger(unread)) await navigator.setAppBadge?.(unread); } catch { /* no badge here: the page has its own */ } };
const post = (path, fields) => fetch(path, { method: 'POST', headers: { Accept: 'application/json' }, body: new URLSearchParams(fields) });

on('install', async () => {
  const cache = await caches.open(VERSION);
  await cache.addAll(SHELL.map(path => new Request(path, { credentials: 'omit' })));
  await self.skipWaiting(); // an older page goes on with the files it has; it is told below
});

on('activate', async () => {
  for (const name of await caches.keys()) if (name !== VERSION) await caches.delete(name);
  await self.registration.navigationPreload?.enable();
  await self.clients.claim();
  for (const page of await self.clients.matchAll()) page.postMessage({ version: VERSION });
});

// Pages come from the network, always. What is neither a page nor in SHELL does not pass through here at all.
self.addEventListener('fetch', event => {
  const { request } = event, url = new URL(request.url);
  if (request.method !== 'GET' || url.origin !== location.origin) return;
  const kept = path => caches.open(VERSION).then(cache => cache.match(path));
  if (request.mode === 'navigate') {
    event.respondWith((async () => {
      try { return await event.preloadResponse || await fetch(request); } catch { return await kept('/offline') ?? Response.error(); }
    })());
  } else if (SHELL.includes(url.pathname + url.search)) {
    event.respondWith(kept(request).then(found => found ?? fetch(request)));
  }
});

// A push that shows nothing costs the permission (iOS, after three): whatever comes, something is shown.
on('push', async ({ data }) => {
  let message = {};
  try { message = data.json() ?? {}; } catch { /* not ours, or damaged: the plain words below */ }
  const note = (message.web_push === 8030 && message.notification) || {};
  const buttons = Array.isArray(note.actions) ? note.actions.filter(one => one?.action && one.navigate) : [];
  const plain = { body: WORDS.text, icon: WORDS.icon, badge: WORDS.badge, data: { path: '/notifications', links: {} } };
  try {
    await self.registration.showNotification(String(note.title || WORDS.title), {
      ...plain, body: String(note.body ?? WORDS.text), tag: note.tag || '', renotify: Boolean(note.tag) && !note.silent,
      requireInteraction: note.requireInteraction === true, silent: note.silent === true,
      actions: buttons.map(({ action, title }) => ({ action, title: String(title || action) })),
      data: { path: own(note.navigate ?? '/notifications'), links: Object.fromEntries(buttons.map(one => [one.action, own(one.navigate)])) },
    });
  } catch { await self.registration.showNotification(WORDS.title, plain); }
  await badge(message.app_badge ?? note.app_badge);
  try { if (note.data?.id) await post('/push/ack', { id: note.data.id }); } catch { /* not seen as shown: the device list says so */ }
});

on('notificationclick', async ({ action, notification }) => {
  notification.close();
  const { path = '/notifications', links = {} } = notification.data ?? {}, place = (action && links[action]) || path;
  if (place !== path) try { // done here and now; what has to be looked at, a lost login or network: its page
    const { done, unread } = await (await post(place, { at_once: 1 })).json();
    if (done) return await badge(unread);
  } catch { /* its page says why */ }
  const { pathname, searchParams } = new URL(place, location.origin), notice = searchParams.get('notice');
  const told = notice && post('/notifications/seen', { notice }).catch(() => {}); // the page that opens says it again
  const pages = await self.clients.matchAll({ type: 'window', includeUncontrolled: true });
  const open = pages.find(page => [pathname, place].includes(own(page.url)));
  await (open ? open.focus() : self.clients.openWindow(place));
  await told;
});

// The browser renewed its subscription by itself. Not logged in: the next page does it.
on('pushsubscriptionchange', async ({ oldSubscription, newSubscription }) => {
  const answer = await fetch('/push/key', { headers: { Accept: 'application/json' } });
  if (!answer.ok) return;
  const { key } = await answer.json();
  const fresh = newSubscription ?? await self.registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  const { endpoint, keys } = fresh.toJSON();
  await post('/push/subscribe', { endpoint, ...keys, signed_for: key, was: oldSubscription?.endpoint ?? '' });
});
