import { type SoldFacts, saleFields } from '../charging/open-sales.js'
import { type Receipt, type ReceiptTerms, receiptMessage, receiptOf } from '../records/receipt.js'
import type { AcceptedItem, LoggedUpload } from '../records/uploads.js'
import { jsonAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import type { Uploader } from '../requests/uploader.js'
import type { FreeTurns } from './free-turns.js'
import type { ReceiptRank, Signing } from './signing.js'

export interface SignedReceiptsParts {
  readonly signing: Pick<Signing, 'receipt' | 'isBehind'>
  readonly terms: ReceiptTerms
  /** Turns of items that nobody pays for. Absent: they need none. */
  readonly freeTurns?: FreeTurns
}

/** What a receipt is made of. */
export type Receipted = Pick<AcceptedItem, 'id' | 'owner' | 'winc' | 'receivedMs' | 'deadlineHeight'>

/** Receipts of items that are accepted, signed in their turns. */
export class SignedReceipts {
  constructor(private readonly parts: SignedReceiptsParts) {}

  /** The answer to an item that was accepted before. */
  async again(item: Receipted, status: 200 | 202, sale?: SoldFacts): Promise<UploadAnswer> {
    const receipt = await this.receipt(item)
    return jsonAnswer(status, { ...receipt, ...saleFields(receipt, sale) }, sale?.paid?.lines)
  }

  /** The same for a client who has not paid for it this time: its signature waits for a turn of the signers. */
  async repeated(item: Receipted, uploader: Uploader): Promise<UploadAnswer> {
    const endTurn = (await this.parts.freeTurns?.turn(uploader)) ?? noop
    if (typeof endTurn !== 'function') return endTurn
    return this.again(item, 202).finally(endTurn)
  }

  /** The same receipt each time, because its signature is deterministic. */
  async receipt(item: Receipted): Promise<Receipt> {
    return receiptOf(
      { ...item, timestamp: item.receivedMs },
      await this.signature(item, 'free'),
      this.parts.terms,
    )
  }

  signature(
    item: Pick<LoggedUpload, 'id' | 'receivedMs' | 'deadlineHeight'>,
    rank: ReceiptRank,
  ): Promise<Uint8Array> {
    return this.parts.signing.receipt(receiptMessage({ ...item, timestamp: item.receivedMs }), rank)
  }
}

const noop = (): void => undefined
