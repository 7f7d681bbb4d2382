import { randomBytes } from 'node:crypto'
import { abortAfter, pause, systemClock } from '../../src/actor/clock.js'
import { idOfBytes } from '../../src/format/id.js'
import { sha256 } from '../../src/proof/digest.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { eventually } from '../eventually.js'
import { addressOf } from '../signed-item.js'

/** Bases of the services of one machine. */
export type MachineUrls = Readonly<Record<'gateway' | 'upload' | 'payment', string>>

export const adminKey = 'the-admin-key-of-this-test'

/** Settings that the load needs: items up to 5,000 bytes are free, larger ones are paid for. */
export const loadSettings = {
  ADMIN_API_KEY: adminKey,
  UPLOAD_FREE_ITEM_BYTES: '5000',
  UPLOAD_FREE_WALLET_BYTES: String(2 ** 40),
  UPLOAD_FREE_RANGE_BYTES: String(2 ** 40),
}

interface Accepted {
  readonly id: string
  readonly payload: Buffer
  readonly winc: string
  readonly atMs: number
}

interface Sent {
  readonly item: Buffer
  readonly payload: Buffer
}

interface Answer {
  readonly status: number
  /** The machine, where it answered at last. */
  readonly where?: string
  readonly bytes: Buffer
}

/** A client waits so long for one answer, and repeats what failed for so long. */
const [answerMs, patienceMs] = [20_000, 240_000]
/** Between two actions of one client: each acts two or three times in every fault of three seconds. */
const betweenMs = 1000
/** Items that are compared at the same time. */
const comparedAtOnce = 8
/** Of answers that a client repeats its request after. */
const again = new Set([408, 425, 429, 500, 502, 503, 504])

/**
 * Clients of several machines, each request to any of them, as behind a load balancer. A request that fails for a reason of the
 * service is repeated elsewhere. Keeps all that was acknowledged, and what no client may see (`faults`).
 */
export class ClusterLoad {
  readonly faults: string[] = []
  readonly accepted: Accepted[] = []
  readonly blocked: Accepted[] = []
  readonly counts = new Map<string, number>()
  readonly #signer = ed25519Signer(randomBytes(32))
  readonly #address: string
  #bought = 0n
  /** Of all receipts. */
  #spent = 0n
  /** Accepted by a machine whose answer did not come, and permanent before another one could know its receipt. */
  readonly #unreceipted: Pick<Accepted, 'id' | 'payload'>[] = []

  /** `urls`: of the machines, as they are now. */
  constructor(
    private readonly urls: () => readonly MachineUrls[],
    private readonly random: () => number,
  ) {
    this.#address = addressOf(this.#signer)
  }

  /** Buys credits. */
  async begin(): Promise<void> {
    const [{ payment } = { payment: '' }] = this.urls()
    const session = `${payment}/v1/top-up/checkout-session/${this.#address}/usd/50000`
    const { url } = ((await (await fetch(session)).json()) as { paymentSession: { url: string } })
      .paymentSession
    const body = new URLSearchParams({ card: '4242424242424242' })
    await fetch(url, { method: 'POST', body, redirect: 'manual' })
    this.#bought = await eventually('there are credits', async () => (await this.#balance()) || undefined)
  }

  /** Clients of all kinds until `isOver`. */
  async run(isOver: () => boolean): Promise<void> {
    const kinds: readonly [string, () => Promise<void>][] = [
      ['free', () => this.#single(500 + Math.floor(this.random() * 3000))],
      ['credits', () => this.#single(20_000)],
      ['credits', () => this.#single(90_000)],
      ['parts', () => this.#parts()],
      ['block', () => this.#block()],
      ['read', () => this.#read()],
    ]
    await Promise.all(
      kinds.map(async ([kind, act]) => {
        while (!isOver()) {
          await act()
          this.#count(kind)
          await pause(betweenMs)
        }
      }),
    )
  }

  #count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
  }

  #any(): MachineUrls {
    const urls = this.urls()
    const one = urls[Math.floor(this.random() * urls.length)]
    if (one === undefined) throw new Error('there is no machine')
    return one
  }

  /** Undefined: no connection, or no answer in time. */
  async #once(url: string, init: RequestInit = {}): Promise<Answer | undefined> {
    try {
      const answer = await fetch(url, { ...init, signal: abortAfter(answerMs) })
      return { status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()) }
    } catch {
      this.#count('no answer')
      return undefined
    }
  }

  /** Repeats at any machine what has no answer, or one that says so. */
  async #patiently(what: string, url: (at: MachineUrls) => string, init: RequestInit = {}): Promise<Answer> {
    const beganMs = systemClock.monotonic()
    for (;;) {
      const where = url(this.#any())
      const answer = await this.#once(where, init)
      if (answer !== undefined && !again.has(answer.status)) return { ...answer, where }
      if (answer !== undefined) this.#count(`${what}: ${answer.status}`)
      if (systemClock.monotonic() - beganMs > patienceMs) {
        const last =
          answer === undefined ? 'none' : `${answer.status} ${answer.bytes.toString().slice(0, 200)}`
        this.faults.push(`${what}: nothing but failures for ${patienceMs} ms, the last ${last}`)
        return answer ?? { status: 0, bytes: Buffer.alloc(0) }
      }
      await pause(300)
    }
  }

  #item(bytes: number): Sent {
    const payload = randomBytes(bytes)
    return { payload, item: Buffer.from(signItem(this.#signer, { anchor: randomBytes(32) }, payload)) }
  }

  #receipt(what: string, { status, bytes, where }: Answer, { item, payload }: Sent): void {
    if (status === 409 && bytes.toString().startsWith('The network has this item already.')) {
      this.#count(`${what}: the network has it`)
      this.#unreceipted.push({ id: idOfBytes(sha256(item.subarray(2, 66))), payload })
      return
    }
    if (status !== 200 && status !== 202) {
      const at = new Date(systemClock.now()).toISOString()
      this.faults.push(`${at} ${where} ${what}: ${status} ${bytes.toString().slice(0, 200)}`)
      return
    }
    const { id, winc } = JSON.parse(bytes.toString()) as { id: string; winc: string }
    this.#spent += BigInt(winc)
    this.accepted.push({ id, payload, winc, atMs: systemClock.monotonic() })
  }

  async #single(sizeBytes: number): Promise<void> {
    const sent = this.#item(sizeBytes)
    const answer = await this.#patiently('upload', ({ upload }) => `${upload}/v1/tx`, {
      method: 'POST',
      body: sent.item,
    })
    this.#receipt('upload', answer, sent)
  }

  async #parts(): Promise<void> {
    const sent = this.#item(60_000)
    const chunks = ({ upload }: MachineUrls): string => `${upload}/v1/chunks/any`
    const begun = await this.#patiently('parts, begun', (at) => `${chunks(at)}/-1/-1`)
    if (begun.status !== 200) {
      this.faults.push(`parts, begun: ${begun.status} ${begun.bytes.toString().slice(0, 200)}`)
      return
    }
    const { id } = JSON.parse(begun.bytes.toString()) as { id: string }
    const part = await this.#patiently('a part', (at) => `${chunks(at)}/${id}/0`, {
      method: 'POST',
      body: sent.item,
    })
    if (part.status !== 200) {
      this.faults.push(`a part of ${id}: ${part.status} ${part.bytes.toString().slice(0, 200)}`)
      return
    }
    const end = await this.#patiently('parts, ended', (at) => `${chunks(at)}/${id}/-1`, { method: 'POST' })
    this.#receipt('parts, ended', end, sent)
  }

  async #block(): Promise<void> {
    const kept = this.accepted.at(-1)
    await pause(3000)
    if (kept === undefined || this.blocked.includes(kept)) return
    const { status, bytes } = await this.#patiently(
      'an order to block',
      ({ gateway }) => `${gateway}/gateway/admin/block-data`,
      {
        method: 'PUT',
        body: JSON.stringify({ id: kept.id, source: 'test', notes: 'none' }),
        headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' },
      },
    )
    if (status === 200) this.blocked.push({ ...kept, atMs: systemClock.monotonic() })
    else this.faults.push(`block: ${status} ${bytes.toString().slice(0, 200)}`)
  }

  /** What was accepted is served by any machine, or it says that it cannot now. */
  async #read(): Promise<void> {
    const kept = this.accepted[Math.floor(this.random() * this.accepted.length)]
    if (kept === undefined) return
    const answer = await this.#once(`${this.#any().gateway}/raw/${kept.id}`)
    if (answer === undefined) return
    const { status, bytes } = answer
    const isBlocked = this.blocked.some(({ id }) => id === kept.id)
    if (status === 200 && !bytes.equals(kept.payload)) this.faults.push(`read: wrong bytes of ${kept.id}`)
    else if (status !== 200 && status !== 451 && !again.has(status))
      this.faults.push(
        `read: ${kept.id} is ${status} after ${Math.round(systemClock.monotonic() - kept.atMs)} ms`,
      )
    else if (status === 451 && !isBlocked) this.#count('read: 451 before the order was answered')
    if (status !== 200) this.#count(`read: ${status}`)
  }

  /** What each machine states of an upload, and how long ago it was accepted. */
  async #states(id: string): Promise<unknown> {
    const states = await Promise.all(
      this.urls().map(({ upload }) => this.#once(`${upload}/v1/tx/${id}/status`)),
    )
    const at = this.accepted.findIndex((one) => one.id === id)
    return { at, of: this.accepted.length, states: states.map((one) => one?.bytes.toString()) }
  }

  /** What items cost that have no receipt: as others of their size. */
  get #unstated(): bigint {
    const winc = this.#unreceipted.map(
      ({ payload }) => this.accepted.find((one) => one.payload.length === payload.length)?.winc ?? '0',
    )
    return winc.reduce((sum, one) => sum + BigInt(one), 0n)
  }

  /** Items with a receipt, by their size and what it states as their price. */
  get #prices(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { payload, winc } of this.accepted) {
      const key = `${payload.length} bytes, ${winc} winc`
      counts.set(key, (counts.get(key) ?? 0) + 1)
    }
    return counts
  }

  async #balance(): Promise<bigint> {
    const path = `/v1/account/balance/any?address=${this.#address}`
    const { status, bytes } = await this.#patiently('a balance', ({ payment }) => `${payment}${path}`)
    return status === 200 ? BigInt((JSON.parse(bytes.toString()) as { winc: string }).winc) : 0n
  }

  /** Waits until an item is permanent, and each machine answers for it as it must. */
  async #found({ id, payload }: Pick<Accepted, 'id' | 'payload'>, chain: string): Promise<void> {
    let states: unknown
    await eventually(
      `${id} is permanent`,
      async () => {
        const answer = await this.#once(`${chain}/raw/${id}`)
        if (answer?.status === 200 && !answer.bytes.equals(payload)) throw new Error(`wrong bytes of ${id}`)
        if (answer?.status === 200) return true
        states = await this.#states(id)
        return false
      },
      () => states,
    )
    const wanted = this.blocked.some((one) => one.id === id) ? 451 : 200
    for (const { gateway, upload } of this.urls()) {
      let answer: Answer | undefined
      await eventually(
        `${id} is answered ${wanted} by each`,
        async () => {
          answer = await this.#once(`${gateway}/raw/${id}`)
          return answer?.status === wanted && (wanted === 451 || answer.bytes.equals(payload))
        },
        () => ({
          gateway,
          upload,
          status: answer?.status,
          text: answer?.bytes.toString().slice(0, 200),
          states,
        }),
      )
      states = undefined
    }
  }

  /**
   * Compares all that was acknowledged with what is there, when all machines and engines are well again. `chain`: a gateway that
   * has nothing but the chain. Throws where something is lost, charged twice, or served though it is blocked.
   */
  async compare(chain: string): Promise<void> {
    const left = [...this.accepted, ...this.#unreceipted]
    const next = async (): Promise<void> => {
      for (let one = left.pop(); one !== undefined; one = left.pop()) await this.#found(one, chain)
    }
    await Promise.all(Array.from({ length: comparedAtOnce }, next))
    // What an upload that nobody ended holds comes back; nothing here is left open.
    let balance = 0n
    await eventually(
      'what is gone from the wallet is the sum of the receipts',
      async () => {
        balance = await this.#balance()
        return this.#bought - balance === this.#spent + this.#unstated
      },
      () => ({
        balance,
        tooMuch: this.#bought - balance - this.#spent - this.#unstated,
        prices: this.#prices,
      }),
    )
  }
}
