import { type Id, idBytes } from '../../format/id.js'
import type { FirstSale, UsdcOrder } from '../../payment/credits-port.js'
import { readJsonRow } from '../../store/json-row.js'
import type { Environment, Table } from '../../store/lmdb.js'
import type { AcceptedItem } from '../records/uploads.js'
import type { UploadAnswer } from '../requests/upload-answers.js'

/** What was paid for an item, for the receipts of it. */
export interface PaidFacts {
  readonly winc: string
  readonly transaction: string
  readonly payer: string
  readonly network: string
  /** Header lines with the receipt of the payment. */
  readonly lines: string
}

/** An item that was paid for by a payment of its own (x402), or is about to be. */
export interface Sale {
  /** Name of the payment. */
  readonly payment: string
  /** Smallest units of USDC. */
  readonly units: string
  /** That were paid for. */
  readonly bytes: number
  /** What the payment is good for: the id of a signed item, or a digest of what was to be signed here. */
  readonly request: string
  /** The client's own name for it, with its address in front (extension payment-identifier of x402). */
  readonly identifier?: string
  /** Digest of its signature (`signatureDigest`). */
  readonly signed?: string
  /** The upload service that began it: another one may have taken it over. */
  readonly service?: string
  /** When this machine began it, or took it over. */
  readonly openedMs: number
  readonly itemId: Id
  /** While the money may not have moved: the item as it will be accepted, whose bytes are in the log for good. */
  readonly item?: AcceptedItem
  /** Sold. */
  readonly paid?: PaidFacts
}

/** The answer where no money has moved. */
export interface Unsettled {
  readonly answer: UploadAnswer
  /** It may still move, by this order or by an earlier one. */
  readonly isOpen: boolean
  /** Not by this order: nobody got it. */
  readonly isUnsent?: boolean
  /** Sold before, by this payment or identifier, at another machine: the request is answered with its receipt. */
  readonly first?: FirstSale
}

/** Payment for a single item: it is settled after the item is stored, and before the item is accepted. */
export interface Purchase {
  readonly payment: string
  readonly units: string
  /** That were paid for. */
  readonly bytes: number
  readonly identifier?: string
  /** Digest of its signature (`signatureDigest`). */
  readonly signed: string
  /** The upload service that sells it, where it is one of several. */
  readonly service?: string
  /** The request that buys the item with this id, as one text. */
  request(id: Id): string
  /** Why the payment cannot be taken for this. */
  refuse(why: 'used' | 'identifier'): Promise<UploadAnswer>
  /** Moves the money, or states why it did not. `sale` and `notAccepted`: as in `UsdcOrder`. */
  pay(
    itemId: string,
    sale?: UsdcOrder['sale'],
    notAccepted?: UsdcOrder['notAccepted'],
  ): Promise<PaidFacts | Unsettled>
}

/**
 * Sales on disk. Whoever reads the chain can bring a payment, so while a sale is open its payment is nobody's: any number of
 * items may wait for it, and the payment service decides which one it has paid for. Each payment is sold once.
 */
export class Sales {
  readonly #table: Table

  constructor(readonly environment: Environment) {
    this.#table = environment.table('sales')
    this.#takeOver()
  }

  /** What a payment has paid for. */
  sold(payment: string): Sale | undefined {
    const sale = this.#sale(saleKey(payment))
    return sale?.paid === undefined ? undefined : sale
  }

  /** The sale that a client named so. */
  named(identifier: string): Sale | undefined {
    const [payment = '', request = ''] = textOf(this.#table.get(nameKey(identifier))).split(' ')
    return this.sold(payment) ?? this.openFor(payment, request)
  }

  /** The first open sale of an item, which is kept and whose money may not have moved. */
  openOf(id: Id): Sale | undefined {
    return this.allOf(id)[0]
  }

  /** All of them: of several payments, or of one that was brought here and with the item of another machine. */
  allOf(id: Id): Sale[] {
    const start = Buffer.concat([Buffer.from('o:'), idBytes(id)])
    return this.#within(start, Buffer.concat([start, Buffer.from([0xff])]))
  }

  /** An open sale for which a payment was brought with this very request, whatever the id of its item. */
  openFor(payment: string, request: string): Sale | undefined {
    const start = Buffer.from(`r:${payment} ${request} `)
    const [row] = [...this.#table.span({ start, end: Buffer.concat([start, Buffer.from([0xff])]), limit: 1 })]
    return row === undefined ? undefined : this.#sale(row.value)
  }

  /** All that are open. */
  open(): Sale[] {
    return this.#within(Buffer.from('o'), Buffer.from('p'))
  }

  isOpen(sale: Sale): boolean {
    return this.#table.get(openKey(sale)) !== undefined
  }

  begin(sale: Sale): void {
    const { payment, request, identifier } = sale
    this.environment.write(() => {
      this.#table.put(openKey(sale), bytesOf(sale))
      this.#table.put(requestKey(sale), openKey(sale))
      if (identifier !== undefined) this.#table.put(nameKey(identifier), Buffer.from(`${payment} ${request}`))
    })
  }

  /** Only inside a `write` of the environment: with what accepts the item. */
  end(sale: Sale, paid: PaidFacts): void {
    const { item: _, ...sold } = sale
    this.#table.put(saleKey(sale.payment), bytesOf({ ...sold, paid }))
    this.#removeOpen(sale)
  }

  /** Nothing was paid. */
  drop(sale: Sale): void {
    const { payment, request, identifier } = sale
    this.environment.write(() => {
      this.#removeOpen(sale)
      if (identifier === undefined || this.openFor(payment, request) !== undefined) return
      const name = nameKey(identifier)
      if (textOf(this.#table.get(name)) === `${payment} ${request}`) this.#table.remove(name)
    })
  }

  #removeOpen(sale: Sale): void {
    this.#table.remove(openKey(sale))
    this.#table.remove(requestKey(sale))
  }

  #within(start: Uint8Array, end: Uint8Array): Sale[] {
    return [...this.#table.span({ start, end })].map(({ value }) => readSale(value))
  }

  #sale(key: Uint8Array): Sale | undefined {
    const found = this.#table.get(key)
    return found === undefined ? undefined : readSale(found)
  }

  /** Older releases had one sale for each payment, and the name of the payment as the open sale of an item. */
  #takeOver(): void {
    const span = { start: Buffer.from('o'), end: Buffer.from('p') }
    const old = [...this.#table.span(span)].filter(({ value }) => value[0] !== brace)
    if (old.length === 0) return
    this.environment.write(() => {
      for (const { key, value } of old) {
        const sale = this.#sale(saleKey(textOf(value)))
        this.#table.remove(key)
        if (sale?.item === undefined) continue
        this.#table.remove(saleKey(sale.payment))
        this.begin(sale)
      }
    })
  }
}

const brace = '{'.charCodeAt(0)

const bytesOf = (sale: Sale): Buffer => Buffer.from(JSON.stringify(sale))
const textOf = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString()
const saleKey = (payment: string): Buffer => Buffer.from(`s:${payment}`)
const nameKey = (identifier: string): Buffer => Buffer.from(`n:${identifier}`)
const openKey = (sale: Sale): Buffer =>
  Buffer.concat([Buffer.from('o:'), idBytes(sale.itemId), Buffer.from(` ${copyOf(sale)}`)])
const requestKey = (sale: Sale): Buffer => Buffer.from(`r:${sale.payment} ${sale.request} ${placeOf(sale)}`)

/** Names an open sale: one payment may wait for several items, and for several copies of one. */
export function openSaleName(sale: Sale): string {
  return `${sale.itemId} ${copyOf(sale)}`
}

function copyOf(sale: Sale): string {
  return `${placeOf(sale)} ${sale.payment}`
}

/** Two copies of an item lie at two places. */
function placeOf({ item }: Sale): string {
  return item === undefined ? '' : `${item.place.file}:${item.place.offset}`
}

function readSale(value: Uint8Array): Sale {
  return readJsonRow(value, 'uploads/data.mdb: a row about a sale') as Sale
}
