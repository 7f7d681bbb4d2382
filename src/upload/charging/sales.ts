import { type Id, idBytes } from '../../format/id.js'
import type { FirstSale, UsdcOrder } from '../../payment/credits-port.js'
import { readJsonRow } from '../../store/json-row.js'
import type { Environment, Table } from '../../store/lmdb.js'
import type { UploadAnswer } from '../calls/upload-answers.js'
import type { AcceptedItem } from '../records/uploads.js'

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
  /** Of the signature (`signatureDigest`); absent in records of older releases. */
  readonly signed?: string
  /** The upload service that began it: another one may have taken it over. */
  readonly service?: string
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
  /** Of its signature (`signatureDigest`). */
  readonly signed: string
  /** The upload service that sells it, where it is one of several. */
  readonly service?: string
  /** Of the item whose id this is. */
  request(id: Id): string
  /** Why the payment cannot be taken for this. */
  refuse(why: 'used' | 'identifier'): Promise<UploadAnswer>
  /** Moves the money, or states why it did not. `sale`: as in `UsdcOrder`. */
  settle(itemId: string, sale?: UsdcOrder['sale']): Promise<PaidFacts | Unsettled>
}

/** Sales on disk: one for each payment that was brought for an item. */
export class Sales {
  readonly #table: Table

  constructor(readonly environment: Environment) {
    this.#table = environment.table('sales')
  }

  find(payment: string): Sale | undefined {
    const found = this.#table.get(saleKey(payment))
    return found === undefined
      ? undefined
      : (readJsonRow(found, 'uploads/data.mdb: a row about a sale') as Sale)
  }

  /** The sale that a client named so. */
  named(identifier: string): Sale | undefined {
    return this.#pointed(nameKey(identifier))
  }

  /** The sale of an item that is kept and whose money may not have moved. */
  openOf(id: Id): Sale | undefined {
    const sale = this.#pointed(openKey(id))
    return sale?.itemId === id && sale.paid === undefined ? sale : undefined
  }

  /** All that are open. */
  open(): Sale[] {
    const span = { start: Buffer.from('o'), end: Buffer.from('p') }
    return [...this.#table.span(span)].flatMap(({ value }) => this.find(Buffer.from(value).toString()) ?? [])
  }

  begin(sale: Sale): void {
    this.environment.write(() => {
      this.#put(sale)
      this.#table.put(openKey(sale.itemId), Buffer.from(sale.payment))
      if (sale.identifier !== undefined) this.#table.put(nameKey(sale.identifier), Buffer.from(sale.payment))
    })
  }

  /** Only inside a `write` of the environment: with what accepts the item. */
  end({ item: _, ...sale }: Sale, paid: PaidFacts): void {
    this.#put({ ...sale, paid })
    this.#table.remove(openKey(sale.itemId))
  }

  /** Nothing was paid. */
  drop({ payment, itemId, identifier }: Sale): void {
    this.environment.write(() => {
      this.#table.remove(saleKey(payment))
      this.#table.remove(openKey(itemId))
      if (identifier !== undefined) this.#table.remove(nameKey(identifier))
    })
  }

  #put(sale: Sale): void {
    this.#table.put(saleKey(sale.payment), Buffer.from(JSON.stringify(sale)))
  }

  #pointed(key: Uint8Array): Sale | undefined {
    const payment = this.#table.get(key)
    return payment === undefined ? undefined : this.find(Buffer.from(payment).toString())
  }
}

const saleKey = (payment: string): Buffer => Buffer.from(`s:${payment}`)
const nameKey = (identifier: string): Buffer => Buffer.from(`n:${identifier}`)
const openKey = (id: Id): Buffer => Buffer.concat([Buffer.from('o:'), idBytes(id)])
