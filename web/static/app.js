// Everything here is an enhancement: without it forms post and links navigate.
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const all = selector => [...document.querySelectorAll(selector)];
  const on = (type, act, options) => document.addEventListener(type, act, options);
  const log = $('#log'), text = () => $('#text'), form = () => $('#composer'), dock = $('.dock'), jump = $('#jump');
  const root = document.scrollingElement;
  const calm = () => matchMedia('(prefers-reduced-motion:reduce)').matches ? 'instant' : 'smooth';
  const say = words => { const line = $('#sr'); line.textContent = ''; setTimeout(() => line.textContent = words, 60); };
  const typing = event => event.target.closest('input:not([type=radio]),textarea,select,[contenteditable]');
  const last = selector => all(selector).at(-1);

  // --- what a page needs only when somebody presses for it: scripts by their name, and in a chat the style of what they open
  let styled = $('link[href*="/sheet.css"]');
  const style = () => styled ??= new Promise(done => {
    const link = Object.assign(document.createElement('link'), { rel: 'stylesheet', href: $('#confirm').dataset.style, onload: done, onerror: done });
    document.head.append(link);
  });
  const script = name => import(`/static/${name}.js?v=` + root.dataset.version);
  const brought = name => Promise.all([script(name), style()]).then(([script]) => script);

  // --- reading position: the question goes to the top, the answer grows below it, nothing else moves the page
  const px = (element, name) => parseFloat(getComputedStyle(element)[name]) || 0;
  const tall = element => element.offsetHeight + px(element, 'marginBottom');
  const room = () => {
    const answer = last('.turn.bot'), question = answer?.previousElementSibling;
    if (!answer) return;
    let left = innerHeight - px(root, 'scrollPaddingTop') - dock.offsetHeight - px($('main'), 'paddingBottom') - px(answer, 'marginBottom');
    if (question?.matches('.user')) left -= tall(question);
    for (let below = answer.nextElementSibling; below; below = below.nextElementSibling) left -= tall(below); // what waits its turn
    log.style.setProperty('--room', Math.max(0, left) + 'px');
  };
  if (log) new MutationObserver(() => 'roomy' in log.dataset && room()).observe(log, { childList: true });
  const below = () => (log?.lastElementChild?.lastElementChild?.getBoundingClientRect().bottom ?? 0) - innerHeight + (dock?.offsetHeight ?? 0);
  let frame;
  const spot = () => { cancelAnimationFrame(frame); frame = requestAnimationFrame(() => { if (jump) jump.hidden = below() < 30; }); };
  const toQuestion = (id, behavior) => { log.dataset.roomy = ''; room(); $('#' + id)?.scrollIntoView({ block: 'start', behavior }); };
  const bring = (...elements) => elements.forEach(one => one?.scrollIntoView({ block: 'nearest', behavior: 'instant' }));
  const bringCard = () => bring(last('.ask'), last('.ask .ask-row')); // its buttons at least, where it is taller than the view
  addEventListener('scroll', spot, { passive: true });
  jump?.addEventListener('click', () => { root.scrollBy({ top: below() + 16, behavior: calm() }); text().focus({ preventScroll: true }); });
  on('htmx:sse:after:message', spot);
  on('turn', event => {
    const sent = $('#' + event.detail.data), waits = sent && $('.queued', sent);
    if (!waits) { toQuestion(event.detail.data, calm()); return say('Sent. Cortex is answering.'); }
    bring(sent); bringCard(); say('Sent. It waits its turn.');
  });
  on('run', event => {
    const now = event.detail.data;
    if (now !== 'ask') form().dataset.running = now === 'start' ? 1 : 0;
    if (now === 'ask') say('Cortex asks for your approval. Press . to go there.');
  });
  on('ended', event => say({ done: 'Answer complete.', stopped: 'Stopped.', failed: 'The answer stopped with an error.' }[event.detail.data] ?? 'The answer ended early.'));
  on('shown', event => { // what had the focus may be out of view
    const question = $('#' + event.detail.data);
    if (document.activeElement === document.body) question?.focus();
    say($('.ver a', question ?? log)?.ariaLabel);
  });
  on('title', event => document.title = event.detail.data + ' · Cortex');
  if (log && !location.hash && !location.search.includes('before')) {
    const running = form()?.dataset.running === '1' && last('.turn.bot')?.previousElementSibling;
    running ? toQuestion(running.id, 'instant') : root.scrollTo({ top: root.scrollHeight, behavior: 'instant' });
    bringCard();
  }
  spot();

  // older messages go in above: one compensation, ours, with the browser's own anchoring off for that frame
  on('htmx:before:swap', event => {
    const source = event.detail.ctx?.sourceElement;
    if (!source?.closest?.('.earlier')) return;
    const height = root.scrollHeight, top = root.scrollTop;
    root.style.overflowAnchor = 'none';
    queueMicrotask(function mend() {
      if (root.scrollHeight === height && source.isConnected) return requestAnimationFrame(mend);
      root.scrollTop = top + root.scrollHeight - height;
      requestAnimationFrame(() => root.style.overflowAnchor = '');
    });
  });

  // --- composer
  const mine = document.body.dataset.user, draft = 'draft:' + mine + location.pathname; // another person may come in here
  const typed = () => text().dispatchEvent(new Event('input', { bubbles: true }));
  const fits = CSS.supports('field-sizing', 'content');
  on('input', event => {
    const box = event.target;
    if (box.id !== 'text') return;
    if (!fits) { box.style.height = 'auto'; box.style.height = box.scrollHeight + 'px'; }
    box.value ? sessionStorage[draft] = box.value : delete sessionStorage[draft];
    if (box.value === '/') brought('snippets').then(script => script.begin()).catch(() => {});
  });
  if (text() && !text().value && sessionStorage[draft]) { text().value = sessionStorage[draft]; setTimeout(typed, 300); }
  const press = isQuick => {
    const box = form(), was = box.mode.value;
    if (isQuick) { box.mode.value = 'chat'; box.quick.value = 1; }
    box.requestSubmit($('.send:not(.stop)'));
    if (isQuick) setTimeout(() => { box.mode.value = was; box.quick.value = ''; }, 50);
  };
  // own words stand in the log at once and give way to the stored ones. What did not get through goes again by itself,
  // also after a reload: the server takes the same words with the same `once` in once. One is under way at a time.
  const unsentAs = 'own:' + mine + location.pathname;
  let flight, again, wait = 0, next;
  const keep = words => { words ? sessionStorage[unsentAs] = JSON.stringify(words) : delete sessionStorage[unsentAs]; };
  const launch = (words, isQuick, once) => {
    const made = $('#mine').content.firstElementChild.cloneNode(true);
    $('.said', made).textContent = words;
    for (const file of all('#files b')) $('.said', made).append((words ? '\n' : '') + file.textContent);
    log.append(made);
    flight = { words, isQuick, once, made };
    keep({ words, isQuick, once });
    bring(made);
  };
  const resend = () => {
    clearTimeout(again);
    if (!flight || flight.isOut) return;
    flight.typed = text().value;
    text().value = flight.words; form().once.value = flight.once;
    flight.goes = true;
    press(flight.isQuick);
  };
  const later = why => {
    flight.isOut = false;
    wait = Math.min(wait * 2 || 2000, 15000);
    clearTimeout(again);
    again = setTimeout(resend, wait);
    const { dataset } = $('#mine'), state = navigator.onLine ? 'failed' : 'offline';
    const shown = (why && navigator.onLine ? why + ' ' : '') + dataset[state];
    flight.made.dataset.state = state;
    if ($('.going span', flight.made).textContent !== shown) say($('.going span', flight.made).textContent = shown);
  };
  const landed = state => {
    clearTimeout(again); wait = 0; keep();
    const { made, typed: isAgain, words } = flight, seen = isAgain != null && all('.user:not(.mine) .said').slice(-3);
    if (!state || seen && seen.some(one => one.textContent.trim() === words.trim())) made.remove();
    made.dataset.state = state;
    flight = next = undefined;
    form().once.value = [...crypto.getRandomValues(new Uint8Array(16))].map(byte => byte.toString(16).padStart(2, '0')).join('');
  };
  const giveWords = () => {
    const { words } = flight;
    landed();
    text().value = words + (text().value && '\n' + text().value);
    typed();
  };
  const takeBack = () => { giveWords(); text().focus(); };
  const isSend = ctx => ctx?.sourceElement?.id === 'composer';
  const comesBack = ctx => flight && isSend(ctx) && (!ctx.response || [502, 503, 504].includes(ctx.response.status));
  on('htmx:before:request', ({ detail: { ctx } }) => {
    if (!isSend(ctx)) return;
    const sent = ctx.request.body;
    if (!flight) launch(sent.get('text'), sent.get('quick'), sent.get('once'));
    text().value = flight.typed ?? '';
    flight.goes = !(flight.isOut = true);
    typed();
  });
  on('submit', event => { // the next words wait for those that are under way
    if (event.target !== form() || !flight || flight.goes) return;
    event.preventDefault(); event.stopImmediatePropagation();
    const isQuick = form().quick.value;
    next = () => press(isQuick);
    setTimeout(resend); // a form that is being sent takes no other sending
  }, true);
  if (log) new MutationObserver(changes => {
    for (const { addedNodes } of changes) for (const one of addedNodes) {
      if (!one.matches?.('.user:not(.mine)')) continue;
      const words = $('.said', one)?.textContent.trim() ?? '';
      all('.mine').find(own => $('.said', own).textContent.startsWith(words))?.remove();
    }
  }).observe(log, { childList: true });
  if (form() && sessionStorage[unsentAs]) {
    const { words, isQuick, once } = JSON.parse(sessionStorage[unsentAs]);
    launch(words, isQuick, once); later();
  }
  addEventListener('online', resend);
  on('keydown', event => {
    if (event.key !== 'Enter' || event.isComposing) return;
    if (event.target.matches('.ask [name=choice]:not([value=deny])')) { event.preventDefault(); return say('Enter does not approve. Press Space, or click.'); }
    const edited = event.target.closest('.edit textarea')?.form;
    if ((event.target.id !== 'text' && !edited) || event.shiftKey) return;
    if (matchMedia('(pointer:coarse)').matches && !event.metaKey && !event.ctrlKey) return; // on phones Enter is a new line
    event.preventDefault();
    if (edited) return edited.requestSubmit();
    press(event.altKey);
  });
  on('htmx:after:request', event => {
    const source = event.detail.ctx?.sourceElement, status = event.detail.ctx?.response?.status ?? 0;
    if (source?.matches?.('[data-ask]') && status < 400) text()?.focus({ preventScroll: true });
    if (!isSend(event.detail.ctx) || !flight) return;
    if (status >= 400 && !comesBack(event.detail.ctx)) return status === 422 ? landed() : giveWords(); // it says why
    if (!status || status >= 400) return;
    const by = next, sent = event.detail.ctx.request.body;
    landed('stored');
    if (by) setTimeout(by);
    if (!sent.get('quick')) source.rounds_default.value = sent.get('max_rounds');
    sent.getAll('attached').forEach(id => $('#f' + id)?.remove());
  });

  // --- files: their script comes with the first one
  const give = (event, files) => {
    if (!files?.length || !$('#files')) return;
    const all = [...files];
    event.preventDefault();
    script('attach').then(script => script.give(all));
  };
  on('change', event => { if (event.target.id === 'pick') { give(event, event.target.files); event.target.value = ''; } });
  on('paste', event => give(event, event.clipboardData?.files));
  on('dragover', event => { if ($('#files') && event.dataTransfer?.types.includes('Files')) event.preventDefault(); });
  on('drop', event => give(event, event.dataTransfer?.files));

  // --- clicks: copy, steps, examples, dialogs, why
  const closeTo = async (link, event) => {
    const box = link.closest(link.dataset.close);
    if (!box) return;
    event.preventDefault();
    box.close ? box.close() : box.remove();
  };
  const wholeOf = async from => {
    const link = $('.short a', from)?.href ?? ($('.math', from) && `/c/${form().cid.value}/whole/${from.id.slice(1)}`);
    const answer = link && await fetch(link + '.txt');
    if (answer && !answer.ok) throw answer;
    return answer ? answer.text() : [...from.querySelectorAll('.md')].map(text => text.innerText).join('\n\n') || from.innerText;
  };
  const copy = async button => {
    if (button.dataset.share && navigator.share) return navigator.share({ url: button.dataset.share }).catch(() => {}); // called off
    const from = button.matches('[data-copy]') ? button.closest('.code,.say').querySelector('code') : button.closest('.turn').querySelector('.said,.prose');
    try { await navigator.clipboard.writeText(await wholeOf(from)); say('Copied.'); button.classList.add('did'); setTimeout(() => button.classList.remove('did'), 1200); }
    catch { say('Copying was blocked.'); }
  };
  const count = () => {
    const { value } = form().max_rounds, word = $('#r-w');
    $('#r-n').textContent = value;
    word.textContent = ' ' + word.dataset[value === '1' ? 'one' : 'many'];
  };
  const step = button => {
    const box = form().max_rounds;
    box.value = Math.min(+box.max, Math.max(+box.min, +box.value + +button.dataset.step));
    box.dispatchEvent(new Event('change', { bubbles: true }));
  };
  on('change', event => { if (event.target.name === 'max_rounds') count(); });
  const fill = link => { text().value = link.dataset.fill || link.textContent; text().focus(); typed(); };
  // what stood there before is never shown again: what cannot be fetched is a page, which says why
  const fetched = async (href, box) => {
    box.replaceChildren();
    await Promise.all([style(), htmx.ajax('GET', href, { target: box, swap: 'innerHTML' })]).catch(() => {});
    return box.firstChild || void (location = href);
  };
  const ask = async href => {
    const box = $('#confirm');
    if (!await fetched(href, box)) return;
    $('#menu')?.hidePopover?.();
    box.showModal();
  };
  const why = async link => {
    const box = $('#why');
    box.style.positionAnchor = 'auto';
    if (await fetched(link.href, $('#why-b'))) box.showPopover({ source: link });
  };
  const palette = () => brought('palette').then(script => script.open()).catch(() => location = '/search');
  const bell = link => brought('bell').then(script => script.toggle(link)).catch(() => location = link.href);
  const preview = button => script('preview').then(script => script.toggle(button), () => say('Cortex cannot be reached.'));
  const clicks = [['[data-palette]', palette, true], ['.bell,.bell-m', bell, true], ['[data-preview]', preview], ['[data-close]', closeTo], ['[data-copy],[data-copy-turn]', copy], ['[data-step]', step], ['[data-resend]', resend], ['[data-take-back]', takeBack], ['[data-fill]', fill, true], ['[data-confirm]', link => ask(link.href), true], ['[data-pop=why]', why, true]];
  on('click', event => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    for (const [selector, act, stays] of clicks) {
      const found = event.target.closest(selector);
      if (!found) continue;
      if (stays) event.preventDefault();
      return act(found, event);
    }
  });
  $('#why')?.addEventListener('beforetoggle', event => {
    if (event.newState === 'closed') event.target.style.positionAnchor = '';
    else if (style() && !event.source?.dataset?.pop && form()) htmx.ajax('POST', '/why', { values: Object.fromEntries(new FormData(form())), target: '#why-b', swap: 'innerHTML' });
  });
  $('#menu')?.addEventListener('beforetoggle', event => { event.target.dataset.part = event.source?.dataset.part ?? ''; });
  on('toggle', event => { if (event.target.id === 'plan' && event.newState === 'open') $(':checked', event.target).focus(); }, true);
  setInterval(() => all('[data-left]').forEach(time => {
    const left = Math.round((new Date(time.dateTime) - Date.now()) / 1000);
    if (left > 0 && left < 3600) time.title = Math.floor(left / 60) + ' min ' + left % 60 + ' s left';
  }), 1000);

  // --- a request counts as looked at while it is in view on a page in front: else its person is notified
  const looked = () => document.visibilityState === 'visible' && document.hasFocus() && all('[data-looked]').forEach(card => {
    const box = card.getBoundingClientRect();
    if (box.height && box.bottom > 0 && box.top < innerHeight) fetch('/approvals/' + card.dataset.looked + '/looked', { method: 'POST' }).catch(() => {});
  });
  setInterval(looked, 2e4); addEventListener('focus', looked); on('visibilitychange', looked);

  // --- keyboard
  let leader = '';
  const walk = way => {
    const turns = all('.turn'), at = turns.indexOf(document.activeElement.closest('.turn'));
    const next = turns[at < 0 ? (way < 0 ? turns.length - 1 : 0) : Math.min(turns.length - 1, Math.max(0, at + way))];
    next?.focus({ preventScroll: true }); next?.scrollIntoView({ block: 'nearest' });
  };
  const flip = at => {
    const turn = document.activeElement.closest('.turn');
    const box = turn ? $('.ver', turn.matches('.bot') ? turn.previousElementSibling : turn) : last('.ver');
    box?.querySelectorAll('button')[at].click();
  };
  const mode = () => { const modes = [...form().mode], at = modes.findIndex(one => one.checked); modes[(at + 1) % modes.length].click(); };
  const places = { h: '/today', c: '/c', t: '/tasks', r: '/reminders', j: '/jobs', n: '/notes', d: '/journals', m: '/models', u: '/usage', a: '/account' };
  const keys = {
    '/': () => text()?.focus(), n: () => location = '/c/new', s: palette, j: () => walk(1), k: () => walk(-1),
    y: () => last('.bot [data-copy-turn]')?.click(), e: () => last('[data-edit]')?.click(), r: () => last('[data-again]')?.click(),
    w: () => (last('[data-pop=why]') ?? $('[popovertarget=why]'))?.click(), m: () => form() && mode(), '<': () => flip(0), '>': () => flip(1), '.': () => last('.ask [value=deny]')?.focus(),
    '?': () => mine && ask('/shortcuts'), g: () => { leader = 'g'; setTimeout(() => leader = '', 1200); },
  };
  on('keydown', event => {
    const floats = $(':popover-open,dialog[open]');
    if ((event.ctrlKey || event.metaKey) && event.key === 'k' && mine) { event.preventDefault(); return palette(); }
    if (event.key === 'Escape' && floats?.id === 'plan') setTimeout(() => text().focus());
    if (event.key === 'Escape' && form()?.dataset.running === '1' && !floats) return $('.stop')?.click();
    if (event.ctrlKey || event.metaKey || event.altKey || floats || typing(event) || document.body.dataset.keys === 'off') return;
    if (leader) { leader = ''; if (places[event.key]) location = places[event.key]; return; }
    const act = keys[event.key];
    if (act) { event.preventDefault(); act(); }
  });

  // --- formulas: what draws them comes only where there is one, also in the midst of an answer; until it is there they
  // and what follows are not shown, for ten seconds at most, so that nothing jumps when they are drawn
  const formulas = () => {
    if (!$('.math')) return;
    const { dataset } = root, shown = () => delete dataset.math;
    seen.disconnect();
    dataset.math = '';
    setTimeout(shown, 1e4);
    import('/static/vendor/math.js?v=' + dataset.version).catch(shown);
  };
  const seen = new MutationObserver(formulas);
  seen.observe(document.body, { childList: true, subtree: true });
  formulas();

  // --- connection
  const banner = $('#offline');
  const show = words => { banner.textContent = words ?? ''; banner.hidden = !words; };
  const net = () => show(navigator.onLine ? '' : banner.dataset.offline);
  addEventListener('online', net); addEventListener('offline', net);
  if (!navigator.onLine) net();
  on('htmx:sse:error', event => { if (event.detail.status === 401) location.reload(); else show(banner.dataset.lost); });
  // the extension hears of hiding only while it streams: a tab that was behind before that must free its connection too
  const pause = () => { if (document.hidden) document.dispatchEvent(new Event('visibilitychange')); };
  on('htmx:sse:after:connection', () => { show(''); setTimeout(pause, 50); });
  // a card asks how far its agent is while it works: not while nobody looks
  on('htmx:before:request', event => { if (document.hidden && event.target.matches('.agent')) event.preventDefault(); });

  // --- what failed and left no mark on the page: told where news is told, until something works
  let told;
  const tell = words => {
    told = $('#news').content.firstElementChild.cloneNode(true);
    if (words) $('span', told).textContent = words;
    $('#toasts').replaceChildren(told);
  };
  const isTyping = ctx => ctx.sourceElement.id === 'tools'; // the price is asked for while typing: nobody waits for it
  const isAct = ctx => ctx?.request.method === 'POST' && !isTyping(ctx);
  on('htmx:error', ({ detail: { ctx } }) => {
    if (!navigator.onLine) net();
    if (comesBack(ctx)) return later();
    if (isAct(ctx) && !ctx.response) tell();
  });
  on('htmx:response:error', ({ detail: { ctx } }) => {
    const { status } = ctx.response, isShown = ctx.swap !== 'none' || (status === 422 && ctx.sourceElement === form());
    if (status === 401 || isTyping(ctx) || (isShown && status < 500)) return; // 401 leads to the login
    const page = new DOMParser().parseFromString(ctx.text, 'text/html');
    const why = ($('.say', page) ?? (status < 500 && page.body))?.textContent?.trim(); // a 5xx without ours is a proxy's
    comesBack(ctx) ? later(why) : tell(why);
  });
  on('htmx:after:request', ({ detail: { ctx } }) => { if (isAct(ctx) && ctx.response.status < 400) told?.remove(); });

  // --- what a form sends stays in this tab until it was taken: behind a login, an error or Back its page has it again
  const { sent } = sessionStorage, [came = {}] = performance.getEntriesByType('navigation');
  const refused = $('[data-refused]');
  const SECRET = /pass|secret|token|key|auth|config|header|environment|^(old|new|code)$/i; // as web/errors.py has them
  const boxes = form => [...form.elements].filter(box => box.matches('input:not([type=password],[type=file]),textarea,select') && !SECRET.test(box.name));
  const isTick = box => /checkbox|radio/.test(box.type);
  if (came.type === 'reload' && came.redirectCount) delete sessionStorage.lost; // sent again, and taken
  if (sent && (refused || came.type === 'back_forward' || !document.referrer)) sessionStorage.lost = sent;
  delete sessionStorage.sent;
  on('submit', ({ target }) => {
    const words = boxes(target).map(box => [box.name, isTick(box) ? box.checked : box.value]);
    if (refused || target === form() || target.getAttribute('method') !== 'post' || !boxes(target).some(box => !/checkbox|radio|hidden/.test(box.type) && box.value.trim())) return;
    sessionStorage.sent = JSON.stringify({ mine, to: target.getAttribute('action'), words });
  });
  on('htmx:after:request', ({ detail: { ctx } }) => { if (isAct(ctx) && ctx.response.status < 400) delete sessionStorage.sent; });
  const giveBack = () => {
    const kept = JSON.parse(sessionStorage.lost ?? '{}');
    const back = kept.mine === mine && [...document.forms].find(one => one.getAttribute('action') === kept.to);
    if (!back) return;
    boxes(back).forEach((box, at) => { if (kept.words[at]?.[0] === box.name) box[isTick(box) ? 'checked' : 'value'] = kept.words[at][1]; });
    delete sessionStorage.lost;
    tell($('#news').dataset.back);
  };
  on('htmx:after:swap', giveBack);
  giveBack();

  // --- what is told while this page is open, unless it stands here; gone when it was answered elsewhere
  on('told', ({ detail: { data } }) => {
    const news = document.createRange().createContextualFragment(data).firstElementChild;
    if (news.dataset.path === location.pathname) return;
    $('#toasts').append(news);
    htmx.process(news);
    all('#toasts .news').slice(0, -3).forEach(old => old.remove());
  });
  on('heard', ({ detail: { data } }) => $('#told-' + data)?.remove());

  // --- the code of a one-time link stands after #, which no server sees: into the form, out of the address
  const codes = all('[data-setup] [name=token]');
  const take = () => { if (codes.length && location.hash.length > 8) { codes.forEach(code => { code.value = location.hash.slice(1); code.closest('.fr').hidden = true; }); history.replaceState(null, '', location.pathname); } };
  take(); addEventListener('hashchange', take);

  // --- whoever comes in says where they live: it counts while they have no zone of their own
  all('[data-browser-zone]').forEach(box => box.value = Intl.DateTimeFormat().resolvedOptions().timeZone ?? '');
})();
