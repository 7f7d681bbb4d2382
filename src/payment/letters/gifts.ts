import { isRejected, type MoneyLedger } from '../../ledger/ledger-port.js'
import { historyRecord } from '../books/accounts.js'
import { accountOf, addressKind, type Wallets } from '../books/wallets.js'

/** Credits that were paid for somebody who is known by an e-mail address only. */
export interface Gift {
  readonly id: string
  readonly email: string
  readonly winc: string
  readonly state: 'open' | 'redeemed' | 'withdrawn'
  readonly createdMs: number
  readonly giftMessage?: string
  readonly redeemedBy?: string
}

export const giftKind = 'gift'

/** The ledger's account of a gift that nobody has redeemed yet. */
export function giftAccount(id: string): string {
  return `gift:${id}`
}

/** Control characters would go out in the lines of the letter. */
const emailShape = /^[^\s\p{Cc}@<>"',;]+@[^\s\p{Cc}@<>"',;]+\.[^\s\p{Cc}@<>"',;]+$/u

/** An address as a mail server would take it; what it is worth is seen when the mail arrives. */
export function isEmail(text: string): boolean {
  return text.length <= 254 && emailShape.test(text)
}

export type Redeemed =
  | { readonly wallet: string; readonly winc: string }
  | { readonly status: 400; readonly text: string }

const failure = { status: 400, text: 'Failure to redeem payment receipt!' } as const

/** Puts a gift into a wallet, once. */
export async function redeemGift(
  ledger: MoneyLedger,
  wallets: Wallets,
  now: () => number,
  { id, email, destination }: { readonly id: string; readonly email: string; readonly destination: string },
): Promise<Redeemed> {
  if (!isEmail(email)) return { status: 400, text: 'Provided recipient email address is not a valid email!' }
  if (addressKind(destination) === undefined)
    return { status: 400, text: 'Provided destination address is not a valid native address!' }
  const stored = await ledger.record(giftKind, id)
  if (stored === undefined) return failure
  const gift = JSON.parse(stored.value) as Gift
  if (gift.email.toLowerCase() !== email.toLowerCase() || gift.state === 'withdrawn') return failure
  const used = { status: 400, text: 'Gift has already been redeemed!' } as const
  if (gift.state === 'redeemed') return used
  const { winc, giftMessage } = gift
  const about = {
    type: 'fiat',
    paymentProvider: 'gift',
    receiptId: id,
    wincCredited: winc,
    ...(giftMessage === undefined ? {} : { giftMessage }),
  }
  const facts = { reason: 'gifted_payment_redemption', reference: id, about }
  const transferId = `gift-redeemed:${id}`
  const { wallet, outcome } = await wallets.commitToWalletOf(destination, (wallet) => {
    const moved = { debit: giftAccount(id), credit: accountOf(wallet), amount: BigInt(winc) }
    const value = JSON.stringify({ ...gift, state: 'redeemed', redeemedBy: wallet } satisfies Gift)
    return {
      transfers: [{ id: transferId, kind: 'posted', ...moved, ...facts }],
      records: [
        { kind: giftKind, key: id, value, expected: stored.version },
        historyRecord(wallet, now(), transferId),
      ],
    }
  })
  // Two requests redeemed it at once, and the other one has it.
  return isRejected(outcome) ? used : { wallet, winc }
}
