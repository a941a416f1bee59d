// A page of the browser: runs the page scripts in a world of their own, waits for navigations, and sees its dialogs.

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { errors } from 'appium/driver.js';

const WORLD = 'pytest-device';
const ASK = 'pytestDeviceAsk';
const CHANNEL = `const CHANNEL = '${randomUUID()}'; const ASK = '${ASK}';`;
const SCRIPTS = [
  'page-properties.js', 'page-tree.js', 'page-fields.js', 'page-find.js', 'page-press.js', 'page-alert.js', 'page-answer.js',
];
const textOf = (name) => readFileSync(new URL(name, import.meta.url), 'utf8');
/** Installed in each document before its own scripts. What it defines is invisible to them. */
const SOURCE = `globalThis.pytestDevice ??= (() => {
${[CHANNEL, ...SCRIPTS.map(textOf)].join('\n')}
return { answer, register, permit };
})();`;
/** Installed in the document's own world; it leaves no name there. */
const OWN_SOURCE = `(() => {
${CHANNEL}
${textOf('page-custom.js')}
})();`;
/** Nodes are serialized with the number by which DevTools know them, everything else in full. */
const DEEP = { serialization: 'deep', maxDepth: 6, additionalParameters: { maxNodeDepth: 0 } };
const GROUP = 'pytest-device';
const JPEG_QUALITY = 80;
const STILL_MS = 2000;
const WORLD_MS = 10_000;
const CHANGE_MS = 1000;
const SCRIPT_MS = 60_000;
const TRIES = 5;
/** The types of input events that end a touch. */
const ENDS = new Set(['touchEnd', 'touchCancel']);
const LOST_WORLD = /context|navigated|Cannot find/i;
const REFUSALS = {
  selector: errors.InvalidSelectorError, argument: errors.InvalidArgumentError, state: errors.InvalidElementStateError,
  interactable: errors.ElementNotInteractableError,
};

export class PageCrashed extends Error {}
export class PageClosed extends Error {}
/** A dialog is open, so the page does not answer; not one that was closed and is to be reported. */
export class DialogIsOpen extends errors.UnexpectedAlertOpenError {}

export class Page {
  #client;
  #session;
  #options;
  #loader = null;
  /** Whether the page has the page scripts; other commands need not wait for that. */
  #isPrepared = false;
  #isLoading = false;
  #isScheduled = false;
  /** Execution contexts of the page scripts by frame. */
  #worlds = new Map();
  /** Numbers of elements in the page scripts' list, by element ID; of the current document only. */
  #numbers = new Map();
  /** Functions that reject the commands in progress. */
  #pending = new Set();
  /** Functions that are called at the next event of the page. */
  #waiting = new Set();
  #gone = null;
  #cast = null;
  /** The last frame that the browser sent, in Base64. */
  #frame = null;

  constructor(client, target, session, options) {
    this.target = target;
    /** The open dialog: { type, message, text }, null without one. */
    this.dialog = null;
    /** The message of a dialog that was closed, until a command reports it. */
    this.reported = null;
    this.#client = client;
    this.#session = session;
    this.#options = options;
    for (const [event, handle] of Object.entries(this.#events())) {
      client.on(`${event}.${session}`, (params) => {
        handle(params);
        this.wake();
      });
    }
    this.#prepare().catch(() => {}); // the page was closed early
  }

  static async attach(client, target, options) {
    const { sessionId } = await client.send('Target.attachToTarget', { targetId: target, flatten: true });

    return new Page(client, target, sessionId, options);
  }

  /** Whether the page can still answer. */
  get isGone() {
    return this.#gone !== null;
  }

  get hasCrashed() {
    return this.#gone instanceof PageCrashed;
  }

  onClose() {
    this.#end(new PageClosed('the page was closed'));
  }

  onCrash() {
    this.#end(new PageCrashed('the page crashed'));
  }

  /** Throw UnexpectedAlertOpen for a dialog that was closed and is to be reported, once. */
  report() {
    const { reported } = this;
    this.reported = null;
    if (reported !== null) throw new errors.UnexpectedAlertOpenError(`an alert was open: ${reported}`);
  }

  /** Send a command to the page. Throws if the page ends before it answers. */
  async send(method, params = {}) {
    return await this.#bounded((resolve, reject) => {
      this.#client.send(method, params, this.#session).then(resolve, reject);
    }, this.#pending);
  }

  /** Look again at what is waited for: another page has changed. */
  wake() {
    for (const check of [...this.#waiting]) check();
  }

  /** Send a command that the page cannot answer while a dialog is open. Throws UnexpectedAlertOpen then. */
  async sendToDocument(method, params = {}) {
    this.refuseDialog();
    const answer = this.send(method, params);
    answer.catch(() => {}); // of a page that ends after the dialog opened
    const opened = this.#until(() => this.#stopper !== null, SCRIPT_MS);
    try {
      const answered = answer.then((value) => ({ value }));
      const stopped = opened.promise.then(() => null);
      const outcome = await Promise.race([answered, stopped]);
      if (outcome !== null) return outcome.value;
    } finally {
      opened.cancel();
    }

    this.refuseDialog();

    throw new errors.ScriptTimeoutError(`the page did not respond to ${method} within ${SCRIPT_MS / 1000} s`);
  }

  refuseDialog() {
    const stopper = this.#stopper;
    if (stopper) throw new DialogIsOpen(`an alert is open: ${stopper.dialog.message}`);
  }

  /**
   * Run a query of the page scripts on an element, or null; return its value. `isDeep` is for elements: their IDs.
   *
   * Throws what the scripts refuse, StaleElementReference for an element that left the document.
   */
  async query(request, element = null) {
    for (let tries = 1; ; tries += 1) {
      await this.loaded();
      const world = await this.#world();
      try {
        const number = element === null ? null : await this.#numberOf(element, world);
        return await this.#answer(world, request, number, element);
      } catch (error) {
        // The page was navigated meanwhile: the new document answers.
        const isLost = error.response && LOST_WORLD.test(error.message);
        if (!isLost || tries === TRIES) throw error;

        const hasChanged = () => this.#worlds.get(this.target) !== world;
        if (!hasChanged()) await this.#until(hasChanged, CHANGE_MS).promise;
      }
    }
  }

  /** Perform an input; return once the page has handled it and a navigation that it began is over. */
  async input(events) {
    this.refuseDialog();
    try {
      await this.dispatch(events);
      await this.settled();
    } catch (error) {
      if (!(error instanceof PageClosed)) throw error; // the input has closed it
    }
  }

  /** Send input events one after the other; return once the page has handled all of them, or a dialog is open. */
  async dispatch(events) {
    const sent = events.map(([method, params]) => {
      if (!this.#stopper || !ENDS.has(params.type)) return this.sendToDocument(method, params);

      // The page handles it after the dialog. Without it, the browser would ignore the next touch.
      this.send(method, params).catch(() => {}); // of a page that ends with the dialog
      return null;
    });
    const results = await Promise.allSettled(sent);

    const failed = results.find(({ status, reason }) => status === 'rejected' && !isAlert(reason));
    if (failed) throw failed.reason;
  }

  /** Wait for a navigation that the commands before have begun. */
  async settled() {
    if (this.#stopper) return;

    try {
      // The page's own events come before the answer.
      await this.sendToDocument('Runtime.evaluate', { expression: '0' });
    } catch (error) {
      if (!isAlert(error) && !LOST_WORLD.test(error.message)) throw error;
    }

    await this.loaded();
  }

  /** Wait until the document is loaded, or a dialog opens. Throws Timeout. */
  async loaded() {
    const { pageLoad, strategy } = this.#options.limits();
    const isLoaded = () => strategy === 'none' || !(this.#isLoading || this.#isScheduled);
    const isReady = () => this.#stopper !== null || (this.#isPrepared && isLoaded());
    if (isReady()) return;

    const hasLoaded = await this.#until(isReady, pageLoad).promise;
    if (!hasLoaded) throw new errors.TimeoutError(`the page was not loaded within ${pageLoad / 1000} s`);
  }

  /** Accept or dismiss the open dialog. Throws NoAlertOpen. */
  async closeDialog(accept, { isReported = false } = {}) {
    const { dialog } = this;
    if (!dialog) throw new errors.NoAlertOpenError();

    const text = accept && dialog.text !== undefined ? { promptText: dialog.text } : {};
    await this.send('Page.handleJavaScriptDialog', { accept, ...text });
    this.#closed(dialog);
    if (isReported) this.reported = dialog.message;

    await this.settled();
  }

  /** Return the URL and the title of the document. */
  async address() {
    const { currentIndex, entries } = await this.send('Page.getNavigationHistory');

    return entries[currentIndex];
  }

  /** Return the URLs of the document and of the one before it in the history, which is undefined for the first. */
  async lastUrls() {
    const { currentIndex, entries } = await this.send('Page.getNavigationHistory');

    return [entries[currentIndex].url, entries[currentIndex - 1]?.url];
  }

  /** Go back or forward in the history; return false at its end. */
  async go(steps) {
    const { currentIndex, entries } = await this.send('Page.getNavigationHistory');
    const entry = entries[currentIndex + steps];
    if (!entry) return false;

    await this.send('Page.navigateToHistoryEntry', { entryId: entry.id });
    await this.settled();

    return true;
  }

  /** Return a screenshot in Base64, of all of the screen or of a part: { x, y, width, height, scale }. */
  async screenshot(part) {
    await this.loaded();
    const options = { format: 'png' };
    if (part) {
      // The browser counts from the beginning of the document, which may have been scrolled.
      const { cssVisualViewport: { pageX, pageY } } = await this.sendToDocument('Page.getLayoutMetrics');
      options.clip = { ...part, x: part.x + pageX, y: part.y + pageY };
    }
    const { data } = await this.sendToDocument('Page.captureScreenshot', options);

    return data;
  }

  /** Pass the frames that the page draws, JPEG in Base64, to `take`, with at least some milliseconds between two of them. */
  async startCast(take, gapMs) {
    this.#cast = { take, gapMs };
    // The browser sends frames of a page with an open dialog, too, but answers only after it.
    this.send('Page.startScreencast', { format: 'jpeg', quality: JPEG_QUALITY }).catch(() => {});
  }

  async stopCast() {
    this.#cast = null;
    this.send('Page.stopScreencast').catch(() => {});
  }

  /** Return what the page shows, as a JPEG image in Base64, even while a dialog blocks it; null if it was never drawn. */
  async still() {
    this.#frame = null;
    const { promise, cancel } = this.#until(() => this.#frame, STILL_MS);
    // A new start has the browser send a frame, even if nothing has changed.
    if (this.#cast) this.send('Page.stopScreencast').catch(() => {});
    this.send('Page.startScreencast', { format: 'jpeg', quality: JPEG_QUALITY }).catch(() => {});
    await promise.finally(cancel);
    if (!this.#cast) this.send('Page.stopScreencast').catch(() => {});

    return this.#frame;
  }

  /** Evaluate an expression in the page scripts' world, as if a user had caused it; return its value. */
  async evaluate(expression) {
    await this.loaded();
    const { uniqueId } = await this.#world();
    const options = { expression, uniqueContextId: uniqueId, awaitPromise: true, returnByValue: true, userGesture: true };

    return resultOf(await this.sendToDocument('Runtime.evaluate', options)).value;
  }

  /** Return the text of the clipboard by pasting it: pages without an origin, such as that of a dialog, have no other way. */
  async paste() {
    return await this.#inField('', 'paste');
  }

  /** Set the text of the clipboard by copying it. */
  async copy(text) {
    await this.#inField(text, 'copy');
  }

  /** Call a function of the document's own world on an element; return its value. */
  async callOn(element, functionDeclaration, args = []) {
    await this.loaded();
    const { object } = await this.sendToDocument('DOM.resolveNode', { backendNodeId: this.#nodeOf(element), objectGroup: GROUP });
    const call = { functionDeclaration, objectId: object.objectId, arguments: args.map((value) => ({ value })), returnByValue: true };

    return resultOf(await this.sendToDocument('Runtime.callFunctionOn', call)).value;
  }

  /** Perform an editing command in a field that exists for the moment; return its text. */
  async #inField(text, command) {
    await this.evaluate(`globalThis.field = document.body.appendChild(document.createElement('textarea'));
      field.value = ${JSON.stringify(text)}; field.focus(); field.select();`);
    try {
      await this.dispatch([
        ['Input.dispatchKeyEvent', { type: 'keyDown', key: 'Unidentified', commands: [command] }],
        ['Input.dispatchKeyEvent', { type: 'keyUp', key: 'Unidentified' }],
      ]);
      return await this.evaluate('field.value');
    } finally {
      await this.evaluate('field.remove()');
    }
  }

  async #answer(world, request, number, element) {
    const { isDeep, ...rest } = request;
    const call = {
      functionDeclaration: 'function (...args) { return pytestDevice.answer(...args); }',
      uniqueContextId: world.uniqueId, arguments: [{ value: rest }, { value: number }], awaitPromise: true,
      ...(isDeep ? { serializationOptions: DEEP, objectGroup: GROUP } : { returnByValue: true }),
    };
    const result = resultOf(await this.sendToDocument('Runtime.callFunctionOn', call));
    if (isDeep) this.send('Runtime.releaseObjectGroup', { objectGroup: GROUP }).catch(() => {});

    const answer = isDeep ? plain(result.deepSerializedValue) : result.value;
    if (answer.isStale) throw stale(element);
    if (answer.refused) throw new REFUSALS[answer.refused](answer.message);
    if (!isDeep) return answer.value;

    return answer.value.map(([index, node]) => this.#idOf(index, node));
  }

  #idOf(index, { node, loader }) {
    // The form of chromedriver's IDs, so that both drivers know each other's elements.
    const id = `f.${this.target}.d.${loader}.e.${node}`;
    this.#numbers.set(id, index);

    return id;
  }

  #nodeOf(element) {
    const [, frame, loader, node] = /^f\.(.+)\.d\.(.+)\.e\.(\d+)$/.exec(element) ?? [];
    if (frame !== this.target) {
      const owner = 'it belongs to another window, or to a frame, whose elements only the web view has';
      throw new errors.StaleElementReferenceError(`stale element reference: the element is not on the screen: ${owner}`);
    }
    if (loader !== this.#loader) throw stale(element);

    return Number(node);
  }

  async #numberOf(element, world) {
    const cached = this.#numbers.get(element);
    if (cached !== undefined) return cached;

    const resolved = this.sendToDocument('DOM.resolveNode', {
      backendNodeId: this.#nodeOf(element), executionContextId: world.id, objectGroup: GROUP,
    });
    const { object } = await resolved.catch((error) => {
      throw error.response ? stale(element) : error;
    });

    const call = {
      functionDeclaration: 'function (element) { return pytestDevice.register(element); }',
      uniqueContextId: world.uniqueId, arguments: [{ objectId: object.objectId }], returnByValue: true,
    };
    const number = resultOf(await this.sendToDocument('Runtime.callFunctionOn', call)).value;
    this.#numbers.set(element, number);

    return number;
  }

  async #world() {
    const world = () => this.#worlds.get(this.target);
    if (!world()) await this.#until(() => world() || this.#stopper, WORLD_MS).promise;
    this.refuseDialog();
    if (!world()) throw new errors.UnknownError('the page has no document');

    return world();
  }

  /** Install the page scripts, and let the page begin if it waits for that. */
  async #prepare() {
    const install = (script) => this.send('Page.addScriptToEvaluateOnNewDocument', { runImmediately: true, ...script });
    const [, , { frameTree }] = await Promise.all([
      this.send('Page.enable'),
      this.send('Runtime.enable'),
      this.send('Page.getFrameTree'),
      // Only the page scripts' world has it: the document's scripts find no trace of the driver.
      this.send('Runtime.addBinding', { name: ASK, executionContextName: WORLD }),
      install({ source: SOURCE, worldName: WORLD }),
      install({ source: OWN_SOURCE }),
      this.send('Runtime.runIfWaitingForDebugger'),
    ]);
    this.#loader ??= frameTree.frame.loaderId;
    this.#isPrepared = true;
    this.wake();
  }

  /** Return the promise of a condition that events of the page make true: true, or null after some milliseconds. */
  #until(isTrue, ms) {
    let end = () => {}; // of a page that is gone already, nothing begins
    const promise = this.#bounded((resolve) => {
      const timer = setTimeout(() => end(null), ms);
      const check = () => isTrue() && end(true);
      end = (value) => {
        clearTimeout(timer);
        this.#waiting.delete(check);
        resolve(value);
      };
      this.#waiting.add(check);
      check();
    }, this.#pending);
    promise.catch(() => end(null));

    return { promise, cancel: () => end(null) };
  }

  async #bounded(begin, rejections) {
    if (this.#gone) throw this.#gone;

    let rejection;
    try {
      return await new Promise((resolve, reject) => {
        rejection = reject;
        rejections.add(reject);
        begin(resolve, reject);
      });
    } finally {
      rejections.delete(rejection);
    }
  }

  /** The page whose dialog stops this one, null without any. */
  get #stopper() {
    return this.#options.stopperOf(this);
  }

  #end(reason) {
    this.#gone ??= reason;
    this.#closed(this.dialog);
    this.#options.onLeft(this);
    for (const reject of [...this.#pending]) reject(this.#gone);
  }

  /** Tell that a document asks for a permission; `end` lets it go on. */
  #onQuestion({ id, name }, contextId) {
    const expression = `pytestDevice.permit(${JSON.stringify(id)})`;
    const end = async () => {
      // The document may have been left meanwhile.
      await this.send('Runtime.evaluate', { expression, contextId }).catch(() => {});
    };
    this.#options.onQuestion(this, { name, end });
  }

  #closed(dialog) {
    if (!dialog || this.dialog !== dialog) return;

    this.dialog = null;
    this.#options.onDialogClosed(this);
  }

  #events() {
    // Of the page itself, not of a frame in it.
    const ofPage = (handle) => (params) => {
      if (params.frameId === this.target) handle(params);
    };
    const loading = (isLoading) => ofPage(() => {
      this.#isLoading = isLoading;
      this.#isScheduled = false;
    });

    return {
      'Page.frameStartedLoading': loading(true),
      'Page.frameStoppedLoading': loading(false),
      'Page.domContentEventFired': () => {
        if (this.#options.limits().strategy === 'eager') this.#isLoading = false;
      },
      'Page.frameScheduledNavigation': ofPage(() => {
        this.#isScheduled = true;
      }),
      'Page.frameClearedScheduledNavigation': ofPage(() => {
        this.#isScheduled = false;
      }),
      'Page.frameNavigated': ({ frame }) => {
        if (frame.id !== this.target) return;
        this.#loader = frame.loaderId;
        this.#options.onLeft(this);
      },
      'Page.javascriptDialogOpening': ({ type, message, defaultPrompt }) => {
        this.dialog = { type, message, ...(type === 'prompt' ? { text: defaultPrompt } : {}) };
        this.#options.onDialog(this);
      },
      'Page.javascriptDialogClosed': () => this.#closed(this.dialog),
      'Runtime.bindingCalled': ({ name, payload, executionContextId }) => {
        if (name === ASK) this.#onQuestion(JSON.parse(payload), executionContextId);
        else this.#options.onAnswer(payload);
      },
      'Runtime.executionContextCreated': ({ context }) => {
        if (context.name === WORLD) this.#worlds.set(context.auxData.frameId, context);
      },
      'Runtime.executionContextDestroyed': ({ executionContextUniqueId }) => {
        for (const [frame, { uniqueId }] of this.#worlds) {
          if (uniqueId === executionContextUniqueId) this.#worlds.delete(frame);
        }
      },
      'Runtime.executionContextsCleared': () => {
        this.#worlds.clear();
        this.#numbers.clear();
      },
      'Page.screencastFrame': ({ data, sessionId }) => {
        this.#frame = data;
        this.#cast?.take(data);
        // The browser sends the next frame once this one is acknowledged.
        const acknowledge = () => this.send('Page.screencastFrameAck', { sessionId }).catch(() => {});
        setTimeout(acknowledge, this.#cast?.gapMs ?? 0).unref();
      },
      'Inspector.targetCrashed': () => this.onCrash(),
    };
  }
}

export function isAlert(error) {
  return error instanceof errors.UnexpectedAlertOpenError;
}

function stale(element) {
  return new errors.StaleElementReferenceError(`stale element reference: ${element} is not in the app any more`);
}

function resultOf({ result, exceptionDetails }) {
  if (exceptionDetails) {
    throw new errors.JavaScriptError(exceptionDetails.exception?.description ?? exceptionDetails.text);
  }

  return result;
}

/** Return a deeply serialized value as a plain one; a node is { node, loader }. */
function plain({ type, value }) {
  if (type === 'object') return Object.fromEntries(value.map(([key, member]) => [key, plain(member)]));
  if (type === 'array') return value.map(plain);
  if (type === 'node') return { node: value.backendNodeId, loader: value.loaderId };
  return value ?? null;
}
