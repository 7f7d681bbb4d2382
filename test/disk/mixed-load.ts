import { randomBytes } from 'node:crypto'
import { abortAfter, pause } from '../../src/actor/clock.js'
import { encodeBundle } from '../../src/format/bundle.js'
import { tagOf } from '../../src/format/tag.js'
import { ed25519Signer, type ItemSigner, signItem } from '../../src/proof/sign.js'
import { newAccount } from '../admission/scene.js'
import { payment } from '../admission/shop.js'
import { eventually } from '../eventually.js'
import { type Payer, payerAt } from '../flow/payer.js'
import { type Running, sluice } from '../flow/running.js'
import { addressOf, headerOf } from '../signed-item.js'

const adminKey = 'the-admin-key-of-this-test'

/** Everything writes: uploads of all kinds, payments, imports, limits. */
export const loadSettings = {
  ADMIN_API_KEY: adminKey,
  DEVNET_SEED: 'false',
  DEVNET_BLOCK_MS: '400',
  UPLOAD_DISK_MIN_BYTES: '0',
  UPLOAD_FREE_ITEM_BYTES: '5000',
  UPLOAD_FREE_WALLET_BYTES: String(2 ** 40),
  ENABLE_RATE_LIMITER: 'true',
  RATE_LIMITER_IP_TOKENS_PER_BUCKET: '100000',
  RATE_LIMITER_IP_REFILL_PER_SEC: '50000',
}

/** Whatever the disk does, a client hears of it in this time. */
const patienceMs = 30_000

function request(url: string, init: RequestInit = {}): Promise<Response> {
  return fetch(url, { ...init, signal: abortAfter(patienceMs) })
}

type Act =
  | 'free'
  | 'bundle'
  | 'credits'
  | 'parts'
  | 'usdc'
  | 'top-up'
  | 'import'
  | 'block'
  | 'read'
  | 'export'

/** What an act did: acknowledged, refused in plain words (429, 503), or not at all (the connection broke). */
export type Outcome = 'done' | 'refused' | 'broken'

interface Kept {
  readonly id: string
  readonly payload: Buffer
}

/** Clients of all services at once, and all that they were told was done. */
export class MixedLoad {
  readonly outcomes: Record<Act, Record<Outcome, number>>
  /** Answers that no client may get: neither done nor refused in plain words. */
  readonly faults = new Map<string, number>()
  readonly #uploads: (Kept & { readonly isPermanent: boolean })[] = []
  readonly #blocked: string[] = []
  readonly #imported: Kept[] = []
  readonly #payers: { readonly address: string; readonly leastWinc: bigint }[] = []
  readonly #signer: ItemSigner = ed25519Signer(randomBytes(32))
  readonly #account = newAccount()
  #spent = 0n
  #bought = 0n
  #payer: Payer | undefined

  constructor(
    private readonly program: Running,
    private readonly random: () => number,
  ) {
    const none = (): Record<Outcome, number> => ({ done: 0, refused: 0, broken: 0 })
    this.outcomes = {
      free: none(),
      bundle: none(),
      credits: none(),
      parts: none(),
      usdc: none(),
      'top-up': none(),
      import: none(),
      block: none(),
      read: none(),
      export: none(),
    }
  }

  get #urls(): { gateway: string; upload: string; payment: string; devnet: string } {
    const { gateway = '', upload = '', payment: money = '', devnet = '' } = this.program.urls
    return { gateway, upload, payment: money, devnet }
  }

  /** Buys credits for the wallet that pays for uploads. */
  async begin(): Promise<void> {
    await eventually(
      'the payer has credits',
      async () => (await this.#charge(this.#address, 50_000)) === 'done',
    )
    this.#bought = await this.#balance(this.#address)
    this.#payer = await payerAt(this.#urls.devnet)
  }

  get #address(): string {
    return addressOf(this.#signer)
  }

  get #acts(): Record<Act, () => Promise<Outcome>> {
    return {
      free: () => this.#upload(this.#item(500 + Math.floor(this.random() * 3000))),
      bundle: () => this.#bundle(),
      credits: () => this.#upload(this.#item(20_000)),
      parts: () => this.#parts(),
      usdc: () => this.#usdc(),
      'top-up': () => this.#topUp(),
      import: () => this.#import(),
      block: () => this.#block(),
      read: () => this.#read(),
      export: () => this.#export(),
    }
  }

  async #act(name: Act): Promise<Outcome> {
    const outcome = await this.#acts[name]().catch((error: unknown) => this.#broken(name, error))
    this.outcomes[name][outcome] += 1
    return outcome
  }

  /** Each kind once, at the same time. */
  async once(): Promise<void> {
    await Promise.all((Object.keys(this.outcomes) as Act[]).map((name) => this.#act(name)))
  }

  /** Acts without a pause, each kind one after the other, until `isOver`. */
  async run(isOver: () => boolean, betweenMs = 0): Promise<void> {
    const loop = async (name: Act): Promise<void> => {
      while (!isOver()) {
        const outcome = await this.#act(name)
        await pause(outcome === 'done' ? betweenMs : betweenMs + 50)
      }
    }
    await Promise.all((Object.keys(this.outcomes) as Act[]).map(loop))
  }

  #fault(text: string): void {
    this.faults.set(text, (this.faults.get(text) ?? 0) + 1)
  }

  /** Connections that broke, of all acts: who is refused while he still sends may see that before the answer. */
  get brokenShare(): number {
    const all = Object.values(this.outcomes)
    const sum = (of: (one: Record<Outcome, number>) => number): number =>
      all.reduce((total, one) => total + of(one), 0)
    return (
      sum(({ broken }) => broken) /
      Math.max(
        1,
        sum(({ done, refused, broken }) => done + refused + broken),
      )
    )
  }

  #broken(name: Act, error: unknown): Outcome {
    if (error instanceof DOMException && error.name === 'TimeoutError') {
      this.#fault(`${name}: no answer within ${patienceMs} ms`)
      return 'broken'
    }
    if (!(error instanceof TypeError)) throw error
    const { code } = (error.cause ?? {}) as { readonly code?: unknown }
    if (code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_SOCKET') return 'broken'
    this.#fault(`${name}: ${error.message} ${String(error.cause)}`)
    return 'broken'
  }

  /** Judges an answer; `done` is called with its text where it is one of these. */
  async #judge(
    what: string,
    answer: Response,
    good: readonly number[],
    done: (text: string) => void,
  ): Promise<Outcome> {
    const text = await answer.text()
    if (good.includes(answer.status)) {
      done(text)
      return 'done'
    }
    const isPlain = text.trim() !== '' && !/undefined|\[object/.test(text)
    if ((answer.status !== 503 && answer.status !== 429) || !isPlain)
      this.#fault(`${what}: ${answer.status} ${text.slice(0, 200)}`)
    return 'refused'
  }

  #item(bytes: number): { readonly item: Buffer; readonly payload: Buffer } {
    const payload = randomBytes(bytes)
    return { payload, item: Buffer.from(signItem(this.#signer, { anchor: randomBytes(32) }, payload)) }
  }

  async #upload({ item, payload }: { readonly item: Buffer; readonly payload: Buffer }): Promise<Outcome> {
    const answer = await request(`${this.#urls.upload}/v1/tx`, { method: 'POST', body: item })
    return this.#judge('upload', answer, [200, 202], (text) => this.#received(text, payload))
  }

  #received(text: string, payload: Buffer): void {
    const { id, winc } = JSON.parse(text) as { id: string; winc: string }
    this.#uploads.push({ id, payload, isPermanent: true })
    this.#spent += BigInt(winc)
  }

  async #bundle(): Promise<Outcome> {
    const { item, payload } = this.#item(300)
    const { id } = headerOf(item)
    const bundle = Buffer.from(encodeBundle([{ id, bytes: item }]))
    const tags = [tagOf('Bundle-Format', 'binary'), tagOf('Bundle-Version', '2.0.0')]
    const body = Buffer.from(signItem(this.#signer, { tags, anchor: randomBytes(32) }, bundle))
    const answer = await request(`${this.#urls.upload}/v1/tx`, { method: 'POST', body })
    return this.#judge('bundle', answer, [200, 202], (text) => {
      this.#received(text, bundle)
      this.#uploads.push({ id, payload, isPermanent: false })
    })
  }

  async #parts(): Promise<Outcome> {
    const { item, payload } = this.#item(60_000)
    const base = `${this.#urls.upload}/v1/chunks/any`
    let id = ''
    const begun = await this.#judge('parts, begun', await request(`${base}/-1/-1`), [200], (text) => {
      id = (JSON.parse(text) as { id: string }).id
    })
    if (begun !== 'done') return begun
    const part = await request(`${base}/${id}/0`, { method: 'POST', body: item })
    const sent = await this.#judge('a part', part, [200], () => undefined)
    if (sent !== 'done') return sent
    const end = await request(`${base}/${id}/-1`, { method: 'POST' })
    return this.#judge('parts, ended', end, [200, 202], (text) => this.#received(text, payload))
  }

  async #usdc(): Promise<Outcome> {
    const { item, payload } = this.#item(15_000)
    const url = `${this.#urls.upload}/v1/x402/upload/signed`
    const offered = await request(url, { method: 'POST', body: item })
    let wish: { maxAmountRequired: string; payTo: string } | undefined
    const offer = await this.#judge('an offer', offered, [402], (text) => {
      wish = (JSON.parse(text) as { accepts: (typeof wish)[] }).accepts[0]
    })
    if (offer !== 'done' || wish === undefined) return offer
    const headers = await payment(this.#account, 1, { to: wish.payTo, value: wish.maxAmountRequired }, 'base')
    // Paid for and not answered, it is sent again as it is, as clients do.
    for (let tries = 0; ; tries += 1) {
      const answer = await request(url, { method: 'POST', body: item, headers })
      const outcome = await this.#judge('an item that is paid for', answer, [200, 202], (text) => {
        const { id } = JSON.parse(text) as { id: string }
        this.#uploads.push({ id, payload, isPermanent: true })
      })
      if (outcome === 'done' || tries === 3) return outcome
      await pause(100)
    }
  }

  /** A wallet of its own buys credits by a card. */
  async #topUp(): Promise<Outcome> {
    const address = addressOf(ed25519Signer(randomBytes(32)))
    const outcome = await this.#charge(address, 1000)
    if (outcome === 'done') this.#payers.push({ address, leastWinc: 1n })
    return outcome
  }

  async #charge(address: string, cents: number): Promise<Outcome> {
    const where = `${this.#urls.payment}/v1/top-up/checkout-session/${address}/usd/${cents}`
    let url = ''
    const session = await this.#judge('a session of a card', await request(where), [200], (text) => {
      url = (JSON.parse(text) as { paymentSession: { url: string } }).paymentSession.url
    })
    if (session !== 'done') return session
    const body = new URLSearchParams({ card: '4242424242424242' })
    const paid = await request(url, { method: 'POST', body, redirect: 'manual' })
    return this.#judge('a card', paid, [200, 302, 303], () => undefined)
  }

  async #balance(address: string): Promise<bigint> {
    const judge = await request(`${this.#urls.payment}/v1/account/balance/any?address=${address}`)
    if (judge.status === 404) return 0n
    return BigInt(((await judge.json()) as { winc: string }).winc)
  }

  /** A bundle that somebody else has on the chain: the gateway opens it. */
  async #import(): Promise<Outcome> {
    const { item, payload } = this.#item(400)
    const { id } = headerOf(item)
    const bundle = Buffer.from(encodeBundle([{ id, bytes: item }]))
    try {
      await this.#payer?.post(bundle, { 'Bundle-Format': 'binary', 'Bundle-Version': '2.0.0' })
    } catch {
      // The node's disk is full, too, and the client library says so by an exception.
      return 'refused'
    }
    this.#imported.push({ id, payload })
    return 'done'
  }

  async #block(): Promise<Outcome> {
    const id = randomBytes(32).toString('base64url')
    const answer = await request(`${this.#urls.gateway}/gateway/admin/block-data`, {
      method: 'PUT',
      body: JSON.stringify({ id, source: 'test', notes: 'none' }),
      headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' },
    })
    return this.#judge('an order to block', answer, [200], () => this.#blocked.push(id))
  }

  /** Something that was taken, which must be had: a receipt was given for it. */
  async #read(): Promise<Outcome> {
    const kept = this.#uploads[Math.floor(this.random() * this.#uploads.length)]
    if (kept === undefined) return 'refused'
    const answer = await request(`${this.#urls.gateway}/raw/${kept.id}`)
    const bytes = Buffer.from(await answer.arrayBuffer())
    if (answer.status === 200) {
      if (!bytes.equals(kept.payload)) this.#fault(`read: wrong bytes of ${kept.id}`)
      return 'done'
    }
    if (answer.status !== 503 && answer.status !== 429 && kept.isPermanent)
      this.#fault(`read: ${kept.id} is ${answer.status} ${bytes.toString().slice(0, 100)}`)
    return 'refused'
  }

  async #export(): Promise<Outcome> {
    const answer = await request(`${this.#urls.gateway}/gateway/admin/export-parquet`, {
      method: 'POST',
      body: JSON.stringify({
        outputDir: `export-${Math.floor(this.random() * 1e9)}`,
        startHeight: 0,
        endHeight: 5,
        maxFileRows: 1000,
      }),
      headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' },
    })
    // So short a chain may have nothing final yet, and one export may be under way.
    const outcome = await this.#judge('an export', answer, [200, 400, 409], () => undefined)
    await pause(500)
    return outcome
  }

  /**
   * Compares all that was acknowledged with what is there, and ends the program. Rejects where something is lost. `dataPath`: its
   * ledger is checked then; absent where nobody else can read it.
   */
  async compare(dataPath?: string): Promise<Record<string, number>> {
    const { gateway, upload } = this.#urls
    const served = async ({ id, payload }: Kept): Promise<boolean> => {
      const answer = await request(`${gateway}/raw/${id}`)
      const bytes = Buffer.from(await answer.arrayBuffer())
      if (answer.status === 200 && !bytes.equals(payload)) throw new Error(`wrong bytes of ${id}`)
      return answer.status === 200
    }
    for (const kept of this.#uploads) await eventually('an upload is served', () => served(kept))
    for (const kept of this.#imported) await eventually('an imported item is served', () => served(kept))
    for (const id of this.#blocked) {
      const { status } = await request(`${gateway}/raw/${id}`)
      if (status !== 451) throw new Error(`${id} was blocked, and is answered ${status}`)
    }
    for (const { address, leastWinc } of this.#payers)
      if ((await this.#balance(address)) < leastWinc) throw new Error(`the credits of ${address} are lost`)
    // Items whose receipt was lost on the way were paid for, too: what is spent may be more, but not less.
    const left = await this.#balance(this.#address)
    if (this.#bought - left < this.#spent)
      throw new Error(`${this.#bought - left} winc were taken for receipts of ${this.#spent}`)
    for (const { id, isPermanent } of this.#uploads) {
      if (!isPermanent) continue
      await eventually('the upload is permanent', async () => {
        const judge = (await (await request(`${upload}/v1/tx/${id}/status`)).json()) as { status: string }
        if (judge.status === 'FAILED') throw new Error(`${id} failed: ${JSON.stringify(judge)}`)
        return judge.status === 'FINALIZED'
      })
    }
    const code = await this.program.stop()
    if (code !== 0) throw new Error(`it ended with ${code}`)
    const checked =
      dataPath === undefined ? undefined : await sluice(['ledger', 'check'], { DATA_PATH: dataPath })
    if (checked !== undefined && checked.code !== 0) throw new Error(checked.out + checked.err)
    return {
      uploads: this.#uploads.length,
      imported: this.#imported.length,
      blocked: this.#blocked.length,
      topUps: this.#payers.length,
    }
  }
}
