import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { MessageChannel } from 'node:worker_threads'
import { systemClock } from '../../src/actor/clock.js'
import { addressOf, answer } from '../../src/actor/mailbox-address.js'
import { idOfBytes } from '../../src/format/id.js'
import { type ItemHeader, parseItemHeader } from '../../src/format/item.js'
import { isRefusal } from '../../src/format/refusal.js'
import { EmbeddedLedger } from '../../src/ledger/embedded.js'
import type { MoveOrder } from '../../src/ledger/transfer.js'
import { Approvals } from '../../src/payment/books/approvals.js'
import { LedgerCredits } from '../../src/payment/books/credits.js'
import { accountOf, Wallets } from '../../src/payment/books/wallets.js'
import type { CreditsPort } from '../../src/payment/credits-port.js'
import {
  answersCredits,
  type CreditsReply,
  type CreditsRequest,
  creditsByMessages,
} from '../../src/payment/links/credits-messages.js'
import { nativeAddress } from '../../src/proof/owner-address.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { openEnvironment } from '../../src/store/lmdb.js'
import { CreditCharging } from '../../src/upload/charging/credit-charging.js'
import { KnownPosters } from '../../src/upload/charging/known-posters.js'
import { neverPosted } from '../../src/upload/charging/network-posts.js'
import { RepostCheck } from '../../src/upload/charging/repost-check.js'
import { FreePools } from '../../src/upload/records/free-pools.js'
import { scratch } from '../../test/scratch.js'
import { median } from '../kit/numbers.js'
import { say } from '../kit/say.js'

const help = `reserve: what an upload costs until its credits are held back, durable, in a program with both services

  --items N    of each run (20000)
  --clients N  under way (1000)
  --rounds N   (3)
`

/** Signers of the items, each with credits. */
const wallets = 100

function headers(count: number): ItemHeader[] {
  const signed = Array.from({ length: wallets }, (_, at) => {
    const header = parseItemHeader(
      signItem(ed25519Signer(Buffer.alloc(32, at + 1)), {}, Buffer.from('bench')),
    )
    if (header === 'more' || isRefusal(header)) throw new Error('it signs no items')
    return header
  })
  return Array.from({ length: count }, (_, at) => {
    const bytes = Buffer.alloc(32)
    bytes.writeUInt32BE(at)
    return { ...(signed[at % wallets] as ItemHeader), id: idOfBytes(bytes) }
  })
}

async function cost(count: number, clients: number, act: (at: number) => Promise<unknown>): Promise<number> {
  let next = 0
  const client = async (): Promise<void> => {
    for (let at = next++; at < count; at = next++) await act(at)
  }
  const before = process.cpuUsage()
  await Promise.all(Array.from({ length: clients }, client))
  const { user, system } = process.cpuUsage(before)
  return (user + system) / count
}

async function run(count: number, clients: number, rounds: number): Promise<void> {
  const folder = scratch('bench-reserve')
  const ledger = new EmbeddedLedger({ path: join(folder, 'ledger'), clock: systemClock })
  const known = new Wallets(ledger)
  const approvals = new Approvals(ledger, known, systemClock.now, systemClock.now)
  const own = new LedgerCredits({ ledger, wallets: known, approvals, price: async (bytes) => BigInt(bytes) })
  // As between two threads; both ends are here, so that what both cost is counted.
  const { port1, port2 } = new MessageChannel()
  answer<CreditsRequest, CreditsReply>(port2, answersCredits(own, undefined))
  const line = creditsByMessages(addressOf<CreditsRequest, CreditsReply>(port1, 4096))
  const environment = openEnvironment(join(folder, 'uploads'))
  const rules = { itemMaxBytes: 0, walletBytes: 0, rangeBytes: 0, exemptWallets: [] }
  const pools = new FreePools(environment, rules)
  const closing = new AbortController()
  const old = new RepostCheck(neverPosted, new KnownPosters(environment), systemClock, {
    bundleOf: () => undefined,
  })
  const charging = new CreditCharging(pools, line, environment, old, systemClock, closing.signal)

  const items = headers((rounds + 1) * count * 3)
  for (const { signatureType, owner } of items.slice(0, wallets)) {
    const address = nativeAddress(signatureType, owner)
    const top: MoveOrder = {
      id: `top:${address}`,
      kind: 'posted',
      debit: 'source:bench',
      credit: accountOf(address),
      amount: 10n ** 15n,
      reason: 'payment',
      reference: 'bench',
    }
    await ledger.commit({ transfers: [top] })
  }
  const taker = { address: undefined, paidBy: [], token: undefined }
  const reserve = async (credits: CreditsPort, { id, signatureType, owner }: ItemHeader): Promise<void> => {
    const payer = { address: nativeAddress(signatureType, owner), signatureType, paidBy: [] }
    const reserved = await credits.reserve({ ...payer, itemId: id, bytes: 1000 })
    if (isRefusal(reserved) || !reserved.paid) throw new Error('it was refused')
  }
  const ways: Readonly<Record<string, (item: ItemHeader) => Promise<unknown>>> = {
    'the payment service alone': (item) => reserve(own, item),
    'over the line between the threads': (item) => reserve(line, item),
    'the whole charge of the upload service': async (item) => {
      const charge = await charging.charge(item, 1000, taker)
      if (!('winc' in charge)) throw new Error('it was refused')
    },
  }
  let first = 0
  for (const [name, act] of Object.entries(ways)) {
    const figures: number[] = []
    for (let round = 0; round <= rounds; round += 1) {
      const from = first
      first += count
      // A charge that takes longer than 0.9 s is refused.
      const under = name.startsWith('the whole') ? Math.min(clients, 64) : clients
      const figure = await cost(count, under, (at) => act(items[from + at] as ItemHeader))
      // The first pairs of a process are run by the interpreter.
      if (round > 0) figures.push(figure)
    }
    say(`${name.padEnd(40)} ${median(figures).toFixed(1)} us of processor a reserve`)
  }
  port1.close()
  closing.abort()
  await ledger.close()
  await environment.close()
}

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    items: { type: 'string', default: '20000' },
    clients: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '3' },
  },
})
if (values.help === true) process.stdout.write(help)
else await run(Number(values.items), Number(values.clients), Number(values.rounds))
